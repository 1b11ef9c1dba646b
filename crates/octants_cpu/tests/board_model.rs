//! The pool's board under every interleaving of a few threads, as `loom` runs them: jobs outlive their workers, and no wake is lost.

#![allow(unsafe_code, reason = "the board hands out pointers, as it does in the pool")]

mod sync {
    pub(super) use loom::hint::spin_loop;
    pub(super) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
    pub(super) use loom::thread::{Thread, current, park};
}

#[path = "../src/pool/board.rs"]
#[allow(dead_code, reason = "the pool uses more of it")]
mod board;

use board::Board;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread::{self, Thread};

/// A job that is gone, as far as the model can tell, once its caller has written to it again.
struct Job {
    data: UnsafeCell<u32>,
    caller: Mutex<Option<Thread>>,
}

/// Boards are for one job at a time; workers have the numbers 1 and 2.
fn board() -> Arc<Board<Job>> {
    Arc::new(Board::new(1, 3))
}

fn enter_and_leave(board: &Board<Job>, worker: usize) {
    let Some(entered) = board.enter(worker, false) else { return };
    // SAFETY: the worker is inside; `loom` tells if the caller writes meanwhile.
    unsafe {
        assert_eq!((*entered.job).data.with(|data| *data), 7);
        board.leave(entered, |job| (*job).caller.lock().unwrap().clone());
    }
}

fn offer_and_close(board: &Board<Job>, places: usize) {
    let job = Box::new(Job { data: UnsafeCell::new(7), caller: Mutex::new(None) });
    let offer = board.offer(&raw const *job, places).expect("the slot is free");
    // Never spins, so that parking is what is checked.
    board.close(offer, || false, |caller| *job.caller.lock().unwrap() = Some(caller), loom::thread::park);
    // SAFETY: nobody is inside; `loom` tells if somebody is.
    job.data.with_mut(|data| unsafe { *data = 0 });
}

#[test]
fn a_job_outlives_the_workers_inside_it() {
    // All interleavings of three threads are too many; nearly all defects need few preemptions.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let board = board();
        let workers = [1, 2].map(|worker| {
            let board = Arc::clone(&board);
            thread::spawn(move || enter_and_leave(&board, worker))
        });
        offer_and_close(&board, 2);
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

#[test]
fn a_slot_serves_one_job_after_another() {
    loom::model(|| {
        let board = board();
        let worker = {
            let board = Arc::clone(&board);
            thread::spawn(move || enter_and_leave(&board, 1))
        };
        offer_and_close(&board, 1);
        offer_and_close(&board, 1);
        worker.join().unwrap();
    });
}

#[test]
fn only_so_many_workers_enter_as_there_are_places() {
    loom::model(|| {
        let board = board();
        let workers = [1, 2].map(|worker| {
            let board = Arc::clone(&board);
            thread::spawn(move || {
                let entered = board.enter(worker, true);
                let inside = entered.is_some();
                if let Some(entered) = entered {
                    board.leave(entered, |_| None);
                }
                inside
            })
        });
        let job = Box::new(Job { data: UnsafeCell::new(7), caller: Mutex::new(None) });
        let offer = board.offer(&raw const *job, 1).expect("the slot is free");
        let entered = workers.map(|worker| worker.join().unwrap());
        assert!(!(entered[0] && entered[1]));
        board.close(offer, || false, |_| {}, loom::thread::park);
    });
}

/// A worker that finds nothing sleeps; whoever announces something wakes it. A lost wake would be a deadlock, which `loom` reports.
#[test]
fn a_sleeper_is_woken_by_what_comes_while_it_falls_asleep() {
    loom::model(|| {
        let board = board();
        let over = Arc::new(AtomicBool::new(false));
        let worker = {
            let (board, over) = (Arc::clone(&board), Arc::clone(&over));
            thread::spawn(move || {
                loop {
                    let seen = board.news();
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    board.sleep(1, seen);
                }
            })
        };
        over.store(true, Ordering::Relaxed);
        board.announce();
        if board.any_asleep(2) && board.wake(1) {
            worker.thread().unpark();
        }
        worker.join().unwrap();
    });
}
