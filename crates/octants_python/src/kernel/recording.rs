//! Kernels whose run is recorded for their derivative: what the kernel took from the host is kept, and what it overwrites and the derivative needs.
//!
//! Law: **the way back replays what happened.** The derivative is that of the code that ran, of the same constants, and is launched with the arguments of then
//! ([`KeptArguments`]). Of memory that nobody tells us of, which is the host's and another library's, a checksum is kept: a derivative that would see something
//! else there is refused.

use std::ffi::CString;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use octants::diag::{Code, Diagnostic, SourceMap};
use octants::front::{Lowered, Returns};
use octants::{Arguments, Cancel, DualRecording, Gradient, LaunchOrder, Left, LiveStream, Mode, RaceSearch};
use pyo3::exceptions::PyUserWarning;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::{CodeKind, Kernel};
use crate::arrays::write_log;
use crate::gateway::interrupt::SignalScope;
use crate::gateway::under_way::Outside;
use crate::gateway::{errors, stack};
use crate::kernel::derivative_errors;
use crate::kernel::step_check::StepCheck;
use crate::launch::{
    CompanionKind, DerivativeKind, DerivativePlan, Fit, KeptArguments, LaunchArguments, LogBounds, Rebound,
    Specialisation, TapeChecks, companions, first_bytes, needed_values, storage,
};
use crate::session::runtime::ActiveSession;

/// What a recorded call of a kernel keeps for its derivative. Its memory is free when it is gone.
#[pyclass(frozen, module = "octants")]
pub struct Record {
    /// The derivative of the call.
    pub(super) backward: Arc<Specialisation>,
    pub(super) arguments: Arc<KeptArguments>,
    /// What the kernel overwrote.
    pub(super) kept: Option<octants::Record>,
    /// Of parameters that nobody tells us of: what the derivative needs of them.
    pub(super) untold: Vec<(usize, u64)>,
    /// Where the call is.
    pub(super) line: String,
}

#[pymethods]
impl Record {
    /// How much memory it takes.
    #[getter]
    fn bytes(&self) -> u64 {
        self.kept.as_ref().map_or(0, octants::Record::bytes)
    }

    /// Where the call is, as the user's file and line.
    #[getter]
    fn line(&self) -> &str {
        &self.line
    }

    /// The ndarrays and torch's tensors that the call took.
    #[getter]
    fn arrays<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        self.backward.kept_arrays(py, &self.arguments)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // What a run shares with it is visited there.
        if Arc::strong_count(&self.arguments) > 1 { Ok(()) } else { self.arguments.visit(&visit) }
    }
}

/// What the derivatives of a tape do not see.
struct Stored {
    range: Range<u64>,
    name: String,
    /// The kernel that stored there.
    writer: String,
    /// Where its `grad` was called in the tape, if the memory has gradients of its arrays.
    as_gradients: Option<String>,
}

impl Stored {
    /// That a kernel reads it, under a name of its own.
    fn read_by(&self, kernel: &str, here: &str, is_field: bool) -> Diagnostic {
        let Stored { name, writer, .. } = self;
        if let Some(line) = &self.as_gradients {
            let text = format!(
                "`{kernel}` reads `{name}` as `{here}`, which `{writer}.grad`, called at {line} in the same tape, has computed: the derivative of a derivative in reverse mode would be left out"
            );
            let help = "products of second derivatives with a vector are computed by oc.ad.hessian_vector_product, or by a Tape in a FwdMode; a function that oc.ad.no_grad decorates computes gradients that are constants";
            return Diagnostic::new(Code::DerivativeArguments, text).help(help);
        }
        let text = format!(
            "Gradients of `{name}` are not allocated: `{writer}` stored there what depends on an input, and what `{kernel}` reads of it as `{here}` would be a constant"
        );
        let help = format!("make `{name}` with needs_grad=True, or place `{name}.grad`");
        // Of a field its program said so when it placed it.
        let code = if is_field { Code::DroppedDerivative } else { Code::DerivativeStorage };
        Diagnostic::new(code, text).help(help)
    }
}

/// Memory without gradients in which kernels of a tape stored what has some: those who read it later would lose them.
#[pyclass(frozen, module = "octants")]
#[derive(Default)]
pub struct Sinks {
    ranges: Mutex<Vec<Stored>>,
    /// Whether the user was told of a field.
    told: AtomicBool,
    /// Whether the user was told of a kernel that is not validated.
    told_of_trees: AtomicBool,
}

#[pymethods]
impl Sinks {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}

impl Sinks {
    /// Refuses a launch that reads from sinks of others; notes its own ones.
    pub(super) fn check(
        &self,
        py: Python<'_>,
        kernel: &str,
        code: &Specialisation,
        block: &[u8],
    ) -> PyResult<()> {
        let TapeChecks { sinks, constants, .. } = &code.tape_checks;
        if sinks.is_empty() && constants.is_empty() {
            return Ok(());
        }
        let compiled = &code.compiled;
        let (mut dropped, mut refusal) = (None, None);
        let lock = || self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock();
        for &param in constants {
            let range = first_bytes(&compiled.args().slots[param], block);
            let is_lost = |one: &&Stored| one.range.start < range.end && range.start < one.range.end;
            let Some(lost) = known.iter().find(is_lost) else { continue };
            let is_field = compiled.args().slots[param].array().is_some_and(|one| one.layout.is_some());
            let diagnostic = lost.read_by(kernel, compiled.param_name(param), is_field);
            if !is_field || lost.as_gradients.is_some() {
                refusal = Some(diagnostic);
                break;
            }
            dropped.get_or_insert(diagnostic);
        }
        drop(known);
        // Without the lock: whoever shows warnings is code of the user's, which may record launches, too.
        if let Some(dropped) = dropped
            && !self.told.swap(true, Ordering::Relaxed)
        {
            errors::warn(py, &[dropped], &SourceMap::new())?;
        }
        if let Some(refusal) = refusal {
            return Err(errors::from_diagnostic(py, refusal, &SourceMap::new()));
        }
        for &param in sinks {
            self.note(kernel, code, param, block, None);
        }
        Ok(())
    }

    /// A kernel stores in the memory of a parameter.
    fn note(
        &self,
        kernel: &str,
        code: &Specialisation,
        param: usize,
        block: &[u8],
        as_gradients: Option<&str>,
    ) {
        let range = first_bytes(&code.compiled.args().slots[param], block);
        let mut known = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.iter().any(|one| one.range == range) {
            let (name, writer) = (code.compiled.param_name(param).to_owned(), kernel.to_owned());
            known.push(Stored { range, name, writer, as_gradients: as_gradients.map(str::to_owned) });
        }
    }
}

/// What a derivative asks of a run.
pub(super) enum Asked {
    /// Nothing; the derivative, and for which launches.
    Nothing { backward: Arc<Specialisation>, condition: Option<Box<LaunchOrder>> },
    /// That it runs this code.
    Record(Box<Specialisation>),
}

/// What a launch does with a record.
pub(super) enum RecordUse<'r> {
    None,
    /// Makes one.
    Make(&'r mut Option<octants::Record>),
    /// Reads it: the launch of a derivative.
    Read(&'r octants::Record),
}

impl Kernel {
    /// What the derivative asks of a run, and the code that records what it needs, or the derivative of a run that need not be recorded.
    #[cold]
    pub(super) fn record<'py>(
        &self,
        py: Python<'py>,
        current: &ActiveSession,
        lowered: &Lowered<Bound<'py, PyAny>>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        cancel: &Cancel,
    ) -> PyResult<(TapeChecks, Asked)> {
        for left in [Left::Parts, Left::Races] {
            let (checks, asked) = self.record_leaving(py, current, lowered, arguments, left, cancel)?;
            // Code for launches of which a condition holds is made by one of these.
            let is_for_others = match &asked {
                Asked::Nothing { backward, condition: Some(condition) } => {
                    let mut launch = LaunchArguments::new(false);
                    let fits = backward.bind(py, arguments, &mut launch, false)? == Fit::Fits;
                    fits && backward.compiled.refusal(condition, launch.bytes()).is_some()
                }
                Asked::Nothing { .. } | Asked::Record(_) => false,
            };
            if !is_for_others {
                return Ok((checks, asked));
            }
        }
        Err(errors::bug("a run that is recorded is made on no condition"))
    }

    fn record_leaving<'py>(
        &self,
        py: Python<'py>,
        current: &ActiveSession,
        lowered: &Lowered<Bound<'py, PyAny>>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        left: Left,
        cancel: &Cancel,
    ) -> PyResult<(TapeChecks, Asked)> {
        let Lowered { kernel, dependencies, fields, .. } = lowered;
        let companions = companions(kernel, DerivativeKind::Reverse, dependencies, fields, arguments)?;
        let storage = storage(kernel, CompanionKind::Grad, &companions)?;
        let made = py
            .outside(|| stack::with_enough(|| current.session.record(kernel, &storage, left, cancel)))
            .map_err(|error| errors::from_error(py, &error))?
            .map_err(|refusals| self.no_derivative(py, kernel, Mode::Reverse, &refusals))?;
        let (sinks, constants, races) = (made.sinks, made.constants, made.races);
        let checks = TapeChecks { sinks, constants, races, has_trees: false };
        let condition = made.condition;
        let Some((recorder, gradient)) = made.recorder else {
            let kind = DerivativeKind::Reverse;
            let made = self.differentiate(py, current, kind, lowered, arguments, true, cancel)?;
            return Ok((checks, Asked::Nothing { backward: made.as_backward(), condition }));
        };
        self.tell_dropped(py, kernel, Mode::Reverse, &gradient)?;
        let plan = DerivativePlan::new(kernel, &gradient, self.runtime.get().sources().map());
        let backward = Specialisation::of_derivative(
            current.epoch,
            gradient,
            Returns::Nothing,
            lowered,
            &companions,
            plan,
        )?;
        let compiled = Arc::clone(recorder.kernel());
        let mut made = Specialisation::new(current.epoch, compiled, lowered)?;
        made.require_companions(dependencies, &companions)?;
        (made.recorder, made.backward) = (Some(recorder), Some(backward.as_backward()));
        Ok((checks, Asked::Record(Box::new(made))))
    }

    /// The code in forward mode that records what second derivatives need, if the kernel overwrites some of that.
    #[cold]
    pub(super) fn record_duals<'py>(
        &self,
        py: Python<'py>,
        current: &ActiveSession,
        lowered: &Lowered<Bound<'py, PyAny>>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        cancel: &Cancel,
    ) -> PyResult<Option<Specialisation>> {
        let Lowered { kernel, dependencies, fields, returns, .. } = lowered;
        let beside = |kind| companions(kernel, kind, dependencies, fields, arguments);
        let (of_second, of_forward) =
            (beside(DerivativeKind::ForwardOverReverse)?, beside(DerivativeKind::Forward)?);
        let storage = |of| storage(kernel, of, &of_second);
        let (grads, duals) = (storage(CompanionKind::Grad)?, storage(CompanionKind::Dual)?);
        let grad_duals = storage(CompanionKind::GradDual)?;
        let session = &current.session;
        let made = py
            .outside(|| {
                stack::with_enough(|| session.record_with_duals(kernel, &grads, &duals, &grad_duals, cancel))
            })
            .map_err(|error| errors::from_error(py, &error))?
            .map_err(|refusals| self.no_derivative(py, kernel, Mode::Reverse, &refusals))?;
        let Some(DualRecording { recorder, forward, second }) = made else { return Ok(None) };
        let specialisation = |gradient: Gradient, returns: &Returns, beside: &[_]| {
            let plan = DerivativePlan::new(kernel, &gradient, self.runtime.get().sources().map());
            Specialisation::of_derivative(current.epoch, gradient, returns.clone(), lowered, beside, plan)
        };
        let backward = specialisation(second, &Returns::Nothing, &of_second)?;
        let mut made = specialisation(forward, returns, &of_forward)?;
        made.require_companions(dependencies, &of_second)?;
        (made.recorder, made.backward) = (Some(recorder), Some(backward.as_backward()));
        Ok(Some(made))
    }

    /// The block of arguments with the arrays of a record.
    #[cold]
    pub(super) fn block_with_record(
        &self,
        py: Python<'_>,
        specialisation: &Specialisation,
        block: &[u8],
        record: &octants::Record,
        stream: Option<&LiveStream>,
    ) -> PyResult<Vec<u8>> {
        if let Some(stream) = stream {
            record
                .before_launch(&specialisation.compiled, stream)
                .map_err(|error| errors::from_launch(py, &error, self.runtime.get().sources().map()))?;
        }
        // SAFETY: as in `launch`.
        let arguments = unsafe { Arguments::new(block) };
        let block = match (&specialisation.recorder, &specialisation.derivative) {
            (Some(recorder), _) => recorder.block(arguments, record),
            (None, Some(gradient)) => record.derivative_block(arguments, gradient),
            (None, None) => {
                return Err(errors::bug("a record is for a kernel that records, or its derivative"));
            }
        };
        block.map_err(|error| errors::from_error(py, &error))
    }

    /// Makes room for what a launch with these arguments keeps.
    #[cold]
    pub(super) fn begin_record(
        &self,
        py: Python<'_>,
        specialisation: &Specialisation,
        launch: &LaunchArguments<'_>,
        stream: Option<&LiveStream>,
    ) -> PyResult<octants::Record> {
        let Some(recorder) = &specialisation.recorder else {
            return Err(errors::bug("a kernel that records nothing makes no record"));
        };
        let _kept = launch.keep_memory(py, &specialisation.compiled)?;
        let signals = SignalScope::begin(py)?;
        let bytes = launch.bytes();
        let begun = py.outside(|| {
            // SAFETY: as in `launch`.
            let arguments = unsafe { Arguments::new(bytes) };
            recorder.begin(arguments, stream, signals.request())
        });
        let was_cancelled = matches!(begun, Err(octants::LaunchError::Cancelled));
        signals.finish(py, begun, was_cancelled, |py, error| {
            errors::from_launch(py, error, self.runtime.get().sources().map())
        })
    }

    /// A call that is recorded, if something must be kept.
    pub(super) fn call_recording<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        stream: Option<&LiveStream>,
        sinks: &Bound<'py, Sinks>,
        validate: bool,
        step: Option<&StepCheck>,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Record>)> {
        let mut launch = LaunchArguments::new(stream.is_some() || validate);
        let code = self.find_or_make(py, CodeKind::Recording, arguments, &mut launch)?;
        if let Some(step) = step {
            step.see(py, &self.signature.name, &code, arguments, &launch)?;
        }
        sinks.get().check(py, &self.signature.name, &code, launch.bytes())?;
        if let Some(races) = code.tape_checks.races.as_ref().filter(|_| validate) {
            self.require_no_race(py, races, &launch)?;
        }
        if validate && code.tape_checks.has_trees && !sinks.get().told_of_trees.swap(true, Ordering::Relaxed)
        {
            let text = format!(
                "validation=True does not find iterations that meet at an element of a sparse field: `{}` has some",
                self.signature.name
            );
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(text)?, 1)?;
        }
        self.launch_recording(py, &code, arguments, &mut launch, stream)
    }

    /// A call of `grad` in a tape, which does not differentiate it: whoever reads the gradients later is refused.
    pub(super) fn call_grad_in_tape<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        stream: Option<&LiveStream>,
        sinks: &Bound<'py, Sinks>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let what = CodeKind::Derivative(DerivativeKind::Reverse);
        let mut launch = LaunchArguments::new(stream.is_some());
        let code = self.find_or_make(py, what, arguments, &mut launch)?;
        let line = write_log::user_line(py)?;
        for &(_, companion) in code.derivative.iter().flat_map(Gradient::companions) {
            sinks.get().note(&self.signature.name, &code, companion, launch.bytes(), Some(&line));
        }
        self.call(py, what, arguments, stream, None)
    }

    /// Likewise in forward mode, with the duals of what is kept.
    pub(super) fn call_recording_duals<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        stream: Option<&LiveStream>,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Record>)> {
        let mut launch = LaunchArguments::new(stream.is_some());
        let code = self.find_or_make(py, CodeKind::DualRecording, arguments, &mut launch)?;
        self.launch_recording(py, &code, arguments, &mut launch, stream)
    }

    pub(super) fn launch_recording<'py>(
        &self,
        py: Python<'py>,
        code: &Specialisation,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        launch: &mut LaunchArguments<'py>,
        stream: Option<&LiveStream>,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Record>)> {
        let Some(backward) = code.backward.as_ref().filter(|backward| backward.has_companions()) else {
            return Ok((self.launch(py, code, launch, stream, RecordUse::None)?, None));
        };
        // What the host changes from here on is no part of the call. What is the host's is read through the block.
        let mut back = LaunchArguments::new(true);
        if self.fit(py, backward, arguments, &mut back, false)? != Fit::Fits {
            return Err(self.misfit(py, backward, arguments)?);
        }
        let kept_arguments = Arc::new(KeptArguments::new(arguments, &back));
        let untold = backward.untold_params(py, &kept_arguments);
        let mut kept = None;
        let what = if code.recorder.is_some() { RecordUse::Make(&mut kept) } else { RecordUse::None };
        let result = self.launch(py, code, launch, stream, what)?;
        let untold = needed_values(backward, &back, |param| untold.contains(&param))?;
        let line = write_log::user_line(py)?;
        let record = Record { backward: Arc::clone(backward), arguments: kept_arguments, kept, untold, line };
        Ok((result, Some(record)))
    }

    /// Refuses a launch in which iterations of a parallel loop meet at an element that gradients flow through.
    #[cold]
    fn require_no_race(
        &self,
        py: Python<'_>,
        check: &RaceSearch,
        launch: &LaunchArguments<'_>,
    ) -> PyResult<()> {
        let signals = SignalScope::begin(py)?;
        let read = |begin, bytes| launch.read(begin, bytes);
        let found = check.find(launch.bytes(), signals.request(), read);
        let found = signals.finish(py, found, false, |py, error| error.clone_ref(py))?;
        py.check_signals()?;
        let Some(met) = found else { return Ok(()) };
        let diagnostic = derivative_errors::meeting(&self.signature.name, &met);
        Err(errors::from_diagnostic(py, diagnostic, self.runtime.get().sources().map()))
    }

    /// Binds the derivative of a call to what was kept of it.
    pub(super) fn bind_record<'py>(
        &self,
        py: Python<'py>,
        record: &Record,
        launch: &mut LaunchArguments<'py>,
    ) -> PyResult<()> {
        let Record { backward, line, .. } = record;
        if backward.epoch != self.runtime.get().epoch() {
            let stale = octants::Error::Stale { what: "record of a kernel" };
            return Err(errors::from_error(py, &stale));
        }
        let bound = backward.bind_kept(py, &record.arguments, launch)?;
        self.require_bound(py, bound, backward, line, "the gradients of")
    }

    /// Refuses what cannot be launched with what was kept of a call. `whose` says who asks for that.
    pub(super) fn require_bound(
        &self,
        py: Python<'_>,
        bound: Rebound,
        code: &Specialisation,
        line: &str,
        whose: &str,
    ) -> PyResult<()> {
        let name = &self.signature.name;
        match bound {
            Rebound::Fits => Ok(()),
            Rebound::OtherCompanions => {
                let text = format!(
                    "what was recorded of `{name}` at {line} is for other arguments: their gradients are others than at the call"
                );
                Err(errors::plain(py, Code::DerivativeArguments, text))
            }
            Rebound::Moved(param) => {
                let array = code.compiled.param_name(param);
                let text = format!(
                    "{whose} `{name}`, called at {line}, need what it saw of `{array}`, and that array has other memory or another shape by now"
                );
                let help = "pass an array that stays as it is until the way back is over";
                let diagnostic = Diagnostic::new(Code::DerivativeChanged, text).help(help);
                Err(errors::from_diagnostic(py, diagnostic, &SourceMap::new()))
            }
        }
    }

    /// The derivative of a run that was recorded.
    pub(super) fn call_recorded<'py>(
        &self,
        py: Python<'py>,
        record: &Record,
        since: LogBounds<'_>,
        stream: Option<&LiveStream>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let backward = &*record.backward;
        let mut launch = LaunchArguments::new(stream.is_some() || !record.untold.is_empty());
        self.bind_record(py, record, &mut launch)?;
        let called = format!("`{}`, called at {},", self.signature.name, record.line);
        since.check(py, &called, backward, launch.bytes())?;
        if !record.untold.is_empty() {
            let is_untold = |param| record.untold.iter().any(|&(untold, _)| untold == param);
            let now = needed_values(backward, &launch, is_untold)?;
            if let Some((&(param, _), _)) = record.untold.iter().zip(&now).find(|(then, now)| then != now) {
                let array = backward.compiled.param_name(param);
                let text = format!(
                    "the gradients of {called} need what it saw of `{array}`, and another library has written there since"
                );
                let help = "take another array for each call, or an ndarray, whose writes are known";
                let diagnostic = Diagnostic::new(Code::DerivativeChanged, text).help(help);
                return Err(errors::from_diagnostic(py, diagnostic, &SourceMap::new()));
            }
        }
        let kept = record.kept.as_ref().map_or(RecordUse::None, RecordUse::Read);
        self.launch(py, backward, &mut launch, stream, kept)
    }

    /// What the derivative of a call needs of the kernel's arrays: their names, and a checksum of each.
    pub(super) fn values_of_record(&self, py: Python<'_>, record: &Record) -> PyResult<Vec<(String, u64)>> {
        let mut launch = LaunchArguments::new(true);
        self.bind_record(py, record, &mut launch)?;
        let values = needed_values(&record.backward, &launch, |_| true)?;
        let name = |param| record.backward.compiled.param_name(param).to_owned();
        Ok(values.into_iter().map(|(param, sum)| (name(param), sum)).collect())
    }
}
