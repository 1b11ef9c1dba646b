//! Forward mode of the least, the greatest and the product that the iterations of a parallel loop make together. Which of them is chosen, or
//! what the others are, is known when all have run; then the loop runs twice more, without the kernel's own writes.
//!
//! Before:
//! ```text
//! parallel_for (%i: i32) in (%zero..%n) {
//!   %1: f32 = load %x[%i]
//!   %2: f32 = atomic_max %y[%zero], %1
//! }
//! ```
//! After it (`%dx` and `%dy` are the companions):
//! ```text
//! parallel_for (%i: i32) in (%zero..%n) {
//!   %1: f32 = load %x[%i]
//!   %3: f32 = load %y[%zero]
//!   %4: u1 = eq %1, %3
//!   if %4 { store %dy[%zero], 0 }
//! }
//! parallel_for (%i: i32) in (%zero..%n) {
//!   %1: f32 = load %x[%i]
//!   %5: f32 = load %dx[%i]
//!   %3: f32 = load %y[%zero]
//!   %4: u1 = eq %1, %3
//!   if %4 { %6: f32 = atomic_add %dy[%zero], %5 }
//! }
//! ```
//! All that are chosen have their share, as in reverse mode.

use octants_ir::ops::{ArithOp, AtomicOp, CompareOp};
use octants_ir::rewrite::{ValueMap, clone_op, ops_in, use_counts};
use octants_ir::{Builder, Const, Kernel, Op, OpKind, Region, Scalar, Type, Value};

use super::dependence::Dependence;
use super::told::Numbers;
use crate::differentiate::refusal::Refusal;
use crate::differentiate::refusal::RefusalKind;

/// An update whose tangent waits until all iterations have made theirs.
#[derive(Clone, Copy)]
pub(super) struct Deferred {
    pub op: Op,
    pub kind: AtomicOp,
    /// The place of the tangents.
    pub companion: Value,
    /// Of what the iteration brings; `None` for zero.
    pub tangent: Option<Value>,
}

/// A parallel loop with such updates, and the region that it stands in.
pub(super) struct Loops {
    pub region: Region,
    pub parallel: Op,
    pub deferred: Vec<Deferred>,
}

/// Puts the two loops behind one that has its tangents already. The first `own` parameters are those of the kernel that is differentiated.
pub(super) fn add_loops(kernel: &mut Kernel, own: usize, loops: Loops, refusals: &mut Vec<Refusal>) {
    let Loops { region, parallel, deferred } = loops;
    refuse_overwritten(kernel, own, parallel, &deferred, refusals);
    // What follows the loop follows these.
    let ops = &mut kernel.regions[region].ops;
    let at = ops.iter().position(|&op| op == parallel).map_or(ops.len(), |at| at + 1);
    let rest = ops.split_off(at);
    let mut totals = ValueMap::new();
    for one in &deferred {
        let base = kernel.ops[one.op].operands[0];
        if matches!(kernel.ty(base), Type::Local(_)) && totals.get(base).is_none() {
            let loc = kernel.ops[one.op].loc;
            let total = Builder::at(kernel, region, loc).load(base, &[]);
            totals.insert(base, total);
        }
    }
    for adds in [false, true] {
        let mut names = ValueMap::new();
        let copy = clone_op(kernel, parallel, &mut names);
        let body = kernel.ops[copy].regions[0];
        let is_variable = |op: &Op| matches!(kernel.ops[*op].kind, OpKind::Local | OpKind::Tape);
        let inside = ops_in(kernel, body);
        let mut copies = Vec::new();
        for one in &deferred {
            let result = names.map(kernel.ops[one.op].results[0]);
            let copy = inside.iter().find(|&&op| kernel.ops[op].results.first() == Some(&result));
            copies.extend(copy.map(|&copy| (copy, *one)));
        }
        let own = inside.into_iter().filter(is_variable);
        let own = own.map(|op| kernel.ops[op].results[0]).collect();
        RepeatedLoop { kernel: &mut *kernel, names, totals: &totals, copies, own, adds }.region(body);
        kernel.regions[region].ops.push(copy);
    }
    kernel.regions[region].ops.extend(rest);
}

/// What runs again must find what it found: nothing that the loop itself overwrites.
fn refuse_overwritten(
    kernel: &Kernel,
    own: usize,
    parallel: Op,
    deferred: &[Deferred],
    refusals: &mut Vec<Refusal>,
) {
    let inside = ops_in(kernel, kernel.ops[parallel].regions[0]);
    let uses = use_counts(kernel);
    for one in deferred.iter().filter(|one| uses[kernel.ops[one.op].results[0]] > 0) {
        refusals.push(Refusal::new(RefusalKind::AtomicResult, kernel.ops[one.op].loc));
    }
    let order = Dependence::new(kernel, Numbers::unknown());
    let is_array = |op: Op| matches!(kernel.ty(kernel.ops[op].operands[0]), Type::Array(_));
    let accesses = |writes: bool| {
        let of = move |op: &Op| kernel.cell_access(*op).is_some_and(|access| access.writes == writes);
        inside.iter().copied().filter(of).filter(|&op| is_array(op))
    };
    // Tangents lie where their values do.
    let is_own = |&op: &Op| kernel.as_param(kernel.ops[op].operands[0]).is_none_or(|param| param < own);
    for read in accesses(false).filter(is_own) {
        if let Some(write) = accesses(true).find(|&write| order.may_overwrite(read, write)) {
            refusals.push(Refusal {
                kind: RefusalKind::Overwritten,
                at: kernel.ops[read].loc,
                other: Some(kernel.ops[write].loc),
                param: kernel.as_param(kernel.ops[read].operands[0]),
            });
        }
    }
    for write in accesses(true).filter(|&op| !deferred.iter().any(|one| one.op == op)) {
        if kernel.ops[write].results.iter().any(|&result| uses[result] > 0) {
            refusals.push(Refusal::new(RefusalKind::AtomicResult, kernel.ops[write].loc));
        }
    }
}

/// A loop that runs again.
struct RepeatedLoop<'k> {
    kernel: &'k mut Kernel,
    names: ValueMap,
    totals: &'k ValueMap,
    /// The updates in it, and what they stand for.
    copies: Vec<(Op, Deferred)>,
    /// Variables of the iteration's own.
    own: Vec<Value>,
    /// Whether it adds tangents; before that, what the places had is taken from them.
    adds: bool,
}

impl RepeatedLoop<'_> {
    fn region(&mut self, region: Region) {
        for op in std::mem::take(&mut self.kernel.regions[region].ops) {
            for inner in self.kernel.ops[op].regions.clone() {
                self.region(inner);
            }
            if let Some(&(_, deferred)) = self.copies.iter().find(|(copy, _)| *copy == op) {
                self.update(region, op, deferred);
            } else if !self.is_effect(op) {
                self.kernel.regions[region].ops.push(op);
            }
        }
    }

    /// Whether others than the iteration see it.
    fn is_effect(&self, op: Op) -> bool {
        match self.kernel.ops[op].kind {
            OpKind::Assert(..) | OpKind::Print(_) => true,
            _ => {
                let access = self.kernel.cell_access(op).filter(|access| access.writes);
                access.is_some_and(|access| !self.own.contains(&access.place.base()))
            }
        }
    }

    fn update(&mut self, region: Region, op: Op, deferred: Deferred) {
        let data = self.kernel.ops[op].clone();
        let (&value, place) = data.operands.split_last().expect("an update has a value");
        let (companion, path) = (deferred.companion, &place[1..]);
        let tangent = deferred.tangent.map(|tangent| self.names.map(tangent));
        let of_local = self.totals.get(place[0]);
        let b = &mut Builder::at(self.kernel, region, data.loc);
        match (self.adds, tangent) {
            (true, None) => {}
            (false, _) if deferred.kind == AtomicOp::Mul => {
                b.atomic(AtomicOp::Mul, companion, path, value);
            }
            (true, Some(tangent)) if deferred.kind == AtomicOp::Mul => {
                let total = of_local.unwrap_or_else(|| b.load(place[0], path));
                let others = b.arith(ArithOp::Div, total, value);
                let share = b.arith(ArithOp::Mul, tangent, others);
                b.atomic(AtomicOp::Add, companion, path, share);
            }
            (adds, _) => {
                let total = of_local.unwrap_or_else(|| b.load(place[0], path));
                let chosen = b.compare(CompareOp::Eq, value, total);
                let scalar = b.kernel.ty(value).scalar().unwrap_or(Scalar::F32);
                b.if_else(
                    chosen,
                    |b| {
                        if let Some(tangent) = tangent.filter(|_| adds) {
                            b.atomic(AtomicOp::Add, companion, path, tangent);
                        } else {
                            let zero = b.constant(Const::from_f64(scalar, 0.0));
                            b.store(companion, path, zero);
                        }
                        Vec::new()
                    },
                    |_| Vec::new(),
                );
            }
        }
    }
}
