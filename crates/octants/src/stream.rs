//! Streams and events of a session.

use std::sync::Arc;

use octants_hal::{Cancel, StreamPriority};
use octants_runtime::{Context, EventHandle, ExternalStream, LiveStream, StreamError, StreamHandle};

use crate::error::Error;
use crate::session::Session;
use crate::wait::told_late;

/// A queue of launches and copies, ordered with other queues by events alone. Does not keep its session alive.
///
/// On a device without several queues all streams are the default one.
#[derive(Debug)]
pub struct Stream {
    handle: StreamHandle,
}

impl Stream {
    pub fn new(session: &Session, priority: StreamPriority) -> Result<Self, Error> {
        StreamHandle::create(session.context(), priority)
            .map(|handle| Self { handle })
            .map_err(refused("stream"))
    }

    /// One that another library made, or a handle of one of the session's own. It is never destroyed through this.
    pub fn wrap(session: &Session, stream: ExternalStream) -> Result<Self, Error> {
        StreamHandle::wrap(session.context(), stream).map(|handle| Self { handle }).map_err(refused("stream"))
    }

    /// The device's own handle; 0 for the default stream.
    pub fn handle(&self) -> u64 {
        self.handle.handle()
    }

    /// The stream, kept from being destroyed while it is used.
    pub fn live(&self) -> Result<LiveStream, Error> {
        self.handle.live().map_err(refused("stream"))
    }

    /// Waits until everything in the queue is done. Raising `cancel` ends the wait, not the work.
    pub fn synchronise(&self, cancel: &Cancel) -> Result<(), Error> {
        let live = self.live()?;
        live.wait(cancel).map_err(refused("stream"))?;
        told_late(live.context())
    }

    /// Waits for the queue, then destroys the stream, unless it is another library's. No effect the second time, nor after a reset.
    pub fn destroy(&self, cancel: &Cancel) -> Result<(), Error> {
        self.handle.destroy(cancel).map_err(refused("stream"))
    }
}

/// A point in a stream's queue, which other streams and the host can wait for. Does not keep its session alive.
#[derive(Debug)]
pub struct Event {
    handle: EventHandle,
}

impl Event {
    pub fn new(session: &Session) -> Result<Self, Error> {
        Self::of(session.context())
    }

    pub(crate) fn of(context: &Arc<Context>) -> Result<Self, Error> {
        EventHandle::create(context).map(|handle| Self { handle }).map_err(refused("event"))
    }

    /// The device's own handle; 0 on a device without several queues.
    pub fn handle(&self) -> u64 {
        self.handle.handle()
    }

    /// The event now stands at the end of the stream's queue; of the default one's without a stream.
    pub fn record(&self, stream: Option<&LiveStream>) -> Result<(), Error> {
        self.handle.record(stream).map_err(refused("event"))
    }

    /// What comes later on the stream waits for the latest recording. The host does not, unless the stream is one whose work is over when
    /// it is told; raising `cancel` ends that.
    pub fn wait(&self, stream: Option<&LiveStream>, cancel: &Cancel) -> Result<(), Error> {
        self.handle.wait(stream, cancel).map_err(refused("event"))
    }

    /// The host waits for the latest recording. Raising `cancel` ends the wait.
    pub fn synchronise(&self, cancel: &Cancel) -> Result<(), Error> {
        self.handle.synchronise(cancel).map_err(refused("event"))?;
        self.handle.context().map_or(Ok(()), |context| told_late(&context))
    }

    /// Whether the latest recording is passed. There is nothing to wait for before the first.
    pub fn is_passed(&self) -> Result<bool, Error> {
        self.handle.is_passed().map_err(refused("event"))
    }

    /// Whether nothing that was told before the latest recording is under way, also in a session that was reset. While that ends the answer is no.
    pub fn is_over(&self) -> bool {
        self.handle.is_over()
    }

    /// Whether it is one of this session's.
    pub fn is_of(&self, session: &Session) -> bool {
        self.handle.is_of(session.context())
    }

    /// Milliseconds from the latest recording of this event to that of another; waits for both.
    pub fn elapsed(&self, other: &Self, cancel: &Cancel) -> Result<f64, Error> {
        self.handle.elapsed(&other.handle, cancel).map_err(refused("event"))
    }

    /// No effect the second time, nor after a reset.
    pub fn destroy(&self) {
        self.handle.destroy();
    }
}

/// Why a stream or an event was refused.
fn refused(what: &'static str) -> impl Fn(StreamError) -> Error {
    move |error| match error {
        StreamError::Stale => Error::Stale { what },
        StreamError::OtherSession => Error::OtherSession { what },
        StreamError::Destroyed => Error::Destroyed { what },
        StreamError::NoExternalStreams => Error::Unsupported {
            message: "this is no stream of the session, and its device cannot use streams of other libraries"
                .to_owned(),
        },
        StreamError::NeverRecorded => {
            Error::invalid("an event that was never recorded has no time: call record() first")
        }
        StreamError::Cancelled => Error::Cancelled,
        StreamError::Device(error) => Error::of_device(error),
    }
}
