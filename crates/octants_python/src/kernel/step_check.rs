//! Steps of a checkpoint, which run more than once: what their launches take from the host, and whether they read what goes from one step to the next without
//! being of the state.
//!
//! Law: **a step that runs again from its state reads what it read the first time**: its state, what it has assigned to itself, and what nobody has written since
//! the steps began. Numbers of the host are compared by who asks for them.

use std::sync::atomic::{AtomicBool, Ordering};

use octants::ReadBefore;
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
        let (reads, written) = compiled.read_and_written(code.course(), launch.bytes());
        let is_read = |param| reads.iter().any(|read| read.param == param);
        let taken = code.taken(py, arguments, is_read)?;
        self.taken.bind(py).append((name, taken))?;
        let touched = &code.footprint().touched;
        let is_written = |param| touched.iter().any(|one| one.param == param && one.written);
        for array in code.arrays_of(py, arguments, is_written) {
            self.written.bind(py).append(array)?;
        }
        if code.uses_session(py, arguments) {
            self.uses_session.store(true, Ordering::Relaxed);
        }
        let Some(Reads { log, since, own }) = &self.reads else { return Ok(()) };
        let derivative = code.backward.as_ref().and_then(|backward| backward.derivative.as_ref());
        let is_derived = |param| {
            derivative.is_some_and(|gradient| gradient.companions().iter().any(|&(of, _)| of == param))
        };
        let compared = code.foreign_params(py, arguments);
        for ReadBefore { param, folded, parts } in reads {
            if (folded && !is_derived(param)) || compared.contains(&param) {
                continue;
            }
            let mut left = parts.into_iter().flat_map(|part| own.get().not_sure_of(part));
            let Some(writer) = left.find_map(|part| log.get().writer_in(*since, &part)) else { continue };
            if derivative.is_none() {
                // What it writes is not of the step, either: whoever reads that is refused.
                return Ok(());
            }
            let array = compiled.param_name(param);
            let text = format!(
                "`{name}` reads `{array}` in a step of a checkpoint, which another step or the host has written, {writer}, and which is not in `state`: \
                 the step comes to another state when it runs again"
            );
            let help = "list the array in `state`, or write all that is read of it in each step before, whatever conditions hold";
            let diagnostic = Diagnostic::new(Code::DerivativeChanged, text).help(help);
            return Err(errors::from_diagnostic(py, diagnostic, &SourceMap::new()));
        }
        own.get().note_sure(written);
        Ok(())
    }
}
