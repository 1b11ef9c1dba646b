//! Math functions. Singles and halves are computed as doubles and rounded once.

use octants_ir::ops::{ArithOp, MathOp, MathUnary};
use octants_ir::{Const, Scalar, special};

use crate::arith;

pub fn binary(op: MathOp, a: Const, b: Const) -> Const {
    match (op, b.as_i128()) {
        (MathOp::Pow, Some(exponent)) => integer_power(a, exponent),
        (MathOp::Pow, None) => Const::from_f64(a.ty(), a.as_f64().powf(b.as_f64())),
        (MathOp::Atan2, _) => Const::from_f64(a.ty(), a.as_f64().atan2(b.as_f64())),
    }
}

/// Repeated squaring, each product in the type of the base.
fn integer_power(a: Const, exponent: i128) -> Const {
    let one = Const::from_f64(a.ty(), 1.0);
    let (mut result, mut square, mut rest) = (one, a, exponent.unsigned_abs());
    while rest > 0 {
        if rest & 1 == 1 {
            result = arith::binary(ArithOp::Mul, result, square);
        }
        square = arith::binary(ArithOp::Mul, square, square);
        rest >>= 1;
    }
    if exponent < 0 && a.ty().is_real() { arith::binary(ArithOp::Div, one, result) } else { result }
}

pub fn unary(op: MathUnary, a: Const) -> Const {
    let x = a.as_f64();
    let value = match op {
        MathUnary::Sqrt => x.sqrt(),
        MathUnary::Rsqrt => 1.0 / x.sqrt(),
        MathUnary::Exp => x.exp(),
        MathUnary::Log => x.ln(),
        MathUnary::Log2 => x.log2(),
        MathUnary::Sin => x.sin(),
        MathUnary::Cos => x.cos(),
        MathUnary::Tan => x.tan(),
        MathUnary::Tanh => x.tanh(),
        MathUnary::Asin => x.asin(),
        MathUnary::Acos => x.acos(),
        MathUnary::Erf => special::erf(x),
        MathUnary::Floor => x.floor(),
        MathUnary::Ceil => x.ceil(),
        MathUnary::Round => x.round(),
        MathUnary::IsNan => return Const::bool(x.is_nan()),
        MathUnary::IsInf => return Const::bool(x.is_infinite()),
        MathUnary::FrexpMantissa => split(x).0,
        MathUnary::FrexpExponent => return Const::from_i128(Scalar::I32, split(x).1.into()),
    };
    Const::from_f64(a.ty(), value)
}

/// `m` and `e` of `x = m * 2^e` with `0.5 <= |m| < 1`.
fn split(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    // A subnormal has no exponent of its own: it is made normal first.
    let (normal, offset) = if x.is_normal() { (x, 0) } else { (x * 2.0_f64.powi(54), 54) };
    let bits = normal.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1022;
    let mantissa = f64::from_bits((bits & !(0x7ff << 52)) | (1022 << 52));
    (mantissa, exponent - offset)
}
