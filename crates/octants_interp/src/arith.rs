//! Arithmetic.

use octants_ir::ops::ArithOp;
use octants_ir::{Const, Scalar};

/// The low bits: integers wrap.
fn wrap(ty: Scalar, value: i128) -> Const {
    Const::from_bits(ty, value as u64)
}

/// `neg` and `abs`.
pub fn unary(op: ArithOp, a: Const) -> Const {
    let ty = a.ty();
    let sign = 1_u64 << (ty.bits() - 1);
    match (op, a.as_i128()) {
        (ArithOp::Abs, Some(a)) => wrap(ty, a.abs()),
        (_, Some(a)) => wrap(ty, -a),
        // By bits, so that the sign of a NaN follows too.
        (ArithOp::Abs, None) => Const::from_bits(ty, a.bits() & !sign),
        (_, None) => Const::from_bits(ty, a.bits() ^ sign),
    }
}

pub fn binary(op: ArithOp, a: Const, b: Const) -> Const {
    match (a.as_i128(), b.as_i128()) {
        (Some(x), Some(y)) => wrap(a.ty(), integer(op, x, y)),
        _ => real(op, a, b),
    }
}

/// In 128 bits nothing overflows but products, of which only the low bits count.
fn integer(op: ArithOp, a: i128, b: i128) -> i128 {
    match op {
        ArithOp::Add => a + b,
        ArithOp::Sub => a - b,
        ArithOp::Mul => a.wrapping_mul(b),
        ArithOp::Div | ArithOp::RawDiv => a.checked_div(b).unwrap_or(0),
        ArithOp::RawMod => a.checked_rem(b).unwrap_or(0),
        ArithOp::FloorDiv => floor_div(a, b),
        ArithOp::Mod if b == 0 => 0,
        ArithOp::Mod => a - floor_div(a, b) * b,
        ArithOp::Min => a.min(b),
        ArithOp::Max => a.max(b),
        ArithOp::Neg => -a,
        ArithOp::Abs => a.abs(),
    }
}

fn floor_div(a: i128, b: i128) -> i128 {
    if b == 0 {
        return 0;
    }
    let (quotient, rest) = (a / b, a % b);
    if rest != 0 && (rest < 0) != (b < 0) { quotient - 1 } else { quotient }
}

/// Sums, products and quotients of singles and halves are right when rounded from doubles: a double has more than twice their
/// digits.
fn real(op: ArithOp, a: Const, b: Const) -> Const {
    let ty = a.ty();
    let round = |value: f64| Const::from_f64(ty, value);
    let (x, y) = (a.as_f64(), b.as_f64());
    match op {
        ArithOp::Add => round(x + y),
        ArithOp::Sub => round(x - y),
        ArithOp::Mul => round(x * y),
        ArithOp::Div | ArithOp::RawDiv => round(x / y),
        ArithOp::FloorDiv => round(round(x / y).as_f64().floor()),
        ArithOp::Mod => {
            let whole = round(round(x / y).as_f64().floor()).as_f64();
            round(x - round(whole * y).as_f64())
        }
        ArithOp::RawMod => round(x % y),
        ArithOp::Min | ArithOp::Max if x.is_nan() || y.is_nan() => {
            if x.is_nan() {
                b
            } else {
                a
            }
        }
        // The bits of equal numbers differ in the sign of a zero alone.
        ArithOp::Min if x == y => Const::from_bits(ty, a.bits() | b.bits()),
        ArithOp::Max if x == y => Const::from_bits(ty, a.bits() & b.bits()),
        ArithOp::Min => {
            if x < y {
                a
            } else {
                b
            }
        }
        ArithOp::Max => {
            if x > y {
                a
            } else {
                b
            }
        }
        ArithOp::Neg | ArithOp::Abs => unary(op, a),
    }
}

/// What the op leaves any other value as it is with, where a reduction begins. It is so bit by bit: 0.0 + -0.0 is 0.0, but -0.0 + -0.0 is
/// -0.0; the lesser of infinity and a NaN is infinity, but that of two NaNs a NaN. So a total that is still the identity can be left out.
pub fn identity(op: octants_ir::ops::AtomicOp, ty: Scalar) -> Const {
    use octants_ir::ops::AtomicOp;
    let (least, greatest) = if ty.is_real() {
        (Const::from_f64(ty, f64::NAN), Const::from_f64(ty, f64::NAN))
    } else {
        // All bits, without the sign's bit where there is a sign.
        let greatest = u64::MAX >> (64 - ty.bits() + u32::from(ty.is_signed()));
        (Const::from_bits(ty, if ty.is_signed() { !greatest } else { 0 }), Const::from_bits(ty, greatest))
    };
    match op {
        AtomicOp::Add if ty.is_real() => Const::from_f64(ty, -0.0),
        AtomicOp::Add | AtomicOp::Sub | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Exchange => {
            Const::from_bits(ty, 0)
        }
        AtomicOp::Mul => Const::from_f64(ty, 1.0),
        AtomicOp::Min => greatest,
        AtomicOp::Max => least,
        AtomicOp::And => Const::from_bits(ty, u64::MAX),
    }
}
