//! Turns atomic updates of one place by all iterations into a reduction: each thread accumulates on its own, and the loop combines.
//!
//! Before:
//! ```text
//! parallel_for (%i: i32) in (%0..%n) {
//!   %1: f32 = load %a[%i]
//!   %2: f32 = atomic_add %sum, %1
//! }
//! ```
//! After:
//! ```text
//! parallel_for (%i: i32) in (%0..%n) reduce (%s: f32 = atomic_add %sum) {
//!   %acc: local<f32> = local
//!   store %acc, %s
//!   %1: f32 = load %a[%i]
//!   %3: f32 = load %acc
//!   %4: f32 = add %3, %1
//!   store %acc, %4
//!   %5: f32 = load %acc
//!   yield %5
//! }
//! ```
//! The accumulator is a local so that updates may stand inside `if`s and loops; `promote_locals` makes it a value.
//!
//! Acts when the old value is not used, the place is the same for all iterations, and the loop touches that array or variable in
//! no other way. Sums and differences share one accumulator. Another array in the loop might be the same memory, so arrays are only
//! reduced into where arguments are assumed not to alias, or where no other array is touched.
//!
//! Expects scalars, and that what iterations own is not atomic any more. Structured phase.

use octants_ir::ops::{AtomicOp, Reduction};
use octants_ir::rewrite::{ValueMap, clone_op, use_counts, walk};
use octants_ir::{Boundary, Builder, Const, Kernel, Op, OpKind, Region, SideTable, Type, Value, ValueDef};

use crate::analysis::{ArrayUse, accesses_of};
use crate::assumptions::Assumptions;
use crate::edit::update::updated_by;

pub fn privatise_reductions(kernel: &mut Kernel, assumptions: Assumptions) {
    let counts = use_counts(kernel);
    for region in kernel.top_regions() {
        for op in std::mem::take(&mut kernel.regions[region].ops) {
            // One thread in order gains nothing.
            if kernel.parallel_loop(op).is_some_and(|parallel| parallel.attributes.max_threads != Some(1)) {
                let groups = find_groups(kernel, op, &counts, assumptions);
                if !groups.is_empty() {
                    privatise(kernel, region, op, &groups);
                }
            }
            kernel.regions[region].ops.push(op);
        }
    }
}

/// Updates of one place by one kind of reduction.
struct Group {
    reduction: AtomicOp,
    base: Value,
    /// As the first update has it; the others' are equal.
    path: Vec<Value>,
    key: Vec<PathKey>,
    updates: Vec<Op>,
}

/// When two indices are the same for all iterations.
#[derive(PartialEq)]
enum PathKey {
    Const(Const),
    Value(Value),
}

fn reduction_of(op: AtomicOp) -> Option<AtomicOp> {
    match op {
        AtomicOp::Add | AtomicOp::Sub => Some(AtomicOp::Add),
        AtomicOp::Mul | AtomicOp::Min | AtomicOp::Max | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => {
            Some(op)
        }
        AtomicOp::Exchange => None,
    }
}

fn find_groups(
    kernel: &Kernel,
    op: Op,
    counts: &SideTable<Value, u32>,
    assumptions: Assumptions,
) -> Vec<Group> {
    if kernel.cooperates(op) {
        return Vec::new();
    }
    let body = kernel.ops[op].regions[0];
    let mut inside = SideTable::new(false);
    walk(kernel, body, &mut |op| inside.set(op, true));
    let loop_values = Invariance { kernel, inside };
    let accesses = accesses_of(kernel, body);
    let mut groups = Groups { all: Vec::new(), of_base: SideTable::new(Vec::new()) };
    let mut barred = SideTable::new(false);
    for access in &accesses {
        if grouped(kernel, access, counts, &loop_values, &mut groups).is_none() {
            barred.set(access.base, true);
        }
    }
    let is_array = |base: Value| matches!(kernel.ty(base), Type::Array(_));
    let mut arrays = accesses.iter().map(|access| access.base).filter(|&base| is_array(base));
    let first_array = arrays.next();
    let is_only_array = arrays.all(|base| Some(base) == first_array);
    let alone = |base: Value| assumptions.noalias || is_only_array || !is_array(base);
    let Groups { all, of_base } = groups;
    let fits: Vec<_> = all
        .iter()
        .map(|group| {
            let mut others = of_base[group.base].iter().map(|&other| &all[other]);
            let apart =
                |other: &Group| other.reduction == group.reduction || distinct(&other.key, &group.key);
            !barred[group.base] && alone(group.base) && others.all(apart)
        })
        .collect();
    all.into_iter().zip(fits).filter_map(|(group, fits)| fits.then_some(group)).collect()
}

/// The groups of a loop, and for each base the numbers of its groups.
struct Groups {
    all: Vec<Group>,
    of_base: SideTable<Value, Vec<usize>>,
}

/// Puts the access into its group; `None` if it is no update that a reduction can do.
fn grouped(
    kernel: &Kernel,
    access: &ArrayUse,
    counts: &SideTable<Value, u32>,
    loop_values: &Invariance<'_>,
    groups: &mut Groups,
) -> Option<()> {
    let data = &kernel.ops[access.op];
    let OpKind::Atomic(op) = data.kind else { return None };
    let reduction = reduction_of(op)?;
    if counts[data.results[0]] > 0 || !loop_values.is_invariant(access.base) {
        return None;
    }
    if !access.path.iter().all(|&index| loop_values.is_invariant(index)) {
        return None;
    }
    // Two constants may be clamped to one index.
    let apart = !matches!(kernel.ty(access.base), Type::Array(array) if array.boundary == Boundary::Clamp);
    let constant = |index| kernel.as_const(index).filter(|_| apart);
    let key: Vec<_> = access
        .path
        .iter()
        .map(|&index| constant(index).map_or(PathKey::Value(index), PathKey::Const))
        .collect();
    let of_base = groups.of_base.get_mut(access.base);
    let is_same = |group: &Group| group.key == key && group.reduction == reduction;
    if let Some(&number) = of_base.iter().find(|&&number| is_same(&groups.all[number])) {
        groups.all[number].updates.push(access.op);
    } else {
        of_base.push(groups.all.len());
        let (base, path, updates) = (access.base, access.path.clone(), vec![access.op]);
        groups.all.push(Group { reduction, base, path, key, updates });
    }
    Some(())
}

/// Whether two paths can never address one place: somewhere both have a constant, and not the same.
fn distinct(a: &[PathKey], b: &[PathKey]) -> bool {
    a.iter().zip(b).any(|pair| match pair {
        (PathKey::Const(a), PathKey::Const(b)) => a != b,
        _ => false,
    })
}

/// Which values are the same for all iterations.
struct Invariance<'k> {
    kernel: &'k Kernel,
    inside: SideTable<Op, bool>,
}

impl Invariance<'_> {
    /// Defined outside, or computed inside from nothing but such values.
    fn is_invariant(&self, value: Value) -> bool {
        self.invariant_within(value, &mut 16)
    }

    fn invariant_within(&self, value: Value, left: &mut u32) -> bool {
        match self.kernel.values[value].def {
            ValueDef::Param(region, _) => region == self.kernel.body,
            ValueDef::Result(op, _) if !self.inside[op] => true,
            ValueDef::Result(op, _) => {
                let data = &self.kernel.ops[op];
                if *left == 0 || !data.kind.is_pure() {
                    return false;
                }
                *left -= 1;
                data.operands.iter().all(|&operand| self.invariant_within(operand, left))
            }
        }
    }
}

/// The value as it is known before the loop: itself, or its computation copied to the end so far of `region`, where the loop stands.
fn hoisted(
    kernel: &mut Kernel,
    region: Region,
    value: Value,
    inside: &SideTable<Op, bool>,
    copies: &mut ValueMap,
) -> Value {
    let ValueDef::Result(op, _) = kernel.values[value].def else { return value };
    if !inside[op] {
        return value;
    }
    if let Some(copy) = copies.get(value) {
        return copy;
    }
    for operand in kernel.ops[op].operands.clone() {
        hoisted(kernel, region, operand, inside, copies);
    }
    let copy = clone_op(kernel, op, copies);
    kernel.regions[region].ops.push(copy);
    copies.map(value)
}

fn privatise(kernel: &mut Kernel, region: Region, op: Op, groups: &[Group]) {
    let body = kernel.ops[op].regions[0];
    let loc = kernel.ops[op].loc;
    let mut inside = SideTable::new(false);
    walk(kernel, body, &mut |op| inside.set(op, true));
    let mut copies = ValueMap::new();
    let rest = std::mem::take(&mut kernel.regions[body].ops);
    let mut accumulators = Vec::with_capacity(groups.len());
    let mut accumulator_of = SideTable::new(None);
    for group in groups {
        let path: Vec<_> =
            group.path.iter().map(|&index| hoisted(kernel, region, index, &inside, &mut copies)).collect();
        let operands = 1 + path.len() as u8;
        kernel.ops[op].operands.push(group.base);
        kernel.ops[op].operands.extend(path);
        if let OpKind::ParallelFor(attributes) = &mut kernel.ops[op].kind {
            attributes.reductions.push(Reduction { op: group.reduction, operands });
        }
        let ty = kernel.ty(kernel.ops[group.updates[0]].results[0]);
        let data = ty.data().expect("an update gives data");
        let begin = kernel.add_region_param(body, ty);
        let mut b = Builder::at(kernel, body, loc);
        let accumulator = b.local(data);
        b.store(accumulator, &[], begin);
        accumulators.push(accumulator);
        for &update in &group.updates {
            accumulator_of.set(update, Some(accumulator));
        }
    }
    kernel.regions[body].ops.extend(rest);
    accumulate(kernel, body, &accumulator_of);

    let end = kernel.regions[body].ops.pop().expect("a region ends in a terminator");
    for accumulator in accumulators {
        let total = Builder::at(kernel, body, loc).load(accumulator, &[]);
        kernel.ops[end].operands.push(total);
    }
    kernel.regions[body].ops.push(end);
}

/// The updates become updates of their accumulators.
fn accumulate(kernel: &mut Kernel, region: Region, accumulator_of: &SideTable<Op, Option<Value>>) {
    for op in std::mem::take(&mut kernel.regions[region].ops) {
        if let Some(accumulator) = accumulator_of[op] {
            let loc = kernel.ops[op].loc;
            let mut b = Builder::at(kernel, region, loc);
            let old = b.load(accumulator, &[]);
            let new = updated_by(&mut b, op, old);
            b.store(accumulator, &[], new);
            continue;
        }
        kernel.regions[region].ops.push(op);
        for inner in kernel.ops[op].regions.clone() {
            accumulate(kernel, inner, accumulator_of);
        }
    }
}
