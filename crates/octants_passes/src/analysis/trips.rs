//! How often the body of a serial loop runs.

use octants_ir::{Kernel, Op};

/// Assumed of a loop whose work is estimated. Chosen, not measured: after a first launch the measured time counts, and until then an estimate
/// that is too low would leave a long loop on one thread.
pub const LIKELY_TRIPS: u32 = 64;

/// Assumed of a loop whose additions are counted, to see whether private copies of an array pay. Chosen, not measured: low, since copies that do
/// not pay cost memory, too.
pub const CAUTIOUS_TRIPS: u32 = 4;

/// The trips of a `for` with constant bounds, else `assumed` for a serial loop; 1 for any other op.
pub fn trips(kernel: &Kernel, op: Op, assumed: u32) -> u32 {
    match kernel.constant_trips(op) {
        Some(trips) => u32::try_from(trips).unwrap_or(u32::MAX),
        None if kernel.ops[op].kind.is_loop() => assumed,
        None => 1,
    }
}
