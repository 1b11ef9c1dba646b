//! From one scalar type to another; entrywise on tensors.

use super::family;

family! {
    /// The result's type says to what.
    ConvertOp {
        Cast "cast" Any 1 diff "By value: reals truncate toward zero to integers and saturate (NaN gives 0), integers wrap, to `u1` means non-zero.";
        Detach "detach" Real 1 flat "The value itself, of the same type, through which no derivative goes.";
        BitCast "bit_cast" Any 1 flat "By bits: both types have one width.";
    }
}
