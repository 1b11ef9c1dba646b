//! Events that a program makes itself.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use octants_hal::{Cancel, Capabilities, Device, DeviceError, Event, Stream};

use crate::context::Context;
use crate::stream::{LiveStream, StreamError};

/// An event in the context's table. Destroyed with the last reference.
pub(crate) struct EventState {
    device: Arc<dyn Device>,
    event: Event,
    recorded: AtomicBool,
}

impl EventState {
    pub fn create(context: &Context) -> Result<Self, DeviceError> {
        let device = Arc::clone(context.shared_device());
        let event = device.create_event(true)?;
        Ok(Self { device, event, recorded: AtomicBool::new(false) })
    }
}

impl Drop for EventState {
    fn drop(&mut self) {
        // SAFETY: made by this device, and nobody has it any more.
        unsafe { self.device.destroy_event(self.event) };
    }
}

/// Refers to an event without keeping it or its session alive.
///
/// A stream waits for the latest recording as of the call. So waits of streams cannot form a circle: what a stream waits for was told
/// before.
pub struct EventHandle {
    context: Weak<Context>,
    target: Target,
    destroyed: AtomicBool,
}

enum Target {
    Device(Weak<EventState>),
    /// On a device whose only stream is the default one: when it was recorded.
    Host(Mutex<Option<Instant>>),
}

/// An event that is not destroyed while this lives.
enum Live<'a> {
    Device(Arc<EventState>),
    Host(&'a Mutex<Option<Instant>>),
}

impl EventHandle {
    pub fn create(context: &Arc<Context>) -> Result<Self, StreamError> {
        context.check().map_err(|_| StreamError::Stale)?;
        let target = if context.device().capabilities().has(Capabilities::STREAMS) {
            Target::Device(Arc::downgrade(&context.table().create_event(context)?))
        } else {
            Target::Host(Mutex::new(None))
        };
        Ok(Self { context: Arc::downgrade(context), target, destroyed: AtomicBool::new(false) })
    }

    /// The context that its streams belong to.
    pub fn context(&self) -> Result<Arc<Context>, StreamError> {
        if self.destroyed.load(Ordering::Acquire) {
            return Err(StreamError::Destroyed);
        }
        let context = self.context.upgrade().ok_or(StreamError::Stale)?;
        context.check().map_err(|_| StreamError::Stale)?;
        Ok(context)
    }

    fn live(&self) -> Result<(Arc<Context>, Live<'_>), StreamError> {
        let context = self.context()?;
        let live = match &self.target {
            Target::Device(state) => Live::Device(state.upgrade().ok_or(StreamError::Stale)?),
            Target::Host(recorded) => Live::Host(recorded),
        };
        Ok((context, live))
    }

    /// The device's own handle; 0 on a device without streams.
    pub fn handle(&self) -> u64 {
        match &self.target {
            Target::Device(state) => state.upgrade().map_or(0, |state| state.event.0),
            Target::Host(_) => 0,
        }
    }

    /// The stream that is meant, of the event's own context.
    fn stream(context: &Arc<Context>, on: Option<&LiveStream>) -> Result<Stream, StreamError> {
        match on {
            None => Ok(context.default_stream()),
            Some(live) if Arc::ptr_eq(context, live.context()) => Ok(live.stream()),
            Some(_) => Err(StreamError::OtherSession),
        }
    }

    /// The event now stands at the end of the queue of a stream of its context, or of the default one.
    pub fn record(&self, on: Option<&LiveStream>) -> Result<(), StreamError> {
        let (context, live) = self.live()?;
        let stream = Self::stream(&context, on)?;
        match live {
            Live::Device(state) => {
                // SAFETY: both are kept alive.
                unsafe { context.device().record_event(stream, state.event)? };
                state.recorded.store(true, Ordering::Release);
            }
            Live::Host(recorded) => {
                context.wait_if_async(context.default_stream())?;
                *recorded.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            }
        }
        Ok(())
    }

    /// What comes later on the stream waits for the latest recording; for none, if there was none. The host waits only where the stream
    /// is one whose work is over when it is told; raising `cancel` ends that.
    pub fn wait(&self, on: Option<&LiveStream>, cancel: &Cancel) -> Result<(), StreamError> {
        let (context, live) = self.live()?;
        let stream = Self::stream(&context, on)?;
        let Live::Device(state) = live else { return Ok(()) };
        if !state.recorded.load(Ordering::Acquire) {
            return Ok(());
        }
        if context.device().is_immediate(stream) {
            return wait_for(&context, &state, cancel);
        }
        context.before_work(stream)?;
        // SAFETY: both are kept alive.
        unsafe { context.device().wait_event(stream, state.event)? };
        Ok(())
    }

    /// The host waits for the latest recording, if there was one.
    pub fn synchronise(&self, cancel: &Cancel) -> Result<(), StreamError> {
        match self.live()? {
            (context, Live::Device(state)) if state.recorded.load(Ordering::Acquire) => {
                wait_for(&context, &state, cancel)
            }
            (_, Live::Device(_)) => Ok(()),
            (context, Live::Host(_)) => {
                let is_over = context.wait(context.default_stream(), cancel, &mut || {})?;
                if is_over { Ok(()) } else { Err(StreamError::Cancelled) }
            }
        }
    }

    /// Whether the latest recording is passed; an event that was never recorded has nothing to wait for.
    pub fn is_passed(&self) -> Result<bool, StreamError> {
        let (context, live) = self.live()?;
        match live {
            // SAFETY: it is kept alive.
            Live::Device(state) if state.recorded.load(Ordering::Acquire) => unsafe {
                Ok(context.device().event_passed(state.event))
            },
            Live::Device(_) | Live::Host(_) => Ok(true),
        }
    }

    /// Whether nothing that was told before the latest recording is under way. While a session ends the answer is no; when its streams are gone it is yes.
    pub fn is_over(&self) -> bool {
        self.context.strong_count() == 0 || self.is_passed().unwrap_or(false)
    }

    /// Whether it is one of this context's.
    pub fn is_of(&self, context: &Arc<Context>) -> bool {
        std::ptr::eq(self.context.as_ptr(), Arc::as_ptr(context))
    }

    /// Milliseconds from the latest recording of this event to that of another one; waits for both.
    pub fn elapsed(&self, other: &Self, cancel: &Cancel) -> Result<f64, StreamError> {
        let ((context, begin), (other_context, end)) = (self.live()?, other.live()?);
        if !Arc::ptr_eq(&context, &other_context) {
            return Err(StreamError::OtherSession);
        }
        match (begin, end) {
            (Live::Device(begin), Live::Device(end)) => {
                for state in [&begin, &end] {
                    if !state.recorded.load(Ordering::Acquire) {
                        return Err(StreamError::NeverRecorded);
                    }
                    wait_for(&context, state, cancel)?;
                }
                // SAFETY: both are kept alive, and were passed.
                let nanoseconds = unsafe { context.device().elapsed(begin.event, end.event)? };
                // Another thread may have recorded one of them again meanwhile.
                nanoseconds.map(|time| time / 1e6).ok_or(StreamError::NeverRecorded)
            }
            (Live::Host(begin), Live::Host(end)) => {
                let time = |recorded: &Mutex<Option<Instant>>| {
                    recorded.lock().unwrap_or_else(PoisonError::into_inner).ok_or(StreamError::NeverRecorded)
                };
                let (begin, end) = (time(begin)?, time(end)?);
                let backward = begin.saturating_duration_since(end).as_secs_f64();
                Ok((end.saturating_duration_since(begin).as_secs_f64() - backward) * 1e3)
            }
            _ => Err(StreamError::OtherSession),
        }
    }

    /// Destroys the event; streams that wait for it still do. Nothing happens the second time, nor after a reset.
    pub fn destroy(&self) {
        let Ok(context) = self.context() else { return };
        if self.destroyed.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Target::Device(state) = &self.target
            && let Some(state) = state.upgrade()
        {
            context.table().release_event(&state);
        }
    }
}

/// The host waits until the event's latest recording is passed.
fn wait_for(context: &Context, state: &EventState, cancel: &Cancel) -> Result<(), StreamError> {
    // SAFETY: whoever calls keeps it alive.
    let passed = || unsafe { context.device().poll_event(state.event) };
    if context.wait_until(passed, cancel, &mut || {})? { Ok(()) } else { Err(StreamError::Cancelled) }
}

impl Drop for EventHandle {
    fn drop(&mut self) {
        self.destroy();
    }
}

impl fmt::Debug for EventHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventHandle({:#x})", self.handle())
    }
}
