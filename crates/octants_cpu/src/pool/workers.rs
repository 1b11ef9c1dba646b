//! The workers: they wait for jobs in the table and for sources with work, run parts of them, and wait again.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use octants_hal::forked;

use super::background::{Source, WaitingSources};
use super::job::Job;
use super::job_table::{EnteredJob, JobTable, MAX_WORKERS_PER_JOB};

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

thread_local! {
    /// Whether the thread is a worker, of whichever pool.
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// The number of a thread that is no worker: no loop prefers it.
const NO_WORKER: usize = u32::MAX as usize - 1;

struct Shared {
    table: JobTable<Job<'static>>,
    /// By number; none for number 0, which is every caller's own.
    workers: Box<[OnceLock<Thread>]>,
    sources: WaitingSources,
    /// By number: whether the worker watches for work.
    watching: Box<[Watching]>,
    shutting_down: AtomicBool,
    spin_time: Duration,
}

/// On a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Watching(AtomicBool);

pub(super) struct WorkerSet {
    shared: Arc<Shared>,
    /// Empty once they were shut down.
    workers: Mutex<Vec<JoinHandle<()>>>,
    /// Whether there is a worker more than loops need, in the place of a caller that sleeps.
    extra: OnceLock<bool>,
    generation: u32,
}

impl WorkerSet {
    /// Starts workers for loops. If the system refuses some of them, the set is smaller; loops do not depend on them.
    pub(super) fn spawn(workers: usize, spin_time: Duration) -> WorkerSet {
        let extra = workers.min(MAX_WORKERS_PER_JOB) + 1;
        let numbers = extra + 1;
        let shared = Arc::new(Shared {
            table: JobTable::new(JOB_SLOTS, numbers),
            workers: (0..numbers).map(|_| OnceLock::new()).collect(),
            sources: WaitingSources::default(),
            watching: (0..numbers).map(|_| Watching::default()).collect(),
            shutting_down: AtomicBool::new(false),
            spin_time,
        });
        let workers = (1..extra).map_while(|number| shared.start_worker(number)).collect();
        let generation = forked::generation();
        WorkerSet { shared, workers: Mutex::new(workers), extra: OnceLock::new(), generation }
    }

    /// Whether the workers exist in this process.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.generation == forked::generation()
    }

    /// Whether a loop on so many threads would have to wake workers.
    pub(super) fn is_asleep(&self, threads: usize) -> bool {
        self.shared.table.any_asleep(threads.min(self.shared.workers.len()))
    }

    /// Has a worker serve the source.
    pub(super) fn offer(&self, source: Arc<dyn Source>, priority: usize) {
        self.has_workers_for_sources();
        self.shared.sources.add(source, priority);
        self.shared.table.announce();
        self.shared.wake_for_sources();
    }

    /// Whether there is a worker that serves sources; the first time, starts one more than loops need.
    pub(super) fn has_workers_for_sources(&self) -> bool {
        let start = || {
            let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
            workers.extend(self.shared.start_worker(self.shared.workers.len() - 1));
            !workers.is_empty()
        };
        *self.extra.get_or_init(start)
    }

    /// Whether a source waits for a worker.
    pub(super) fn any_waits(&self) -> bool {
        self.shared.sources.any()
    }

    /// The current thread, which is no worker, takes part in somebody's loop until `until`. Whether there was one.
    pub(super) fn help(&self, until: &dyn Fn() -> bool) -> bool {
        let Some(entered) = self.shared.table.enter(NO_WORKER, true) else { return false };
        // SAFETY: the thread is inside until it leaves, and the caller waits for that.
        let job = unsafe { &*entered.job };
        let joined = job.join(NO_WORKER).inspect(|&number| job.work(number, until));
        self.shared.leave(entered);
        joined.is_some()
    }

    /// Runs a loop on the current thread and on those workers that come. Returns when nobody is inside it.
    pub(super) fn run(&self, job: &Job<'_>) {
        let shared = &*self.shared;
        let extra = shared.workers.len() - 1;
        let by_worker = IS_WORKER.get();
        let end = if by_worker { u32::MAX } else { extra as u32 };
        let published = shared.table.publish(ptr::from_ref(job).cast(), job.threads() - 1, end);
        if published.is_some() {
            shared.wake_some(job);
            // A caller that is a worker is missing among them.
            if by_worker {
                shared.wake(extra);
            }
        }
        job.work(0, &|| false);
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

    /// Ends the workers and waits for them. Sources that wait are forgotten.
    pub(super) fn shut_down(&self) {
        self.shared.shutting_down.store(true, Ordering::Relaxed);
        self.shared.table.announce();
        (1..self.shared.workers.len()).for_each(|number| {
            self.shared.wake(number);
        });
        let workers = std::mem::take(&mut *self.workers.lock().unwrap_or_else(PoisonError::into_inner));
        for worker in workers {
            // A worker never panics: bodies are caught.
            drop(worker.join());
        }
        self.shared.sources.clear();
    }
}

impl Shared {
    fn start_worker(self: &Arc<Self>, number: usize) -> Option<JoinHandle<()>> {
        let shared = Arc::clone(self);
        let thread = thread::Builder::new().name(format!("octants-{number}")).stack_size(STACK_BYTES);
        thread.spawn(move || shared.run_worker(number)).ok()
    }

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

    /// Wakes a worker for the sources that wait, unless one is awake and will find them. After an announcement.
    fn wake_for_sources(&self) {
        let all = self.workers.len();
        if self.table.any_asleep(all) && !self.watching.iter().any(|worker| worker.0.load(Ordering::Relaxed))
        {
            // Whichever: sources are not bound to a worker.
            let _ = (1..all).any(|number| self.wake(number));
        }
    }

    /// A worker's thread: runs jobs and serves sources, in turn, until the set is shut down. The last one, which is there for sources, takes
    /// part in loops of other workers alone, and is not kept awake by those of others: their callers need its processor.
    fn run_worker(&self, number: usize) {
        // Set once: each number has one thread.
        drop(self.workers[number].set(thread::current()));
        IS_WORKER.set(true);
        let is_extra = number + 1 == self.workers.len();
        let (mut source_first, mut last_work) = (false, Instant::now());
        // After a source the thread that offered it may wait, for this very processor.
        let mut yields = false;
        loop {
            let seen = self.table.epoch();
            source_first = !source_first;
            let served = source_first && self.serve_one_source();
            let worked = !served && self.run_one_job(number, is_extra);
            let served = served || !worked && self.serve_one_source();
            if served || worked {
                yields = served;
                if is_extra {
                    last_work = Instant::now();
                }
                continue;
            }
            if self.shutting_down.load(Ordering::Relaxed) {
                return;
            }
            let mut spin_time = self.spin_time;
            if is_extra {
                spin_time = spin_time.saturating_sub(last_work.elapsed());
            }
            let found = self.watch(number, seen, PREFERENCE_TIME.min(spin_time), yields)
                || self.run_one_job(number, true)
                || self.watch(number, seen, spin_time, yields);
            if !found {
                self.table.sleep(number, seen);
            }
        }
    }

    /// Whether there was a source to serve.
    fn serve_one_source(&self) -> bool {
        let Some(source) = self.sources.take() else { return false };
        // Those that it left are for others.
        if self.sources.any() {
            self.wake_for_sources();
        }
        source.run_some(&|| self.sources.any());
        true
    }

    /// Whether there was a loop to work on.
    fn run_one_job(&self, number: usize, eager: bool) -> bool {
        let Some(entered) = self.table.enter(number, eager) else { return false };
        // SAFETY: the worker is inside until it leaves, and the caller waits for that.
        let job = unsafe { &*entered.job };
        self.wake_some(job);
        // What was announced with the loop is for others.
        if self.sources.any() {
            self.wake_for_sources();
        }
        if let Some(number) = job.join(number) {
            job.work(number, &|| false);
        }
        self.leave(entered);
        true
    }

    fn leave(&self, entered: EnteredJob<Job<'static>>) {
        self.table.leave(entered, |job| {
            // SAFETY: asked for while the worker is still inside.
            unsafe { (*job).caller() }
        });
    }

    /// Spins until the epoch differs from `seen`; whether it did in time. A worker that yields lets others have the processor meanwhile.
    fn watch(&self, number: usize, seen: u32, spin_time: Duration, yields: bool) -> bool {
        let watching = &self.watching[number].0;
        watching.store(true, Ordering::Relaxed);
        let found = self.wait_for_epoch(seen, spin_time, yields);
        // Before the worker is marked as asleep: who offers a source sees one of the two. And before it looks whether there are sources: either
        // it sees them, or whoever offers them sees that it does not watch.
        watching.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        found
    }

    fn wait_for_epoch(&self, seen: u32, spin_time: Duration, yields: bool) -> bool {
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
            if yields {
                thread::yield_now();
            }
        }
    }
}
