//! The workers: they wait for jobs in the table, run parts of them, and wait again.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use super::fork;
use super::job::Job;
use super::job_table::{JobTable, MAX_WORKERS_PER_JOB};

/// Bytes of a worker's stack: local arrays of kernels live there. Chosen: twice the main thread's usual eight megabytes; untouched pages
/// cost nothing.
pub(crate) const STACK_BYTES: usize = 16 << 20;

/// Loops that may be published at a time; further callers run theirs alone. Chosen, not measured: as many callers as the largest
/// machine of `benches/threads.py` has cores.
const JOB_SLOTS: usize = 16;

/// Sleepers that one thread wakes before it works; those wake others. A wake takes its caller one or two microseconds: with 16 threads
/// the last one is awake after three rounds instead of fifteen wakes.
const WAKES_PER_THREAD: usize = 2;

/// How long a worker leaves a permit to those that had it in the last loop, whose caches hold its data. Chosen, not measured: about the time
/// that a worker which watches takes to enter.
const PREFERENCE_TIME: Duration = Duration::from_micros(1);

/// A worker that is still inside so long after the caller ran out of work has lost its processor, perhaps to the caller: from then on the
/// caller yields while it waits. Chosen, not measured: several times what leaving a loop takes.
const SPIN_BEFORE_YIELD: Duration = Duration::from_micros(5);

/// How often a caller that waits for workers looks whether the loop is to stop. Chosen: Ctrl-C is to be heard within half a second.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(20);

struct Shared {
    table: JobTable<Job<'static>>,
    /// By number; none for number 0, which is every caller's own.
    workers: Box<[OnceLock<Thread>]>,
    shutting_down: AtomicBool,
    spin_time: Duration,
}

pub(super) struct WorkerSet {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    generation: u32,
}

impl WorkerSet {
    /// Starts workers. If the system refuses some of them, the set is smaller; loops do not depend on them.
    pub(super) fn spawn(workers: usize, spin_time: Duration) -> WorkerSet {
        let numbers = workers.min(MAX_WORKERS_PER_JOB) + 1;
        let shared = Arc::new(Shared {
            table: JobTable::new(JOB_SLOTS, numbers),
            workers: (0..numbers).map(|_| OnceLock::new()).collect(),
            shutting_down: AtomicBool::new(false),
            spin_time,
        });
        let workers = (1..numbers)
            .map_while(|number| {
                let shared = Arc::clone(&shared);
                let thread = thread::Builder::new().name(format!("octants-{number}")).stack_size(STACK_BYTES);
                thread.spawn(move || shared.run_worker(number)).ok()
            })
            .collect();
        WorkerSet { shared, workers, generation: fork::generation() }
    }

    /// Whether the workers exist in this process.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.generation == fork::generation()
    }

    /// Whether a loop on so many threads would have to wake workers.
    pub(super) fn is_asleep(&self, threads: usize) -> bool {
        self.shared.table.any_asleep(threads.min(self.shared.workers.len()))
    }

    /// Runs a loop on the current thread and on those workers that come. Returns when nobody is inside it.
    pub(super) fn run(&self, job: &Job<'_>) {
        let shared = &*self.shared;
        let published = shared.table.publish(ptr::from_ref(job).cast(), job.threads() - 1);
        if published.is_some() {
            shared.wake_some(job);
        }
        job.work(0);
        if let Some(published) = published {
            let begin = Instant::now();
            let keep_spinning = || {
                let waited = begin.elapsed();
                if waited > SPIN_BEFORE_YIELD {
                    thread::yield_now();
                }
                waited < shared.spin_time
            };
            // A request to stop may be one that only the caller can confirm.
            let sleep = || {
                thread::park_timeout(CANCEL_POLL_INTERVAL);
                job.should_stop();
            };
            shared.table.close(published, keep_spinning, |caller| job.set_caller(caller), sleep);
        }
    }

    /// Ends the workers and waits for them.
    pub(super) fn shut_down(self) {
        self.shared.shutting_down.store(true, Ordering::Relaxed);
        self.shared.table.announce();
        (1..self.shared.workers.len()).for_each(|number| {
            self.shared.wake(number);
        });
        for worker in self.workers {
            // A worker never panics: bodies are caught.
            drop(worker.join());
        }
    }
}

impl Shared {
    /// Wakes a worker that sleeps; whether it did.
    fn wake(&self, number: usize) -> bool {
        let woken = self.table.wake(number);
        if woken && let Some(worker) = self.workers[number].get() {
            worker.unpark();
        }
        woken
    }

    /// Wakes a few of the workers that the loop wants.
    fn wake_some(&self, job: &Job<'_>) {
        let end = job.threads().min(self.workers.len());
        let mut woken = 0;
        while woken < WAKES_PER_THREAD
            && self.table.any_asleep(end)
            && let Some(number) = job.next_to_wake().filter(|&number| number < end)
        {
            woken += usize::from(self.wake(number));
        }
    }

    /// A worker's thread: runs jobs until the set is shut down.
    fn run_worker(&self, number: usize) {
        // Set once: each number has one thread.
        drop(self.workers[number].set(thread::current()));
        loop {
            let seen = self.table.epoch();
            if self.run_one_job(number, false) {
                continue;
            }
            if self.shutting_down.load(Ordering::Relaxed) {
                return;
            }
            let spin_time = self.spin_time;
            let found = self.wait_for_epoch(seen, PREFERENCE_TIME.min(spin_time))
                || self.run_one_job(number, true)
                || self.wait_for_epoch(seen, spin_time);
            if !found {
                self.table.sleep(number, seen);
            }
        }
    }

    /// Whether there was a loop to work on.
    fn run_one_job(&self, number: usize, eager: bool) -> bool {
        let Some(entered) = self.table.enter(number, eager) else { return false };
        // SAFETY: the worker is inside until it leaves, and the caller waits for that.
        let job = unsafe { &*entered.job };
        self.wake_some(job);
        if let Some(number) = job.join(number) {
            job.work(number);
        }
        self.table.leave(entered, |job| {
            // SAFETY: asked for while the worker is still inside.
            unsafe { (*job).caller() }
        });
        true
    }

    /// Spins until the epoch differs from `seen`; whether it did in time.
    fn wait_for_epoch(&self, seen: u32, spin_time: Duration) -> bool {
        let begin = Instant::now();
        loop {
            for _ in 0..32 {
                if self.table.epoch() != seen {
                    return true;
                }
                std::hint::spin_loop();
            }
            if begin.elapsed() >= spin_time {
                return false;
            }
        }
    }
}
