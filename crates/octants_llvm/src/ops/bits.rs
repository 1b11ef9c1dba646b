//! Bit patterns of integers.

use octants_ir::Scalar;
use octants_ir::ops::{BitOp, BitUnary};

use crate::emitter::Emitter;
use crate::value::Val;

impl Emitter<'_> {
    pub(crate) fn bit(&mut self, op: BitOp, a: Val, b: Val) -> Val {
        match op {
            BitOp::And => self.binary("and", a, b),
            BitOp::Or => self.binary("or", a, b),
            BitOp::Xor => self.binary("xor", a, b),
            BitOp::Shl => self.shift("shl", a, b),
            BitOp::Shr => self.shift(if a.ty.is_signed() { "ashr" } else { "lshr" }, a, b),
            BitOp::LShr => self.shift("lshr", a, b),
        }
    }

    /// The amount counts modulo the width, so it never reaches it.
    fn shift(&mut self, instruction: &str, a: Val, amount: Val) -> Val {
        let width = a.ty.bits();
        if width == 1 {
            return self.spread(a, a.lanes.max(amount.lanes));
        }
        // Widths are powers of two, so the low bits say the rest modulo the width, for any type of the amount.
        let amount = self.resize(amount, a.ty);
        let amount = match amount.as_const() {
            Some(c) => {
                Val { lanes: amount.lanes, ..Val::int(a.ty, (c.bits() & u64::from(width - 1)).into()) }
            }
            None => self.binary("and", amount, Val::int(a.ty, (width - 1).into())),
        };
        self.binary(instruction, a, amount)
    }

    pub(crate) fn bit_unary(&mut self, op: BitUnary, a: Val) -> Val {
        let count = match op {
            BitUnary::Not => return self.not(a),
            BitUnary::Popcnt if a.ty == Scalar::U1 => a,
            BitUnary::Ffs if a.ty == Scalar::U1 => a,
            BitUnary::Clz if a.ty == Scalar::U1 => self.not(a),
            BitUnary::Popcnt => self.intrinsic("llvm.ctpop", &[a], ""),
            BitUnary::Clz => self.intrinsic("llvm.ctlz", &[a], ", i1 false"),
            BitUnary::Ffs => {
                let zeros = self.intrinsic("llvm.cttz", &[a], ", i1 false");
                let position = self.binary("add", zeros, Val::int(a.ty, 1));
                let none = self.compare("eq", a, Val::int(a.ty, 0));
                self.select(none, Val::int(a.ty, 0), position)
            }
        };
        // A count is small and not negative, whatever the sign of the type it was counted in.
        let unsigned = count.read_as(crate::value::bits_of(count.ty));
        self.resize(unsigned, Scalar::I32)
    }
}
