//! Constants of another value's type, and sums with them.

use octants_ir::ops::ArithOp;
use octants_ir::{Builder, Const, Scalar, Value};

/// A constant of the value's type.
pub(crate) fn constant_like(b: &mut Builder<'_>, value: Value, constant: i64) -> Value {
    let scalar = b.kernel.ty(value).scalar().unwrap_or(Scalar::I32);
    b.constant(Const::from_i128(scalar, constant.into()))
}

/// `value + amount`.
pub(crate) fn moved(b: &mut Builder<'_>, value: Value, amount: i64) -> Value {
    if amount == 0 {
        return value;
    }
    let amount = constant_like(b, value, amount);
    b.arith(ArithOp::Add, value, amount)
}
