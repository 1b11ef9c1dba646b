//! What a task's code takes of a processor.

/// Of a loaded function, as the device's own compiler made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FunctionUsage {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of a thread's memory beside its registers: variables that have addresses, and what did not fit into registers.
    pub local_bytes: u32,
    /// Bytes of memory that the threads of a block share.
    pub shared_bytes: u32,
    /// Threads of a block.
    pub block: u32,
    /// Threads of this function that one multiprocessor runs at once.
    pub resident_threads: u32,
    /// Threads of any function that it runs at once, at most.
    pub max_resident_threads: u32,
}

impl FunctionUsage {
    /// The part of a multiprocessor's threads that this function can use, from 0 to 1.
    pub fn occupancy(&self) -> f64 {
        f64::from(self.resident_threads) / f64::from(self.max_resident_threads.max(1))
    }
}
