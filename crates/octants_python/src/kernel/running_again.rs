//! Calls of a tape that are launched again on the way back, from copies of what they and others have overwritten.
//!
//! Law: **the same code with the same arguments.** A call that runs again is not looked at anew: what its arguments lead to by now, and what Python would evaluate, is of no interest.

use std::sync::Arc;

use octants::LiveStream;
use octants::diag::{Code, Diagnostic, SourceMap};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::recording::{Record, RecordUse, Sinks};
use super::{CodeKind, Kernel};
use crate::arrays::write_log;
use crate::gateway::errors;
use crate::kernel::overwrites::Overwrites;
use crate::kernel::step_check::StepCheck;
use crate::launch::{KeptArguments, LaunchArguments, Specialisation, needed_values, read_values};

/// What it takes to launch a call again.
#[pyclass(frozen, module = "octants")]
pub struct Run {
    code: Arc<Specialisation>,
    arguments: KeptArguments,
    /// Of parameters that nobody tells us of: what the kernel read of them.
    untold: Vec<(usize, u64)>,
    back: Option<Back>,
    line: String,
}

/// The derivative of a call, and its arguments.
struct Back {
    code: Arc<Specialisation>,
    arguments: Arc<KeptArguments>,
    untold: Vec<usize>,
}

#[pymethods]
impl Run {
    /// Where the call is, as the user's file and line.
    #[getter]
    fn line(&self) -> &str {
        &self.line
    }

    /// The ndarrays and torch's tensors that the call took.
    #[getter]
    fn arrays<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        self.code.kept_arrays(py, &self.arguments)
    }

    /// Whether it has a derivative.
    #[getter]
    fn is_derived(&self) -> bool {
        self.back.is_some()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.arguments.visit(&visit)?;
        match &self.back {
            Some(back) if Arc::strong_count(&back.arguments) == 1 => back.arguments.visit(&visit),
            _ => Ok(()),
        }
    }
}

impl Kernel {
    /// A call that `overwrites` sees; what its derivative needs, and what it takes to launch it again.
    pub(super) fn call_running<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        stream: Option<&LiveStream>,
        sinks: Option<&Bound<'py, Sinks>>,
        overwrites: &Bound<'py, Overwrites>,
        step: Option<&StepCheck>,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Record>, Option<Run>)> {
        // What is the host's is read through the block.
        let mut launch = LaunchArguments::new(true);
        let what = if sinks.is_some() { CodeKind::Recording } else { CodeKind::Value };
        let code = self.find_or_make(py, what, arguments, &mut launch)?;
        if let Some(step) = step {
            step.see(py, &self.signature.name, &code, arguments, &launch)?;
        }
        if let Some(sinks) = sinks {
            sinks.get().check(py, &self.signature.name, &code, launch.bytes())?;
        }
        let overwrites = overwrites.get();
        overwrites.see(py, &code, arguments, &launch)?;
        if !overwrites.is_running() {
            let (result, record) = self.launch_recording(py, &code, arguments, &mut launch, stream)?;
            if let Some(record) = &record {
                overwrites.note_needs(record);
            }
            return Ok((result, record, None));
        }
        if let Some(why) = code.differs_each_time() {
            let text = format!(
                "`{}` {why} in a Tape with memory=, which is something else when it runs again",
                self.signature.name
            );
            let help = "call it before the tape, and read what it found from an array";
            let diagnostic =
                Diagnostic::new(Code::DerivativeChanged, text).at(self.signature.span).help(help);
            return Err(errors::from_diagnostic(py, diagnostic, self.runtime.get().sources().map()));
        }
        let kept = KeptArguments::of(py, &code, arguments, &launch)?;
        let untold = code.untold_params(py, &kept);
        let untold = if untold.is_empty() {
            Vec::new()
        } else {
            read_values(&code, &launch, |param| untold.contains(&param))?
        };
        let (result, record) = self.launch_recording(py, &code, arguments, &mut launch, stream)?;
        let back = record.as_ref().map(|record| Back {
            code: Arc::clone(&record.backward),
            arguments: Arc::clone(&record.arguments),
            untold: record.untold.iter().map(|&(param, _)| param).collect(),
        });
        let line = write_log::user_line(py)?;
        Ok((result, record, Some(Run { code, arguments: kept, untold, back, line })))
    }

    /// Launches a call again.
    pub(super) fn call_again(
        &self,
        py: Python<'_>,
        run: &Run,
        stream: Option<&LiveStream>,
    ) -> PyResult<Option<Record>> {
        let Run { code, line, .. } = run;
        if code.epoch != self.runtime.get().epoch() {
            let stale = octants::Error::Stale { what: "record of a kernel" };
            return Err(errors::from_error(py, &stale));
        }
        let mut launch = LaunchArguments::new(stream.is_some() || !run.untold.is_empty());
        launch.is_silent = true;
        let bound = code.bind_kept(py, &run.arguments, &mut launch)?;
        self.require_bound(py, bound, code, line, "the gradients of calls that follow")?;
        if !run.untold.is_empty() {
            let now = read_values(code, &launch, |param| run.untold.iter().any(|&(one, _)| one == param))?;
            if let Some((&(param, _), _)) = run.untold.iter().zip(&now).find(|(then, now)| then != now) {
                let (name, array) = (&self.signature.name, code.compiled.param_name(param));
                let text = format!(
                    "`{name}`, called at {line}, runs again for the gradients of a Tape with memory= and needs what it saw of `{array}`, and another library has written there since"
                );
                let help = "take another array for each call, or an ndarray, whose writes are known";
                let diagnostic = Diagnostic::new(Code::DerivativeChanged, text).help(help);
                return Err(errors::from_diagnostic(py, diagnostic, &SourceMap::new()));
            }
        }
        let mut kept = None;
        let what = if code.recorder.is_some() { RecordUse::Make(&mut kept) } else { RecordUse::None };
        self.launch(py, code, &mut launch, stream, what)?;
        let Some(back) = &run.back else { return Ok(None) };
        let mut record = Record {
            backward: Arc::clone(&back.code),
            arguments: Arc::clone(&back.arguments),
            kept,
            untold: Vec::new(),
            line: line.clone(),
        };
        if !back.untold.is_empty() {
            let mut bound = LaunchArguments::new(true);
            self.bind_record(py, &record, &mut bound)?;
            record.untold = needed_values(&back.code, &bound, |param| back.untold.contains(&param))?;
        }
        Ok(Some(record))
    }
}
