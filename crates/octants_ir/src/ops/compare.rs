//! Comparisons: operands of one type, result `u1` (entrywise on tensors).

use super::family;

family! {
    /// On reals they are ordered (false with a NaN), but `ne`, which is true with one.
    CompareOp {
        Lt "lt" Any 1 flat "`a < b`";
        Le "le" Any 1 flat "`a <= b`";
        Gt "gt" Any 1 flat "`a > b`";
        Ge "ge" Any 1 flat "`a >= b`";
        Eq "eq" Any 1 flat "`a == b`";
        Ne "ne" Any 1 flat "`a != b`";
    }
}
