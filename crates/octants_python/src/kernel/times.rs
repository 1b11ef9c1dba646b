//! What a compilation made and where its time went, for people.

use std::time::{Duration, Instant};

use octants::{CompileStatistics, CompiledKernel};
use pyo3::prelude::*;

use super::Kernel;
use crate::session::dump::dump;
use crate::session::runtime::ActiveSession;

impl Kernel {
    /// Prints what the session's options ask for: where the time went, texts of the stages. `differentiating` is the time from a lowered kernel to
    /// compiled code of its derivative.
    #[cold]
    pub(super) fn show(
        &self,
        py: Python<'_>,
        current: &ActiveSession,
        compiled: &CompiledKernel,
        started: Instant,
        lowering: Duration,
        differentiating: Option<Duration>,
    ) -> PyResult<()> {
        if current.times {
            self.show_times(py, compiled, started, lowering, differentiating)?;
        }
        if current.dumps {
            let dump = |stage: &str| dump(py, compiled, stage, None);
            py.import("octants._session")?.getattr("show")?.call1((
                self.shown_name(differentiating.is_some()),
                dump("ir")?,
                dump("llvm")?,
                dump("llvm-optimised")?,
                dump("asm")?,
            ))?;
        }
        Ok(())
    }

    fn shown_name(&self, is_derivative: bool) -> String {
        let kind = if is_derivative { "the derivative of " } else { "" };
        format!("{kind}{}", self.signature.qualname)
    }

    /// Prints where the time of a compilation went, or that equal code was there.
    fn show_times(
        &self,
        py: Python<'_>,
        compiled: &CompiledKernel,
        started: Instant,
        lowering: Duration,
        differentiating: Option<Duration>,
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
            if let Some(whole) = differentiating {
                let compiling = rest.iter().map(|&(_, time)| time).sum();
                phases.push(("derivative", milliseconds(whole.saturating_sub(compiling))));
            }
            phases.extend(rest.iter().map(|&(name, time)| (name, milliseconds(time))));
        }
        let show = py.import("octants._session")?.getattr("show_times")?;
        let name = self.shown_name(differentiating.is_some());
        show.call1((name, phases, statistics.tasks, statistics.code_bytes))?;
        Ok(())
    }
}
