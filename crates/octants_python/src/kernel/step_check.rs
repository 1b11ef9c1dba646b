//! Steps of a checkpoint, which run more than once: what their launches take from the host, and whether they read what goes from one step to the next without
//! being of the state.
//!
//! Law: **a step that runs again from its state reads what it read the first time**: its state, what it has assigned to itself, and what nobody has written since
//! the steps began. Numbers of the host are compared by who asks for them.

use std::sync::atomic::{AtomicBool, Ordering};

use octants::Touched;
use octants::diag::{Code, Diagnostic, SourceMap};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arrays::write_log::WriteLog;
use crate::gateway::errors;
use crate::launch::{LaunchArguments, Specialisation};

/// Sees the launches of a step.
#[pyclass(frozen, module = "octants")]
pub struct StepCheck {
    /// For each launch the name of the kernel, and what the launch took from the host: names and objects.
    #[pyo3(get)]
    taken: Py<PyList>,
    /// The arrays among arguments and members that launches wrote, each once or more.
    #[pyo3(get)]
    written: Py<PyList>,
    /// Whether a launch used memory of the session's.
    uses_session: AtomicBool,
    reads: Option<Reads>,
}

/// What reads are compared with.
struct Reads {
    log: Py<WriteLog>,
    since: usize,
    own: Py<WriteLog>,
}

#[pymethods]
impl StepCheck {
    /// With a log, reads are refused of what was written there since an entry, but for what the log `own` has: it gets what the launches assign.
    #[new]
    #[pyo3(signature = (log=None, since=0, own=None))]
    fn new(
        py: Python<'_>,
        log: Option<Py<WriteLog>>,
        since: usize,
        own: Option<Py<WriteLog>>,
    ) -> PyResult<Self> {
        let reads = log.zip(own).map(|(log, own)| Reads { log, since, own });
        let (taken, written) = (PyList::empty(py).unbind(), PyList::empty(py).unbind());
        Ok(Self { taken, written, uses_session: AtomicBool::new(false), reads })
    }

    /// Whether a launch used fields or arrays of the session, whose contents others may change.
    #[getter]
    fn uses_session(&self) -> bool {
        self.uses_session.load(Ordering::Relaxed)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.taken)?;
        visit.call(&self.written)?;
        match &self.reads {
            Some(reads) => visit.call(&reads.log).and_then(|()| visit.call(&reads.own)),
            None => Ok(()),
        }
    }
}

impl StepCheck {
    /// A launch is about to be.
    pub fn see<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        code: &Specialisation,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        launch: &LaunchArguments<'py>,
    ) -> PyResult<()> {
        let compiled = &code.compiled;
        let touched = |param: usize, how: fn(&Touched) -> bool| {
            code.footprint().touched.iter().any(|touched| touched.param == param && how(touched))
        };
        let is_read = |param| touched(param, |touched| touched.read || touched.folded);
        let taken = code.taken(py, arguments, is_read)?;
        self.taken.bind(py).append((name, taken))?;
        for array in code.arrays_of(py, arguments, |param| touched(param, |touched| touched.written)) {
            self.written.bind(py).append(array)?;
        }
        if code.uses_session(py, arguments) {
            self.uses_session.store(true, Ordering::Relaxed);
        }
        let Some(Reads { log, since, own }) = &self.reads else { return Ok(()) };
        let block = launch.bytes();
        let derivative = code.backward.as_ref().and_then(|backward| backward.derivative.as_ref());
        let derived: Vec<usize> =
            derivative.iter().flat_map(|gradient| gradient.companions()).map(|&(param, _)| param).collect();
        for (touched, region) in compiled.touched_in_order(code.footprint(), block) {
            let read = touched.read || (touched.folded && derived.contains(&touched.param));
            if touched.assigned && !read {
                own.get().note_regions(name, std::iter::once(region));
                continue;
            }
            if !read || own.get().writer_in(0, &region).is_some() {
                continue;
            }
            let Some(writer) = log.get().writer_in(*since, &region) else { continue };
            if derivative.is_none() {
                // What it writes is not of the step, either: whoever reads that is refused.
                return Ok(());
            }
            let array = compiled.param_name(touched.param);
            let text = format!(
                "`{name}` reads `{array}` in a step of a checkpoint, which another step or the host has written, {writer}, and which is not in `state`: \
                 the step comes to another state when it runs again"
            );
            let help = "list the array in `state`, or write it in each step before it is read";
            let diagnostic = Diagnostic::new(Code::DerivativeChanged, text).help(help);
            return Err(errors::from_diagnostic(py, diagnostic, &SourceMap::new()));
        }
        Ok(())
    }
}
