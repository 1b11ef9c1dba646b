//! Small vectors and matrices as values.

use super::family;

family! {
    /// Entries are in row-major order.
    TensorOp {
        New "tensor" Any 0 diff "`(entries…) → tensor`";
        Splat "splat" Any 0 diff "`(scalar) → tensor` with every entry the scalar.";
        Get "tensor_get" Any 0 diff "`(tensor, components…) → scalar`; a component outside the shape gives some entry, never a crash.";
        Set "tensor_set" Any 0 diff "`(tensor, components…, scalar) → tensor` with one entry replaced; nothing is replaced outside the shape.";
    }
}
