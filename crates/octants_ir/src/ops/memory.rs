//! Updates of memory that other threads may see.

use super::family;

family! {
    /// `cell = op(cell, value)`, indivisible per scalar; the result is the old value. Tensors entry by entry.
    AtomicOp {
        Add "atomic_add" Any diff "Sum.";
        Sub "atomic_sub" Any diff "Difference.";
        Mul "atomic_mul" Any flat "Product.";
        Min "atomic_min" Any flat "The lesser; a NaN loses.";
        Max "atomic_max" Any flat "The greater; a NaN loses.";
        And "atomic_and" Integral flat "Bitwise and.";
        Or "atomic_or" Integral flat "Bitwise or.";
        Xor "atomic_xor" Integral flat "Bitwise exclusive or.";
        Exchange "atomic_exchange" Any flat "The value itself.";
    }
}
