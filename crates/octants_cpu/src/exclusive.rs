//! Launches that nothing else runs beside, on a device with one thread: their code updates memory without locked instructions.
//!
//! The first thread that launches *owns* the device. Its launches on the default stream are exclusive, and never wait, until another thread
//! runs a task: from then on nobody's are. That thread waits once, for the launch that the owner is in.
//!
//! Laws:
//! * While an exclusive launch runs, no other thread is in a task, unless the owner itself gave something to one meanwhile.
//! * A device that was shared once stays so; a forked child begins anew.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::pool::generation;
use crate::stream::this_thread;

/// How long a thread spins for the end of the owner's launch before it sleeps, and for how long it then does. Chosen, not measured: a thread waits
/// once in its life.
const SPIN_TIME: Duration = Duration::from_micros(5);
const SLEEP_TIME: Duration = Duration::from_micros(50);

#[derive(Default)]
pub(crate) struct Exclusive {
    /// The thread that owns the device, in the process that it is a thread of; 0 before the first launch.
    owner: AtomicU64,
    shared: AtomicBool,
    /// Exclusive launches that the owner is in: a signal's handler may launch inside one. Written by the owner alone.
    depth: AtomicU32,
}

impl Exclusive {
    /// Whether the calling thread's next launch is exclusive. If so, it ends with [`Self::end`].
    #[inline]
    pub fn begin(&self) -> bool {
        if self.shared.load(Ordering::Relaxed) || !self.is_owner() {
            return false;
        }
        let depth = self.depth.load(Ordering::Relaxed);
        // Either this is seen by a thread that shares the device, or that is seen here.
        self.depth.swap(depth + 1, Ordering::SeqCst);
        if self.shared.load(Ordering::SeqCst) {
            self.depth.store(depth, Ordering::Release);
            return false;
        }
        true
    }

    #[inline]
    pub fn end(&self) {
        let depth = self.depth.load(Ordering::Relaxed);
        self.depth.store(depth.saturating_sub(1), Ordering::Release);
    }

    /// Before the calling thread runs a task: lets others than the owner share the device.
    #[inline]
    pub fn enter(&self) {
        if self.shared.load(Ordering::Acquire) && self.depth.load(Ordering::Acquire) == 0 || self.is_owner() {
            return;
        }
        self.share();
    }

    /// Whether the calling thread would wait for the owner before it ran a task.
    pub fn is_others(&self) -> bool {
        !self.shared.load(Ordering::Relaxed) && !self.is_owner()
    }

    /// Before the calling thread gives work to another: if it does so inside an exclusive launch, in a signal's handler, the other one does not
    /// wait for the launch, since the handler may wait for it.
    pub fn hand_out(&self) {
        if self.depth.load(Ordering::Relaxed) > 0 && self.is_owner() {
            self.shared.store(true, Ordering::SeqCst);
            self.depth.store(0, Ordering::SeqCst);
        }
    }

    #[cold]
    fn share(&self) {
        self.shared.store(true, Ordering::SeqCst);
        let begin = Instant::now();
        while self.depth.load(Ordering::SeqCst) > 0 {
            if begin.elapsed() < SPIN_TIME {
                std::hint::spin_loop();
            } else {
                thread::sleep(SLEEP_TIME);
            }
        }
    }

    #[inline]
    fn is_owner(&self) -> bool {
        let owner = self.owner.load(Ordering::Relaxed);
        owner == current() || self.takes_over(owner)
    }

    /// Whether the calling thread becomes the owner: nobody is yet, or nobody in this process.
    #[cold]
    fn takes_over(&self, owner: u64) -> bool {
        if owner != 0 && process_of(owner) == process_of(current()) {
            return false;
        }
        let took =
            self.owner.compare_exchange(owner, current(), Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if took && owner != 0 {
            self.depth.store(0, Ordering::Relaxed);
            self.shared.store(false, Ordering::Relaxed);
        }
        took
    }
}

/// Addresses have 48 bits.
const ADDRESS_BITS: u32 = 48;

/// A number that no other live thread of the process has, nor of its parents; not 0.
fn current() -> u64 {
    this_thread() & ((1 << ADDRESS_BITS) - 1) | u64::from(generation()) << ADDRESS_BITS
}

fn process_of(thread: u64) -> u64 {
    thread >> ADDRESS_BITS
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::Exclusive;

    #[test]
    fn the_first_thread_owns_the_device_until_another_runs_a_task() {
        let exclusive = Exclusive::default();
        assert!(exclusive.begin(), "nobody else is there");
        assert!(exclusive.begin(), "a signal's handler launches inside");
        exclusive.end();
        exclusive.enter();
        exclusive.end();
        thread::scope(|scope| {
            scope.spawn(|| {
                assert!(!exclusive.begin() && exclusive.is_others());
                exclusive.enter();
                assert!(!exclusive.begin() && !exclusive.is_others());
            });
        });
        assert!(!exclusive.begin(), "it is shared for ever");
        exclusive.enter();
    }

    #[test]
    fn another_thread_waits_for_the_launch_that_runs() {
        let exclusive = Exclusive::default();
        assert!(exclusive.begin());
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            let shared = &exclusive;
            scope.spawn(move || {
                shared.enter();
                sender.send(()).expect("somebody listens");
            });
            assert!(receiver.recv_timeout(Duration::from_millis(20)).is_err(), "it did not wait");
            exclusive.end();
            receiver.recv().expect("it goes on");
        });
    }

    #[test]
    fn work_that_is_handed_out_inside_a_launch_waits_for_nobody() {
        let exclusive = Exclusive::default();
        assert!(exclusive.begin());
        exclusive.hand_out();
        thread::scope(|scope| {
            scope.spawn(|| exclusive.enter());
        });
        exclusive.end();
        assert!(!exclusive.begin());
    }
}
