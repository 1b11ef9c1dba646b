//! Arithmetic of reals.

use octants_ir::ops::{ArithOp, CompareOp};
use octants_ir::{Builder, Value};

use super::{Partial, either, real, zero};

pub(super) fn flows(op: ArithOp) -> bool {
    op.info().differentiates
}

pub(super) fn partial(
    b: &mut Builder<'_>,
    op: ArithOp,
    operands: &[Value],
    result: Value,
    operand: usize,
) -> Partial {
    let first = operand == 0;
    match op {
        ArithOp::Add => Partial::One,
        ArithOp::Sub if first => Partial::One,
        ArithOp::Sub | ArithOp::Neg => Partial::MinusOne,
        ArithOp::Mul => Partial::Times(operands[1 - operand]),
        ArithOp::Div | ArithOp::RawDiv if first => Partial::Over(operands[1]),
        // −a/b² is −(a/b)/b.
        ArithOp::Div | ArithOp::RawDiv => {
            let quotient = b.arith(ArithOp::Div, result, operands[1]);
            Partial::Times(b.arith_unary(ArithOp::Neg, quotient))
        }
        // The quotient that is taken off is a whole number, and stays the same nearby.
        ArithOp::Mod | ArithOp::RawMod if first => Partial::One,
        ArithOp::Mod | ArithOp::RawMod => {
            let difference = b.arith(ArithOp::Sub, result, operands[0]);
            Partial::Times(b.arith(ArithOp::Div, difference, operands[1]))
        }
        ArithOp::FloorDiv => Partial::Zero,
        // To the first where it is strictly ahead, else to the second. A NaN loses against a number, also here.
        ArithOp::Min | ArithOp::Max => {
            let ahead = if op == ArithOp::Min { CompareOp::Lt } else { CompareOp::Gt };
            let ahead = b.compare(ahead, operands[0], operands[1]);
            let loses = b.compare(CompareOp::Ne, operands[1], operands[1]);
            let chosen = either(b, ahead, loses);
            Partial::Where(chosen, first)
        }
        // The sign; zero at zero, and a NaN stays one.
        ArithOp::Abs => {
            let (zero, one, minus_one) =
                (zero(b, operands[0]), real(b, operands[0], 1.0), real(b, operands[0], -1.0));
            let negative = b.compare(CompareOp::Lt, operands[0], zero);
            let otherwise = b.select(negative, minus_one, operands[0]);
            let positive = b.compare(CompareOp::Gt, operands[0], zero);
            Partial::Times(b.select(positive, one, otherwise))
        }
    }
}
