//! Small vectors and matrices as values.

use super::family;

family! {
    /// Entries are in row-major order.
    TensorOp {
        New "tensor" Any diff "`(entries…) → tensor`";
        Splat "splat" Any diff "`(scalar) → tensor` with every entry the scalar.";
        Get "tensor_get" Any diff "`(tensor, components…) → scalar`; a component outside the shape gives some entry, never a crash.";
        Set "tensor_set" Any diff "`(tensor, components…, scalar) → tensor` with one entry replaced; nothing is replaced outside the shape.";
    }
}
