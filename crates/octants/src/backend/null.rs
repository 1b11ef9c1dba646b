//! No processor: kernels go through the passes, and the device records what it is told.

use octants_hal::{Cancel, LaunchShape};
use octants_ir::text;
use octants_passes::Outcome;
use octants_runtime::{Assumptions, Code, TaskCode};

use super::Compiler;
use crate::error::Error;
use crate::kernel_source::{KernelSource, VersionInfo};
use crate::report::{CompileStatistics, Dump};

pub(super) struct Null;

impl Compiler for Null {
    /// Tasks by name alone.
    fn make(
        &self,
        source: &KernelSource,
        assume: Assumptions,
        _cancel: &Cancel,
    ) -> Result<Code<VersionInfo>, Error> {
        let (Outcome { kernel, plan, findings, timings }, passes) = source.run_passes(assume);
        let races = source.places(&findings.races);
        let task = |number: usize| TaskCode {
            symbol: format!("{}_t{number}", kernel.name),
            bytes: text::print(&kernel).into_bytes(),
            lanes: 1,
            shape: LaunchShape::default(),
        };
        let tasks: Vec<_> = (0..plan.tasks.len()).map(task).collect();
        let statistics = CompileStatistics {
            lower: source.lowering,
            passes,
            tasks: tasks.len(),
            ..CompileStatistics::default()
        };
        let info =
            VersionInfo { assume, races, statistics, passes: timings, llvm: Vec::new(), keys: Vec::new() };
        Ok(Code { name: kernel.name.clone(), place: source.place(), plan, tasks, info })
    }

    fn dump(&self, source: &KernelSource, what: Dump, assume: Assumptions) -> Result<Option<String>, Error> {
        match what {
            Dump::Ir | Dump::IrAfterPasses => Ok(Some(text::print(&source.run_passes(assume).0.kernel))),
            Dump::Llvm | Dump::OptimisedLlvm | Dump::Assembly => Ok(None),
        }
    }

    fn has_tapes(&self) -> bool {
        true
    }

    fn reports_accesses(&self) -> bool {
        false
    }
}
