//! Spans, the source map, diagnostics with codes, and their rendering.
//!
//! A diagnostic is a value: a code, one message, labelled spans, the chain of inlined calls, notes and help. Rendering is
//! separate and is the only place that knows `annotate-snippets`.

mod code;
mod diagnostic;
mod programs;
mod render;
mod source_map;
mod span;

pub use code::{Class, Code, explain};
pub use diagnostic::{Diagnostic, Frame, Label, Severity};
pub use programs::{PRELUDE, Programs, reference};
pub use render::{Style, quote, render, render_all};
pub use source_map::{SourceFile, SourceMap};
pub use span::{FileId, Span};
