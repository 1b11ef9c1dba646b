//! Arithmetic. Operands and result have one type; tensors entrywise.

use super::family;

family! {
    /// Arithmetic on numbers. Integers wrap; nothing traps.
    ArithOp {
        Add "add" Any 1 diff "Sum; integers wrap. On `u1` it is exclusive or.";
        Sub "sub" Any 1 diff "Difference; integers wrap.";
        Mul "mul" Any 1 diff "Product; integers wrap.";
        Div "div" Real 6 diff "Quotient of reals.";
        FloorDiv "floor_div" Numeric 6 flat "Quotient rounded toward −∞. An integer divided by zero gives 0; the least integer by −1 wraps.";
        Mod "mod" Numeric 6 diff "`a - floor_div(a, b) * b`: has the sign of `b`. An integer modulo zero gives 0.";
        RawDiv "raw_div" Numeric 6 diff "Quotient as in C: integers truncate toward zero, by zero give 0; reals divide.";
        RawMod "raw_mod" Numeric 6 diff "Remainder as in C: has the sign of `a`; an integer by zero gives 0; reals as `fmod`.";
        Min "min" Any 1 diff "The lesser; a NaN loses against a number, and −0.0 is less than 0.0.";
        Max "max" Any 1 diff "The greater; a NaN loses against a number, and 0.0 is greater than −0.0.";
        Neg "neg" Numeric 1 diff "`0 - a` on integers (wraps); sign flipped on reals.";
        Abs "abs" Any 1 diff "Magnitude; the least signed integer wraps to itself.";
    }
}

impl ArithOp {
    pub fn operands(self) -> usize {
        match self {
            Self::Neg | Self::Abs => 1,
            _ => 2,
        }
    }
}
