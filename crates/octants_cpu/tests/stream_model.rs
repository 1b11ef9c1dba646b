//! The queues of streams under every interleaving of a few threads, as `loom` runs them: work runs once and in order, waits are kept, and no
//! wake is lost.

#![allow(unsafe_code, reason = "the model says itself when two threads are at the same place")]

mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(super) use loom::sync::{Mutex, MutexGuard};
    pub(super) use loom::thread::Thread;
    /// Methods take it as their receiver, which `loom`'s own cannot be.
    pub(super) use std::sync::Arc;
}

#[path = "../src/stream/queue.rs"]
#[allow(dead_code, reason = "the device uses more of it")]
mod queue;

use std::collections::VecDeque;
use std::sync::Arc;

use loom::sync::Mutex;
use loom::thread;
use queue::{Obstacle, Queue, Recording, Server};

/// Keeps the list of queues, and notes what ran.
struct Model {
    listed: Mutex<VecDeque<Arc<Queue<Model>>>>,
    ran: Mutex<Vec<u32>>,
}

/// Each queue is run by one thread at a time: `loom` tells if two are inside.
struct Exclusive(loom::cell::UnsafeCell<u32>);

// SAFETY: no reference to what is inside leaves the place, and `loom` watches who is there.
unsafe impl Sync for Exclusive {}

/// A number, which fails if it is odd, and the place of its queue.
struct Step(u32, Arc<Exclusive>);

impl Server for Model {
    type Work = Step;
    type Error = u32;
    type Label = Arc<Exclusive>;

    fn is_told(_error: &u32) -> bool {
        false
    }

    fn run(&self, Step(number, place): Step) -> Result<(), u32> {
        place.0.with_mut(|_| ());
        self.ran.lock().unwrap().push(number);
        if number % 2 == 1 { Err(number) } else { Ok(()) }
    }

    fn list(&self, queue: Arc<Queue<Self>>) {
        self.listed.lock().unwrap().push_back(queue);
    }

    fn now(&self) -> u64 {
        1
    }
}

impl Model {
    fn new() -> Arc<Self> {
        Arc::new(Self { listed: Mutex::new(VecDeque::new()), ran: Mutex::new(Vec::new()) })
    }

    /// Takes so many queues from the list, where there are any, as a worker does.
    fn work(&self, name: u64, rounds: usize, goes_on: impl Fn() -> bool) {
        for _ in 0..rounds {
            let queue = self.listed.lock().unwrap().pop_front();
            match queue {
                Some(queue) => queue.serve_from_list(name, self, &goes_on, Some(&|_| thread::yield_now())),
                None => thread::yield_now(),
            }
        }
    }

    /// Serves until the list is empty.
    fn finish(&self) {
        loop {
            let queue = self.listed.lock().unwrap().pop_front();
            let Some(queue) = queue else { return };
            queue.serve_from_list(9, self, || true, None);
        }
    }

    fn ran(&self) -> Vec<u32> {
        self.ran.lock().unwrap().clone()
    }
}

fn new_queue() -> Arc<Queue<Model>> {
    Arc::new(Queue::new(Arc::new(Exclusive(loom::cell::UnsafeCell::new(0)))))
}

fn push(model: &Model, queue: &Arc<Queue<Model>>, number: u32) {
    queue.push(Step(number, Arc::clone(&queue.label)), model);
}

/// What waits for the recording runs it itself, where nobody else does.
fn help(model: &Model, recording: &Recording<Model>) {
    let Some(mut queue) = recording.queue() else { return };
    loop {
        match queue.claim(8) {
            Obstacle::Claimed => return queue.serve(model, || true, None),
            Obstacle::Recording(before) => match before.queue() {
                Some(before) => queue = before,
                None => return,
            },
            Obstacle::Nothing | Obstacle::Ready | Obstacle::RunBy(_) => return,
        }
    }
}

/// All interleavings are too many; nearly all defects need few preemptions.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn work_runs_once_and_in_order_whoever_serves() {
    check(|| {
        let model = Model::new();
        let queue = new_queue();
        let workers = [1, 2].map(|name| {
            let model = Arc::clone(&model);
            // A worker that yields after each entry, so that the queue goes from hand to hand.
            thread::spawn(move || {
                let begun = loom::cell::Cell::new(false);
                model.work(name, 1, || !begun.replace(true));
            })
        });
        push(&model, &queue, 2);
        push(&model, &queue, 4);
        for worker in workers {
            worker.join().unwrap();
        }
        model.finish();
        assert_eq!(model.ran(), [2, 4]);
        assert!(queue.is_idle());
    });
}

#[test]
fn an_idle_queue_has_done_what_it_was_told() {
    check(|| {
        let model = Model::new();
        let queue = new_queue();
        push(&model, &queue, 2);
        let worker = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.work(1, 1, || true))
        };
        if queue.is_idle() {
            queue.label.0.with(|_| ());
            assert_eq!(model.ran(), [2]);
        }
        // Either at once, or behind the work.
        let there = queue.run_if_idle(8, &*model, || queue.label.0.with_mut(|_| ()));
        if there.is_none() {
            push(&model, &queue, 4);
        }
        worker.join().unwrap();
        model.finish();
        assert_eq!(model.ran().len(), 1 + usize::from(there.is_none()));
    });
}

#[test]
fn a_queue_that_waits_goes_on_once_the_recording_is_passed() {
    check(|| {
        let model = Model::new();
        let (first, then) = (new_queue(), new_queue());
        let worker = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.work(1, 2, || true))
        };
        push(&model, &first, 3);
        let recording = first.record(&model);
        // While the worker passes the recording.
        then.wait(&recording);
        push(&model, &then, 2);
        help(&model, &then.record(&model));
        worker.join().unwrap();
        model.finish();
        assert_eq!(model.ran(), [3, 2], "in the order that the recording makes");
        assert!(recording.is_passed() && first.is_idle() && then.is_idle());
        assert_eq!(then.take_error_if_any(), Some(3), "what failed before it was handed on");
    });
}

#[test]
fn a_thread_that_sleeps_until_a_recording_is_passed_is_woken() {
    check(|| {
        let model = Model::new();
        let queue = new_queue();
        push(&model, &queue, 2);
        let recording = queue.record(&model);
        let worker = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.finish())
        };
        while !recording.is_passed() && recording.wake_at_pass(thread::current()) {
            thread::park();
        }
        assert_eq!(model.ran(), [2]);
        worker.join().unwrap();
    });
}
