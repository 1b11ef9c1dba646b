//! How a session's device gets code for a kernel.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use octants_cpu::{NativeError, NativeOptions, NativeText, compile_native, native_text};
use octants_hal::DeviceError;
use octants_ir::plan::{ArgLayout, LaunchUses, Plan, ResultLayout, Step, TempLayout};
use octants_ir::{Id, Kernel, Op, text};
use octants_passes::{
    Assumptions as PassAssumptions, Outcome, PipelineOptions, analysis, check_arithmetic, run_pipeline,
    scalarise,
};
use octants_runtime::{Assumptions, Code, MakeVersion, TaskCode};

use crate::error::Error;
use crate::options::{Arch, SessionOptions};
use crate::report::{CompileStatistics, Dump};

/// A kernel as the front end made it, and the options of the session that compiles it.
pub(crate) struct Recipe {
    pub kernel: Kernel,
    pub options: SessionOptions,
    pub lowering: Duration,
}

/// What is kept beside a version's code.
pub(crate) struct VersionInfo {
    /// The kernel that the code was made from; sites of faults are its ops.
    pub kernel: Kernel,
    pub statistics: CompileStatistics,
}

impl MakeVersion for Recipe {
    type Info = VersionInfo;
    type Error = Error;

    fn make(&self, assume: Assumptions, cancel: &AtomicBool) -> Result<Code<VersionInfo>, Error> {
        match self.options.arch {
            Arch::Cpu => self.native(assume, cancel),
            Arch::Reference => self.interpreted(),
            Arch::Null => Ok(self.recorded(assume)),
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
    fn native(&self, assume: Assumptions, cancel: &AtomicBool) -> Result<Code<VersionInfo>, Error> {
        let (outcome, passes) = self.run_passes(assume);
        let Outcome { kernel, plan, .. } = outcome;
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
        Ok(Code { name: kernel.name.clone(), plan, tasks, info: VersionInfo { kernel, statistics } })
    }

    /// The whole kernel as one task, as the front end made it.
    fn interpreted(&self) -> Result<Code<VersionInfo>, Error> {
        let mut kernel = self.kernel.clone();
        if kernel.options.debug {
            // Checks are ops, and are made of scalars.
            scalarise(&mut kernel);
            check_arithmetic(&mut kernel);
        }
        let source = text::print_with_locations(&kernel);
        // The device reads the same text, so that its ops have the numbers that they have here.
        let kernel = text::parse(&source).map_err(|error| Error::internal("text", error))?;
        let steps = vec![Step::Serial { task: 0, op: Op::from_index(0) }];
        let plan = whole_plan(&kernel, steps);
        let tasks = vec![TaskCode { symbol: kernel.name.clone(), bytes: source.into_bytes(), lanes: 1 }];
        let statistics = CompileStatistics { lower: self.lowering, tasks: 1, ..CompileStatistics::default() };
        Ok(Code { name: kernel.name.clone(), plan, tasks, info: VersionInfo { kernel, statistics } })
    }

    /// Tasks by name alone.
    fn recorded(&self, assume: Assumptions) -> Code<VersionInfo> {
        let (Outcome { kernel, plan, .. }, passes) = self.run_passes(assume);
        let task = |step: &Step| TaskCode {
            symbol: format!("{}_t{}", kernel.name, step.task()),
            bytes: text::print(&kernel).into_bytes(),
            lanes: 1,
        };
        let tasks: Vec<_> = plan.steps.iter().map(task).collect();
        let statistics = CompileStatistics {
            lower: self.lowering,
            passes,
            tasks: tasks.len(),
            ..CompileStatistics::default()
        };
        Code { name: kernel.name.clone(), plan, tasks, info: VersionInfo { kernel, statistics } }
    }

    fn run_passes(&self, assume: Assumptions) -> (Outcome, Duration) {
        let begin = Instant::now();
        let options = PipelineOptions {
            assumptions: PassAssumptions { noalias: assume.noalias, copies: assume.copies },
            limit: (self.options.opt_level == 0).then_some(0),
            ..PipelineOptions::default()
        };
        let outcome = run_pipeline(self.kernel.clone(), options);
        (outcome, begin.elapsed())
    }

    fn native_options(&self, assume: Assumptions) -> NativeOptions {
        let threads = match self.options.num_compile_threads {
            0 => octants_cpu::pool::processors(),
            some => some,
        };
        NativeOptions { noalias: assume.noalias, optimise: self.options.opt_level > 0, threads }
    }

    /// A text of the version that the code assumes nothing but its guards for.
    pub fn dump(&self, what: Dump, tasks: &Kernel, plan: &Plan) -> Result<Option<String>, Error> {
        let native = |what| {
            if self.options.arch != Arch::Cpu {
                return Ok(None);
            }
            let options = self.native_options(Assumptions { noalias: true, copies: true });
            native_text(tasks, plan, options, what).map(Some).map_err(|error| native_error(&error))
        };
        match what {
            Dump::Ir => Ok(Some(text::print(&self.kernel))),
            Dump::IrAfterPasses if self.options.arch == Arch::Reference => Ok(None),
            Dump::IrAfterPasses => Ok(Some(text::print(tasks))),
            Dump::Llvm => native(NativeText::Llvm),
            Dump::OptimisedLlvm => native(NativeText::OptimisedLlvm),
            Dump::Assembly => native(NativeText::Assembly),
        }
    }
}

/// A plan whose only step is all of a kernel that was not split.
fn whole_plan(kernel: &Kernel, steps: Vec<Step>) -> Plan {
    Plan {
        args: ArgLayout::of(kernel),
        temps: TempLayout::default(),
        results: ResultLayout::of(kernel),
        steps,
        access: analysis::array_access(kernel),
        needs_noalias: false,
        uses: LaunchUses::of(kernel),
    }
}

fn native_error(error: &NativeError) -> Error {
    match error {
        NativeError::Cancelled => Error::Cancelled,
        NativeError::Refused { .. } => Error::internal("llvm", error),
    }
}
