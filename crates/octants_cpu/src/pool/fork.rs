//! Notices that this process is a forked child.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

extern "C" fn in_the_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Has forks counted from now on.
pub(super) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler only changes an atomic number.
        unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
    });
}

/// A number that differs between a process and its forked children. Cheaper than asking the system who we are.
pub(super) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}
