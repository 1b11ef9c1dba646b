//! Tells the profiler where the time of a compilation goes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use octants_codegen::LlvmTiming;
use octants_passes::PassTiming;
use octants_runtime::{Profiler, Track};

use crate::kernel_source::VersionInfo;

/// A kernel that is being compiled, from its source to callable code.
pub(crate) struct Compilation {
    profiler: Arc<Profiler>,
    kernel: String,
    begin: Instant,
}

impl Compilation {
    /// The front end, which took this long, is just done.
    pub fn begin(profiler: &Arc<Profiler>, kernel: &str, lowering: Duration) -> Self {
        let now = Instant::now();
        let begin = now.checked_sub(lowering).unwrap_or(now);
        profiler.phase(this_thread(profiler), &["front end"], kernel, begin, lowering);
        Self { profiler: Arc::clone(profiler), kernel: kernel.to_owned(), begin }
    }

    pub fn end(self) {
        let Self { profiler, kernel, begin } = self;
        profiler.phase(this_thread(&profiler), &[], &kernel, begin, begin.elapsed());
    }
}

/// A version of a kernel was made: what was done one after another since `begin`.
pub(crate) fn note_made(profiler: &Profiler, kernel: &str, begin: Instant, info: &VersionInfo) {
    let (track, statistics) = (this_thread(profiler), &info.statistics);
    let mut at = begin;
    for (phase, time) in [
        ("cache", statistics.find),
        ("passes", statistics.passes),
        ("emit", statistics.emit),
        ("LLVM", statistics.llvm),
    ] {
        if time > Duration::ZERO {
            profiler.phase(track, &[phase], kernel, at, time);
        }
        at += time;
    }
    for &PassTiming { name, begin: since, time } in &info.passes {
        profiler.phase(track, &["passes", name], kernel, begin + since, time);
    }
    for (symbol, timing) in &info.llvm {
        note_llvm(profiler, symbol, timing);
    }
}

/// LLVM compiled a task, on a thread of its own.
fn note_llvm(profiler: &Profiler, symbol: &str, timing: &LlvmTiming) {
    let &LlvmTiming { started, parse, optimise, emit } = timing;
    let Some(started) = started else { return };
    let whole = parse + optimise + emit;
    let track = profiler.worker(started, whole);
    profiler.part(track, symbol, started, whole);
    let mut at = started;
    for (stage, time) in [("parse", parse), ("optimise", optimise), ("generate", emit)] {
        profiler.phase(track, &["LLVM", stage], symbol, at, time);
        at += time;
    }
}

fn this_thread(profiler: &Profiler) -> Track {
    Track::Compile { thread: profiler.thread() }
}

/// Its code was loaded, just now.
pub(crate) fn note_loaded(profiler: &Profiler, kernel: &str, time: Duration) {
    let now = Instant::now();
    profiler.phase(this_thread(profiler), &["load"], kernel, now.checked_sub(time).unwrap_or(now), time);
}
