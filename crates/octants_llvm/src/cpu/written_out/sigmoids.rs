//! The hyperbolic tangent and the error function: odd, and ±1 far from zero.

use super::Format;
use crate::emitter::Emitter;
use crate::value::Val;

/// Magnitude below which the hyperbolic tangent is a polynomial, and the one from which it is 1.
const TANH_SMALL: f64 = 0.625;
const TANH_ONE: f64 = 20.0;

/// Polynomials of (tanh x − x) / x³ in x² below `TANH_SMALL`,
const TANH_SINGLE: [f64; 5] = [
    -0.33333280682563782,
    0.13331405818462372,
    -0.053736858069896698,
    0.020630577579140663,
    -0.0056963558308780193,
];
const TANH_DOUBLE: [f64; 11] = [
    -0.333_333_333_333_328_54,
    0.133_333_333_332_619_24,
    -0.053_968_253_931_198_279,
    0.021_869_487_574_732_175,
    -0.008_863_220_987_514_720_8,
    0.003_591_989_070_614_030_1,
    -0.001_454_958_427_683_424,
    0.000_586_315_279_565_113_8,
    -0.000_228_562_017_959_024_65,
    7.714_220_789_745_595_2e-5,
    -1.607_165_073_824_486_8e-5,
];
/// of erf x / x − 1 in x² where |x| ≤ 1,
const ERF_SINGLE: [f64; 7] = [
    0.128_379_166_126_251_22,
    -0.376_126_259_565_353_39,
    0.112_835_787_236_690_52,
    -0.026_853_347_197_175_026,
    0.005_187_162_198_126_316_1,
    -0.000_799_785_251_729_190_35,
    7.806_896_610_418_334_6e-5,
];
const ERF_DOUBLE: [f64; 12] = [
    0.128_379_167_095_512_56,
    -0.376_126_389_031_833_43,
    0.112_837_916_709_369_55,
    -0.026_866_170_641_952_746,
    0.005_223_977_596_594_230_1,
    -0.000_854_832_547_307_728_36,
    0.000_120_552_799_697_902_01,
    -1.492_445_202_985_486_3e-5,
    1.644_393_779_324_108_8e-6,
    -1.618_200_995_491_958_8e-7,
    1.360_659_198_226_027_1e-8,
    -7.586_073_529_941_710_1e-10,
];
/// of 1 − erf x in x − 2.5 where 1 ≤ x ≤ 4,
const ERFC_SINGLE: [f64; 16] = [
    0.000_406_952_312_914_654_61,
    -0.002_178_278_286_010_026_9,
    0.005_445_690_825_581_550_6,
    -0.008_350_215_852_260_589_6,
    0.008_622_585_795_819_759_4,
    -0.006_116_563_919_931_650_2,
    0.002_797_608_263_790_607_5,
    -0.000_544_593_320_228_159_43,
    -0.000_258_804_037_002_846_6,
    0.000_253_499_107_202_515_01,
    -8.104_854_350_676_760_1e-5,
    -7.805_901_987_012_475_7e-6,
    1.570_130_916_661_582_9e-5,
    -3.446_305_072_429_822_8e-6,
    -8.877_104_278_326_442e-7,
    3.491_653_330_911_503_9e-7,
];
/// and of (1 − erf x) · exp(x²) in x − 2.25 where 1 ≤ x ≤ 6.
const ERFC_DOUBLE: [f64; 21] = [
    0.23108725873039337,
    -0.088486502808749118,
    0.031992627410519607,
    -0.011002060756947608,
    0.00361899535698757,
    -0.0011437284743669016,
    0.00034853541346975845,
    -0.00010272113272185353,
    2.9353242668901231e-05,
    -8.1501571815492533e-06,
    2.2030818834650657e-06,
    -5.8079435772521868e-07,
    1.4932908423718589e-07,
    -3.7481685720130835e-08,
    9.3436041810788295e-09,
    -2.2919609515792957e-09,
    4.954003024508446e-10,
    -1.0473937491801296e-10,
    3.4517350613802636e-11,
    -9.9497405890710724e-12,
    1.1718416870460539e-12,
];

impl Emitter<'_> {
    /// `1 − 2 / (e²ˣ + 1)`, and near zero a polynomial.
    pub(super) fn tanh(&mut self, x: Val) -> Val {
        let format = Format::of(x);
        let magnitude = self.magnitude(x);
        let square = self.binary("fmul", x, x);
        let p = self.polynomial(square, format.choose(&TANH_SINGLE[..], &TANH_DOUBLE[..]));
        let cube = self.binary("fmul", magnitude, square);
        let small = self.multiply_add(p, cube, magnitude);

        let limited = self.at_most(magnitude, TANH_ONE);
        let double = self.binary("fadd", limited, limited);
        let power = self.normal_exp(double);
        let sum = self.binary("fadd", power, format.real(1.0));
        let quotient = self.binary("fdiv", format.real(2.0), sum);
        let large = self.binary("fsub", format.real(1.0), quotient);

        let is_small = self.compare("olt", magnitude, format.real(TANH_SMALL));
        let result = self.select(is_small, small, large);
        self.with_sign_of(result, x)
    }

    /// One less the complement, and near zero a polynomial.
    pub(super) fn erf(&mut self, x: Val) -> Val {
        let format = Format::of(x);
        let magnitude = self.magnitude(x);
        let square = self.binary("fmul", x, x);
        let p = self.polynomial(square, format.choose(&ERF_SINGLE[..], &ERF_DOUBLE[..]));
        let small = self.multiply_add(p, magnitude, magnitude);

        let large = if format.choose(true, false) {
            let limited = self.at_most(magnitude, 4.0);
            let t = self.binary("fsub", limited, format.real(2.5));
            let complement = self.polynomial(t, &ERFC_SINGLE);
            self.binary("fsub", format.real(1.0), complement)
        } else {
            let limited = self.at_most(magnitude, 6.0);
            let t = self.binary("fsub", limited, format.real(2.25));
            let p = self.polynomial(t, &ERFC_DOUBLE);
            let negative = self.binary("fmul", limited, limited);
            let negative = self.binary("fsub", format.real(0.0), negative);
            let power = self.normal_exp(negative);
            let complement = self.binary("fmul", p, power);
            self.binary("fsub", format.real(1.0), complement)
        };

        let is_small = self.compare("olt", magnitude, format.real(1.0));
        let result = self.select(is_small, small, large);
        self.with_sign_of(result, x)
    }
}
