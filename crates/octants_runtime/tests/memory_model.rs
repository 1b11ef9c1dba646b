//! Uses of an allocation, accesses of the host and releases under every interleaving of a few threads, as `loom` runs them: no access is told less than
//! what it must come after, and nothing goes back that may be in use.

mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, Ordering};
    pub(super) use loom::sync::{Mutex, MutexGuard};
    pub(super) use std::sync::PoisonError;
}

#[path = "../src/releases.rs"]
#[allow(dead_code, reason = "the runtime uses more of it")]
mod releases;
#[path = "../src/stream_uses.rs"]
#[allow(dead_code, reason = "the runtime uses more of it")]
mod stream_uses;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use releases::Releases;
use stream_uses::{StreamUses, UsingStream};

/// The default stream is the first one; it stands in no list of streams.
const DEFAULT: usize = 0;

#[derive(Clone)]
struct Stream(usize);

impl UsingStream for Stream {
    type Live = usize;

    fn is_same(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn live(&self) -> Option<usize> {
        Some(self.0)
    }
}

/// Launches are bits. A stream is known by the launches that come before what it is told next.
struct Queues {
    before: [u32; 3],
    /// Launches that somebody has waited for.
    over: u32,
}

struct Model {
    queues: Mutex<Queues>,
    uses: StreamUses<Stream>,
}

impl Model {
    fn new() -> Arc<Self> {
        let queues = Mutex::new(Queues { before: [0; 3], over: 0 });
        Arc::new(Self { queues, uses: StreamUses::new() })
    }

    fn with<R>(&self, work: impl FnOnce(&mut Queues) -> R) -> R {
        work(&mut self.queues.lock().unwrap())
    }

    /// What a launch that uses the memory does.
    fn launch(&self, stream: usize, launch: u32) {
        if stream == DEFAULT {
            self.uses.note_default();
        }
        self.with(|queues| queues.before[stream] |= launch);
        if stream != DEFAULT {
            self.uses.note(&Stream(stream));
        }
    }

    /// What an access of the host does, in a stream that is not immediate. One that is not interrupted waits. Gives the launches that it comes after.
    fn access(&self, stream: usize, is_interrupted: bool) -> u32 {
        let joined = self.uses.any().then(|| {
            let uses = self.uses.snapshot();
            for &(_, used) in uses.streams.iter().filter(|(_, used)| *used != stream) {
                self.with(|queues| queues.before[stream] |= queues.before[used]);
            }
            let joining = Stream(stream);
            self.uses.replace(&uses, (stream != DEFAULT).then_some(&joining))
        });
        if stream != DEFAULT && self.uses.in_default() {
            self.with(|queues| queues.before[stream] |= queues.before[DEFAULT]);
        }
        let before = self.with(|queues| queues.before[stream] | queues.over);
        if !is_interrupted {
            self.with(|queues| queues.over |= before);
            if let Some(joined) = joined {
                self.uses.forget(&joined);
            }
        }
        before
    }

    /// What an access of the host does in a default stream that is immediate: it waits for each stream.
    fn wait_for_uses(&self) -> u32 {
        if self.uses.any() {
            let uses = self.uses.snapshot();
            for &(_, used) in &uses.streams {
                self.with(|queues| queues.over |= queues.before[used]);
            }
            self.uses.forget(&uses.waited());
        }
        self.with(|queues| queues.over)
    }

    /// The launches that a release waits for, or that are over.
    fn release(&self) -> u32 {
        let (users, in_default) = (self.uses.users(), self.uses.in_default());
        self.with(|queues| {
            let first = if in_default { queues.before[DEFAULT] } else { 0 };
            users.iter().fold(first | queues.over, |all, &user| all | queues.before[user])
        })
    }
}

/// All interleavings are too many; nearly all defects need few preemptions.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

fn spawn<R: 'static>(model: &Arc<Model>, work: impl FnOnce(&Model) -> R + 'static) -> thread::JoinHandle<R> {
    let model = Arc::clone(model);
    thread::spawn(move || work(&model))
}

/// Another thread reads between the moment when an access was told and that when it has waited, which may never come.
#[test]
fn no_access_finds_old_data_beside_one_that_has_not_waited() {
    for is_interrupted in [false, true] {
        check(move || {
            let model = Model::new();
            model.launch(1, 1);
            let first = spawn(&model, move |model| model.access(2, is_interrupted));
            let second = spawn(&model, |model| model.access(DEFAULT, false));
            assert_eq!(first.join().unwrap() & 1, 1);
            assert_eq!(second.join().unwrap() & 1, 1);
            assert_eq!(model.access(2, false) & 1, 1);
            assert_eq!(model.release() & 1, 1);
        });
    }
}

/// A launch that is noted while somebody waits is not forgotten by that one.
#[test]
fn who_has_waited_forgets_nothing_that_came_meanwhile() {
    for stream in [1, 2] {
        check(move || {
            let model = Model::new();
            model.launch(1, 1);
            let waits = spawn(&model, |model| model.access(2, false));
            let launches = spawn(&model, move |model| {
                model.launch(stream, 2);
                model.access(DEFAULT, false)
            });
            assert_eq!(waits.join().unwrap() & 1, 1);
            assert_eq!(launches.join().unwrap() & 3, 3);
            assert_eq!(model.access(DEFAULT, false) & 3, 3);
        });
    }
}

#[test]
fn memory_goes_back_after_all_that_uses_it() {
    for is_interrupted in [false, true] {
        check(move || {
            let model = Model::new();
            model.launch(1, 1);
            let reads = spawn(&model, move |model| model.access(2, is_interrupted));
            let launches = spawn(&model, |model| model.launch(2, 2));
            reads.join().unwrap();
            launches.join().unwrap();
            assert_eq!(model.release(), 3);
        });
    }
}

/// The default stream is told to come after others, and interrupted or not; it is waited for by who needs that alone.
#[test]
fn memory_goes_back_after_the_default_stream_where_that_stands_for_others() {
    for is_interrupted in [false, true] {
        check(move || {
            let model = Model::new();
            model.launch(1, 1);
            let reads = spawn(&model, move |model| model.access(DEFAULT, is_interrupted));
            let other = spawn(&model, |model| model.access(2, false));
            assert_eq!(reads.join().unwrap() & 1, 1);
            assert_eq!(other.join().unwrap() & 1, 1);
            // What the default stream does with other memory.
            model.with(|queues| queues.before[DEFAULT] |= 4);
            assert_eq!(model.release() & 1, 1);
            if !is_interrupted {
                assert_eq!(model.release() & 4, 0);
            }
            model.launch(DEFAULT, 2);
            assert_eq!(model.access(2, true) & 3, 3);
            assert_eq!(model.release() & 3, 3);
        });
    }
}

#[test]
fn waits_of_the_host_for_streams_forget_only_those() {
    check(|| {
        let model = Model::new();
        model.launch(1, 1);
        let waits = spawn(&model, Model::wait_for_uses);
        let launches = spawn(&model, |model| {
            model.launch(1, 2);
            model.wait_for_uses()
        });
        assert_eq!(waits.join().unwrap() & 1, 1);
        assert_eq!(launches.join().unwrap() & 3, 3);
        assert_eq!(model.release(), 3);
    });
}

/// Entries of two groups, of which one thread passes some while two look for what is passed.
#[test]
fn what_is_released_goes_back_once_and_not_before_its_streams_are_past_it() {
    check(|| {
        let releases = Arc::new(Releases::new());
        let passed = Arc::new([(); 3].map(|()| AtomicBool::new(false)));
        releases.add([1, 2].into_iter().collect(), 0_usize);
        releases.add([2, 1].into_iter().collect(), 1);
        let sweep = {
            let (releases, passed) = (Arc::clone(&releases), Arc::clone(&passed));
            move || {
                let taken = releases.take_passed(|&entry| passed[entry].load(Ordering::Acquire));
                assert!(taken.iter().all(|&entry| passed[entry].load(Ordering::Acquire)));
                taken
            }
        };
        let other = thread::spawn(sweep.clone());
        passed[0].store(true, Ordering::Release);
        releases.add([3].into_iter().collect(), 2);
        passed[1].store(true, Ordering::Release);
        passed[2].store(true, Ordering::Release);
        let mut taken = other.join().unwrap();
        taken.extend(sweep());
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2]);
        assert!(!releases.any());
    });
}
