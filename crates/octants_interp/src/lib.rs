//! What every op means. Runs a kernel in any phase, one op after another, on memory that the caller owns.
//!
//! It shares no code with any backend's lowering, so that the two can be held against each other; each op family has its file,
//! with the name that it has in the IR. It knows nothing of devices: arrays are addresses in an [`AddressSpace`]. No kernel that
//! keeps the IR's laws, whatever its arguments, makes it panic or reach memory outside its arrays: it gives a [`Trap`].

mod address_space;
mod arith;
mod bits;
mod blocks;
mod call;
mod compare;
mod control;
mod convert;
mod datum;
mod machine;
mod math;
mod memory;
mod print;
mod random;
mod shared;
mod tensor;
mod trap;

pub use address_space::{AddressSpace, Buffers, MemoryFault};
pub use datum::Datum;
pub use machine::{Arg, Limits, MemoryAccess, RunContext};
pub use trap::{Misuse, Trap, TrapKind};

use octants_ir::{Kernel, verify};

/// Runs the kernel once. Returns its results; what it does to arrays is done to `memory`. What it prints is lost.
pub fn run(
    kernel: &Kernel,
    args: &[Arg],
    memory: &mut dyn AddressSpace,
    limits: &Limits,
) -> Result<Vec<Datum>, Trap> {
    run_in(kernel, args, memory, limits, RunContext::default())
}

/// Likewise, with a place for what it prints and a key for its random numbers.
pub fn run_in<'a>(
    kernel: &'a Kernel,
    args: &'a [Arg],
    memory: &'a mut dyn AddressSpace,
    limits: &'a Limits<'a>,
    context: RunContext<'a>,
) -> Result<Vec<Datum>, Trap> {
    if let Err(violations) = verify(kernel) {
        return Err(Trap::nowhere(TrapKind::Malformed(violations)));
    }
    machine::Machine::new(kernel, args, memory, limits, context)?.run()
}
