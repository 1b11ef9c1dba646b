//! Functions of reals: calls of the vendor's library of device functions, which whoever compiles the text links by need.

use octants_ir::Scalar;

use crate::emitter::Emitter;
use crate::shape::LibraryFunction;
use crate::value::{Ty, Typed, Val};

/// From this angle on, 105615, the library reduces with as many digits of π as it takes, in 150 lines of PTX: without them sine takes 30.
const LARGE_ANGLE: &str = "0x40F9C8F000000000";

/// Sine and cosine of such an angle.
const BOTH_OF_LARGE_ANGLE: &str = "octants.sincos.large";

impl Emitter<'_> {
    /// On scalars of 32 or 64 bits; halves are computed in 32.
    pub(super) fn device_function(&mut self, function: LibraryFunction, operands: &[Val]) -> Val {
        self.by_lane(operands, |e, operands| {
            if operands[0].ty != Scalar::F16 {
                return e.device_call(function, operands);
            }
            let wide: Vec<_> = operands.iter().map(|&operand| e.cast(operand, Scalar::F32)).collect();
            let result = e.device_call(function, &wide);
            e.cast(result, Scalar::F16)
        })
    }

    fn device_call(&mut self, function: LibraryFunction, operands: &[Val]) -> Val {
        let scalar = operands[0].ty;
        let name = match function {
            LibraryFunction::Exp => "exp",
            LibraryFunction::Log => "log",
            LibraryFunction::Log2 => "log2",
            LibraryFunction::Sin => "sin",
            LibraryFunction::Cos => "cos",
            LibraryFunction::Tan => "tan",
            LibraryFunction::Tanh => "tanh",
            LibraryFunction::Asin => "asin",
            LibraryFunction::Acos => "acos",
            LibraryFunction::Pow => "pow",
            LibraryFunction::Atan2 => "atan2",
            LibraryFunction::Erf => "erf",
            // LLVM's own code for `frem` rounds the quotient.
            LibraryFunction::Remainder => "fmod",
        };
        let symbol = format!("__nv_{name}{}", if scalar == Scalar::F32 { "f" } else { "" });
        let ty = Ty::new(scalar, 1);
        let typed: Vec<_> = operands.iter().map(|&operand| Typed(operand).to_string()).collect();
        self.module.declare(&symbol, || {
            let types = vec![ty.to_string(); operands.len()];
            format!("declare {ty} @{symbol}({}) #1", types.join(", "))
        });
        let trigonometric =
            matches!(function, LibraryFunction::Sin | LibraryFunction::Cos | LibraryFunction::Tan);
        let callee = if trigonometric && scalar == Scalar::F32 { self.split_angles(name) } else { symbol };
        self.f.value(ty, format_args!("call {ty} @{callee}({})", typed.join(", ")))
    }

    /// A function of an angle whose code for large ones is no part of each call. The library decides by the same comparison, so that of
    /// its code only that for other angles remains beside it. Where there are sines and cosines, large angles are reduced by one function: the library's
    /// function of both gives the bits of each.
    fn split_angles(&mut self, name: &str) -> String {
        let symbol = format!("octants.{name}");
        let shared = match name {
            "sin" | "cos" => self.facts.has_sines_and_cosines,
            _ => false,
        };
        let (large, far) = if shared {
            self.add_both_of_large_angle();
            let part = u32::from(name == "cos");
            let far = format!(
                "%both = call {{ float, float }} @{BOTH_OF_LARGE_ANGLE}(float %x)\n  %far = extractvalue {{ float, float }} %both, {part}"
            );
            (String::new(), far)
        } else {
            let large = format!(
                "
define internal float @{symbol}.large(float %x) noinline nounwind willreturn memory(none) {{
  %far = call float @__nv_{name}f(float %x)
  ret float %far
}}
"
            );
            (large, format!("%far = call float @{symbol}.large(float %x)"))
        };
        // The intrinsic that the library takes, too: LLVM does not know that others are the same.
        self.module.declare("llvm.nvvm.fabs.f", || "declare float @llvm.nvvm.fabs.f(float) #1".to_owned());
        self.module.add_function_once(&symbol, || {
            format!(
                "\
define internal float @{symbol}(float %x) alwaysinline nounwind willreturn memory(none) {{
entry:
  %magnitude = call float @llvm.nvvm.fabs.f(float %x)
  %large = fcmp oge float %magnitude, {LARGE_ANGLE}
  br i1 %large, label %reduce, label %direct
direct:
  %near = call float @__nv_{name}f(float %x)
  ret float %near
reduce:
  {far}
  ret float %far
}}
{large}"
            )
        });
        symbol
    }

    fn add_both_of_large_angle(&mut self) {
        self.module
            .declare("__nv_sincosf", || "declare void @__nv_sincosf(float, ptr, ptr) nounwind".to_owned());
        self.module.add_function_once(BOTH_OF_LARGE_ANGLE, || {
            format!(
                "\
define internal {{ float, float }} @{BOTH_OF_LARGE_ANGLE}(float %x) noinline nounwind willreturn memory(none) {{
  %sine.place = alloca float, align 4
  %cosine.place = alloca float, align 4
  call void @__nv_sincosf(float %x, ptr %sine.place, ptr %cosine.place)
  %sine = load float, ptr %sine.place, align 4
  %cosine = load float, ptr %cosine.place, align 4
  %first = insertvalue {{ float, float }} poison, float %sine, 0
  %both = insertvalue {{ float, float }} %first, float %cosine, 1
  ret {{ float, float }} %both
}}
"
            )
        });
    }
}
