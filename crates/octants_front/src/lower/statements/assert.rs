//! `assert`: checked in debug mode only; without it, what the condition does besides is still done.

use std::fmt::Write as _;

use octants_diag::{Code, Span};
use octants_ir::format::escaped_message;
use octants_ir::ops::{AssertKind, Format};
use octants_ir::{Data, OpKind, Value};

use crate::ast::{Expr, ExprKind};
use crate::host::Host;
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::{Term, TextPiece};
use crate::lower::error::Fallible;

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn assertion(&mut self, test: &Expr, message: Option<&Expr>, span: Span) -> Fallible<()> {
        if !self.options.kernel.debug {
            if test.may_have_effects() {
                let term = self.expr(test)?;
                self.condition(term, test.span)?;
            }
            return message.map_or(Ok(()), |message| self.check_message(message));
        }
        let term = self.expr(test)?;
        let holds = self.condition(term, test.span)?;
        let (text, arguments) = match message {
            None => (escaped_message(&format!("assertion failed: {}", self.text(test.span))), Vec::new()),
            Some(message) => self.assertion_message(message)?,
        };
        let operands: Vec<_> = std::iter::once(holds).chain(arguments).collect();
        self.at(span).op(OpKind::Assert(AssertKind::Condition, text.into()), operands, [], []);
        Ok(())
    }

    /// `library_assert(condition, message)`: an assertion that stands in every kernel. A launch with one is waited for.
    pub(crate) fn library_assert(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let names = ["condition", "message"];
        let [condition, message] = self.required(Intrinsic::LibraryAssert, arguments, names, span)?;
        let holds = self.condition(condition.term, condition.span)?;
        let (text, arguments) = self.message_of(message.term, message.span)?;
        self.at(span).assert(AssertKind::Condition, holds, &text, &arguments);
        Ok(Term::None)
    }

    /// A message that can be no text is refused also where the assertion is left out.
    fn check_message(&mut self, message: &Expr) -> Fallible<()> {
        let may_be_number = matches!(
            message.kind,
            ExprKind::Name(_) | ExprKind::Attribute { .. } | ExprKind::Int(_) | ExprKind::Float(_)
        );
        if may_be_number && !matches!(self.operand(message)?, Term::Str(_) | Term::Text(_)) {
            return Err(self.bad_message(message.span));
        }
        Ok(())
    }

    /// Text with `{}`, or `{:.2f}`, for each run-time number, and these numbers.
    fn assertion_message(&mut self, message: &Expr) -> Fallible<(String, Vec<Value>)> {
        let term = self.operand(message)?;
        self.message_of(term, message.span)
    }

    fn message_of(&mut self, message: Term<H::Object>, span: Span) -> Fallible<(String, Vec<Value>)> {
        let mut text = String::new();
        let mut arguments = Vec::new();
        match message {
            Term::Str(literal) => text.push_str(&escaped_message(&literal)),
            Term::Text(pieces) => {
                for piece in pieces {
                    match piece {
                        TextPiece::Literal(literal) => text.push_str(&escaped_message(&literal)),
                        TextPiece::Value { term, spec, span } => {
                            self.message_part(term, &spec, span, &mut text, &mut arguments)?;
                        }
                    }
                }
            }
            _ => return Err(self.bad_message(span)),
        }
        Ok((text, arguments))
    }

    fn message_part(
        &mut self,
        term: Term<H::Object>,
        spec: &str,
        span: Span,
        text: &mut String,
        arguments: &mut Vec<Value>,
    ) -> Fallible<()> {
        let rvalue = self.rvalue(term, span)?;
        if let Some(formatted) = self.known_text(&rvalue, spec, span)? {
            text.push_str(&escaped_message(&formatted));
            return Ok(());
        }
        if let Term::Value(value) = &rvalue
            && matches!(self.data(*value), Data::Scalar(_))
        {
            let format =
                if spec.is_empty() { Format::default() } else { self.format_of(spec, *value, span)? };
            if format == Format::default() {
                text.push_str("{}");
            } else {
                let _ = write!(text, "{{:{format}}}");
            }
            arguments.push(*value);
            return Ok(());
        }
        let Some(items) = self.items(&rvalue, span)? else { return Err(self.bad_message(span)) };
        text.push('[');
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                text.push_str(", ");
            }
            self.message_part(item, spec, span, text, arguments)?;
        }
        text.push(']');
        Ok(())
    }

    fn bad_message(&self, span: Span) -> Box<octants_diag::Diagnostic> {
        self.error_with_help(
            Code::AssertMessage,
            span,
            "the message of an assertion must be a string or an f-string of numbers",
            "write `assert condition, f\"got {x}\"`",
        )
    }
}
