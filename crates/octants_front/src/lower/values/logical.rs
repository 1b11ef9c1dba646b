//! `and`, `or`: lazy on scalars.

use octants_diag::{Code, Span};
use octants_ir::ops::BitOp;
use octants_ir::{Const, OpKind, Scalar, Type};

use super::fold;
use crate::ast::{Expr, LogicalOp};
use crate::host::Host;
use crate::lower::Lowerer;
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn logical(
        &mut self,
        op: LogicalOp,
        operands: &[Expr],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        if self.in_static {
            return self.static_logical(op, operands);
        }
        let [first, rest @ ..] = operands else { return Ok(Term::Bool(op == LogicalOp::And)) };
        let first_term = self.operand(first)?;
        self.logical_chain(op, first_term, first.span, rest, span)
    }

    /// As Python does it: the first operand that decides, or the last.
    fn static_logical(&mut self, op: LogicalOp, operands: &[Expr]) -> Fallible<Term<H::Object>> {
        let mut result = Term::None;
        for operand in operands {
            result = self.operand(operand)?;
            if self.static_truth(&result, operand.span)? == (op == LogicalOp::Or) {
                break;
            }
        }
        Ok(result)
    }

    fn logical_chain(
        &mut self,
        op: LogicalOp,
        first: Term<H::Object>,
        first_span: Span,
        rest: &[Expr],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let decided_by = op == LogicalOp::Or;
        let Some((second, others)) = rest.split_first() else {
            // The last operand as a condition.
            return match fold::truth(&first) {
                Some(truth) if fold::is_number(&first) => Ok(Term::Bool(truth)),
                _ => self.logical_value(first, first_span),
            };
        };
        if let Some(truth) = fold::truth(&first)
            && fold::is_number(&first)
        {
            // A constant decides now, but what follows must still be valid.
            let second_term = self.operand(second)?;
            let chain = self.logical_chain(op, second_term, second.span, others, span)?;
            return Ok(if truth == decided_by { Term::Bool(truth) } else { chain });
        }
        let a = self.logical_value(first, first_span)?;
        let Term::Value(a) = a else { return Ok(a) };
        let lazy = self.options.short_circuit && self.data(a).tensor_shape().is_none();
        if !lazy {
            let second_term = self.operand(second)?;
            let b = self.logical_chain(op, second_term, second.span, others, span)?;
            let b = self.value(b, second.span)?;
            let bit = if decided_by { BitOp::Or } else { BitOp::And };
            let (a, b) = self.meet(bit.name(), a, b, Scalar::U1, span)?;
            return Ok(Term::Value(self.at(span).bit(bit, a, b)));
        }
        let (evaluated, value) = self.open_region(&[], |inner, _| {
            let second_term = inner.operand(second)?;
            let b = inner.logical_chain(op, second_term, second.span, others, span)?;
            inner.condition(b, second.span)
        })?;
        self.end_region(evaluated, span, &[value]);
        let (decided, constant) =
            self.open_region(&[], |inner, _| Ok(inner.at(span).constant(Const::bool(decided_by))))?;
        self.end_region(decided, span, &[constant]);
        let regions = if decided_by { [decided, evaluated] } else { [evaluated, decided] };
        let op = self.at(span).op(OpKind::If, [a], [Type::U1], regions);
        Ok(Term::Value(self.kernel.ops[op].results[0]))
    }

    /// An operand as `u1`, entry by entry for a tensor.
    fn logical_value(&mut self, term: Term<H::Object>, span: Span) -> Fallible<Term<H::Object>> {
        let settled = self.settle(term, span)?;
        match &settled {
            Term::Value(value) => Ok(Term::Value(self.cast(*value, Scalar::U1, span))),
            Term::Bool(_) | Term::Int(_) | Term::Float(_) => self.condition(settled, span).map(Term::Value),
            other => {
                let what = self.describe(other);
                Err(self.error(
                    Code::NotACondition,
                    span,
                    format!("a condition must be a scalar, not {what}"),
                ))
            }
        }
    }
}
