//! Comparisons: operands of one type, result `u1` (entrywise on tensors).

use super::family;

family! {
    /// On reals they are ordered (false with a NaN), but `ne`, which is true with one.
    CompareOp {
        Lt "lt" Any flat "`a < b`";
        Le "le" Any flat "`a <= b`";
        Gt "gt" Any flat "`a > b`";
        Ge "ge" Any flat "`a >= b`";
        Eq "eq" Any flat "`a == b`";
        Ne "ne" Any flat "`a != b`";
    }
}
