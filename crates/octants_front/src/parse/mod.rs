//! Python text to the language's own tree. The only module that knows the parser.

mod convert;
mod deep;
mod statements;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use octants_diag::{Code, Diagnostic, FileId, Span};
use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::{ModModule, Stmt, StmtFunctionDef};
use ruff_python_parser::{Mode, ParseError, ParseOptions, parse_unchecked};
use ruff_text_size::{Ranged, TextRange};

use crate::ast::Function;
use crate::host::FunctionSource;

/// One parsed file. Functions are converted when first asked for.
pub(crate) struct ParsedFile {
    module: Option<ModModule>,
    errors: Vec<ParseError>,
    text: Arc<str>,
    functions: Mutex<HashMap<(u32, String), Arc<Function>>>,
}

impl ParsedFile {
    pub(crate) fn new(text: Arc<str>) -> Self {
        // The notebook mode accepts everything that the module mode does, and lines that start with `%` or `!`.
        let (module, errors) = deep::on_deep_stack(|| {
            let parsed = parse_unchecked(&text, ParseOptions::from(Mode::Ipython));
            let errors = parsed.errors().to_vec();
            (parsed.try_into_module().map(ruff_python_parser::Parsed::into_syntax), errors)
        });
        Self { module, errors, text, functions: Mutex::default() }
    }

    /// The function that starts at the source's line.
    pub(crate) fn function(
        &self,
        file: FileId,
        source: &FunctionSource,
    ) -> Result<Arc<Function>, Box<Diagnostic>> {
        let key = (source.line, source.name.clone());
        if let Some(function) = self.lock().get(&key) {
            return Ok(function.clone());
        }
        let function = Arc::new(deep::on_deep_stack(|| self.convert(file, source))?);
        Ok(self.lock().entry(key).or_insert(function).clone())
    }

    fn convert(&self, file: FileId, source: &FunctionSource) -> Result<Function, Box<Diagnostic>> {
        let mut finder = Finder { name: &source.name, line: self.line_range(source.line), found: None };
        if let Some(module) = &self.module {
            finder.visit_body(&module.body);
        }
        let found = finder.found;
        let overlaps = |error: &&ParseError| {
            found.is_none_or(|function| function.range().intersect(error.location).is_some())
        };
        if let Some(error) = self.errors.iter().find(overlaps) {
            let span = span_of(file, error.location);
            return Err(Box::new(
                Diagnostic::new(
                    Code::SourceUnparsable,
                    format!("the file cannot be parsed: {}", error.error),
                )
                .at(span)
                .help("if the file changed after it was imported, import it again"),
            ));
        }
        let function = found.map(|function| convert::function(file, function));
        if let Some(function) = &function
            && let Some(span) = deep::too_deep(function)
        {
            let message = format!("expressions are nested more than {} deep", deep::MAX_EXPR_DEPTH);
            return Err(Box::new(
                Diagnostic::new(Code::TooDeep, message).at(span).help("use names for parts of it"),
            ));
        }
        function.ok_or_else(|| {
            Box::new(
                Diagnostic::new(
                    Code::SourceUnavailable,
                    format!("the source of `{}` cannot be found in {}", source.qualname, source.file_name),
                )
                .note(format!("there is no `def {}` at line {}", source.name, source.line))
                .help("if the file changed after it was imported, import it again"),
            )
        })
    }

    /// The bytes of a 1-based line.
    fn line_range(&self, line: u32) -> Range<usize> {
        let mut start = 0;
        for text in self.text.split_inclusive('\n').take((line as usize).saturating_sub(1)) {
            start += text.len();
        }
        let length = self.text[start..].find('\n').unwrap_or(self.text.len() - start);
        start..start + length
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(u32, String), Arc<Function>>> {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ParsedFile {
    fn drop(&mut self) {
        let (module, functions) = (self.module.take(), std::mem::take(&mut *self.lock()));
        deep::on_deep_stack(|| drop((module, functions)));
    }
}

fn span_of(file: FileId, range: TextRange) -> Span {
    Span::new(file, range.start().to_u32(), range.end().to_u32())
}

/// Looks for a function by its name and first line, at any depth.
struct Finder<'a> {
    name: &'a str,
    /// The bytes of the line.
    line: Range<usize>,
    found: Option<&'a StmtFunctionDef>,
}

impl<'a> StatementVisitor<'a> for Finder<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if self.found.is_some() {
            return;
        }
        if let Stmt::FunctionDef(function) = stmt
            && function.name.as_str() == self.name
        {
            let start = function.decorator_list.first().map_or(function.start(), Ranged::start);
            let start = start.min(function.start()).to_usize();
            if start <= self.line.end && self.line.start <= function.name.start().to_usize() {
                self.found = Some(function);
                return;
            }
        }
        walk_stmt(self, stmt);
    }
}
