//! Operators of tuples and lists, as in Python: they are joined, repeated, and compared item by item.

use octants_diag::{Code, Span};
use octants_ir::ops::BitOp;
use octants_ir::{Scalar, Value};

use crate::host::{BinaryOp, CompareOp, Host, Meaning};
use crate::lower::Lowerer;
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sequence {
    Tuple,
    List,
}

impl<H: Host> Lowerer<'_, H> {
    fn sequence(&self, term: &Term<H::Object>) -> Option<Sequence> {
        match term {
            Term::Tuple(_) | Term::Shape(_) => Some(Sequence::Tuple),
            Term::List(_) => Some(Sequence::List),
            Term::Object(object) => match self.host.meaning(object) {
                Meaning::Tuple => Some(Sequence::Tuple),
                Meaning::List => Some(Sequence::List),
                _ => None,
            },
            _ => None,
        }
    }

    /// The comparison of two tuples or two lists; `None` if one side is neither. A tuple equals no list.
    pub(crate) fn compare_sequences(
        &mut self,
        op: CompareOp,
        a: &Term<H::Object>,
        b: &Term<H::Object>,
        span: Span,
    ) -> Fallible<Option<Term<H::Object>>> {
        let (Some(kind), Some(other)) = (self.sequence(a), self.sequence(b)) else { return Ok(None) };
        let (Some(left), Some(right)) = (self.items(a, span)?, self.items(b, span)?) else { return Ok(None) };
        let is_equality = matches!(op, CompareOp::Eq | CompareOp::Ne);
        if kind != other && !is_equality {
            let (a, b) = (self.describe(a), self.describe(b));
            return Err(self.error_with_help(
                Code::OperandTypes,
                span,
                format!("{a} and {b} have no order"),
                "compare two tuples or two lists",
            ));
        }
        if is_equality && (kind != other || left.len() != right.len()) {
            return Ok(Some(Term::Bool(op == CompareOp::Ne)));
        }
        // The first items that differ decide; where none do, the lengths.
        let mut result = Term::Bool(match op {
            CompareOp::Eq => true,
            CompareOp::Ne => false,
            CompareOp::Lt => left.len() < right.len(),
            CompareOp::Le => left.len() <= right.len(),
            CompareOp::Gt => left.len() > right.len(),
            _ => left.len() >= right.len(),
        });
        for (x, y) in left.into_iter().zip(right).rev() {
            let equal = self.equal_items(x.clone(), y.clone(), span)?;
            let decided = match op {
                CompareOp::Eq => Term::Bool(false),
                CompareOp::Ne => Term::Bool(true),
                _ => self.ordered_items(op, x, y, span)?,
            };
            result = match equal {
                Term::Bool(true) => result,
                Term::Bool(false) => decided,
                equal => {
                    let equal = self.truth_of(equal, span)?;
                    let (same, differ) = (self.truth_of(result, span)?, self.truth_of(decided, span)?);
                    Term::Value(self.at(span).select(equal, same, differ))
                }
            };
        }
        Ok(Some(result))
    }

    /// Whether two items are equal: of vectors and matrices, all entries.
    fn equal_items(
        &mut self,
        x: Term<H::Object>,
        y: Term<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let equal = self.compare(CompareOp::Eq, (x, span), (y, span), span)?;
        let Some(value) = self.tensor_operand(&equal, span)? else { return Ok(equal) };
        let mut all = None;
        for entry in self.tensor_entries(value, span) {
            let entry = self.cast(entry, Scalar::U1, span);
            all = Some(match all {
                None => entry,
                Some(so_far) => self.at(span).bit(BitOp::And, so_far, entry),
            });
        }
        Ok(all.map_or(Term::Bool(true), Term::Value))
    }

    fn ordered_items(
        &mut self,
        op: CompareOp,
        x: Term<H::Object>,
        y: Term<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let result = self.compare(op, (x, span), (y, span), span)?;
        if self.tensor_operand(&result, span)?.is_none() {
            return Ok(result);
        }
        let what = self.describe(&result);
        Err(self.error_with_help(
            Code::NotACondition,
            span,
            format!("tuples that hold vectors or matrices have no order: comparing these gives {what}"),
            "compare their entries one after the other",
        ))
    }

    fn truth_of(&mut self, term: Term<H::Object>, span: Span) -> Fallible<Value> {
        let value = self.value(term, span)?;
        Ok(self.cast(value, Scalar::U1, span))
    }

    /// Refuses a list that is repeated as often as a number says that only a launch knows.
    pub(crate) fn check_repetition(
        &mut self,
        op: BinaryOp,
        a: &Term<H::Object>,
        b: &Term<H::Object>,
        span: Span,
    ) -> Fallible<()> {
        let sequence = match (op, self.sequence(a), self.sequence(b)) {
            (BinaryOp::Mul, Some(_), None) if self.is_run_time_scalar(b) => a,
            (BinaryOp::Mul, None, Some(_)) if self.is_run_time_scalar(a) => b,
            _ => return Ok(()),
        };
        let what = self.describe(sequence);
        Err(self.error_with_help(
            Code::NotAValue,
            span,
            format!(
                "{what} cannot be repeated as often as a run-time value says: how long it is must be known while compiling"
            ),
            "pass the number as an `oc.template()`, or keep that many numbers in an array: `oc.ndarray`",
        ))
    }

    fn is_run_time_scalar(&self, term: &Term<H::Object>) -> bool {
        matches!(term, Term::Value(_) | Term::Place(_)) && self.term_shape(term).is_none()
    }
}

/// `+` of tuples and lists, and `*` by how often one is repeated.
pub(crate) fn join_sequences<O: Clone>(op: BinaryOp, a: &Term<O>, b: &Term<O>) -> Option<Term<O>> {
    match (op, a, b) {
        (BinaryOp::Add, Term::Tuple(a), Term::Tuple(b)) => {
            Some(Term::Tuple(a.iter().chain(b).cloned().collect()))
        }
        (BinaryOp::Add, Term::List(a), Term::List(b)) => {
            Some(Term::List(a.iter().chain(b).cloned().collect()))
        }
        (BinaryOp::Mul, Term::Tuple(items), Term::Int(count)) => repeated(items, *count).map(Term::Tuple),
        (BinaryOp::Mul, Term::List(items), Term::Int(count)) => repeated(items, *count).map(Term::List),
        _ => None,
    }
}

/// The items as often as said, if that is not too long to be meant.
fn repeated<O: Clone>(items: &[Term<O>], count: i128) -> Option<Vec<Term<O>>> {
    let count = usize::try_from(count.max(0)).ok()?;
    let total = items.len().checked_mul(count).filter(|&total| total <= 1 << 16)?;
    Some(items.iter().cycle().take(total).cloned().collect())
}
