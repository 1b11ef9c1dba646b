//! Math functions.

use std::f64::consts::{FRAC_2_SQRT_PI, LN_2};

use octants_ir::ops::{ArithOp, CompareOp, MathOp, MathUnary};
use octants_ir::{Builder, Const, Scalar, Value};

use super::{Partial, real, zero};

pub(super) fn unary_flows(op: MathUnary) -> bool {
    match op {
        MathUnary::Sqrt
        | MathUnary::Rsqrt
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
        // A power of two times the operand.
        | MathUnary::FrexpMantissa => true,
        // Steps: zero wherever they have a derivative.
        MathUnary::Floor | MathUnary::Ceil | MathUnary::Round => false,
        MathUnary::IsNan | MathUnary::IsInf | MathUnary::FrexpExponent => false,
    }
}

pub(super) fn unary(b: &mut Builder<'_>, op: MathUnary, a: Value, result: Value) -> Partial {
    match op {
        MathUnary::Sqrt => {
            let two = real(b, a, 2.0);
            Partial::Over(b.arith(ArithOp::Mul, two, result))
        }
        MathUnary::Rsqrt => {
            let half = real(b, a, -0.5);
            let square = b.arith(ArithOp::Mul, result, result);
            let cube = b.arith(ArithOp::Mul, square, result);
            Partial::Times(b.arith(ArithOp::Mul, half, cube))
        }
        MathUnary::Exp => Partial::Times(result),
        MathUnary::Log => Partial::Over(a),
        MathUnary::Log2 => {
            let factor = real(b, a, LN_2);
            Partial::Over(b.arith(ArithOp::Mul, factor, a))
        }
        MathUnary::Sin => Partial::Times(b.math_unary(MathUnary::Cos, a)),
        MathUnary::Cos => {
            let sine = b.math_unary(MathUnary::Sin, a);
            Partial::Times(b.arith_unary(ArithOp::Neg, sine))
        }
        MathUnary::Tan => {
            let (one, square) = one_and_square(b, result);
            Partial::Times(b.arith(ArithOp::Add, one, square))
        }
        MathUnary::Tanh => {
            let (one, square) = one_and_square(b, result);
            Partial::Times(b.arith(ArithOp::Sub, one, square))
        }
        MathUnary::Asin | MathUnary::Acos => {
            let (one, square) = one_and_square(b, a);
            let rest = b.arith(ArithOp::Sub, one, square);
            let root = b.math_unary(MathUnary::Sqrt, rest);
            if op == MathUnary::Asin {
                Partial::Over(root)
            } else {
                Partial::Over(b.arith_unary(ArithOp::Neg, root))
            }
        }
        MathUnary::Erf => {
            let square = b.arith(ArithOp::Mul, a, a);
            let negative = b.arith_unary(ArithOp::Neg, square);
            let bell = b.math_unary(MathUnary::Exp, negative);
            let factor = real(b, a, FRAC_2_SQRT_PI);
            Partial::Times(b.arith(ArithOp::Mul, factor, bell))
        }
        MathUnary::FrexpMantissa => {
            let (zero, one) = (zero(b, a), real(b, a, 1.0));
            let scale = b.arith(ArithOp::Div, result, a);
            let is_zero = b.compare(CompareOp::Eq, a, zero);
            Partial::Times(b.select(is_zero, one, scale))
        }
        MathUnary::Floor
        | MathUnary::Ceil
        | MathUnary::Round
        | MathUnary::IsNan
        | MathUnary::IsInf
        | MathUnary::FrexpExponent => Partial::Zero,
    }
}

fn one_and_square(b: &mut Builder<'_>, value: Value) -> (Value, Value) {
    (real(b, value, 1.0), b.arith(ArithOp::Mul, value, value))
}

pub(super) fn partial(
    b: &mut Builder<'_>,
    op: MathOp,
    operands: &[Value],
    result: Value,
    operand: usize,
) -> Partial {
    let [x, y] = operands[..] else { return Partial::Zero };
    match (op, operand) {
        (MathOp::Pow, 0) => {
            let scalar = b.kernel.ty(y).scalar().unwrap_or(Scalar::F32);
            let (none, one) =
                (b.constant(Const::from_bits(scalar, 0)), b.constant(Const::from_i128(scalar, 1)));
            let less = b.arith(ArithOp::Sub, y, one);
            let power = b.math(MathOp::Pow, x, less);
            let exponent = b.cast(y, b.kernel.ty(x).scalar().unwrap_or(Scalar::F32));
            let product = b.arith(ArithOp::Mul, exponent, power);
            // A constant, also where the power of the base is infinite.
            let constant = b.compare(CompareOp::Eq, y, none);
            let zero = zero(b, x);
            Partial::Times(b.select(constant, zero, product))
        }
        // Where the base is not positive, the power is no function of a real exponent.
        (MathOp::Pow, _) => {
            let zero = zero(b, x);
            let logarithm = b.math_unary(MathUnary::Log, x);
            let product = b.arith(ArithOp::Mul, result, logarithm);
            let flat = b.compare(CompareOp::Le, x, zero);
            Partial::Times(b.select(flat, zero, product))
        }
        (MathOp::Atan2, _) => {
            let (first, second) = (b.arith(ArithOp::Mul, x, x), b.arith(ArithOp::Mul, y, y));
            let radius = b.arith(ArithOp::Add, first, second);
            let numerator = if operand == 0 { y } else { b.arith_unary(ArithOp::Neg, x) };
            Partial::Times(b.arith(ArithOp::Div, numerator, radius))
        }
    }
}
