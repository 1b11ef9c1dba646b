//! The record that generated code writes when a check fails.

use std::sync::atomic::{AtomicU32, Ordering};

/// How many arguments of a message a record holds.
pub const FAULT_ARGUMENTS: usize = 8;

/// The first fault of a launch. Lies in memory that the device can write; zero means that nothing failed.
///
/// Code that fails exchanges `state` from 0 to 1; who succeeds writes the rest and then sets `state` to 2.
#[repr(C)]
#[derive(Debug, Default)]
pub struct FaultRecord {
    /// 0: none; 1: being written; 2: complete.
    pub state: AtomicU32,
    /// Which check of the kernel; the compiler knows what stands there.
    pub site: u32,
    /// The arguments' bits, each in the low bits of its word.
    pub arguments: [u64; FAULT_ARGUMENTS],
}

impl FaultRecord {
    pub const fn new() -> Self {
        Self { state: AtomicU32::new(0), site: 0, arguments: [0; FAULT_ARGUMENTS] }
    }

    /// Whether a check failed. Complete once the launch is over.
    pub fn happened(&self) -> bool {
        self.state.load(Ordering::Acquire) != 0
    }
}
