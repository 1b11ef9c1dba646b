//! `assert`: compiled in debug mode only.

use octants_diag::{Code, Span};
use octants_ir::{Data, OpKind, Value};

use super::Lowerer;
use super::error::Fallible;
use super::term::Term;
use crate::ast::{Expr, ExprKind, TextPart};
use crate::host::Host;

impl<H: Host> Lowerer<'_, H> {
    pub(super) fn assertion(&mut self, test: &Expr, message: Option<&Expr>, span: Span) -> Fallible<()> {
        if !self.options.debug {
            return Ok(());
        }
        let term = self.expr(test)?;
        let holds = self.condition(term, test.span)?;
        let (text, arguments) = match message {
            None => (without_fields(&format!("assertion failed: {}", self.text(test.span))), Vec::new()),
            Some(message) => self.assertion_message(message)?,
        };
        let operands: Vec<_> = std::iter::once(holds).chain(arguments).collect();
        self.at(span).op(OpKind::Assert(text.into()), operands, [], []);
        Ok(())
    }

    /// Text with `{}` for each run-time number, and these numbers.
    fn assertion_message(&mut self, message: &Expr) -> Fallible<(String, Vec<Value>)> {
        let mut text = String::new();
        let mut arguments = Vec::new();
        if let ExprKind::FString(parts) = &message.kind {
            for part in parts {
                match part {
                    TextPart::Text(literal) => text.push_str(&without_fields(literal)),
                    TextPart::Field { value, spec } => {
                        let term = self.operand(value)?;
                        match term {
                            Term::Value(value) if matches!(self.data(value), Data::Scalar(_)) => {
                                text.push_str("{}");
                                arguments.push(value);
                            }
                            term if term.is_static() => {
                                let object = self.host_object(&term)?;
                                let host = self.host;
                                let formatted = host.format(&object, spec.as_deref().unwrap_or(""), self);
                                let formatted =
                                    formatted.map_err(|exception| self.host_error(exception, value.span))?;
                                text.push_str(&without_fields(&formatted));
                            }
                            _ => return Err(self.bad_message(value.span)),
                        }
                    }
                }
            }
            return Ok((text, arguments));
        }
        match self.operand(message)? {
            Term::Str(literal) => Ok((without_fields(&literal), arguments)),
            _ => Err(self.bad_message(message.span)),
        }
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

/// The user's own braces must not be taken for a field.
fn without_fields(text: &str) -> String {
    text.replace("{}", "{ }")
}
