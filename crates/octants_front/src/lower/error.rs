//! Making diagnostics of what is being lowered.

use std::path::Path;

use octants_diag::{Code, Diagnostic, Frame, Span};

use crate::host::{Host, HostException};
use crate::lower::Lowerer;
pub(crate) use crate::lower::data::Fallible;

/// A count and what is counted: "1 value", "2 values". Words that end otherwise are given whole.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

impl<H: Host> Lowerer<'_, H> {
    /// A diagnostic at a span, with the chain of calls above it.
    pub(crate) fn diagnostic(&self, code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(code, message).at(span).called_from(self.calls())
    }

    pub(crate) fn error(&self, code: Code, span: Span, message: impl Into<String>) -> Box<Diagnostic> {
        Box::new(self.diagnostic(code, span, message))
    }

    pub(crate) fn error_with_help(
        &self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Box<Diagnostic> {
        Box::new(self.diagnostic(code, span, message).help(help))
    }

    /// Collects a warning, once per place in the text: unrolled and inlined code repeats.
    pub(crate) fn warn(&mut self, diagnostic: Diagnostic) {
        let known = |w: &Diagnostic| w.code == diagnostic.code && w.span == diagnostic.span;
        if !self.warnings.iter().any(known) {
            self.warnings.push(diagnostic);
        }
    }

    /// Whether a function is one of the package's own.
    pub(crate) fn is_library(&self, frame: &crate::lower::Frame<H::Object>) -> bool {
        let Some(folder) = &self.options.library else { return false };
        let file = self.sources.map().file(frame.function.name_span.file);
        file.is_some_and(|file| Path::new(&*file.name).starts_with(folder))
    }

    /// The calls that led here, outermost first.
    pub(crate) fn calls(&self) -> Vec<Frame> {
        let frame = |frame: &crate::lower::Frame<H::Object>| {
            let call = frame.call.as_ref()?;
            let inlined = call.inlined_at.is_some();
            Some(Frame { function: frame.name.to_string(), call: call.span, inlined })
        };
        self.frames.iter().filter_map(frame).collect()
    }

    /// The host wants the lowering to end.
    pub(crate) fn interrupted(&mut self, exception: HostException, span: Span) -> Box<Diagnostic> {
        let mut diagnostic =
            self.diagnostic(Code::KernelInterrupted, span, "interrupted while compiling".to_owned());
        diagnostic.cause = exception.cause;
        Box::new(diagnostic)
    }

    /// An exception that host code raised while it was evaluated at compile time.
    pub(crate) fn host_error(&mut self, exception: HostException, span: Span) -> Box<Diagnostic> {
        if let Some(failure) = self.trace_failure.take() {
            return failure;
        }
        let message = if exception.message.is_empty() {
            exception.type_name.clone()
        } else {
            format!("{}: {}", exception.type_name, exception.message)
        };
        if let Some(library) = self.frames.iter().position(|frame| self.is_library(frame))
            && let Some(call) = self.frames[library].call.as_ref().map(|call| call.span)
        {
            // The package's own checks speak of the user's call.
            let refused =
                exception.type_name.starts_with("Octants") || exception.type_name == "AssertionError";
            let (code, message) = match &*exception.type_name {
                "OctantsTypeError" => (Code::LibraryArgument, exception.message),
                _ if refused => (Code::HostError, exception.message),
                _ => (Code::HostError, message),
            };
            let calls = self.calls().into_iter().take(library - 1).collect();
            let mut diagnostic = Diagnostic::new(code, message).at(call).called_from(calls);
            diagnostic.cause = exception.cause;
            return Box::new(diagnostic);
        }
        let mut diagnostic =
            self.diagnostic(Code::HostError, span, message).marked("evaluated at compile time");
        if !exception.traceback.is_empty() {
            diagnostic = diagnostic.note(format!("Python's own stack:\n{}", exception.traceback.trim_end()));
        }
        diagnostic.cause = exception.cause;
        Box::new(diagnostic)
    }
}
