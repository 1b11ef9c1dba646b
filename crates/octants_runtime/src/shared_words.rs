//! Words that running kernels write and the host looks at without waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use octants_hal::{Address, SharedMemory};

use crate::context::Context;
use crate::memory::MemoryError;

/// Memory of the host that the device sees. Whoever drops it makes sure that no kernel writes it any more.
pub struct SharedWords {
    context: Arc<Context>,
    memory: SharedMemory,
}

// SAFETY: it is memory that is accessed by atomic loads and stores, not bound to a thread.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// So many words, all zero.
    pub fn allocate(context: &Arc<Context>, count: usize) -> Result<Self, MemoryError> {
        context.check()?;
        let memory = context.device().allocate_shared(4 * count.max(1))?;
        // SAFETY: as many bytes are there, and nobody else knows them yet.
        unsafe { memory.host.write_bytes(0, 4 * count) };
        Ok(Self { context: Arc::clone(context), memory })
    }

    /// Where the device sees a word.
    pub fn address(&self, word: usize) -> Address {
        self.memory.device.offset(4 * word)
    }

    /// What a word says, which is zero from now on.
    pub fn take(&self, word: usize) -> u32 {
        assert!(4 * word < self.memory.bytes, "the words that were asked for");
        // SAFETY: it lies in the memory, which is aligned to more than a word.
        let word = unsafe { AtomicU32::from_ptr(self.memory.host.add(4 * word).cast()) };
        match word.load(Ordering::Acquire) {
            0 => 0,
            _ => word.swap(0, Ordering::AcqRel),
        }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: allocated by this device; no kernel writes it any more.
        unsafe { self.context.device().free_shared(self.memory) };
    }
}

impl std::fmt::Debug for SharedWords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedWords").field("device", &self.memory.device).finish_non_exhaustive()
    }
}
