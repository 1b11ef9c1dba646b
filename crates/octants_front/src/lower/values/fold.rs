//! Terms that are compile-time numbers: [`arithmetic`](crate::arithmetic) on them. `None` means that Python itself must be asked.

use crate::arithmetic;
use crate::host::{BinaryOp, CompareOp, Number, UnaryOp};
use crate::lower::data::term::Term;

/// A term as a number, if it is a literal one.
pub(crate) fn number<O>(term: &Term<O>) -> Option<Number> {
    match *term {
        Term::Bool(value) => Some(Number::Bool(value)),
        Term::Int(value) => Some(Number::Int(value)),
        Term::Float(value) => Some(Number::Float(value)),
        _ => None,
    }
}

pub(crate) fn literal<O>(number: Number) -> Term<O> {
    match number {
        Number::Bool(value) => Term::Bool(value),
        Number::Int(value) => Term::Int(value),
        Number::Float(value) => Term::Float(value),
    }
}

pub(crate) fn binary<O>(op: BinaryOp, a: &Term<O>, b: &Term<O>) -> Option<Term<O>> {
    arithmetic::binary(op, number(a)?, number(b)?).map(literal)
}

pub(crate) fn unary<O>(op: UnaryOp, a: &Term<O>) -> Option<Term<O>> {
    arithmetic::unary(op, number(a)?).map(literal)
}

pub(crate) fn compare<O>(op: CompareOp, a: &Term<O>, b: &Term<O>) -> Option<bool> {
    if let (Term::Str(a), Term::Str(b)) = (a, b) {
        return arithmetic::holds(op, Some(a.cmp(b)));
    }
    arithmetic::compare(op, number(a)?, number(b)?)
}

/// The truth of a literal.
pub(crate) fn truth<O>(term: &Term<O>) -> Option<bool> {
    match term {
        Term::None | Term::Nothing(_) => Some(false),
        Term::Str(text) => Some(!text.is_empty()),
        Term::Tuple(items) | Term::List(items) => Some(!items.is_empty()),
        Term::Dict(items) => Some(!items.is_empty()),
        number => self::number(number).map(Number::truth),
    }
}

/// A number as a real, for math functions.
pub(crate) fn as_real<O>(term: &Term<O>) -> Option<f64> {
    number(term).map(Number::real)
}

/// Whether a term is a compile-time number.
pub(crate) fn is_number<O>(term: &Term<O>) -> bool {
    number(term).is_some()
}
