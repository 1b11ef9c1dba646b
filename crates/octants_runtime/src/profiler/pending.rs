//! What streams were told and is not known yet: work between two events, in the order of each stream.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use octants_hal::{Capabilities, Device, DeviceError, Event, Stream};

use super::log::{Log, Timing, Work};
use super::time_base::{DeviceClock, TimeBase};
use super::trace::Track;

/// Spans under way at once, each with two events. Chosen: four times what a driver's queue takes before it lets the host wait. One more
/// is not timed, and counted as such.
const MAX_PENDING: usize = 4096;

/// So many spans are told to streams between two looks at what is over. Chosen: a look costs some microseconds.
const COLLECT_EVERY: usize = 64;

pub(super) struct Streams {
    device: Arc<dyn Device>,
    /// None on a device without events.
    base: Option<Mutex<TimeBase>>,
    queues: Mutex<Queues>,
    /// Timed events that nobody uses.
    idle: Mutex<Vec<Event>>,
    pending: AtomicUsize,
    told: AtomicUsize,
}

#[derive(Default)]
struct Queues {
    by_stream: HashMap<Stream, Arc<Queue>>,
    /// Streams that were seen, the default one not counted.
    seen: u32,
}

/// Of one stream.
struct Queue {
    number: u32,
    pending: Mutex<VecDeque<Pending>>,
}

struct Pending {
    /// As counted over all streams.
    number: usize,
    work: Work,
    start: Event,
    end: Event,
}

impl Streams {
    pub fn new(device: &Arc<dyn Device>, epoch: Instant) -> Self {
        let has_events = device.capabilities().has(Capabilities::STREAMS);
        // A device that refuses to measure has times of the host alone.
        let base = if has_events { TimeBase::new(device, epoch).ok() } else { None };
        Self {
            device: Arc::clone(device),
            base: base.map(Mutex::new),
            queues: Mutex::default(),
            idle: Mutex::default(),
            pending: AtomicUsize::new(0),
            told: AtomicUsize::new(0),
        }
    }

    pub fn device_name(&self) -> &str {
        self.device.name()
    }

    /// Whether work on this stream is timed by events.
    pub fn has_events(&self, stream: Stream) -> bool {
        self.base.is_some() && !self.device.is_immediate(stream)
    }

    /// A stream's number in the trace: 0 for the default one, others as they come.
    pub fn number(&self, stream: Stream) -> u32 {
        self.queue(stream).number
    }

    /// Has `run` tell the stream some work, between two events. With `alone`, no other thread does so at the same time.
    ///
    /// # Safety
    /// The stream is live.
    pub unsafe fn record(
        &self,
        stream: Stream,
        work: Work,
        alone: bool,
        log: &Mutex<Log>,
        run: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let queue = self.queue(stream);
        let mut held = alone.then(|| lock(&queue.pending));
        let Some([start, end]) = self.take_events() else {
            lock(log).count_untimed();
            return run();
        };
        // SAFETY: the caller vouches for the stream, and the events are ours.
        let mut recorded = unsafe { self.device.record_event(stream, start).is_ok() };
        let ran = run();
        // SAFETY: as above.
        recorded = recorded && ran.is_ok() && unsafe { self.device.record_event(stream, end).is_ok() };
        if !recorded {
            drop(held);
            self.give_events_back([start, end]);
            if ran.is_ok() {
                lock(log).count_untimed();
            }
            return ran;
        }
        lock(log).expect(&work);
        let number = self.told.fetch_add(1, Ordering::Relaxed);
        let pending = Pending { number, work, start, end };
        match held.as_mut() {
            Some(held) => held.push_back(pending),
            None => lock(&queue.pending).push_back(pending),
        }
        drop(held);
        if number % COLLECT_EVERY == COLLECT_EVERY - 1 {
            self.collect(log);
        }
        ran
    }

    /// The stream is gone, with all that it was told; another one may get its handle.
    pub fn retire(&self, stream: Stream, log: &Mutex<Log>) {
        let queue = lock(&self.queues).by_stream.remove(&stream);
        if let Some(queue) = queue {
            let mut pending = lock(&queue.pending);
            self.collect_from(&queue, &mut pending, log);
            for Pending { work, start, end, .. } in pending.drain(..) {
                self.give_events_back([start, end]);
                lock(log).give_up(&work);
            }
        }
    }

    /// Reads the times of what is over. Whoever is in the middle of telling a stream something is left alone.
    fn collect(&self, log: &Mutex<Log>) {
        for queue in self.all_queues() {
            match queue.pending.try_lock() {
                Ok(mut pending) => self.collect_from(&queue, &mut pending, log),
                Err(TryLockError::Poisoned(pending)) => {
                    self.collect_from(&queue, &mut pending.into_inner(), log);
                }
                Err(TryLockError::WouldBlock) => {}
            }
        }
    }

    /// How much streams were told so far.
    pub fn told(&self) -> usize {
        self.told.load(Ordering::Relaxed)
    }

    /// Reads the times of what is over on all streams; whether of what they were told first, up to this number, nothing is left.
    pub fn collect_until(&self, told: usize, log: &Mutex<Log>) -> bool {
        self.all_queues().iter().all(|queue| {
            let mut pending = lock(&queue.pending);
            self.collect_from(queue, &mut pending, log);
            pending.front().is_none_or(|first| first.number >= told)
        })
    }

    /// What is pending gets no time.
    pub fn forget_all(&self) {
        for queue in self.all_queues() {
            let pending = std::mem::take(&mut *lock(&queue.pending));
            for Pending { start, end, .. } in pending {
                self.give_events_back([start, end]);
            }
        }
    }

    /// How the device's clock stands to the host's.
    pub fn clock(&self) -> DeviceClock {
        self.base.as_ref().map(|base| lock(base).clock()).unwrap_or_default()
    }

    fn collect_from(&self, queue: &Queue, pending: &mut VecDeque<Pending>, log: &Mutex<Log>) {
        while let Some(&Pending { start, end, .. }) = pending.front() {
            // There is none before the event is passed: that it is need not be asked for each.
            let timing = self.timing(start, end);
            // SAFETY: an event of ours.
            if timing == Ok(None) && !unsafe { self.device.event_passed(end) } {
                return;
            }
            let Some(Pending { work, .. }) = pending.pop_front() else { break };
            // After an error the device tells of no event any more.
            if let Ok(Some(timing)) = timing {
                let track = Track::Stream { stream: queue.number, thread: 0 };
                lock(log).arrive(track, work, timing);
                let free = match &self.base {
                    Some(base) => lock(base).keep_near(end, (timing.start + timing.duration as i64) as f64),
                    None => end,
                };
                self.give_events_back([start, free]);
            } else {
                self.give_events_back([start, end]);
                lock(log).give_up(&work);
            }
        }
    }

    fn timing(&self, start: Event, end: Event) -> Result<Option<Timing>, DeviceError> {
        let Some(base) = &self.base else { return Ok(None) };
        // SAFETY: events of ours, with timing.
        let Some(duration) = (unsafe { self.device.elapsed(start, end)? }) else { return Ok(None) };
        // SAFETY: likewise.
        let at = unsafe { lock(base).time_of(start)? };
        Ok(at.map(|at| Timing {
            start: at.round() as i64,
            duration: duration.max(0.0).round() as u64,
            on_device: true,
        }))
    }

    fn take_events(&self) -> Option<[Event; 2]> {
        if self.pending.fetch_add(1, Ordering::Relaxed) >= MAX_PENDING {
            self.pending.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let mut idle = lock(&self.idle);
        let (start, end) = (idle.pop(), idle.pop());
        drop(idle);
        let event = |idle: Option<Event>| idle.map_or_else(|| self.device.create_event(true), Ok);
        match (event(start), event(end)) {
            (Ok(start), Ok(end)) => Some([start, end]),
            (start, end) => {
                lock(&self.idle).extend([start, end].into_iter().flatten());
                self.pending.fetch_sub(1, Ordering::Relaxed);
                None
            }
        }
    }

    fn give_events_back(&self, events: [Event; 2]) {
        lock(&self.idle).extend(events);
        self.pending.fetch_sub(1, Ordering::Relaxed);
    }

    fn queue(&self, stream: Stream) -> Arc<Queue> {
        let mut queues = lock(&self.queues);
        let Queues { by_stream, seen } = &mut *queues;
        let is_default = stream == self.device.default_stream();
        let queue = by_stream.entry(stream).or_insert_with(|| {
            *seen += u32::from(!is_default);
            Arc::new(Queue { number: if is_default { 0 } else { *seen }, pending: Mutex::default() })
        });
        Arc::clone(queue)
    }

    /// In the order of their numbers.
    fn all_queues(&self) -> Vec<Arc<Queue>> {
        let mut queues: Vec<_> = lock(&self.queues).by_stream.values().cloned().collect();
        queues.sort_by_key(|queue| queue.number);
        queues
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.forget_all();
        for event in lock(&self.idle).drain(..) {
            // SAFETY: ours, and nobody records it again.
            unsafe { self.device.destroy_event(event) };
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
