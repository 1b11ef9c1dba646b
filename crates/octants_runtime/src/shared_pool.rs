//! Memory that host and device see, kept from launch to launch: getting such memory takes the system far longer than a launch.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use octants_hal::{Address, Device, DeviceError, SharedMemory};

/// The smallest block, in bytes: a page.
const MIN_BLOCK_BYTES: usize = 4096;

pub(crate) struct SharedPool {
    device: Arc<dyn Device>,
    idle: Mutex<Vec<Owned>>,
}

struct Owned(SharedMemory);

// SAFETY: it is memory, not bound to a thread.
unsafe impl Send for Owned {}

impl SharedPool {
    pub fn new(device: &Arc<dyn Device>) -> Self {
        Self { device: Arc::clone(device), idle: Mutex::default() }
    }

    /// A block of at least so many bytes, zeroed as far.
    pub fn take(&self, bytes: usize) -> Result<SharedBlock<'_>, DeviceError> {
        let idle = self.with(|idle| {
            let fits = idle.iter().position(|block| block.0.bytes >= bytes)?;
            Some(idle.swap_remove(fits))
        });
        let memory = match idle {
            Some(Owned(memory)) => memory,
            None => self.device.allocate_shared(bytes.next_power_of_two().max(MIN_BLOCK_BYTES))?,
        };
        // SAFETY: as many bytes are there, and nobody else has the block.
        unsafe { memory.host.write_bytes(0, bytes) };
        Ok(SharedBlock { pool: self, memory })
    }

    fn with<R>(&self, work: impl FnOnce(&mut Vec<Owned>) -> R) -> R {
        work(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for SharedPool {
    fn drop(&mut self) {
        for Owned(memory) in self.with(std::mem::take) {
            // SAFETY: blocks borrow the pool, so all of them are back, and those that came back are idle.
            unsafe { self.device.free_shared(memory) };
        }
    }
}

/// A block of the pool, which goes back when this is dropped: no verb may still use it then.
pub(crate) struct SharedBlock<'a> {
    pool: &'a SharedPool,
    memory: SharedMemory,
}

impl SharedBlock<'_> {
    /// Where the device sees it.
    pub fn device(&self) -> Address {
        self.memory.device
    }

    /// Where the host sees what lies so many bytes behind the beginning, which is aligned to 64.
    pub fn host<T>(&self, offset: usize) -> *mut T {
        self.memory.host.wrapping_add(offset).cast::<c_void>().cast()
    }

    /// Gives the block up: verbs that nobody waits for may write to it at any time.
    pub fn abandon(self) {
        std::mem::forget(self);
    }
}

impl Drop for SharedBlock<'_> {
    fn drop(&mut self) {
        self.pool.with(|idle| idle.push(Owned(self.memory)));
    }
}
