//! Whether a parallel loop is worth widening across its iterations, and how far.

use octants_ir::{Kernel, Op};

use crate::EmitOptions;

/// How many neighbouring iterations of the last axis run at once; `None` leaves the loop to LLVM's vectoriser.
pub(crate) fn lanes(_kernel: &Kernel, _op: Op, options: &EmitOptions) -> Option<u32> {
    options.force_lanes
}
