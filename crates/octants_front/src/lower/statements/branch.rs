//! `if`: static ones choose a branch now, others become an `if` op.
//!
//! A branch may leave the enclosing loop's iteration. There are no jumps, so what follows the `if` moves:
//!
//! ```text
//! if c: continue        if c { } else { rest }          the branch always leaves: no flag is needed
//! rest
//!
//! if c:                 skip = false
//!     if d: continue    if c { if d { skip = true } else { … } }
//!     …                 if not skip { rest }            it may leave from deeper down
//! rest
//! ```

use octants_diag::Span;
use octants_ir::{Const, Data, OpKind, Region, Scalar, Value};

use super::exits::{always_leaves, may_leave, may_return};
use crate::ast::{Expr, Stmt};
use crate::host::Host;
use crate::lower::Lowerer;
use crate::lower::data::flow::{Flow, Loop, Tail};
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;

/// A branch of a run-time `if`.
struct Branch {
    region: Region,
    /// Whether every path through it returns, or leaves the loop's iteration.
    ends: bool,
}

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn if_statement(
        &mut self,
        test: &Expr,
        body: &[Stmt],
        orelse: &[Stmt],
        rest: &Tail<'_>,
        span: Span,
    ) -> Fallible<Flow> {
        let condition = self.expr(test)?;
        if let Term::Static(inner) = &condition {
            let truth = self.static_truth(inner, test.span)?;
            return self.chosen_branch(if truth { body } else { orelse }, rest);
        }
        let condition = self.condition(condition, test.span)?;
        let returns = self.returns_anywhere();
        let jumps = (may_leave(body) || may_leave(orelse)) && !self.in_static_loop();
        if !jumps && !(returns && (may_return(body) || may_return(orelse))) {
            let yes = self.branch(body, span)?;
            let no = self.branch(orelse, span)?;
            self.finish_if(condition, &yes, &no, span);
            return Ok(Flow::Next);
        }
        if always_leaves(body, returns) {
            let yes = self.branch(body, span)?;
            let no = self.branch_and_rest(orelse, rest, span)?;
            self.finish_if(condition, &yes, &no, span);
            return Ok(Flow::Done);
        }
        if always_leaves(orelse, returns) {
            let yes = self.branch_and_rest(body, rest, span)?;
            let no = self.branch(orelse, span)?;
            self.finish_if(condition, &yes, &no, span);
            return Ok(Flow::Done);
        }
        self.guarded(condition, body, orelse, rest, span)
    }

    /// The branch of a static `if`: its statements stand in the enclosing block.
    fn chosen_branch(&mut self, branch: &[Stmt], rest: &Tail<'_>) -> Fallible<Flow> {
        if (may_leave(branch) && !self.in_static_loop()) || (self.returns_anywhere() && may_return(branch)) {
            // It may contain a run-time `if` that needs what follows.
            return self.block(branch, Some(rest));
        }
        self.block(branch, None)
    }

    /// The function is not inlined: it may return from inside of blocks.
    fn returns_anywhere(&self) -> bool {
        self.frame().exit.is_some()
    }

    /// The nearest loop is unrolled, so leaving it is not a matter of control flow.
    fn in_static_loop(&self) -> bool {
        self.frame().loops.last().is_none_or(Loop::is_static)
    }

    /// A branch as a region.
    fn branch(&mut self, stmts: &[Stmt], span: Span) -> Fallible<Branch> {
        let ended = std::mem::replace(&mut self.frame_mut().ended, false);
        self.frame_mut().depth += 1;
        let (region, ()) = self.open_region(&[], |inner, _| inner.scoped(stmts, span).map(|_| ()))?;
        self.frame_mut().depth -= 1;
        self.end_region(region, span, &[]);
        Ok(Branch { region, ends: std::mem::replace(&mut self.frame_mut().ended, ended) })
    }

    /// A branch that what follows the `if` has moved into.
    fn branch_and_rest(&mut self, stmts: &[Stmt], rest: &Tail<'_>, span: Span) -> Fallible<Branch> {
        let ended = std::mem::replace(&mut self.frame_mut().ended, false);
        self.frame_mut().depth += 1;
        let tail = Tail { scope: Some(span), ..*rest };
        let (region, ()) = self.open_region(&[], |inner, _| {
            inner.frame_mut().push_scope();
            inner.block(stmts, Some(&tail))?;
            inner.frame_mut().pop_scope(span);
            Ok(())
        })?;
        self.frame_mut().depth -= 1;
        self.end_region(region, span, &[]);
        Ok(Branch { region, ends: std::mem::replace(&mut self.frame_mut().ended, ended) })
    }

    fn finish_if(&mut self, condition: Value, yes: &Branch, no: &Branch, span: Span) {
        self.frame_mut().ended |= yes.ends && no.ends;
        self.at(span).op(OpKind::If, [condition], [], [yes.region, no.region]);
    }

    /// A flag tells whether the iteration was left somewhere inside.
    fn guarded(
        &mut self,
        condition: Value,
        body: &[Stmt],
        orelse: &[Stmt],
        rest: &Tail<'_>,
        span: Span,
    ) -> Fallible<Flow> {
        let outer = self.frame().loops.last().and_then(|innermost| innermost.skip);
        let exit = self.frame().exit.as_ref().filter(|_| self.frame().loops.is_empty());
        let flag = match (outer, exit) {
            (Some(flag), _) => flag,
            (None, Some(exit)) => exit.flag,
            (None, None) => self.new_flag(span),
        };
        self.set_skip_flag(Some(flag));
        let yes = self.branch(body, span)?;
        let no = self.branch(orelse, span)?;
        self.set_skip_flag(outer);
        self.finish_if(condition, &yes, &no, span);
        self.rest_unless(flag, rest, span)
    }

    /// What follows, unless a flag is up.
    pub(crate) fn rest_unless(&mut self, flag: Value, rest: &Tail<'_>, span: Span) -> Fallible<Flow> {
        if is_empty(rest) {
            return Ok(Flow::Done);
        }
        let left = self.at(span).load(flag, &[]);
        let (then_region, ()) = self.open_region(&[], |_, _| Ok(()))?;
        self.end_region(then_region, span, &[]);
        self.frame_mut().depth += 1;
        let (else_region, ()) =
            self.open_region(&[], |inner, _| inner.block(rest.stmts, rest.next).map(|_| ()))?;
        self.frame_mut().depth -= 1;
        self.end_region(else_region, span, &[]);
        self.at(span).op(OpKind::If, [left], [], [then_region, else_region]);
        Ok(Flow::Done)
    }

    fn set_skip_flag(&mut self, flag: Option<Value>) {
        if let Some(innermost) = self.frame_mut().loops.last_mut() {
            innermost.skip = flag;
        }
    }

    /// A `u1` variable that is false.
    pub(crate) fn new_flag(&mut self, span: Span) -> Value {
        let mut builder = self.at(span);
        let flag = builder.local(Data::Scalar(Scalar::U1));
        let no = builder.constant(Const::bool(false));
        builder.store(flag, &[], no);
        flag
    }
}

fn is_empty(tail: &Tail<'_>) -> bool {
    tail.stmts.is_empty() && tail.next.is_none_or(is_empty)
}
