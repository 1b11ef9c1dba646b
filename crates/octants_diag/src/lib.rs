//! Spans, the source map, diagnostics with codes, and their rendering.
//!
//! A diagnostic is a value: a code, one message, labelled spans, the chain of inlined calls, notes and help. Rendering is
//! separate and is the only place that knows `annotate-snippets`.

mod span;

pub use span::{FileId, Span};
