//! What a session records of itself, and ranges of the user's own.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use octants::{Profiler, Session, Trace};
use pyo3::prelude::*;

use crate::gateway::errors;
use crate::gateway::interrupt::SignalScope;
use crate::gateway::under_way::Outside;
use crate::session::runtime::Runtime;
use crate::values::host_only;

/// The profiler of one session.
#[pyclass(frozen, module = "octants")]
pub struct SessionProfiler(Session);

impl SessionProfiler {
    pub fn new(session: Session) -> Self {
        Self(session)
    }

    fn ask<R: Send>(&self, py: Python<'_>, ask: impl FnOnce(&Trace) -> R + Send) -> PyResult<R> {
        host_only::guard(py, "profiler")?;
        let trace = trace(py, &self.0)?;
        Ok(py.outside(|| ask(&trace)))
    }
}

/// All that a session has recorded; waits for its device.
pub fn trace(py: Python<'_>, session: &Session) -> PyResult<Trace> {
    let signals = SignalScope::begin(py)?;
    let trace = py.outside(|| session.profiler().trace(signals.request()));
    let was_cancelled = trace.is_none();
    let trace =
        signals.finish(py, trace.ok_or(octants::Error::Cancelled), was_cancelled, errors::from_error)?;
    py.check_signals()?;
    Ok(trace)
}

#[pymethods]
impl SessionProfiler {
    /// Whether launches are recorded.
    #[getter]
    fn recording(&self) -> bool {
        self.0.profiler().is_recording()
    }

    fn count_table(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, Trace::count_table)
    }

    fn trace_table(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, Trace::trace_table)
    }

    fn phase_table(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, Trace::phase_table)
    }

    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, Trace::summary)
    }

    /// As JSON for viewers.
    fn chrome_trace(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, |trace| octants::chrome_trace(std::slice::from_ref(trace)))
    }

    /// How often a kernel or a task ran; and the least, most and average milliseconds.
    fn query(&self, py: Python<'_>, name: &str) -> PyResult<(u64, f64, f64, f64)> {
        let found = self.ask(py, |trace| trace.query(name))?;
        Ok((found.count, found.min as f64 / 1e6, found.max as f64 / 1e6, found.average() / 1e6))
    }

    /// Seconds of all tasks.
    fn total_time(&self, py: Python<'_>) -> PyResult<f64> {
        self.ask(py, |trace| trace.total() as f64 / 1e9)
    }

    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        host_only::guard(py, "profiler")?;
        py.outside(|| self.0.profiler().clear());
        Ok(())
    }

    fn clear_phases(&self, py: Python<'_>) -> PyResult<()> {
        host_only::guard(py, "profiler")?;
        self.0.profiler().clear_phases();
        Ok(())
    }
}

/// `with oc.profiler.scope("name"):` names a part of the host's time in the trace.
#[pyclass(frozen, module = "octants.profiler", name = "scope")]
pub struct Scope {
    name: String,
    runtime: Py<Runtime>,
    /// Those that were entered and not left yet, on whatever thread.
    open: Mutex<Vec<(Arc<Profiler>, Instant)>>,
}

#[pymethods]
impl Scope {
    #[new]
    fn new(name: String, runtime: Py<Runtime>) -> Self {
        Self { name, runtime, open: Mutex::default() }
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        host_only::guard(slf.py(), "profiler.scope")?;
        let this = slf.get();
        if let Some(profiler) = this.runtime.get().profiler_if_recording() {
            let begin = profiler.begin_scope(&this.name);
            this.open.lock().unwrap_or_else(PoisonError::into_inner).push((profiler, begin));
        }
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        let innermost = self.open.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some((profiler, begin)) = innermost {
            profiler.end_scope(&self.name, begin);
        }
    }
}
