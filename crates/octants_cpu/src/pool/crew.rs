//! The workers: they wait for loops on the board, take part, and wait again.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use super::board::{Board, MOST_PLACES};
use super::fork;
use super::job::Job;

/// Bytes of a worker's stack: local arrays of kernels live there. Untouched pages cost nothing.
pub(crate) const STACK: usize = 16 << 20;

/// Loops on offer at a time; further callers run theirs alone.
const SLOTS: usize = 16;

/// Sleepers that one thread wakes before it works; those wake others. A wake takes its caller one or two microseconds.
const WAKES: usize = 2;

/// How long a worker leaves a place to those that had it in the last loop.
const COURTESY: Duration = Duration::from_micros(1);

/// A worker that is still inside so long after the caller ran out of work has lost its processor, perhaps to the caller: from then on the
/// caller yields while it waits.
const LATE: Duration = Duration::from_micros(5);

/// How often a caller that waits for workers looks whether the loop is to stop.
const CALLER_LOOKS: Duration = Duration::from_millis(20);

struct Shared {
    board: Board<Job<'static>>,
    /// By number; none for number 0, which is every caller's own.
    workers: Box<[OnceLock<Thread>]>,
    over: AtomicBool,
    patience: Duration,
}

pub(super) struct Crew {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    generation: u32,
}

impl Crew {
    /// Starts workers. If the system refuses some of them, the crew is smaller; loops do not depend on them.
    pub(super) fn hire(workers: usize, patience: Duration) -> Crew {
        let numbers = workers.min(MOST_PLACES) + 1;
        let shared = Arc::new(Shared {
            board: Board::new(SLOTS, numbers),
            workers: (0..numbers).map(|_| OnceLock::new()).collect(),
            over: AtomicBool::new(false),
            patience,
        });
        let workers = (1..numbers)
            .map_while(|number| {
                let shared = Arc::clone(&shared);
                let thread = thread::Builder::new().name(format!("octants-{number}")).stack_size(STACK);
                thread.spawn(move || shared.serve(number)).ok()
            })
            .collect();
        Crew { shared, workers, generation: fork::generation() }
    }

    /// Whether the workers exist in this process.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.generation == fork::generation()
    }

    /// Whether a loop on so many threads would have to wake workers.
    pub(super) fn is_asleep(&self, threads: usize) -> bool {
        self.shared.board.any_asleep(threads.min(self.shared.workers.len()))
    }

    /// Runs a loop on the current thread and on those workers that come. Returns when nobody is inside it.
    pub(super) fn run(&self, job: &Job<'_>) {
        let shared = &*self.shared;
        let offer = shared.board.offer(ptr::from_ref(job).cast(), job.threads() - 1);
        if offer.is_some() {
            shared.wake_some(job);
        }
        job.work(0);
        if let Some(offer) = offer {
            let begin = Instant::now();
            let keep_spinning = || {
                let waited = begin.elapsed();
                if waited > LATE {
                    thread::yield_now();
                }
                waited < shared.patience
            };
            // A request to stop may be one that only the caller can confirm.
            let sleep = || {
                thread::park_timeout(CALLER_LOOKS);
                job.should_stop();
            };
            shared.board.close(offer, keep_spinning, |caller| job.set_caller(caller), sleep);
        }
    }

    /// Ends the workers and waits for them.
    pub(super) fn dismiss(self) {
        self.shared.over.store(true, Ordering::Relaxed);
        self.shared.board.announce();
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
        let woken = self.board.wake(number);
        if woken && let Some(worker) = self.workers[number].get() {
            worker.unpark();
        }
        woken
    }

    /// Wakes a few of the workers that the loop wants.
    fn wake_some(&self, job: &Job<'_>) {
        let end = job.threads().min(self.workers.len());
        let mut woken = 0;
        while woken < WAKES
            && self.board.any_asleep(end)
            && let Some(number) = job.next_to_wake().filter(|&number| number < end)
        {
            woken += usize::from(self.wake(number));
        }
    }

    /// A worker's life.
    fn serve(&self, number: usize) {
        // Set once: each number has one thread.
        drop(self.workers[number].set(thread::current()));
        loop {
            let seen = self.board.news();
            if self.take_part(number, false) {
                continue;
            }
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            let patience = self.patience;
            let found = self.watch(seen, COURTESY.min(patience))
                || self.take_part(number, true)
                || self.watch(seen, patience);
            if !found {
                self.board.sleep(number, seen);
            }
        }
    }

    /// Whether there was a loop to work on.
    fn take_part(&self, number: usize, eager: bool) -> bool {
        let Some(entered) = self.board.enter(number, eager) else { return false };
        // SAFETY: the worker is inside until it leaves, and the caller waits for that.
        let job = unsafe { &*entered.job };
        self.wake_some(job);
        if let Some(number) = job.join(number) {
            job.work(number);
        }
        self.board.leave(entered, |job| {
            // SAFETY: asked for while the worker is still inside.
            unsafe { (*job).caller() }
        });
        true
    }

    /// Waits for news; whether some came in time.
    fn watch(&self, seen: u32, patience: Duration) -> bool {
        let begin = Instant::now();
        loop {
            for _ in 0..32 {
                if self.board.news() != seen {
                    return true;
                }
                std::hint::spin_loop();
            }
            if begin.elapsed() >= patience {
                return false;
            }
        }
    }
}
