//! The text of a kernel's plan. A kernel that is not split yet goes through the pipeline first.

use octants_ir::{Kernel, Phase, Plan};
use octants_passes::{Assumptions, PipelineOptions, make_plan, run_pipeline};

use super::{CaseOutput, verified};
use crate::file::{Case, Head};

pub fn run(head: &Head, case: &Case, kernel: Kernel) -> Result<CaseOutput, String> {
    verified(&kernel, "at first")?;
    let &Head { noalias, exclusive, .. } = head;
    let (_, plan) =
        planned(kernel, Assumptions { noalias, copies: noalias, exclusive, few_tasks: false, blocks: false });
    let output = octants_ir::plan::print(&plan);
    Ok(CaseOutput { input: case.input.clone(), notes: case.notes.clone(), output: Some(output) })
}

/// The kernel in its tasks phase, and its plan.
pub(crate) fn planned(kernel: Kernel, assumptions: Assumptions) -> (Kernel, Plan) {
    match kernel.phase {
        Phase::Tasks => {
            let plan = make_plan(&kernel, assumptions);
            (kernel, plan)
        }
        Phase::Structured => {
            let outcome = run_pipeline(kernel, PipelineOptions { assumptions, ..PipelineOptions::default() });
            (outcome.kernel, outcome.plan)
        }
    }
}
