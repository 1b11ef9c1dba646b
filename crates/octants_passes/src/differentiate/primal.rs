//! Of a kernel that is differentiated.

use octants_ir::{Kernel, OpKind, Scalar, Value};

/// Says that the kernel was not [prepared](super::prepare).
pub(super) fn is_no_primal(kind: &OpKind) -> ! {
    unreachable!("`{}` does not stand in a kernel that is differentiated", kind.name())
}

/// Whether the value is a real scalar.
pub(super) fn is_real(kernel: &Kernel, value: Value) -> bool {
    kernel.ty(value).scalar().is_some_and(Scalar::is_real)
}
