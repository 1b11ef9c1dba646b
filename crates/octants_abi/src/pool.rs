//! The words of a pool's state: what kernels that need memory for cells of a sparse tree, and whoever gives it, tell each other.
//!
//! How a tree lies in its memory is the IR's (`octants_ir::sparse`); here is only what a device reads and writes of it.

/// Words of the allocator for each pool. They fill whole cache lines, so that pools do not disturb each other.
pub const STATE_WORDS: u32 = 64;

/// Where a word of a pool's state lies among all words of the allocator, which stand at the beginning of a tree's memory.
pub const fn state_word(pool: usize, word: u32) -> usize {
    pool * STATE_WORDS as usize + word as usize
}

/// Bytes from the beginning of a tree's memory to a word of a pool's state.
pub const fn state_offset(pool: usize, word: u32) -> usize {
    4 * state_word(pool, word)
}

/// Words of a pool's state. From `FREE` on: how many runs of each class are free.
pub mod state {
    /// How many slots were ever given out.
    pub const USED: u32 = 0;
    /// How many cells wait for being cleared.
    pub const RETIRED: u32 = 2;
    /// How many loops began that had to tell cells that are new to them; of pool 0 only.
    pub const EPOCH: u32 = 3;
    /// Cells that are active now.
    pub const ACTIVE: u32 = 4;
    pub const FREE: u32 = 16;
    /// How many have memory: a kernel that needs more waits until they do. In a line apart from the counters above.
    pub const CAPACITY: u32 = 48;
    /// Whoever gives out the slot of this number says that there will soon be none left.
    pub const WARNING: u32 = 49;
    /// How many may ever have memory.
    pub const LIMIT: u32 = 50;
    /// Where that is said on devices whose memory is there by itself: nobody looks.
    pub const SIGNAL: u32 = 51;
    /// Bytes of a slot with all that belongs to it: the low word, then the high one.
    pub const SLOT_BYTES: u32 = 52;
}

/// A pool grows by at least so many bytes, and has as many at first: a few huge pages of a CPU, one of which each of its arrays may touch too early.
pub const GROWTH_STEP_BYTES: u64 = 4 << 20;

/// A pool that grows gets as large a part of itself more, so that it asks seldom: an eighth, so that memory stays within 1.2 times of what is active.
pub const GROWTH_DIVISOR: u32 = 8;
