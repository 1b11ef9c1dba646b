//! From diagnostics and errors of the facade to Python exceptions.

use std::sync::OnceLock;

use octants::diag::{Class, Code, Diagnostic, Frame, SourceMap, Style, render_all};
use octants::front::TraceError;
use octants::ir::LocData;
use octants::ir::ops::AssertKind;
use octants::{Error, Fault, LaunchError};
use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::gateway::interrupt;

/// An exception of the package's own, by its class's name.
pub fn exception(py: Python<'_>, class: &str, message: &str) -> PyErr {
    let found = py
        .import(if class.starts_with("Octants") { "octants.exceptions" } else { "builtins" })
        .and_then(|module| module.getattr(class))
        .and_then(|class| Ok(class.cast_into::<PyType>()?));
    match found {
        Ok(class) => PyErr::from_type(class, message.to_string()),
        Err(_) => PyRuntimeError::new_err(message.to_string()),
    }
}

/// Whether an exception is one that the package makes of its own errors, and not what a signal's handler or other code of the user's raised.
#[cold]
pub fn is_ours(py: Python<'_>, error: &PyErr) -> bool {
    let module = error.get_type(py).getattr("__module__");
    error.is_instance_of::<PyMemoryError>(py)
        || module.is_ok_and(|module| module.eq("octants.exceptions").unwrap_or(false))
}

pub fn trace_error(py: Python<'_>, error: &TraceError) -> PyErr {
    exception(py, error.class.exception_name(), &error.message)
}

/// The exception for a refused program: the class of the first diagnostic, the text of all.
pub fn from_diagnostics(py: Python<'_>, diagnostics: &[Diagnostic], map: &SourceMap) -> PyErr {
    let Some(first) = diagnostics.first() else {
        return PyRuntimeError::new_err(
            "a program was refused without a diagnostic; this is a bug in Octants",
        );
    };
    let cause = first.cause.as_ref().and_then(|cause| cause.downcast_ref::<PyErr>()).map(|e| e.clone_ref(py));
    // The user's Ctrl-C, what another signal's handler raised, or an exit asked for inside compile-time code, is no compile error.
    if let Some(cause) = &cause
        && (first.code == Code::KernelInterrupted
            || !cause.is_instance_of::<pyo3::exceptions::PyException>(py))
    {
        return cause.clone_ref(py);
    }
    let text = render_all(diagnostics, map, Style::Plain);
    let error = exception(py, first.class().exception_name(), &text);
    error.set_cause(py, cause);
    let value = error.value(py);
    // The exception is whole without the attribute, which is for programs that look.
    let _ = value.setattr("code", first.code.name());
    error
}

/// Shows warnings of the compiler through Python's own `warnings`.
pub fn warn(py: Python<'_>, warnings: &[Diagnostic], map: &SourceMap) -> PyResult<()> {
    for warning in warnings {
        let category = match warning.class() {
            Class::SyntaxWarning => py.get_type::<pyo3::exceptions::PySyntaxWarning>(),
            Class::DeprecationWarning => py.get_type::<pyo3::exceptions::PyDeprecationWarning>(),
            _ => py.get_type::<pyo3::exceptions::PyUserWarning>(),
        };
        let text = render_all(std::slice::from_ref(warning), map, Style::Plain);
        let warn = py.import("warnings")?.getattr("warn")?;
        warn.call1((text, category, 1))?;
    }
    Ok(())
}

/// One diagnostic as an exception.
pub fn from_diagnostic(py: Python<'_>, diagnostic: Diagnostic, map: &SourceMap) -> PyErr {
    from_diagnostics(py, &[diagnostic], map)
}

/// A diagnostic that stands in no file.
pub fn plain(py: Python<'_>, code: Code, message: impl Into<String>) -> PyErr {
    from_diagnostic(py, Diagnostic::new(code, message), &SourceMap::new())
}

/// This process is a forked child, and may not use what its parent has opened.
#[cold]
pub fn forked(py: Python<'_>) -> PyErr {
    let (message, help) = if octants::forked::is_cut_off() {
        (
            "this process was forked while another thread of its parent was inside Octants, and cannot use Octants",
            "start processes with multiprocessing.get_context(\"spawn\"), or fork while no kernel is launched, compiled or at work",
        )
    } else {
        (
            "this process was forked from one whose session it cannot use: its device is that process' own",
            "start processes with multiprocessing.get_context(\"spawn\"), or call oc.init(arch=oc.cpu) in the child",
        )
    };
    from_diagnostic(py, Diagnostic::new(Code::Forked, message).help(help), &SourceMap::new())
}

/// Whether the current session is one that a forked child may not use.
fn is_forked(py: Python<'_>) -> bool {
    octants::forked::is_cut_off() || SESSIONS.get().is_some_and(|sessions| (sessions.is_cut_off)(py))
}

/// An error of a session or an array.
pub fn from_error(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        Error::Stale { .. } | Error::SessionEnded if is_forked(py) => forked(py),
        Error::OutOfMemory { .. } => PyMemoryError::new_err(error.to_string()),
        Error::Stale { .. } | Error::OtherSession { .. } => {
            let help = "arrays, fields, streams and events end with the session that made them: make them again after oc.init() or oc.reset()";
            from_diagnostic(
                py,
                Diagnostic::new(Code::StaleHandle, error.to_string()).help(help),
                &SourceMap::new(),
            )
        }
        Error::SessionEnded => {
            let help = "oc.reset() or another oc.init() ended it: call oc.init() and make its arrays again";
            let diagnostic = Diagnostic::new(Code::StaleHandle, error.to_string()).help(help);
            from_diagnostic(py, diagnostic, &SourceMap::new())
        }
        Error::Destroyed { what } => {
            let help = match *what {
                "stream" | "event" => "destroy() or the end of its `with` block gave it back: make a new one",
                _ => "destroy() gave its memory back: place a new field in a new tree",
            };
            let diagnostic = Diagnostic::new(Code::StaleHandle, error.to_string()).help(help);
            from_diagnostic(py, diagnostic, &SourceMap::new())
        }
        Error::Late(fault) => with_sources(py, |map| from_fault(py, fault, map)),
        Error::TapeLimit { .. } => plain(py, Code::TapeLimit, error.to_string()),
        Error::Invalid { message } => exception(py, "OctantsRuntimeError", message),
        Error::Unsupported { message } => exception(py, "OctantsRuntimeError", message),
        Error::Unavailable { message } | Error::Refused { message } => {
            exception(py, "OctantsDeviceUnavailable", message)
        }
        Error::Lost { launched, .. } => {
            let help = "all that was on it is gone: oc.init() begins anew; a kernel that reached outside its arrays is named by \
                        oc.init(debug=True)";
            let mut diagnostic = Diagnostic::new(Code::DeviceLost, error.to_string()).help(help);
            for kernel in launched {
                let Some(span) = kernel.place.span else { continue };
                if diagnostic.span.is_none() {
                    diagnostic.span = Some(span);
                } else if diagnostic.span != Some(span) {
                    diagnostic = diagnostic.label(span, format!("`{}` was launched before", kernel.name));
                }
            }
            with_sources(py, |map| from_diagnostic(py, diagnostic, map))
        }
        Error::Cancelled => interrupted(py, "it was interrupted before it was done"),
        Error::Internal { stage, message } => bug(&format!("{stage}: {message}")),
    }
}

/// What exceptions say of sessions, which stand above: who has them tells it when the module is imported.
pub struct Sessions {
    /// Whether the current one is of a process that this one was forked from.
    pub is_cut_off: fn(Python<'_>) -> bool,
    /// Hands over the files that kernels of all sessions are in.
    pub with_sources: fn(Python<'_>, &mut dyn FnMut(&SourceMap)),
}

static SESSIONS: OnceLock<Sessions> = OnceLock::new();

/// What exceptions say of sessions from now on; the first to tell it counts.
pub fn introduce(sessions: Sessions) {
    SESSIONS.get_or_init(|| sessions);
}

/// Makes an exception with the files that kernels of all sessions are in.
fn with_sources(py: Python<'_>, make: impl FnOnce(&SourceMap) -> PyErr) -> PyErr {
    let (mut make, mut made) = (Some(make), None);
    if let Some(sessions) = SESSIONS.get() {
        (sessions.with_sources)(py, &mut |map| made = make.take().map(|make| make(map)));
    }
    match (made, make) {
        (Some(made), _) => made,
        (None, Some(make)) => make(&SourceMap::new()),
        (None, None) => bug("an exception was made and lost"),
    }
}

/// Something ended early because of a signal. Python's own handler has seen it too: what that raises is what the user expects, and
/// asking for it here keeps it from being raised once more later.
fn interrupted(py: Python<'_>, message: &str) -> PyErr {
    if let Some(raised) = interrupt::take_raised() {
        return raised;
    }
    match py.check_signals() {
        Err(raised) => raised,
        Ok(()) => plain(py, Code::KernelInterrupted, message),
    }
}

/// A launch that did not finish.
pub fn from_launch(py: Python<'_>, error: &LaunchError, map: &SourceMap) -> PyErr {
    match error {
        LaunchError::Refused(error) => from_error(py, error),
        LaunchError::Cancelled => {
            interrupted(py, "the kernel was interrupted; what it had written stays written")
        }
        LaunchError::Fault(fault) => from_fault(py, fault, map),
    }
}

/// A check that failed.
fn from_fault(py: Python<'_>, fault: &Fault, map: &SourceMap) -> PyErr {
    let code = match fault.about {
        AssertKind::Condition => Code::AssertionFailed,
        AssertKind::Bounds => Code::OutOfBounds,
        AssertKind::Arithmetic => Code::Arithmetic,
        AssertKind::Memory => Code::SparseMemory,
        AssertKind::Tape => Code::DerivativeChanged,
        AssertKind::TapeLimit => Code::TapeLimit,
    };
    let mut diagnostic = located(Diagnostic::new(code, fault.message.clone()), &fault.locations);
    diagnostic.notes.push(format!("in the kernel `{}`", fault.kernel));
    for other in &fault.others {
        let text = format!("another branch failed, too: {}", other.message);
        diagnostic = match other.locations.first().and_then(|place| place.span) {
            Some(span) => diagnostic.label(span, text),
            None => diagnostic.note(text),
        };
    }
    from_diagnostic(py, diagnostic, map)
}

/// The diagnostic at a place, under the inlined calls that led there; the innermost comes first.
pub fn located(mut diagnostic: Diagnostic, locations: &[LocData]) -> Diagnostic {
    let mut places = locations.iter();
    diagnostic.span = places.next().and_then(|place| place.span);
    let mut inner = locations.first().and_then(|place| place.function.clone());
    for place in places {
        if let Some(call) = place.span {
            let function = inner.take().map_or_else(String::new, |name| name.to_string());
            diagnostic.frames.insert(0, Frame { function, call, inlined: true });
        }
        inner.clone_from(&place.function);
    }
    diagnostic
}

/// The warning of a kernel's races: the first one, with the lines of some others.
pub fn race(races: &[Vec<LocData>]) -> Option<Diagnostic> {
    // A message of one screen.
    const MAX_SHOWN_RACES: usize = 4;
    let (first, others) = races.split_first()?;
    let message = "iterations of a parallel loop overwrite each other's value here: which one is last is left to chance";
    let mut diagnostic = located(Diagnostic::new(Code::Race, message), first);
    let spans = others.iter().filter_map(|race| race.first()?.span);
    for span in
        spans.filter(|span| Some(*span) != first.first().and_then(|place| place.span)).take(MAX_SHOWN_RACES)
    {
        diagnostic = diagnostic.label(span, "and here");
    }
    Some(diagnostic.help(
        "combine with `+=`, `max`, `min`, write to an element of the iteration's own, or put `oc.loop_config(serialize=True)` before \
         the loop",
    ))
}

/// Runs what may panic; a panic is a defect of ours and says so.
pub fn gateway<T>(run: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
        Ok(result) => result,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text =
                text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without text");
            Err(bug(&format!("internal error of Octants: {text}")))
        }
    }
}

/// Says that something of ours is broken.
pub fn bug(what: &str) -> PyErr {
    PyErr::new::<PyRuntimeError, _>(format!(
        "{what}. This is a bug in Octants; please report it with the program that shows it"
    ))
}
