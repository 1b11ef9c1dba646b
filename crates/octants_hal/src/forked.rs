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
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often those that are held back, or wait for others, look again. Chosen, not measured: a fork takes as long.
const POLL_INTERVAL: Duration = Duration::from_micros(100);

static GENERATION: AtomicU32 = AtomicU32::new(0);
/// How much is under way, and forks that were announced and are not over, times [`FORK`]. One number, so that nothing is counted that a fork holds back, not
/// for a moment: a child that is forked in it would be cut off.
static COUNTS: AtomicU64 = AtomicU64::new(0);
const FORK: u64 = 1 << 32;
/// Whether whoever forks next knows of something that goes on and is not counted.
static UNQUIET: AtomicBool = AtomicBool::new(false);
static CUT_OFF: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How much of what is under way is the thread's own: a signal's handler may fork inside a call.
    static OWN: Cell<u64> = const { Cell::new(0) };
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let own = OWN.get();
    if COUNTS.swap(own, Ordering::Relaxed) % FORK > own || UNQUIET.load(Ordering::Relaxed) {
        CUT_OFF.store(true, Ordering::Relaxed);
    }
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
        if OWN.get() > 0 {
            return Self::inside();
        }
        let mut counts = COUNTS.load(Ordering::Relaxed);
        loop {
            if counts >= FORK {
                thread::sleep(POLL_INTERVAL);
                counts = COUNTS.load(Ordering::Relaxed);
                continue;
            }
            match COUNTS.compare_exchange_weak(counts, counts + 1, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => counts = now,
            }
        }
        OWN.set(1);
        Self(())
    }

    /// Likewise, and waits for nothing.
    #[inline]
    pub fn inside() -> Self {
        OWN.set(OWN.get() + 1);
        COUNTS.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for UnderWay {
    #[inline]
    fn drop(&mut self) {
        OWN.set(OWN.get() - 1);
        COUNTS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether something is under way in other threads.
pub fn others_are_under_way() -> bool {
    COUNTS.load(Ordering::SeqCst) % FORK > OWN.get()
}

/// The thread is about to fork: from now on nothing begins elsewhere, until [`end_fork`].
pub fn begin_fork() {
    watch();
    COUNTS.fetch_add(FORK, Ordering::SeqCst);
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
    // What went on then says nothing of the next one, which may not be announced.
    UNQUIET.store(false, Ordering::SeqCst);
    COUNTS.fetch_sub(FORK, Ordering::SeqCst);
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
            // What is held back is not counted, not even while it looks whether it may go on.
            for _ in 0..8 {
                scope.spawn(|| drop(UnderWay::begin()));
            }
            let end = Instant::now() + Duration::from_millis(200);
            while Instant::now() < end {
                assert!((0..1000).all(|_| !others_are_under_way()));
            }
            end_fork();
        });
        assert!(began.load(Ordering::SeqCst));
        begin_fork();
        set_unquiet(true);
        assert!(ask_child(is_cut_off));
        end_fork();
        assert!(ask_child(|| !is_cut_off()), "what went on at one fork says nothing of the next");
    }
}
