//! Statements, by kind of node, and blocks of them.

use octants_diag::{Code, Span};

use crate::ast::{ExprKind, Stmt, StmtKind};
use crate::host::Host;
use crate::lower::Lowerer;
use crate::lower::data::flow::{Continuation, Flow, LoopKind};
use crate::lower::error::Fallible;

impl<H: Host> Lowerer<'_, H> {
    /// The statements of a function's body.
    pub(crate) fn statements(&mut self, stmts: &[Stmt]) -> Fallible<Flow> {
        self.block(stmts, None)
    }

    /// Statements with a scope of their own.
    pub(crate) fn scoped(&mut self, stmts: &[Stmt], span: Span) -> Fallible<Flow> {
        self.frame_mut().push_scope();
        let around = self.begin_block(None);
        let flow = self.block(stmts, None)?;
        self.switch_block(around);
        self.frame_mut().pop_scope(span);
        Ok(flow)
    }

    /// Statements, then what follows them.
    pub(crate) fn block(
        &mut self,
        stmts: &[Stmt],
        continuation: Option<&Continuation<'_>>,
    ) -> Fallible<Flow> {
        if let Some(groups) = self.groups(stmts) {
            return self.grouped_block(&groups, continuation, stmts[0].span);
        }
        for (at, stmt) in stmts.iter().enumerate() {
            let rest = Continuation { stmts: &stmts[at + 1..], next: continuation, scope: None, group: None };
            let is_assignment = matches!(stmt.kind, StmtKind::Assign { .. });
            if !is_assignment {
                self.flush_pending()?;
            }
            let held = self.held_stores;
            let flow = self.statement(stmt, &rest)?;
            if is_assignment && held == self.held_stores {
                self.flush_pending()?;
            }
            self.clear_retired(stmt.span);
            match flow {
                Flow::Next => {}
                left => return Ok(left),
            }
        }
        match continuation {
            None => Ok(Flow::Next),
            Some(continuation) => {
                let ended = self.blocks_of_ops.open();
                if let Some(span) = continuation.scope {
                    self.frame_mut().pop_scope(span);
                    self.switch_block(self.blocks_of_ops.around(ended));
                }
                if let Some(group) = continuation.group {
                    self.end_group(group)?;
                }
                let flow = self.block(continuation.stmts, continuation.next)?;
                if let Some(_span) = continuation.scope {
                    // The caller that pushed the scope pops one: give it one to pop.
                    self.frame_mut().push_scope();
                    self.switch_block(ended);
                }
                // The caller must not lower the tail again.
                Ok(if flow == Flow::Next { Flow::Done } else { flow })
            }
        }
    }

    fn statement(&mut self, stmt: &Stmt, rest: &Continuation<'_>) -> Fallible<Flow> {
        if let Err(exception) = self.host.check_interrupt() {
            return Err(self.interrupted(exception, stmt.span));
        }
        self.check_stack(stmt.span)?;
        let outer = std::mem::replace(&mut self.statement_region, self.region);
        let flow = self.statement_of_kind(stmt, rest);
        self.statement_region = outer;
        flow
    }

    fn statement_of_kind(&mut self, stmt: &Stmt, rest: &Continuation<'_>) -> Fallible<Flow> {
        let span = stmt.span;
        self.check_beside_blocks(stmt, rest)?;
        match &stmt.kind {
            StmtKind::Expr(expr) => {
                // A string alone is a docstring or a comment, and `...` says nothing.
                if !matches!(expr.kind, ExprKind::Str(_) | ExprKind::Unsupported("Ellipsis")) {
                    self.expr(expr)?;
                }
                Ok(Flow::Next)
            }
            StmtKind::Assign { targets, value } => self.assign(targets, value).map(|()| Flow::Next),
            StmtKind::AugAssign { target, op, value } => {
                self.assign_augmented(target, *op, value, span).map(|()| Flow::Next)
            }
            StmtKind::AnnAssign { target, annotation, value } => {
                self.assign_annotated(target, annotation, value.as_ref(), span).map(|()| Flow::Next)
            }
            StmtKind::If { test, body, orelse } => self.if_statement(test, body, orelse, rest, span),
            StmtKind::While { test, body, orelse } => {
                self.check_loop_else(*orelse, "while")?;
                self.while_statement(test, body, span)?;
                self.after_loop(body, rest, Flow::Next, span)
            }
            StmtKind::For { target, iter, body, orelse } => {
                self.check_loop_else(*orelse, "for")?;
                let flow = self.for_statement(target, iter, body, span)?;
                self.after_loop(body, rest, flow, span)
            }
            StmtKind::Break => self.leave(true, span),
            StmtKind::Continue => self.leave(false, span),
            StmtKind::Return(value) => {
                self.return_statement(value.as_ref(), span)?;
                Ok(if self.frame().exit.is_some() { Flow::Done } else { Flow::Returned })
            }
            StmtKind::Assert { test, message } => {
                self.assertion(test, message.as_ref(), span).map(|()| Flow::Next)
            }
            StmtKind::Pass => Ok(Flow::Next),
            StmtKind::With { items, body } => self.with_statement(items, body, span),
            StmtKind::Unsupported(node) => {
                let diagnostic =
                    self.diagnostic(Code::UnsupportedStatement, span, format!("Unsupported node \"{node}\""));
                Err(Box::new(match *node {
                    "FunctionDef" => {
                        diagnostic.help("define the function outside and decorate it with `@oc.func`")
                    }
                    "Try" | "TryStar" | "Raise" => {
                        diagnostic.help("kernels have no exceptions; check with `assert` in debug mode")
                    }
                    "Import" | "ImportFrom" => diagnostic.help("import at the top of the file"),
                    "Match" => diagnostic.help("use `if` and `elif`"),
                    "Delete" => diagnostic.help("leave it out: a variable ends with its block"),
                    "ClassDef" => {
                        diagnostic.help("define the class outside, for example as an `@oc.dataclass`")
                    }
                    "AsyncFor" | "AsyncWith" => {
                        diagnostic.help("take `async` away: loops run in parallel anyway")
                    }
                    "Global" | "Nonlocal" => {
                        diagnostic.help("globals are constants in a kernel; pass an array to write to")
                    }
                    _ => diagnostic,
                }))
            }
        }
    }

    fn check_loop_else(&self, orelse: Option<Span>, word: &str) -> Fallible<()> {
        match orelse {
            None => Ok(()),
            Some(body) => Err(self.error_with_help(
                Code::LoopElse,
                self.word_before(body, "else"),
                format!("'else' clause for '{word}' is not supported in a kernel"),
                "keep a flag and test it after the loop",
            )),
        }
    }

    /// A word that begins a line, at or above the line of a span.
    fn word_before(&self, span: Span, word: &str) -> Span {
        let map = self.sources.map();
        let Some(file) = map.file(span.file) else { return span };
        let text = &file.text[..span.start as usize];
        let mut end = text.len();
        for line in text.split_inclusive('\n').rev() {
            let start = end - line.len();
            let indent = line.len() - line.trim_start().len();
            if line[indent..].starts_with(word) {
                let at = (start + indent) as u32;
                return Span::new(span.file, at, at + word.len() as u32);
            }
            end = start;
        }
        span
    }

    /// `break` and `continue`.
    fn leave(&mut self, is_break: bool, span: Span) -> Fallible<Flow> {
        let word = if is_break { "break" } else { "continue" };
        let depth = self.frame().depth;
        let Some(innermost) = self.frame().loops.last() else {
            return Err(self.error(Code::StrayBreak, span, format!("'{word}' outside of a loop")));
        };
        let (skip, broken) = match &innermost.kind {
            LoopKind::Static => {
                if depth > innermost.depth {
                    return Err(self.error_with_help(
                        Code::StaticBreak,
                        span,
                        format!("Cannot {word} a static loop inside a non-static if"),
                        "make the condition `oc.static(...)`, or the loop a run-time one",
                    ));
                }
                return Ok(if is_break { Flow::StaticBreak } else { Flow::StaticContinue });
            }
            LoopKind::Parallel if is_break => {
                let place = innermost.span;
                return Err(Box::new(
                    self.diagnostic(Code::BreakOutermost, span, "Cannot break in the outermost loop")
                        .label(place, "this loop runs in parallel")
                        .help("put `oc.loop_config(serialize=True)` before the loop to run it in order"),
                ));
            }
            LoopKind::Parallel => (innermost.skip, None),
            LoopKind::Serial { broken } => (innermost.skip, *broken),
        };
        let mut builder = self.at(span);
        let flags = [skip, broken.filter(|_| is_break)];
        for flag in flags.into_iter().flatten() {
            let yes = builder.constant(octants_ir::Const::bool(true));
            builder.store(flag, &[], yes);
        }
        self.frame_mut().ended = true;
        Ok(Flow::Done)
    }
}
