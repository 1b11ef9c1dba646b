//! Bit patterns of integers.

use octants_ir::ops::{BitOp, BitUnary};
use octants_ir::{Const, Scalar};

pub fn binary(op: BitOp, a: Const, b: Const) -> Const {
    let ty = a.ty();
    // Modulo the width, also for a negative amount.
    let amount = b.as_i128().unwrap_or_default().rem_euclid(ty.bits().into()) as u32;
    let bits = match op {
        BitOp::And => a.bits() & b.bits(),
        BitOp::Or => a.bits() | b.bits(),
        BitOp::Xor => a.bits() ^ b.bits(),
        BitOp::Shl => a.bits() << amount,
        // An unsigned value is wide and positive here, a signed one keeps its sign.
        BitOp::Shr => (a.as_i128().unwrap_or_default() >> amount) as u64,
        BitOp::LShr => a.bits() >> amount,
    };
    Const::from_bits(ty, bits)
}

pub fn unary(op: BitUnary, a: Const) -> Const {
    let count = |n: u32| Const::from_bits(Scalar::I32, n.into());
    match op {
        BitUnary::Not => Const::from_bits(a.ty(), !a.bits()),
        BitUnary::Popcnt => count(a.bits().count_ones()),
        BitUnary::Clz => count(a.bits().leading_zeros() - (64 - a.ty().bits())),
        BitUnary::Ffs => count(if a.bits() == 0 { 0 } else { a.bits().trailing_zeros() + 1 }),
    }
}
