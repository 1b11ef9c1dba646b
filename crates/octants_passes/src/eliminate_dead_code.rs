//! Dead-code elimination: takes out ops without effect whose results are unused, carried values and results that nothing reads,
//! and stores to locals that are never read.
//!
//! Liveness from what is seen outside (writes to memory, failures, results) and keeps what is marked. A carried value that only
//! feeds itself is therefore gone too. A `while` stays even when it is empty: it may be meant to run forever.

use octants_ir::ops::{CellUse, Effects};
use octants_ir::rewrite::{Parents, walk_all};
use octants_ir::{Kernel, Op, OpKind, Region, SideTable, Type, Value, ValueDef};

use crate::edit::slots::{set_params, set_results, yielded};

/// Returns whether anything was taken out.
pub(crate) fn eliminate_dead_code(kernel: &mut Kernel) -> bool {
    eliminate(kernel, false)
}

/// Likewise of a kernel that runs another one again, for what that gave: its loops are known to end, so a `while` goes, too, if nobody needs what it gives, and
/// so do clocks that nobody reads and random numbers that nobody uses.
pub(crate) fn eliminate_dead_code_again(kernel: &mut Kernel) -> bool {
    eliminate(kernel, true)
}

fn eliminate(kernel: &mut Kernel, is_again: bool) -> bool {
    let mut marks = Liveness {
        parents: Parents::new(kernel),
        live_ops: SideTable::new(false),
        live_values: SideTable::new(false),
        updates: updates_of_locals(kernel),
        pending: Vec::new(),
        kernel,
        is_again,
    };
    marks.roots();
    while let Some(value) = marks.pending.pop() {
        marks.reach(value);
    }
    let Liveness { live_ops, live_values, .. } = marks;
    let bodies = kernel.bodies();
    let mut elimination = Elimination { kernel, live_ops, live_values, changed: false };
    for body in bodies {
        elimination.region(body);
    }
    elimination.changed
}

/// For each local: the ops that write it. They matter only if something reads it.
fn updates_of_locals(kernel: &Kernel) -> SideTable<Value, Vec<Op>> {
    let mut updates = SideTable::new(Vec::new());
    walk_all(kernel, &mut |op| {
        if is_update_of_local(kernel, op) {
            updates.get_mut(kernel.ops[op].operands[0]).push(op);
        }
    });
    updates
}

fn is_update_of_local(kernel: &Kernel, op: Op) -> bool {
    let data = &kernel.ops[op];
    kernel.cell_access(op).is_some_and(|access| access.writes)
        && matches!(kernel.ty(data.operands[0]), Type::Local(_) | Type::Tape(_))
        // A parameter is the caller's variable, who may read it.
        && kernel.def(data.operands[0]).is_some()
}

struct Liveness<'k> {
    kernel: &'k Kernel,
    parents: Parents,
    live_ops: SideTable<Op, bool>,
    live_values: SideTable<Value, bool>,
    updates: SideTable<Value, Vec<Op>>,
    pending: Vec<Value>,
    is_again: bool,
}

impl Liveness<'_> {
    fn roots(&mut self) {
        let mut roots = Vec::new();
        walk_all(self.kernel, &mut |op| {
            let seen = match &self.kernel.ops[op].kind {
                OpKind::Return => true,
                OpKind::While => !self.is_again,
                // What a function does is not known here.
                OpKind::Call(_) => true,
                kind if self.is_again && kind.effects().contains(Effects::NONDETERMINISTIC) => {
                    kind.info().cell != CellUse::Nothing
                }
                kind => kind.stays() && !is_update_of_local(self.kernel, op),
            };
            if seen {
                roots.push(op);
            }
        });
        for op in roots {
            self.mark_op(op);
        }
    }

    fn mark_value(&mut self, value: Value) {
        if !self.live_values[value] {
            self.live_values.set(value, true);
            self.pending.push(value);
        }
    }

    /// The op runs: so does what it stands in, and what decides whether and how often it runs is needed.
    fn mark_op(&mut self, op: Op) {
        if self.live_ops[op] {
            return;
        }
        self.live_ops.set(op, true);
        let kernel = self.kernel;
        let data = &kernel.ops[op];
        let needed = match data.kind {
            OpKind::If => &data.operands[..1],
            OpKind::For => &data.operands[..2],
            OpKind::While => &yielded(kernel, data.regions[0])[..1],
            _ => &data.operands[..],
        };
        for &value in needed {
            self.mark_value(value);
        }
        if let OpKind::ParallelFor(_) = data.kind {
            for &value in yielded(kernel, data.regions[0]) {
                self.mark_value(value);
            }
        }
        let parent = self.parents.region(op).and_then(|region| self.parents.op(region));
        if let Some(parent) = parent {
            self.mark_op(parent);
        }
    }

    /// Everything that a needed value needs.
    fn reach(&mut self, value: Value) {
        for op in std::mem::take(self.updates.get_mut(value)) {
            self.mark_op(op);
        }
        match self.kernel.values[value].def {
            ValueDef::Result(op, index) => {
                self.mark_op(op);
                self.mark_slot(op, index as usize);
            }
            ValueDef::Param(region, index) => {
                let Some(op) = self.parents.op(region) else { return };
                self.mark_op(op);
                match self.kernel.ops[op].kind {
                    OpKind::For if index > 0 => self.mark_slot(op, index as usize - 1),
                    OpKind::While => self.mark_slot(op, index as usize),
                    _ => {}
                }
            }
        }
    }

    /// All that makes up one result of an `if`, or one carried value of a loop.
    fn mark_slot(&mut self, op: Op, slot: usize) {
        let kernel = self.kernel;
        let data = &kernel.ops[op];
        let first = match data.kind {
            OpKind::If => {
                for &region in &data.regions {
                    self.mark_value(yielded(kernel, region)[slot]);
                }
                return;
            }
            OpKind::For => {
                self.mark_value(kernel.regions[data.regions[0]].params[slot + 1]);
                self.mark_value(yielded(kernel, data.regions[0])[slot]);
                2
            }
            OpKind::While => {
                for (&region, skipped) in data.regions.iter().zip([1, 0]) {
                    self.mark_value(kernel.regions[region].params[slot]);
                    self.mark_value(yielded(kernel, region)[slot + skipped]);
                }
                0
            }
            _ => return,
        };
        self.mark_value(data.operands[first + slot]);
        self.mark_value(data.results[slot]);
    }
}

struct Elimination<'k> {
    kernel: &'k mut Kernel,
    live_ops: SideTable<Op, bool>,
    live_values: SideTable<Value, bool>,
    changed: bool,
}

impl Elimination<'_> {
    fn region(&mut self, region: Region) {
        let mut ops = std::mem::take(&mut self.kernel.regions[region].ops);
        let before = ops.len();
        ops.retain(|&op| self.live_ops[op] || self.kernel.ops[op].kind.is_terminator());
        self.changed |= ops.len() != before;
        for &op in &ops {
            self.drop_slots(op);
            for inner in self.kernel.ops[op].regions.clone() {
                self.region(inner);
            }
        }
        self.kernel.regions[region].ops = ops;
    }

    fn drop_slots(&mut self, op: Op) {
        let (operands, params, yields) = match self.kernel.ops[op].kind {
            OpKind::If => (None, None, [0, 0]),
            OpKind::For => (Some(2), Some(1), [0, 0]),
            OpKind::While => (Some(0), Some(0), [1, 0]),
            _ => return,
        };
        let keep: Vec<_> =
            self.kernel.ops[op].results.iter().map(|&result| self.live_values[result]).collect();
        if keep.iter().all(|&kept| kept) {
            return;
        }
        self.changed = true;
        let results = kept_values(&self.kernel.ops[op].results, 0, &keep);
        set_results(self.kernel, op, results);
        if let Some(fixed) = operands {
            self.kernel.ops[op].operands = kept_values(&self.kernel.ops[op].operands, fixed, &keep).into();
        }
        for (region, fixed) in self.kernel.ops[op].regions.clone().into_iter().zip(yields) {
            if let Some(fixed) = params {
                let values = kept_values(&self.kernel.regions[region].params, fixed, &keep);
                set_params(self.kernel, region, values);
            }
            let terminator = *self.kernel.regions[region].ops.last().expect("a region ends in a terminator");
            let values = kept_values(&self.kernel.ops[terminator].operands, fixed, &keep);
            self.kernel.ops[terminator].operands = values.into();
        }
    }
}

/// The first `fixed` values, and of the rest those whose slot is kept.
fn kept_values(values: &[Value], fixed: usize, keep: &[bool]) -> Vec<Value> {
    let (first, slots) = values.split_at(fixed);
    let slots = slots.iter().zip(keep).filter(|&(_, &kept)| kept).map(|(&value, _)| value);
    first.iter().copied().chain(slots).collect()
}
