//! Math functions: calls of the vendor's library of device functions, which whoever compiles the text links by need.

use octants_ir::Scalar;

use super::instructions::filled;
use super::vendor::LargeAngles;
use crate::emitter::Emitter;
use crate::lowering::LibraryFunction;
use crate::value::{Ty, Typed, Val};

/// Sine and cosine of such an angle.
const BOTH_OF_LARGE_ANGLE: &str = "octants.sincos.large";

/// Both of any angle.
const BOTH: &str = "octants.sincos";

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
        let symbol = self.library_symbol(name, scalar);
        let ty = Ty::new(scalar, 1);
        let typed: Vec<_> = operands.iter().map(|&operand| Typed(operand).to_string()).collect();
        self.declare_device_function(&symbol, ty, operands.len());
        let trigonometric =
            matches!(function, LibraryFunction::Sin | LibraryFunction::Cos | LibraryFunction::Tan);
        let angles = self.vendor().large_angles.filter(|_| trigonometric && scalar == Scalar::F32);
        let callee = angles.map_or(symbol, |angles| self.split_angles(name, &angles));
        self.f.value(ty, format_args!("call {ty} @{callee}({})", typed.join(", ")))
    }

    /// What the vendor's library calls a function of C's mathematics.
    fn library_symbol(&self, name: &str, scalar: Scalar) -> String {
        filled(self.vendor().library[usize::from(scalar != Scalar::F32)], &[&name])
    }

    fn declare_device_function(&mut self, symbol: &str, ty: Ty, operands: usize) {
        self.module.declare(symbol, || {
            let types = vec![ty.to_string(); operands];
            format!("declare {ty} @{symbol}({}) #1", types.join(", "))
        });
    }

    /// Sine and cosine of a real of 32 bits: one comparison, one reduction of the angle, and what the library computes of it for each.
    pub(super) fn sine_and_cosine_of(&mut self, angle: Val, angles: &LargeAngles) -> (Val, Val) {
        let ty = Ty::new(Scalar::F32, 1);
        let [sine, cosine] = ["sin", "cos"].map(|name| self.library_symbol(name, Scalar::F32));
        for symbol in [&sine, &cosine] {
            self.declare_device_function(symbol, ty, 1);
        }
        self.add_both_of_large_angle(angles);
        let test = self.test_of_large_angle(angles);
        self.module.add_function_once(BOTH, || {
            format!(
                "\
define internal {{ float, float }} @{BOTH}(float %x) alwaysinline nounwind willreturn memory(none) {{
{test}
direct:
  %sine = call float @{sine}(float %x)
  %cosine = call float @{cosine}(float %x)
  %first = insertvalue {{ float, float }} poison, float %sine, 0
  %near = insertvalue {{ float, float }} %first, float %cosine, 1
  ret {{ float, float }} %near
reduce:
  %far = call {{ float, float }} @{BOTH_OF_LARGE_ANGLE}(float %x)
  ret {{ float, float }} %far
}}
"
            )
        });
        let both = self.f.define(format_args!("call {{ float, float }} @{BOTH}(float {angle})"));
        let [sine, cosine] = [0, 1]
            .map(|part| self.f.value(ty, format_args!("extractvalue {{ float, float }} %v{both}, {part}")));
        (sine, cosine)
    }

    /// The first block of a function of an angle, which ends in a branch to `reduce` or `direct`. It compares as the library does.
    fn test_of_large_angle(&mut self, angles: &LargeAngles) -> String {
        let magnitude = self.instruction(&angles.magnitude, &[&"%x"]);
        let from = angles.from;
        format!(
            "\
entry:
  %magnitude = {magnitude}
  %large = fcmp oge float %magnitude, {from}
  br i1 %large, label %reduce, label %direct"
        )
    }

    /// A function of an angle whose code for large ones is no part of each call. The library decides by the same comparison, so that of
    /// its code only that for other angles remains beside it. Where there are sines and cosines, large angles are reduced by one function: the library's
    /// function of both gives the bits of each.
    fn split_angles(&mut self, name: &str, angles: &LargeAngles) -> String {
        let symbol = format!("octants.{name}");
        let library = self.library_symbol(name, Scalar::F32);
        let shared = match name {
            "sin" | "cos" => self.facts.has_sines_and_cosines,
            _ => false,
        };
        let (large, far) = if shared {
            self.add_both_of_large_angle(angles);
            let part = u32::from(name == "cos");
            let far = format!(
                "%both = call {{ float, float }} @{BOTH_OF_LARGE_ANGLE}(float %x)\n  %far = extractvalue {{ float, float }} %both, {part}"
            );
            (String::new(), far)
        } else {
            let large = format!(
                "
define internal float @{symbol}.large(float %x) noinline nounwind willreturn memory(none) {{
  %far = call float @{library}(float %x)
  ret float %far
}}
"
            );
            (large, format!("%far = call float @{symbol}.large(float %x)"))
        };
        let test = self.test_of_large_angle(angles);
        self.module.add_function_once(&symbol, || {
            format!(
                "\
define internal float @{symbol}(float %x) alwaysinline nounwind willreturn memory(none) {{
{test}
direct:
  %near = call float @{library}(float %x)
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

    fn add_both_of_large_angle(&mut self, angles: &LargeAngles) {
        let both = self.instruction(&angles.both, &[&"%x", &"%sine.place", &"%cosine.place"]);
        self.module.add_function_once(BOTH_OF_LARGE_ANGLE, || {
            format!(
                "\
define internal {{ float, float }} @{BOTH_OF_LARGE_ANGLE}(float %x) noinline nounwind willreturn memory(none) {{
  %sine.place = alloca float, align 4
  %cosine.place = alloca float, align 4
  {both}
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
