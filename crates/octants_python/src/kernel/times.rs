//! Where the time of a compilation went, for people.

use std::time::{Duration, Instant};

use octants::{CompileStatistics, CompiledKernel};
use pyo3::prelude::*;

use super::Kernel;

impl Kernel {
    /// Prints where the time of a compilation went, or that equal code was there.
    #[cold]
    pub(super) fn show_times(
        &self,
        py: Python<'_>,
        compiled: &CompiledKernel,
        started: Instant,
        lowering: Duration,
    ) -> PyResult<()> {
        let statistics = compiled.statistics();
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let mut phases = vec![("front end", milliseconds(lowering))];
        // An older one comes from another kernel, or from a session's cache.
        if statistics.finished.is_some_and(|finished| finished >= started) {
            let CompileStatistics { passes, emit, llvm, load, find, .. } = statistics;
            let made = [("passes", passes), ("emit", emit), ("LLVM", llvm), ("load", load)];
            let found = [("cache", find), ("load", load)];
            let rest = if statistics.found { &found[..] } else { &made[..] };
            phases.extend(rest.iter().map(|&(name, time)| (name, milliseconds(time))));
        }
        let show = py.import("octants._session")?.getattr("show_times")?;
        show.call1((&self.signature.qualname, phases, statistics.tasks, statistics.code_bytes))?;
        Ok(())
    }
}
