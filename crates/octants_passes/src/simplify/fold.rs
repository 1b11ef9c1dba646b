//! Ops on constants. Agrees bit for bit with what the ops' tables say; whatever is not sure to, stays an op.
//!
//! Reals are computed in `f64` and rounded once: for sums, differences, products, quotients and roots of narrower types that
//! gives the same bits as computing in the type itself. Functions that approximate are not folded, nor is anything that gives a NaN,
//! whose payload is the machine's to choose.

use octants_ir::ops::{ArithOp, BitOp, BitUnary, CompareOp, ConvertOp, MathUnary};
use octants_ir::{Const, OpKind, Scalar};

/// The constant that the op gives, of type `result`.
pub(crate) fn fold(kind: &OpKind, operands: &[Const], result: Scalar) -> Option<Const> {
    match (kind, operands) {
        (OpKind::Arith(op), [a]) => arith_unary(*op, *a),
        (OpKind::Arith(op), [a, b]) => arith(*op, *a, *b),
        (OpKind::Bit(op), [a, b]) => bit(*op, *a, *b),
        (OpKind::BitUnary(op), [a]) => bit_unary(*op, *a),
        (OpKind::Compare(op), [a, b]) => Some(Const::bool(compare(*op, *a, *b)?)),
        (OpKind::MathUnary(op), [a]) => math_unary(*op, *a),
        (OpKind::Convert(ConvertOp::Cast), [a]) => cast(*a, result),
        (OpKind::Convert(ConvertOp::Detach), [a]) => Some(*a),
        (OpKind::Convert(ConvertOp::BitCast), [a]) => Some(Const::from_bits(result, a.bits())),
        _ => None,
    }
}

fn real(ty: Scalar, value: f64) -> Option<Const> {
    (!value.is_nan()).then(|| Const::from_f64(ty, value))
}

fn arith_unary(op: ArithOp, a: Const) -> Option<Const> {
    let ty = a.ty();
    match (op, a.as_i128()) {
        (ArithOp::Neg, Some(a)) => Some(Const::from_bits(ty, (-a) as u64)),
        (ArithOp::Neg, None) => Some(Const::from_bits(ty, a.bits() ^ (1 << (ty.bits() - 1)))),
        (ArithOp::Abs, Some(a)) => Some(Const::from_bits(ty, a.unsigned_abs() as u64)),
        (ArithOp::Abs, None) => Some(Const::from_bits(ty, a.bits() & !(1 << (ty.bits() - 1)))),
        _ => None,
    }
}

fn arith(op: ArithOp, a: Const, b: Const) -> Option<Const> {
    let ty = a.ty();
    if ty.is_real() {
        return arith_real(op, a, b);
    }
    let (a, b) = (a.as_i128()?, b.as_i128()?);
    let value = match op {
        ArithOp::Add => a + b,
        ArithOp::Sub => a - b,
        ArithOp::Mul => a.wrapping_mul(b),
        ArithOp::FloorDiv if b == 0 => 0,
        ArithOp::FloorDiv => a / b - i128::from(a % b != 0 && (a < 0) != (b < 0)),
        ArithOp::Mod if b == 0 => 0,
        ArithOp::Mod => a - (a / b - i128::from(a % b != 0 && (a < 0) != (b < 0))) * b,
        ArithOp::RawDiv => a.checked_div(b).unwrap_or(0),
        ArithOp::RawMod => a.checked_rem(b).unwrap_or(0),
        ArithOp::Min => a.min(b),
        ArithOp::Max => a.max(b),
        ArithOp::Div | ArithOp::Neg | ArithOp::Abs => return None,
    };
    // The low bits: from_i128 would ask whether a `u1` is zero, but here it wraps.
    Some(Const::from_bits(ty, value as u64))
}

fn arith_real(op: ArithOp, a: Const, b: Const) -> Option<Const> {
    let ty = a.ty();
    let (x, y) = (a.as_f64(), b.as_f64());
    match op {
        ArithOp::Add => real(ty, x + y),
        ArithOp::Sub => real(ty, x - y),
        ArithOp::Mul => real(ty, x * y),
        ArithOp::Div | ArithOp::RawDiv => real(ty, x / y),
        ArithOp::Min | ArithOp::Max if x.is_nan() || y.is_nan() => None,
        // The bits of equal numbers differ in the sign of a zero alone.
        ArithOp::Min if x == y => Some(Const::from_bits(ty, a.bits() | b.bits())),
        ArithOp::Max if x == y => Some(Const::from_bits(ty, a.bits() & b.bits())),
        ArithOp::Min => Some(if x < y { a } else { b }),
        ArithOp::Max => Some(if x > y { a } else { b }),
        ArithOp::FloorDiv | ArithOp::Mod | ArithOp::RawMod | ArithOp::Neg | ArithOp::Abs => None,
    }
}

fn bit(op: BitOp, a: Const, b: Const) -> Option<Const> {
    let ty = a.ty();
    let value = a.as_i128()?;
    let amount = u32::try_from(b.as_i128()?.rem_euclid(ty.bits().into())).ok()?;
    Some(match op {
        BitOp::And => Const::from_bits(ty, a.bits() & b.bits()),
        BitOp::Or => Const::from_bits(ty, a.bits() | b.bits()),
        BitOp::Xor => Const::from_bits(ty, a.bits() ^ b.bits()),
        BitOp::Shl => Const::from_bits(ty, a.bits() << amount),
        BitOp::Shr => Const::from_bits(ty, (value >> amount) as u64),
        BitOp::LShr => Const::from_bits(ty, a.bits() >> amount),
    })
}

fn bit_unary(op: BitUnary, a: Const) -> Option<Const> {
    if a.ty().is_real() {
        return None;
    }
    let bits = a.bits();
    Some(match op {
        BitUnary::Not => Const::from_bits(a.ty(), !bits),
        BitUnary::Popcnt => Const::i32(bits.count_ones() as i32),
        BitUnary::Clz => Const::i32((bits.leading_zeros() - (64 - a.ty().bits())) as i32),
        BitUnary::Ffs if bits == 0 => Const::i32(0),
        BitUnary::Ffs => Const::i32(bits.trailing_zeros() as i32 + 1),
    })
}

fn compare(op: CompareOp, a: Const, b: Const) -> Option<bool> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = if a.ty().is_real() {
        a.as_f64().partial_cmp(&b.as_f64())
    } else {
        Some(a.as_i128()?.cmp(&b.as_i128()?))
    };
    Some(match op {
        CompareOp::Lt => order == Some(Less),
        CompareOp::Le => matches!(order, Some(Less | Equal)),
        CompareOp::Gt => order == Some(Greater),
        CompareOp::Ge => matches!(order, Some(Greater | Equal)),
        CompareOp::Eq => order == Some(Equal),
        CompareOp::Ne => order != Some(Equal),
    })
}

fn math_unary(op: MathUnary, a: Const) -> Option<Const> {
    let value = a.as_f64();
    match op {
        MathUnary::Sqrt => real(a.ty(), value.sqrt()),
        MathUnary::Floor => real(a.ty(), value.floor()),
        MathUnary::Ceil => real(a.ty(), value.ceil()),
        MathUnary::Round => real(a.ty(), value.round()),
        MathUnary::IsNan => Some(Const::bool(value.is_nan())),
        MathUnary::IsInf => Some(Const::bool(value.is_infinite())),
        MathUnary::Rsqrt
        | MathUnary::Exp
        | MathUnary::Log
        | MathUnary::Log2
        | MathUnary::Sin
        | MathUnary::Cos
        | MathUnary::Tan
        | MathUnary::Tanh
        | MathUnary::Asin
        | MathUnary::Acos
        | MathUnary::Erf
        | MathUnary::FrexpMantissa
        | MathUnary::FrexpExponent => None,
    }
}

fn cast(a: Const, to: Scalar) -> Option<Const> {
    if to == a.ty() {
        return Some(a);
    }
    match a.as_i128() {
        // Through `f64` there is one rounding only up to 53 bits.
        Some(value) if to.is_real() && value.unsigned_abs() > 1 << 53 => None,
        Some(value) => Some(Const::from_i128(to, value)),
        None => real(to, a.as_f64()),
    }
}
