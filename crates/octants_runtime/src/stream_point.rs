//! A point of a stream's queue, which somebody waits for.
//!
//! **Who waits for a stream waits for what it was told before the wait began**, and for nothing that other threads tell it meanwhile: a stream that is
//! kept busy holds up nobody for longer than what is in its queue takes.

use octants_hal::{Capabilities, DeviceError, Stream};

use crate::context::Context;
use crate::stream_pool::PooledEvent;

/// The end of a stream's queue as of when this was made.
pub(crate) enum StreamPoint<'a> {
    Passed,
    Event(&'a Context, PooledEvent<'a>),
    /// On a device without events, whose only stream is the default one.
    Queue(&'a Context, Stream),
}

impl<'a> StreamPoint<'a> {
    /// A stream that has nothing to do is past it, and tells what failed there. If another thread tells it more before it was seen to, neither what failed nor what
    /// launches have reported is told: then it is waited for.
    pub fn new(context: &'a Context, stream: Stream) -> Result<Self, DeviceError> {
        let device = context.device();
        if !device.capabilities().has(Capabilities::STREAMS) {
            return Ok(Self::Queue(context, stream));
        }
        // SAFETY: a context gives out live streams alone, and the guard keeps the event.
        unsafe {
            if device.is_idle(stream) && device.poll(stream)? {
                return Ok(Self::Passed);
            }
            let event = context.streams().event()?;
            device.record_event(stream, event.event())?;
            Ok(Self::Event(context, event))
        }
    }

    /// One step of a wait: whether the stream is past the point. If so, an error that is to be told is the answer.
    pub fn poll(&self) -> Result<bool, DeviceError> {
        // SAFETY: as above.
        unsafe {
            match self {
                Self::Passed => Ok(true),
                Self::Event(context, event) => context.device().poll_event(event.event()),
                Self::Queue(context, stream) => context.device().poll(*stream),
            }
        }
    }
}
