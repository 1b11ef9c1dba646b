//! What compilers share that go through the passes and the compile driver.

use std::time::Duration;

use octants_codegen::{CodegenError, KernelCode, KernelText};
use octants_hal::Cancel;
use octants_ir::plan::Plan;
use octants_ir::{Kernel, text};
use octants_passes::Outcome;
use octants_runtime::{Assumptions, Code, TaskCode};

use crate::error::Error;
use crate::kernel_source::{KernelSource, VersionInfo};
use crate::report::{CompileStatistics, Dump};

/// Code for a kernel, by what `compile` makes of its tasks.
pub(super) fn make(
    source: &KernelSource,
    assume: Assumptions,
    cancel: &Cancel,
    compile: impl FnOnce(&Kernel, &Plan) -> Result<KernelCode, CodegenError>,
) -> Result<Code<VersionInfo>, Error> {
    let (outcome, passes) = source.run_passes(assume);
    if cancel.is_wanted() {
        return Err(Error::Cancelled);
    }
    let Outcome { kernel, plan, findings, timings } = outcome;
    let races = source.places(&findings.races);
    let compiled = compile(&kernel, &plan).map_err(|error| codegen_error(&error))?;
    let llvm = compiled.tasks.iter().map(|task| (task.symbol.clone(), task.timing)).collect();
    let keys = compiled.tasks.iter().filter_map(|task| task.key).collect();
    let found_tasks = compiled.tasks.iter().filter(|task| task.found).count();
    let tasks: Vec<_> = compiled
        .tasks
        .into_iter()
        .map(|task| TaskCode { symbol: task.symbol, bytes: task.bytes, lanes: task.lanes, shape: task.shape })
        .collect();
    let statistics = CompileStatistics {
        lower: source.lowering,
        passes,
        emit: compiled.emit,
        llvm: compiled.llvm,
        load: Duration::ZERO,
        find: Duration::ZERO,
        found: false,
        found_tasks,
        tasks: tasks.len(),
        code_bytes: tasks.iter().map(|task| task.bytes.len()).sum(),
        finished: None,
    };
    let info = VersionInfo { assume, races, statistics, passes: timings, llvm, keys };
    Ok(Code { name: kernel.name.clone(), place: source.place(), plan, tasks, info })
}

/// A text of a kernel, by what `show` shows of its tasks.
pub(super) fn dump(
    source: &KernelSource,
    what: Dump,
    assume: Assumptions,
    show: impl FnOnce(&Kernel, &Plan, KernelText) -> Result<String, CodegenError>,
) -> Result<Option<String>, Error> {
    let Outcome { kernel, plan, .. } = source.run_passes(assume).0;
    let what = match what {
        Dump::Ir | Dump::IrAfterPasses => return Ok(Some(text::print(&kernel))),
        Dump::Llvm => KernelText::Llvm,
        Dump::OptimisedLlvm => KernelText::OptimisedLlvm,
        Dump::Assembly => KernelText::Assembly,
    };
    show(&kernel, &plan, what).map(Some).map_err(|error| codegen_error(&error))
}

/// How many tasks of a kernel compile at the same time.
pub(crate) fn compile_threads(source: &KernelSource) -> usize {
    match source.options.num_compile_threads {
        0 => octants_cpu::pool::processors(),
        some => some,
    }
}

pub(crate) fn codegen_error(error: &CodegenError) -> Error {
    match error {
        CodegenError::Cancelled => Error::Cancelled,
        CodegenError::Unsupported { message } => Error::Unsupported { message: message.clone() },
        CodegenError::Refused { .. } => Error::internal("llvm", error),
    }
}
