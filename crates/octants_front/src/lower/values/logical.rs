//! `and`, `or`: one of the operands, as in Python; lazy on scalars, truths entry by entry on tensors.

use octants_diag::Span;
use octants_ir::ops::BitOp;
use octants_ir::{Const, OpKind, Region, Scalar, Type, Value};

use super::fold;
use super::promote::promote;
use crate::ast::{Expr, ExprKind, LogicalOp};
use crate::host::{Host, Number, UnaryOp};
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
        let mut result = (self.operand(first)?, first.span);
        // `a and b and c` is `(a and b) and c`: the ops do not nest, however long the chain is.
        for operand in rest {
            result = (self.logical_pair(op, result, operand, span)?, span);
        }
        Ok(result.0)
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

    /// One of the two operands, as Python chooses it; of tensors the truth, entry by entry.
    fn logical_pair(
        &mut self,
        op: LogicalOp,
        (first, first_span): (Term<H::Object>, Span),
        second: &Expr,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let decided_by = op == LogicalOp::Or;
        // Which of two numbers it is decides of its type: the code is for the first one's value. Truth values have one type.
        let first = match &first {
            Term::Formula(number) if !matches!(number.now, Number::Bool(_)) || is_number_like(second) => {
                self.pinned(first)
            }
            _ => first,
        };
        if let Some(truth) = fold::truth(&first)
            && fold::is_number(&first)
        {
            if truth == decided_by {
                // What follows never runs, and may be what could not.
                return Ok(first);
            }
            let second_term = self.operand(second)?;
            self.logical_operand(second_term, second.span)
        } else {
            let a = match self.logical_operand(first, first_span)? {
                Term::Value(value) => value,
                formula @ Term::Formula(_) => self.value(formula, first_span)?,
                _ => return Err(self.not_static(first_span)),
            };
            let is_scalar = self.data(a).tensor_shape().is_none();
            if is_scalar && self.options.short_circuit {
                return self.lazy_pair(decided_by, a, second, span);
            }
            self.eager_pair(decided_by, a, second, span)
        }
    }

    /// `if a { b } else { a }`, or the other way round for `or`.
    fn lazy_pair(
        &mut self,
        decided_by: bool,
        a: Value,
        second: &Expr,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let truth = self.cast(a, Scalar::U1, span);
        let (evaluated, b) = self.open_region(&[], |inner, _| {
            let term = inner.operand(second)?;
            let operand = inner.logical_operand(term, second.span)?;
            inner.value(operand, second.span)
        })?;
        if self.data(b).tensor_shape().is_some() {
            // Entry by entry: the scalar is spread, in the same place.
            let result = self.within(evaluated, |inner| inner.truths(decided_by, truth, b, span))?;
            let data = self.data(result);
            self.end_region(evaluated, span, &[result]);
            let (decided, constant) = self.open_region(&[], |inner, _| {
                let constant = inner.at(span).constant(Const::bool(decided_by));
                Ok(inner.at(span).splat(data, constant))
            })?;
            self.end_region(decided, span, &[constant]);
            let ty = self.kernel.ty(result);
            return Ok(self.chosen(truth, decided_by, [evaluated, decided], ty, span));
        }
        let elem = promote(self.elem(a), self.elem(b));
        let b = self.within(evaluated, |inner| Ok(inner.cast(b, elem, second.span)))?;
        self.end_region(evaluated, span, &[b]);
        let (decided, kept) = self.open_region(&[], |inner, _| {
            Ok(if elem == Scalar::U1 {
                inner.at(span).constant(Const::bool(decided_by))
            } else {
                inner.cast(a, elem, span)
            })
        })?;
        self.end_region(decided, span, &[kept]);
        let ty = self.kernel.ty(b);
        Ok(self.chosen(truth, decided_by, [evaluated, decided], ty, span))
    }

    /// An `if` that gives what one of two regions yields: the one that evaluates, or the one that need not.
    fn chosen(
        &mut self,
        truth: Value,
        decided_by: bool,
        [evaluated, decided]: [Region; 2],
        ty: Type,
        span: Span,
    ) -> Term<H::Object> {
        let regions = if decided_by { [decided, evaluated] } else { [evaluated, decided] };
        let op = self.at(span).op(OpKind::If, [truth], [ty], regions);
        Term::Value(self.kernel.ops[op].results[0])
    }

    /// Both operands are evaluated.
    fn eager_pair(
        &mut self,
        decided_by: bool,
        a: Value,
        second: &Expr,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let term = self.operand(second)?;
        let b = self.logical_operand(term, second.span)?;
        let b = self.value(b, second.span)?;
        let truth = self.cast(a, Scalar::U1, span);
        if self.data(a).tensor_shape().is_some() || self.data(b).tensor_shape().is_some() {
            return self.truths(decided_by, truth, b, span).map(Term::Value);
        }
        let elem = promote(self.elem(a), self.elem(b));
        let (a, b) = (self.cast(a, elem, span), self.cast(b, elem, span));
        let (yes, no) = if decided_by { (a, b) } else { (b, a) };
        Ok(Term::Value(self.at(span).select(truth, yes, no)))
    }

    /// The truths of two operands that are joined, entry by entry.
    fn truths(&mut self, decided_by: bool, a: Value, b: Value, span: Span) -> Fallible<Value> {
        let bit = if decided_by { BitOp::Or } else { BitOp::And };
        let (a, b) = self.unify(bit.name(), a, b, Scalar::U1, span)?;
        Ok(self.at(span).bit(bit, a, b))
    }

    /// An operand in a register, or a number that is known now.
    fn logical_operand(&mut self, term: Term<H::Object>, span: Span) -> Fallible<Term<H::Object>> {
        let rvalue = self.loaded(term, span)?;
        match &rvalue {
            Term::Value(_) | Term::Formula(_) | Term::Bool(_) | Term::Int(_) | Term::Float(_) => Ok(rvalue),
            Term::Index(_) => self.value(rvalue, span).map(Term::Value),
            other => Err(self.not_a_condition(other, span)),
        }
    }
}

/// Whether an expression may well be a number that is known while compiling, and no truth value.
fn is_number_like(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Attribute { .. } => true,
        ExprKind::Unary { operand, op } => *op != UnaryOp::Not && is_number_like(operand),
        ExprKind::Binary { left, right, .. } => is_number_like(left) && is_number_like(right),
        _ => false,
    }
}
