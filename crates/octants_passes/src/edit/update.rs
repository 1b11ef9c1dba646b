//! What an atomic op does to the cell it addresses, in ops without memory.

use octants_ir::ops::{ArithOp, AtomicOp, BitOp, CompareOp};
use octants_ir::{Builder, Op, OpKind, Value};

/// What the cell holds after the op, given what it held.
pub(crate) fn updated(b: &mut Builder<'_>, op: AtomicOp, old: Value, value: Value) -> Value {
    match op {
        AtomicOp::Add => b.arith(ArithOp::Add, old, value),
        AtomicOp::Sub => b.arith(ArithOp::Sub, old, value),
        AtomicOp::Mul => b.arith(ArithOp::Mul, old, value),
        AtomicOp::Min => b.arith(ArithOp::Min, old, value),
        AtomicOp::Max => b.arith(ArithOp::Max, old, value),
        AtomicOp::And => b.bit(BitOp::And, old, value),
        AtomicOp::Or => b.bit(BitOp::Or, old, value),
        AtomicOp::Xor => b.bit(BitOp::Xor, old, value),
        AtomicOp::Exchange => value,
    }
}

/// What the cell holds after an atomic op or a compare-and-swap.
pub(crate) fn updated_by(b: &mut Builder<'_>, op: Op, old: Value) -> Value {
    let values = b.kernel.cell_access(op).map(|access| access.values.to_vec()).unwrap_or_default();
    match (&b.kernel.ops[op].kind, &values[..]) {
        (&OpKind::Atomic(kind), &[value]) => updated(b, kind, old, value),
        (OpKind::AtomicCas, &[expected, desired]) => {
            let equal = b.compare(CompareOp::Eq, old, expected);
            b.select(equal, desired, old)
        }
        (other, _) => unreachable!("{} updates nothing", other.name()),
    }
}
