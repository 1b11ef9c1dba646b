//! Ctrl-C while native code runs.
//!
//! Python's own handler only notes the signal and waits for the interpreter to come back, which a long kernel does not let it do.
//! So a handler of ours raises the flag that kernels poll, and then does what the handler before it would have done. A process has
//! one set of signal handlers, so the flag is the process's too; only launches of the main thread, which Python interrupts, look at it.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pyo3::prelude::*;

static RAISED: AtomicBool = AtomicBool::new(false);
static NEVER: AtomicBool = AtomicBool::new(false);
/// The handler that ours calls on; 0 before ours is installed.
static PREVIOUS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_signal(signal: libc::c_int) {
    RAISED.store(true, Ordering::Relaxed);
    let previous = PREVIOUS.load(Ordering::Relaxed);
    if previous > 1 {
        // SAFETY: a handler that the system gave us; it was installed for this signal without extra arguments.
        let previous: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(previous) };
        previous(signal);
    }
}

/// Puts our handler before Python's, if Python handles Ctrl-C and ours is not there already.
pub fn install() {
    if !is_main_thread() {
        return;
    }
    // SAFETY: plain calls of the system with initialised structures; the handler only stores to atomics and calls on.
    unsafe {
        let mut current = MaybeUninit::<libc::sigaction>::zeroed();
        if libc::sigaction(libc::SIGINT, std::ptr::null(), current.as_mut_ptr()) != 0 {
            return;
        }
        let mut action = current.assume_init();
        let ours = on_signal as extern "C" fn(libc::c_int) as usize;
        let handled = action.sa_sigaction > 1 && action.sa_flags & libc::SA_SIGINFO == 0;
        if !handled || action.sa_sigaction == ours {
            return;
        }
        PREVIOUS.store(action.sa_sigaction, Ordering::Relaxed);
        action.sa_sigaction = ours;
        libc::sigaction(libc::SIGINT, &raw const action, std::ptr::null_mut());
    }
}

/// The flag that a launch or a compilation of this thread polls, lowered.
pub fn flag() -> &'static AtomicBool {
    if is_main_thread() {
        RAISED.store(false, Ordering::Relaxed);
        &RAISED
    } else {
        &NEVER
    }
}

fn is_main_thread() -> bool {
    thread_local! {
        static MAIN: Cell<Option<bool>> = const { Cell::new(None) };
    }
    MAIN.with(|known| {
        known.get().unwrap_or_else(|| {
            let main = Python::attach(|py| -> PyResult<bool> {
                let threading = py.import("threading")?;
                let main = threading.call_method0("main_thread")?.getattr("ident")?;
                main.eq(threading.call_method0("get_ident")?)
            })
            .unwrap_or(false);
            known.set(Some(main));
            main
        })
    })
}
