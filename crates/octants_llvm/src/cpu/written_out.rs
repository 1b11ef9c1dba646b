//! Functions of 32-bit reals as arithmetic, where functions may be approximated.
//!
//! The vector functions of C libraries are accurate to 4 ULP, and a call gives up all vector registers. These are accurate to 1.5, the same for scalars and vectors,
//! so that a value does not depend on the lane that computes it, and LLVM vectorises loops over them. Largest errors, found over five million arguments each: `exp` 1.03 ULP, `log` 0.87,
//! `log2` 1.1, `atan2` 1.47. A product and a sum are one instruction where the target has it; constants are split so that the error is about the same without.
//!
//! No instruction carries a flag: the order of operations is what makes them accurate. NaN, infinities, zeros and subnormal numbers are taken for what
//! they are.

use octants_ir::Scalar;

use crate::emitter::Emitter;
use crate::shape::LibraryFunction;
use crate::value::Val;

/// 1.5 · 2²³: a sum with it has the nearest integer in its lowest bits.
const MAGIC: f64 = 12_582_912.0;
const MAGIC_BITS: i128 = 0x4B40_0000;

/// The first 10 bits of ln 2, so that a product with an exponent is exact, and the rest.
const LN2_HIGH: f64 = 0.693_359_375;
const LN2_LOW: f64 = -0.000_212_194_441_701_285_54;

/// The bits of √½: a significand is between it and √2.
const ROOT_OF_HALF: i128 = 0x3F35_04F3;

/// Minimax polynomials, lowest power first: of (eʳ − 1 − r) / r² where |r| < ln 2 / 2,
const EXP: [f64; 5] = [
    0.5,
    0.166_665_181_517_601,
    0.041_666_205_972_433_09,
    0.008_368_917_740_881_443,
    0.001_395_053_812_302_649,
];
/// of (ln(1 + f) − f + f²/2) / f³ where √½ ≤ 1 + f < √2,
const LOG: [f64; 8] = [
    0.333_333_313_465_118_4,
    -0.250_008_225_440_979,
    0.200_012_266_635_894_78,
    -0.166_233_569_383_621_22,
    0.142_017_617_821_693_42,
    -0.131_601_944_565_773,
    0.127_615_511_417_388_92,
    -0.076_344_311_237_335_2,
];
/// and of (atan √z − √z) / (z · √z) where z ≤ 1.
const ATAN: [f64; 10] = [
    -0.333_333_283_662_796,
    0.199_996_709_823_608_4,
    -0.142_798_334_360_122_68,
    0.110_582_217_574_119_57,
    -0.088_110_849_261_283_87,
    0.067_415_818_572_044_37,
    -0.044_689_729_809_761_05,
    0.022_539_688_274_264_336,
    -0.007_317_872_252_315_283,
    0.001_113_771_810_196_34,
];

fn real(value: f64) -> Val {
    Val::real(Scalar::F32, value)
}

impl Emitter<'_> {
    /// The function's value, if it is one of these.
    pub(super) fn written_out(&mut self, function: LibraryFunction, operands: &[Val]) -> Option<Val> {
        if !self.is_fast() || operands[0].ty != Scalar::F32 {
            return None;
        }
        Some(match function {
            LibraryFunction::Exp => self.exp(operands[0]),
            LibraryFunction::Log => self.log(operands[0], false),
            LibraryFunction::Log2 => self.log(operands[0], true),
            LibraryFunction::Atan2 => {
                let (y, x) = self.same_lanes(operands[0], operands[1]);
                self.atan2(y, x)
            }
            _ => return None,
        })
    }

    /// `a · b + c`, rounded once where the target has the instruction.
    fn multiply_add(&mut self, a: Val, b: Val, c: Val) -> Val {
        self.intrinsic("llvm.fmuladd", &[a, b, c], "")
    }

    fn polynomial(&mut self, x: Val, coefficients: &[f64]) -> Val {
        let (&last, others) = coefficients.split_last().expect("a polynomial has coefficients");
        others.iter().rev().fold(real(last), |sum, &c| self.multiply_add(sum, x, real(c)))
    }

    /// `x = k · ln 2 + r`, and `eˣ = 2ᵏ · eʳ`, where 2ᵏ is two factors: the result may be subnormal.
    fn exp(&mut self, x: Val) -> Val {
        // Beyond these all results are zero or infinite; a NaN stays.
        let low = self.compare("olt", x, real(-104.0));
        let x = self.select(low, real(-104.0), x);
        let high = self.compare("ogt", x, real(89.0));
        let x = self.select(high, real(89.0), x);
        let shifted = self.multiply_add(x, real(std::f64::consts::LOG2_E), real(MAGIC));
        let k = self.binary("fsub", shifted, real(MAGIC));
        let r = self.multiply_add(k, real(-LN2_HIGH), x);
        let r = self.multiply_add(k, real(-LN2_LOW), r);
        let p = self.polynomial(r, &EXP);
        let square = self.binary("fmul", r, r);
        let p = self.multiply_add(p, square, r);
        let p = self.binary("fadd", p, real(1.0));

        let bits = self.bits(shifted).read_as(Scalar::I32);
        let k = self.binary("sub", bits, Val::int(Scalar::I32, MAGIC_BITS));
        let half = self.binary("ashr", k, Val::int(Scalar::I32, 1));
        let rest = self.binary("sub", k, half);
        [half, rest].into_iter().fold(p, |p, exponent| {
            let biased = self.binary("add", exponent, Val::int(Scalar::I32, 127));
            let power = self.binary("shl", biased, Val::int(Scalar::I32, 23));
            let power = self.bit_cast(power, Scalar::F32);
            self.binary("fmul", p, power)
        })
    }

    /// `x = 2ᵏ · (1 + f)`: the logarithm is `k` times that of 2, and a polynomial in `f`.
    fn log(&mut self, x: Val, of_two: bool) -> Val {
        let subnormal = self.compare("olt", x, real(f64::from(f32::MIN_POSITIVE)));
        let scaled = self.binary("fmul", x, real(f64::from(1 << 23)));
        let normal = self.select(subnormal, scaled, x);
        let more = self.select(subnormal, real(23.0), real(0.0));
        let bits = self.bits(normal).read_as(Scalar::I32);
        let bits = self.binary("sub", bits, Val::int(Scalar::I32, ROOT_OF_HALF));
        let k = self.binary("ashr", bits, Val::int(Scalar::I32, 23));
        let k = self.convert("sitofp", k, Scalar::F32);
        let k = self.binary("fsub", k, more);
        let fraction = self.binary("and", bits, Val::int(Scalar::I32, 0x7F_FFFF));
        let significand = self.binary("add", fraction, Val::int(Scalar::I32, ROOT_OF_HALF));
        let significand = self.bit_cast(significand, Scalar::F32);
        let f = self.binary("fsub", significand, real(1.0));
        let square = self.binary("fmul", f, f);
        let cube = self.binary("fmul", f, square);
        let p = self.polynomial(f, &LOG);
        let result = if of_two {
            // The logarithm of e to base 2 is 1.4375 and a small part.
            const SMALL: f64 = std::f64::consts::LOG2_E - 1.4375;
            let p = self.binary("fmul", p, cube);
            let p = self.multiply_add(square, real(-0.5), p);
            let small = self.binary("fmul", f, real(SMALL));
            let small = self.multiply_add(p, real(std::f64::consts::LOG2_E), small);
            let fraction = self.multiply_add(f, real(1.4375), small);
            self.binary("fadd", k, fraction)
        } else {
            let low = self.binary("fmul", k, real(LN2_LOW));
            let p = self.multiply_add(p, cube, low);
            let p = self.multiply_add(square, real(-0.5), p);
            let fraction = self.binary("fadd", f, p);
            self.multiply_add(k, real(LN2_HIGH), fraction)
        };
        // Infinity and NaN are their own logarithms.
        let finite = self.compare("olt", x, real(f64::INFINITY));
        let result = self.select(finite, result, x);
        let zero = self.compare("oeq", x, real(0.0));
        let none = self.select(zero, real(f64::NEG_INFINITY), real(f64::NAN));
        let positive = self.compare("ogt", x, real(0.0));
        self.select(positive, result, none)
    }

    /// The arctangent of the lesser magnitude by the greater one, turned and mirrored.
    fn atan2(&mut self, y: Val, x: Val) -> Val {
        use std::f64::consts::{FRAC_PI_2, PI};
        let (across, along) = (self.intrinsic("llvm.fabs", &[y], ""), self.intrinsic("llvm.fabs", &[x], ""));
        let steep = self.compare("ogt", across, along);
        let greater = self.select(steep, across, along);
        let lesser = self.select(steep, along, across);
        let t = self.binary("fdiv", lesser, greater);
        // Both may be infinite, or zero.
        let diagonal = self.compare("oeq", lesser, greater);
        let origin = self.compare("oeq", lesser, real(0.0));
        let same = self.select(origin, real(0.0), real(1.0));
        let t = self.select(diagonal, same, t);
        let square = self.binary("fmul", t, t);
        let cube = self.binary("fmul", t, square);
        let p = self.polynomial(square, &ATAN);
        let angle = self.multiply_add(p, cube, t);
        let turned = self.subtracted_from(FRAC_PI_2, angle);
        let angle = self.select(steep, turned, angle);
        let bits = self.bits(x).read_as(Scalar::I32);
        let backward = self.compare("slt", bits, Val::int(Scalar::I32, 0));
        let turned = self.subtracted_from(PI, angle);
        let angle = self.select(backward, turned, angle);
        self.intrinsic("llvm.copysign", &[angle, y], "")
    }

    /// A number of more digits than a 32-bit real has, less a value.
    fn subtracted_from(&mut self, number: f64, value: Val) -> Val {
        let high = f64::from(number as f32);
        let rest = self.binary("fsub", value, real(number - high));
        self.binary("fsub", real(high), rest)
    }
}
