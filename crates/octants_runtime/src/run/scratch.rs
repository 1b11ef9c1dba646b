//! Memory of the device that the tasks of one launch share: temporaries, and counters of prints.

use octants_hal::{Address, Cancel, DeviceError, Stream};

use super::RunError;
use crate::context::Context;

/// It goes back when its stream has passed what was told until then.
pub(super) struct Scratch<'a> {
    owner: &'a Context,
    stream: Stream,
    address: Address,
    bytes: usize,
}

impl<'a> Scratch<'a> {
    /// # Safety
    /// The stream is live as long as this.
    pub unsafe fn new(
        owner: &'a Context,
        stream: Stream,
        bytes: usize,
        cancel: &Cancel,
    ) -> Result<Self, RunError> {
        let address = if bytes == 0 {
            Address::NULL
        } else {
            // SAFETY: the caller says so.
            let allocate = || unsafe { owner.device().allocate_scratch(stream, bytes) };
            owner.making_room(cancel, allocate)?.ok_or(RunError::Cancelled)?
        };
        Ok(Self { owner, stream, address, bytes })
    }

    pub fn address(&self) -> Address {
        self.address
    }

    /// Temporaries, and counters, begin as zero.
    pub fn fill(&self) -> Result<(), DeviceError> {
        // SAFETY: it was allocated for this stream.
        unsafe { self.owner.device().fill(self.stream, self.address, &[0], self.bytes) }
    }

    /// Copies bytes from `offset` on, and waits.
    pub fn read(&self, stream: Stream, offset: usize, to: &mut [u8]) -> Result<(), DeviceError> {
        debug_assert!(offset + to.len() <= self.bytes);
        // SAFETY: as many bytes lie on both sides.
        unsafe {
            self.owner.device().copy_to_host(stream, to.as_mut_ptr(), self.address.offset(offset), to.len())
        }
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: allocated for this stream; branches of a fork, which use it too, have been joined to it.
            unsafe { self.owner.device().free_scratch(self.stream, self.address, self.bytes) };
        }
    }
}
