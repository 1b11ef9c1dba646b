//! Forked children of a process that uses devices, and what they may use of it.
//!
//! A child has a copy of the parent's memory and one thread. What the parent's other threads were at stays as it was: locks held for ever, lists half
//! linked, results half written.
//!
//! Laws:
//! * **What may hold a lock of ours, or writes memory that a child could look at, is counted while it does** ([`UnderWay`]). A thread that cannot
//!   run while another one forks, as one that waits for an interpreter's lock, need not be.
//! * A fork that is announced ([`begin_fork`]) holds back what would begin, and waits for a while for what has begun.
//! * **A child that was forked while something was under way in another thread is *cut off***: it touches nothing of ours, neither to use it nor to give
//!   it back, and whoever calls is told. Any other child finds every lock open.

use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often those that are held back, or wait for others, look again. Chosen, not measured: a fork takes as long.
const POLL_INTERVAL: Duration = Duration::from_micros(100);

static GENERATION: AtomicU32 = AtomicU32::new(0);
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
/// Forks that were announced and are not over.
static FORKS: AtomicUsize = AtomicUsize::new(0);
/// Whether whoever forks next knows of something that goes on and is not counted.
static UNQUIET: AtomicBool = AtomicBool::new(false);
static CUT_OFF: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How much of what is under way is the thread's own: a signal's handler may fork inside a call.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let own = OWN.get();
    if UNDER_WAY.swap(own, Ordering::Relaxed) > own || UNQUIET.load(Ordering::Relaxed) {
        CUT_OFF.store(true, Ordering::Relaxed);
    }
    FORKS.store(0, Ordering::Relaxed);
}

/// Has forks noticed from now on.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler only changes atomic numbers.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// A number that differs between a process and its forked children. Cheaper than asking the system who we are.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Whether this process was forked while something was under way.
#[inline]
pub fn is_cut_off() -> bool {
    CUT_OFF.load(Ordering::Relaxed)
}

/// The child finds out that more was under way than was counted.
pub fn cut_off() {
    CUT_OFF.store(true, Ordering::Relaxed);
}

/// Something is under way in this thread until it is dropped.
pub struct UnderWay(());

impl UnderWay {
    /// Waits for a fork that was announced. Not for a thread that keeps whoever forks from going on.
    #[inline]
    pub fn begin() -> Self {
        loop {
            let inside = Self::inside();
            if FORKS.load(Ordering::SeqCst) == 0 || OWN.get() > 1 {
                return inside;
            }
            drop(inside);
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Likewise, and waits for nothing.
    #[inline]
    pub fn inside() -> Self {
        OWN.set(OWN.get() + 1);
        UNDER_WAY.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for UnderWay {
    #[inline]
    fn drop(&mut self) {
        OWN.set(OWN.get() - 1);
        UNDER_WAY.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether something is under way in other threads.
pub fn others_are_under_way() -> bool {
    UNDER_WAY.load(Ordering::SeqCst) > OWN.get()
}

/// The thread is about to fork: from now on nothing begins elsewhere, until [`end_fork`].
pub fn begin_fork() {
    watch();
    FORKS.fetch_add(1, Ordering::SeqCst);
}

/// Waits until `is_quiet`, or until the deadline.
pub fn wait_for_quiet(deadline: Instant, is_quiet: impl Fn() -> bool) {
    while !is_quiet() && Instant::now() < deadline {
        thread::sleep(POLL_INTERVAL);
    }
}

/// Whether something goes on that is not counted, at the moment of the fork.
pub fn set_unquiet(unquiet: bool) {
    UNQUIET.store(unquiet, Ordering::SeqCst);
}

/// The fork is over, in the process that forked.
pub fn end_fork() {
    FORKS.fetch_sub(1, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// What a child says of itself by its exit.
    fn ask_child(question: impl Fn() -> bool) -> bool {
        // SAFETY: the child looks at atomic numbers and leaves, without returning into the test harness.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as above.
            unsafe { libc::_exit(if question() { 7 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: waits for our own child.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        libc::WEXITSTATUS(status) == 7
    }

    /// One test, since all of it is the process'.
    #[test]
    fn a_child_is_cut_off_by_what_was_under_way_in_another_thread() {
        watch();
        let here = generation();
        assert!(ask_child(|| generation() != here && !is_cut_off()), "nothing was under way");
        let own = UnderWay::begin();
        assert!(!others_are_under_way());
        assert!(
            ask_child(|| !is_cut_off() && !others_are_under_way()),
            "what was under way goes on in the child"
        );
        let (begun, ends) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let _guard = UnderWay::inside();
                begun.wait();
                ends.wait();
            });
            begun.wait();
            assert!(others_are_under_way());
            assert!(ask_child(is_cut_off), "another thread is inside");
            ends.wait();
        });
        assert!(ask_child(|| !is_cut_off()), "it has left");
        drop(own);
        // A fork that was announced holds back what would begin; not what a thread that is inside begins.
        begin_fork();
        let began = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let _guard = UnderWay::begin();
                began.store(true, Ordering::SeqCst);
            });
            scope.spawn(|| {
                let _outer = UnderWay::inside();
                let _inner = UnderWay::begin();
            });
            thread::sleep(Duration::from_millis(20));
            assert!(!began.load(Ordering::SeqCst));
            let deadline = Instant::now() + Duration::from_secs(10);
            wait_for_quiet(deadline, || !others_are_under_way());
            end_fork();
        });
        assert!(began.load(Ordering::SeqCst));
        set_unquiet(true);
        assert!(ask_child(is_cut_off));
        set_unquiet(false);
    }
}
