//! Conversions between reals. Those to integers stop a derivative, and those from integers have none to pass on: the types say so.

use octants_ir::ops::ConvertOp;

use super::Partial;

pub(super) fn partial(op: ConvertOp) -> Partial {
    match op {
        ConvertOp::Cast => Partial::One,
        ConvertOp::BitCast | ConvertOp::Detach => Partial::Zero,
    }
}
