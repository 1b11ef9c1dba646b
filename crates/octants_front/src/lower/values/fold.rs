//! Arithmetic on compile-time numbers, as Python does it. `None` means that Python itself must be asked.

use crate::host::{BinaryOp, CompareOp, UnaryOp};
use crate::lower::data::term::Term;

/// Integers up to here are exact as reals.
const MAX_EXACT_INTEGER: i128 = 1 << 53;

/// Operands as numbers.
#[derive(Clone, Copy)]
enum Number {
    Bool(bool),
    Int(i128),
    Float(f64),
}

fn number<O>(term: &Term<O>) -> Option<Number> {
    match *term {
        Term::Bool(value) => Some(Number::Bool(value)),
        Term::Int(value) => Some(Number::Int(value)),
        Term::Float(value) => Some(Number::Float(value)),
        _ => None,
    }
}

impl Number {
    fn int(self) -> Option<i128> {
        match self {
            Self::Bool(value) => Some(value.into()),
            Self::Int(value) => Some(value),
            Self::Float(_) => None,
        }
    }

    /// The value as a real, if that is exact.
    fn real(self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(value),
            Self::Bool(_) | Self::Int(_) => {
                self.int().filter(|value| value.abs() <= MAX_EXACT_INTEGER).map(|value| value as f64)
            }
        }
    }
}

pub(crate) fn binary<O>(op: BinaryOp, a: &Term<O>, b: &Term<O>) -> Option<Term<O>> {
    let (a, b) = (number(a)?, number(b)?);
    if let (Number::Bool(a), Number::Bool(b)) = (a, b) {
        match op {
            BinaryOp::BitAnd => return Some(Term::Bool(a & b)),
            BinaryOp::BitOr => return Some(Term::Bool(a | b)),
            BinaryOp::BitXor => return Some(Term::Bool(a ^ b)),
            _ => {}
        }
    }
    match (a.int(), b.int()) {
        (Some(a), Some(b)) => integers(op, a, b),
        _ => reals(op, a.real()?, b.real()?).map(Term::Float),
    }
}

fn integers<O>(op: BinaryOp, a: i128, b: i128) -> Option<Term<O>> {
    let result = match op {
        BinaryOp::Add => a.checked_add(b)?,
        BinaryOp::Sub => a.checked_sub(b)?,
        BinaryOp::Mul => a.checked_mul(b)?,
        BinaryOp::Div if b != 0 && a.abs() <= MAX_EXACT_INTEGER && b.abs() <= MAX_EXACT_INTEGER => {
            return Some(Term::Float(a as f64 / b as f64));
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
    Some(Term::Int(result))
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
        BinaryOp::Pow if a > 0.0 => Some(a.powf(b)).filter(|result| result.is_finite()),
        _ => None,
    }
}

pub(crate) fn unary<O>(op: UnaryOp, a: &Term<O>) -> Option<Term<O>> {
    let a = number(a)?;
    match (op, a) {
        (UnaryOp::Not, Number::Float(value)) => Some(Term::Bool(value == 0.0)),
        (UnaryOp::Not, _) => Some(Term::Bool(a.int()? == 0)),
        (UnaryOp::Neg, Number::Float(value)) => Some(Term::Float(-value)),
        (UnaryOp::Neg, _) => a.int()?.checked_neg().map(Term::Int),
        (UnaryOp::Pos, Number::Float(value)) => Some(Term::Float(value)),
        (UnaryOp::Pos, _) => a.int().map(Term::Int),
        // On a bool Python gives -1 or -2, which nobody means in a kernel.
        (UnaryOp::Invert, Number::Bool(value)) => Some(Term::Bool(!value)),
        (UnaryOp::Invert, Number::Int(value)) => Some(Term::Int(!value)),
        (UnaryOp::Invert, Number::Float(_)) => None,
    }
}

pub(crate) fn compare<O>(op: CompareOp, a: &Term<O>, b: &Term<O>) -> Option<bool> {
    let ordering = if let (Term::Str(a), Term::Str(b)) = (a, b) {
        Some(a.cmp(b))
    } else {
        let (a, b) = (number(a)?, number(b)?);
        match (a.int(), b.int()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.real()?.partial_cmp(&b.real()?),
        }
    };
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

/// A number as the promoted type of it and another one: an integer beside a real is a real.
pub(crate) fn promoted_beside<O>(number: Term<O>, other: &Term<O>) -> Term<O> {
    match (&number, other) {
        (Term::Int(value), Term::Float(_)) => Term::Float(*value as f64),
        (Term::Bool(value), Term::Float(_)) => Term::Float(f64::from(*value)),
        (Term::Bool(value), Term::Int(_)) => Term::Int((*value).into()),
        _ => number,
    }
}

/// The truth of a literal.
pub(crate) fn truth<O>(term: &Term<O>) -> Option<bool> {
    match term {
        Term::None | Term::Nothing(_) => Some(false),
        Term::Bool(value) => Some(*value),
        Term::Int(value) => Some(*value != 0),
        Term::Float(value) => Some(*value != 0.0),
        Term::Str(text) => Some(!text.is_empty()),
        Term::Tuple(items) | Term::List(items) => Some(!items.is_empty()),
        Term::Dict(items) => Some(!items.is_empty()),
        _ => None,
    }
}

/// A number as a real, for functions of reals.
pub(crate) fn as_real<O>(term: &Term<O>) -> Option<f64> {
    number(term).map(|number| match number {
        Number::Float(value) => value,
        Number::Bool(value) => f64::from(u8::from(value)),
        Number::Int(value) => value as f64,
    })
}

/// Whether a term is a compile-time number.
pub(crate) fn is_number<O>(term: &Term<O>) -> bool {
    number(term).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(op: BinaryOp, a: i128, b: i128) -> Option<i128> {
        match binary::<()>(op, &Term::Int(a), &Term::Int(b)) {
            Some(Term::Int(value)) => Some(value),
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
}
