//! The threads that run parallel loops.
//!
//! A loop over `0..total` is cut into one contiguous span per thread, as a static schedule would, so that a thread
//! streams through memory and finds in its caches what it left there at the last loop. A thread takes its span in
//! chunks that become smaller towards the end; when it is done it takes chunks from the spans of others. The caller is
//! one of the threads. Idle workers watch for the next loop for a while, then sleep; those that a loop wakes wake others.
//!
//! Beside loops workers serve *sources*, things that have work now and then, each by one worker at a time and in turn with loops.
//!
//! Laws:
//! * A loop never waits for a thread to begin: whatever nobody has taken, its caller does itself. So loops may nest,
//!   and any number of threads may run loops at once.
//! * A loop of one chunk touches no other thread and no memory of the pool that changes; no loop takes a lock.
//! * When [`Pool::run`] returns or unwinds, no thread is inside the loop's body.
//! * A forked child may use the pool: it gets threads of its own at its first loop.
//!
//! This knows nothing of kernels or devices: a body is a closure over a range.

mod background;
mod job;
mod job_table;
mod sync;
mod workers;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use octants_hal::{Cancel, forked};

pub use background::Source;
use job::Job;
pub(crate) use workers::STACK_BYTES;
use workers::WorkerSet;

/// What a loop runs: the thread's number within this loop, and a range of iterations. Numbers are below
/// [`Pool::threads`]; no two threads have the same one at the same time, so it may index private memory.
pub type Body<'a> = &'a (dyn Fn(usize, u64, u64) + Sync);

/// How a loop is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Schedule<'a> {
    /// Fewest iterations that are worth handing to a thread on their own. Zero counts as one.
    pub grain: u64,
    /// Most iterations that a thread takes at once, unless the grain is more.
    pub max_chunk: u64,
    /// Most threads to use, the caller included. More than the pool has means all.
    pub max_threads: usize,
    /// Looked at between chunks: once it is set, no further chunk is begun.
    pub cancel: Option<&'a Cancel>,
}

/// Whether all iterations were run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    Completed,
    Cancelled,
}

/// A set of threads. Dropping it ends them.
pub struct Pool {
    /// Never null. Only replaced in a forked child, where the old threads do not exist.
    workers: AtomicPtr<WorkerSet>,
    threads: usize,
    spin_time: Duration,
}

/// How long an idle worker spins for the next loop before it sleeps. Waking a sleeping thread takes one or two microseconds, longer than many
/// loops; on the other hand a spinning thread is a busy processor. Chosen, not measured: longer than what Python does between two
/// launches of one time step.
pub const SPIN_TIME: Duration = Duration::from_micros(50);

impl Pool {
    /// A pool in which `threads` threads run a loop, the caller included: it starts one fewer. Zero means one per
    /// processor that this process may use.
    pub fn new(threads: usize) -> Pool {
        Pool::with_spin_time(threads, SPIN_TIME)
    }

    /// As [`Pool::new`], with another time that idle workers watch before they sleep.
    pub fn with_spin_time(threads: usize, spin_time: Duration) -> Pool {
        let threads = if threads == 0 { processors() } else { threads };
        forked::watch();
        let workers = AtomicPtr::new(Box::into_raw(Box::new(WorkerSet::spawn(threads - 1, spin_time))));
        Pool { workers, threads, spin_time }
    }

    /// How many threads may run one loop, the caller included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// How many threads a loop over `0..total` may run on: their numbers are below this.
    pub fn threads_for(&self, total: u64, grain: u64, max_threads: usize) -> usize {
        let worth = total.div_ceil(grain.max(1));
        self.threads.min(max_threads).min(usize::try_from(worth).unwrap_or(usize::MAX)).max(1)
    }

    /// Whether a loop on so many threads would have to wake workers first, which takes longer than calling those that are awake.
    pub fn is_asleep(&self, threads: usize) -> bool {
        self.workers().is_asleep(threads)
    }

    /// Runs `body` over all of `0..total`, each iteration once, on several threads. Returns when all is done.
    ///
    /// # Panics
    /// If the body does. Other threads finish the chunks that they have begun, then the caller gets one of the panics.
    pub fn run(&self, total: u64, schedule: &Schedule<'_>, body: Body<'_>) -> Outcome {
        if schedule.cancel.is_some_and(Cancel::is_wanted) {
            return Outcome::Cancelled;
        }
        let grain = schedule.grain.max(1);
        let worth = total.div_ceil(grain);
        let threads = self.threads_for(total, grain, schedule.max_threads);
        if worth <= 1 {
            if total > 0 {
                body(0, 0, total);
            }
            return Outcome::Completed;
        }

        let job =
            Job::new(total, grain..=schedule.max_chunk.max(grain), threads.max(1), schedule.cancel, body);
        if threads > 1 {
            self.workers().run(&job);
        } else {
            job.work(0, &|| false);
        }
        if let Some(panic) = job.take_panic() {
            resume_unwind(panic);
        }
        if job.cancelled() { Outcome::Cancelled } else { Outcome::Completed }
    }

    /// Has a worker serve the source soon, those of priority 0 first. Workers for sources are one more than those for loops: where a thread
    /// only offers sources and sleeps, all processors are busy.
    pub fn offer(&self, source: Arc<dyn Source>, priority: usize) {
        self.workers().offer(source, priority);
    }

    /// Whether there is a thread that serves sources. The system may refuse to start any: then whoever waits for a source serves it.
    pub fn serves_sources(&self) -> bool {
        self.workers().has_workers_for_sources()
    }

    /// Whether a source waits for a worker.
    pub fn any_waits(&self) -> bool {
        self.workers().any_waits()
    }

    /// The current thread, which has nothing to do, takes part in somebody's loop until `until`; looked at between chunks. Whether there was
    /// one to take part in.
    pub fn help(&self, until: &dyn Fn() -> bool) -> bool {
        self.workers().help(until)
    }

    /// Ends the workers and waits for them. Loops still run, on their callers' threads; sources that wait are forgotten.
    pub fn stop(&self) {
        let workers = self.workers.load(Ordering::Acquire);
        // SAFETY: as in `workers`.
        let workers = unsafe { &*workers };
        // In a child of the process that made them there is nothing to end.
        if workers.is_of_this_process() {
            workers.shut_down();
        }
    }

    fn workers(&self) -> &WorkerSet {
        let current = self.workers.load(Ordering::Acquire);
        // SAFETY: never null; what it points to is only freed by `drop`, which excludes all other uses.
        let workers = unsafe { &*current };
        if workers.is_of_this_process() {
            return workers;
        }
        // In a child of the process that made the pool. The old set is left alone for ever: its lock may have been
        // held by a thread that does not exist here.
        let fresh = Box::into_raw(Box::new(WorkerSet::spawn(self.threads - 1, self.spin_time)));
        match self.workers.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as above.
            Ok(_) => unsafe { &*fresh },
            Err(other) => {
                // SAFETY: `fresh` was never shared; `other` as above.
                unsafe {
                    drop(Box::from_raw(fresh));
                    &*other
                }
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw`, and no loop is running, as nobody else has a reference.
        let workers = unsafe { Box::from_raw(*self.workers.get_mut()) };
        if workers.is_of_this_process() {
            workers.shut_down();
        } else {
            // Its threads cannot be joined here, and its lock may be held for ever.
            std::mem::forget(workers);
        }
    }
}

/// A number that differs between a process and its forked children.
pub fn generation() -> u32 {
    forked::generation()
}

/// How many processors this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests;
