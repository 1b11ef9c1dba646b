//! Comparisons and the choice between two values.

use octants_ir::ops::CompareOp;

use crate::emitter::Emitter;
use crate::value::Val;

impl Emitter<'_> {
    pub(crate) fn comparison(&mut self, op: CompareOp, a: Val, b: Val) -> Val {
        let (real, signed, unsigned) = match op {
            CompareOp::Lt => ("olt", "slt", "ult"),
            CompareOp::Le => ("ole", "sle", "ule"),
            CompareOp::Gt => ("ogt", "sgt", "ugt"),
            CompareOp::Ge => ("oge", "sge", "uge"),
            CompareOp::Eq => ("oeq", "eq", "eq"),
            CompareOp::Ne => ("une", "ne", "ne"),
        };
        let predicate = if a.ty.is_real() {
            real
        } else if a.ty.is_signed() {
            signed
        } else {
            unsigned
        };
        self.compare(predicate, a, b)
    }
}
