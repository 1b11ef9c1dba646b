//! Short rows of which every iteration looks up cells of a sparse tree: those that are whole are unrolled.
//!
//! `x[i, j - 1]` in a loop over blocks of 16 × 16 lies in another block in the first iteration of a row alone. LLVM sees a load of an entry for each
//! iteration, and gathers. Once the row is unrolled, the digits of each index are constants behind those of the block, so that few entries are left.

use octants_ir::ops::{ArithOp, BitOp};
use octants_ir::rewrite::ops_in;
use octants_ir::views::ParallelLoop;
use octants_ir::{Kernel, Op, OpKind, SideTable, Value};

/// Iterations of a row that is unrolled, at most, and ops of all of them. A stencil of five points on blocks of 16 × 16 has 1,200: unrolled it runs 2.2 times as
/// fast (`benches/sparse.py --only stencil`), and LLVM takes 0.1 s more.
const MAX_ROW: i128 = 16;
const MAX_OPS: usize = 4096;

/// Sums that are looked through for the last index. Chosen, not measured: indices have fewer.
const MAX_SUMS: u32 = 6;

/// Whether whole rows of this many iterations are unrolled.
pub(super) fn unrolls(kernel: &Kernel, parallel: &ParallelLoop<'_>, extent: i128) -> bool {
    let ops = ops_in(kernel, parallel.body);
    let fits = (2..=MAX_ROW).contains(&extent) && ops.len() * extent as usize <= MAX_OPS;
    let has_loop = |&op: &Op| kernel.ops[op].kind.is_loop();
    fits && !ops.iter().any(has_loop) && looks_up(kernel, parallel)
}

/// How a value comes from the last index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Origin {
    Other,
    /// From a quotient of a sum with it: which block it lies in.
    Block,
    /// From what was loaded for such a block.
    Slot,
}

/// Whether an access goes to a slot that was looked up by a quotient of the last index.
fn looks_up(kernel: &Kernel, parallel: &ParallelLoop<'_>) -> bool {
    let mut origins: SideTable<Value, Origin> = SideTable::new(Origin::Other);
    let index = parallel.last_index();
    for op in ops_in(kernel, parallel.body) {
        let data = &kernel.ops[op];
        let from = data.operands.iter().map(|&operand| origins[operand]).max().unwrap_or(Origin::Other);
        let addressed = kernel.addressed(op).is_some();
        if addressed && from == Origin::Slot {
            return true;
        }
        let origin = match (&data.kind, &data.operands[..]) {
            (OpKind::Bit(BitOp::Shr), &[a, by])
                if kernel.as_const(by).is_some() && is_sum_with(kernel, a, index, MAX_SUMS) =>
            {
                Origin::Block
            }
            (OpKind::Load, _) if from == Origin::Block => Origin::Slot,
            (kind, _) if kind.is_pure() => from,
            _ => Origin::Other,
        };
        for &result in &data.results {
            origins.set(result, origin);
        }
    }
    false
}

/// Whether a value is the index, or a sum with it.
fn is_sum_with(kernel: &Kernel, value: Value, index: Value, depth: u32) -> bool {
    let sum = |value: Value| {
        kernel.def(value).filter(|op| matches!(op.kind, OpKind::Arith(ArithOp::Add | ArithOp::Sub)))
    };
    value == index
        || depth > 0
            && sum(value)
                .is_some_and(|op| op.operands.iter().any(|&a| is_sum_with(kernel, a, index, depth - 1)))
}
