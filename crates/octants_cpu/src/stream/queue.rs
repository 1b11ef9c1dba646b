//! The queue of one stream, and recordings, which order queues.
//!
//! A queue's entries are taken out in order by one thread at a time: whoever has *claimed* it. A queue whose next entry waits for a recording
//! is *parked* at it and held by no thread; whoever passes the recording makes it ready again. That nothing is lost or run twice is
//! checked by a model (`tests/stream_model.rs`), for which this file is compiled over `loom`.
//!
//! Locks are taken in this order: a queue's, then a recording's. No lock is held while an entry runs.
//!
//! This knows neither the pool nor what the work is: a [`Server`] does.

use std::collections::VecDeque;
use std::sync::PoisonError;

use super::sync::{Arc, AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering, Thread};

/// What a queue was told.
pub(crate) enum Entry<S: Server> {
    Work(S::Work),
    /// Passed when all before it is done.
    Record(Arc<Recording<S>>),
    /// Nothing behind it begins before that is passed.
    Wait(Arc<Recording<S>>),
}

/// Runs the entries of queues.
pub(crate) trait Server: Sized {
    type Work;
    /// What a failed entry leaves behind for whoever asks later.
    type Error: Clone;
    /// What the server keeps with each queue.
    type Label;

    /// Whether somebody was told of the error.
    fn is_told(error: &Self::Error) -> bool;

    fn run(&self, work: Self::Work) -> Result<(), Self::Error>;

    /// Adds the queue to the list from which threads take those to serve ([`Queue::serve_from_list`]). It is never there twice.
    fn list(&self, queue: Arc<Queue<Self>>);

    /// A clock, in nanoseconds; never 0.
    fn now(&self) -> u64;
}

pub(crate) struct Queue<S: Server> {
    pub label: S::Label,
    state: Mutex<QueueState<S>>,
    /// Whether nothing is left to do, though a thread may linger; written under the lock.
    idle: AtomicBool,
    /// Whether there is an error to be told; written under the lock.
    failed: AtomicBool,
    /// How many entries there are; written under the lock now and then.
    length: AtomicU64,
    /// Whether it is in the server's list. There it may be when it is not ready any more: whoever waits for it has claimed it.
    listed: AtomicBool,
}

struct QueueState<S: Server> {
    /// Those that no thread has taken out.
    entries: VecDeque<Entry<S>>,
    /// An empty list with memory for the next thread that takes some.
    spare: VecDeque<Entry<S>>,
    stage: Stage<S>,
    /// The first error that nobody was told of.
    error: Option<S::Error>,
}

/// Who has the queue.
enum Stage<S: Server> {
    /// There are no entries.
    Idle,
    /// There are entries, and any thread may claim them.
    Ready,
    /// A thread, by the name that it gave, runs them.
    Claimed { by: u64 },
    /// They wait for this.
    Parked(Arc<Recording<S>>),
}

/// What stands in the way of a queue.
pub(crate) enum Obstacle<S: Server> {
    /// Nothing is left to do.
    Nothing,
    /// The caller has claimed it now.
    Claimed,
    /// Any thread may claim it. [`Queue::claim`] does, and never says so.
    Ready,
    /// A thread runs it.
    RunBy(u64),
    Recording(Arc<Recording<S>>),
}

impl<S: Server> Queue<S> {
    pub fn new(label: S::Label) -> Self {
        let (entries, spare) = (VecDeque::new(), VecDeque::new());
        let state = QueueState { entries, spare, stage: Stage::Idle, error: None };
        Self {
            label,
            state: Mutex::new(state),
            idle: AtomicBool::new(true),
            failed: AtomicBool::new(false),
            length: AtomicU64::new(0),
            listed: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all that it was told is done.
    pub fn is_idle(&self) -> bool {
        self.idle.load(Ordering::Acquire)
    }

    /// How many entries wait that no thread has taken out, as of a moment ago.
    pub fn len(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }

    /// Takes the error that an entry has left.
    pub fn take_error_if_any(&self) -> Option<S::Error> {
        if self.failed.load(Ordering::Acquire) { self.lock().take_error(&self.failed) } else { None }
    }

    /// Adds work; how many entries wait now.
    pub fn push(self: &Arc<Self>, work: S::Work, server: &S) -> u64 {
        let mut state = self.lock();
        let count = self.add(&mut state, Entry::Work(work));
        if matches!(state.stage, Stage::Idle) {
            state.stage = Stage::Ready;
            drop(state);
            self.enlist(server);
        }
        count
    }

    /// Adds an entry; how many wait now.
    fn add(&self, state: &mut QueueState<S>, entry: Entry<S>) -> u64 {
        state.entries.push_back(entry);
        // Also if a thread has claimed the queue: it may have found it empty, and linger.
        self.idle.store(false, Ordering::Relaxed);
        self.note_length(state)
    }

    fn note_length(&self, state: &QueueState<S>) -> u64 {
        let length = state.entries.len() as u64;
        self.length.store(length, Ordering::Relaxed);
        length
    }

    /// A recording of this moment.
    pub fn record(self: &Arc<Self>, server: &S) -> Arc<Recording<S>> {
        let mut state = self.lock();
        if self.is_idle() {
            return Recording::passed_at(server.now(), state.error.clone());
        }
        let recording = Recording::new(Arc::clone(self));
        self.add(&mut state, Entry::Record(Arc::clone(&recording)));
        recording
    }

    /// What comes later waits for the recording.
    pub fn wait(self: &Arc<Self>, recording: &Arc<Recording<S>>) {
        let mut state = self.lock();
        if !matches!(state.stage, Stage::Idle) {
            self.add(&mut state, Entry::Wait(Arc::clone(recording)));
        } else if recording.park(self) {
            state.stage = Stage::Parked(Arc::clone(recording));
            self.idle.store(false, Ordering::Relaxed);
        } else {
            state.fail(&self.failed, recording.error());
        }
    }

    /// Runs `work` on the current thread, if nothing else is left to do.
    pub fn run_if_idle<R>(self: &Arc<Self>, thread: u64, server: &S, work: impl FnOnce() -> R) -> Option<R> {
        let mut state = self.lock();
        if !matches!(state.stage, Stage::Idle) {
            return None;
        }
        state.stage = Stage::Claimed { by: thread };
        self.idle.store(false, Ordering::Relaxed);
        drop(state);
        let result = work();
        self.release(self.lock(), server);
        Some(result)
    }

    /// Claims the queue, unless something stands in the way.
    pub fn claim(&self, thread: u64) -> Obstacle<S> {
        let mut state = self.lock();
        match &state.stage {
            Stage::Idle => Obstacle::Nothing,
            Stage::Claimed { by } => Obstacle::RunBy(*by),
            Stage::Parked(recording) => Obstacle::Recording(Arc::clone(recording)),
            Stage::Ready => {
                state.stage = Stage::Claimed { by: thread };
                Obstacle::Claimed
            }
        }
    }

    /// What stands in the way, without claiming it.
    pub fn obstacle(&self) -> Obstacle<S> {
        match &self.lock().stage {
            Stage::Idle => Obstacle::Nothing,
            Stage::Claimed { by } => Obstacle::RunBy(*by),
            Stage::Parked(recording) => Obstacle::Recording(Arc::clone(recording)),
            Stage::Ready => Obstacle::Ready,
        }
    }

    /// Runs entries of a queue that the thread has claimed, until none is left, one waits, or the next one is work and `goes_on` says that it
    /// is not to be begun.
    ///
    /// A thread that is to `linger` calls that when it finds nothing left, and looks once more: what comes in the meantime needs no thread to
    /// be found and woken.
    pub fn serve(
        self: &Arc<Self>,
        server: &S,
        mut goes_on: impl FnMut() -> bool,
        linger: Option<&dyn Fn(&Self)>,
    ) {
        // Entries are taken out many at a time: whoever adds some meanwhile seldom finds the queue locked.
        let mut batch = VecDeque::new();
        loop {
            let Some(entry) = batch.pop_front() else {
                let mut state = self.lock();
                if state.entries.is_empty()
                    && let Some(linger) = linger
                {
                    self.idle.store(true, Ordering::Release);
                    drop(state);
                    linger(self);
                    state = self.lock();
                }
                if state.entries.is_empty() {
                    state.spare = batch;
                    return self.release(state, server);
                }
                if batch.capacity() == 0 {
                    batch = std::mem::take(&mut state.spare);
                }
                std::mem::swap(&mut state.entries, &mut batch);
                self.note_length(&state);
                continue;
            };
            match entry {
                Entry::Wait(recording) => {
                    let mut state = self.lock();
                    if recording.park(self) {
                        state.put_back(batch);
                        state.stage = Stage::Parked(recording);
                        return;
                    }
                    state.fail(&self.failed, recording.error());
                }
                Entry::Record(recording) => {
                    for queue in recording.pass(server.now(), self.error()) {
                        queue.resume(server);
                    }
                }
                Entry::Work(work) => {
                    if !goes_on() {
                        batch.push_front(Entry::Work(work));
                        let mut state = self.lock();
                        state.put_back(batch);
                        return self.release(state, server);
                    }
                    if let Err(error) = server.run(work) {
                        self.lock().fail(&self.failed, Some(error));
                    }
                }
            }
        }
    }

    /// The error that an entry has left.
    fn error(&self) -> Option<S::Error> {
        if self.failed.load(Ordering::Acquire) { self.lock().error.clone() } else { None }
    }

    /// Gives a claimed queue up.
    fn release(self: &Arc<Self>, mut state: MutexGuard<'_, QueueState<S>>, server: &S) {
        if state.entries.is_empty() {
            state.stage = Stage::Idle;
            self.idle.store(true, Ordering::Release);
        } else {
            state.stage = Stage::Ready;
            drop(state);
            self.enlist(server);
        }
    }

    /// Has a thread find the queue, which was just made ready.
    fn enlist(self: &Arc<Self>, server: &S) {
        // Whoever has taken it from the list and not said so yet will find it ready.
        if !self.listed.swap(true, Ordering::AcqRel) {
            server.list(Arc::clone(self));
        }
    }

    /// Serves a queue that was taken from the list, unless somebody else does.
    pub fn serve_from_list(
        self: &Arc<Self>,
        thread: u64,
        server: &S,
        goes_on: impl FnMut() -> bool,
        linger: Option<&dyn Fn(&Self)>,
    ) {
        self.listed.store(false, Ordering::Release);
        if matches!(self.claim(thread), Obstacle::Claimed) {
            self.serve(server, goes_on, linger);
        }
    }

    /// The recording that the queue is parked at was passed.
    fn resume(self: Arc<Self>, server: &S) {
        let mut state = self.lock();
        if let Stage::Parked(recording) = std::mem::replace(&mut state.stage, Stage::Ready) {
            state.fail(&self.failed, recording.error());
        }
        if state.entries.is_empty() {
            state.stage = Stage::Idle;
            self.idle.store(true, Ordering::Release);
            return;
        }
        drop(state);
        self.enlist(server);
    }
}

impl<S: Server> QueueState<S> {
    /// Puts entries before the others, and keeps the memory of one of the two lists.
    fn put_back(&mut self, mut batch: VecDeque<Entry<S>>) {
        batch.append(&mut self.entries);
        std::mem::swap(&mut self.entries, &mut batch);
        self.spare = batch;
    }

    /// Keeps the first error that nobody was told of, also one of what was waited for.
    fn fail(&mut self, flag: &AtomicBool, error: Option<S::Error>) {
        if self.error.as_ref().is_none_or(S::is_told) && error.is_some() {
            self.error = error;
            flag.store(true, Ordering::Release);
        }
    }

    fn take_error(&mut self, flag: &AtomicBool) -> Option<S::Error> {
        flag.store(false, Ordering::Relaxed);
        self.error.take()
    }
}

/// A point in a queue, once.
pub(crate) struct Recording<S: Server> {
    /// When it was passed; 0 while it was not.
    time: AtomicU64,
    state: Mutex<RecordingState<S>>,
}

struct RecordingState<S: Server> {
    /// Where it stands; none once it was passed.
    queue: Option<Arc<Queue<S>>>,
    /// Queues that are parked here.
    parked: Vec<Arc<Queue<S>>>,
    /// Threads that sleep until it is passed.
    threads: Vec<Thread>,
    /// What the queue had left behind when it was passed.
    error: Option<S::Error>,
}

impl<S: Server> Recording<S> {
    fn new(queue: Arc<Queue<S>>) -> Arc<Self> {
        let state =
            RecordingState { queue: Some(queue), parked: Vec::new(), threads: Vec::new(), error: None };
        Arc::new(Self { time: AtomicU64::new(0), state: Mutex::new(state) })
    }

    /// A recording that was passed at this time.
    pub fn passed_at(time: u64, error: Option<S::Error>) -> Arc<Self> {
        let state = RecordingState { queue: None, parked: Vec::new(), threads: Vec::new(), error };
        Arc::new(Self { time: AtomicU64::new(time), state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, RecordingState<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When it was passed.
    pub fn time(&self) -> Option<u64> {
        Some(self.time.load(Ordering::Acquire)).filter(|&time| time != 0)
    }

    pub fn is_passed(&self) -> bool {
        self.time.load(Ordering::Acquire) != 0
    }

    /// What the queue had left behind when it was passed.
    pub fn error(&self) -> Option<S::Error> {
        self.lock().error.clone()
    }

    /// The queue that it stands in, until it is passed.
    pub fn queue(&self) -> Option<Arc<Queue<S>>> {
        self.lock().queue.clone()
    }

    /// The queue is resumed when this is passed; false if it was passed already.
    fn park(&self, queue: &Arc<Queue<S>>) -> bool {
        if self.is_passed() {
            return false;
        }
        let mut state = self.lock();
        let waits = state.queue.is_some();
        if waits {
            state.parked.push(Arc::clone(queue));
        }
        waits
    }

    /// The thread is unparked when this is passed; false if it was passed already.
    pub fn wake_at_pass(&self, thread: Thread) -> bool {
        let mut state = self.lock();
        let waits = state.queue.is_some();
        if waits {
            state.threads.push(thread);
        }
        waits
    }

    /// Passes it, and gives the queues that were parked at it.
    fn pass(&self, time: u64, error: Option<S::Error>) -> Vec<Arc<Queue<S>>> {
        let mut state = self.lock();
        state.error = error;
        state.queue = None;
        let (parked, threads) = (std::mem::take(&mut state.parked), std::mem::take(&mut state.threads));
        self.time.store(time, Ordering::Release);
        drop(state);
        threads.iter().for_each(Thread::unpark);
        parked
    }
}
