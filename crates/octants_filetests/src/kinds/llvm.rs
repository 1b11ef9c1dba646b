//! The LLVM text of a kernel's tasks. A kernel that is not split yet goes through the pipeline first.

use octants_ir::Kernel;
use octants_llvm::{CpuOptions, EmitOptions, GpuOptions, Target, emit};
use octants_passes::Assumptions;

use super::plan::planned;
use super::{CaseOutput, verified};
use crate::file::{Case, Head};

pub fn run(head: &Head, case: &Case, kernel: Kernel) -> Result<CaseOutput, String> {
    verified(&kernel, "at first")?;
    let &Head { noalias, exclusive, gpu, .. } = head;
    let (kernel, plan) =
        planned(kernel, Assumptions { noalias, copies: gpu, exclusive, few_tasks: gpu, blocks: gpu });
    let default = CpuOptions::default();
    let vector_bits = head.vector_bits.unwrap_or(default.vector_bits);
    let cpu = CpuOptions { vector_bits, force_lanes: head.lanes, exclusive, ..default };
    let target = if head.gpu { Target::Gpu(GpuOptions::default()) } else { Target::Cpu(cpu) };
    let options = EmitOptions { noalias, target, ..EmitOptions::default() };
    let mut output = String::new();
    for task in emit(&kernel, &plan, &options) {
        if !output.is_empty() {
            output.push('\n');
        }
        output += task.text.trim_end();
        output.push('\n');
    }
    Ok(CaseOutput { input: case.input.clone(), notes: case.notes.clone(), output: Some(output) })
}
