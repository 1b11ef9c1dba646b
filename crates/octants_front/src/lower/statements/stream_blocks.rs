//! `with oc.stream_parallel():` blocks: the branches of the kernel's one fork.
//!
//! ```text
//! with oc.stream_parallel():        fork {
//!     for i in a: …                   parallel_for … { … }
//!     b[0] = 1                        store %b[0], 1
//! with oc.stream_parallel():        } and {
//!     for i in c: …                   parallel_for … { … }
//!                                   }
//! ```
//!
//! What a block contains belongs to its branch by position. Beside blocks stand only statements that do not run, so all blocks of a kernel are
//! branches of one fork, which is appended when the kernel's last statement has been lowered. A block is recognised by the object that its
//! context manager resolves to, never by a name.

use std::fmt::Write as _;

use octants_diag::{Code, Diagnostic, Span};
use octants_ir::{OpKind, Region};

use crate::ast::{Expr, ExprKind, Stmt, StmtKind, WithItem};
use crate::host::{Host, Meaning};
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::flow::{Continuation, Flow, StreamBlocks};
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;
use crate::lower::statements::exits::any_statement;

const BLOCK: &str = "`with oc.stream_parallel():`";

/// What a `with` is given.
enum Manager<'e> {
    /// `oc.stream_parallel(…)`, and its first argument.
    Block { argument: Option<Span> },
    /// `oc.stream_parallel` without a call.
    Uncalled,
    /// Another object, by its expression and what that resolved to.
    Other { named: &'e Expr, resolved: Option<String> },
}

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn with_statement(&mut self, items: &[WithItem], body: &[Stmt], span: Span) -> Fallible<Flow> {
        self.check_managers(items, span)?;
        self.check_block_place(span)?;
        if self.options.graph {
            let message = format!("{BLOCK} in a kernel with graph=True");
            let help =
                "leave graph=True out: a kernel without it may have blocks, and runs as fast in this version";
            return Err(self.error_with_help(Code::StreamBlockInGraph, span, message, help));
        }
        self.unused_loop_config();
        let (region, flow) = self.open_region(&[], |inner, _| {
            inner.blocks.open = Some((inner.region, span));
            let flow = inner.scoped(body, span);
            inner.blocks.open = None;
            flow
        })?;
        self.unused_loop_config();
        self.end_region(region, span, &[]);
        self.blocks.heads.push(span);
        let has_code = self.kernel.regions[region].ops.len() > 1;
        if has_code {
            self.blocks.branches.push(region);
        }
        Ok(flow)
    }

    /// Appends the fork of all blocks, after the kernel's last statement.
    pub(crate) fn finish_blocks(&mut self) -> Fallible<()> {
        let Some(&first) = self.blocks.heads.first() else { return Ok(()) };
        if let Some(annotation) = self.frame().function.returns {
            let object = self.frame().object.clone();
            if self.return_annotation(&object, annotation)? != crate::host::Annotation::None {
                return Err(Box::new(self.block_return(annotation).label(first, "a block of this kernel")));
            }
        }
        let branches: Vec<Region> = std::mem::take(&mut self.blocks.branches);
        if !branches.is_empty() {
            self.at(first).op(OpKind::Fork, [], [], branches);
        }
        Ok(())
    }

    /// Called for every statement: what runs at the kernel's top level may not stand beside blocks. Of an `if` and a `for` it is not known
    /// yet whether they run; they say so by [`Lowerer::runs_beside_blocks`].
    pub(crate) fn check_beside_blocks(&mut self, stmt: &Stmt, rest: &Continuation<'_>) -> Fallible<()> {
        if !self.blocks.possible || self.frames.len() > 1 {
            return Ok(());
        }
        match &stmt.kind {
            StmtKind::Return(_) => return self.check_return_beside_blocks(stmt.span, rest.stmts),
            StmtKind::Pass
            | StmtKind::With { .. }
            | StmtKind::If { .. }
            | StmtKind::For { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Unsupported(_) => return Ok(()),
            StmtKind::Expr(expr) => {
                let is_comment = matches!(expr.kind, ExprKind::Str(_) | ExprKind::Unsupported("Ellipsis"));
                let called = self.called_intrinsic(expr)?;
                if is_comment || matches!(called, Some(Intrinsic::StaticAssert | Intrinsic::StaticPrint)) {
                    return Ok(());
                }
            }
            StmtKind::Assign { targets, value } => {
                let names = targets.iter().all(|target| matches!(target.kind, ExprKind::Name(_)));
                if names && self.is_static_call(value)? {
                    return Ok(());
                }
            }
            StmtKind::While { body, .. } => return self.runs_beside_blocks(stmt.span, &[body]),
            StmtKind::AugAssign { .. } | StmtKind::AnnAssign { .. } | StmtKind::Assert { .. } => {}
        }
        self.runs_beside_blocks(stmt.span, &[])
    }

    /// A statement with these bodies runs: it may not stand at the kernel's top level if there are blocks. A `with` in it says itself what
    /// is wrong.
    pub(crate) fn runs_beside_blocks(&mut self, span: Span, bodies: &[&[Stmt]]) -> Fallible<()> {
        let at_top = self.region == self.kernel.body && self.frames.len() == 1;
        if !self.blocks.possible || !at_top || bodies.iter().any(|body| has_with(body)) {
            return Ok(());
        }
        if let Some(&first) = self.blocks.heads.first() {
            return Err(self.mixed(span, first));
        }
        self.blocks.outside.get_or_insert(span);
        Ok(())
    }

    fn mixed(&self, span: Span, block: Span) -> Box<Diagnostic> {
        Box::new(
            self.diagnostic(
                Code::StreamBlockMixed,
                span,
                "all top-level statements of a kernel with `oc.stream_parallel` blocks must be such blocks: this one runs outside of them",
            )
            .label(block, "a block of this kernel")
            .help("move it into the block that needs it, or into a kernel that is launched before or after this one"),
        )
    }

    fn check_return_beside_blocks(&mut self, span: Span, rest: &[Stmt]) -> Fallible<()> {
        let block = match (self.blocks.open, self.blocks.heads.first()) {
            (Some((_, open)), _) => Some(open),
            (None, Some(&first)) => Some(first),
            (None, None) => rest.iter().find(|stmt| self.is_block(stmt)).map(|stmt| stmt.span),
        };
        match block {
            None => Ok(()),
            Some(block) => Err(Box::new(self.block_return(span).label(block, "a block of this kernel"))),
        }
    }

    fn block_return(&self, span: Span) -> Diagnostic {
        self.diagnostic(
            Code::StreamBlockReturn,
            span,
            "a kernel with `oc.stream_parallel` blocks cannot return: no branch comes last",
        )
        .help("write the result to an array or a field in a block, and read it after the launch")
    }

    /// Whether a statement that has not been reached is a block.
    fn is_block(&mut self, stmt: &Stmt) -> bool {
        let StmtKind::With { items, .. } = &stmt.kind else { return false };
        items.iter().any(|item| matches!(self.manager(&item.context), Ok(Manager::Block { .. })))
    }

    /// Where a block stands: at the top level of a kernel.
    fn check_block_place(&mut self, span: Span) -> Fallible<()> {
        if self.frames.len() > 1 {
            return Err(self.error_with_help(
                Code::StreamBlockPlace,
                span,
                "`oc.stream_parallel` can only be used inside @oc.kernel, not in a func",
                "write the block in the kernel, and call the func in it",
            ));
        }
        if let Some((_, outer)) = self.blocks.open {
            return Err(Box::new(
                self.diagnostic(
                    Code::StreamBlockPlace,
                    span,
                    "`oc.stream_parallel` blocks cannot be nested: a block is one branch, which runs in order",
                )
                .label(outer, "inside of this block")
                .help("write the blocks one after the other"),
            ));
        }
        if self.region != self.kernel.body {
            return Err(self.error_with_help(
                Code::StreamBlockPlace,
                span,
                "an `oc.stream_parallel` block must stand at the top level of a kernel, not in a run-time `if`, `while` or `for`",
                "put the `if` or the loop into the block, or decide it at compile time with `oc.static(...)`",
            ));
        }
        match self.blocks.outside {
            None => Ok(()),
            Some(outside) => Err(self.mixed(outside, span)),
        }
    }

    /// What stands between `with` and the colon: `oc.stream_parallel()` alone.
    fn check_managers(&mut self, items: &[WithItem], span: Span) -> Fallible<()> {
        let form = |lowerer: &Self, at: Span, message: &str, help: &str| {
            Err(lowerer.error_with_help(Code::StreamBlockForm, at, message, help))
        };
        let mut blocks = 0;
        for item in items {
            match self.manager(&item.context)? {
                Manager::Block { argument: None } => blocks += 1,
                Manager::Block { argument: Some(at) } => {
                    let message = "`oc.stream_parallel()` takes no arguments";
                    let help = "write a block for each branch; where they run is decided by the runtime";
                    return form(self, at, message, help);
                }
                Manager::Uncalled => {
                    let message = "`oc.stream_parallel` is not called";
                    return form(self, item.context.span, message, &format!("add `()`: {BLOCK}"));
                }
                Manager::Other { named, resolved } => {
                    if blocks == 0 {
                        return Err(self.other_manager(named, resolved, span));
                    }
                }
            }
        }
        if items.len() > 1 {
            let message = "`oc.stream_parallel()` must be the only context manager of its `with`";
            return form(self, span, message, &format!("write {BLOCK}, once for each branch"));
        }
        if let Some(target) = items.first().and_then(|item| item.target.as_ref()) {
            let message = "`oc.stream_parallel()` has no value that `as` could name";
            return form(self, target.span, message, &format!("write {BLOCK}"));
        }
        Ok(())
    }

    fn manager<'e>(&mut self, context: &'e Expr) -> Fallible<Manager<'e>> {
        let (named, called) = match &context.kind {
            ExprKind::Call { callee, args, keywords } => {
                let first = args.first().map(|arg| arg.span);
                (&**callee, Some(first.or_else(|| keywords.first().map(|keyword| keyword.span))))
            }
            _ => (context, None),
        };
        let mut term = match named.kind {
            ExprKind::Name(_) | ExprKind::Attribute { .. } => self.expr(named)?,
            _ => return Ok(Manager::Other { named, resolved: None }),
        };
        while let Term::Static(inner) = term {
            term = *inner;
        }
        let Term::Object(object) = term else {
            let what = self.describe(&term);
            return Ok(Manager::Other { named, resolved: Some(what) });
        };
        if let Meaning::Intrinsic(Intrinsic::StreamParallel) = self.host.meaning(&object) {
            return Ok(called.map_or(Manager::Uncalled, |argument| Manager::Block { argument }));
        }
        let host = self.host;
        let mut resolved = host.repr(&object);
        if let Meaning::Callable { .. } = host.meaning(&object)
            && let Ok(module) = host.getattr(&object, "__module__", self)
            && let Meaning::Str(module) = host.meaning(&module)
        {
            let _ = write!(resolved, " of the module `{module}`");
        }
        Ok(Manager::Other { named, resolved: Some(resolved) })
    }

    fn other_manager(&self, named: &Expr, resolved: Option<String>, span: Span) -> Box<Diagnostic> {
        let mut diagnostic =
            self.diagnostic(Code::WithStatement, span, "this context manager cannot be used in a kernel");
        if let Some(resolved) = resolved {
            diagnostic = diagnostic.note(format!("`{}` is {resolved}", self.text(named.span)));
        }
        Box::new(diagnostic.help(format!("the only context manager of kernels is Octants' own: {BLOCK}")))
    }

    /// `oc.stream_parallel()` anywhere else than in a `with`.
    pub(crate) fn stray_stream_parallel(&self, span: Span) -> Box<Diagnostic> {
        let message = "`oc.stream_parallel()` begins a block: it has no value";
        self.error_with_help(Code::StreamBlockForm, span, message, format!("write {BLOCK}"))
    }
}

impl StreamBlocks {
    /// For a function with this body.
    pub(crate) fn of(body: &[Stmt]) -> Self {
        Self { possible: has_with(body), ..Self::default() }
    }
}

fn has_with(stmts: &[Stmt]) -> bool {
    any_statement(stmts, &|stmt| matches!(stmt.kind, StmtKind::With { .. }))
}
