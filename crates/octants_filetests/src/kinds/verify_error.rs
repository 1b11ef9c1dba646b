//! A kernel that breaks laws, and what the verifier says.

use octants_ir::{Kernel, verify};

use super::CaseOutput;
use crate::file::Case;

pub fn run(case: &Case, kernel: &Kernel) -> Result<CaseOutput, String> {
    let Err(violations) = verify(kernel) else { return Err("it breaks no law".into()) };
    let (input, mut notes) = (case.input.clone(), other_notes(case, "; error:"));
    notes.extend(violations.iter().map(|violation| format!("; error: {violation}")));
    Ok(CaseOutput { input, notes, output: None })
}

fn other_notes(case: &Case, prefix: &str) -> Vec<String> {
    case.notes.iter().filter(|note| !note.starts_with(prefix)).cloned().collect()
}
