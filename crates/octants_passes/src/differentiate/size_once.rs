//! In kernels that compute sizes: what all iterations of a parallel loop need alike is computed once, if there are iterations. Of such a kernel the host
//! can compute what it gives, where nothing of it stands in memory.
//!
//! Before (nothing in the loop depends on `%i`):
//! ```text
//! parallel_for (%i: i32) in (%lo..%hi) {
//!   %1: i64 = atomic_max %sizes[%at], %count
//! }
//! ```
//! After:
//! ```text
//! %c: u1 = lt %lo, %hi
//! if %c {
//!   %1: i64 = atomic_max %sizes[%at], %count
//! }
//! ```

use octants_ir::ops::{BitOp, CompareOp, Effects};
use octants_ir::rewrite::{ops_in, retain_ops};
use octants_ir::{Builder, Kernel, Op, OpKind};

/// `is_left_out` says of an op whether it makes no sense of one iteration alone, and is taken away.
pub(super) fn size_once(kernel: &mut Kernel, is_left_out: &dyn Fn(&Kernel, Op) -> bool) {
    for region in kernel.top_regions() {
        for op in std::mem::take(&mut kernel.regions[region].ops) {
            if !is_same_for_all(kernel, op) {
                kernel.regions[region].ops.push(op);
                continue;
            }
            let data = kernel.ops[op].clone();
            let once = kernel.add_region();
            kernel.regions[once].ops = std::mem::take(&mut kernel.regions[data.regions[0]].ops);
            retain_ops(kernel, once, &mut |kernel, op| !is_left_out(kernel, op));
            let b = &mut Builder::at(kernel, region, data.loc);
            let axes = data.operands.chunks_exact(2);
            let some: Vec<_> = axes.map(|axis| b.compare(CompareOp::Lt, axis[0], axis[1])).collect();
            let some = some.into_iter().reduce(|all, some| b.bit(BitOp::And, all, some));
            let none = b.region_of(&[], |_, _| Vec::new());
            b.op(OpKind::If, some, [], [once, none]);
        }
    }
}

/// Whether the op is a parallel loop whose iterations all do the same.
fn is_same_for_all(kernel: &Kernel, op: Op) -> bool {
    let Some(parallel) = kernel.parallel_loop(op) else { return false };
    parallel.attributes.reductions.is_empty()
        && ops_in(kernel, parallel.body).into_iter().all(|inner| {
            let data = &kernel.ops[inner];
            let differs = data.kind.effects().contains(Effects::NONDETERMINISTIC);
            !differs && !data.operands.iter().any(|operand| parallel.indices().contains(operand))
        })
}
