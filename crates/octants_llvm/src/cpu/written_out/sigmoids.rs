//! The hyperbolic tangent and the error function: odd, and ±1 far from zero.

use super::Format;
use crate::emitter::Emitter;
use crate::value::Val;

/// Magnitude below which the hyperbolic tangent is a polynomial, and the one from which it is 1.
const TANH_SMALL: f64 = 0.625;
const TANH_ONE: f64 = 20.0;

/// Polynomials of (tanh x − x) / x³ in x² below `TANH_SMALL`,
const TANH_SINGLE: [f64; 5] = [
    -0.333_332_806_825_637_8,
    0.133_314_058_184_623_72,
    -0.053_736_858_069_896_7,
    0.020_630_577_579_140_663,
    -0.005_696_355_830_878_019,
];
const TANH_DOUBLE: [f64; 11] = [
    -0.333_333_333_333_328_54,
    0.133_333_333_332_619_24,
    -0.053_968_253_931_198_28,
    0.021_869_487_574_732_175,
    -0.008_863_220_987_514_72,
    0.003_591_989_070_614_03,
    -0.001_454_958_427_683_424,
    0.000_586_315_279_565_113_8,
    -0.000_228_562_017_959_024_65,
    7.714_220_789_745_595e-5,
    -1.607_165_073_824_486_8e-5,
];
/// of erf x / x − 1 in x² where |x| ≤ 1,
const ERF_SINGLE: [f64; 7] = [
    0.128_379_166_126_251_22,
    -0.376_126_259_565_353_4,
    0.112_835_787_236_690_52,
    -0.026_853_347_197_175_026,
    0.005_187_162_198_126_316,
    -0.000_799_785_251_729_190_3,
    7.806_896_610_418_335e-5,
];
const ERF_DOUBLE: [f64; 12] = [
    0.128_379_167_095_512_56,
    -0.376_126_389_031_833_43,
    0.112_837_916_709_369_55,
    -0.026_866_170_641_952_746,
    0.005_223_977_596_594_23,
    -0.000_854_832_547_307_728_4,
    0.000_120_552_799_697_902_01,
    -1.492_445_202_985_486_3e-5,
    1.644_393_779_324_108_8e-6,
    -1.618_200_995_491_958_8e-7,
    1.360_659_198_226_027_1e-8,
    -7.586_073_529_941_71e-10,
];
/// of 1 − erf x in x − 2.5 where 1 ≤ x ≤ 4,
const ERFC_SINGLE: [f64; 16] = [
    0.000_406_952_312_914_654_6,
    -0.002_178_278_286_010_027,
    0.005_445_690_825_581_551,
    -0.008_350_215_852_260_59,
    0.008_622_585_795_819_76,
    -0.006_116_563_919_931_65,
    0.002_797_608_263_790_607_5,
    -0.000_544_593_320_228_159_4,
    -0.000_258_804_037_002_846_6,
    0.000_253_499_107_202_515,
    -8.104_854_350_676_76e-5,
    -7.805_901_987_012_476e-6,
    1.570_130_916_661_583e-5,
    -3.446_305_072_429_822_8e-6,
    -8.877_104_278_326_442e-7,
    3.491_653_330_911_504e-7,
];
/// and of (1 − erf x) · exp(x²) in x − 2.25 where 1 ≤ x ≤ 6.
const ERFC_DOUBLE: [f64; 21] = [
    0.231_087_258_730_393_37,
    -0.088_486_502_808_749_12,
    0.031_992_627_410_519_61,
    -0.011_002_060_756_947_608,
    0.003_618_995_356_987_57,
    -0.001_143_728_474_366_901_6,
    0.000_348_535_413_469_758_45,
    -0.000_102_721_132_721_853_53,
    2.935_324_266_890_123e-5,
    -8.150_157_181_549_253e-6,
    2.203_081_883_465_065_7e-6,
    -5.807_943_577_252_187e-7,
    1.493_290_842_371_859e-7,
    -3.748_168_572_013_083_5e-8,
    9.343_604_181_078_83e-9,
    -2.291_960_951_579_295_7e-9,
    4.954_003_024_508_446e-10,
    -1.047_393_749_180_129_6e-10,
    3.451_735_061_380_263_6e-11,
    -9.949_740_589_071_072e-12,
    1.171_841_687_046_053_9e-12,
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
