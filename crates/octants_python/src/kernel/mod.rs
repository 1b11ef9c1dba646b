//! `@oc.kernel`: a Python function compiled when it is called, once for each kind of arguments.
//!
//! A call looks at each argument once, compares what it found with the specialisation of the call before, writes the block of
//! arguments on the stack and hands it to the device. Nothing is keyed by the address of a temporary object.

pub mod arguments;
pub mod bound_kernel;
mod derivative;
pub mod derivative_errors;
mod misfit;
pub mod overwrites;
mod promise;
mod recording;
mod running_again;
mod specialise;
pub mod step_check;
mod times;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use octants::diag::{Code, Diagnostic, quote};
use octants::front::{FunctionKind, Host, Returned, Returns, Signature, check_signature};
use octants::ir::{Const, Data, LocData};
use octants::{Arguments, Cancel, LaunchError, LiveStream, Mode};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyList, PyTuple};
use smallvec::SmallVec;

use crate::arrays::write_log::{self, WriteLog};
use crate::gateway::interrupt::SignalScope;
use crate::gateway::under_way::Outside;
use crate::gateway::{errors, interrupt};
use crate::host::PyHost;
use crate::interop::foreign::Unwritable;
use crate::kernel::arguments::{Binder, Param};
use crate::kernel::bound_kernel::BoundKernel;
use crate::kernel::overwrites::Overwrites;
use crate::kernel::step_check::StepCheck;
use crate::launch::{
    DerivativeKind, Fit, LaunchArguments, LogBounds, Objects, Sizing, Specialisation, Words,
    require_unchanged, tell_of_launch,
};
use crate::session::dump::dump;
use crate::session::runtime::{Runtime, SessionHolder};
use crate::session::stream;
use crate::values::traced::Traced;
use crate::values::{aggregate, dtype, host_only};

use recording::RecordUse;
pub use recording::{Record, Sinks};
pub use running_again::Run;

/// How many pieces of code are kept for the same arguments where Python evaluated something else for each. Chosen, not measured.
const MAX_EVALUATING: usize = 64;

/// How often code is made for arguments that it does not fit a moment later. Chosen, not measured.
const MAX_ATTEMPTS: usize = 4;

#[pyclass(frozen, module = "octants", dict, weakref)]
pub struct Kernel {
    pub function: Traced<PyFunction>,
    runtime: Py<Runtime>,
    signature: Signature,
    params: Vec<Param>,
    /// Shared with the runtime, which empties it when the session ends.
    specialisations: Arc<Specialisations>,
    /// Numbers behind the arguments that were seen to change, by the path to them: the code is told of them.
    varying: Mutex<Vec<String>>,
    /// Made with `fastcache=True`: it is checked to depend on its arguments alone.
    pure: bool,
    /// `graph=True`.
    graph: bool,
    /// Whether the user was told of races: once is enough.
    told_of_races: AtomicBool,
}

/// The code of one kernel; what was used last comes first.
#[derive(Default)]
struct Specialisations {
    value: List,
    recording: List,
    dual_recording: List,
    reverse: List,
    forward: List,
    second: List,
}

type List = Mutex<Vec<Arc<Specialisation>>>;

impl SessionHolder for Specialisations {
    fn release(&self) {
        let derivatives = [&self.reverse, &self.forward, &self.second];
        for list in [&self.value, &self.recording, &self.dual_recording].into_iter().chain(derivatives) {
            let old = std::mem::take(&mut *list.lock().unwrap_or_else(PoisonError::into_inner));
            drop(old);
        }
    }
}

impl Specialisations {
    /// What the code keeps alive, for Python's collector. Code that something else has, too, is not visited: that keeps it alive.
    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let derivatives = [&self.reverse, &self.forward, &self.second];
        for list in [&self.value, &self.recording, &self.dual_recording].into_iter().chain(derivatives) {
            let Ok(list) = list.try_lock() else { continue };
            for one in list.iter().filter(|one| Arc::strong_count(one) == 1) {
                one.visit(visit)?;
            }
        }
        Ok(())
    }
}

/// Arguments that a call gives by keyword. They are held: the dictionary may be the caller's own.
type KeywordArguments<'py> = SmallVec<[Bound<'py, PyAny>; 4]>;

/// What a launch computes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CodeKind {
    Value,
    /// The value, and what the derivative in reverse mode needs and would not find in memory.
    Recording,
    /// The derivative in forward mode, and likewise what that of the one in reverse mode needs.
    DualRecording,
    Derivative(DerivativeKind),
}

impl Kernel {
    /// The code for these arguments, if there is some, with the block of arguments written.
    fn find<'py>(
        &self,
        py: Python<'py>,
        epoch: u64,
        what: CodeKind,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        launch: &mut LaunchArguments<'py>,
    ) -> PyResult<Option<Arc<Specialisation>>> {
        let list = self.specialisations(what);
        let Some(first) = list.first().cloned() else { return Ok(None) };
        let count = list.len();
        drop(list);
        let mut evaluating = 0;
        if first.epoch == epoch {
            match self.fit(py, &first, arguments, launch, true)? {
                Fit::Fits => return Ok(Some(first)),
                Fit::Evaluates => evaluating += 1,
                Fit::Differs | Fit::Unwritable(..) => {}
            }
        }
        let mut old = Vec::new();
        for position in 1..count {
            let Some(one) = self.specialisations(what).get(position).cloned() else { break };
            if one.epoch != epoch {
                continue;
            }
            match self.fit(py, &one, arguments, launch, true)? {
                Fit::Fits => {
                    let mut list = self.specialisations(what);
                    if let Some(position) = list.iter().position(|other| Arc::ptr_eq(other, &one)) {
                        list[..=position].rotate_right(1);
                    }
                    return Ok(Some(one));
                }
                Fit::Evaluates => {
                    evaluating += 1;
                    if evaluating >= MAX_EVALUATING {
                        old.push(one);
                    }
                }
                Fit::Differs | Fit::Unwritable(..) => {}
            }
        }
        if !old.is_empty() {
            launch.evaluated.is_full = true;
            let is_old = |one: &Arc<_>| old.iter().any(|old| Arc::ptr_eq(old, one));
            let dropped: Vec<_> = self.specialisations(what).extract_if(.., |one| is_old(one)).collect();
            drop(dropped);
        }
        Ok(None)
    }

    /// The code for these arguments, made if there is none, with the block of arguments written.
    #[inline]
    fn find_or_make<'py>(
        &self,
        py: Python<'py>,
        what: CodeKind,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        launch: &mut LaunchArguments<'py>,
    ) -> PyResult<Arc<Specialisation>> {
        if let Some(found) = self.find(py, self.runtime.get().epoch(), what, arguments, launch)? {
            return Ok(found);
        }
        self.make(py, what, arguments, launch)
    }

    /// Makes the code for these arguments, and writes the block. What Python evaluated for it is that of this launch, and is not evaluated again: a function
    /// may count its calls.
    #[cold]
    fn make<'py>(
        &self,
        py: Python<'py>,
        what: CodeKind,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        launch: &mut LaunchArguments<'py>,
    ) -> PyResult<Arc<Specialisation>> {
        for attempt in 1.. {
            let current = self.runtime.get().current(py)?;
            let made = self.specialise(py, &current, what, arguments, &mut launch.evaluated)?;
            let changed = launch.evaluated.changed.take();
            if self.fit(py, &made, arguments, launch, false)? == Fit::Fits && changed.is_none() {
                return Ok(made);
            }
            // Another thread may have changed a member meanwhile.
            if attempt == MAX_ATTEMPTS {
                return Err(match changed {
                    Some(changed) => self.changed_member(py, &changed),
                    None => self.misfit(py, &made, arguments)?,
                });
            }
        }
        unreachable!("the last attempt ends")
    }

    fn specialisations(&self, what: CodeKind) -> MutexGuard<'_, Vec<Arc<Specialisation>>> {
        let list = match what {
            CodeKind::Value => &self.specialisations.value,
            CodeKind::Recording => &self.specialisations.recording,
            CodeKind::DualRecording => &self.specialisations.dual_recording,
            CodeKind::Derivative(DerivativeKind::Reverse) => &self.specialisations.reverse,
            CodeKind::Derivative(DerivativeKind::Forward) => &self.specialisations.forward,
            CodeKind::Derivative(DerivativeKind::ForwardOverReverse) => &self.specialisations.second,
        };
        list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether code is for these arguments, with the block of arguments written; with `again`, also for what Python evaluates by now.
    fn fit<'py>(
        &self,
        py: Python<'py>,
        one: &Specialisation,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        launch: &mut LaunchArguments<'py>,
        again: bool,
    ) -> PyResult<Fit> {
        match one.bind(py, arguments, launch, again)? {
            Fit::Unwritable(input, why) => Err(self.unwritable(arguments, input, why)),
            Fit::Fits if !one.is_for(launch.bytes()) => Ok(Fit::Differs),
            Fit::Fits => match one.refusal(launch.bytes()) {
                None => Ok(Fit::Fits),
                Some((kernel, refusal)) => Err(self.no_derivative(py, kernel, Mode::Reverse, &[refusal])),
            },
            fit => Ok(fit),
        }
    }

    #[cold]
    fn graph_with_stream(&self, py: Python<'_>) -> PyErr {
        let text =
            format!("`{}` has graph=True, and a graph is not launched in a stream", self.signature.name);
        let diagnostic = Diagnostic::new(Code::GraphStream, text).at(self.signature.span).help(
            "leave graph=True out: a kernel without it takes qd_stream, and runs as fast in this version",
        );
        errors::from_diagnostic(py, diagnostic, self.runtime.get().sources().map())
    }

    #[cold]
    fn unwritable(&self, arguments: &[Borrowed<'_, '_, PyAny>], input: usize, why: Unwritable) -> PyErr {
        let py = arguments[0].py();
        if let Some(param) = self.params.get(input) {
            return param.unwritable(py, why, self.runtime.get().sources().map());
        }
        let message = match why {
            Unwritable::ReadOnly => "a member that the kernel writes is a read-only array",
            Unwritable::Repeats => {
                "a member that the kernel writes is an array of stride 0, whose elements are one in memory"
            }
            Unwritable::Overlaps => {
                "a member that the kernel writes is an array whose elements overlap in memory"
            }
        };
        errors::plain(py, Code::ArrayMismatch, message)
    }

    fn launch<'py>(
        &self,
        py: Python<'py>,
        specialisation: &Specialisation,
        launch: &mut LaunchArguments<'py>,
        stream: Option<&LiveStream>,
        record: RecordUse<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let compiled = &*specialisation.compiled;
        if write_log::is_open() {
            tell_of_launch(py, &self.signature.name, specialisation, launch.bytes())?;
        }
        let is_plain = stream.is_none() && matches!(record, RecordUse::None) && launch.is_plain();
        if is_plain
            && specialisation.derivative.is_none()
            && !compiled.prints()
            && compiled.is_short(launch.bytes())
        {
            return self.launch_short(py, specialisation, launch);
        }
        let mirror = launch.upload(py, compiled, stream)?;
        let launch = &*launch;
        let mut uses = launch.uses(py, compiled, stream);
        let mut results = Words::<8>::new();
        results.resize(compiled.results().bytes as usize);
        let record = match record {
            RecordUse::None => None,
            RecordUse::Make(made) => {
                Some(&*made.insert(self.begin_record(py, specialisation, launch, stream)?))
            }
            RecordUse::Read(record) => Some(record),
        };
        if let Some(record) = record {
            uses.add_record(record);
        }
        let with_record = record
            .map(|record| self.block_with_record(py, specialisation, launch.bytes(), record, stream))
            .transpose()?;
        let bytes = with_record.as_deref().unwrap_or(launch.bytes());
        let out = results.bytes_mut();
        let mut run = |cancel| {
            // SAFETY: the addresses are of arrays that the caller's argument objects keep alive until we return, with the extents
            // that they have; whether they may be written was checked when they were bound.
            let arguments = unsafe { Arguments::new(bytes) };
            match &specialisation.derivative {
                // In reverse mode there are no results, and the launch provides memory for what is kept.
                Some(gradient) if out.is_empty() => gradient.launch(arguments, stream, cancel).map(drop),
                _ => compiled.launch(arguments, out, stream, cancel),
            }
        };
        let failed = |py: Python<'_>, error: &LaunchError| {
            errors::from_launch(py, error, self.runtime.get().sources().map())
        };
        let mut printed = None;
        let ended = if compiled.prints() {
            let _kept = launch.keep_memory(py, compiled)?;
            let signals = SignalScope::begin(py)?;
            let (text, ended) =
                self.launch_printing(py, specialisation, bytes, out, stream, signals.request());
            let was_cancelled = matches!(ended, Err(LaunchError::Cancelled));
            let ended = signals.finish(py, ended, was_cancelled, failed);
            printed = Some(text);
            ended
        } else if stream.is_none() && specialisation.derivative.is_none() && compiled.is_short(bytes) {
            // Without the interpreter's lock, too, another thread destroys a tree.
            let _kept = launch.keep_trees(py, compiled)?;
            run(interrupt::never()).map_err(|error| failed(py, &error))
        } else {
            let _kept = launch.keep_memory(py, compiled)?;
            let signals = SignalScope::begin(py)?;
            let ended = py.outside(|| run(signals.request()));
            let was_cancelled = matches!(ended, Err(LaunchError::Cancelled));
            signals.finish(py, ended, was_cancelled, failed)
        };
        if ended.is_err() {
            launch.note_interrupted();
        }
        // Also after a failure: what the kernel had written by then is there, as it is in arrays that were not copied.
        let copied = uses.copy_back(mirror);
        // Whoever takes the text is code of the user's, which finds the launch noted and its arrays written.
        let printed = printed.filter(|_| !launch.is_silent);
        let written = printed.map_or(Ok(()), |text| write_out(py, text));
        interrupt::then(py, interrupt::both(py, ended, copied), written)?;
        if specialisation.returns == Returns::Nothing {
            return Ok(py.None().into_bound(py));
        }
        self.returned(py, specialisation, results.bytes())
    }

    /// Runs a kernel that is over before anybody could interrupt it, in the default stream, with arguments that nobody need be told of.
    #[inline]
    fn launch_short<'py>(
        &self,
        py: Python<'py>,
        specialisation: &Specialisation,
        launch: &LaunchArguments<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let compiled = &*specialisation.compiled;
        let mut results = Words::<8>::new();
        results.resize(compiled.results().bytes as usize);
        // Without the interpreter's lock, too, another thread destroys a tree.
        let kept = launch.keep_trees(py, compiled)?;
        // SAFETY: as in `launch`.
        let arguments = unsafe { Arguments::new(launch.bytes()) };
        let ended = compiled.launch(arguments, results.bytes_mut(), None, interrupt::never());
        drop(kept);
        if let Err(error) = ended {
            launch.note_interrupted();
            return Err(errors::from_launch(py, &error, self.runtime.get().sources().map()));
        }
        if specialisation.returns == Returns::Nothing {
            return Ok(py.None().into_bound(py));
        }
        self.returned(py, specialisation, results.bytes())
    }

    /// Runs a kernel that prints; gives the text.
    #[cold]
    fn launch_printing(
        &self,
        py: Python<'_>,
        specialisation: &Specialisation,
        block: &[u8],
        results: &mut [u8],
        stream: Option<&LiveStream>,
        cancel: &Cancel,
    ) -> (String, Result<(), LaunchError>) {
        let map = self.runtime.get().sources().map();
        let locate = |loc: &LocData| {
            let function = loc.function.as_deref().unwrap_or(&self.signature.name);
            loc.span.map_or_else(String::new, |span| quote(span, function, map))
        };
        py.outside(|| {
            // SAFETY: as in `launch`.
            let arguments = unsafe { Arguments::new(block) };
            match &specialisation.derivative {
                Some(gradient) if results.is_empty() => {
                    let (text, ended) = gradient.launch_printing(arguments, stream, cancel, &locate);
                    (text, ended.map(drop))
                }
                _ => {
                    let compiled = &specialisation.compiled;
                    compiled.launch_printing(arguments, results, stream, cancel, &locate)
                }
            }
        })
    }

    fn returned<'py>(
        &self,
        py: Python<'py>,
        specialisation: &Specialisation,
        results: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let slots = &specialisation.compiled.results().slots;
        // Only what is not a number needs its type again: looking it up may evaluate an annotation.
        let annotation =
            || PyHost::new(py).annotation_of(self.function.bind(py).as_any(), "return").ok().flatten();
        let mut slots = slots.iter();
        let mut next = || match slots.next().map(|slot| (slot.data, slot.offset as usize)) {
            Some((Data::Scalar(scalar), offset)) => Ok(Const::from_bytes(scalar, &results[offset..])),
            _ => Err(errors::bug("a kernel returned what the caller cannot take")),
        };
        match &specialisation.returns {
            Returns::Nothing => Ok(py.None().into_bound(py)),
            Returns::One(Returned::Scalar(_)) => dtype::constant_to(py, next()?),
            Returns::One(one) => aggregate::returned(py, one, annotation().as_ref(), &mut next),
            Returns::Tuple(items) => {
                // `tuple[a, b]`, or a tuple of types.
                let types = annotation().map(|of| of.getattr("__args__").unwrap_or(of));
                let mut objects = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    let ty = types.as_ref().and_then(|types| types.get_item(index).ok());
                    objects.push(aggregate::returned(py, item, ty.as_ref(), &mut next)?);
                }
                Ok(PyTuple::new(py, objects)?.into_any())
            }
        }
    }
}

impl Kernel {
    #[inline]
    fn call<'py>(
        &self,
        py: Python<'py>,
        what: CodeKind,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        stream: Option<&LiveStream>,
        step: Option<&StepCheck>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut launch = LaunchArguments::new(stream.is_some());
        let code = self.find_or_make(py, what, arguments, &mut launch)?;
        if let Some(step) = step {
            step.see(py, &self.signature.name, &code, arguments, &launch)?;
        }
        if code.derivative.is_some() && !code.has_companions() {
            self.require_some_derivatives(py, what, arguments)?;
        }
        self.launch(py, &code, &mut launch, stream, RecordUse::None)
    }

    /// What the derivative in reverse mode keeps, as the user sees it.
    #[cold]
    fn plan_derivative<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        stream: Option<&LiveStream>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (what, mut launch) =
            (CodeKind::Derivative(DerivativeKind::Reverse), LaunchArguments::new(stream.is_some()));
        let code = self.find_or_make(py, what, arguments, &mut launch)?;
        let (Some(gradient), Some(plan)) = (&code.derivative, &code.plan) else {
            return Err(errors::bug("a derivative without a plan"));
        };
        let _mirror = launch.upload(py, &code.compiled, stream)?;
        // SAFETY: as in `launch`.
        let is_told = gradient.is_sized_by_kernel(unsafe { Arguments::new(launch.bytes()) });
        let _uses = is_told.then(|| launch.uses(py, &code.compiled, stream));
        let _kept = launch.keep_memory(py, &code.compiled)?;
        let signals = SignalScope::begin(py)?;
        let bytes = launch.bytes();
        let memory: Result<_, LaunchError> = py.outside(|| {
            // SAFETY: as in `launch`.
            let arguments = unsafe { Arguments::new(bytes) };
            let memory = gradient.kept_memory(arguments, stream, signals.request())?;
            let sizing = match (gradient.keeps_in_threads(), gradient.is_sized_by_host(arguments)) {
                (true, _) => Sizing::Threads,
                (false, true) => Sizing::Host,
                (false, false) => Sizing::Kernel,
            };
            Ok((memory, sizing))
        });
        let was_cancelled = matches!(memory, Err(LaunchError::Cancelled));
        let (memory, sizing) = signals.finish(py, memory, was_cancelled, |py, error| {
            errors::from_launch(py, error, self.runtime.get().sources().map())
        })?;
        plan.to_dict(py, &memory, sizing)
    }

    /// The code for these arguments, made if there is none.
    fn code_for<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        what: CodeKind,
    ) -> PyResult<Arc<Specialisation>> {
        let (py, runtime) = (args.py(), self.runtime.get());
        host_only::guard_launch(py)?;
        let sources = runtime.sources().map();
        let binder = Binder { signature: &self.signature, params: &self.params, sources };
        let placed = binder.place(args, kwargs)?;
        let arguments: Objects<'_, 'py> = placed.iter().map(Bound::as_borrowed).collect();
        let mut launch = LaunchArguments::new(false);
        match self.find(py, runtime.epoch(), what, &arguments, &mut launch)? {
            Some(found) => Ok(found),
            None => self.specialise(py, &*runtime.current(py)?, what, &arguments, &mut launch.evaluated),
        }
    }

    #[inline]
    fn launch_with<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        what: CodeKind,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.with_arguments(args, kwargs, |arguments, stream| {
            self.call(args.py(), what, arguments, stream, None)
        })
    }

    /// A call as a method: the receiver comes first.
    #[inline]
    pub fn call_method<'py>(
        slf: &Bound<'py, Self>,
        receiver: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        if kwargs.is_none()
            && args.len() + 1 == this.params.len()
            && this.runtime.get().call_hook(py).is_none()
        {
            return errors::gateway(|| {
                host_only::guard_launch(py)?;
                let all = std::iter::once(receiver.as_borrowed()).chain(args.iter_borrowed());
                let arguments: Objects<'_, 'py> = all.collect();
                this.call(py, CodeKind::Value, &arguments, None, None)
            });
        }
        let all = std::iter::once(receiver.clone()).chain(args.iter());
        Self::__call__(slf, &PyTuple::new(py, all.collect::<Vec<_>>())?, kwargs)
    }

    /// Does something with the arguments in the order of the parameters, and the stream of a call.
    #[inline]
    fn with_arguments<'py, R>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        call: impl FnOnce(&[Borrowed<'_, 'py, PyAny>], Option<&LiveStream>) -> PyResult<R>,
    ) -> PyResult<R> {
        errors::gateway(|| {
            let py = args.py();
            host_only::guard_launch(py)?;
            if kwargs.is_none() && args.len() == self.params.len() {
                let arguments: Objects<'_, 'py> = args.iter_borrowed().collect();
                return call(&arguments, None);
            }
            if let Some(by_keyword) = kwargs.and_then(|kwargs| self.by_keyword(args.len(), kwargs)) {
                let by_keyword = by_keyword.iter().map(Bound::as_borrowed);
                let arguments: Objects<'_, 'py> = args.iter_borrowed().chain(by_keyword).collect();
                return call(&arguments, None);
            }
            let sources = self.runtime.get().sources().map();
            let binder = Binder { signature: &self.signature, params: &self.params, sources };
            let keyword = kwargs.map(|kwargs| binder.stream(kwargs)).transpose()?.flatten();
            if self.graph && keyword.as_ref().is_some_and(|stream| !stream.is_none()) {
                return Err(self.graph_with_stream(py));
            }
            let stream = stream::live(self.runtime.get(), keyword.as_ref())?;
            if keyword.is_some()
                && kwargs.is_some_and(|kwargs| kwargs.len() == 1)
                && args.len() == self.params.len()
            {
                let arguments: Objects<'_, 'py> = args.iter_borrowed().collect();
                return call(&arguments, stream.as_ref());
            }
            let placed = binder.place(args, kwargs)?;
            let arguments: Objects<'_, 'py> = placed.iter().map(Bound::as_borrowed).collect();
            call(&arguments, stream.as_ref())
        })
    }
}

impl Kernel {
    /// The stream that a call names.
    fn stream_of(&self, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Option<LiveStream>> {
        let sources = self.runtime.get().sources().map();
        let binder = Binder { signature: &self.signature, params: &self.params, sources };
        let keyword = kwargs.map(|kwargs| binder.stream(kwargs)).transpose()?.flatten();
        stream::live(self.runtime.get(), keyword.as_ref())
    }

    /// The arguments of the parameters from `first` on, if they are all that is given by keyword.
    #[inline]
    fn by_keyword<'py>(&self, first: usize, kwargs: &Bound<'py, PyDict>) -> Option<KeywordArguments<'py>> {
        let params = self.params.get(first..).filter(|params| params.len() == kwargs.len())?;
        params.iter().map(|param| param.keyword(kwargs)).collect()
    }
}

/// Writes what a kernel printed where Python's own text goes; nowhere if there is no such place.
fn write_out(py: Python<'_>, text: String) -> PyResult<()> {
    let out = py.import("sys")?.getattr("stdout")?;
    if !out.is_none() {
        out.call_method1("write", (text,))?;
    }
    Ok(())
}

#[pymethods]
impl Kernel {
    #[new]
    #[pyo3(signature = (function, runtime, pure=false, graph=false))]
    fn new(
        py: Python<'_>,
        function: Bound<'_, PyFunction>,
        runtime: Bound<'_, Runtime>,
        pure: bool,
        graph: bool,
    ) -> PyResult<Self> {
        errors::gateway(|| {
            let sources = runtime.get().sources();
            let signature =
                check_signature(&PyHost::new(py), sources, function.as_any(), FunctionKind::Kernel)
                    .map_err(|diagnostics| errors::from_diagnostics(py, &diagnostics, sources.map()))?;
            let params = signature
                .params
                .iter()
                .map(|param| {
                    let ty = PyHost::new(py).annotation_of(function.as_any(), &param.name).ok().flatten();
                    Param::new(py, param, ty)
                })
                .collect();
            let specialisations = Arc::new(Specialisations::default());
            let kept: Arc<dyn SessionHolder> = specialisations.clone();
            runtime.get().release_at_end(Arc::downgrade(&kept));
            Ok(Self {
                function: Traced::new(function.unbind()),
                runtime: runtime.unbind(),
                signature,
                params,
                specialisations,
                varying: Mutex::default(),
                pure,
                graph,
                told_of_races: AtomicBool::new(false),
            })
        })
    }

    #[pyo3(signature = (*args, **kwargs))]
    pub fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(hook) = slf.get().runtime.get().call_hook(slf.py()) {
            host_only::guard_launch(slf.py())?;
            return hook.bind(slf.py()).call1((slf, args, kwargs));
        }
        slf.get().launch_with(args, kwargs, CodeKind::Value)
    }

    /// The derivative in reverse mode, with the arguments of a call: what the results' gradients hold goes back to those of what the kernel reads.
    #[pyo3(signature = (*args, **kwargs))]
    pub fn grad<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(hook) = slf.get().runtime.get().call_hook(slf.py()) {
            host_only::guard_launch(slf.py())?;
            return hook.bind(slf.py()).call1((slf, args, kwargs, true));
        }
        slf.get().launch_with(args, kwargs, CodeKind::Derivative(DerivativeKind::Reverse))
    }

    /// What the derivative in reverse mode does for these arguments: which parameters have gradients, what it keeps of which loops and how
    /// much memory that takes, what it reads again, and where derivatives end. Runs nothing but what computes the memory, and waits for that.
    #[pyo3(signature = (*args, **kwargs))]
    pub fn grad_plan<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (py, this) = (slf.py(), slf.get());
        this.with_arguments(args, kwargs, |arguments, stream| this.plan_derivative(py, arguments, stream))
    }

    /// Makes the code for these arguments, if there is none: of the kernel, or of its derivative in reverse mode. Launches nothing.
    fn _compile<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        grad: bool,
    ) -> PyResult<()> {
        let what = if grad { CodeKind::Derivative(DerivativeKind::Reverse) } else { CodeKind::Value };
        errors::gateway(|| self.code_for(args, kwargs, what).map(drop))
    }

    /// A launch that nothing watches: of the kernel, or of its derivative in forward mode. `step` sees it.
    #[pyo3(signature = (args, kwargs, with_duals, step=None))]
    fn _launch<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        with_duals: bool,
        step: Option<&Bound<'py, StepCheck>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let what = if with_duals { CodeKind::Derivative(DerivativeKind::Forward) } else { CodeKind::Value };
        self.with_arguments(args, kwargs, |arguments, stream| {
            self.call(args.py(), what, arguments, stream, step.map(Bound::get))
        })
    }

    /// A launch of the derivative in reverse mode that nothing watches, or of that one's derivative in forward mode. In a tape `sinks` refuses who reads
    /// the gradients later.
    #[pyo3(signature = (args, kwargs, with_duals, sinks=None))]
    fn _launch_grad<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        with_duals: bool,
        sinks: Option<&Bound<'py, Sinks>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(sinks) = sinks {
            return self.with_arguments(args, kwargs, |arguments, stream| {
                self.call_grad_in_tape(args.py(), arguments, stream, sinks)
            });
        }
        let kind = if with_duals { DerivativeKind::ForwardOverReverse } else { DerivativeKind::Reverse };
        self.launch_with(args, kwargs, CodeKind::Derivative(kind))
    }

    /// A launch for whose derivative what the kernel overwrites is kept: its result, and a `Record`, or None if nothing had to be kept. Refused if it
    /// reads from `sinks` of earlier ones; with `validate`, in debug mode, also if iterations of a parallel loop meet. `step` sees it.
    #[pyo3(signature = (args, kwargs, sinks, validate, step=None))]
    fn _record<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        sinks: &Bound<'py, Sinks>,
        validate: bool,
        step: Option<&Bound<'py, StepCheck>>,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Record>)> {
        self.with_arguments(args, kwargs, |arguments, stream| {
            self.call_recording(args.py(), arguments, stream, sinks, validate, step.map(Bound::get))
        })
    }

    /// As `_record`, in a tape that may run calls again: `overwrites` sees the launch before it runs. Also gives what it takes to launch it once more, if calls are to
    /// run again by then. Without `sinks` nobody asks for its derivative. `step` sees it, too.
    #[pyo3(signature = (args, kwargs, sinks, overwrites, step=None))]
    fn _run<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        sinks: Option<&Bound<'py, Sinks>>,
        overwrites: &Bound<'py, Overwrites>,
        step: Option<&Bound<'py, StepCheck>>,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Record>, Option<Run>)> {
        self.with_arguments(args, kwargs, |arguments, stream| {
            self.call_running(args.py(), arguments, stream, sinks, overwrites, step.map(Bound::get))
        })
    }

    /// Launches a call again, in the stream of the call, with what it took then. Gives what its derivative needs.
    fn _run_again<'py>(
        &self,
        run: &Bound<'py, Run>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Record>> {
        errors::gateway(|| {
            host_only::guard_launch(run.py())?;
            let stream = self.stream_of(kwargs)?;
            self.call_again(run.py(), run.get(), stream.as_ref())
        })
    }

    /// The derivative in forward mode, for whose gradients and their duals what the kernel overwrites is kept: its result, and a `Record`, or None if nothing had to be kept.
    fn _record_duals<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Record>)> {
        self.with_arguments(args, kwargs, |arguments, stream| {
            self.call_recording_duals(args.py(), arguments, stream)
        })
    }

    /// The derivative of a call in a tape, of which `record` was kept, in the stream of the call. Refuses if an entry of the log from `values` on wrote what it
    /// needs, or an unrecorded one from `derivatives` on wrote what it hands gradients through.
    #[pyo3(signature = (record, kwargs, *, log, values, derivatives))]
    fn _replay_grad<'py>(
        &self,
        record: &Bound<'py, Record>,
        kwargs: Option<&Bound<'py, PyDict>>,
        log: &Bound<'py, WriteLog>,
        values: usize,
        derivatives: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        errors::gateway(|| {
            host_only::guard_launch(record.py())?;
            let since = LogBounds { log: log.get(), values, derivatives };
            let stream = self.stream_of(kwargs)?;
            self.call_recorded(record.py(), record.get(), since, stream.as_ref())
        })
    }

    /// Refuses a launch that reads what was written in an entry of the log from `since` on, unless `own` has it, too. `called` is on whose behalf it runs. With
    /// `grad` the launch is one of the derivative.
    #[expect(clippy::too_many_arguments)]
    #[pyo3(signature = (args, kwargs, log, own, since, called, grad=false))]
    fn _require_unchanged<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        log: &Bound<'py, WriteLog>,
        own: &Bound<'py, WriteLog>,
        since: usize,
        called: &str,
        grad: bool,
    ) -> PyResult<()> {
        let what = if grad { CodeKind::Derivative(DerivativeKind::Reverse) } else { CodeKind::Value };
        self.with_arguments(args, kwargs, |arguments, stream| {
            let mut launch = LaunchArguments::new(stream.is_some());
            let code = self.find_or_make(args.py(), what, arguments, &mut launch)?;
            require_unchanged(args.py(), &code, launch.bytes(), (log.get(), since), own.get(), called)
        })
    }

    /// Whether the newest code draws random numbers, which are others at each launch.
    #[getter]
    fn _draws_random(&self) -> bool {
        self.specialisations(CodeKind::Value).first().is_some_and(|newest| newest.compiled.draws_random())
    }

    /// What the derivative of a recorded call reads of the kernel's arrays: their names, and a number for each that other values have another of.
    fn _needed_values(&self, py: Python<'_>, record: &Bound<'_, Record>) -> PyResult<Vec<(String, u64)>> {
        errors::gateway(|| self.values_of_record(py, record.get()))
    }

    /// As an attribute of an object: bound to it.
    fn __get__(
        slf: &Bound<'_, Self>,
        instance: Option<&Bound<'_, PyAny>>,
        _owner: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let Some(instance) = instance else { return Ok(slf.clone().into_any().unbind()) };
        let bound = BoundKernel::new(slf.clone().unbind(), instance.clone().unbind());
        Ok(Py::new(slf.py(), bound)?.into_any())
    }

    /// The kernel that computes the values themselves.
    #[getter]
    fn _primal(slf: &Bound<'_, Self>) -> Py<PyAny> {
        slf.clone().into_any().unbind()
    }

    /// The kernel that computes gradients.
    #[getter]
    fn _adjoint<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.getattr("grad")
    }

    /// What programs for Quadrants ask of their cache: whether the newest code was found on disk or put there.
    #[getter]
    fn src_ll_cache_observations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let newest = self.specialisations(CodeKind::Value).first().map(|newest| newest.compiled.statistics());
        let found = newest.as_ref().is_some_and(|statistics| statistics.found);
        let observations = py.import("octants._session.fastcache")?.getattr("Observations")?;
        let checked = self.runtime.get().get().is_none_or(|current| current.fastcache.checked);
        let made = self.pure && checked && newest.is_some();
        observations.call1((made, made && found, made && !found))
    }

    /// Where the time of each compilation went, newest first: a list of dicts with milliseconds.
    fn compile_statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = self.specialisations(CodeKind::Value).clone();
        let dicts = list.iter().map(|one| {
            let statistics = one.compiled.statistics();
            let dict = PyDict::new(py);
            for (name, time) in [
                ("lower_ms", statistics.lower),
                ("passes_ms", statistics.passes),
                ("emit_ms", statistics.emit),
                ("llvm_ms", statistics.llvm),
                ("load_ms", statistics.load),
                ("find_ms", statistics.find),
            ] {
                dict.set_item(name, time.as_secs_f64() * 1e3)?;
            }
            dict.set_item("tasks", statistics.tasks)?;
            dict.set_item("code_bytes", statistics.code_bytes)?;
            dict.set_item("found", statistics.found)?;
            dict.set_item("found_tasks", statistics.found_tasks)?;
            Ok(dict)
        });
        PyList::new(py, dicts.collect::<PyResult<Vec<_>>>()?)
    }

    /// What each task of the newest compilation takes of the GPU: a list of dicts. Empty on a device without registers to count.
    fn resources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let newest = self.specialisations(CodeKind::Value).first().cloned();
        let tasks = match newest {
            Some(newest) => {
                py.outside(|| newest.compiled.resources()).map_err(|error| errors::from_error(py, &error))?
            }
            None => Vec::new(),
        };
        let dicts = tasks.iter().map(|task| {
            let usage = &task.usage;
            let dict = PyDict::new(py);
            dict.set_item("task", &task.symbol)?;
            dict.set_item("registers", usage.registers)?;
            dict.set_item("local_bytes", usage.local_bytes)?;
            dict.set_item("shared_bytes", usage.shared_bytes)?;
            dict.set_item("block", if task.parallel { usage.block } else { 1 })?;
            dict.set_item("occupancy", task.parallel.then(|| usage.occupancy()))?;
            Ok(dict)
        });
        PyList::new(py, dicts.collect::<PyResult<Vec<_>>>()?)
    }

    /// A text that shows the newest compilation at some stage: "ir", "tasks", "llvm", "llvm-optimised", "asm", "ptx" or "sass". The last
    /// two are for NVIDIA's GPUs of a compute capability, the session's device or 90. With `grad`, that of the derivative in reverse mode.
    #[pyo3(signature = (stage, *, capability=None, grad=false))]
    fn dump(
        &self,
        py: Python<'_>,
        stage: &str,
        capability: Option<u32>,
        grad: bool,
    ) -> PyResult<Option<String>> {
        let what = if grad { CodeKind::Derivative(DerivativeKind::Reverse) } else { CodeKind::Value };
        let newest = self.specialisations(what).first().cloned();
        let Some(newest) = newest else { return Ok(None) };
        dump(py, &newest.compiled, stage, capability)
    }

    /// A kernel and the globals of its function refer to each other; Python's collector finds such circles through this.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Nothing else is written yet.
        let Some(function) = self.function.visited() else { return Ok(()) };
        visit.call(function)?;
        self.params.iter().try_for_each(|param| param.visit(&visit))?;
        self.specialisations.visit(&visit)
    }

    fn __clear__(&self) {
        self.specialisations.release();
    }

    #[getter]
    fn __wrapped__(&self, py: Python<'_>) -> Py<PyFunction> {
        self.function.clone_ref(py)
    }

    #[getter]
    fn __name__(&self) -> &str {
        &self.signature.name
    }

    #[getter]
    fn __qualname__(&self) -> &str {
        &self.signature.qualname
    }

    #[getter]
    fn __doc__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.function.bind(py).getattr("__doc__")
    }

    /// As Python's functions do: a kernel is pickled as its name, if it has one that finds it.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let reduced = slf.py().import("octants._pickling")?.getattr("reduced_function")?;
        reduced.call1((slf, &*slf.get().function))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        format!("<octants kernel {}>", self.signature.qualname)
    }
}
