//! Blocks with many statements that may leave: after each of them the rest would nest one block deeper.
//!
//! Such a block is cut into groups that stand side by side. Only inside of a group does the rest nest:
//!
//! ```text
//! if a: continue        skip = false
//! x = f(i)              if a { skip = true } else { x = f(i); if b { skip = true } else { … } }
//! if b: continue        if not skip { if c { skip = true } else { … } }
//! …                     if not skip { … }
//! if c: continue
//! ```
//!
//! Names that a group defines are seen by the groups after it: their variables move to the region that the groups stand in, and what a
//! name stands for otherwise (where a view begins, say) is kept in a variable there, which the groups after it load.

use std::cell::{Cell, RefCell};

use octants_diag::Span;
use octants_ir::{Id, Op, OpKind, Region, SideTable, Value, ValueDef};

use super::exits::{may_leave, may_return};
use crate::ast::{Stmt, StmtKind};
use crate::host::Host;
use crate::lower::Lowerer;
use crate::lower::data::flow::{Continuation, Flow, Group, Loop};
use crate::lower::data::scope::Binding;
use crate::lower::error::Fallible;

/// A block in which more statements may leave is cut into groups. Below, nested blocks are quicker: no flag is tested.
/// Chosen, not measured: a third of the regions that may nest.
const MAX_UNGROUPED_EXITS: usize = 64;
/// How many such statements a group has: so deep do its blocks nest. Chosen, not measured.
const EXITS_PER_GROUP: usize = 32;

impl<H: Host> Lowerer<'_, H> {
    /// The groups of a block in which many statements may leave.
    pub(crate) fn groups<'s>(&self, stmts: &'s [Stmt]) -> Option<Vec<&'s [Stmt]>> {
        let innermost = self.frame().loops.last();
        // Nothing that is decided while running leaves an unrolled loop.
        if stmts.len() <= MAX_UNGROUPED_EXITS || innermost.is_some_and(Loop::is_static) {
            return None;
        }
        let (leaves, returns) = (innermost.is_some(), self.frame().exit.is_some());
        let nests = |stmt: &Stmt| {
            let block = std::slice::from_ref(stmt);
            match stmt.kind {
                StmtKind::If { .. } => leaves && may_leave(block) || returns && may_return(block),
                StmtKind::For { .. } | StmtKind::While { .. } => returns && may_return(block),
                _ => false,
            }
        };
        stmts.iter().filter(|stmt| nests(stmt)).nth(MAX_UNGROUPED_EXITS)?;
        let mut nested = 0;
        let ends_group = |stmt: &Stmt| {
            nested += usize::from(nests(stmt));
            let is_full = nested == EXITS_PER_GROUP;
            if is_full {
                nested = 0;
            }
            is_full
        };
        Some(stmts.split_inclusive(ends_group).collect())
    }

    /// Statements in groups, then what follows them.
    pub(crate) fn grouped_block(
        &mut self,
        groups: &[&[Stmt]],
        continuation: Option<&Continuation<'_>>,
        span: Span,
    ) -> Fallible<Flow> {
        let (flag, outer_flag) = self.raise_skip_flag(span);
        let (outer, first_of_block) = (self.region, self.frame().names().len());
        let first_expr_of_block = self.exprs.len();
        let mut kept = Vec::new();
        for (number, &group) in groups.iter().enumerate() {
            let is_last = number + 1 == groups.len();
            let span = group.first().map_or(span, |stmt| stmt.span);
            let now = Group {
                outer,
                first_name: self.frame().names().len(),
                first_op: self.kernel.ops.len(),
                first_region: self.kernel.regions.len(),
                first_expr: self.exprs.len(),
                span,
                kept: RefCell::new(std::mem::take(&mut kept)),
                reaches_end: Cell::new(false),
            };
            if number == 0 {
                self.group(group, &now, continuation.filter(|_| is_last), is_last)?;
            } else {
                self.unless(flag, span, |inner| {
                    inner.load_kept(&now, first_of_block, first_expr_of_block);
                    inner.group(group, &now, continuation.filter(|_| is_last), is_last)
                })?;
            }
            if !is_last && !now.reaches_end.get() {
                break;
            }
            kept = now.kept.into_inner();
        }
        self.set_skip_flag(outer_flag);
        Ok(Flow::Done)
    }

    fn group(
        &mut self,
        stmts: &[Stmt],
        group: &Group,
        continuation: Option<&Continuation<'_>>,
        is_last: bool,
    ) -> Fallible<()> {
        if is_last {
            return self.block(stmts, continuation).map(|_| ());
        }
        let end = Continuation { stmts: &[], next: None, scope: None, group: Some(group) };
        self.block(stmts, Some(&end)).map(|_| ())
    }

    /// At the end of a group, inside of its blocks: makes what its names stand for known to later groups.
    pub(crate) fn end_group(&mut self, group: &Group) -> Fallible<()> {
        group.reaches_end.set(true);
        let mut values = Vec::new();
        let mut has_objects = false;
        for (_, binding) in &mut self.frame_mut().names_mut()[group.first_name..] {
            match binding {
                Binding::Variable { place, .. } => values.push(*place),
                Binding::Alias { term, .. } => {
                    term.for_each_value(&mut |value| values.push(*value));
                    has_objects |= term.holds_object();
                }
            }
        }
        if has_objects {
            values.extend(self.values_of_exprs(group));
        }
        values.sort_unstable();
        values.dedup();
        let mut locals = Vec::new();
        for value in values {
            let ValueDef::Result(op, _) = self.kernel.values[value].def else { continue };
            if op.index() < group.first_op || group.kept.borrow().iter().any(|(known, _)| *known == value) {
                continue;
            }
            if self.kernel.ops[op].kind == OpKind::Local {
                locals.push(op);
                continue;
            }
            let place = self.within(group.outer, |outer| {
                let zero = outer.constant_like(value, 0, group.span);
                Ok(outer.new_local(zero, group.span).base)
            })?;
            self.at(group.span).store(place, &[], value);
            group.kept.borrow_mut().push((value, place));
        }
        self.move_locals(group, &locals);
        Ok(())
    }

    /// Values that objects of the host may hold as expressions, if they can still be used: their region is open.
    fn values_of_exprs(&mut self, group: &Group) -> Vec<Value> {
        let mut usable = SideTable::new(false);
        for index in group.first_region..self.kernel.regions.len() {
            let ops = &self.kernel.regions[Region::from_index(index)].ops;
            let is_open = !ops.last().is_some_and(|&op| self.kernel.ops[op].kind.is_terminator());
            for &op in ops.iter().filter(|_| is_open) {
                self.kernel.ops[op].results.iter().for_each(|&result| usable.set(result, true));
            }
        }
        let mut values = Vec::new();
        for term in &mut self.exprs[group.first_expr..] {
            term.for_each_value(&mut |value| values.push(*value));
        }
        values.retain(|&value| usable[value]);
        values
    }

    /// Moves variables to the region of the groups, whose newest op is not there yet.
    fn move_locals(&mut self, group: &Group, locals: &[Op]) {
        let mut moved = Vec::new();
        for index in group.first_region..self.kernel.regions.len() {
            self.kernel.regions[Region::from_index(index)].ops.retain(|op| {
                let moves = locals.binary_search(op).is_ok();
                if moves {
                    moved.push(*op);
                }
                !moves
            });
        }
        self.kernel.regions[group.outer].ops.extend(moved);
    }

    /// Loads what earlier groups kept, and lets their names stand for it.
    fn load_kept(&mut self, group: &Group, first_name: usize, first_expr: usize) {
        let mut kept = group.kept.borrow_mut();
        let mut loaded = Vec::with_capacity(kept.len());
        for (value, place) in kept.iter_mut() {
            let again = self.at(group.span).load(*place, &[]);
            loaded.push((std::mem::replace(value, again), again));
        }
        loaded.sort_unstable();
        let replace = |value: &mut Value| {
            if let Ok(at) = loaded.binary_search_by_key(value, |(known, _)| *known) {
                *value = loaded[at].1;
            }
        };
        for (_, binding) in &mut self.frame_mut().names_mut()[first_name..] {
            if let Binding::Alias { term, .. } = binding {
                term.for_each_value(&mut |value| replace(value));
            }
        }
        for term in &mut self.exprs[first_expr..] {
            term.for_each_value(&mut |value| replace(value));
        }
    }
}
