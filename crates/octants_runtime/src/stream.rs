//! Streams that a program makes itself, and those that it borrows from another library.
//!
//! A context owns its streams; a [`StreamHandle`] refers to one weakly. Whoever is about to use the stream turns the handle into a
//! [`LiveStream`], which keeps the stream from being destroyed meanwhile; that is where stale and destroyed handles are refused.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Weak};

use octants_hal::{Cancel, Capabilities, Device, DeviceError, Stream, StreamPriority};

use crate::context::Context;
use crate::external_stream::ExternalStream;
use crate::stream_uses::UsingStream;

/// `CU_STREAM_LEGACY`
const LEGACY_DEFAULT: Stream = Stream(1);

/// A stream in the context's table. Destroyed with the last reference.
///
/// **The table keeps it as long as it may be at work**: who finds it gone finds it past everything.
pub(crate) struct StreamState {
    device: Arc<dyn Device>,
    stream: Stream,
    /// The numbers of the last write of the host, and of the last birth of memory, that come before what this stream is told now.
    host_writes: AtomicU64,
    births: AtomicU64,
    /// Nobody may tell it more: see [`StreamState::close`].
    closed: AtomicBool,
}

impl UsingStream for Weak<StreamState> {
    type Live = Arc<StreamState>;

    fn is_same(&self, other: &Self) -> bool {
        self.ptr_eq(other)
    }

    fn live(&self) -> Option<Arc<StreamState>> {
        self.upgrade()
    }
}

impl StreamState {
    pub fn create(context: &Context, priority: StreamPriority) -> Result<Self, DeviceError> {
        let device = Arc::clone(context.shared_device());
        let stream = device.create_stream(priority)?;
        Ok(Self {
            device,
            stream,
            host_writes: AtomicU64::new(0),
            births: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        })
    }

    pub fn stream(&self) -> Stream {
        self.stream
    }

    pub fn is_idle(&self) -> bool {
        // SAFETY: it lives as long as this.
        unsafe { self.device.is_idle(self.stream) }
    }

    /// Whether what it is told now comes after the host's write of this number.
    pub fn has_seen_host_writes(&self, number: u64) -> bool {
        self.host_writes.load(Ordering::Acquire) >= number
    }

    /// Waits until it is past everything. What failed is told to nobody.
    pub fn synchronise(&self) {
        // SAFETY: as above.
        drop(unsafe { self.device.synchronise(self.stream) });
    }

    /// Nobody gets it from a handle from now on.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Whether the stream, which is closed, is past all that it will ever be told, so that its owner, who has this reference, may let it go.
    pub fn is_over(self: &Arc<Self>) -> bool {
        // Who has got it from a handle is seen here, or sees that it is closed.
        fence(Ordering::SeqCst);
        Arc::strong_count(self) == 1 && {
            fence(Ordering::Acquire);
            self.is_idle()
        }
    }

    /// For a handle.
    fn open(state: &Weak<Self>) -> Option<Arc<Self>> {
        let state = state.upgrade()?;
        fence(Ordering::SeqCst);
        (!state.closed.load(Ordering::Relaxed)).then_some(state)
    }

    /// What failed in the stream, which is idle, and was told to nobody.
    pub fn untold_error(&self) -> Option<DeviceError> {
        // SAFETY: as above.
        unsafe { self.device.poll(self.stream) }.err()
    }
}

impl Drop for StreamState {
    fn drop(&mut self) {
        // SAFETY: made by this device, and nobody has it any more.
        unsafe { self.device.destroy_stream(self.stream) };
    }
}

/// Why a stream or an event cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StreamError {
    /// Its session was reset.
    Stale,
    /// It belongs to another session.
    OtherSession,
    /// It was destroyed.
    Destroyed,
    /// The device cannot use streams of other libraries.
    NoExternalStreams,
    /// An event was asked for the time of a recording that never was.
    NeverRecorded,
    /// The caller's flag was raised while waiting.
    Cancelled,
    Device(DeviceError),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale => f.write_str("it belongs to a session that was reset"),
            Self::OtherSession => f.write_str("it belongs to another session"),
            Self::Destroyed => f.write_str("it was destroyed"),
            Self::NoExternalStreams => f.write_str("the device has no streams of other libraries"),
            Self::NeverRecorded => f.write_str("it was never recorded"),
            Self::Cancelled => f.write_str("interrupted"),
            Self::Device(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StreamError {}

impl From<DeviceError> for StreamError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

/// Refers to a stream without keeping it or its session alive.
pub struct StreamHandle {
    context: Weak<Context>,
    target: Target,
    destroyed: AtomicBool,
}

enum Target {
    /// The default stream; on a device without others all streams are this one.
    Default,
    /// A stream of the context's; an owning handle destroys it.
    Own { state: Weak<StreamState>, stream: Stream, owning: bool },
    /// A stream that another library made, keeps and destroys.
    External(Stream),
}

/// A stream that is not destroyed while this lives, and its context.
pub struct LiveStream {
    context: Arc<Context>,
    stream: Stream,
    /// The context's stream that stands for this one in records of use: itself, or for an external stream one that waits for it. None
    /// for the default stream.
    noted: Option<Arc<StreamState>>,
    external: bool,
}

impl StreamHandle {
    /// A new stream.
    pub fn create(context: &Arc<Context>, priority: StreamPriority) -> Result<Self, StreamError> {
        context.check().map_err(|_| StreamError::Stale)?;
        let target = if context.device().capabilities().has(Capabilities::STREAMS) {
            let state = context.table().create_stream(context, priority)?;
            Target::Own { stream: state.stream(), state: Arc::downgrade(&state), owning: true }
        } else {
            Target::Default
        };
        Ok(Self::new(context, target))
    }

    /// A stream by the device's own handle: the default one (0), one of this context's, or another library's. It is never destroyed
    /// through this.
    pub fn wrap(context: &Arc<Context>, stream: ExternalStream) -> Result<Self, StreamError> {
        context.check().map_err(|_| StreamError::Stale)?;
        let stream = stream.stream();
        let target = if stream.0 == 0 || stream == context.default_stream() {
            Target::Default
        } else if let Some(state) = context.table().find(stream) {
            Target::Own { state: Arc::downgrade(&state), stream, owning: false }
        } else if context.device().capabilities().has(Capabilities::EXTERNAL_STREAMS) {
            // CUDA has two names for its default stream.
            if stream == LEGACY_DEFAULT { Target::Default } else { Target::External(stream) }
        } else {
            return Err(StreamError::NoExternalStreams);
        };
        Ok(Self::new(context, target))
    }

    fn new(context: &Arc<Context>, target: Target) -> Self {
        Self { context: Arc::downgrade(context), target, destroyed: AtomicBool::new(false) }
    }

    /// The device's own handle; 0 for the default stream.
    pub fn handle(&self) -> u64 {
        match self.target {
            Target::Default => 0,
            Target::Own { stream, .. } | Target::External(stream) => stream.0,
        }
    }

    /// The context, if it lives and the handle was not given up.
    fn context(&self) -> Result<Arc<Context>, StreamError> {
        if self.destroyed.load(Ordering::Acquire) {
            return Err(StreamError::Destroyed);
        }
        let context = self.context.upgrade().ok_or(StreamError::Stale)?;
        context.check().map_err(|_| StreamError::Stale)?;
        Ok(context)
    }

    /// The stream, for use.
    pub fn live(&self) -> Result<LiveStream, StreamError> {
        let context = self.context()?;
        let (stream, noted, external) = match &self.target {
            Target::Default => (context.default_stream(), None, false),
            Target::Own { state, stream, .. } => {
                // Another handle of it, or a reset, may have destroyed it.
                let gone =
                    || if context.check().is_err() { StreamError::Stale } else { StreamError::Destroyed };
                (*stream, Some(StreamState::open(state).ok_or_else(gone)?), false)
            }
            Target::External(stream) => (*stream, Some(context.table().follower(&context, *stream)?), true),
        };
        Ok(LiveStream { context, stream, noted, external })
    }

    /// Waits until the stream is past everything that it was told. Raising `cancel` ends the wait.
    pub fn synchronise(&self, cancel: &Cancel) -> Result<(), StreamError> {
        self.live()?.wait(cancel)
    }

    /// Waits as [`StreamHandle::synchronise`] does, then destroys the stream, unless it is another's. Nothing happens the second time, nor
    /// after a reset.
    pub fn destroy(&self, cancel: &Cancel) -> Result<(), StreamError> {
        let live = match self.live() {
            Ok(live) => live,
            Err(StreamError::Stale | StreamError::Destroyed) => return Ok(()),
            Err(other) => return Err(other),
        };
        live.wait(cancel)?;
        let context = Arc::clone(live.context());
        drop(live);
        if !self.destroyed.swap(true, Ordering::AcqRel) {
            self.release(&context);
        }
        Ok(())
    }

    /// Takes the stream out of the context's table, if this handle owns it.
    fn release(&self, context: &Context) {
        if let Target::Own { stream, owning: true, .. } = self.target {
            context.table().release_stream(stream);
        }
    }
}

impl Drop for StreamHandle {
    /// Never waits: a stream with work in its queue is destroyed later.
    fn drop(&mut self) {
        if let Ok(context) = self.context() {
            self.release(&context);
        }
    }
}

impl fmt::Debug for StreamHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamHandle({:#x})", self.handle())
    }
}

impl Drop for LiveStream {
    /// The last one of a stream that was given up meanwhile lets the table destroy it.
    fn drop(&mut self) {
        if let Some(noted) = self.noted.take()
            && noted.closed.load(Ordering::Relaxed)
        {
            drop(noted);
            self.context.table().sweep();
        }
    }
}

impl LiveStream {
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Whether it is the default stream.
    pub fn is_default(&self) -> bool {
        self.noted.is_none()
    }

    /// Waits until the stream is past everything that it was told. Raising `cancel` ends the wait.
    pub fn wait(&self, cancel: &Cancel) -> Result<(), StreamError> {
        let over = self.context.device().is_immediate(self.stream)
            || self.context.wait(self.stream, cancel, &mut || {})?;
        if over { Ok(()) } else { Err(StreamError::Cancelled) }
    }

    /// Whether it is another library's.
    pub(crate) fn is_external(&self) -> bool {
        self.external
    }

    /// The stream that stands for this one in records of use; none for the default stream.
    pub(crate) fn noted(&self) -> Option<&Arc<StreamState>> {
        self.noted.as_ref()
    }

    /// Called after work was added to the queue: what waits for all streams of the context then also waits for external ones.
    pub fn after_work(&self) -> Result<(), DeviceError> {
        match &self.noted {
            Some(noted) if self.external => self.context.order(self.stream, noted.stream),
            _ => Ok(()),
        }
    }

    /// Makes what is told next come after the host's writes up to the number, which are in the default stream's queue.
    pub(crate) fn see_host_writes(&self, number: u64) -> Result<(), DeviceError> {
        let context = &self.context;
        self.see(
            number,
            |noted| &noted.host_writes,
            || context.host_writes().come_before(context, context.default_stream(), number, self.stream),
        )
    }

    /// Likewise after births of memory, which are in the queue of a stream of their own.
    pub(crate) fn see_births(&self, number: u64) -> Result<(), DeviceError> {
        let context = &self.context;
        let Some(births) = context.table().known_births() else { return Ok(()) };
        self.see(
            number,
            |noted| &noted.births,
            || context.births().come_before(context, births.stream(), number, self.stream),
        )
    }

    fn see(
        &self,
        number: u64,
        seen: impl Fn(&StreamState) -> &AtomicU64,
        come_after: impl FnOnce() -> Result<u64, DeviceError>,
    ) -> Result<(), DeviceError> {
        let Some(noted) = &self.noted else { return Ok(()) };
        // A library may give the handle of an external stream to another one, which has seen nothing.
        if !self.external && seen(noted).load(Ordering::Acquire) >= number {
            return Ok(());
        }
        let latest = come_after()?;
        seen(noted).fetch_max(latest, Ordering::AcqRel);
        Ok(())
    }
}
