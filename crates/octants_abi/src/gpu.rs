//! The parameters of a GPU task: by value, the block of arguments in the plan's
//! `ArgLayout`, then a [`GpuFrame`] with the bounds of its axes behind it.
//!
//! Data only: whoever launches writes a frame, emitted code reads it by the offsets below.

use std::mem::offset_of;

/// What a task knows of its launch, apart from the arguments. Addresses are the device's.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct GpuFrame {
    /// A block in the plan's `TempLayout`.
    pub temps: u64,
    /// A block in the plan's `ResultLayout`.
    pub results: u64,
    /// Where the first failing thread writes.
    pub fault: u64,
    /// Where prints go.
    pub prints: u64,
    /// What `launch_key` gives.
    pub key: u64,
    /// How many points a range has.
    pub points: u64,
    /// Bytes of a thread's stack that calls of recursive functions may use.
    pub stack: u64,
    /// Where the host says by a byte that is not 0 that nothing is to be waited for any more; null if it cannot.
    pub stop: u64,
}

impl GpuFrame {
    pub const TEMPS: usize = offset_of!(GpuFrame, temps);
    pub const RESULTS: usize = offset_of!(GpuFrame, results);
    pub const FAULT: usize = offset_of!(GpuFrame, fault);
    pub const PRINTS: usize = offset_of!(GpuFrame, prints);
    pub const KEY: usize = offset_of!(GpuFrame, key);
    pub const POINTS: usize = offset_of!(GpuFrame, points);
    pub const STACK: usize = offset_of!(GpuFrame, stack);
    pub const STOP: usize = offset_of!(GpuFrame, stop);

    /// Where `lo, hi` of each axis begin, eight bytes each, outermost first.
    pub const BOUNDS: usize = size_of::<GpuFrame>();

    /// The frame as words, as it lies in memory.
    pub fn words(&self) -> [u64; 8] {
        [self.temps, self.results, self.fault, self.prints, self.key, self.points, self.stack, self.stop]
    }

    /// Bytes of arguments that are parameters by value. All parameters together have 4352 bytes at most where PTX is older than 8.1; a frame
    /// of twelve axes takes 256. More arguments are in the device's memory, and the parameter is their address.
    pub const MAX_ARGS_BY_VALUE: usize = 4000;

    /// Bytes of a frame with the bounds of so many axes.
    pub const fn bytes(axes: usize) -> usize {
        Self::BOUNDS + 16 * axes
    }
}
