//! Memory of one launch, in the order of its stream: of any content at first, and given back when the stream is past what was told until then.
//!
//! Nobody else may use it: what other streams do is not recorded.

use std::marker::PhantomData;
use std::sync::Arc;

use octants_hal::{Address, Cancel, Stream};

use crate::context::Context;
use crate::memory::MemoryError;
use crate::stream::LiveStream;

/// Zero bytes are no allocation at all.
pub struct StreamMemory<'s> {
    context: Arc<Context>,
    stream: Stream,
    /// Kept from being destroyed; nothing for the default stream.
    _live: Option<&'s LiveStream>,
    address: Address,
    bytes: usize,
}

impl<'s> StreamMemory<'s> {
    /// Raising `cancel` ends a wait for memory that is on its way back.
    pub fn allocate(
        context: &Arc<Context>,
        on: Option<&'s LiveStream>,
        bytes: usize,
        cancel: &Cancel,
    ) -> Result<Self, MemoryError> {
        context.check()?;
        let stream = match on {
            None => context.default_stream(),
            Some(live) if Arc::ptr_eq(live.context(), context) => live.stream(),
            Some(_) => return Err(MemoryError::OtherContext),
        };
        let address = if bytes == 0 {
            Address::NULL
        } else {
            // SAFETY: the stream is live.
            let allocate = || unsafe { context.device().allocate_scratch(stream, bytes) };
            context.making_room(cancel, allocate)?.ok_or(MemoryError::Cancelled)?
        };
        context.count_allocation(bytes);
        Ok(Self { context: Arc::clone(context), stream, _live: on, address, bytes })
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn address(&self) -> Address {
        self.address
    }

    /// The bytes from an offset on. `None` if there are not as many.
    pub fn part(&self, offset: usize, bytes: usize) -> Option<StreamMemoryPart<'_>> {
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        fits.then(|| StreamMemoryPart { address: self.address.offset(offset), bytes, _of: PhantomData })
    }

    pub fn fill_with_zeros(&self) -> Result<(), MemoryError> {
        if self.bytes > 0 {
            // SAFETY: it is this stream's, and as long as it says.
            unsafe { self.context.device().fill(self.stream, self.address, &[0], self.bytes)? };
        }
        Ok(())
    }

    /// Copies all of it to the host, and waits for what the stream was told before; raising `cancel` ends the wait.
    pub fn read(&self, cancel: &Cancel) -> Result<Vec<u8>, MemoryError> {
        let mut to = vec![0; self.bytes];
        if self.bytes == 0 {
            return Ok(to);
        }
        let device = self.context.device();
        if !device.is_immediate(self.stream) && !self.context.wait(self.stream, cancel, &mut || {})? {
            return Err(MemoryError::Cancelled);
        }
        // SAFETY: as many bytes lie on both sides.
        unsafe { device.copy_to_host(self.stream, to.as_mut_ptr(), self.address, self.bytes)? };
        Ok(to)
    }
}

/// A part of such memory.
pub struct StreamMemoryPart<'m> {
    pub(crate) address: Address,
    pub(crate) bytes: usize,
    _of: PhantomData<&'m ()>,
}

impl Drop for StreamMemory<'_> {
    fn drop(&mut self) {
        self.context.count_release(self.bytes);
        if self.bytes > 0 {
            // SAFETY: allocated for this stream, which lives, with this size.
            unsafe { self.context.device().free_scratch(self.stream, self.address, self.bytes) };
        }
    }
}
