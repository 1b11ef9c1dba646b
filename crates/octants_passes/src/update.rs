//! What an atomic op does to the cell it addresses, in ops without memory.

use octants_ir::ops::{ArithOp, AtomicOp, BitOp, CompareOp};
use octants_ir::{Builder, Op, OpKind, Value};

/// The address of an access: everything between the op's kind and the values it brings.
pub(crate) fn address<'o>(kind: &OpKind, operands: &'o [Value]) -> Option<&'o [Value]> {
    let values = match kind {
        OpKind::Load | OpKind::VolatileLoad => 0,
        OpKind::Store | OpKind::Atomic(_) => 1,
        OpKind::AtomicCas => 2,
        _ => return None,
    };
    Some(&operands[..operands.len() - values])
}

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
    let operands = b.kernel.ops[op].operands.clone();
    match b.kernel.ops[op].kind {
        OpKind::Atomic(kind) => updated(b, kind, old, operands[operands.len() - 1]),
        OpKind::AtomicCas => {
            let (expected, desired) = (operands[operands.len() - 2], operands[operands.len() - 1]);
            let equal = b.compare(CompareOp::Eq, old, expected);
            b.select(equal, desired, old)
        }
        ref other => unreachable!("{} updates nothing", other.name()),
    }
}
