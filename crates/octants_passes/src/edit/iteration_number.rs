//! The number of an iteration of a parallel loop among all, as ops.

use octants_ir::ops::ArithOp;
use octants_ir::{Builder, Const, Kernel, Op, Region, Scalar, Value};

/// The number of an iteration, at the end of the region.
pub(crate) fn column(kernel: &mut Kernel, op: Op, region: Region) -> Value {
    let parallel = kernel.parallel_loop(op).expect("it is one");
    let (indices, bounds): (Vec<_>, Vec<_>) = (parallel.indices().to_vec(), parallel.bounds().collect());
    let loc = kernel.ops[op].loc;
    let b = &mut Builder::at(kernel, region, loc);
    let mut column = None;
    for (&index, (lo, hi)) in indices.iter().zip(bounds) {
        let distance = distance(b, lo, index);
        column = Some(match column {
            None => distance,
            Some(outer) => {
                let extent = self::distance(b, lo, hi);
                let rows = b.arith(ArithOp::Mul, outer, extent);
                b.arith(ArithOp::Add, rows, distance)
            }
        });
    }
    column.expect("a loop has an axis")
}

fn distance(b: &mut Builder<'_>, from: Value, to: Value) -> Value {
    if b.kernel.as_const(from).is_some_and(Const::is_zero) {
        return b.cast(to, Scalar::I32);
    }
    let difference = b.arith(ArithOp::Sub, to, from);
    b.cast(difference, Scalar::I32)
}
