//! Streams and events for the branches of forks: made when first needed, kept for the next fork.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use octants_hal::{Device, DeviceError, Event, Stream, StreamPriority, forked};

/// What is kept. Streams and events that are in use belong to their guards.
pub(crate) struct StreamPool {
    device: Arc<dyn Device>,
    /// Whether there ever was a stream.
    any: AtomicBool,
    idle: Mutex<Idle>,
    /// Of the process that opened the device.
    generation: u32,
}

#[derive(Default)]
struct Idle {
    /// With the stream that launched the last fork that used it: that one waits for what is left in its queue.
    streams: Vec<(Stream, Stream)>,
    events: Vec<Event>,
    /// Every stream that was made, idle or not.
    made: Vec<Stream>,
}

impl StreamPool {
    pub fn new(device: &Arc<dyn Device>) -> Self {
        Self {
            device: Arc::clone(device),
            any: AtomicBool::new(false),
            idle: Mutex::default(),
            generation: forked::generation(),
        }
    }

    /// A stream that nobody else adds to, for a branch of a fork that `launching` launches. Nothing is in its queue that the branch would
    /// not wait for anyway.
    pub fn stream(&self, launching: Stream) -> Result<PooledStream<'_>, DeviceError> {
        let idle = self.with(|idle| {
            let streams = &mut idle.streams;
            // SAFETY: the pool keeps its streams.
            let is_idle = |&(stream, _): &(Stream, Stream)| unsafe { self.device.is_idle(stream) };
            // The ones of the same launching stream first: the others have to be asked.
            let same = streams.iter().rposition(|&(_, last)| last == launching);
            let at = same.or_else(|| streams.iter().rposition(is_idle))?;
            Some(streams.swap_remove(at).0)
        });
        let stream = if let Some(stream) = idle {
            stream
        } else {
            let stream = self.device.create_stream(StreamPriority::Normal)?;
            self.any.store(true, Ordering::Release);
            self.with(|idle| idle.made.push(stream));
            stream
        };
        Ok(PooledStream { pool: self, stream, launching })
    }

    /// An event to record anew.
    pub fn event(&self) -> Result<PooledEvent<'_>, DeviceError> {
        self.take_event().map(|event| PooledEvent { pool: self, event })
    }

    /// Likewise, for as long as its recording is asked after.
    pub fn keep_event(self: &Arc<Self>) -> Result<KeptEvent, DeviceError> {
        self.take_event().map(|event| KeptEvent { pool: Arc::clone(self), event })
    }

    fn take_event(&self) -> Result<Event, DeviceError> {
        match self.with(|idle| idle.events.pop()) {
            Some(event) => Ok(event),
            None => self.device.create_event(false),
        }
    }

    /// Whether there ever was a stream.
    pub fn has_made_streams(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Every stream that was made so far.
    pub fn streams(&self) -> Vec<Stream> {
        self.with(|idle| idle.made.clone())
    }

    /// Whether this process is a forked child that must not touch the device.
    pub fn is_cut_off(&self) -> bool {
        self.generation != forked::generation() && (forked::is_cut_off() || !self.device.is_usable_in_child())
    }

    fn with<R>(&self, work: impl FnOnce(&mut Idle) -> R) -> R {
        work(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for StreamPool {
    fn drop(&mut self) {
        if self.is_cut_off() {
            return;
        }
        let Idle { events, made, .. } =
            std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        // SAFETY: guards borrow the pool or share it, so all of them are back.
        unsafe {
            for event in events {
                self.device.destroy_event(event);
            }
            for stream in made {
                self.device.destroy_stream(stream);
            }
        }
    }
}

/// A stream of the pool, which goes back when this is dropped.
pub(crate) struct PooledStream<'a> {
    pool: &'a StreamPool,
    stream: Stream,
    launching: Stream,
}

impl PooledStream<'_> {
    pub fn stream(&self) -> Stream {
        self.stream
    }
}

impl Drop for PooledStream<'_> {
    fn drop(&mut self) {
        self.pool.with(|idle| idle.streams.push((self.stream, self.launching)));
    }
}

/// An event of the pool, which goes back when this is dropped: who waits for it has said so by then.
pub(crate) struct PooledEvent<'a> {
    pool: &'a StreamPool,
    event: Event,
}

impl PooledEvent<'_> {
    pub fn event(&self) -> Event {
        self.event
    }
}

impl Drop for PooledEvent<'_> {
    fn drop(&mut self) {
        self.pool.with(|idle| idle.events.push(self.event));
    }
}

/// An event that is kept for longer than it takes to say who waits for it.
pub(crate) struct KeptEvent {
    pool: Arc<StreamPool>,
    event: Event,
}

impl KeptEvent {
    pub fn event(&self) -> Event {
        self.event
    }
}

impl Drop for KeptEvent {
    fn drop(&mut self) {
        if self.pool.is_cut_off() {
            return;
        }
        self.pool.with(|idle| idle.events.push(self.event));
    }
}
