//! Arithmetic on the host's numbers, as Python does it. `None` means that Python itself must be asked.
//!
//! Compiling folds with it, and a launch calculates with it what depends on numbers that change: both give the same bits.

use crate::host::{BinaryOp, CompareOp, Number, UnaryOp};

/// Integers up to here are exact as reals.
const MAX_EXACT_INTEGER: i128 = 1 << 53;

impl Number {
    fn int(self) -> Option<i128> {
        match self {
            Self::Bool(value) => Some(value.into()),
            Self::Int(value) => Some(value),
            Self::Float(_) => None,
        }
    }

    /// The value as a real, if that is exact.
    fn exact_real(self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(value),
            Self::Bool(_) | Self::Int(_) => {
                self.int().filter(|value| value.abs() <= MAX_EXACT_INTEGER).map(|value| value as f64)
            }
        }
    }

    /// The nearest real, for math functions.
    pub fn real(self) -> f64 {
        match self {
            Self::Float(value) => value,
            Self::Bool(value) => f64::from(u8::from(value)),
            Self::Int(value) => value as f64,
        }
    }

    pub fn truth(self) -> bool {
        match self {
            Self::Bool(value) => value,
            Self::Int(value) => value != 0,
            Self::Float(value) => value != 0.0,
        }
    }

    /// `int(x)`, for reals that are not huge.
    pub fn truncated(self) -> Option<i128> {
        match self {
            Self::Float(value) if value.is_finite() && value.abs() < 1e18 => Some(value.trunc() as i128),
            Self::Float(_) => None,
            Self::Bool(_) | Self::Int(_) => self.int(),
        }
    }
}

pub fn binary(op: BinaryOp, a: Number, b: Number) -> Option<Number> {
    if let (Number::Bool(a), Number::Bool(b)) = (a, b) {
        match op {
            BinaryOp::BitAnd => return Some(Number::Bool(a & b)),
            BinaryOp::BitOr => return Some(Number::Bool(a | b)),
            BinaryOp::BitXor => return Some(Number::Bool(a ^ b)),
            _ => {}
        }
    }
    match (a.int(), b.int()) {
        (Some(a), Some(b)) => integers(op, a, b),
        _ => reals(op, a.exact_real()?, b.exact_real()?).map(Number::Float),
    }
}

fn integers(op: BinaryOp, a: i128, b: i128) -> Option<Number> {
    let result = match op {
        BinaryOp::Add => a.checked_add(b)?,
        BinaryOp::Sub => a.checked_sub(b)?,
        BinaryOp::Mul => a.checked_mul(b)?,
        BinaryOp::Div if b != 0 && a.abs() <= MAX_EXACT_INTEGER && b.abs() <= MAX_EXACT_INTEGER => {
            return Some(Number::Float(a as f64 / b as f64));
        }
        BinaryOp::FloorDiv if b != 0 => floor_div(a, b)?,
        BinaryOp::Mod if b != 0 => a.checked_sub(floor_div(a, b)?.checked_mul(b)?)?,
        BinaryOp::Pow => a.checked_pow(u32::try_from(b).ok()?)?,
        BinaryOp::Shl => a.checked_mul(1_i128.checked_shl(u32::try_from(b).ok()?).filter(|&one| one > 0)?)?,
        BinaryOp::Shr if b >= 0 => a >> b.min(127),
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Mod | BinaryOp::Shr | BinaryOp::MatMul => return None,
    };
    Some(Number::Int(result))
}

fn floor_div(a: i128, b: i128) -> Option<i128> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

fn reals(op: BinaryOp, a: f64, b: f64) -> Option<f64> {
    match op {
        BinaryOp::Add => Some(a + b),
        BinaryOp::Sub => Some(a - b),
        BinaryOp::Mul => Some(a * b),
        BinaryOp::Div if b != 0.0 => Some(a / b),
        BinaryOp::Mod if b != 0.0 && a.is_finite() && b.is_finite() => Some(modulo(a, b)),
        BinaryOp::Pow if a > 0.0 => Some(a.powf(b)).filter(|result| result.is_finite()),
        _ => None,
    }
}

/// `a % b` as Python computes it, but for a zero, which is never negative in a kernel.
fn modulo(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest == 0.0 {
        0.0
    } else if (rest < 0.0) == (b < 0.0) {
        rest
    } else {
        rest + b
    }
}

/// `abs(x)` of a number that is no truth value.
pub fn absolute(a: Number) -> Option<Number> {
    match a {
        Number::Bool(_) => None,
        Number::Int(value) => value.checked_abs().map(Number::Int),
        Number::Float(value) => Some(Number::Float(value.abs())),
    }
}

/// The smaller or the greater of two numbers, as kernels choose it: a NaN loses, and −0.0 is less than 0.0. An integer beside a real is a real.
pub fn extremum(is_max: bool, a: Number, b: Number) -> Number {
    let is_second = if let (Some(a), Some(b)) = (a.int(), b.int()) {
        if is_max { b > a } else { b < a }
    } else {
        // Rounding a long integer keeps the order, and makes it the real that it would be.
        let (a, b) = (a.real(), b.real());
        let precedes = if is_max { b > a } else { b < a };
        a.is_nan() || precedes || (a == b && b.is_sign_positive() == is_max)
    };
    let (winner, loser) = if is_second { (b, a) } else { (a, b) };
    match (winner, loser) {
        (Number::Bool(_) | Number::Int(_), Number::Float(_)) => Number::Float(winner.real()),
        (Number::Bool(value), Number::Int(_)) => Number::Int(value.into()),
        _ => winner,
    }
}

pub fn unary(op: UnaryOp, a: Number) -> Option<Number> {
    match (op, a) {
        (UnaryOp::Not, _) => Some(Number::Bool(!a.truth())),
        (UnaryOp::Neg, Number::Float(value)) => Some(Number::Float(-value)),
        (UnaryOp::Neg, _) => a.int()?.checked_neg().map(Number::Int),
        (UnaryOp::Pos, Number::Float(value)) => Some(Number::Float(value)),
        (UnaryOp::Pos, _) => a.int().map(Number::Int),
        // On a bool Python gives -1 or -2, which nobody means in a kernel.
        (UnaryOp::Invert, Number::Bool(value)) => Some(Number::Bool(!value)),
        (UnaryOp::Invert, Number::Int(value)) => Some(Number::Int(!value)),
        (UnaryOp::Invert, Number::Float(_)) => None,
    }
}

pub fn compare(op: CompareOp, a: Number, b: Number) -> Option<bool> {
    let ordering = match (a.int(), b.int()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.exact_real()?.partial_cmp(&b.exact_real()?),
    };
    holds(op, ordering)
}

/// What an ordering says of a comparison; there is none beside what is not a number.
pub fn holds(op: CompareOp, ordering: Option<std::cmp::Ordering>) -> Option<bool> {
    match op {
        CompareOp::Lt => Some(ordering.is_some_and(std::cmp::Ordering::is_lt)),
        CompareOp::Le => Some(ordering.is_some_and(std::cmp::Ordering::is_le)),
        CompareOp::Gt => Some(ordering.is_some_and(std::cmp::Ordering::is_gt)),
        CompareOp::Ge => Some(ordering.is_some_and(std::cmp::Ordering::is_ge)),
        CompareOp::Eq => Some(ordering.is_some_and(std::cmp::Ordering::is_eq)),
        CompareOp::Ne => Some(ordering.is_none_or(std::cmp::Ordering::is_ne)),
        CompareOp::Is | CompareOp::IsNot | CompareOp::In | CompareOp::NotIn => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(op: BinaryOp, a: i128, b: i128) -> Option<i128> {
        match binary(op, Number::Int(a), Number::Int(b)) {
            Some(Number::Int(value)) => Some(value),
            _ => None,
        }
    }

    #[test]
    fn integers_fold_as_python_computes_them() {
        assert_eq!(ints(BinaryOp::FloorDiv, -7, 2), Some(-4));
        assert_eq!(ints(BinaryOp::Mod, -7, 2), Some(1));
        assert_eq!(ints(BinaryOp::Mod, 7, -2), Some(-1));
        assert_eq!(ints(BinaryOp::Shl, 1, 40), Some(1 << 40));
        assert_eq!(ints(BinaryOp::Shr, -5, 1), Some(-3));
        assert_eq!(ints(BinaryOp::Pow, 2, 100), Some(1 << 100));
        // Left to Python, which raises or has longer integers.
        assert_eq!(ints(BinaryOp::FloorDiv, 1, 0), None);
        assert_eq!(ints(BinaryOp::Shl, 1, 127), None);
        assert_eq!(ints(BinaryOp::Pow, 2, -1), None);
    }

    #[test]
    fn a_remainder_has_the_sign_of_the_divisor_unless_it_is_zero() {
        let rest = |a: f64, b: f64| reals(BinaryOp::Mod, a, b);
        assert_eq!((rest(-2.5, 2.0), rest(2.5, -2.0), rest(5.0, 3.0)), (Some(1.5), Some(-1.5), Some(2.0)));
        for (a, b) in [(0.0, -2.5), (-0.0, 2.5), (-5.0, -2.5), (-5.0, 2.5)] {
            assert_eq!(rest(a, b).map(f64::to_bits), Some(0));
        }
        assert_eq!((rest(1.0, 0.0), rest(f64::INFINITY, 2.0)), (None, None));
    }

    #[test]
    fn the_least_and_the_greatest_are_those_of_kernels() {
        let (zero, nan, long) = (Number::Float(-0.0), Number::Float(f64::NAN), Number::Int(1 << 60));
        let bits = |number: Number| number.real().to_bits();
        for (a, b) in [(zero, Number::Int(0)), (Number::Float(0.0), zero), (zero, Number::Bool(false))] {
            assert_eq!(bits(extremum(false, a, b)), (-0.0_f64).to_bits());
            assert_eq!(bits(extremum(true, a, b)), 0);
        }
        for is_max in [false, true] {
            assert_eq!(extremum(is_max, nan, Number::Int(3)), Number::Float(3.0));
            assert_eq!(extremum(is_max, Number::Float(3.0), nan), Number::Float(3.0));
        }
        // Integers that are no reals are compared, too.
        assert_eq!(extremum(false, long, Number::Float(1.5)), Number::Float(1.5));
        assert_eq!(extremum(true, Number::Float(1.5), long), Number::Float((1_i64 << 60) as f64));
    }
}
