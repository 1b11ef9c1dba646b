//! The interpreter as a device: code is IR text.

use octants_hal::{Cancel, LaunchShape};
use octants_ir::plan::{ArgLayout, LaunchUses, Plan, ResultLayout, RunTime, Schedule, Task, TempLayout};
use octants_ir::{Kernel, SiteScope, SiteTable, text};
use octants_passes::{analysis, check_arithmetic, check_tapes, may_have_races, place_tapes, scalarise};
use octants_reference::ReferenceDevice;
use octants_runtime::{Assumptions, Code, TaskCode};

use super::{Backend, Compiler};
use crate::error::Error;
use crate::kernel_source::{KernelSource, VersionInfo};
use crate::report::{CompileStatistics, Dump};

pub(super) struct Reference {
    /// Memory is behind a bus, and what a launch needs of it is the host's to provide.
    pub remote: bool,
}

pub(super) fn open() -> Backend {
    Backend::new(ReferenceDevice::new(), Reference { remote: false })
}

/// With memory that the host does not see.
pub(super) fn open_remote() -> Backend {
    Backend::new(ReferenceDevice::remote(), Reference { remote: true })
}

impl Compiler for Reference {
    /// The whole kernel as one task, as the front end made it.
    fn make(
        &self,
        source: &KernelSource,
        assume: Assumptions,
        _cancel: &Cancel,
    ) -> Result<Code<VersionInfo>, Error> {
        let mut kernel = Kernel::clone(&source.kernel);
        check_tapes(&mut kernel);
        place_tapes(&mut kernel);
        if kernel.options.debug {
            // Checks are ops, and are made of scalars.
            scalarise(&mut kernel);
            check_arithmetic(&mut kernel);
        }
        // Iterations run in order here; the program is told of what other devices make of it.
        let races = if may_have_races(&kernel) {
            source.places(
                &source
                    .run_passes(Assumptions { noalias: true, copies: true, ..Assumptions::NOTHING })
                    .0
                    .findings
                    .races,
            )
        } else {
            Vec::new()
        };
        let ir = text::print(&kernel);
        let plan = whole_plan(&kernel);
        let (symbol, bytes) = (kernel.name.clone(), ir.into_bytes());
        let tasks = vec![TaskCode { symbol, bytes, lanes: 1, shape: LaunchShape::default() }];
        let statistics =
            CompileStatistics { lower: source.lowering, tasks: 1, ..CompileStatistics::default() };
        let info =
            VersionInfo { assume, races, statistics, passes: Vec::new(), llvm: Vec::new(), keys: Vec::new() };
        Ok(Code { name: kernel.name, place: source.place(), plan, tasks, info })
    }

    fn dump(
        &self,
        _source: &KernelSource,
        _what: Dump,
        _assume: Assumptions,
    ) -> Result<Option<String>, Error> {
        Ok(None)
    }

    fn has_tapes(&self) -> bool {
        !self.remote
    }

    fn reports_accesses(&self) -> bool {
        true
    }
}

/// A plan whose only task is all of a kernel that was not split.
fn whole_plan(kernel: &Kernel) -> Plan {
    Plan {
        args: ArgLayout::of(kernel),
        temps: TempLayout::default(),
        results: ResultLayout::of(kernel),
        tasks: vec![Task::Serial],
        schedule: Schedule::in_order(1),
        access: analysis::array_access(kernel),
        needs_noalias: false,
        uses: LaunchUses::of(kernel),
        run_time: RunTime::Unknown,
        // The interpreter checks every access.
        sites: SiteTable::of(kernel, SiteScope::ReportsAndAccesses),
    }
}
