//! Math functions as arithmetic, where functions may be approximated.
//!
//! The vector functions of C libraries are accurate to 4 ULP, and a call gives up all vector registers. These are accurate to 1.5, and LLVM vectorises loops over
//! them. **They are the same for scalars and vectors**, so that a value does not depend on the lane that computes it; but for sine, cosine and tangent ([`angles`]), which
//! scalars leave to the C library: LLVM would test each lane for a large angle, and take 2.1 times as long as with the library's vector functions. `tests/arithmetic/measure_accuracy.py` finds the largest errors; `docs/reference/accuracy.md` states them. A product and a sum are one
//! instruction where the target has it; constants are split so that the error is about the same without.
//!
//! No instruction carries a flag: the order of operations is what makes them accurate. NaN, infinities, zeros and subnormal numbers are taken for what
//! they are.
//!
//! Each polynomial is a minimax one, by the algorithm of Remez with the coefficients rounded one after the other, lowest power first.

mod angles;
mod arcs;
mod exponential;
mod logarithm;
mod sigmoids;

use octants_ir::Scalar;

use crate::emitter::Emitter;
use crate::lowering::LibraryFunction;
use crate::options::CpuOptions;
use crate::value::{Ty, Typed, Val};

/// What is written out for this type of reals, whatever the number of lanes. Sines, cosines and tangents of vectors are, too, where a product and
/// a sum are one instruction.
pub(super) fn is_written_out(options: CpuOptions, function: LibraryFunction, ty: Scalar) -> bool {
    use LibraryFunction::{Acos, Asin, Atan2, Cos, Erf, Exp, Log, Log2, Pow, Remainder, Sin, Tan, Tanh};
    match function {
        Exp | Asin | Acos | Atan2 | Tanh | Erf => matches!(ty, Scalar::F32 | Scalar::F64),
        Sin | Cos | Tan => matches!(ty, Scalar::F32 | Scalar::F64) && options.fused,
        Log | Log2 => ty == Scalar::F32,
        Pow | Remainder => false,
    }
}

/// Coefficients from which a polynomial is computed in two halves: a product more, but half of the latency.
const LONG: usize = 9;

/// A type of reals, and how its numbers are made of bits.
#[derive(Clone, Copy)]
struct Format {
    ty: Scalar,
    /// Integers of the same width.
    int: Scalar,
    /// Bits of the significand that are stored.
    significand: u32,
    /// Of an exponent.
    bias: i128,
    /// A sum with it has the nearest integer in its lowest bits: 1.5 times the power of two whose last bit is 1.
    magic: f64,
}

impl Format {
    fn of(value: Val) -> Self {
        match value.ty {
            Scalar::F32 => {
                let magic = 12_582_912.0;
                Self { ty: Scalar::F32, int: Scalar::I32, significand: 23, bias: 127, magic }
            }
            Scalar::F64 => {
                let magic = 6_755_399_441_055_744.0;
                Self { ty: Scalar::F64, int: Scalar::I64, significand: 52, bias: 1023, magic }
            }
            other => unreachable!("functions of {other:?} are not written out"),
        }
    }

    fn real(self, value: f64) -> Val {
        Val::real(self.ty, value)
    }

    fn int(self, value: i128) -> Val {
        Val::int(self.int, value)
    }

    /// What differs between the types.
    fn choose<T>(self, single: T, double: T) -> T {
        if self.ty == Scalar::F32 { single } else { double }
    }

    /// The bits of `magic`.
    fn magic_bits(self) -> i128 {
        self.choose(i128::from((self.magic as f32).to_bits()), i128::from(self.magic.to_bits()))
    }

    /// A number of more digits than the type has, in two parts. `low` is what the number lacks as a 64-bit real.
    fn split(self, number: f64, low: f64) -> (Val, Val) {
        let single = f64::from(number as f32);
        let (high, low) = self.choose((single, number - single), (number, low));
        (self.real(high), self.real(low))
    }

    /// π divided by a power of two, in two parts.
    fn pi_by(self, divisor: f64) -> (Val, Val) {
        self.split(std::f64::consts::PI / divisor, 1.224_646_799_147_353_2e-16 / divisor)
    }
}

impl Emitter<'_> {
    /// The function's value, if it is one of these.
    pub(super) fn written_out(
        &mut self,
        options: CpuOptions,
        function: LibraryFunction,
        operands: &[Val],
    ) -> Option<Val> {
        if !self.is_fast() || !is_written_out(options, function, operands[0].ty) {
            return None;
        }
        let x = operands[0];
        Some(match function {
            LibraryFunction::Exp => self.exp(x),
            LibraryFunction::Log => self.log(x, false),
            LibraryFunction::Log2 => self.log(x, true),
            LibraryFunction::Asin => self.asin(x),
            LibraryFunction::Acos => self.acos(x),
            LibraryFunction::Atan2 => {
                let (y, x) = self.same_lanes(operands[0], operands[1]);
                self.atan2(y, x)
            }
            LibraryFunction::Tanh => self.tanh(x),
            LibraryFunction::Erf => self.erf(x),
            LibraryFunction::Sin | LibraryFunction::Cos | LibraryFunction::Tan => {
                return (x.lanes > 1).then(|| self.of_angle(options, function, x));
            }
            LibraryFunction::Pow | LibraryFunction::Remainder => return None,
        })
    }

    /// `a · b + c`, rounded once where the target has the instruction.
    fn multiply_add(&mut self, a: Val, b: Val, c: Val) -> Val {
        self.flagless("llvm.fmuladd", &[a, b, c])
    }

    /// A long one as two of the square, for even and odd powers, which are computed at the same time.
    fn polynomial(&mut self, x: Val, coefficients: &[f64]) -> Val {
        if coefficients.len() < LONG {
            return self.horner(x, coefficients.iter().rev().copied());
        }
        let square = self.binary("fmul", x, x);
        let even = self.horner(square, coefficients.iter().step_by(2).rev().copied());
        let odd = self.horner(square, coefficients.iter().skip(1).step_by(2).rev().copied());
        self.multiply_add(odd, x, even)
    }

    /// A polynomial, highest power first.
    fn horner(&mut self, x: Val, mut coefficients: impl Iterator<Item = f64>) -> Val {
        let highest = coefficients.next().expect("a polynomial has coefficients");
        let ty = x.ty;
        coefficients.fold(Val::real(ty, highest), |sum, c| self.multiply_add(sum, x, Val::real(ty, c)))
    }

    fn magnitude(&mut self, x: Val) -> Val {
        self.flagless("llvm.fabs", &[x])
    }

    fn with_sign_of(&mut self, x: Val, sign: Val) -> Val {
        self.flagless("llvm.copysign", &[x, sign])
    }

    /// The lesser of a number and a constant; a NaN stays.
    fn at_most(&mut self, x: Val, most: f64) -> Val {
        let most = Val::real(x.ty, most);
        let above = self.compare("ogt", x, most);
        self.select(above, most, x)
    }

    /// An intrinsic on reals that is computed as written.
    fn flagless(&mut self, name: &str, operands: &[Val]) -> Val {
        let lanes = operands.iter().map(|v| v.lanes).max().unwrap_or(1);
        let ty = Ty::new(operands[0].ty, lanes);
        let symbol = format!("{name}.{}", ty.mangled());
        let operands: Vec<_> = operands.iter().map(|&v| Typed(self.spread(v, lanes)).to_string()).collect();
        self.module.declare(&symbol, || {
            format!("declare {ty} @{symbol}({})", vec![ty.to_string(); operands.len()].join(", "))
        });
        self.f.value(ty, format_args!("call {ty} @{symbol}({})", operands.join(", ")))
    }
}
