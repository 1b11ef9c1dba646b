//! How a session's device gets code for a kernel.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use octants_cpu::{NativeError, NativeOptions, NativeText, compile_native, native_text};
use octants_hal::DeviceError;
use octants_ir::plan::{ArgLayout, LaunchUses, Plan, ResultLayout, RunTime, Schedule, Task, TempLayout};
use octants_ir::{Kernel, Loc, SiteScope, SiteTable, text};
use octants_passes::{
    Assumptions as PassAssumptions, Outcome, PipelineOptions, analysis, check_arithmetic, may_have_races,
    run_pipeline, scalarise,
};
use octants_runtime::{Assumptions, Code, MakeVersion, TaskCode};

use crate::error::Error;
use crate::options::{Arch, SessionOptions};
use crate::report::{CompileStatistics, Dump};

/// A kernel of more ops than this is compiled on a thread of its own, so that its caller can be interrupted. Passes take about 10 µs
/// for each op: it hears of it within 20 ms.
const OPS_WORTH_A_THREAD: usize = 2000;

/// Of such a thread. Passes and the emitter recurse over nested regions. Untouched pages cost nothing.
const STACK: usize = 64 << 20;

/// How often the caller looks whether it is interrupted.
const PATIENCE: Duration = Duration::from_millis(10);

/// A kernel as the front end made it, and the options of the session that compiles it.
#[derive(Clone)]
pub(crate) struct Recipe {
    pub kernel: Arc<Kernel>,
    pub options: SessionOptions,
    pub lowering: Duration,
}

/// What is kept beside a version's code.
pub(crate) struct VersionInfo {
    /// What the code was made for.
    pub assume: Assumptions,
    /// Assignments that are races, as the front end's kernel locates them.
    pub races: Vec<Loc>,
    pub statistics: CompileStatistics,
}

impl MakeVersion for Recipe {
    type Info = VersionInfo;
    type Error = Error;

    fn make(&self, assume: Assumptions, cancel: &AtomicBool) -> Result<Code<VersionInfo>, Error> {
        if self.kernel.ops.len() < OPS_WORTH_A_THREAD {
            return self.make_here(assume, cancel);
        }
        let (send, result) = sync_channel(1);
        let abandoned = Arc::new(AtomicBool::new(false));
        let (recipe, stop) = (self.clone(), Arc::clone(&abandoned));
        let thread = thread::Builder::new().name("octants-compile".to_owned()).stack_size(STACK);
        let spawned = thread.spawn(move || {
            // Nobody may be waiting any more.
            drop(send.send(recipe.make_here(assume, &stop)));
        });
        let Ok(spawned) = spawned else { return self.make_here(assume, cancel) };
        loop {
            match result.recv_timeout(PATIENCE) {
                Ok(made) => return made,
                Err(RecvTimeoutError::Timeout) if cancel.load(Ordering::Relaxed) => {
                    abandoned.store(true, Ordering::Relaxed);
                    return Err(Error::Cancelled);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => match spawned.join() {
                    Err(panic) => std::panic::resume_unwind(panic),
                    Ok(()) => return Err(Error::internal("compile", "a thread ended without a result")),
                },
            }
        }
    }

    fn refused(&self, error: DeviceError) -> Error {
        match error {
            DeviceError::OutOfMemory { bytes } => Error::OutOfMemory { bytes: bytes as u64 },
            other => Error::internal("load", other),
        }
    }

    fn loaded(&self, info: &mut VersionInfo, time: Duration) {
        info.statistics.load = time;
    }
}

impl Recipe {
    fn make_here(&self, assume: Assumptions, cancel: &AtomicBool) -> Result<Code<VersionInfo>, Error> {
        match self.options.arch {
            Arch::Cpu => self.native(assume, cancel),
            Arch::Reference => Ok(self.interpreted(assume)),
            Arch::Null => Ok(self.recorded(assume)),
        }
    }

    fn native(&self, assume: Assumptions, cancel: &AtomicBool) -> Result<Code<VersionInfo>, Error> {
        let (outcome, passes) = self.run_passes(assume);
        if cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let Outcome { kernel, plan, findings, .. } = outcome;
        let races = findings.races;
        let native = compile_native(&kernel, &plan, self.native_options(assume), cancel)
            .map_err(|error| native_error(&error))?;
        let tasks: Vec<_> = native
            .tasks
            .into_iter()
            .map(|task| TaskCode { symbol: task.symbol, bytes: task.object, lanes: task.lanes })
            .collect();
        let statistics = CompileStatistics {
            lower: self.lowering,
            passes,
            emit: native.emit,
            llvm: native.llvm,
            load: Duration::ZERO,
            tasks: tasks.len(),
            code_bytes: tasks.iter().map(|task| task.bytes.len()).sum(),
        };
        Ok(Code { name: kernel.name.clone(), plan, tasks, info: VersionInfo { assume, races, statistics } })
    }

    /// The whole kernel as one task, as the front end made it.
    fn interpreted(&self, assume: Assumptions) -> Code<VersionInfo> {
        let mut kernel = Kernel::clone(&self.kernel);
        if kernel.options.debug {
            // Checks are ops, and are made of scalars.
            scalarise(&mut kernel);
            check_arithmetic(&mut kernel);
        }
        // Iterations run in order here; the program is told of what other devices make of it.
        let races = if may_have_races(&kernel) {
            self.run_passes(Assumptions { noalias: true, copies: true }).0.findings.races
        } else {
            Vec::new()
        };
        let source = text::print(&kernel);
        let plan = whole_plan(&kernel);
        let tasks = vec![TaskCode { symbol: kernel.name.clone(), bytes: source.into_bytes(), lanes: 1 }];
        let statistics = CompileStatistics { lower: self.lowering, tasks: 1, ..CompileStatistics::default() };
        Code { name: kernel.name, plan, tasks, info: VersionInfo { assume, races, statistics } }
    }

    /// Tasks by name alone.
    fn recorded(&self, assume: Assumptions) -> Code<VersionInfo> {
        let (Outcome { kernel, plan, findings, .. }, passes) = self.run_passes(assume);
        let races = findings.races;
        let task = |number: usize| TaskCode {
            symbol: format!("{}_t{number}", kernel.name),
            bytes: text::print(&kernel).into_bytes(),
            lanes: 1,
        };
        let tasks: Vec<_> = (0..plan.tasks.len()).map(task).collect();
        let statistics = CompileStatistics {
            lower: self.lowering,
            passes,
            tasks: tasks.len(),
            ..CompileStatistics::default()
        };
        Code { name: kernel.name.clone(), plan, tasks, info: VersionInfo { assume, races, statistics } }
    }

    fn run_passes(&self, assume: Assumptions) -> (Outcome, Duration) {
        let begin = Instant::now();
        let options = PipelineOptions {
            assumptions: PassAssumptions { noalias: assume.noalias, copies: assume.copies },
            // What an assignment in a parallel loop means does not depend on the level: the first two are needed for it.
            limit: (self.options.opt_level == 0).then_some(2),
            ..PipelineOptions::default()
        };
        let outcome = run_pipeline(Kernel::clone(&self.kernel), options);
        (outcome, begin.elapsed())
    }

    fn native_options(&self, assume: Assumptions) -> NativeOptions {
        let threads = match self.options.num_compile_threads {
            0 => octants_cpu::pool::processors(),
            some => some,
        };
        NativeOptions { noalias: assume.noalias, optimise: self.options.opt_level > 0, threads }
    }

    /// A text of the version that was made for these assumptions. It is made anew: versions keep no kernel.
    pub fn dump(&self, what: Dump, assume: Assumptions) -> Result<Option<String>, Error> {
        let native = |what| {
            if self.options.arch != Arch::Cpu {
                return Ok(None);
            }
            let Outcome { kernel, plan, .. } = self.run_passes(assume).0;
            let text = native_text(&kernel, &plan, self.native_options(assume), what);
            text.map(Some).map_err(|error| native_error(&error))
        };
        match what {
            Dump::Ir => Ok(Some(text::print(&self.kernel))),
            Dump::IrAfterPasses if self.options.arch == Arch::Reference => Ok(None),
            Dump::IrAfterPasses => Ok(Some(text::print(&self.run_passes(assume).0.kernel))),
            Dump::Llvm => native(NativeText::Llvm),
            Dump::OptimisedLlvm => native(NativeText::OptimisedLlvm),
            Dump::Assembly => native(NativeText::Assembly),
        }
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

fn native_error(error: &NativeError) -> Error {
    match error {
        NativeError::Cancelled => Error::Cancelled,
        NativeError::Refused { .. } => Error::internal("llvm", error),
    }
}
