//! Static loops: unrolled at compile time.

use octants_diag::{Code, Span};

use crate::ast::{Expr, ExprKind, Stmt};
use crate::host::Host;
use crate::lower::Lowerer;
use crate::lower::data::flow::{Flow, Loop, LoopKind};
use crate::lower::data::scope::{AliasKind, Binding};
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn unrolled_loop(
        &mut self,
        target: &Expr,
        items: &Term<H::Object>,
        iter_span: Span,
        body: &[Stmt],
        span: Span,
    ) -> Fallible<Flow> {
        let items = self.static_items(items, iter_span)?;
        let limit = self.options.unrolling_limit as usize;
        if limit > 0 && items.len() > limit && !self.is_library(self.frame()) {
            let count = items.len();
            let warning = self
                .diagnostic(
                    Code::UnrollLimit,
                    iter_span,
                    format!("a static loop is unrolled {count} times, more than the limit of {limit}"),
                )
                .help("use a run-time loop, or raise `unrolling_limit`");
            self.warn(warning);
        }
        let mut result = Flow::Next;
        for item in items {
            let frame = self.frame_mut();
            frame.push_scope();
            let depth = frame.depth;
            frame.loops.push(Loop { kind: LoopKind::Static, depth, skip: None, span, gives_up: false });
            self.bind_static(target, item)?;
            let flow = self.block(body, None)?;
            let frame = self.frame_mut();
            frame.loops.pop();
            frame.pop_scope(span);
            match flow {
                Flow::Next | Flow::StaticContinue => {}
                Flow::StaticBreak => break,
                Flow::Done | Flow::Returned => {
                    result = flow;
                    break;
                }
            }
        }
        Ok(result)
    }

    /// The items of anything that can be iterated at compile time.
    pub(crate) fn static_items(
        &mut self,
        term: &Term<H::Object>,
        span: Span,
    ) -> Fallible<Vec<Term<H::Object>>> {
        if let Some(items) = self.items(term, span)? {
            return Ok(items);
        }
        match self.rvalue(term.clone(), span)? {
            // Python would index it until that fails, which a func never does while compiling.
            Term::Object(object) if self.is_indexed_by_func(&object) => {
                let what = self.describe(&Term::Object(object));
                let message =
                    format!("{what} cannot be iterated at compile time: its `__getitem__` is a func");
                Err(self.error(Code::LoopIterable, span, message))
            }
            Term::Object(object) => {
                self.exposed(&Term::Object(object.clone()), span)?;
                let host = self.host;
                let items = self
                    .evaluating(span, |lowerer| host.iterate(&object, lowerer))
                    .map_err(|e| self.host_error(e, span))?;
                Ok(items.into_iter().map(Term::Object).collect())
            }
            other => {
                let what = self.describe(&other);
                Err(self.error(
                    Code::LoopIterable,
                    span,
                    format!("{what} cannot be iterated at compile time"),
                ))
            }
        }
    }

    /// Binds the variables of a static loop or a comprehension.
    pub(crate) fn bind_static(&mut self, target: &Expr, item: Term<H::Object>) -> Fallible<()> {
        match &target.kind {
            ExprKind::Name(name) => {
                if !self.frame().in_comprehension() {
                    self.check_loop_variable(name, target.span)?;
                }
                let binding = Binding::Alias { term: item, kind: AliasKind::Static, span: target.span };
                self.frame_mut().declare(name.clone(), binding);
                Ok(())
            }
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                self.refuse_starred(targets)?;
                let items = Term::Tuple(self.static_items(&item, target.span)?);
                let items = self.unpack(&items, targets.len(), target.span, target.span)?;
                for (target, item) in targets.iter().zip(items) {
                    self.bind_static(target, item)?;
                }
                Ok(())
            }
            _ => Err(self.error(Code::LoopTargets, target.span, "a loop variable must be a plain name")),
        }
    }
}
