//! Python text to the language's own tree. The only module that knows the parser.

mod convert;
mod deep;
mod statements;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use octants_diag::{Code, Diagnostic, FileId, Span};
use ruff_python_ast::Stmt;
use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_parser::{Mode, ParseError, ParseOptions, parse_unchecked};
use ruff_text_size::{Ranged, TextRange};

use crate::ast::Function;
use crate::host::FunctionSource;

/// One parsed file, with every function in it. All of them are converted at once: a deep stack costs as much as many conversions.
pub(crate) struct ParsedFile {
    file: FileId,
    errors: Vec<ParseError>,
    /// The bytes at which lines begin.
    line_starts: Vec<usize>,
    text_end: usize,
    /// By name, in the order of the text; a function stands before those inside it.
    functions: HashMap<String, Vec<Found>>,
}

/// A function of a file.
struct Found {
    range: TextRange,
    /// Where it begins, with its decorators, and where its name does.
    start: usize,
    name_start: usize,
    function: Arc<Function>,
    /// Where expressions are nested too deeply.
    too_deep: Option<Span>,
}

impl ParsedFile {
    pub(crate) fn new(file: FileId, text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let line_starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        // The notebook mode accepts everything that the module mode does, and lines that start with `%` or `!`.
        let (errors, functions) = deep::on_deep_stack(|| {
            let parsed = parse_unchecked(text, ParseOptions::from(Mode::Ipython));
            let errors = parsed.errors().to_vec();
            let mut collector = Collector { file, functions: HashMap::new() };
            if let Some(module) = parsed.try_into_module() {
                collector.visit_body(&module.into_syntax().body);
            }
            (errors, collector.functions)
        });
        Self { file, errors, line_starts, text_end: text.len(), functions }
    }

    /// The function that starts at the source's line.
    pub(crate) fn function(&self, source: &FunctionSource) -> Result<Arc<Function>, Box<Diagnostic>> {
        let line = self.line_range(source.line);
        let here = |found: &&Found| found.start <= line.end && line.start <= found.name_start;
        let found = self.functions.get(&source.name).and_then(|all| all.iter().find(here));
        let overlaps =
            |error: &&ParseError| found.is_none_or(|found| found.range.intersect(error.location).is_some());
        if let Some(error) = self.errors.iter().find(overlaps) {
            let message = format!("the file cannot be parsed: {}", error.error);
            return Err(Box::new(
                Diagnostic::new(Code::SourceUnparsable, message)
                    .at(span_of(self.file, error.location))
                    .help("if the file changed after it was imported, import it again"),
            ));
        }
        let Some(found) = found else {
            let message =
                format!("the source of `{}` cannot be found in {}", source.qualname, source.file_name);
            return Err(Box::new(
                Diagnostic::new(Code::SourceUnavailable, message)
                    .note(format!("there is no `def {}` at line {}", source.name, source.line))
                    .help("if the file changed after it was imported, import it again"),
            ));
        };
        if let Some(span) = found.too_deep {
            let message = format!("expressions are nested more than {} deep", deep::MAX_EXPR_DEPTH);
            return Err(Box::new(
                Diagnostic::new(Code::TooDeep, message).at(span).help("use names for parts of it"),
            ));
        }
        Ok(Arc::clone(&found.function))
    }

    /// The bytes of a 1-based line, without its end.
    fn line_range(&self, line: u32) -> Range<usize> {
        let index = (line as usize).saturating_sub(1);
        let start = self.line_starts.get(index).copied().unwrap_or(self.text_end);
        let end = self.line_starts.get(index + 1).map_or(self.text_end, |next| next - 1);
        start..end.max(start)
    }
}

impl Drop for ParsedFile {
    fn drop(&mut self) {
        let functions = std::mem::take(&mut self.functions);
        deep::on_deep_stack(|| drop(functions));
    }
}

fn span_of(file: FileId, range: TextRange) -> Span {
    Span::new(file, range.start().to_u32(), range.end().to_u32())
}

/// Converts all functions, at any depth.
struct Collector {
    file: FileId,
    functions: HashMap<String, Vec<Found>>,
}

impl<'a> StatementVisitor<'a> for Collector {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if let Stmt::FunctionDef(function) = stmt {
            let start = function.decorator_list.first().map_or(function.start(), Ranged::start);
            let converted = convert::function(self.file, function);
            self.functions.entry(function.name.as_str().to_owned()).or_default().push(Found {
                range: function.range(),
                start: start.min(function.start()).to_usize(),
                name_start: function.name.start().to_usize(),
                too_deep: deep::too_deep(&converted),
                function: Arc::new(converted),
            });
        }
        walk_stmt(self, stmt);
    }
}
