//! `static` and its relatives.

use octants_diag::{Code, Diagnostic, Span};

use crate::ast::{Expr, ExprKind, Keyword};
use crate::host::{Host, Meaning};
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::{Argument, Passing};
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;

impl<H: Host> Lowerer<'_, H> {
    /// `static(…)`: its arguments are evaluated by Python's rules.
    pub(crate) fn static_call(&mut self, args: &[Expr], keywords: &[Keyword]) -> Fallible<Term<H::Object>> {
        let outer = std::mem::replace(&mut self.in_static, true);
        let arguments = self.arguments(args, keywords, Passing::ByValue);
        self.in_static = outer;
        self.static_of(arguments?)
    }

    /// `static` with evaluated arguments.
    pub(crate) fn static_of(&mut self, arguments: Vec<Argument<H::Object>>) -> Fallible<Term<H::Object>> {
        let mut terms = Vec::new();
        for argument in arguments {
            if argument.name.is_some() {
                return Err(self.bad_arguments(Intrinsic::Static, argument.span));
            }
            match &argument.term {
                Term::Value(value) if self.tensor_type(*value).is_some() => terms.push(argument.term),
                Term::Value(_)
                | Term::Place(_)
                | Term::Choice(_)
                | Term::Sublist(_)
                | Term::Encoded(_)
                | Term::Range(..)
                | Term::Ndrange(..)
                | Term::Grouped(_) => {
                    return Err(self.not_static(argument.span));
                }
                _ => terms.push(argument.term),
            }
        }
        let term = if terms.len() == 1 { terms.remove(0) } else { Term::Tuple(terms) };
        Ok(Term::Static(Box::new(term)))
    }

    /// Whether an expression is a call of `static`.
    pub(crate) fn is_static_call(&mut self, expr: &Expr) -> Fallible<bool> {
        Ok(self.called_intrinsic(expr)? == Some(Intrinsic::Static))
    }

    /// The intrinsic that an expression is a call of.
    pub(crate) fn called_intrinsic(&mut self, expr: &Expr) -> Fallible<Option<Intrinsic>> {
        let ExprKind::Call { callee, .. } = &expr.kind else { return Ok(None) };
        if !matches!(callee.kind, ExprKind::Name(_) | ExprKind::Attribute { .. }) {
            return Ok(None);
        }
        let Term::Object(object) = self.expr(callee)? else { return Ok(None) };
        Ok(match self.host.meaning(&object) {
            Meaning::Intrinsic(intrinsic) => Some(intrinsic),
            _ => None,
        })
    }

    /// `deprecated(old, new)`: a warning at the call of the library's function that says so.
    pub(crate) fn deprecated(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let names = self.required(Intrinsic::Deprecated, arguments, ["old", "new"], span)?;
        if let [Argument { term: Term::Str(old), .. }, Argument { term: Term::Str(new), .. }] = names {
            let library = self.frames.iter().position(|frame| self.is_library(frame)).unwrap_or(0);
            let call = self.frames[library].call.as_ref().map_or(span, |call| call.span);
            let calls = self.calls().into_iter().take(library.saturating_sub(1)).collect();
            let message = format!("{old}() is deprecated: use {new}()");
            self.warn(Diagnostic::new(Code::Deprecated, message).at(call).called_from(calls));
        }
        Ok(Term::None)
    }

    /// Prints while compiling. Of what is known only when the kernel runs, type and source text.
    pub(crate) fn static_print(
        &mut self,
        callee: &H::Object,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let mut shown = arguments.to_vec();
        for argument in &mut shown {
            if self.is_known(&argument.term) {
                continue;
            }
            let (what, text) = (self.describe(&argument.term), self.text(argument.span));
            argument.term = Term::Str(format!("<{what}: {text}>").into());
        }
        self.call_host(callee, &shown, span)
    }

    /// Whether a term holds nothing that only the run tells; host code may hold expressions, too.
    fn is_known(&self, term: &Term<H::Object>) -> bool {
        match term {
            Term::Object(object) => !matches!(self.host.meaning(object), Meaning::Expr(_)),
            Term::Tuple(items) | Term::List(items) => items.iter().all(|item| self.is_known(item)),
            other => other.is_static(),
        }
    }

    pub(crate) fn static_assert(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [Some(condition), message] =
            self.parameters(Intrinsic::StaticAssert, arguments, ["cond", "msg"], 1, span)?
        else {
            return Err(self.bad_arguments(Intrinsic::StaticAssert, span));
        };
        if !condition.term.is_static() {
            return Err(self.error_with_help(
                Code::StaticAssertRuntime,
                condition.span,
                "the condition of `oc.static_assert` must be known at compile time",
                "use `assert` for run-time conditions",
            ));
        }
        if self.static_truth(&condition.term, condition.span)? {
            return Ok(Term::None);
        }
        let text = match message.map(|message| message.term) {
            Some(Term::Str(text)) => format!("static assertion failed: {text}"),
            Some(other) if other.is_static() && !matches!(other, Term::None) => {
                let object = self.host_object(&other)?;
                format!("static assertion failed: {}", self.host.repr(&object))
            }
            _ => "static assertion failed".to_owned(),
        };
        Err(self.error(Code::StaticAssertFailed, condition.span, text))
    }
}
