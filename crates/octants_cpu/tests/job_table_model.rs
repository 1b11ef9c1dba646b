//! The pool's job table under every interleaving of a few threads, as `loom` runs them: jobs outlive their workers, and no wake is lost.

#![allow(unsafe_code, reason = "the table hands out pointers, as it does in the pool")]

mod sync {
    pub(super) use loom::hint::spin_loop;
    pub(super) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
    pub(super) use loom::thread::{Thread, current, park};
}

#[path = "../src/pool/job_table.rs"]
#[allow(dead_code, reason = "the pool uses more of it")]
mod job_table;

use job_table::JobTable;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread::{self, Thread};

/// A job that is gone, as far as the model can tell, once its caller has written to it again.
struct Job {
    data: UnsafeCell<u32>,
    caller: Mutex<Option<Thread>>,
}

/// Tables are for one job at a time; workers have the numbers 1 and 2.
fn table() -> Arc<JobTable<Job>> {
    Arc::new(JobTable::new(1, 3))
}

fn enter_and_leave(table: &JobTable<Job>, worker: usize) {
    let Some(entered) = table.enter(worker, false) else { return };
    // SAFETY: the worker is inside; `loom` tells if the caller writes meanwhile.
    unsafe {
        assert_eq!((*entered.job).data.with(|data| *data), 7);
        table.leave(entered, |job| (*job).caller.lock().unwrap().clone());
    }
}

fn publish_and_close(table: &JobTable<Job>, workers: usize) {
    let job = Box::new(Job { data: UnsafeCell::new(7), caller: Mutex::new(None) });
    let published = table.publish(&raw const *job, workers, 9).expect("the slot is free");
    // Never spins, so that parking is what is checked.
    table.close(published, || false, |caller| *job.caller.lock().unwrap() = Some(caller), loom::thread::park);
    // SAFETY: nobody is inside; `loom` tells if somebody is.
    job.data.with_mut(|data| unsafe { *data = 0 });
}

#[test]
fn a_job_outlives_the_workers_inside_it() {
    // All interleavings of three threads are too many; nearly all defects need few preemptions.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let table = table();
        let workers = [1, 2].map(|worker| {
            let table = Arc::clone(&table);
            thread::spawn(move || enter_and_leave(&table, worker))
        });
        publish_and_close(&table, 2);
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

#[test]
fn a_slot_serves_one_job_after_another() {
    loom::model(|| {
        let table = table();
        let worker = {
            let table = Arc::clone(&table);
            thread::spawn(move || enter_and_leave(&table, 1))
        };
        publish_and_close(&table, 1);
        publish_and_close(&table, 1);
        worker.join().unwrap();
    });
}

#[test]
fn only_so_many_workers_enter_as_there_are_permits() {
    loom::model(|| {
        let table = table();
        let workers = [1, 2].map(|worker| {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let entered = table.enter(worker, true);
                let inside = entered.is_some();
                if let Some(entered) = entered {
                    table.leave(entered, |_| None);
                }
                inside
            })
        });
        let job = Box::new(Job { data: UnsafeCell::new(7), caller: Mutex::new(None) });
        let published = table.publish(&raw const *job, 1, 9).expect("the slot is free");
        let entered = workers.map(|worker| worker.join().unwrap());
        assert!(!(entered[0] && entered[1]));
        table.close(published, || false, |_| {}, loom::thread::park);
    });
}

/// A worker that finds nothing sleeps; whoever announces something wakes it. A lost wake would be a deadlock, which `loom` reports.
#[test]
fn a_sleeper_is_woken_by_what_comes_while_it_falls_asleep() {
    loom::model(|| {
        let table = table();
        let over = Arc::new(AtomicBool::new(false));
        let worker = {
            let (table, over) = (Arc::clone(&table), Arc::clone(&over));
            thread::spawn(move || {
                loop {
                    let seen = table.epoch();
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    table.sleep(1, seen);
                }
            })
        };
        over.store(true, Ordering::Relaxed);
        table.announce();
        if table.any_asleep(2) && table.wake(1) {
            worker.thread().unpark();
        }
        worker.join().unwrap();
    });
}
