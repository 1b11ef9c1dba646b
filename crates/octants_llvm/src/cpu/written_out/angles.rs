//! Sines, cosines and tangents of vectors, where a product and a sum are one instruction that rounds once.
//!
//! An angle is `k · π/2 + r`. π/2 is three numbers of the type, and what is lost where their products are subtracted is a second part of `r`, so `r` is right however near the angle is to a
//! multiple of π/2. Angles beyond a limit, infinities and NaN go to the library, in a branch that is seldom taken; a lane that does not need it keeps
//! its own result, so that a value does not depend on its neighbours.
//!
//! The sine and the cosine of one angle share all but the last selections.

use super::Format;
use crate::emitter::Emitter;
use crate::lowering::LibraryFunction;
use crate::options::CpuOptions;
use crate::value::Val;

/// Magnitude up to which `k` is exact, and k times the rest of π/2 below any `r`.
const LIMIT_SINGLE: f64 = 131_072.0;
const LIMIT_DOUBLE: f64 = 1_073_741_824.0;

/// π/2 in three positive parts, so that a zero keeps its sign.
const QUARTER_SINGLE: [f64; 3] = [1.570_796_251_296_997, 7.549_789_415_861_596e-8, 5.390_302_529_957_765e-15];
const QUARTER_DOUBLE: [f64; 3] =
    [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_765e-17, 1.082_856_673_921_913_9e-32];

/// Polynomials where z = r², |r| ≤ π/4: of (sin r − r) / r³,
const SIN_SINGLE: [f64; 4] = [
    -0.166_666_671_633_720_4,
    0.008_333_379_402_756_691,
    -0.000_198_530_586_203_560_23,
    2.832_519_157_891_511e-6,
];
const SIN_DOUBLE: [f64; 6] = [
    -0.166_666_666_666_666_3,
    0.008_333_333_333_321_84,
    -0.000_198_412_698_293_582_38,
    2.755_731_353_825_575e-6,
    -2.505_073_432_311_353_4e-8,
    1.589_542_807_205_446_4e-10,
];
/// of (cos r − 1 + r²/2) / r⁴,
const COS_SINGLE: [f64; 3] =
    [0.041_666_645_556_688_31, -0.001_388_730_946_928_262_7, 2.443_236_735_416_576_3e-5];
const COS_DOUBLE: [f64; 6] = [
    0.041_666_666_666_666_595,
    -0.001_388_888_888_887_332_5,
    2.480_158_728_898_381_4e-5,
    -2.755_731_421_016_122e-7,
    2.087_570_428_881_214_3e-9,
    -1.135_868_452_775_357_8e-11,
];
/// and of (tan r − r) / r³.
const TAN_SINGLE: [f64; 7] = [
    0.333_333_492_279_052_73,
    0.133_326_753_973_960_88,
    0.054_058_950_394_392_014,
    0.021_285_813_301_801_68,
    0.010_828_942_991_793_156,
    9.581_179_619_999_602e-5,
    0.004_374_131_094_664_335,
];
const TAN_DOUBLE: [f64; 14] = [
    0.333_333_333_333_327_7,
    0.133_333_333_334_155_87,
    0.053_968_253_926_206_04,
    0.021_869_489_620_062_056,
    0.008_863_219_009_026_16,
    0.003_592_290_474_599_925_5,
    0.001_454_749_495_314_042_8,
    0.000_595_100_457_447_446_4,
    0.000_222_274_045_155_133_44,
    0.000_136_744_773_435_238_74,
    -2.669_760_241_082_282_3e-5,
    8.974_118_196_332_132e-5,
    -4.503_408_342_210_558_4e-5,
    2.090_156_246_890_280_6e-5,
];

/// An angle less the nearest multiple of π/2.
struct Reduced {
    /// Which multiple.
    number: Val,
    r: Val,
    /// What `r` lacks.
    low: Val,
}

/// The negative of one of the parts of π/2.
fn part_of_quarter(format: Format, index: usize) -> Val {
    format.real(-format.choose(QUARTER_SINGLE, QUARTER_DOUBLE)[index])
}

impl Emitter<'_> {
    /// Sine, cosine or tangent.
    pub(super) fn of_angle(&mut self, options: CpuOptions, function: LibraryFunction, x: Val) -> Val {
        let format = Format::of(x);
        let reduced = self.reduce(x);
        let near = match function {
            LibraryFunction::Sin => self.sine(&reduced, 0),
            LibraryFunction::Cos => self.sine(&reduced, 1),
            _ => self.tangent(&reduced, x),
        };
        let magnitude = self.magnitude(x);
        let limit = format.choose(LIMIT_SINGLE, LIMIT_DOUBLE);
        // A NaN is, too.
        let far = self.compare("ugt", magnitude, format.real(limit));
        let any = self.any_lane(far);
        let all_near = self.not(any);
        let (outside, done) = (self.f.new_label(), self.f.new_label());
        let (before, likely) = (self.f.block(), self.module.cold_node());
        self.f.terminate(format_args!("br i1 {all_near}, label %{done}, label %{outside}, !prof {likely}"));
        self.f.begin(outside);
        let others = self.call_library(options, function, &[x]);
        let mixed = if x.lanes == 1 { others } else { self.select(far, others, near) };
        let after = self.f.block();
        self.f.jump(done);
        self.f.begin(done);
        self.f.join(near.ty(), &[(near, before), (mixed, after)])
    }

    fn reduce(&mut self, x: Val) -> Reduced {
        let format = Format::of(x);
        let magic = format.real(format.magic);
        let shifted = self.fused(x, format.real(std::f64::consts::FRAC_2_PI), magic);
        let k = self.binary("fsub", shifted, magic);
        // Exact: both are multiples of the last bit of this part of π/2, and the difference is small.
        let first = self.fused(k, part_of_quarter(format, 0), x);
        // The second product is a sum, and what is lost where it is added is kept.
        let second = part_of_quarter(format, 1);
        let product = self.binary("fmul", k, second);
        let negative = self.negative(product);
        let product_low = self.fused(k, second, negative);
        let r = self.binary("fadd", first, product);
        let low = self.binary("fsub", first, r);
        let low = self.binary("fadd", low, product);
        let low = self.binary("fadd", low, product_low);
        let low = self.fused(k, part_of_quarter(format, 2), low);
        Reduced { number: self.bits(shifted).read_as(format.int), r, low }
    }

    /// The sine of the angle and so many times π/2.
    fn sine(&mut self, reduced: &Reduced, quarters: i128) -> Val {
        let &Reduced { number, r, low } = reduced;
        let format = Format::of(r);
        let square = self.binary("fmul", r, r);
        let p = self.polynomial(square, format.choose(&SIN_SINGLE, &SIN_DOUBLE));
        let cube = self.binary("fmul", square, r);
        let rest = self.fused(p, cube, low);
        let sine = self.binary("fadd", r, rest);
        // Of a zero, too.
        let sine = self.with_sign_of(sine, r);

        let p = self.polynomial(square, format.choose(&COS_SINGLE, &COS_DOUBLE));
        let half = self.binary("fmul", square, format.real(0.5));
        let near = self.binary("fsub", format.real(1.0), half);
        let lost = self.binary("fsub", format.real(1.0), near);
        let lost = self.binary("fsub", lost, half);
        // The derivative is about −r.
        let negative = self.negative(r);
        let lost = self.fused(negative, low, lost);
        let fourth = self.binary("fmul", square, square);
        let rest = self.fused(p, fourth, lost);
        let cosine = self.binary("fadd", near, rest);

        let number = self.binary("add", number, format.int(quarters));
        let odd = self.is_odd(number);
        let magnitude = self.select(odd, cosine, sine);
        let sign = self.binary("and", number, format.int(2));
        let sign = self.binary("shl", sign, format.int(i128::from(format.ty.bits()) - 2));
        let bits = self.bits(magnitude).read_as(format.int);
        let bits = self.binary("xor", bits, sign);
        self.bit_cast(bits, format.ty)
    }

    /// The tangent of what is left, or −1 divided by it.
    fn tangent(&mut self, reduced: &Reduced, x: Val) -> Val {
        let &Reduced { number, r, low } = reduced;
        let format = Format::of(r);
        let square = self.binary("fmul", r, r);
        let p = self.polynomial(square, format.choose(&TAN_SINGLE[..], &TAN_DOUBLE[..]));
        let cube = self.binary("fmul", square, r);
        // The derivative is about 1 + r².
        let rest = self.fused(low, square, low);
        let rest = self.fused(p, cube, rest);
        let tangent = self.binary("fadd", r, rest);
        let low = self.binary("fsub", tangent, r);
        let low = self.binary("fsub", rest, low);
        let inverse = self.binary("fdiv", format.real(-1.0), tangent);
        let residual = self.fused(inverse, tangent, format.real(1.0));
        let residual = self.fused(inverse, low, residual);
        let inverse = self.fused(inverse, residual, inverse);
        let odd = self.is_odd(number);
        let result = self.select(odd, inverse, tangent);
        let zero = self.compare("oeq", x, format.real(0.0));
        self.select(zero, x, result)
    }

    fn is_odd(&mut self, k: Val) -> Val {
        let odd = self.binary("and", k, Val::int(k.ty, 1));
        self.compare("ne", odd, Val::int(k.ty, 0))
    }

    fn negative(&mut self, a: Val) -> Val {
        self.f.value(a.ty(), format_args!("fneg {} {a}", a.ty()))
    }

    /// `a · b + c`, rounded once.
    fn fused(&mut self, a: Val, b: Val, c: Val) -> Val {
        self.flagless("llvm.fma", &[a, b, c])
    }
}
