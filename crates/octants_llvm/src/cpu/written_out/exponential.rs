//! Powers of e.

use super::Format;
use crate::emitter::Emitter;
use crate::value::Val;

/// The first bits of ln 2, so that a product with an exponent is exact, and the rest.
const LN2_SINGLE: (f64, f64) = (0.693_359_375, -0.000_212_194_441_701_285_54);
const LN2_DOUBLE: (f64, f64) = (0.693_147_180_601_954_5, -4.200_915_072_681_084_6e-11);

/// Polynomials of (eʳ − 1 − r) / r² where |r| < ln 2 / 2.
const SINGLE: [f64; 5] = [
    0.5,
    0.166_665_181_517_601,
    0.041_666_205_972_433_09,
    0.008_368_917_740_881_443,
    0.001_395_053_812_302_649,
];
const DOUBLE: [f64; 10] = [
    0.500_000_000_000_001_1,
    0.166_666_666_666_665_08,
    0.041_666_666_666_523_11,
    0.008_333_333_333_423_934,
    0.001_388_888_894_606_423_2,
    0.000_198_412_696_824_318_08,
    2.480_149_010_605_693e-5,
    2.755_740_771_720_679e-6,
    2.763_145_285_956_642_5e-7,
    2.506_351_816_320_858_5e-8,
];

/// `eˣ` as `factor · 2ᵏ`.
struct Power {
    factor: Val,
    /// A real whose lowest bits are `k`.
    shifted: Val,
}

impl Emitter<'_> {
    /// The result may be subnormal, so 2ᵏ is two factors.
    pub(super) fn exp(&mut self, x: Val) -> Val {
        const ADDED: i128 = 2048;
        let format = Format::of(x);
        // Beyond these all results are zero or infinite; a NaN stays. A product that vanishes takes processors long, so none is formed.
        let (least, most) = format.choose((-104.0, 89.0), (-746.0, 710.0));
        let low = self.compare("olt", x, format.real(least));
        let x = self.select(low, format.real(0.0), x);
        let x = self.at_most(x, most);
        let Power { factor, shifted } = self.power_of_e(x);
        // Both halves of `k`, with something added that makes them positive.
        let bits = self.bits(shifted).read_as(format.int);
        let k = self.binary("sub", bits, format.int(format.magic_bits() - 2 * ADDED));
        let half = self.binary("lshr", k, format.int(1));
        let rest = self.binary("sub", k, half);
        let power = [half, rest].into_iter().fold(factor, |product, exponent| {
            let biased = self.binary("add", exponent, format.int(format.bias - ADDED));
            let power = self.binary("shl", biased, format.int(format.significand.into()));
            let power = self.bit_cast(power, format.ty);
            self.binary("fmul", product, power)
        });
        self.select(low, format.real(0.0), power)
    }

    /// A power of e that is a normal number.
    pub(super) fn normal_exp(&mut self, x: Val) -> Val {
        let format = Format::of(x);
        let Power { factor, shifted } = self.power_of_e(x);
        let bits = self.bits(shifted).read_as(format.int);
        let biased = self.binary("sub", bits, format.int(format.magic_bits() - format.bias));
        let power = self.binary("shl", biased, format.int(format.significand.into()));
        let power = self.bit_cast(power, format.ty);
        self.binary("fmul", factor, power)
    }

    /// `x = k · ln 2 + r`, and `eˣ = 2ᵏ · eʳ`.
    fn power_of_e(&mut self, x: Val) -> Power {
        let format = Format::of(x);
        let magic = format.real(format.magic);
        let shifted = self.multiply_add(x, format.real(std::f64::consts::LOG2_E), magic);
        let k = self.binary("fsub", shifted, magic);
        let (high, low) = format.choose(LN2_SINGLE, LN2_DOUBLE);
        let r = self.multiply_add(k, format.real(-high), x);
        let r = self.multiply_add(k, format.real(-low), r);
        let p = self.polynomial(r, format.choose(&SINGLE, &DOUBLE));
        let square = self.binary("fmul", r, r);
        let p = self.multiply_add(p, square, r);
        Power { factor: self.binary("fadd", p, format.real(1.0)), shifted }
    }
}
