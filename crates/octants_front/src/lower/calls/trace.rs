//! The kernel as host code sees it: operators of expressions append to it.

use octants_diag::{Diagnostic, Span};

use crate::host::{BinaryOp, CompareOp, Host, HostOnly, Meaning, TraceError, Tracer, UnaryOp};
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;
use crate::lower::places::entries::Part;

impl<H: Host> Lowerer<'_, H> {
    /// Runs one step that host code asked for. If it fails, host code gets the text and the diagnostic is kept; the state is as before.
    fn traced<R>(&mut self, step: impl FnOnce(&mut Self) -> Fallible<R>) -> Result<R, TraceError> {
        let (region, depth) = (self.region, self.frames.len());
        let flags = (self.in_static, self.in_parallel);
        self.in_static = false;
        let result = step(self);
        self.in_static = flags.0;
        result.map_err(|failure: Box<Diagnostic>| {
            self.region = region;
            self.frames.truncate(depth);
            self.in_parallel = flags.1;
            let error = TraceError { class: failure.class(), message: failure.message.clone() };
            self.trace_failure = Some(failure);
            error
        })
    }

    /// What host code asks for meanwhile is told at this place.
    pub(crate) fn evaluating<R>(&mut self, span: Span, evaluate: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.call_span, span);
        let result = evaluate(self);
        self.call_span = outer;
        result
    }

    /// `object[index]`, with the index as a tuple for several.
    fn indexed(&mut self, object: &H::Object, index: &H::Object) -> Fallible<Term<H::Object>> {
        let span = self.call_span;
        let base = self.term_of(object)?;
        let index = self.term_of(index)?;
        match base {
            Term::Array(array) => {
                let items = self.items(&index, span)?.unwrap_or_else(|| vec![index]);
                let items = items.into_iter().map(|item| (item, span)).collect();
                self.array_place(array, "an array", items, span).map(Term::Place)
            }
            Term::View(view) => {
                let items = self.items(&index, span)?.unwrap_or_else(|| vec![index]);
                let items = items.into_iter().map(|item| (item, span)).collect();
                let path = self.array_path(view.array, "a view", items, span)?;
                Ok(Term::Place(self.view_place(&view, path, "a view", span)))
            }
            Term::Object(object) => {
                let index = self.host_object(&index)?;
                let host = self.host;
                let item = host.evaluate_item(&object, &index, self);
                item.map(Term::Object).map_err(|exception| self.host_error(exception, span))
            }
            tensor if self.term_shape(&tensor).is_some() => {
                let items = match &index {
                    Term::Tuple(items) => items.clone(),
                    _ => vec![index],
                };
                let parts = items.into_iter().map(|item| Part::Index(item, span)).collect();
                self.tensor_item(tensor, parts, span)
            }
            sequence => self.item_at(&sequence, index, span, span),
        }
    }

    fn term_of(&mut self, object: &H::Object) -> Fallible<Term<H::Object>> {
        self.resolve(object.clone(), self.call_span)
    }
}

impl<H: Host> Tracer<H::Object> for Lowerer<'_, H> {
    fn binary(&mut self, op: BinaryOp, a: &H::Object, b: &H::Object) -> Result<H::Object, TraceError> {
        self.traced(|lowerer| {
            let span = lowerer.call_span;
            let (a, b) = (lowerer.term_of(a)?, lowerer.term_of(b)?);
            let (a, b) = (lowerer.value(a, span)?, lowerer.value(b, span)?);
            let result = lowerer.binary_values(op, a, b, span)?;
            lowerer.host_object(&Term::Value(result))
        })
    }

    fn unary(&mut self, op: UnaryOp, a: &H::Object) -> Result<H::Object, TraceError> {
        self.traced(|lowerer| {
            let span = lowerer.call_span;
            let a = lowerer.term_of(a)?;
            let result = Lowerer::unary(lowerer, op, a, span, span)?;
            lowerer.host_object(&result)
        })
    }

    fn compare(&mut self, op: CompareOp, a: &H::Object, b: &H::Object) -> Result<H::Object, TraceError> {
        self.traced(|lowerer| {
            let span = lowerer.call_span;
            let (a, b) = (lowerer.term_of(a)?, lowerer.term_of(b)?);
            let result = Lowerer::compare(lowerer, op, (a, span), (b, span), span)?;
            lowerer.host_object(&result)
        })
    }

    fn getattr(&mut self, object: &H::Object, name: &str) -> Result<H::Object, TraceError> {
        self.traced(|lowerer| {
            let span = lowerer.call_span;
            let term = lowerer.term_of(object)?;
            let result = lowerer.attribute(term, name, span)?;
            lowerer.host_object(&result)
        })
    }

    fn getitem(&mut self, object: &H::Object, index: &H::Object) -> Result<H::Object, TraceError> {
        self.traced(|lowerer| {
            let term = lowerer.indexed(object, index)?;
            let span = lowerer.call_span;
            let rvalue = lowerer.rvalue(term, span)?;
            lowerer.host_object(&rvalue)
        })
    }

    fn setitem(
        &mut self,
        object: &H::Object,
        index: &H::Object,
        value: &H::Object,
    ) -> Result<(), TraceError> {
        self.traced(|lowerer| {
            let span = lowerer.call_span;
            let term = lowerer.indexed(object, index)?;
            let value = lowerer.term_of(value)?;
            match term {
                Term::Place(place) => lowerer.store(&place, value, span),
                _ => Err(lowerer.error(
                    octants_diag::Code::AssignTarget,
                    span,
                    "this expression cannot be assigned to",
                )),
            }
        })
    }

    fn call(
        &mut self,
        callee: &H::Object,
        args: &[H::Object],
        kwargs: &[(String, H::Object)],
    ) -> Result<H::Object, TraceError> {
        self.traced(|lowerer| {
            let span = lowerer.call_span;
            let mut arguments = Vec::with_capacity(args.len() + kwargs.len());
            let named = kwargs.iter().map(|(name, object)| (Some(name.as_str().into()), object));
            for (name, object) in args.iter().map(|object| (None, object)).chain(named) {
                let term = lowerer.term_of(object)?;
                arguments.push(Argument { name, term, span, is_literal: false });
            }
            if let Meaning::Expr(id) = lowerer.host.meaning(callee) {
                let result = match lowerer.expression(id, span)? {
                    Term::Method(method) => {
                        let receiver = (method.receiver, method.by_reference);
                        lowerer.inline_method(&method.function, receiver, arguments, span)?
                    }
                    Term::Fill(filled) => lowerer.fill_call(*filled, arguments, span)?,
                    other => return Err(lowerer.not_callable(&other, span)),
                };
                let rvalue = lowerer.rvalue(result, span)?;
                return lowerer.host_object(&rvalue);
            }
            let result = lowerer.call_evaluated(callee, arguments, span)?;
            let rvalue = lowerer.rvalue(result, span)?;
            lowerer.host_object(&rvalue)
        })
    }

    fn host_only(&mut self, what: HostOnly<'_>) -> TraceError {
        let failure = Lowerer::host_only(self, what, self.call_span);
        let error = TraceError { class: failure.class(), message: failure.message.clone() };
        self.trace_failure = Some(failure);
        error
    }

    fn describe(&mut self, object: &H::Object) -> String {
        match self.term_of(object) {
            Ok(term) => Lowerer::describe(self, &term),
            Err(_) => "an expression".to_owned(),
        }
    }
}
