//! A kernel whose text is what it prints to.

use octants_ir::Kernel;
use octants_ir::text::{print, print_with_locations};

use super::Found;
use crate::file::Case;

pub fn run(case: &Case, kernel: &Kernel) -> Found {
    let with_locations = case.input.lines().any(|line| line.starts_with("loc"));
    let input = if with_locations { print_with_locations(kernel) } else { print(kernel) };
    Found { input, notes: case.notes.clone(), output: None }
}
