//! Runs the threads of a block one after the other, for devices whose threads form no blocks.
//!
//! Before:
//! ```text
//! parallel_for (%i: i32) in (%0..%n) block_dim 64 {
//!   %s: field<f32, layout0> = shared
//!   %1: f32 = load %a[%i]
//!   store %s[%t], %1
//!   barrier block
//!   %2: f32 = load %s[%u]
//!   %3: f32 = add %1, %2
//!   store %a[%i], %3
//! }
//! ```
//! After:
//! ```text
//! parallel_for (%b: i64) in (%0..%blocks) {
//!   %s: field<f32, layout0> = shared
//!   %v: field<f32, layout1> = shared
//!   for_lanes %l: i32 in 0..64 {
//!     %1: f32 = load %a[%i]
//!     store %v[%l], %1
//!     store %s[%t], %1
//!   }
//!   for_lanes %l: i32 in 0..64 {
//!     %1: f32 = load %v[%l]
//!     …
//!   }
//! }
//! ```
//!
//! **What stands between two places where lanes meet is a loop over the lanes** ([`parts`] cuts a body so). Where only a subgroup meets, a loop over subgroups stands around
//! loops over its lanes. Control flow with such a place inside is the same for all that meet there: it stands around the loops, and asks the first lane.
//!
//! **What a lane computes before a meeting and uses behind it lies in an array, an element for each lane** ([`values`]). What follows from the lane's number
//! alone is computed again. A shuffle is a load from the array of what is shuffled; so are barriers nothing at all.
//!
//! **No lane reads in such a loop what another one writes there**: arrays of values are of one lane each, a shuffle reads what an earlier loop wrote, and on other memory programs with a
//! barrier in place do not depend on it. So the loops are `for_lanes`, whose lanes may run at once. With `debug`, and where iterations are to run in order, they are plain ones.
//!
//! With `debug` it is checked that lanes come to the same meetings ([`agreement`]), that a lane that is asked for a value runs, and that no two lanes touch an element of
//! a shared array without a barrier between, of which one writes it ([`races`]).
//!
//! These arrays are on the stack, as far as it goes; larger ones are where a tape is that the body makes first.
//!
//! Expects scalars in the structured phase, and leaves it. Iterations are whole blocks: an assertion in each of them says so.

mod agreement;
mod build;
mod parts;
mod races;
mod values;

use octants_ir::ops::{ArithOp, AssertKind, CompareOp};
use octants_ir::{Builder, Const, Kernel, Loc, Op, OpKind, Region, Scalar, SharedLayout, Value};

use build::LaneLoops;
use parts::Parts;

use crate::split_tasks::launch::host_computes;

/// Bytes of a block's arrays that a thread's stack holds. Threads of a program may have no more than 128 KiB of it.
const MOST_STACK_BYTES: u64 = 64 << 10;

pub fn loop_over_lanes(kernel: &mut Kernel) {
    for region in kernel.top_regions() {
        for op in kernel.regions[region].ops.clone() {
            if kernel.cooperates(op) {
                lower(kernel, region, op);
            }
        }
    }
}

/// For devices that have blocks: where only tasks know how many iterations there are, the kernel itself looks whether blocks are whole. Elsewhere a
/// launch does.
pub fn check_whole_blocks(kernel: &mut Kernel) {
    for region in kernel.top_regions() {
        for op in kernel.regions[region].ops.clone() {
            let Some(threads) = kernel.whole_blocks(op) else { continue };
            let bounds = bounds_of(kernel, op);
            if bounds.iter().all(|&(lo, hi)| host_computes(kernel, lo) && host_computes(kernel, hi))
                || bounds.iter().any(|&(lo, hi)| {
                    kernel.as_const(lo).is_some_and(Const::is_zero) && is_multiple(kernel, hi, threads)
                })
            {
                continue;
            }
            let behind = split_before(kernel, region, op);
            let mut b = Builder::at(kernel, region, kernel.ops[op].loc);
            let points = count_points(&mut b, &bounds);
            assert_whole(&mut b, points, threads);
            kernel.regions[region].ops.extend(behind);
        }
    }
}

/// Whether a value is a product with a factor that so many divide, as passes write how many threads there are.
fn is_multiple(kernel: &Kernel, value: Value, of: u32) -> bool {
    if let Some(known) = kernel.as_const(value).and_then(Const::as_i128) {
        return known % i128::from(of) == 0;
    }
    kernel.def(value).is_some_and(|op| {
        op.kind == OpKind::Arith(ArithOp::Mul)
            && op.operands.iter().any(|&factor| is_multiple(kernel, factor, of))
    })
}

fn bounds_of(kernel: &Kernel, op: Op) -> Vec<(Value, Value)> {
    kernel.ops[op].operands.chunks_exact(2).map(|bounds| (bounds[0], bounds[1])).collect()
}

/// Takes the op and what stands behind it out of the region.
fn split_before(kernel: &mut Kernel, region: Region, op: Op) -> Vec<Op> {
    let ops = &mut kernel.regions[region].ops;
    let at = ops.iter().position(|&other| other == op).expect("the loop stands here");
    ops.split_off(at)
}

/// Fails the launch unless the iterations are whole blocks.
fn assert_whole(b: &mut Builder<'_>, points: Value, threads: u32) {
    let size = b.constant(Const::from_i128(Scalar::I64, threads.into()));
    let rest = b.arith(ArithOp::Mod, points, size);
    let none = b.constant(Const::from_i128(Scalar::I64, 0));
    let whole = b.compare(CompareOp::Eq, rest, none);
    let message = format!(
        "{{}} iterations are no whole number of blocks of {threads} threads, and threads of a block wait for each other"
    );
    b.op(OpKind::Assert(AssertKind::Condition, message.into()), [whole, points], [], []);
}

/// The loop that an op is becomes one over blocks.
fn lower(kernel: &mut Kernel, region: Region, op: Op) {
    let loc = kernel.ops[op].loc;
    let body = kernel.ops[op].regions[0];
    let OpKind::ParallelFor(attributes) = kernel.ops[op].kind.clone() else { return };
    // Where no more than subgroups meet, each of them is a block of its own.
    let Some(threads) = kernel.whole_blocks(op) else { return };
    let bounds = bounds_of(kernel, op);
    let parts = Parts::of(kernel, body);
    // Those of the loop stand before it.
    let behind = split_before(kernel, region, op);
    let mut b = Builder::at(kernel, region, loc);
    let points = count_points(&mut b, &bounds);
    let size = b.constant(Const::from_i128(Scalar::I64, threads.into()));
    // With the one that is not whole, so that it is told.
    let almost = b.constant(Const::from_i128(Scalar::I64, i128::from(threads) - 1));
    let rounded = b.arith(ArithOp::Add, points, almost);
    let blocks = b.arith(ArithOp::FloorDiv, rounded, size);
    let zero = b.constant(Const::from_i128(Scalar::I64, 0));
    let mut attributes = *attributes;
    let in_order = attributes.keeps_order();
    attributes.axes = 1;
    attributes.block_dim = None;
    let inner = b.kernel.add_region();
    let block = b.kernel.add_region_param(inner, Scalar::I64.into());
    b.op(OpKind::ParallelFor(Box::new(attributes)), [zero, blocks], [], [inner]);
    kernel.regions[region].ops.extend(behind.into_iter().skip(1));

    assert_whole(&mut Builder::at(kernel, inner, loc), points, threads);
    LaneLoops::new(kernel, inner, loc, threads, (block, bounds), body, in_order).run(&parts);
    Builder::at(kernel, inner, loc).yields(&[]);
    leave_stack(kernel, inner, loc);
}

/// The arrays of a block lie in a tape, if they are too large for the stack of a thread.
fn leave_stack(kernel: &mut Kernel, body: Region, loc: Loc) {
    let layout = SharedLayout::of(kernel, body, None);
    if layout.arrays.iter().map(|array| array.bytes).sum::<u64>() <= MOST_STACK_BYTES {
        return;
    }
    let first = kernel.add_region();
    let mut b = Builder::at(kernel, first, loc);
    let words = b.constant(Const::from_i128(Scalar::I64, i128::from(layout.bytes.div_ceil(8))));
    let tape = b.tape(Scalar::U64, words);
    // It is needed, though nothing else in the kernel names it.
    let first_word = b.i32(0);
    b.volatile_load(tape, &[first_word]);
    let ops = std::mem::take(&mut kernel.regions[first].ops);
    kernel.regions[body].ops.splice(0..0, ops);
}

/// How many iterations a loop has.
fn count_points(b: &mut Builder<'_>, bounds: &[(Value, Value)]) -> Value {
    let zero = b.constant(Const::from_i128(Scalar::I64, 0));
    let mut points: Option<Value> = None;
    for &(lo, hi) in bounds {
        let (lo, hi) = (b.cast(lo, Scalar::I64), b.cast(hi, Scalar::I64));
        let extent = b.arith(ArithOp::Sub, hi, lo);
        let extent = b.arith(ArithOp::Max, extent, zero);
        points = Some(match points {
            None => extent,
            Some(outer) => b.arith(ArithOp::Mul, outer, extent),
        });
    }
    points.expect("a parallel loop has an axis")
}
