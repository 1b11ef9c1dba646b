//! A kernel whose text is what it prints to.

use octants_ir::Kernel;
use octants_ir::text::{print, print_with_locations};

use super::CaseOutput;
use crate::file::Case;

pub fn run(case: &Case, kernel: &Kernel) -> CaseOutput {
    let with_locations = case.input.lines().any(|line| line.starts_with("loc"));
    let input = if with_locations { print_with_locations(kernel) } else { print(kernel) };
    CaseOutput { input, notes: case.notes.clone(), output: None }
}
