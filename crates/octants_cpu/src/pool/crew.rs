//! The workers, and the list of loops that they look for work in.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::fork;
use super::job::Job;

/// Local arrays of kernels live on the stack. Untouched pages cost nothing.
const STACK: usize = 16 << 20;
/// Up to this many sleepers are woken one by one; more, all at once.
const ONE_BY_ONE: usize = 4;

/// A loop in the list. The pointer is valid while it is listed: its caller removes it before it returns.
#[derive(Clone, Copy)]
struct Listed(*const Job<'static>);
// SAFETY: `Job` is used by several threads at once by design: its body is `Sync`, all else is atomic or locked.
unsafe impl Send for Listed {}

struct Board {
    /// Loops that may want workers.
    jobs: Vec<Listed>,
    /// Workers that sleep.
    asleep: usize,
}

struct Shared {
    board: Mutex<Board>,
    wake: Condvar,
    /// Changes whenever a loop is listed or the crew is dismissed.
    news: AtomicU32,
    over: AtomicBool,
    patience: Duration,
}

impl Shared {
    fn board(&self) -> MutexGuard<'_, Board> {
        // Bodies run outside of the lock, so a panic never leaves the board half changed.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Crew {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    generation: u32,
}

impl Crew {
    /// Starts workers. If the system refuses some of them, the crew is smaller; loops do not depend on them.
    pub(super) fn hire(workers: usize, patience: Duration) -> Crew {
        let shared = Arc::new(Shared {
            board: Mutex::new(Board { jobs: Vec::with_capacity(16), asleep: 0 }),
            wake: Condvar::new(),
            news: AtomicU32::new(0),
            over: AtomicBool::new(false),
            patience,
        });
        let workers = (1..=workers)
            .map_while(|number| {
                let shared = Arc::clone(&shared);
                let thread = thread::Builder::new().name(format!("octants-{number}")).stack_size(STACK);
                thread.spawn(move || serve(&shared, number)).ok()
            })
            .collect();
        Crew { shared, workers, generation: fork::generation() }
    }

    /// Whether the workers exist in this process.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.generation == fork::generation()
    }

    /// Runs a loop on the current thread and on those workers that come. Returns when nobody is inside it.
    pub(super) fn run(&self, job: &Job<'_>) {
        let listed = Listed(ptr::from_ref(job).cast());
        let sleepers = {
            let mut board = self.shared.board();
            board.jobs.push(listed);
            self.shared.news.fetch_add(1, Ordering::Release);
            board.asleep.min(job.wanted())
        };
        if sleepers > ONE_BY_ONE {
            self.shared.wake.notify_all();
        } else {
            (0..sleepers).for_each(|_| self.shared.wake.notify_one());
        }

        job.work(0);

        self.shared.board().jobs.retain(|other| !ptr::eq(other.0, listed.0));
        job.wait(self.shared.patience);
    }

    /// Ends the workers and waits for them.
    pub(super) fn dismiss(self) {
        self.shared.over.store(true, Ordering::Relaxed);
        {
            let _board = self.shared.board();
            self.shared.news.fetch_add(1, Ordering::Release);
        }
        self.shared.wake.notify_all();
        for worker in self.workers {
            // A worker never panics: bodies are caught.
            drop(worker.join());
        }
    }
}

/// A worker's life.
fn serve(shared: &Shared, number: usize) {
    let mut seen = shared.news.load(Ordering::Acquire);
    loop {
        let found = {
            let board = shared.board();
            // The oldest loop first. Under the lock, as it keeps the loop's caller from removing it.
            board.jobs.iter().find_map(|listed| {
                // SAFETY: listed, and the lock is held.
                let number = unsafe { (*listed.0).join(number) }?;
                Some((*listed, number))
            })
        };
        if let Some((listed, number)) = found {
            // SAFETY: `join` let this worker in, so the caller waits until it leaves; `leave` is the last use.
            unsafe {
                (*listed.0).work(number);
                (*listed.0).leave();
            }
            continue;
        }
        if shared.over.load(Ordering::Relaxed) {
            return;
        }
        seen = wait_for_news(shared, seen);
    }
}

fn wait_for_news(shared: &Shared, seen: u32) -> u32 {
    let begin = Instant::now();
    loop {
        for _ in 0..32 {
            let news = shared.news.load(Ordering::Acquire);
            if news != seen {
                return news;
            }
            std::hint::spin_loop();
        }
        if begin.elapsed() >= shared.patience {
            break;
        }
    }
    let mut board = shared.board();
    board.asleep += 1;
    // News comes under the lock, so none is missed between looking and sleeping.
    while shared.news.load(Ordering::Relaxed) == seen {
        board = shared.wake.wait(board).unwrap_or_else(PoisonError::into_inner);
    }
    board.asleep -= 1;
    shared.news.load(Ordering::Relaxed)
}
