//! From one scalar type to another.

use octants_ir::ops::ConvertOp;
use octants_ir::{Const, Scalar};

use crate::emitter::Emitter;
use crate::value::Val;

impl Emitter<'_> {
    pub(crate) fn conversion(&mut self, op: ConvertOp, a: Val, to: Scalar) -> Val {
        match op {
            ConvertOp::Cast => self.cast(a, to),
            ConvertOp::BitCast => self.bit_cast(a, to),
        }
    }

    pub(crate) fn cast(&mut self, a: Val, to: Scalar) -> Val {
        if a.ty == to {
            return a;
        }
        match (a.ty.is_real(), to) {
            // A NaN is not zero.
            (true, Scalar::U1) => self.compare("une", a, Val::real(a.ty, 0.0)),
            (false, Scalar::U1) => self.compare("ne", a, Val::int(a.ty, 0)),
            (true, _) if to.is_real() => {
                self.convert(if to.bits() > a.ty.bits() { "fpext" } else { "fptrunc" }, a, to)
            }
            (true, _) => self.truncate(a, to),
            (false, _) if to.is_real() => {
                self.convert(if a.ty.is_signed() { "sitofp" } else { "uitofp" }, a, to)
            }
            (false, _) => self.resize(a, to),
        }
    }

    /// A real to an integer, toward zero and saturating; a NaN gives 0.
    ///
    /// Comparisons and selections around the plain conversion: LLVM's saturating intrinsic means the same, but falls apart
    /// into scalars on vectors. What the plain conversion gives outside the type is frozen, then replaced.
    fn truncate(&mut self, a: Val, to: Scalar) -> Val {
        // All thresholds are powers of two, which `f32` holds exactly and `f16` does not.
        let a = if a.ty == Scalar::F16 { self.convert("fpext", a, Scalar::F32) } else { a };
        let signed = to.is_signed();
        let bits = to.bits() as i32 - i32::from(signed);
        let above = 2.0_f64.powi(bits);
        let (most, least) = (Const::from_f64(to, f64::INFINITY), Const::from_f64(to, f64::NEG_INFINITY));
        let plain = self.convert(if signed { "fptosi" } else { "fptoui" }, a, to);
        let plain = self.f.value(plain.ty(), format_args!("freeze {} {plain}", plain.ty()));
        let too_great = self.compare("oge", a, Val::real(a.ty, above));
        let result = self.select(too_great, Val::constant(most), plain);
        if signed {
            let too_small = self.compare("olt", a, Val::real(a.ty, -above));
            let result = self.select(too_small, Val::constant(least), result);
            let nan = self.compare("uno", a, a);
            self.select(nan, Val::int(to, 0), result)
        } else {
            // Less than zero, or a NaN.
            let nothing = self.compare("ult", a, Val::real(a.ty, 0.0));
            self.select(nothing, Val::int(to, 0), result)
        }
    }
}
