//! Logarithms of 32-bit reals.

use octants_ir::Scalar;

use crate::emitter::Emitter;
use crate::value::Val;

/// The first 10 bits of ln 2, so that a product with an exponent is exact, and the rest.
const LN2_HIGH: f64 = 0.693_359_375;
const LN2_LOW: f64 = -0.000_212_194_441_701_285_54;

/// The bits of √½: a significand is between it and √2.
const ROOT_OF_HALF: i128 = 0x3F35_04F3;

/// A polynomial of (ln(1 + f) − f + f²/2) / f³ where √½ ≤ 1 + f < √2.
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

fn real(value: f64) -> Val {
    Val::real(Scalar::F32, value)
}

impl Emitter<'_> {
    /// `x = 2ᵏ · (1 + f)`: the logarithm is `k` times that of 2, and a polynomial in `f`.
    pub(super) fn log(&mut self, x: Val, of_two: bool) -> Val {
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
}
