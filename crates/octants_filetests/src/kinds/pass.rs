//! A kernel before and after passes.

use octants_ir::Kernel;
use octants_ir::text::print;
use octants_passes::{Assumptions, run_pass};

use super::{CaseOutput, verified};
use crate::file::{Case, Head};

pub fn run(head: &Head, names: &[String], case: &Case, mut kernel: Kernel) -> Result<CaseOutput, String> {
    verified(&kernel, "before any pass")?;
    for name in names {
        if !run_pass(
            name,
            &mut kernel,
            Assumptions {
                noalias: head.noalias,
                copies: false,
                exclusive: false,
                few_tasks: head.gpu,
                blocks: head.gpu,
            },
        ) {
            return Err(format!("there is no pass `{name}`"));
        }
        verified(&kernel, &format!("after `{name}`"))?;
    }
    Ok(CaseOutput { input: case.input.clone(), notes: case.notes.clone(), output: Some(print(&kernel)) })
}
