//! One allocation, owned.

use std::fmt;
use std::sync::Arc;

use octants_hal::{Address, DeviceError, Stream};

use crate::context::{Context, Stale};

/// Device memory that is given back when this is dropped. Zero bytes are no allocation at all.
///
/// The bytes are shared with kernels, other handles' copies and the host's own views; two that touch the same bytes at the same time
/// race in what they find there, as the program that makes them do so says. Copies and fills join the queue of the stream that they
/// are told; one that reads waits for it.
#[derive(Debug)]
pub struct Memory {
    context: Arc<Context>,
    address: Address,
    bytes: usize,
}

/// Why memory was not allocated, read or written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemoryError {
    Stale(Stale),
    Device(DeviceError),
    /// The range does not lie inside the allocation, or two sizes differ.
    Range,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale(stale) => stale.fmt(f),
            Self::Device(error) => error.fmt(f),
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
        Ok(Self { context: Arc::clone(context), address, bytes })
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
    pub fn fill(&self, stream: Stream, pattern: &[u8]) -> Result<(), MemoryError> {
        self.context.check()?;
        if self.bytes == 0 {
            return Ok(());
        }
        if pattern.is_empty() || !self.bytes.is_multiple_of(pattern.len()) {
            return Err(MemoryError::Range);
        }
        // SAFETY: this allocation lives and is as long as it says; the pattern was just checked.
        unsafe { self.context.device().fill(stream, self.address, pattern, self.bytes)? };
        Ok(())
    }

    /// Copies bytes of the host to `offset`.
    pub fn write(&self, stream: Stream, offset: usize, from: &[u8]) -> Result<(), MemoryError> {
        let Some(to) = self.range(offset, from.len())? else { return Ok(()) };
        // SAFETY: the range lies inside this allocation, which is not the host's slice.
        unsafe {
            self.context.device().copy_to_device(stream, to, from.as_ptr(), from.len())?;
        }
        Ok(())
    }

    /// Copies bytes at `offset` to the host, and waits.
    pub fn read(&self, stream: Stream, offset: usize, to: &mut [u8]) -> Result<(), MemoryError> {
        let Some(from) = self.range(offset, to.len())? else { return Ok(()) };
        // SAFETY: as in `write`.
        unsafe {
            self.context.device().copy_to_host(stream, to.as_mut_ptr(), from, to.len())?;
        }
        Ok(())
    }

    /// Copies all of another allocation of the same context and size.
    pub fn copy_from(&self, stream: Stream, other: &Self) -> Result<(), MemoryError> {
        self.context.check()?;
        if !Arc::ptr_eq(&self.context, &other.context) || self.bytes != other.bytes {
            return Err(MemoryError::Range);
        }
        if self.bytes == 0 || self.address == other.address {
            return Ok(());
        }
        // SAFETY: two live allocations of this size, which do not overlap.
        unsafe { self.context.device().copy(stream, self.address, other.address, self.bytes)? };
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
