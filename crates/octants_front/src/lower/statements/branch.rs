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
use octants_ir::ops::CompareOp;
use octants_ir::{Const, Data, OpKind, Region, Scalar, Value};

use super::exits::{always_leaves, may_leave, may_return};
use crate::ast::{Expr, Stmt, StmtKind};
use crate::host::Host;
use crate::lower::Lowerer;
use crate::lower::data::flow::{Continuation, Flow, Loop};
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;

/// From so many `elif`s on, blocks do not nest. Below, nested blocks are quicker: nothing is tested twice. Chosen, not measured:
/// a third of the regions that may nest.
const MIN_FLAT_CHAIN: usize = 64;

/// Whether a branch of a long chain is chosen, once none before it is.
enum Chosen {
    Always,
    Sometimes,
    Never,
}

/// How many `elif`s stand in an `else`.
fn chain_length(mut orelse: &[Stmt]) -> usize {
    let mut length = 0;
    while let [Stmt { kind: StmtKind::If { orelse: next, .. }, .. }] = orelse {
        length += 1;
        orelse = next;
    }
    length
}

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
        rest: &Continuation<'_>,
        span: Span,
    ) -> Fallible<Flow> {
        if chain_length(orelse) > MIN_FLAT_CHAIN {
            return self.long_chain(test, body, orelse, rest, span);
        }
        let condition = self.expr(test)?;
        if let Term::Static(inner) = &condition {
            let truth = self.static_truth(inner, test.span)?;
            return self.chosen_branch(if truth { body } else { orelse }, rest);
        }
        self.runs_beside_blocks(span, &[body, orelse])?;
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
    fn chosen_branch(&mut self, branch: &[Stmt], rest: &Continuation<'_>) -> Fallible<Flow> {
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
    fn branch_and_rest(&mut self, stmts: &[Stmt], rest: &Continuation<'_>, span: Span) -> Fallible<Branch> {
        let ended = std::mem::replace(&mut self.frame_mut().ended, false);
        self.frame_mut().depth += 1;
        let continuation = Continuation { scope: Some(span), ..*rest };
        let (region, ()) = self.open_region(&[], |inner, _| {
            inner.frame_mut().push_scope();
            let around = inner.begin_block(None);
            inner.block(stmts, Some(&continuation))?;
            inner.switch_block(around);
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
        rest: &Continuation<'_>,
        span: Span,
    ) -> Fallible<Flow> {
        let (flag, outer) = self.raise_skip_flag(span);
        let yes = self.branch(body, span)?;
        let no = self.branch(orelse, span)?;
        self.set_skip_flag(outer);
        self.finish_if(condition, &yes, &no, span);
        self.rest_unless(flag, rest, span)
    }

    /// Makes statements that leave the iteration tell so by a flag: gives it, and the flag that was used before.
    pub(super) fn raise_skip_flag(&mut self, span: Span) -> (Value, Option<Value>) {
        let outer = self.frame().loops.last().and_then(|innermost| innermost.skip);
        let exit = self.frame().exit.as_ref().filter(|_| self.frame().loops.is_empty());
        let flag = match (outer, exit) {
            (Some(flag), _) => flag,
            (None, Some(exit)) => exit.flag,
            (None, None) => self.new_flag(span),
        };
        self.set_skip_flag(Some(flag));
        (flag, outer)
    }

    /// An `if` with many `elif`s, as blocks that do not nest:
    ///
    /// ```text
    /// if c0: A          which = -1
    /// elif c1: B        if c0 { which = 0 }
    /// elif c2: C        if which < 0 { if c1 { which = 1 } }
    /// else: D           if which < 0 { if c2 { which = 2 } else { which = 3 } }
    ///                   if which == 0 { A }   if which == 1 { B }   if which == 2 { C }   if which == 3 { D }
    /// ```
    fn long_chain(
        &mut self,
        test: &Expr,
        body: &[Stmt],
        orelse: &[Stmt],
        rest: &Continuation<'_>,
        span: Span,
    ) -> Fallible<Flow> {
        let mut clause = (test, body, span);
        let mut after = orelse;
        // What is known at once takes no block.
        let first = loop {
            let condition = self.expr(clause.0)?;
            let Term::Static(inner) = &condition else { break self.condition(condition, clause.0.span)? };
            if self.static_truth(inner, clause.0.span)? {
                return self.chosen_branch(clause.1, rest);
            }
            let [Stmt { span, kind: StmtKind::If { test, body, orelse } }] = after else {
                return self.chosen_branch(after, rest);
            };
            clause = (test, body, *span);
            after = orelse;
        };
        self.runs_beside_blocks(span, &[clause.1, after])?;
        let mut builder = self.at(span);
        let which = builder.local(Data::Scalar(Scalar::I32));
        let none = builder.i32(-1);
        builder.store(which, &[], none);
        self.take_if(which, first, 0, span)?;
        let mut bodies: Vec<(&[Stmt], Span)> = vec![(clause.1, clause.2)];
        // Whether some branch is always taken.
        let complete = loop {
            match after {
                [] => break false,
                [Stmt { span, kind: StmtKind::If { test, body, orelse } }] => {
                    match self.choose(which, test, bodies.len(), *span)? {
                        Chosen::Always => {
                            bodies.push((body, *span));
                            break true;
                        }
                        Chosen::Sometimes => bodies.push((body, *span)),
                        Chosen::Never => {}
                    }
                    after = orelse;
                }
                others => {
                    self.choose_otherwise(which, bodies.len(), span)?;
                    bodies.push((others, span));
                    break true;
                }
            }
        };
        let jumps = bodies.iter().any(|(body, _)| may_leave(body)) && !self.in_static_loop();
        let returns = self.returns_anywhere() && bodies.iter().any(|(body, _)| may_return(body));
        let flags = (jumps || returns).then(|| self.raise_skip_flag(span));
        let mut all_end = complete;
        for (number, (body, at)) in bodies.into_iter().enumerate() {
            let mut builder = self.at(at);
            let (chosen, number) = (builder.load(which, &[]), builder.i32(number as i32));
            let is_chosen = builder.compare(CompareOp::Eq, chosen, number);
            let yes = self.branch(body, at)?;
            let no = self.branch(&[], at)?;
            all_end &= yes.ends;
            self.finish_if(is_chosen, &yes, &no, at);
        }
        self.frame_mut().ended |= all_end;
        match flags {
            None => Ok(Flow::Next),
            Some((flag, outer)) => {
                self.set_skip_flag(outer);
                self.rest_unless(flag, rest, span)
            }
        }
    }

    /// `if which < 0 { if test { which = number } }`
    fn choose(&mut self, which: Value, test: &Expr, number: usize, span: Span) -> Fallible<Chosen> {
        let mut known = None;
        let open = self.is_open(which, span);
        let (region, ()) = self.open_region(&[], |inner, _| {
            let condition = inner.expr(test)?;
            if let Term::Static(term) = &condition {
                let truth = inner.static_truth(term, test.span)?;
                known = Some(truth);
                if truth {
                    inner.take(which, number, span);
                }
                return Ok(());
            }
            let condition = inner.condition(condition, test.span)?;
            inner.take_if(which, condition, number, span)
        })?;
        self.finish_choice(open, region, span)?;
        Ok(match known {
            None => Chosen::Sometimes,
            Some(true) => Chosen::Always,
            Some(false) => Chosen::Never,
        })
    }

    fn choose_otherwise(&mut self, which: Value, number: usize, span: Span) -> Fallible<()> {
        let open = self.is_open(which, span);
        let (region, ()) = self.open_region(&[], |inner, _| {
            inner.take(which, number, span);
            Ok(())
        })?;
        self.finish_choice(open, region, span)
    }

    /// Whether no branch is chosen yet.
    fn is_open(&mut self, which: Value, span: Span) -> Value {
        let mut builder = self.at(span);
        let (chosen, zero) = (builder.load(which, &[]), builder.i32(0));
        builder.compare(CompareOp::Lt, chosen, zero)
    }

    /// `if condition { which = number }`
    fn take_if(&mut self, which: Value, condition: Value, number: usize, span: Span) -> Fallible<()> {
        let (region, ()) = self.open_region(&[], |taken, _| {
            taken.take(which, number, span);
            Ok(())
        })?;
        self.finish_choice(condition, region, span)
    }

    fn take(&mut self, which: Value, number: usize, span: Span) {
        let mut builder = self.at(span);
        let number = builder.i32(number as i32);
        builder.store(which, &[], number);
    }

    fn finish_choice(&mut self, open: Value, region: Region, span: Span) -> Fallible<()> {
        self.end_region(region, span, &[]);
        let (empty, ()) = self.open_region(&[], |_, _| Ok(()))?;
        self.end_region(empty, span, &[]);
        self.at(span).op(OpKind::If, [open], [], [region, empty]);
        Ok(())
    }

    /// What follows, unless a flag is up.
    pub(crate) fn rest_unless(&mut self, flag: Value, rest: &Continuation<'_>, span: Span) -> Fallible<Flow> {
        if is_empty(rest) {
            return Ok(Flow::Done);
        }
        self.unless(flag, span, |inner| inner.block(rest.stmts, rest.next).map(|_| ()))?;
        Ok(Flow::Done)
    }

    /// A block that runs unless a flag is up.
    pub(super) fn unless(
        &mut self,
        flag: Value,
        span: Span,
        block: impl FnOnce(&mut Self) -> Fallible<()>,
    ) -> Fallible<()> {
        let left = self.at(span).load(flag, &[]);
        let (then_region, ()) = self.open_region(&[], |_, _| Ok(()))?;
        self.end_region(then_region, span, &[]);
        self.frame_mut().depth += 1;
        let (else_region, ()) = self.open_region(&[], |inner, _| block(inner))?;
        self.frame_mut().depth -= 1;
        self.end_region(else_region, span, &[]);
        self.at(span).op(OpKind::If, [left], [], [then_region, else_region]);
        Ok(())
    }

    pub(super) fn set_skip_flag(&mut self, flag: Option<Value>) {
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

fn is_empty(continuation: &Continuation<'_>) -> bool {
    continuation.stmts.is_empty() && continuation.group.is_none() && continuation.next.is_none_or(is_empty)
}
