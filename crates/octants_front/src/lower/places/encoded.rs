//! Elements of fields that have no memory of their own: bits of the words of another field.
//!
//! How such an element is read, written and added to is said by functions in the kernel language, which the host gives and which are inlined
//! here. The front end knows no encoding.

use octants_diag::{Code, Span};

use crate::ast::Expr;
use crate::host::{BinaryOp, Host};
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::{Encoded, Ndrange, Term};
use crate::lower::error::Fallible;

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn is_encoded(&self, term: &Term<H::Object>) -> bool {
        matches!(term, Term::Object(object) if self.host.encoded_method(object, "load").is_some())
    }

    /// `field[index]`.
    pub(crate) fn encoded_element(
        &mut self,
        field: &H::Object,
        base_expr: &Expr,
        index: &Expr,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let mut path = Vec::new();
        for item in index.index_items() {
            let term = self.index_operand(item)?;
            self.index_term(term, self.narrowing(), item.span, &mut path)?;
        }
        let host = self.host;
        let rank =
            host.getattr(field, "_rank", self).map_err(|exception| self.host_error(exception, span))?;
        if let Term::Int(rank) = self.resolve(rank, span)? {
            let name = format!("`{}`", self.text(base_expr.span));
            self.check_rank(rank as usize, path.len(), &name, span)?;
        }
        Ok(Term::Encoded(Box::new(Encoded { field: field.clone(), index: path })))
    }

    pub(crate) fn load_encoded(
        &mut self,
        place: &Encoded<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        self.encoded_call(place, "load", None, span)
    }

    pub(crate) fn store_encoded(
        &mut self,
        place: &Encoded<H::Object>,
        value: Term<H::Object>,
        span: Span,
    ) -> Fallible<()> {
        self.encoded_call(place, "store", Some(value), span).map(|_| ())
    }

    /// Adds to an element as one indivisible step; what was there.
    pub(crate) fn add_to_encoded(
        &mut self,
        place: &Encoded<H::Object>,
        value: Term<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let value = self.loaded(value, span)?;
        self.encoded_call(place, "add", Some(value), span)
    }

    /// `field[index] op= value`.
    pub(crate) fn augment_encoded(
        &mut self,
        place: &Encoded<H::Object>,
        op: BinaryOp,
        (term, at): (Term<H::Object>, Span),
        span: Span,
    ) -> Fallible<()> {
        let value = match op {
            BinaryOp::Add => term,
            BinaryOp::Sub => self.binary(op, (Term::Int(0), at), (term, at), span)?,
            _ => {
                return Err(self.error_with_help(
                    Code::AssignTarget,
                    span,
                    "elements of a quantised field take `+=` and `-=` alone",
                    "read, calculate and assign: `x[i] = x[i] * 2`",
                ));
            }
        };
        self.add_to_encoded(place, value, span).map(|_| ())
    }

    /// What a loop over such a field runs over; `None` if the object is none.
    pub(crate) fn encoded_domain(&mut self, object: &H::Object, span: Span) -> Fallible<Option<Ndrange>> {
        let Some(function) = self.host.encoded_method(object, "cells") else { return Ok(None) };
        match self.inline_method(&function, (Term::Object(object.clone()), true), Vec::new(), span)? {
            Term::Ndrange(range, _) => Ok(Some(range)),
            _ => Ok(None),
        }
    }

    fn encoded_call(
        &mut self,
        place: &Encoded<H::Object>,
        name: &str,
        value: Option<Term<H::Object>>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let Some(function) = self.host.encoded_method(&place.field, name) else {
            return Err(self.error(Code::NotIndexable, span, "elements of this field cannot be accessed"));
        };
        let argument = |term| Argument { name: None, term, span, is_literal: false };
        let mut arguments = vec![argument(Term::Index(place.index.clone()))];
        arguments.extend(value.map(argument));
        self.inline_method(&function, (Term::Object(place.field.clone()), true), arguments, span)
    }
}
