//! How long loops run and how much code they are, as far as it is known: whether they look if the launch should stop.

use octants_ir::{Kernel, Op, OpKind, Region};

/// Trips of an inner loop that LLVM unrolls: such a loop is not one to wait for. Chosen, not measured.
const MAX_SHORT_TRIPS: i128 = 16;

/// Ops between two looks at the request to stop: about a millisecond, some ten with functions of the C library. A matrix product of
/// 200×200, the LCG and sums of 3 and 8 elements in an inner loop run within 1 % of what they do without strips.
const STRIP_OPS: u64 = 1 << 20;

/// Whether an iteration of a loop holds another loop, or a call, which may hold one.
pub(crate) fn polls(kernel: &Kernel, op: Op) -> bool {
    let mut may_take_long = false;
    octants_ir::rewrite::walk(kernel, kernel.ops[op].regions[0], &mut |inner| {
        may_take_long |= match &kernel.ops[inner].kind {
            OpKind::Call(_) => true,
            kind if kind.is_counted_loop() => {
                !is_short(kernel, inner) || unrolled_ops(kernel, inner) > STRIP_OPS
            }
            kind => kind.is_loop(),
        };
    });
    may_take_long
}

/// How many iterations of a `for` run between two looks whether the launch should stop; `None` if each iteration looks, or all of them
/// are over soon.
pub(crate) fn strip_length(kernel: &Kernel, op: Op) -> Option<u64> {
    let ends_soon = kernel.constant_trips(op).is_some() && unrolled_ops(kernel, op) <= STRIP_OPS;
    if ends_soon || polls(kernel, op) {
        return None;
    }
    let ops = &kernel.regions[kernel.ops[op].regions[0]].ops;
    let ops = ops.iter().fold(1_u64, |sum, &op| sum.saturating_add(unrolled_ops(kernel, op)));
    Some((STRIP_OPS / ops).max(1))
}

/// Whether code of the loop's own looks whether the launch should stop.
pub(crate) fn may_stop(kernel: &Kernel, op: Op) -> bool {
    polls(kernel, op) || strip_length(kernel, op).is_some()
}

/// How many ops a short loop becomes when it and the loops inside are unrolled. Loops inside count as short, as they may become that.
pub(crate) fn unrolled_ops(kernel: &Kernel, op: Op) -> u64 {
    let data = &kernel.ops[op];
    let inner = |sum: u64, &region: &Region| {
        let ops = &kernel.regions[region].ops;
        ops.iter().fold(sum, |sum, &op| sum.saturating_add(unrolled_ops(kernel, op)))
    };
    let ops = data.regions.iter().fold(1, inner);
    match &data.kind {
        kind if kind.is_counted_loop() => {
            let trips = kernel.constant_trips(op).unwrap_or(MAX_SHORT_TRIPS);
            ops.saturating_mul(u64::try_from(trips).unwrap_or(u64::MAX))
        }
        _ => ops,
    }
}

/// Whether a `for` runs a few times only, known beforehand.
pub(crate) fn is_short(kernel: &Kernel, op: Op) -> bool {
    kernel.constant_trips(op).is_some_and(|trips| trips <= MAX_SHORT_TRIPS)
}
