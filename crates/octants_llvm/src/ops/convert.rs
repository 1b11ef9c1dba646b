//! From one scalar type to another.

use octants_ir::ops::ConvertOp;
use octants_ir::{Const, Scalar};

use crate::emitter::Emitter;
use crate::value::Val;

impl Emitter<'_> {
    pub(crate) fn conversion(&mut self, op: ConvertOp, a: Val, to: Scalar) -> Val {
        match op {
            ConvertOp::Cast => self.cast(a, to),
            ConvertOp::Detach => a,
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
    /// into scalars on vectors. What the plain conversion gives outside the type is frozen, then replaced. Where nothing is vectorised, one comparison
    /// tells that it is inside.
    fn truncate(&mut self, a: Val, to: Scalar) -> Val {
        // All thresholds are powers of two, which `f32` holds exactly and `f16` does not.
        let a = if a.ty == Scalar::F16 { self.convert("fpext", a, Scalar::F32) } else { a };
        let signed = to.is_signed();
        let bits = to.bits() as i32 - i32::from(signed);
        let above = 2.0_f64.powi(bits);
        let plain = self.convert(if signed { "fptosi" } else { "fptoui" }, a, to);
        let plain = self.f.value(plain.ty(), format_args!("freeze {} {plain}", plain.ty()));
        if self.branches && signed && a.lanes == 1 {
            return self.unless_inside(a, above, plain, |e| e.saturated(a, above, plain));
        }
        self.saturated(a, above, plain)
    }

    /// What a conversion gave, where the magnitude of the number is below a bound, as it nearly always is; else something else.
    fn unless_inside(
        &mut self,
        a: Val,
        bound: f64,
        plain: Val,
        otherwise: impl FnOnce(&mut Self) -> Val,
    ) -> Val {
        let magnitude = self.intrinsic("llvm.fabs", &[a], "");
        let inside = self.compare("olt", magnitude, Val::real(a.ty, bound));
        let (outside, done) = (self.f.new_label(), self.f.new_label());
        let (before, likely) = (self.f.block(), self.module.cold_node());
        self.f.terminate(format_args!("br i1 {inside}, label %{done}, label %{outside}, !prof {likely}"));
        self.f.begin(outside);
        let other = otherwise(self);
        let after = self.f.block();
        self.f.jump(done);
        self.f.begin(done);
        self.f.join(plain.ty(), &[(plain, before), (other, after)])
    }

    /// What a conversion gave, or what it means where the number does not fit: `above` and more is the greatest integer.
    fn saturated(&mut self, a: Val, above: f64, plain: Val) -> Val {
        let (to, signed) = (plain.ty, plain.ty.is_signed());
        let (most, least) = (Const::from_f64(to, f64::INFINITY), Const::from_f64(to, f64::NEG_INFINITY));
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
