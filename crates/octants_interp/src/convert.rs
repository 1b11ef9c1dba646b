//! From one scalar type to another.

use octants_ir::ops::ConvertOp;
use octants_ir::{Const, Scalar};

pub fn convert(op: ConvertOp, a: Const, to: Scalar) -> Const {
    match op {
        ConvertOp::Cast => match a.as_i128() {
            Some(integer) => Const::from_i128(to, integer),
            None => Const::from_f64(to, a.as_f64()),
        },
        ConvertOp::Detach => a,
        ConvertOp::BitCast => Const::from_bits(to, a.bits()),
    }
}
