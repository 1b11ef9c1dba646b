//! Math functions that Rust's library lacks, for the interpreter and for what is evaluated while compiling.

/// A sum of two numbers of which the second is below the precision of the first: about 32 digits.
#[derive(Clone, Copy)]
struct Double {
    high: f64,
    low: f64,
}

impl Double {
    /// `2 / sqrt(pi)`
    const TWO_BY_ROOT_PI: Self =
        Self { high: std::f64::consts::FRAC_2_SQRT_PI, low: 1.533_545_961_316_588e-17 };

    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }

    /// `a + b` where `a` is the larger one.
    fn sum(a: f64, b: f64) -> Self {
        let high = a + b;
        Self { high, low: b - (high - a) }
    }

    fn plus(self, other: Self) -> Self {
        let high = self.high + other.high;
        let virtual_other = high - self.high;
        let error = (self.high - (high - virtual_other)) + (other.high - virtual_other);
        Self::sum(high, error + self.low + other.low)
    }

    fn times(self, other: Self) -> Self {
        let high = self.high * other.high;
        let error = self.high.mul_add(other.high, -high);
        Self::sum(high, error + self.high * other.low + self.low * other.high)
    }

    fn by(self, divisor: f64) -> Self {
        let high = self.high / divisor;
        let rest = (-high).mul_add(divisor, self.high) + self.low;
        Self::sum(high, rest / divisor)
    }
}

/// The error function, to within one unit in the last place.
pub fn erf(x: f64) -> f64 {
    let magnitude = x.abs();
    let value = if x.is_nan() {
        return x;
    } else if magnitude < 2.5 {
        erf_series(magnitude)
    } else if magnitude < 6.0 {
        1.0 - erfc_fraction(magnitude)
    } else {
        // What is missing is less than a quarter of a unit in the last place of one.
        1.0
    };
    value.copysign(x)
}

/// `2/sqrt(pi) * (x - x^3/(1!*3) + x^5/(2!*5) - ...)`. Terms of up to 500 times the sum cancel, so it is summed in two words.
fn erf_series(x: f64) -> f64 {
    let negative_square = Double::from(-x).times(Double::from(x));
    let mut power = Double::from(x);
    let mut sum = power;
    for n in 1..100 {
        let n = f64::from(n);
        power = power.times(negative_square).by(n);
        sum = sum.plus(power.by(2.0 * n + 1.0));
        if power.high.abs() <= sum.high * 1e-35 {
            break;
        }
    }
    let scaled = sum.times(Double::TWO_BY_ROOT_PI);
    scaled.high + scaled.low
}

/// One minus the error function, to 12 digits or more for `x >= 2.5`: the continued fraction
/// `exp(-x*x) / sqrt(pi) / (x + 1/2 / (x + 2/2 / (x + 3/2 / ...)))`.
fn erfc_fraction(x: f64) -> f64 {
    let fraction = (1..100).rev().fold(x, |rest, k| x + f64::from(k) / 2.0 / rest);
    (-x * x).exp() / (std::f64::consts::PI.sqrt() * fraction)
}

#[cfg(test)]
mod tests {
    use super::erf;

    /// Digits of an independent computation with 50 digits.
    #[test]
    fn values_are_the_nearest_numbers_or_their_neighbours() {
        let known = [
            (1e-300, 1.128_379_167_095_512_6e-300),
            (1e-09, 1.128_379_167_095_512_7e-09),
            (0.1, 0.112_462_916_018_284_9),
            (0.5, 0.520_499_877_813_046_5),
            (0.75, 0.711_155_633_653_515_1),
            (1.0, 0.842_700_792_949_714_9),
            (1.5, 0.966_105_146_475_310_8),
            (2.0, 0.995_322_265_018_952_7),
            (2.25, 0.998_537_283_413_318_8),
            (2.499_999_9, 0.999_593_047_764_726_6),
            (2.5, 0.999_593_047_982_555),
            (3.0, 0.999_977_909_503_001_4),
            (3.75, 0.999_999_886_272_743_4),
            (4.5, 0.999_999_999_803_383_9),
            (5.5, 0.999_999_999_999_992_7),
            (5.9, 0.999_999_999_999_999_9),
        ];
        for (x, exact) in known {
            for (x, exact) in [(x, exact), (-x, -exact)] {
                let ulps = (erf(x).to_bits() as i64 - f64::to_bits(exact) as i64).abs();
                assert!(ulps <= 1, "erf({x}) is {}, not {exact}", erf(x));
            }
        }
    }

    #[test]
    fn ends_and_what_is_no_number() {
        assert!(erf(f64::NAN).is_nan());
        assert_eq!(erf(f64::INFINITY), 1.0);
        assert_eq!(erf(f64::NEG_INFINITY), -1.0);
        assert!(erf(0.0) == 0.0 && erf(0.0).is_sign_positive() && erf(-0.0).is_sign_negative());
        assert_eq!(erf(5e-324), 5e-324);
    }
}
