//! A diagnostic as a value.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::code::{Class, Code};
use crate::span::Span;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    Error,
    Warning,
}

/// A second site, with what it has to do with the first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    pub span: Span,
    pub text: String,
}

/// A call that led to the place of a diagnostic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The function that was called.
    pub function: String,
    /// The call, in its caller's text.
    pub call: Span,
    /// Whether the function's body stands in place of the call.
    pub inlined: bool,
}

/// What is wrong, where, and what to do about it.
#[derive(Clone)]
pub struct Diagnostic {
    pub code: Code,
    pub message: String,
    /// Where; nothing for what has no place in a file.
    pub span: Option<Span>,
    /// What the underlined text is to the message; may be empty.
    pub label: String,
    pub labels: Vec<Label>,
    /// Calls that led to the span, outermost first.
    pub frames: Vec<Frame>,
    pub notes: Vec<String>,
    pub help: Vec<String>,
    /// An exception of the host language that caused it, for whoever raises the diagnostic to chain.
    pub cause: Option<Arc<dyn Any + Send + Sync>>,
}

impl Diagnostic {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            span: None,
            label: String::new(),
            labels: Vec::new(),
            frames: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
            cause: None,
        }
    }

    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// What the underlined text is to the message.
    #[must_use]
    pub fn marked(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    #[must_use]
    pub fn called_from(mut self, frames: Vec<Frame>) -> Self {
        self.frames = frames;
        self
    }

    pub fn class(&self) -> Class {
        self.code.class()
    }

    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

impl fmt::Debug for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} at {:?}", self.code.name(), self.message, self.span)
    }
}
