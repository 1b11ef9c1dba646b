//! Streams beside the default one: queues of verbs that the pool's workers serve, in order, and events between them.
//!
//! A stream whose next verb waits for an event holds no thread. Whoever waits for a stream or an event runs what it waits for, where no
//! worker does yet, and takes part in loops; it never begins work of streams that it does not wait for, which could be long. A thread that must hear
//! signals while it waits has a *deputy* do that (`deputy`).
//!
//! Laws:
//! * The work of one stream runs in the order in which it was told, one entry at a time, on whichever thread.
//! * A recording is waited for as it was told, however often its event is recorded anew: waits cannot make a circle.
//! * What fails is kept, and told once: to whoever next waits for the stream, an event that was recorded later, or what waited for that, or tells
//!   the stream something.
//! * A question (`is_idle`, `event_passed`) changes nothing: it runs nothing, waits for nothing and tells no error.

mod command;
mod deputy;
mod queue;
mod sync;

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use octants_hal::{Address, DeviceError, FaultRecord, StreamPriority};

use crate::core::Core;
use crate::pool::{SPIN_TIME, Source, generation};
pub(crate) use command::{Allocation, Command, QueuedLaunch};
use queue::{Obstacle, Queue, Server};

pub(crate) type StreamQueue = Queue<Core>;
pub(crate) type Recording = queue::Recording<Core>;

/// How long a worker stays with a stream while others wait. Chosen, not measured: a thousand times what changing streams takes, and less than
/// what a person notices.
const SLICE: Duration = Duration::from_micros(100);

/// How long a worker stays with a stream that has nothing to do. Longer than a program needs from one launch to the next, which is half a
/// microsecond at least from Python; finding the stream a worker again costs the program that launches about as much.
const LINGER_TIME: Duration = Duration::from_micros(3);

/// Entries of a queue from which on whoever adds to it waits: a bound on memory, some hundred kilobytes. Chosen, not measured.
const MAX_ENTRIES: u64 = 1024;

/// How long adding to such a queue takes, at most, where its work does not come to an end. Chosen: so slowly no memory is filled, and Ctrl-C
/// is heard between two launches.
const MAX_PUSH_TIME: Duration = Duration::from_millis(10);

/// How long a thread that waits spins before it yields its processor, and how often it looks for something to take part in once it sleeps. Chosen,
/// not measured.
const SPIN_BEFORE_YIELD: Duration = Duration::from_micros(5);
const HELP_INTERVAL: Duration = Duration::from_millis(1);

/// What goes with a queue.
pub(crate) struct Label {
    core: Arc<Core>,
    /// As the pool counts: 0 is served first.
    priority: usize,
    /// Of the process that made it: what was in the queue when that was forked is lost to the child.
    generation: u32,
    /// Since when a thread waits for it, or when one last saw that somebody runs it, in the core's nanoseconds; 0 if no thread waits.
    waited_since: AtomicU64,
}

/// An error that waits to be told, by whoever is asked first.
pub(crate) struct DeferredError {
    error: DeviceError,
    told: AtomicBool,
}

/// Tells an error, if nobody has.
fn tell(deferred: Option<Arc<DeferredError>>) -> Result<(), DeviceError> {
    match deferred {
        Some(deferred) if !deferred.told.swap(true, Ordering::Relaxed) => Err(deferred.error.clone()),
        _ => Ok(()),
    }
}

impl Server for Core {
    type Work = Command;
    type Error = Arc<DeferredError>;
    type Label = Label;

    fn is_told(error: &Self::Error) -> bool {
        error.told.load(Ordering::Relaxed)
    }

    fn run(&self, command: Command) -> Result<(), Self::Error> {
        // SAFETY: whoever told the verb keeps its contract until the stream has passed it.
        let run = || unsafe { self.run_command(command) };
        let ran = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
            Err(DeviceError::Failed { verb: "launch", message: "a panic in a worker".to_owned() })
        });
        ran.map_err(|error| Arc::new(DeferredError { error, told: AtomicBool::new(false) }))
    }

    fn list(&self, queue: Arc<StreamQueue>) {
        let priority = queue.label.priority;
        self.pool.offer(queue, priority);
    }

    fn now(&self) -> u64 {
        self.nanoseconds()
    }
}

impl Source for StreamQueue {
    fn run_some(self: Arc<Self>, others_wait: &dyn Fn() -> bool) {
        let begin = Instant::now();
        let goes_on = || !(others_wait() && begin.elapsed() > SLICE);
        let linger = |queue: &Self| {
            let begin = Instant::now();
            while queue.len() == 0 && begin.elapsed() < LINGER_TIME && !others_wait() {
                std::hint::spin_loop();
            }
        };
        self.serve_from_list(this_thread(), &self.label.core, goes_on, Some(&linger));
    }
}

/// What came of an offer to help.
enum Helped {
    /// Something was run, or has moved on by itself.
    Progress,
    /// There is nothing that the thread may run.
    NothingToDo,
    /// The thread is inside the work that it would wait for, as a signal's handler can be.
    Inside,
}

impl Core {
    /// # Safety
    /// Whoever told the verb keeps its contract, and all that comes before it is done.
    unsafe fn run_command(&self, command: Command) -> Result<(), DeviceError> {
        // SAFETY: the caller says so.
        unsafe {
            match command {
                Command::Launch(queued) => queued.with(|launch| {
                    let fault = launch.context.memory.fault.as_ptr::<FaultRecord>().as_ref();
                    // After a failure, or a request to stop, no further task of the launch begins.
                    if fault.is_some_and(FaultRecord::happened) || launch.context.cancel.is_wanted() {
                        return Ok(());
                    }
                    self.run_task(launch)
                }),
                Command::Copy { to, from, bytes } => {
                    self.copy(to, from, bytes);
                    Ok(())
                }
                Command::Write { to, from } => {
                    self.copy(to, Address::of(from.as_ptr()), from.len());
                    Ok(())
                }
                Command::Fill { to, filler, bytes } => {
                    self.fill(to, &filler, bytes);
                    Ok(())
                }
                Command::Free(allocation) => {
                    drop(allocation);
                    Ok(())
                }
            }
        }
    }

    /// Adds to a queue, unless there is an error to be told of. Waits where it is very long.
    pub fn push(&self, queue: &Arc<StreamQueue>, command: Command) -> Result<(), DeviceError> {
        error_of(queue)?;
        if let Some(exclusive) = &self.exclusive {
            exclusive.hand_out();
        }
        if queue.push(command, self) > MAX_ENTRIES {
            self.shorten(queue);
        }
        Ok(())
    }

    /// Copies in a stream's order, and waits for that.
    ///
    /// # Safety
    /// As for the verb `copy`.
    pub unsafe fn copy_now(
        &self,
        queue: Option<&Arc<StreamQueue>>,
        to: Address,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller says so.
        let copy = || unsafe { self.copy(to, from, bytes) };
        let Some(queue) = queue else {
            copy();
            return Ok(());
        };
        if queue.run_if_idle(this_thread(), self, copy).is_none() {
            queue.push(Command::Copy { to, from, bytes }, self);
            self.wait_for(&queue.record(self))?;
        }
        error_of(queue)
    }

    /// Waits until half of a queue is done, or for a while: a verb that never returned would not let Ctrl-C be heard.
    #[cold]
    fn shorten(&self, queue: &Arc<StreamQueue>) {
        let begin = Instant::now();
        let is_short = || queue.len() <= MAX_ENTRIES / 2 || begin.elapsed() > MAX_PUSH_TIME;
        let mut pause = Pause::default();
        while !is_short() {
            match self.help(queue, &is_short) {
                Helped::Progress => pause = Pause::default(),
                Helped::Inside => return,
                Helped::NothingToDo => pause.take(|| thread::sleep(SLICE)),
            }
        }
    }

    /// Waits until a recording is passed, and runs what it waits for meanwhile. Tells what failed before it.
    pub fn wait_for(&self, recording: &Recording) -> Result<(), DeviceError> {
        self.run_until(recording)?;
        tell(recording.error())
    }

    /// As [`Core::wait_for`], and tells nothing but that it could not wait.
    fn run_until(&self, recording: &Recording) -> Result<(), DeviceError> {
        let is_passed = || recording.is_passed();
        let (mut pause, mut registered) = (Pause::default(), false);
        while !is_passed() {
            let Some(queue) = recording.queue() else { continue };
            if queue.label.generation != generation() {
                return Ok(());
            }
            match self.help(&queue, &is_passed) {
                Helped::Progress => pause = Pause::default(),
                Helped::Inside => return Err(inside()),
                Helped::NothingToDo => pause.take(|| {
                    registered = registered || recording.wake_at_pass(thread::current());
                    thread::park_timeout(HELP_INTERVAL);
                }),
            }
        }
        Ok(())
    }

    /// The thread, which waits for a queue, runs something that it needs. Whether there was something.
    pub fn assist(&self, queue: &Arc<StreamQueue>) -> bool {
        let begun = Cell::new(false);
        matches!(self.help(queue, &|| begun.replace(true)), Helped::Progress)
    }

    /// Runs what a queue needs next, until `until`, which is asked before each task.
    fn help(&self, queue: &Arc<StreamQueue>, until: &dyn Fn() -> bool) -> Helped {
        let this_thread = this_thread();
        let mut queue = Arc::clone(queue);
        loop {
            match queue.claim(this_thread) {
                Obstacle::Claimed => {
                    queue.serve(self, || !until(), None);
                    return Helped::Progress;
                }
                Obstacle::RunBy(thread) if thread == this_thread => return Helped::Inside,
                Obstacle::RunBy(_) => break,
                Obstacle::Nothing | Obstacle::Ready => return Helped::NothingToDo,
                // What the recording stands behind comes first.
                Obstacle::Recording(recording) => match recording.queue() {
                    Some(before) => queue = before,
                    None => return Helped::NothingToDo,
                },
            }
        }
        if self.pool.help(until) { Helped::Progress } else { Helped::NothingToDo }
    }
}

/// What a thread is told that would wait for itself.
fn inside() -> DeviceError {
    let message = "the calling thread is inside the work that it would wait for".to_owned();
    DeviceError::Failed { verb: "synchronise", message }
}

/// Passes the time of a thread that waits: shortly without a break, then yielding, then asleep.
#[derive(Default)]
struct Pause {
    begin: Option<Instant>,
}

impl Pause {
    fn take(&mut self, sleep: impl FnOnce()) {
        let waited = self.begin.get_or_insert_with(Instant::now).elapsed();
        if waited < SPIN_BEFORE_YIELD {
            std::hint::spin_loop();
        } else if waited < SPIN_TIME {
            thread::yield_now();
        } else {
            sleep();
        }
    }
}

/// A number that no other live thread has; not 0.
pub(crate) fn this_thread() -> u64 {
    thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| std::ptr::from_ref(place) as u64)
}

/// What a [`Stream`](octants_hal::Stream) of the device points to.
pub(crate) struct StreamHandle {
    /// Replaced in a forked child alone. Never null.
    queue: AtomicPtr<Arc<StreamQueue>>,
}

impl StreamHandle {
    pub fn new(core: &Arc<Core>, priority: StreamPriority) -> Self {
        let priority = match priority {
            StreamPriority::High => 0,
            StreamPriority::Normal => 1,
            StreamPriority::Low => 2,
        };
        Self { queue: AtomicPtr::new(new_queue(core, priority)) }
    }

    #[inline]
    pub fn queue(&self) -> &Arc<StreamQueue> {
        // SAFETY: never null; what it points to is freed with the handle.
        let queue = unsafe { &*self.queue.load(Ordering::Acquire) };
        if queue.label.generation == generation() { queue } else { self.in_child(queue) }
    }

    /// In a child of the process that made the stream: its queue is empty here. The old one is left alone, since a thread that does not
    /// exist here may have locked it.
    #[cold]
    fn in_child(&self, old: &Arc<StreamQueue>) -> &Arc<StreamQueue> {
        let current = std::ptr::from_ref(old).cast_mut();
        let fresh = new_queue(&old.label.core, old.label.priority);
        match self.queue.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as above.
            Ok(_) => unsafe { &*fresh },
            Err(other) => {
                // SAFETY: the fresh one is known to the list of live streams alone, which has its own reference.
                unsafe {
                    old.label.core.streams.remove(&*fresh);
                    drop(Box::from_raw(fresh));
                    &*other
                }
            }
        }
    }
}

fn new_queue(core: &Arc<Core>, priority: usize) -> *mut Arc<StreamQueue> {
    let waited_since = AtomicU64::new(0);
    let label = Label { core: Arc::clone(core), priority, generation: generation(), waited_since };
    let queue = Arc::new(Queue::new(label));
    core.streams.add(&queue);
    Box::into_raw(Box::new(queue))
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        // SAFETY: made by `new_queue`, and nobody has the handle any more.
        let queue = unsafe { Box::from_raw(*self.queue.get_mut()) };
        queue.label.core.streams.remove(&queue);
    }
}

/// The queues of streams that were not destroyed.
#[derive(Default)]
pub(crate) struct LiveStreams {
    queues: Mutex<Vec<Arc<StreamQueue>>>,
}

impl LiveStreams {
    fn with<R>(&self, work: impl FnOnce(&mut Vec<Arc<StreamQueue>>) -> R) -> R {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut queues)
    }

    fn add(&self, queue: &Arc<StreamQueue>) {
        self.with(|queues| queues.push(Arc::clone(queue)));
    }

    fn remove(&self, queue: &Arc<StreamQueue>) {
        self.with(|queues| queues.retain(|other| !Arc::ptr_eq(other, queue)));
    }

    /// Whether none has something to do, of those that this process has made.
    pub fn are_idle(&self) -> bool {
        let is_busy = |queue: &Arc<StreamQueue>| !queue.is_idle() && queue.label.generation == generation();
        self.with(|queues| !queues.iter().any(is_busy))
    }

    /// Forgets them: the device ends.
    pub fn clear(&self) {
        drop(self.with(std::mem::take));
    }
}

/// What an [`Event`](octants_hal::Event) of the device points to.
#[derive(Default)]
pub(crate) struct EventHandle {
    latest: Mutex<Option<Arc<Recording>>>,
    /// The queue of a recording that a thread polls for.
    awaited: Mutex<Weak<StreamQueue>>,
}

impl EventHandle {
    pub fn record(&self, recording: Arc<Recording>) {
        let before = self.latest.lock().unwrap_or_else(PoisonError::into_inner).replace(recording);
        drop(before);
    }

    /// A thread begins or goes on to poll for what stands in this queue.
    pub fn await_queue(&self, queue: &Arc<StreamQueue>) {
        *self.awaited.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(queue);
    }

    /// The wait is over: the queue that was polled for.
    pub fn take_awaited(&self) -> Option<Arc<StreamQueue>> {
        std::mem::take(&mut *self.awaited.lock().unwrap_or_else(PoisonError::into_inner)).upgrade()
    }

    pub fn latest(&self) -> Option<Arc<Recording>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What was passed is told of with what failed before it.
pub(crate) fn error_before(recording: &Recording) -> Result<(), DeviceError> {
    tell(recording.error())
}

/// Tells what failed on a stream and was not told yet.
pub(crate) fn error_of(queue: &StreamQueue) -> Result<(), DeviceError> {
    tell(queue.take_error_if_any())
}
