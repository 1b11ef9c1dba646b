//! Adds to a shared element once for a whole serial loop, instead of in each of its iterations.
//!
//! Before:
//! ```text
//! for %k: i32 in %lo..%hi {
//!   …
//!   %1: f32 = atomic_add %a[%i], %v
//! }
//! ```
//! After:
//! ```text
//! %s: f32 = for %k: i32 in %lo..%hi carry (%c: f32 = -0.0) {
//!   …
//!   %2: f32 = add %c, %v
//!   yield %2
//! }
//! %3: u1 = lt %lo, %hi
//! if %3 {
//!   %1: f32 = atomic_add %a[%i], %s
//! }
//! ```
//! Acts on sums and differences that stand in the body of a `for` itself, whose element is the same in all of its iterations and whose old value nobody
//! uses, where the loop touches the array in no other way. The element is not touched if the loop does not run: it need not be there. Loops inside
//! come first, so that a sum leaves a whole nest. Arguments are assumed not to alias.
//!
//! Only what is atomic is moved: its additions have no order. Expects scalars, and that what iterations own is not atomic any more. Structured phase.

use octants_ir::ops::{ArithOp, AtomicOp, CompareOp, Effects};
use octants_ir::rewrite::{ops_in, retain_ops, use_counts};
use octants_ir::{Builder, Const, Kernel, Op, OpKind, Region, Scalar, SideTable, Type, Value};

use crate::analysis::accesses_of;
use crate::assumptions::Assumptions;
use crate::edit::slots::{add_result, add_yielded};

pub fn sink_updates(kernel: &mut Kernel, assumptions: Assumptions) {
    if !assumptions.noalias {
        return;
    }
    let uses = use_counts(kernel);
    for region in kernel.top_regions() {
        for op in kernel.regions[region].ops.clone() {
            if matches!(kernel.ops[op].kind, OpKind::ParallelFor(_)) {
                let body = kernel.ops[op].regions[0];
                sink_in(kernel, body, &uses);
            }
        }
    }
}

fn sink_in(kernel: &mut Kernel, region: Region, uses: &SideTable<Value, u32>) {
    for op in kernel.regions[region].ops.clone() {
        for inner in kernel.ops[op].regions.clone() {
            sink_in(kernel, inner, uses);
        }
        if kernel.ops[op].kind == OpKind::For {
            let updates = find(kernel, op, uses);
            if !updates.is_empty() {
                sink(kernel, region, op, &updates);
            }
        }
    }
}

/// The updates of a loop that can wait for its end.
fn find(kernel: &Kernel, op: Op, uses: &SideTable<Value, u32>) -> Vec<Op> {
    let body = kernel.ops[op].regions[0];
    let sums = |op: Op| {
        let data = &kernel.ops[op];
        let adds = matches!(data.kind, OpKind::Atomic(AtomicOp::Add | AtomicOp::Sub));
        adds && uses[data.results[0]] == 0 && matches!(kernel.ty(data.operands[0]), Type::Array(_))
    };
    let candidates: Vec<_> = kernel.regions[body].ops.iter().copied().filter(|&op| sums(op)).collect();
    if candidates.is_empty() {
        return candidates;
    }
    if ops_in(kernel, body).into_iter().any(|op| may_wait(kernel, op, uses)) {
        return Vec::new();
    }
    let inside = values_defined_in(kernel, body);
    let accesses = accesses_of(kernel, body);
    let waits = |&update: &Op| {
        let data = &kernel.ops[update];
        let (_, place) = data.operands.split_last().expect("an update has a value");
        let base = place[0];
        let alone = accesses.iter().filter(|access| access.base == base).all(|access| sums(access.op));
        alone && !place.iter().any(|&value| inside[value] && kernel.as_const(value).is_none())
    };
    candidates.into_iter().filter(waits).collect()
}

/// Whether the op may wait for another thread, which may wait for an update of this one.
fn may_wait(kernel: &Kernel, op: Op, uses: &SideTable<Value, u32>) -> bool {
    let data = &kernel.ops[op];
    match data.kind {
        // Nobody looks at what it found.
        OpKind::Atomic(_) if uses[data.results[0]] == 0 => false,
        ref kind => kind.effects().intersects(Effects::MAY_WAIT | Effects::CONVERGENT),
    }
}

fn values_defined_in(kernel: &Kernel, region: Region) -> SideTable<Value, bool> {
    let mut inside = SideTable::new(false);
    for &param in &kernel.regions[region].params {
        inside.set(param, true);
    }
    for op in ops_in(kernel, region) {
        for &result in &kernel.ops[op].results {
            inside.set(result, true);
        }
    }
    inside
}

/// Moves the updates behind the loop, which stands in the region.
fn sink(kernel: &mut Kernel, region: Region, op: Op, updates: &[Op]) {
    let (body, loc) = (kernel.ops[op].regions[0], kernel.ops[op].loc);
    let behind =
        kernel.regions[region].ops.iter().position(|&other| other == op).expect("it stands there") + 1;
    let rest = kernel.regions[region].ops.split_off(behind);
    let looped = kernel.regions[region].ops.pop().expect("it stands there");
    let mut sums: Vec<(Op, Value)> = Vec::new();
    for &update in updates {
        let data = kernel.ops[update].clone();
        let &value = data.operands.last().expect("an update has a value");
        let ty = kernel.ty(value);
        let scalar = ty.scalar().unwrap_or(Scalar::F32);
        let neutral =
            if scalar.is_real() { Const::from_f64(scalar, -0.0) } else { Const::from_i128(scalar, 0) };
        let begin = Builder::at(kernel, region, loc).constant(neutral);
        kernel.ops[op].operands.push(begin);
        let so_far = kernel.add_region_param(body, ty);
        let kind = if data.kind == OpKind::Atomic(AtomicOp::Sub) { ArithOp::Sub } else { ArithOp::Add };
        let ends = kernel.regions[body].ops.pop().expect("a region ends in a terminator");
        let sum = Builder::at(kernel, body, data.loc).arith(kind, so_far, value);
        kernel.regions[body].ops.push(ends);
        add_yielded(kernel, body, sum);
        let total = add_result(kernel, op, ty);
        sums.push((update, total));
    }
    retain_ops(kernel, body, &mut |_, inner| !updates.contains(&inner));
    kernel.regions[region].ops.push(looped);
    let operands = kernel.ops[op].operands.clone();
    let runs = kernel.constant_trips(op).map(|trips| trips > 0);
    if runs == Some(false) {
        kernel.regions[region].ops.extend(rest);
        return;
    }
    let then = if runs.is_none() { kernel.add_region() } else { region };
    for (update, total) in sums {
        let data = kernel.ops[update].clone();
        let b = &mut Builder::at(kernel, then, data.loc);
        let path: Vec<_> = data.operands[1..data.operands.len() - 1]
            .iter()
            .map(|&index| b.kernel.as_const(index).map_or(index, |constant| b.constant(constant)))
            .collect();
        b.atomic(AtomicOp::Add, data.operands[0], &path, total);
    }
    if runs.is_none() {
        Builder::at(kernel, then, loc).yields(&[]);
        let b = &mut Builder::at(kernel, region, loc);
        let some = b.compare(CompareOp::Lt, operands[0], operands[1]);
        let none = b.region_of(&[], |_, _| Vec::new());
        b.op(OpKind::If, [some], [], [then, none]);
    }
    kernel.regions[region].ops.extend(rest);
}
