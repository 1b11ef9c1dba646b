//! Rounds as written where somebody looks for the values that a least or greatest one was chosen of.
//!
//! Before:
//! ```text
//! kernel @k(%x "x": array<f32, 1>, %y "y": array<f32, 1>) fast_math {
//!   …
//!     %5: f32 = atomic_max %y[%0], %4
//! ```
//! After:
//! ```text
//! kernel @k(%x "x": array<f32, 1>, %y "y": array<f32, 1>) fast_math exact_choices {
//!   …
//!     %5: f32 = atomic_max %y[%0], %4
//! ```
//!
//! The derivative of such an update computes each value again, and gives the adjoint to those that equal what the cell holds. With `fast_math` the same
//! expression has other digits in another kernel, or in another iteration of the same one: products and sums become one operation here and not there,
//! functions have vector forms in whole vectors alone. No value would be found, and the gradient would be zero.
//!
//! So from here on no pass replaces arithmetic by other arithmetic, and emitters compute as written what flows into [choices](octants_ir::choices).
//! Where something flows into them that has no such form, as math functions, the whole kernel does without `fast_math`: that is decided last
//! (`settle_rounding`), on the arithmetic that is emitted. Either way the values have the same bits, in the kernel and in its derivative.

use octants_ir::choices::ops_of_choices;
use octants_ir::ops::AtomicOp;
use octants_ir::{Kernel, KernelOptions, OpKind, Scalar, Type};

/// In which cells least and greatest values count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Totals {
    /// Arrays and fields: those that another kernel may see.
    Shared,
    /// A kernel's variables, too.
    All,
}

pub fn keep_rounding(kernel: &mut Kernel) {
    keep_rounding_of(kernel, Totals::Shared);
}

pub(crate) fn keep_rounding_of(kernel: &mut Kernel, totals: Totals) {
    if kernel.options.fast_math && has_totals(kernel, totals) {
        kernel.options.exact_choices = true;
    }
}

/// Takes `fast_math` from a kernel whose choices do not follow from exact arithmetic.
pub fn settle_rounding(kernel: &mut Kernel) {
    let KernelOptions { fast_math, exact_choices, .. } = kernel.options;
    if fast_math && exact_choices && ops_of_choices(kernel).is_none() {
        kernel.options.fast_math = false;
    }
}

/// Whether reals are updated to the least or the greatest, also in functions that are called.
fn has_totals(kernel: &Kernel, totals: Totals) -> bool {
    kernel.regions.iter().flat_map(|(_, region)| &region.ops).any(|&op| {
        let data = &kernel.ops[op];
        let OpKind::Atomic(AtomicOp::Min | AtomicOp::Max) = data.kind else { return false };
        let (value, place) = data.operands.split_last().expect("an update has a value");
        kernel.ty(*value).elem().is_some_and(Scalar::is_real)
            && (totals == Totals::All || !matches!(kernel.ty(place[0]), Type::Local(_)))
    })
}
