//! The host's processor: LLVM's code on a pool of threads.

use std::sync::Arc;
use std::time::Duration;

use octants_codegen::{CodegenError, KernelText, NativeOptions, compile_native, native_text};
use octants_cpu::CpuDevice;
use octants_hal::{Cancel, Device};
use octants_ir::text;
use octants_passes::Outcome;
use octants_runtime::{Assumptions, Code, TaskCode};

use super::Backend;
use crate::error::Error;
use crate::kernel_source::{KernelSource, VersionInfo};
use crate::options::SessionOptions;
use crate::report::{CompileStatistics, Dump};

pub(super) struct Native;

impl Backend for Native {
    fn open(&self, options: &SessionOptions) -> Result<Arc<dyn Device>, Error> {
        Ok(Arc::new(CpuDevice::new(options.threads)))
    }

    fn make(
        &self,
        source: &KernelSource,
        assume: Assumptions,
        cancel: &Cancel,
    ) -> Result<Code<VersionInfo>, Error> {
        let (outcome, passes) = source.run_passes(assume);
        if cancel.is_wanted() {
            return Err(Error::Cancelled);
        }
        let Outcome { kernel, plan, findings, .. } = outcome;
        let races = findings.races;
        let native = compile_native(&kernel, &plan, native_options(source, assume), cancel)
            .map_err(|error| native_error(&error))?;
        let tasks: Vec<_> = native
            .tasks
            .into_iter()
            .map(|task| TaskCode {
                symbol: task.symbol,
                bytes: task.bytes,
                lanes: task.lanes,
                shape: task.shape,
            })
            .collect();
        let statistics = CompileStatistics {
            lower: source.lowering,
            passes,
            emit: native.emit,
            llvm: native.llvm,
            load: Duration::ZERO,
            tasks: tasks.len(),
            code_bytes: tasks.iter().map(|task| task.bytes.len()).sum(),
        };
        Ok(Code { name: kernel.name.clone(), plan, tasks, info: VersionInfo { assume, races, statistics } })
    }

    fn dump(&self, source: &KernelSource, what: Dump, assume: Assumptions) -> Result<Option<String>, Error> {
        let Outcome { kernel, plan, .. } = source.run_passes(assume).0;
        let what = match what {
            Dump::Ir | Dump::IrAfterPasses => return Ok(Some(text::print(&kernel))),
            Dump::Llvm => KernelText::Llvm,
            Dump::OptimisedLlvm => KernelText::OptimisedLlvm,
            Dump::Assembly => KernelText::Assembly,
        };
        let text = native_text(&kernel, &plan, native_options(source, assume), what);
        text.map(Some).map_err(|error| native_error(&error))
    }

    fn reports_accesses(&self) -> bool {
        false
    }
}

fn native_options(source: &KernelSource, assume: Assumptions) -> NativeOptions {
    let threads = match source.options.num_compile_threads {
        0 => octants_cpu::pool::processors(),
        some => some,
    };
    NativeOptions { noalias: assume.noalias, optimise: source.options.opt_level > 0, threads }
}

fn native_error(error: &CodegenError) -> Error {
    match error {
        CodegenError::Cancelled => Error::Cancelled,
        CodegenError::Refused { .. } | CodegenError::Unsupported { .. } => Error::internal("llvm", error),
    }
}
