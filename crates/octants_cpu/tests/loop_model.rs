//! A loop of a launch under every interleaving of a few threads, as `loom` runs them: the caller publishes it in the pool's table, workers enter, own
//! a span, take chunks of it and of others', and leave. Each iteration runs once, on a thread whose number no other has meanwhile, and what it wrote is
//! there when the caller goes on.

#![allow(unsafe_code, reason = "the table hands out pointers, as it does in the pool")]

mod sync {
    pub(super) use loom::hint::spin_loop;
    pub(super) use loom::sync::Mutex;
    pub(super) use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(super) use loom::thread::{Thread, current, park};
}

/// As the pool has it.
type Body<'a> = &'a (dyn Fn(usize, u64, u64) + Sync);

#[path = "../src/pool/job.rs"]
#[allow(dead_code, reason = "the pool uses more of it")]
mod job;
#[path = "../src/pool/job_table.rs"]
#[allow(dead_code, reason = "the pool uses more of it")]
mod job_table;

use job::Job;
use job_table::JobTable;
use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;

/// A place of which `loom` tells if two threads are there at once, or one without what another left there.
struct Exclusive(UnsafeCell<u32>);

// SAFETY: no reference to what is inside leaves the place, and `loom` watches who is there.
unsafe impl Sync for Exclusive {}

impl Exclusive {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn add_one(&self) {
        // SAFETY: `loom` tells of others.
        self.0.with_mut(|count| unsafe { *count += 1 });
    }

    fn get(&self) -> u32 {
        // SAFETY: `loom` tells of others.
        self.0.with(|count| unsafe { *count })
    }
}

/// A worker that comes once.
fn come_to(table: &JobTable<Job<'static>>, worker: usize) {
    let Some(entered) = table.enter(worker, true) else { return };
    // SAFETY: the worker is inside until it leaves, and the caller waits for that.
    unsafe {
        let job = &*entered.job;
        if let Some(number) = job.join(worker) {
            job.work(number, &|| false);
        }
        table.leave(entered, |job| (*job).caller());
    }
}

/// What a launch does with a loop on several threads.
fn run(table: &JobTable<Job<'static>>, job: &Job<'_>) {
    let published = table.publish(std::ptr::from_ref(job).cast(), job.threads() - 1, u32::MAX);
    job.work(0, &|| false);
    if let Some(published) = published {
        // Never spins, so that parking is what is checked.
        table.close(published, || false, |caller| job.set_caller(caller), loom::thread::park);
    }
}

/// Loops of so many iterations, one after another, with so many workers; each comes once.
fn check(iterations: u64, loops: u32, workers: usize, preemptions: Option<usize>) {
    let mut model = Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        let table = Arc::new(JobTable::new(1, workers + 1));
        let workers: Vec<_> = (1..=workers)
            .map(|worker| {
                let table = Arc::clone(&table);
                thread::spawn(move || come_to(&table, worker))
            })
            .collect();
        let threads = workers.len() + 1;
        for _ in 0..loops {
            let ran: Vec<_> = (0..iterations).map(|_| Exclusive::new()).collect();
            let private: Vec<_> = (0..threads).map(|_| Exclusive::new()).collect();
            let body = |number: usize, begin: u64, end: u64| {
                private[number].add_one();
                (begin..end).for_each(|at| ran[at as usize].add_one());
            };
            run(&table, &Job::new(iterations, 1..=1, threads, None, &body));
            assert!(ran.iter().all(|count| count.get() == 1), "each iteration once");
            assert_eq!(private.iter().map(Exclusive::get).sum::<u32>(), iterations as u32);
        }
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

#[test]
fn each_iteration_runs_once_and_is_seen_by_the_caller() {
    check(3, 1, 1, None);
}

#[test]
fn a_worker_that_comes_late_enters_the_next_loop_or_none() {
    // All interleavings of two loops take minutes; nearly all defects need few preemptions.
    check(2, 2, 1, Some(3));
}

#[test]
fn workers_that_come_together_have_numbers_of_their_own() {
    check(3, 1, 2, Some(2));
}

#[test]
fn a_body_that_fails_ends_the_loop_and_reaches_the_caller() {
    loom::model(|| {
        let table = Arc::new(JobTable::new(1, 2));
        let worker = {
            let table = Arc::clone(&table);
            thread::spawn(move || come_to(&table, 1))
        };
        let ran = Exclusive::new();
        let body = |_: usize, begin: u64, _: u64| {
            if begin == 1 {
                std::panic::resume_unwind(Box::new("a failure"));
            }
            ran.add_one();
        };
        let job = Job::new(2, 1..=1, 2, None, &body);
        run(&table, &job);
        assert!(job.take_panic().is_some() && job.cancelled());
        assert!(ran.get() <= 1);
        worker.join().unwrap();
    });
}
