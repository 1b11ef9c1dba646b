//! One allocation, owned.
//!
//! Laws, of which `stream_uses`, `host_writes` and `release` keep a part each:
//! * **An access of the host comes after all that streams were told to do with the memory before**, also if another thread or an interrupt comes
//!   between its being told and its waiting.
//! * **Zeros of new memory come before every use of it, on whatever stream**, and no stream waits for them that does not use it. As long as there is no other
//!   stream they are in the default one's order; then in a stream of their own, which waits for nothing. The default stream comes after them at once,
//!   others when they first use the memory.
//! * **Memory goes back when the streams that used it are past that**, whatever others do. The default stream is one of them: whoever asks for an address and does
//!   not note the stream that uses it may use it there.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use octants_hal::{Address, Cancel, DeviceError, Stream};

use crate::context::{Context, Stale};
use crate::stream::{LiveStream, StreamError, StreamState};
use crate::stream_uses::{Joined, StreamUses};

/// Device memory that is given back when this is dropped. Zero bytes are no allocation at all.
///
/// The bytes are shared with kernels, other handles' copies and the host's own views; two that touch the same bytes at the same time
/// race in what they find there, as the program that makes them do so says. Copies and fills join the queue of the stream that they
/// are told, after what other streams were told to do with this memory; one that reads waits for it.
#[derive(Debug)]
pub struct Memory {
    context: Arc<Context>,
    address: Address,
    bytes: usize,
    uses: StreamUses<Weak<StreamState>>,
    /// The number of the host's latest write in the default stream; 0 if there was none.
    host_write: AtomicU64,
    /// The number of the birth of memory that was not zeroed in the default stream; else 0.
    birth: u64,
}

/// The queue that copies and fills of the host join.
#[derive(Clone, Copy)]
pub struct HostQueue<'a> {
    /// Nothing means the default one.
    pub stream: Option<&'a LiveStream>,
    /// Ends a wait on the way.
    pub cancel: &'a Cancel,
}

/// An access of the host that was told.
pub(crate) struct Access {
    pub stream: Stream,
    /// The uses that it comes after.
    joined: Option<Joined>,
}

static NEVER: Cancel = Cancel::new();

impl Default for HostQueue<'static> {
    /// The default stream; nothing ends a wait.
    fn default() -> Self {
        Self { stream: None, cancel: &NEVER }
    }
}

/// Why memory was not allocated, read or written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemoryError {
    Stale(Stale),
    Device(DeviceError),
    /// The caller's flag was raised while waiting for streams.
    Cancelled,
    /// The stream belongs to another context.
    OtherContext,
    /// The range does not lie inside the allocation, or two sizes differ.
    Range,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale(stale) => stale.fmt(f),
            Self::Device(error) => error.fmt(f),
            Self::Cancelled => f.write_str("interrupted"),
            Self::OtherContext => f.write_str("the stream belongs to another session"),
            Self::Range => f.write_str("the range does not lie inside the allocation"),
        }
    }
}

impl std::error::Error for MemoryError {}

impl From<Stale> for MemoryError {
    fn from(stale: Stale) -> Self {
        Self::Stale(stale)
    }
}

impl From<StreamError> for MemoryError {
    /// Of a stream that the context makes for itself.
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Device(error) => Self::Device(error),
            StreamError::Cancelled => Self::Cancelled,
            StreamError::OtherSession => Self::OtherContext,
            StreamError::Stale
            | StreamError::Destroyed
            | StreamError::NoExternalStreams
            | StreamError::NeverRecorded => Self::Stale(Stale),
        }
    }
}

impl From<DeviceError> for MemoryError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

impl Memory {
    /// Zeroed memory.
    pub fn allocate(context: &Arc<Context>, bytes: usize) -> Result<Self, MemoryError> {
        Self::allocate_or_cancel(context, bytes, &NEVER)
    }

    /// Likewise; raising `cancel` ends a wait for memory that is on its way back.
    pub fn allocate_or_cancel(
        context: &Arc<Context>,
        bytes: usize,
        cancel: &Cancel,
    ) -> Result<Self, MemoryError> {
        // SAFETY: the stream is live.
        Self::born(context, bytes, cancel, |stream| unsafe { context.device().allocate(stream, bytes) })
    }

    /// Zeroed memory of which only a part may ever be touched. Raising `cancel` ends a wait.
    pub fn reserve(context: &Arc<Context>, bytes: usize, cancel: &Cancel) -> Result<Self, MemoryError> {
        // SAFETY: the stream is live.
        Self::born(context, bytes, cancel, |stream| unsafe { context.device().reserve(stream, bytes) })
    }

    /// Memory that `allocate` gives, zeroed in the order of a stream.
    fn born(
        context: &Arc<Context>,
        bytes: usize,
        cancel: &Cancel,
        allocate: impl Fn(Stream) -> Result<Address, DeviceError>,
    ) -> Result<Self, MemoryError> {
        context.check()?;
        if bytes == 0 {
            return Ok(Self::new(context, Address::NULL, 0));
        }
        context.free_released();
        let default = context.default_stream();
        let apart = context.counts_writes() && context.has_made_streams();
        let births = if apart { Some(context.table().births(context)?) } else { None };
        let stream = births.as_ref().map_or(default, |births| births.stream());
        let address = context.making_room(cancel, || allocate(stream))?.ok_or(MemoryError::Cancelled)?;
        if births.is_some()
            && let Err(error) = context.order(stream, default)
        {
            // SAFETY: it was just allocated; its zeros are in the order of this stream alone.
            unsafe { context.device().free(stream, address, bytes) };
            return Err(error.into());
        }
        let mut memory = Self::new(context, address, bytes);
        if births.is_some() {
            memory.birth = context.births().next();
        } else if context.counts_writes() {
            memory.note_host_write();
        }
        Ok(memory)
    }

    fn new(context: &Arc<Context>, address: Address, bytes: usize) -> Self {
        context.count_allocation(bytes);
        let (uses, host_write) = (StreamUses::new(), AtomicU64::new(0));
        Self { context: Arc::clone(context), address, bytes, uses, host_write, birth: 0 }
    }

    /// So many more bytes of a reservation are about to be used.
    pub fn commit(&self, bytes: u64) -> Result<(), MemoryError> {
        self.context.check()?;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        // SAFETY: the reservation lives as long as this does.
        unsafe { self.context.device().commit(self.address, bytes).map_err(MemoryError::from) }
    }

    /// A range of addresses that gets memory by [`Memory::back`]; a device that can do this has
    /// [`Capabilities::GROWING_RANGES`](octants_hal::Capabilities::GROWING_RANGES). Raising `cancel` ends a wait.
    pub fn reserve_range(context: &Arc<Context>, bytes: usize, cancel: &Cancel) -> Result<Self, MemoryError> {
        context.check()?;
        let address = context.making_room(cancel, || context.device().reserve_range(bytes))?;
        let address = address.ok_or(MemoryError::Cancelled)?;
        Ok(Self::new(context, address, bytes))
    }

    /// Zeroed memory for a part of a range, also for kernels that are running. One caller at a time.
    ///
    /// This and the two that follow serve kernels until they have ended, also after a reset.
    pub fn back(&self, offset: usize, bytes: usize) -> Result<(), MemoryError> {
        if self.part(offset, bytes)?.is_none() {
            return Ok(());
        }
        // SAFETY: the part was just checked, and only ranges are backed.
        let back = || unsafe { self.context.device().back(self.address, offset, bytes) };
        match back() {
            Err(DeviceError::OutOfMemory { .. }) => {
                // What is in use may be so by the kernel that waits for this.
                self.context.free_released();
                back().map_err(MemoryError::from)
            }
            backed => backed.map_err(MemoryError::from),
        }
    }

    /// Writes bytes that running kernels see, beside what streams do.
    pub fn write_beside(&self, offset: usize, from: &[u8]) -> Result<(), MemoryError> {
        let Some(to) = self.part(offset, from.len())? else { return Ok(()) };
        // SAFETY: the range was just checked.
        unsafe { self.context.device().write_beside(to, from).map_err(MemoryError::from) }
    }

    /// Reads bytes that running kernels may be writing, beside what streams do.
    pub fn read_beside(&self, offset: usize, to: &mut [u8]) -> Result<(), MemoryError> {
        let Some(from) = self.part(offset, to.len())? else { return Ok(()) };
        // SAFETY: the range was just checked.
        unsafe { self.context.device().read_beside(from, to).map_err(MemoryError::from) }
    }

    /// Whether a kernel may still be at work on it, also one of before a reset.
    pub fn is_in_use(&self) -> bool {
        if self.context.deferred_frees().any_launch() {
            return true;
        }
        let uses = self.uses.users();
        let others = uses.iter().map(|state| state.stream());
        let mut streams = std::iter::once(self.context.default_stream()).chain(others);
        // SAFETY: the default stream is always there, and the snapshot keeps the others.
        streams.any(|stream| !unsafe { self.context.device().is_idle(stream) })
    }

    /// How many bytes a pool of cells may have: all that the device can back where memory comes into being when it is touched.
    pub fn reservable(context: &Context) -> u64 {
        context.device().reservable()
    }

    #[inline]
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where it lies, on the device, for uses in the default stream. Null for zero bytes.
    #[inline]
    pub fn address(&self) -> Result<Address, Stale> {
        self.note_default_use();
        self.noted_address()
    }

    /// Likewise, for who notes the stream that uses it: [`Memory::after_launch`].
    #[inline]
    pub fn noted_address(&self) -> Result<Address, Stale> {
        self.context.check().map(|()| self.address)
    }

    /// Where it lies, if the host can look there.
    pub fn host_pointer(&self) -> Result<Option<*mut u8>, Stale> {
        self.context.check()?;
        Ok(self.context.sees_host_memory().then(|| self.address.as_ptr()))
    }

    /// Repeats `pattern` over all of it; its length must divide the number of bytes.
    pub fn fill(&self, queue: HostQueue<'_>, pattern: &[u8]) -> Result<(), MemoryError> {
        self.context.check()?;
        if self.bytes == 0 {
            return Ok(());
        }
        if pattern.is_empty() || !self.bytes.is_multiple_of(pattern.len()) {
            return Err(MemoryError::Range);
        }
        let stream = self.begin_access(queue)?.stream;
        // SAFETY: this allocation lives and is as long as it says; the pattern was just checked.
        let told = unsafe { self.context.device().fill(stream, self.address, pattern, self.bytes) };
        self.end_write(queue, told.map_err(MemoryError::from))
    }

    /// Copies bytes of the host to `offset`.
    pub fn write(&self, queue: HostQueue<'_>, offset: usize, from: &[u8]) -> Result<(), MemoryError> {
        let Some(to) = self.range(offset, from.len())? else { return Ok(()) };
        let stream = self.begin_access(queue)?.stream;
        // SAFETY: the range lies inside this allocation, which is not the host's slice.
        let told = unsafe { self.context.device().copy_to_device(stream, to, from.as_ptr(), from.len()) };
        self.end_write(queue, told.map_err(MemoryError::from))
    }

    /// Copies bytes at `offset` to the host, and waits.
    pub fn read(&self, queue: HostQueue<'_>, offset: usize, to: &mut [u8]) -> Result<(), MemoryError> {
        let Some(from) = self.range(offset, to.len())? else { return Ok(()) };
        let access = self.begin_access(queue)?;
        // SAFETY: as in `write`.
        let read =
            unsafe { self.context.device().copy_to_host(access.stream, to.as_mut_ptr(), from, to.len()) };
        if read.is_err() {
            return self.end_write(queue, read.map_err(MemoryError::from));
        }
        self.have_waited(&access);
        Ok(())
    }

    /// Copies all of another allocation of the same context and size.
    pub fn copy_from(&self, queue: HostQueue<'_>, other: &Self) -> Result<(), MemoryError> {
        self.context.check()?;
        if self.bytes != other.bytes {
            return Err(MemoryError::Range);
        }
        if self.address == other.address {
            return Ok(());
        }
        self.copy_range(queue, 0, other, 0, self.bytes)
    }

    /// Copies bytes of another allocation of the same context, from an offset to another; or of this one, if the ranges do not overlap.
    pub(crate) fn copy_range(
        &self,
        queue: HostQueue<'_>,
        offset: usize,
        other: &Self,
        other_offset: usize,
        bytes: usize,
    ) -> Result<(), MemoryError> {
        if !Arc::ptr_eq(&self.context, &other.context) {
            return Err(MemoryError::Range);
        }
        let ranges = (self.range(offset, bytes)?, other.range(other_offset, bytes)?);
        let (Some(to), Some(from)) = ranges else { return Ok(()) };
        if to.0.abs_diff(from.0) < bytes as u64 {
            return Err(MemoryError::Range);
        }
        other.begin_access(queue)?;
        let stream = self.begin_access(queue)?.stream;
        // SAFETY: two ranges inside live allocations, which do not overlap.
        let told = unsafe { self.context.device().copy(stream, to, from, bytes) };
        // What is told later may write what this reads.
        let told = other.end_write(queue, told.map_err(MemoryError::from));
        self.end_write(queue, told)
    }

    /// Waits until the streams that use this memory are past what they were told; so does the queue's stream.
    pub fn wait(&self, queue: HostQueue<'_>) -> Result<(), MemoryError> {
        self.context.check()?;
        let access = self.begin_access(queue)?;
        if self.context.device().is_immediate(access.stream)
            || self.context.wait(access.stream, queue.cancel, &mut || {})?
        {
            self.have_waited(&access);
            Ok(())
        } else {
            Err(MemoryError::Cancelled)
        }
    }

    /// Whether a stream beside the default one may be at work on it.
    #[inline]
    pub fn is_used_by_streams(&self) -> bool {
        self.uses.any()
    }

    /// A launch in this stream, which is about to be told, comes after what the host wrote, and after the zeros that the memory began with.
    pub fn before_launch(&self, stream: &LiveStream) -> Result<(), DeviceError> {
        if self.birth != 0 {
            stream.see_births(self.birth)?;
        }
        match self.host_write.load(Ordering::Acquire) {
            0 => Ok(()),
            number => stream.see_host_writes(number),
        }
    }

    /// A launch in the default stream may be given this memory from now on.
    #[inline]
    pub fn note_default_use(&self) {
        self.uses.note_default();
    }

    /// The stream was told of a launch that uses this memory.
    pub fn after_launch(&self, stream: &LiveStream) {
        match stream.noted() {
            Some(noted) => self.uses.note(&Arc::downgrade(noted)),
            None => self.note_default_use(),
        }
    }

    /// The stream of an access by the host, which comes after what other streams were told to do with this memory.
    pub(crate) fn begin_access(&self, queue: HostQueue<'_>) -> Result<Access, MemoryError> {
        let context = &self.context;
        let default = context.default_stream();
        let stream = match queue.stream {
            None => default,
            Some(live) if Arc::ptr_eq(live.context(), context) => live.stream(),
            Some(_) => return Err(MemoryError::OtherContext),
        };
        let joined = if self.uses.any() { Some(self.join_uses(stream, queue)?) } else { None };
        match queue.stream {
            Some(live) if stream != default && !context.device().is_immediate(default) => {
                // What the host wrote has numbers only where streams are.
                if self.uses.in_default() || !context.counts_writes() {
                    context.order(default, stream)?;
                }
                self.before_launch(live)?;
            }
            _ => {}
        }
        Ok(Access { stream, joined })
    }

    /// Makes a stream come after the uses until now. One that is immediate waits for them; another one has them before it, and stands for them.
    #[cold]
    fn join_uses(&self, stream: Stream, queue: HostQueue<'_>) -> Result<Joined, MemoryError> {
        let context = &self.context;
        let uses = self.uses.snapshot();
        if context.device().is_immediate(stream) {
            for (_, used) in &uses.streams {
                if !context.wait(used.stream(), queue.cancel, &mut || {})? {
                    return Err(MemoryError::Cancelled);
                }
            }
            let joined = uses.waited();
            self.uses.forget(&joined);
            return Ok(joined);
        }
        let joining = queue.stream.and_then(|stream| stream.noted()).map(Arc::downgrade);
        // The handle of an external stream may have been another one's when the memory was used, or that of another thread.
        let is_itself = |used: &Weak<StreamState>| {
            queue.stream.is_some_and(|stream| !stream.is_external())
                && joining.as_ref().is_some_and(|joining| joining.ptr_eq(used))
        };
        for (used, state) in &uses.streams {
            if !is_itself(used) {
                context.order(state.stream(), stream)?;
            }
        }
        if let Some(stream) = queue.stream {
            stream.after_work()?;
        }
        Ok(self.uses.replace(&uses, joining.as_ref()))
    }

    /// The stream of an access is past what it was told for that.
    fn have_waited(&self, access: &Access) {
        if let Some(joined) = &access.joined {
            self.uses.forget(joined);
        }
    }

    /// A write of the host is in the default stream's queue.
    fn note_host_write(&self) {
        self.host_write.fetch_max(self.context.host_writes().next(), Ordering::AcqRel);
    }

    /// Records a write for launches and accesses in other streams, also one of which the stream may have been told a part before it failed.
    pub(crate) fn end_write(
        &self,
        queue: HostQueue<'_>,
        told: Result<(), MemoryError>,
    ) -> Result<(), MemoryError> {
        let context = &self.context;
        if let Some(stream) = queue.stream
            && let Some(noted) = stream.noted()
        {
            let followed = stream.after_work();
            if followed.is_err() {
                // Nothing stands behind the work: then it is to be over. If waiting fails, too, the device is past running anything.
                drop(context.wait_if_async(stream.stream()));
            }
            self.uses.note(&Arc::downgrade(noted));
            return told.and(followed.map_err(MemoryError::from));
        }
        if context.counts_writes() {
            self.note_host_write();
        }
        told
    }

    /// The address of a range inside; `None` if the range is empty.
    fn range(&self, offset: usize, bytes: usize) -> Result<Option<Address>, MemoryError> {
        self.context.check()?;
        self.part(offset, bytes)
    }

    /// Likewise, also after a reset.
    fn part(&self, offset: usize, bytes: usize) -> Result<Option<Address>, MemoryError> {
        if offset.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err(MemoryError::Range);
        }
        Ok((bytes != 0).then(|| self.address.offset(offset)))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.context.count_release(self.bytes);
        if self.bytes == 0 || self.context.is_cut_off() {
            return;
        }
        let users = self.uses.users();
        let host_write = self.host_write.load(Ordering::Acquire);
        // Who has come after the host's write is past it when it is past its own work.
        let is_written = host_write != 0 && !users.iter().any(|user| user.has_seen_host_writes(host_write));
        let in_default = is_written || self.uses.in_default();
        self.context.release(self.address, self.bytes, &users, in_default);
    }
}
