//! Bit patterns of integers.

use super::family;

family! {
    /// `and`, `or`, `xor` need one type; shifts take any integer as the amount, and use it modulo the width of `a`.
    BitOp {
        And "and" Integral 1 flat "Bitwise and.";
        Or "or" Integral 1 flat "Bitwise or.";
        Xor "xor" Integral 1 flat "Bitwise exclusive or.";
        Shl "shl" Integral 1 flat "Shift left; the result has the type of `a`.";
        Shr "shr" Integral 1 flat "Shift right: arithmetic on signed types, logical on unsigned ones.";
        LShr "lshr" Integral 1 flat "Shift right, zeros coming in, whatever the type.";
    }
}

impl BitOp {
    pub fn is_shift(self) -> bool {
        matches!(self, Self::Shl | Self::Shr | Self::LShr)
    }
}

family! {
    /// One operand.
    BitUnary {
        Not "not" Integral 1 flat "All bits flipped; on `u1` the logical negation.";
        Popcnt "popcnt" Integral 1 flat "How many bits are set, as `i32`.";
        Clz "clz" Integral 1 flat "How many leading zeros, as `i32`; the width for 0.";
        Ffs "ffs" Integral 1 flat "One plus the position of the lowest set bit, as `i32`; 0 for 0.";
    }
}
