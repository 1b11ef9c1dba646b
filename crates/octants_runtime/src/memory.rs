//! One allocation, owned.

use std::fmt;
use std::sync::Arc;

use octants_hal::{Address, Cancel, DeviceError, Stream};

use crate::context::{Context, Stale};
use crate::stream::LiveStream;
use crate::stream_uses::StreamUses;

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
    uses: StreamUses,
}

/// The queue that copies and fills of the host join.
#[derive(Clone, Copy)]
pub struct HostQueue<'a> {
    /// Nothing means the default one.
    pub stream: Option<&'a LiveStream>,
    /// Ends a wait on the way.
    pub cancel: &'a Cancel,
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

impl From<DeviceError> for MemoryError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

impl Memory {
    /// Zeroed memory.
    pub fn allocate(context: &Arc<Context>, bytes: usize) -> Result<Self, MemoryError> {
        context.check()?;
        let address = if bytes == 0 { Address::NULL } else { context.device().allocate(bytes)? };
        context.count_allocation(bytes);
        Ok(Self { context: Arc::clone(context), address, bytes, uses: StreamUses::default() })
    }

    /// Zeroed memory of which only a part may ever be touched.
    pub fn reserve(context: &Arc<Context>, bytes: usize) -> Result<Self, MemoryError> {
        context.check()?;
        let address = if bytes == 0 { Address::NULL } else { context.device().reserve(bytes)? };
        context.count_allocation(bytes);
        Ok(Self { context: Arc::clone(context), address, bytes, uses: StreamUses::default() })
    }

    /// So many more bytes of a reservation are about to be used.
    pub fn commit(&self, bytes: u64) -> Result<(), MemoryError> {
        self.context.check()?;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        // SAFETY: the reservation lives as long as this does.
        unsafe { self.context.device().commit(self.address, bytes).map_err(MemoryError::from) }
    }

    /// A range of addresses that gets memory by [`Memory::back`]; a device that can do this has
    /// [`Capabilities::GROWING_RANGES`](octants_hal::Capabilities::GROWING_RANGES).
    pub fn reserve_range(context: &Arc<Context>, bytes: usize) -> Result<Self, MemoryError> {
        context.check()?;
        let address = context.device().reserve_range(bytes)?;
        context.count_allocation(bytes);
        Ok(Self { context: Arc::clone(context), address, bytes, uses: StreamUses::default() })
    }

    /// Zeroed memory for a part of a range, also for kernels that are running. One caller at a time.
    pub fn back(&self, offset: usize, bytes: usize) -> Result<(), MemoryError> {
        if self.range(offset, bytes)?.is_none() {
            return Ok(());
        }
        // SAFETY: the part was just checked, and only ranges are backed.
        unsafe { self.context.device().back(self.address, offset, bytes).map_err(MemoryError::from) }
    }

    /// Writes bytes that running kernels see, beside what streams do.
    pub fn write_beside(&self, offset: usize, from: &[u8]) -> Result<(), MemoryError> {
        let Some(to) = self.range(offset, from.len())? else { return Ok(()) };
        // SAFETY: the range was just checked.
        unsafe { self.context.device().write_beside(to, from).map_err(MemoryError::from) }
    }

    /// Reads bytes that running kernels may be writing, beside what streams do.
    pub fn read_beside(&self, offset: usize, to: &mut [u8]) -> Result<(), MemoryError> {
        let Some(from) = self.range(offset, to.len())? else { return Ok(()) };
        // SAFETY: the range was just checked.
        unsafe { self.context.device().read_beside(from, to).map_err(MemoryError::from) }
    }

    /// Whether a stream may still be at work on it.
    pub fn is_in_use(&self) -> bool {
        if self.context.check().is_err() {
            return false;
        }
        let uses = self.uses.snapshot();
        let others = uses.streams.iter().map(|state| state.stream());
        let mut streams = std::iter::once(self.context.default_stream()).chain(others);
        // SAFETY: the default stream is always there, and the snapshot keeps the others.
        streams.any(|stream| unsafe { self.context.device().is_idle(stream) } == Ok(false))
    }

    /// How many bytes a pool of cells may have: all that the device can back where memory comes into being when it is touched.
    pub fn reservable(context: &Context) -> u64 {
        context.device().reservable()
    }

    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where it lies, on the device. Null for zero bytes.
    pub fn address(&self) -> Result<Address, Stale> {
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
        let stream = self.begin_access(queue)?;
        // SAFETY: this allocation lives and is as long as it says; the pattern was just checked.
        unsafe { self.context.device().fill(stream, self.address, pattern, self.bytes)? };
        self.end_write(queue)
    }

    /// Copies bytes of the host to `offset`.
    pub fn write(&self, queue: HostQueue<'_>, offset: usize, from: &[u8]) -> Result<(), MemoryError> {
        let Some(to) = self.range(offset, from.len())? else { return Ok(()) };
        let stream = self.begin_access(queue)?;
        // SAFETY: the range lies inside this allocation, which is not the host's slice.
        unsafe {
            self.context.device().copy_to_device(stream, to, from.as_ptr(), from.len())?;
        }
        self.end_write(queue)
    }

    /// Copies bytes at `offset` to the host, and waits.
    pub fn read(&self, queue: HostQueue<'_>, offset: usize, to: &mut [u8]) -> Result<(), MemoryError> {
        let Some(from) = self.range(offset, to.len())? else { return Ok(()) };
        let stream = self.begin_access(queue)?;
        // SAFETY: as in `write`.
        unsafe {
            self.context.device().copy_to_host(stream, to.as_mut_ptr(), from, to.len())?;
        }
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
        let stream = self.begin_access(queue)?;
        // SAFETY: two ranges inside live allocations, which do not overlap.
        unsafe { self.context.device().copy(stream, to, from, bytes)? };
        // What is told later may write what this reads.
        other.end_write(queue)?;
        self.end_write(queue)
    }

    /// Waits until the streams that use this memory are past what they were told; so does the queue's stream.
    pub fn wait(&self, queue: HostQueue<'_>) -> Result<(), MemoryError> {
        self.context.check()?;
        let stream = self.begin_access(queue)?;
        if self.context.device().is_immediate(stream)
            || self.context.wait(stream, queue.cancel, &mut || {})?
        {
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

    /// A launch in this stream, which is about to be told, comes after what the host wrote.
    pub fn before_launch(&self, stream: &LiveStream) -> Result<(), DeviceError> {
        match self.uses.host_write() {
            0 => Ok(()),
            number => stream.see_host_writes(number),
        }
    }

    /// The stream was told of a launch that uses this memory.
    pub fn after_launch(&self, stream: &LiveStream) {
        if let Some(noted) = stream.noted() {
            self.uses.note(noted);
        }
    }

    /// The stream of an access by the host, which comes after what other streams were told to do with this memory.
    pub(crate) fn begin_access(&self, queue: HostQueue<'_>) -> Result<Stream, MemoryError> {
        let context = &self.context;
        let default = context.default_stream();
        let stream = match queue.stream {
            None => default,
            Some(live) if Arc::ptr_eq(live.context(), context) => live.stream(),
            Some(_) => return Err(MemoryError::OtherContext),
        };
        if self.uses.any() {
            self.join_uses(stream, queue.cancel)?;
        }
        if stream != default && !context.device().is_immediate(default) {
            // Which memory the default stream uses is not recorded.
            context.order(default, stream)?;
        }
        Ok(stream)
    }

    #[cold]
    fn join_uses(&self, stream: Stream, cancel: &Cancel) -> Result<(), MemoryError> {
        let context = &self.context;
        let uses = self.uses.snapshot();
        for used in uses.streams.iter().map(|state| state.stream()).filter(|&used| used != stream) {
            if !context.device().is_immediate(stream) {
                context.order(used, stream)?;
            } else if !context.wait(used, cancel, &mut || {})? {
                return Err(MemoryError::Cancelled);
            }
        }
        self.uses.forget(&uses);
        Ok(())
    }

    /// Records a write that was told, for launches and accesses in other streams.
    pub(crate) fn end_write(&self, queue: HostQueue<'_>) -> Result<(), MemoryError> {
        let context = &self.context;
        if let Some(stream) = queue.stream
            && let Some(noted) = stream.noted()
        {
            stream.after_work()?;
            self.uses.note(noted);
        } else if !context.device().is_immediate(context.default_stream()) {
            self.uses.note_host_write(context.next_host_write());
        }
        Ok(())
    }

    /// The address of a range inside; `None` if the range is empty.
    fn range(&self, offset: usize, bytes: usize) -> Result<Option<Address>, MemoryError> {
        self.context.check()?;
        if offset.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err(MemoryError::Range);
        }
        Ok((bytes != 0).then(|| self.address.offset(offset)))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.context.count_release(self.bytes);
        if self.bytes == 0 {
            return;
        }
        // SAFETY: allocated by this device with this size, and nobody has a handle any more.
        unsafe { self.context.device().free(self.address, self.bytes) };
    }
}
