//! A kernel on its way to code: what backends make versions from, and passes that all of them share.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use octants_cache::Key;
use octants_codegen::LlvmTiming;
use octants_hal::{Cancel, DeviceError};
use octants_ir::{Kernel, Loc, LocData, text};
use octants_passes::{Assumptions as PassAssumptions, Outcome, PassTiming, PipelineOptions, run_pipeline};
use octants_runtime::{Assumptions, Code, MakeVersion, Profiler};

use crate::backend::Compiler;
use crate::compile_phases::{note_loaded, note_made};
use crate::error::Error;
use crate::kernel_store::{KernelIr, KernelStore, Turn};
use crate::options::SessionOptions;
use crate::report::{CompileStatistics, Dump};

/// A kernel of more ops than this is compiled on a thread of its own, so that its caller can be interrupted. Passes take about 10 µs
/// for each op: it hears of it within 20 ms.
const MAX_OPS_ON_CALLER: usize = 2000;

/// Of such a thread's stack. Passes and the emitter recurse over nested regions: at most 200, which take 2 MiB without optimisation. Untouched
/// pages cost nothing.
const STACK_BYTES: usize = 64 << 20;

/// How often the caller looks whether it is interrupted. Chosen: Ctrl-C is to be heard within half a second.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A kernel as the front end made it, and the options of the session that compiles it.
#[derive(Clone)]
pub(crate) struct KernelSource {
    pub kernel: Arc<Kernel>,
    pub options: SessionOptions,
    pub compiler: Arc<dyn Compiler>,
    pub lowering: Duration,
    /// Is told where the time of compilations goes.
    pub profiler: Arc<Profiler>,
    pub ir: Arc<KernelIr>,
    /// Where code is kept that was made once, if it is.
    pub store: Option<Arc<KernelStore>>,
}

/// What is kept beside a version's code.
pub(crate) struct VersionInfo {
    /// What the code was made for.
    pub assume: Assumptions,
    /// Assignments that are races: each with the calls that were inlined, the innermost first.
    pub races: Vec<Vec<LocData>>,
    pub statistics: CompileStatistics,
    /// Each pass that ran.
    pub passes: Vec<PassTiming>,
    /// LLVM's work on each task, by symbol.
    pub llvm: Vec<(String, LlvmTiming)>,
    /// What the code of each task is kept under; empty if it is not.
    pub keys: Vec<Key>,
}

impl MakeVersion for KernelSource {
    type Info = VersionInfo;
    type Error = Error;

    fn make(&self, assume: Assumptions, cancel: &Cancel) -> Result<Code<VersionInfo>, Error> {
        let begin = Instant::now();
        let code = self.make_anywhere(assume, cancel)?;
        note_made(&self.profiler, &code.name, begin, &code.info);
        Ok(code)
    }

    fn was_kept(&self, info: &VersionInfo) -> bool {
        // Also what was made for the store just now: an assembler has been at work that others do without.
        !info.keys.is_empty()
    }

    fn make_anew(&self, assume: Assumptions, cancel: &Cancel) -> Result<Code<VersionInfo>, Error> {
        Self { store: None, ..self.clone() }.make(assume, cancel)
    }

    fn refused(&self, error: DeviceError) -> Error {
        match error {
            // What the device's own compiler refuses is a defect of ours, too.
            DeviceError::BadImage { .. } => Error::internal("load", error),
            other => Error::of_device(other),
        }
    }

    fn loaded(&self, info: &mut VersionInfo, time: Duration) {
        info.statistics.load = time;
        info.statistics.finished = Some(Instant::now());
        note_loaded(&self.profiler, &self.kernel.name, time);
    }
}

impl KernelSource {
    /// A large kernel on a thread of its own.
    fn make_anywhere(&self, assume: Assumptions, cancel: &Cancel) -> Result<Code<VersionInfo>, Error> {
        if self.kernel.ops.len() < MAX_OPS_ON_CALLER {
            return self.make_here(assume, cancel);
        }
        let (send, result) = sync_channel(1);
        let abandoned = Arc::new(Cancel::new());
        let (source, stop) = (self.clone(), Arc::clone(&abandoned));
        let thread = thread::Builder::new().name("octants-compile".to_owned()).stack_size(STACK_BYTES);
        let spawned = thread.spawn(move || {
            // Nobody may be waiting any more.
            drop(send.send(source.make_here(assume, &stop)));
        });
        let Ok(spawned) = spawned else { return self.make_here(assume, cancel) };
        loop {
            match result.recv_timeout(CANCEL_POLL_INTERVAL) {
                Ok(made) => return made,
                Err(RecvTimeoutError::Timeout) if cancel.is_wanted() => {
                    abandoned.raise();
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

    fn make_here(&self, assume: Assumptions, cancel: &Cancel) -> Result<Code<VersionInfo>, Error> {
        let Some(store) = &self.store else { return self.compiler.make(self, assume, cancel) };
        let key = store.key(self, assume);
        let claim = match store.turn(&key, self, assume, cancel)? {
            Turn::Found(code) => return Ok(*code),
            Turn::Make(claim) => claim,
        };
        let code = self.compiler.make(self, assume, cancel)?;
        store.keep(&key, self, &code);
        drop(claim);
        Ok(code)
    }

    /// Places of the kernel, each with the calls that were inlined around it.
    pub fn places(&self, locs: &[Loc]) -> Vec<Vec<LocData>> {
        let table = &self.kernel.locs;
        let calls = |&loc: &Loc| std::iter::successors(Some(loc), |&loc| table[loc].caller);
        let place = |loc: Loc| LocData { caller: None, ..table[loc].clone() };
        locs.iter().map(|loc| calls(loc).map(place).collect()).collect()
    }

    /// A text of the version that was made for these assumptions. It is made anew: versions keep no kernel.
    pub fn dump(&self, what: Dump, assume: Assumptions) -> Result<Option<String>, Error> {
        match what {
            Dump::Ir => Ok(Some(text::print(&self.kernel))),
            Dump::IrAfterPasses | Dump::Llvm | Dump::OptimisedLlvm | Dump::Assembly => {
                self.compiler.dump(self, what, assume)
            }
        }
    }

    /// Where the kernel begins, for messages: the place of its first op that has one.
    pub fn place(&self) -> LocData {
        let places = self.kernel.top_ops().into_iter().map(|op| &self.kernel.locs[self.kernel.ops[op].loc]);
        places.into_iter().find(|place| place.span.is_some()).cloned().unwrap_or(LocData::NOWHERE)
    }

    pub fn run_passes(&self, assume: Assumptions) -> (Outcome, Duration) {
        let Assumptions { noalias, copies, exclusive } = assume;
        let (few_tasks, blocks) = (self.compiler.prefers_few_tasks(), self.compiler.has_blocks());
        self.run_passes_on(
            Kernel::clone(&self.kernel),
            PassAssumptions { noalias, copies, exclusive, few_tasks, blocks },
        )
    }

    /// Likewise of a kernel in place of the source's own.
    pub(crate) fn run_passes_on(&self, kernel: Kernel, assumptions: PassAssumptions) -> (Outcome, Duration) {
        let begin = Instant::now();
        let options = PipelineOptions {
            assumptions,
            unoptimised: self.options.opt_level == 0,
            ..PipelineOptions::default()
        };
        let outcome = run_pipeline(kernel, options);
        (outcome, begin.elapsed())
    }
}
