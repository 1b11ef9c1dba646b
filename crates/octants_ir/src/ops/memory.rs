//! Updates of memory that other threads may see.

use super::family;

family! {
    /// `cell = op(cell, value)`, indivisible per scalar; the result is the old value. Tensors entry by entry.
    AtomicOp {
        Add "atomic_add" Any 20 diff "Sum.";
        Sub "atomic_sub" Any 20 diff "Difference.";
        Mul "atomic_mul" Any 20 flat "Product.";
        Min "atomic_min" Any 20 flat "The lesser; a NaN loses.";
        Max "atomic_max" Any 20 flat "The greater; a NaN loses.";
        And "atomic_and" Integral 20 flat "Bitwise and.";
        Or "atomic_or" Integral 20 flat "Bitwise or.";
        Xor "atomic_xor" Integral 20 flat "Bitwise exclusive or.";
        Exchange "atomic_exchange" Any 20 flat "The value itself.";
    }
}
