//! Signals while native code runs or a kernel is compiled.
//!
//! Python's own handler only notes a signal and waits for the interpreter to come back, which a long kernel does not let it do.
//! So a handler of ours comes before it and raises the request that kernels look at. Whoever sees it on the main thread lets Python run
//! its handlers; if one raises an exception, the kernel ends, else it goes on. A process has one set of signal handlers, so the request
//! is the process's too; only launches of the main thread, which Python interrupts, look at it.
//!
//! Law: **a handler is no part of what it interrupts**: it launches kernels also where a function that a kernel calls may not.
//!
//! Law: **what a handler raises is raised by the call that the handler ran in**, whatever else becomes of that; never lost, and never by a later one.
//!
//! Handlers that a program installs later are not behind ours yet. A thread notices launches that take longer than usual, and raises
//! the request once; then ours is put before them.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use octants::{Cancel, Error};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};

use crate::gateway::errors;
use crate::gateway::under_way::Outside;

static REQUEST: Cancel = Cancel::confirmed_by(confirm);
static NEVER: Cancel = Cancel::new();
/// Whether the running launch or compilation is to end.
static ENDING: AtomicBool = AtomicBool::new(false);
/// What a handler raised in the innermost scope, which takes it when it ends.
static RAISED: Mutex<Option<PyErr>> = Mutex::new(None);
/// What was raised that no scope was there to take: the interpreter raises it before it runs other code, or the next scope when it begins.
static UNTOLD: Mutex<Option<PyErr>> = Mutex::new(None);
/// The handler that ours calls on, Python's; 0 before ours is installed.
static PREVIOUS: AtomicUsize = AtomicUsize::new(0);
/// When Ctrl-C was pressed, in milliseconds since the first one could be; 0 if it was not.
static PRESSED: AtomicU64 = AtomicU64::new(0);
/// The thread that Python runs handlers on, by the place of a variable of its own. A forked child's is the one that forked.
static MAIN: AtomicUsize = AtomicUsize::new(0);
static START: OnceLock<Instant> = OnceLock::new();

/// How long other threads wait for the main one to see Ctrl-C. It may be waiting for them without looking. Chosen: Ctrl-C is to be heard
/// within half a second.
const MAIN_THREAD_TIMEOUT_MS: u64 = 200;

/// A launch that takes longer than this, twice at most, lets Python look for signals once. Chosen, not measured: 50 looks a second are nothing
/// to a processor, and a handler's program does not notice 40 ms.
const WATCH_INTERVAL: Duration = Duration::from_millis(20);

/// Signals that a program may handle in Python.
const SIGNALS: std::ops::Range<libc::c_int> = 1..32;

fn milliseconds() -> u64 {
    START.get().map_or(0, |start| start.elapsed().as_millis() as u64 + 1)
}

extern "C" fn on_signal(signal: libc::c_int) {
    if signal == libc::SIGINT {
        PRESSED.store(milliseconds(), Ordering::Relaxed);
    }
    REQUEST.raise();
    let previous = PREVIOUS.load(Ordering::Relaxed);
    if previous > 1 {
        // SAFETY: a handler that the system gave us; it was installed for this signal without extra arguments.
        let previous: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(previous) };
        previous(signal);
    }
}

/// Called by whatever runs when the request is raised.
extern "C" fn confirm(_: *const Cancel) -> u8 {
    if ENDING.load(Ordering::Relaxed) {
        return 1;
    }
    if MAIN.load(Ordering::Relaxed) != this_thread() {
        let pressed = PRESSED.load(Ordering::Relaxed);
        return u8::from(pressed != 0 && milliseconds() > pressed + MAIN_THREAD_TIMEOUT_MS);
    }
    // Lowered first: a signal that comes now raises it again.
    REQUEST.lower();
    let checked = Python::attach(|py| {
        put_before_python();
        py.check_signals()
    });
    match checked {
        Ok(()) => {
            // A handler may have launched a kernel that ended early.
            ENDING.store(false, Ordering::Relaxed);
            PRESSED.store(0, Ordering::Relaxed);
            0
        }
        Err(raised) => {
            *RAISED.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
            ENDING.store(true, Ordering::Relaxed);
            REQUEST.raise();
            1
        }
    }
}

/// Puts our handler before Python's, where Python handles signals and ours is not there already.
pub fn install() {
    if is_main_thread() {
        put_before_python();
    }
}

fn put_before_python() {
    START.get_or_init(Instant::now);
    for signal in std::iter::once(libc::SIGINT).chain(SIGNALS) {
        // SAFETY: plain calls of the system with initialised structures; the handler only stores to atomics, reads the clock and
        // calls on.
        unsafe {
            let mut current = MaybeUninit::<libc::sigaction>::zeroed();
            if libc::sigaction(signal, std::ptr::null(), current.as_mut_ptr()) != 0 {
                continue;
            }
            let mut action = current.assume_init();
            let ours = on_signal as extern "C" fn(libc::c_int) as usize;
            let handled = action.sa_sigaction > 1 && action.sa_flags & libc::SA_SIGINFO == 0;
            if !handled || action.sa_sigaction == ours {
                continue;
            }
            // All handlers of Python are one function; another one is some library's own.
            let known = PREVIOUS.load(Ordering::Relaxed);
            if signal == libc::SIGINT && known == 0 {
                PREVIOUS.store(action.sa_sigaction, Ordering::Relaxed);
            } else if action.sa_sigaction != known {
                continue;
            }
            action.sa_sigaction = ours;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// Something that runs for a while without Python. Signals are handled meanwhile, if it runs on the main thread.
pub struct SignalScope {
    main: bool,
}

impl SignalScope {
    /// Also handles what came before; a handler's exception is the error.
    #[inline]
    pub fn begin(py: Python<'_>) -> PyResult<Self> {
        if !is_main_thread() {
            return Ok(Self { main: false });
        }
        REQUEST.lower();
        ENDING.store(false, Ordering::Relaxed);
        PRESSED.store(0, Ordering::Relaxed);
        if let Some(untold) = take(&UNTOLD) {
            return Err(untold);
        }
        py.check_signals()?;
        watcher::begin();
        Ok(Self { main: true })
    }

    /// What it looks at.
    pub fn request(&self) -> &'static Cancel {
        if self.main { &REQUEST } else { &NEVER }
    }

    /// Ends it. What a handler has raised meanwhile comes before what became of the work, which is its context, unless the handler ended it.
    pub fn finish<T, E>(
        self,
        py: Python<'_>,
        outcome: Result<T, E>,
        was_cancelled: bool,
        exception: impl FnOnce(Python<'_>, &E) -> PyErr,
    ) -> PyResult<T> {
        let raised = if self.main { take_raised() } else { None };
        let Some(raised) = raised else { return outcome.map_err(|error| exception(py, &error)) };
        if let (Err(error), false) = (outcome, was_cancelled) {
            // The exception is whole without it.
            let _ = raised.value(py).setattr("__context__", exception(py, &error).value(py));
        }
        Err(raised)
    }
}

impl Drop for SignalScope {
    fn drop(&mut self) {
        if !self.main {
            return;
        }
        watcher::end();
        // The work ended by an error of its own before anybody asked: Python raises it as soon as its own code goes on.
        if let Some(raised) = take(&RAISED) {
            raise_in_python(raised);
        }
    }
}

/// The outcome of two steps, of which the second is taken also if the first fails. What was raised in the second by code that is not ours, as a handler is, comes
/// before an error of the first, which is its context; else the first error is told.
#[inline]
pub fn both(py: Python<'_>, first: PyResult<()>, second: PyResult<()>) -> PyResult<()> {
    match (first, second) {
        (Err(first), Err(second)) if !errors::is_ours(py, &second) => Err(raised_after(py, &first, second)),
        (first, second) => first.and(second),
    }
}

/// Likewise, where all of the second step is code of the user's.
#[inline]
pub fn then(py: Python<'_>, first: PyResult<()>, second: PyResult<()>) -> PyResult<()> {
    match (first, second) {
        (Err(first), Err(second)) => Err(raised_after(py, &first, second)),
        (first, second) => first.and(second),
    }
}

/// An exception with the one before it as its context, as Python has it of what is raised in a `finally`.
#[cold]
fn raised_after(py: Python<'_>, first: &PyErr, second: PyErr) -> PyErr {
    let first = first.value(py).as_any();
    let mut last = second.value(py).as_any().clone();
    // The exception is whole without it.
    while !last.is(first) {
        match last.getattr("__context__") {
            Ok(before) if !before.is_none() => last = before,
            _ => {
                let _ = last.setattr("__context__", first);
                break;
            }
        }
    }
    second
}

/// For what has no caller to tell: what was raised by code that is not ours is raised as soon as Python's own code goes on.
#[cold]
pub fn raise_later(py: Python<'_>, error: PyErr) {
    if errors::is_ours(py, &error) {
        return;
    }
    if !is_main_thread() {
        error.write_unraisable(py, None);
        return;
    }
    raise_in_python(error);
}

/// Has the interpreter raise something, as soon as it runs code. Of several, the first.
fn raise_in_python(error: PyErr) {
    UNTOLD.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    // SAFETY: a function of that signature, which needs no argument.
    unsafe { pyo3::ffi::Py_AddPendingCall(Some(raise_now), std::ptr::null_mut()) };
}

/// Called by the interpreter, on the main thread.
extern "C" fn raise_now(_: *mut std::ffi::c_void) -> libc::c_int {
    let Some(raised) = take(&UNTOLD) else { return 0 };
    Python::attach(|py| raised.restore(py));
    -1
}

/// Runs a wait for a device. Signals are handled meanwhile; a handler's exception ends it.
pub fn waiting<T: Send>(
    py: Python<'_>,
    wait: impl FnOnce(&Cancel) -> Result<T, Error> + Send,
) -> PyResult<T> {
    waiting_or(py, wait, errors::from_error)
}

/// Likewise, with exceptions of the caller's.
pub fn waiting_or<T: Send>(
    py: Python<'_>,
    wait: impl FnOnce(&Cancel) -> Result<T, Error> + Send,
    exception: impl FnOnce(Python<'_>, &Error) -> PyErr,
) -> PyResult<T> {
    let signals = SignalScope::begin(py)?;
    let waited = py.outside(|| wait(signals.request()));
    let was_cancelled = matches!(waited, Err(Error::Cancelled));
    signals.finish(py, waited, was_cancelled, exception)
}

/// The request that a launch looks at which is over before anybody could raise it.
pub fn never() -> &'static Cancel {
    &NEVER
}

/// What the handler raised that ended the launch.
pub fn take_raised() -> Option<PyErr> {
    take(&RAISED)
}

fn take(place: &Mutex<Option<PyErr>>) -> Option<PyErr> {
    place.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// To be called in a forked child, with the interpreter's lock. What was to be raised in the thread that was the main one is that thread's, which does not
/// go on here if another one forked.
pub fn after_fork_in_child() {
    if MAIN.load(Ordering::Relaxed) != this_thread() {
        for place in [&RAISED, &UNTOLD] {
            // A thread that is not there any more may have locked it.
            drop(place.try_lock().ok().and_then(|mut raised| raised.take()));
        }
    }
}

/// Whether a signal's handler runs that is Python code. Python calls it with the number of the signal and the frame that it interrupted, which is the one
/// below its own. It may do what the interrupted code may not: it is no part of that.
pub fn is_in_handler(py: Python<'_>) -> bool {
    if !is_main_thread() {
        return false;
    }
    let find = || -> PyResult<bool> {
        let mut frame = py.import("sys")?.call_method0("_getframe")?;
        while !frame.is_none() {
            let below = frame.getattr("f_back")?;
            if !below.is_none() && is_handler(&frame, &below)? {
                return Ok(true);
            }
            frame = below;
        }
        Ok(false)
    };
    find().unwrap_or(false)
}

/// Whether a frame was called as handlers are, by this frame.
fn is_handler<'py>(frame: &Bound<'py, PyAny>, below: &Bound<'py, PyAny>) -> PyResult<bool> {
    let code = frame.getattr("f_code")?;
    let count: usize = code.getattr("co_argcount")?.extract()?;
    // `*args` comes behind the others, and those with a name alone.
    let names: usize = count + 1 + code.getattr("co_kwonlyargcount")?.extract::<usize>()?;
    let locals = frame.getattr("f_locals")?;
    let mut arguments = Vec::new();
    for name in code.getattr("co_varnames")?.try_iter()?.take(names) {
        let Ok(value) = locals.get_item(name?) else { continue };
        match value.cast::<PyTuple>() {
            Ok(rest) => arguments.extend(rest.iter()),
            Err(_) => arguments.push(value),
        }
    }
    Ok(arguments.windows(2).any(|pair| pair[0].is_instance_of::<PyInt>() && pair[1].is(below)))
}

fn is_main_thread() -> bool {
    thread_local! {
        /// As of the process of this number.
        static IS_MAIN: std::cell::Cell<Option<(u32, bool)>> = const { std::cell::Cell::new(None) };
    }
    let process = octants::forked::generation();
    IS_MAIN.with(|known| {
        known.get().filter(|known| known.0 == process).map_or_else(
            || {
                let main = Python::attach(|py| -> PyResult<bool> {
                    let threading = py.import("threading")?;
                    let main = threading.call_method0("main_thread")?.getattr("ident")?;
                    main.eq(threading.call_method0("get_ident")?)
                })
                .unwrap_or(false);
                known.set(Some((process, main)));
                if main {
                    MAIN.store(this_thread(), Ordering::Relaxed);
                }
                main
            },
            |known| known.1,
        )
    })
}

/// A number that no other live thread has; not 0.
fn this_thread() -> usize {
    thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| std::ptr::from_ref(place) as usize)
}

/// The thread that notices long launches. It sleeps while there are none.
mod watcher {
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
    use std::thread::{self, Thread};
    use std::time::Duration;

    use super::{REQUEST, WATCH_INTERVAL};

    /// Launches under way: more than one if a signal's handler launches a kernel.
    static RUNNING: AtomicU32 = AtomicU32::new(0);
    /// Counts launches.
    static BEGUN: AtomicU64 = AtomicU64::new(0);
    static ASLEEP: AtomicBool = AtomicBool::new(false);
    /// Whether the thread exists in this process.
    static EXISTS: AtomicBool = AtomicBool::new(false);
    /// A pointer, since a forked child may find a lock taken by a thread that does not exist there. Never freed: there is one for each process.
    static THREAD: AtomicPtr<Thread> = AtomicPtr::new(ptr::null_mut());

    /// Intervals without a launch before it sleeps: one second. Chosen, not measured.
    const MAX_IDLE_INTERVALS: u32 = 50;

    pub fn begin() {
        BEGUN.fetch_add(1, Ordering::Relaxed);
        RUNNING.fetch_add(1, Ordering::SeqCst);
        if !EXISTS.load(Ordering::Relaxed) {
            start();
        } else if ASLEEP.load(Ordering::SeqCst) {
            wake();
        }
    }

    pub fn end() {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }

    extern "C" fn in_child() {
        // Launches of the main thread, which does not go on here if another one forked.
        if super::MAIN.load(Ordering::Relaxed) != super::this_thread() {
            RUNNING.store(0, Ordering::Relaxed);
        }
        EXISTS.store(false, Ordering::Relaxed);
        ASLEEP.store(false, Ordering::Relaxed);
    }

    #[cold]
    fn start() {
        static AT_FORK: std::sync::Once = std::sync::Once::new();
        // SAFETY: registers a function that only reads and stores atomics.
        AT_FORK.call_once(|| unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
        });
        EXISTS.store(true, Ordering::Relaxed);
        // Without the thread only signals that are known already are noticed.
        if let Ok(spawned) = thread::Builder::new().name("octants-signals".to_owned()).spawn(watch) {
            THREAD.store(Box::into_raw(Box::new(spawned.thread().clone())), Ordering::Release);
        }
    }

    #[cold]
    fn wake() {
        // SAFETY: nothing, or a thread's handle that stays.
        if let Some(thread) = unsafe { THREAD.load(Ordering::Acquire).as_ref() } {
            thread.unpark();
        }
    }

    fn watch() {
        let (mut seen, mut requested, mut idle) = (0, 0, 0);
        loop {
            thread::sleep(WATCH_INTERVAL);
            if RUNNING.load(Ordering::Relaxed) > 0 {
                idle = 0;
                let begun = BEGUN.load(Ordering::Relaxed);
                if begun == seen && requested != begun {
                    requested = begun;
                    REQUEST.raise();
                }
                seen = begun;
                continue;
            }
            idle += 1;
            if idle > MAX_IDLE_INTERVALS {
                ASLEEP.store(true, Ordering::SeqCst);
                while ASLEEP.load(Ordering::SeqCst) && RUNNING.load(Ordering::SeqCst) == 0 {
                    thread::park_timeout(Duration::from_hours(1));
                }
                ASLEEP.store(false, Ordering::SeqCst);
                idle = 0;
            }
        }
    }
}
