//! What a maker of GPUs has different names and numbers for.

use std::ffi::{c_int, c_uint};
use std::sync::atomic::AtomicU64;

use crate::driver::table::{Status, Symbols};

/// A maker, and its driver.
pub struct Vendor {
    /// As messages call it.
    pub name: &'static str,
    /// What the driver's versions are of.
    pub platform: &'static str,
    /// Where the driver's library is looked for.
    pub library: &'static str,
    /// The oldest driver that reads what we emit, in its own numbering.
    pub oldest_driver: c_int,
    /// A driver's version, from its own numbering to major and minor.
    pub version: fn(c_int) -> (c_int, c_int),
    /// The oldest capability, major and minor, that code is made for.
    pub oldest_capability: (c_int, c_int),
    pub symbols: Symbols,
    pub statuses: Statuses,
    pub attributes: Attributes,
    pub flags: Flags,
    /// Of the process, as the driver's contexts are.
    pub resets: ResetCounts,
}

/// What the driver's functions return; zero is success.
pub struct Statuses {
    /// Of a driver that finds no device.
    pub no_device: Status,
    /// What a query says of a stream or an event that is not done.
    pub not_ready: Status,
    /// What is said of a handle that does not fit; of an event that lives: that it was never recorded.
    pub invalid_handle: Status,
    pub out_of_memory: Status,
    /// Whether code is refused.
    pub is_bad_image: fn(Status) -> bool,
    /// Whether the context is unusable until it is reset.
    pub is_lost: fn(Status) -> bool,
}

/// Numbers of the properties that are asked for.
pub struct Attributes {
    /// Of a device, in thousands of ticks a second.
    pub clock_rate: c_int,
    pub multiprocessors: c_int,
    pub threads_per_multiprocessor: c_int,
    pub blocks_per_multiprocessor: c_int,
    pub capability_major: c_int,
    pub capability_minor: c_int,
    pub lanes: c_int,
    pub threads_per_block: c_int,
    /// Of a device: bytes of a block's memory in any launch, in one whose function was told of more, and of all blocks of a multiprocessor.
    pub block_shared_bytes: c_int,
    pub most_block_shared_bytes: c_int,
    pub multiprocessor_shared_bytes: c_int,
    pub registers_per_block: c_int,
    pub registers_per_multiprocessor: c_int,
    pub cache_bytes: c_int,
    /// Of a function.
    pub shared_bytes: c_int,
    /// Of a function: how much memory of a block a launch may ask for beside.
    pub most_launch_shared_bytes: c_int,
    pub local_bytes: c_int,
    pub registers: c_int,
}

/// Numbers that functions are told.
pub struct Flags {
    /// Of a stream: no order with the stream that libraries share but by events.
    pub non_blocking: c_uint,
    /// Of an event: the device notes when it is passed, or does not.
    pub with_timing: c_uint,
    pub without_timing: c_uint,
    /// Of the host's memory: it stays where it is, for all contexts, and the device sees it.
    pub pinned: c_uint,
    /// Of a pool: whether an allocation in one stream may be given what another one has yet to free, and wait for it.
    pub reuse_by_waiting: c_int,
    /// Of a pool: bytes that it keeps.
    pub release_threshold: c_int,
    /// The limit of a context that is a thread's stack.
    pub stack_size: c_int,
    /// Of loading: where what is wrong with code is written, and how many bytes there are.
    pub error_log: c_int,
    pub error_log_bytes: c_int,
    /// The kind of a linker's input that is text.
    pub linker_text: c_int,
    /// The attribute of a launch that begins when the last one ends, and waits for what is left of it.
    pub dependent_launch: c_int,
    /// The kind of memory that is a device's, of an end of a copy.
    pub device_memory: c_int,
    /// Of an allocation: plain memory.
    pub plain_allocation: c_int,
    /// Of an allocation: it is on a device.
    pub on_device: c_int,
    /// Who may touch mapped memory reads and writes it.
    pub read_and_write: c_int,
}

/// Counts for each device how often its context was reset after it was lost. Handles of an earlier context are void: the driver may give the same ones to
/// others. Those of other devices are not concerned.
pub struct ResetCounts([AtomicU64; MAX_COUNTED_DEVICES]);

/// Devices beyond so many share the counts of others, and are taken for lost with them. Chosen: no machine has as many.
const MAX_COUNTED_DEVICES: usize = 64;

impl Default for ResetCounts {
    fn default() -> Self {
        Self::new()
    }
}

impl ResetCounts {
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; MAX_COUNTED_DEVICES])
    }

    pub fn of(&self, device: c_int) -> &AtomicU64 {
        &self.0[device.unsigned_abs() as usize % MAX_COUNTED_DEVICES]
    }
}
