//! Arcs of sines, cosines and tangents.

use super::Format;
use crate::emitter::Emitter;
use crate::value::Val;

/// Polynomials where z = x²: of (asin x − x) / x³ where |x| ≤ ½,
const ASIN_SINGLE: [f64; 5] = [
    0.166_667_520_999_908_45,
    0.074_953_131_377_696_99,
    0.045_468_546_450_138_09,
    0.024_187_937_378_883_362,
    0.042_152_937_501_668_93,
];
const ASIN_DOUBLE: [f64; 12] = [
    0.166_666_666_666_654_08,
    0.075_000_000_003_371_47,
    0.044_642_856_828_211_4,
    0.030_381_959_141_906_795,
    0.022_371_757_930_681_233,
    0.017_359_706_588_320_877,
    0.013_885_217_209_053_453,
    0.012_169_333_236_505_866,
    0.006_527_441_621_628_386,
    0.019_529_746_081_874_504,
    -0.016_226_605_698_429_79,
    0.031_913_899_852_050_114,
];
/// and of (atan x − x) / x³ where |x| ≤ 1.
const ATAN_SINGLE: [f64; 10] = [
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
const ATAN_DOUBLE: [f64; 20] = [
    -0.333_333_333_333_330_7,
    0.199_999_999_999_517_45,
    -0.142_857_142_825_879_05,
    0.111_111_110_073_404_93,
    -0.090_909_070_078_451_38,
    0.076_922_798_902_723_37,
    -0.066_664_044_415_774_05,
    0.058_805_299_708_069_77,
    -0.052_535_278_446_951_65,
    0.047_223_536_176_483_95,
    -0.042_192_634_024_553_41,
    0.036_643_731_746_816_91,
    -0.029_907_005_324_909_06,
    0.021_989_176_125_904_276,
    -0.013_905_202_064_374_239,
    0.007_200_299_543_725,
    -0.002_887_191_867_130_958_5,
    0.000_832_257_968_102_318,
    -0.000_152_396_968_839_715,
    1.325_250_289_454_407e-5,
];

/// `asin x` is `high + rest` where |x| ≤ ½. Beyond, `acos |x|` is twice that.
struct Arc {
    is_small: Val,
    /// |x|, or √((1 − |x|) / 2).
    high: Val,
    rest: Val,
}

impl Emitter<'_> {
    pub(super) fn asin(&mut self, x: Val) -> Val {
        let format = Format::of(x);
        let Arc { is_small, high, rest } = self.arc(x);
        let small = self.binary("fadd", high, rest);
        // π/2 less twice the root, in two parts; the root's own error is half a unit of the result.
        let (quarter, quarter_low) = format.pi_by(2.0);
        let large = self.multiply_add(high, format.real(-2.0), quarter);
        let lost = self.binary("fsub", quarter, large);
        let lost = self.multiply_add(high, format.real(-2.0), lost);
        let low = self.multiply_add(rest, format.real(-2.0), quarter_low);
        let low = self.binary("fadd", low, lost);
        let large = self.binary("fadd", large, low);
        let magnitude = self.select(is_small, small, large);
        self.with_sign_of(magnitude, x)
    }

    pub(super) fn acos(&mut self, x: Val) -> Val {
        let format = Format::of(x);
        let Arc { is_small, high, rest } = self.arc(x);
        let (quarter, quarter_low) = format.pi_by(2.0);
        let rest_of_x = self.with_sign_of(rest, x);
        let low = self.binary("fsub", rest_of_x, quarter_low);
        let low = self.binary("fadd", x, low);
        let small = self.binary("fsub", quarter, low);
        let near = self.binary("fadd", high, rest);
        let near = self.binary("fadd", near, near);
        let far = self.subtracted_from(format.pi_by(1.0), near);
        let negative = self.compare("olt", x, format.real(0.0));
        let large = self.select(negative, far, near);
        self.select(is_small, small, large)
    }

    fn arc(&mut self, x: Val) -> Arc {
        let format = Format::of(x);
        let magnitude = self.magnitude(x);
        let is_small = self.compare("ole", magnitude, format.real(0.5));
        let square = self.binary("fmul", x, x);
        // Exact.
        let half = self.multiply_add(magnitude, format.real(-0.5), format.real(0.5));
        let z = self.select(is_small, square, half);
        let root = self.flagless("llvm.sqrt", &[half]);
        let high = self.select(is_small, magnitude, root);
        let p = self.polynomial(z, format.choose(&ASIN_SINGLE[..], &ASIN_DOUBLE[..]));
        let cube = self.binary("fmul", high, z);
        Arc { is_small, high, rest: self.binary("fmul", p, cube) }
    }

    /// The arctangent of the lesser magnitude by the greater one, turned and mirrored.
    pub(super) fn atan2(&mut self, y: Val, x: Val) -> Val {
        let format = Format::of(x);
        let (across, along) = (self.magnitude(y), self.magnitude(x));
        let steep = self.compare("ogt", across, along);
        let greater = self.select(steep, across, along);
        let lesser = self.select(steep, along, across);
        let t = self.binary("fdiv", lesser, greater);
        // Both may be infinite, or zero.
        let diagonal = self.compare("oeq", lesser, greater);
        let origin = self.compare("oeq", lesser, format.real(0.0));
        let same = self.select(origin, format.real(0.0), format.real(1.0));
        let t = self.select(diagonal, same, t);
        let square = self.binary("fmul", t, t);
        let cube = self.binary("fmul", t, square);
        // Even and odd powers apart would cancel each other: near 1 an error of 2.2 ULP.
        let coefficients = format.choose(&ATAN_SINGLE[..], &ATAN_DOUBLE[..]);
        let p = self.horner(square, coefficients.iter().rev().copied());
        let angle = self.multiply_add(p, cube, t);
        let turned = self.subtracted_from(format.pi_by(2.0), angle);
        let angle = self.select(steep, turned, angle);
        let bits = self.bits(x).read_as(format.int);
        let backward = self.compare("slt", bits, format.int(0));
        let turned = self.subtracted_from(format.pi_by(1.0), angle);
        let angle = self.select(backward, turned, angle);
        self.with_sign_of(angle, y)
    }

    /// A number in two parts, less a value.
    fn subtracted_from(&mut self, (high, low): (Val, Val), value: Val) -> Val {
        let rest = self.binary("fsub", value, low);
        self.binary("fsub", high, rest)
    }
}
