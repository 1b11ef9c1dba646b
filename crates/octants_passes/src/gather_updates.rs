//! Lets each element collect what neighbouring iterations add to it, where they add at constant distances from their own index.
//!
//! Before:
//! ```text
//! parallel_for (%i: i32) in (1..%n) {
//!   %1: f32 = load %x[%i]
//!   %2: f32 = atomic_add %a[%i], %1
//!   %3: f32 = atomic_add %a[%i - 1], %1
//! }
//! ```
//! After (each element of `%a` belongs to one iteration `%p`, so `demote_atomics` makes the update a plain one):
//! ```text
//! parallel_for (%p: i32) in (1..%n - 1) {          elements that all of their iterations reach
//!   %1: f32 = load %x[%p]
//!   %2: f32 = load %x[%p + 1]
//!   %3: f32 = add %1, %2
//!   %4: f32 = atomic_add %a[%p], %3
//! }
//! parallel_for (%t: i32) in (0..2) brief {         the first and the last elements
//!   %p: i32 = …                                    0 or %n - 1
//!   if … { … }                                     collect from those of their iterations that there are
//! }
//! ```
//! What else the loop writes it writes afterwards, in a loop of its own: until then memory is what the iterations found. Where tasks are to be few, the first
//! and the last iterations add to the first and the last elements there, as before.
//!
//! Acts where the loop touches the array by additions and subtractions alone, whose old values nobody uses, with one parallel index plus a constant at a
//! position for each axis, and at two distances or more; and where computing the shares once for each distance is cheaper than the atomic
//! updates. What is read and written, too, must be the iteration's own, and read first. The body has no loops. Arguments are assumed not to alias.
//!
//! **Each pair of an iteration and a distance is added once, and no other iteration is.** Sums of an index and a distance are compared with bounds of the loop, which may
//! be the greatest integer: what wraps is kept out. No element has the greatest `i32` as its index, so elements are counted up to there at most, and an iteration that is computed from an element
//! is asked whether it is inside of the loop on each side where it may have wrapped.
//!
//! Expects scalars and plain index forms. Structured phase.

use std::collections::HashMap;

use octants_ir::ops::{ArithOp, AtomicOp, BitOp, CompareOp, Domain, ParallelFor};
use octants_ir::rewrite::{Parents, ValueMap, clone_op, ops_in, retain_ops, use_counts};
use octants_ir::{
    Boundary, Builder, Const, Kernel, Loc, Op, OpKind, Region, Scalar, SideTable, Type, Value, ValueDef,
};

use crate::analysis::{Affine, ArrayUse, accesses_of, own_cost};
use crate::assumptions::Assumptions;
use crate::demote_atomics::{demote_updates_of_own, separates_iterations, values_in};
use crate::edit::offsets::{constant_like, moved};
use crate::edit::slots::yielded;

/// Distances of an array's updates: so often are shares computed. Chosen, not measured: a bound on the size of the code; 27 is a cube of neighbours.
const MAX_DISTANCES: usize = 32;
/// How far distances may lie apart along an axis: so many elements at both ends ask which iterations there are. Chosen, not measured.
const MAX_SPREAD: i64 = 16;
/// Greatest first index, and distance. No sum of a few of them and an index of an array wraps.
const MAX_OFFSET: i64 = 1 << 20;

pub fn gather_updates(kernel: &mut Kernel, assumptions: Assumptions) {
    if !assumptions.noalias {
        return;
    }
    if !kernel.regions[kernel.body].ops.iter().any(|&op| kernel.parallel_loop(op).is_some()) {
        return;
    }
    let uses = use_counts(kernel);
    let parents = Parents::new(kernel);
    let tops = kernel.regions[kernel.body].ops.clone();
    let found: Vec<_> = tops.into_iter().map(|op| (op, find(kernel, op, &uses, &parents))).collect();
    if found.iter().all(|(_, updates)| updates.is_empty()) {
        return;
    }
    kernel.regions[kernel.body].ops.clear();
    for (op, found) in found {
        if !found.is_empty() {
            let mut is_gathered = SideTable::new(false);
            for update in found.iter().flat_map(|updates| &updates.all) {
                is_gathered.set(update.op, true);
            }
            let gathered = |update: Op| is_gathered[update];
            drop_hints(kernel, op, &found);
            let body = kernel.ops[op].regions[0];
            let writes = |&inner: &Op| kernel.ops[inner].kind.stays() && !gathered(inner);
            let stays = ops_in(kernel, body).iter().any(writes);
            let mut at_ends = Vec::new();
            for updates in &found {
                at_ends.extend(gather(kernel, op, updates, stays && assumptions.few_tasks));
            }
            retain_ops(kernel, body, &mut |_, inner| !gathered(inner));
            kernel.regions[body].ops.splice(0..0, at_ends);
            if !stays {
                continue;
            }
        }
        kernel.regions[kernel.body].ops.push(op);
    }
}

/// What is left of updates that are gathered is rare: blocks need not share its elements.
fn drop_hints(kernel: &mut Kernel, op: Op, found: &[Updates]) {
    let numbers: Vec<_> = found.iter().filter_map(|updates| kernel.as_param(updates.base)).collect();
    if let OpKind::ParallelFor(attributes) = &mut kernel.ops[op].kind {
        attributes.staged.retain(|&number| !numbers.contains(&(number as usize)));
    }
}

/// An update, and how far its element lies from the iteration, by axis.
struct Update {
    op: Op,
    distance: Vec<i64>,
    /// Whether it stands in the body itself, and so always runs.
    always: bool,
}

/// The updates of one array.
struct Updates {
    base: Value,
    /// The position of each axis among the indices.
    positions: Vec<usize>,
    all: Vec<Update>,
    /// Each once.
    distances: Vec<Vec<i64>>,
    /// The number of an update's distance.
    number: SideTable<Op, Option<usize>>,
}

impl Updates {
    fn least(&self, axis: usize) -> i64 {
        self.distances.iter().map(|distance| distance[axis]).min().unwrap_or(0)
    }

    fn greatest(&self, axis: usize) -> i64 {
        self.distances.iter().map(|distance| distance[axis]).max().unwrap_or(0)
    }

    fn spread(&self, axis: usize) -> i64 {
        self.greatest(axis) - self.least(axis)
    }

    /// Whether an op is one of the updates with a distance of this number.
    fn has(&self, op: Op, distance: usize) -> bool {
        self.number[op] == Some(distance)
    }
}

/// The arrays whose elements can collect.
fn find(kernel: &Kernel, op: Op, uses: &SideTable<Value, u32>, parents: &Parents) -> Vec<Updates> {
    let Some(parallel) = kernel.parallel_loop(op) else { return Vec::new() };
    let attributes = parallel.attributes;
    // What comes before 0 is less in signed integers alone.
    let small = |lo: Value| {
        let is_wide = matches!(kernel.ty(lo).scalar(), Some(Scalar::I32 | Scalar::I64));
        let lo = kernel.as_const(lo).and_then(Const::as_i128);
        is_wide && lo.is_some_and(|lo| (-i128::from(MAX_OFFSET)..=MAX_OFFSET.into()).contains(&lo))
    };
    if attributes.keeps_order()
        || kernel.cooperates(op)
        || attributes.domain != Domain::Ranges
        || !attributes.reductions.is_empty()
        || !parallel.bounds().all(|(lo, _)| small(lo))
    {
        return Vec::new();
    }
    let accesses = accesses_of(kernel, parallel.body);
    let adds = |access: &ArrayUse| matches!(kernel.ops[access.op].kind, OpKind::Atomic(_));
    if !accesses.iter().any(adds)
        || !ops_in(kernel, parallel.body).into_iter().all(|op| is_plain(kernel, op, uses))
    {
        return Vec::new();
    }
    let inside = values_in(kernel, parallel.body);
    // By array, each array's in order.
    let mut sorted: Vec<_> = accesses.iter().collect();
    sorted.sort_by_key(|access| access.base);
    let of_arrays: Vec<_> = sorted.chunk_by(|a, b| a.base == b.base).collect();
    if !of_arrays.iter().all(|own| reads_come_first(kernel, own, parallel.indices(), &inside)) {
        return Vec::new();
    }
    let updates_of = |own: &[&ArrayUse]| {
        let base = own[0].base;
        let updates = updates_of(kernel, base, own, parallel.indices(), &inside)?;
        let always = |op| parents.region(op) == Some(parallel.body);
        let all: Vec<_> =
            updates.into_iter().map(|(op, distance)| Update { op, distance, always: always(op) }).collect();
        let mut distances: Vec<_> = all.iter().map(|update| update.distance.clone()).collect();
        distances.sort_unstable();
        distances.dedup();
        let positions = positions(kernel, own[0], parallel.indices())?;
        let mut number = SideTable::new(None);
        for update in &all {
            number.set(update.op, distances.binary_search(&update.distance).ok());
        }
        let found = Updates { base, positions, all, distances, number };
        let near = (0..parallel.indices().len()).all(|axis| found.spread(axis) <= MAX_SPREAD);
        let several = (2..=MAX_DISTANCES).contains(&found.distances.len());
        (near && several && pays(kernel, parents, &found)).then_some(found)
    };
    of_arrays.into_iter().filter_map(updates_of).collect()
}

/// Whether the op may run once for each distance, or be left out of that.
fn is_plain(kernel: &Kernel, op: Op, uses: &SideTable<Value, u32>) -> bool {
    let data = &kernel.ops[op];
    match data.kind {
        OpKind::Load | OpKind::Store | OpKind::If | OpKind::Yield => true,
        OpKind::Atomic(_) => uses[data.results[0]] == 0,
        ref kind => kind.is_pure(),
    }
}

/// Whether iterations find what was there before the loop wherever they read the array that these accesses are all of.
fn reads_come_first(
    kernel: &Kernel,
    accesses: &[&ArrayUse],
    axes: &[Value],
    inside: &SideTable<Value, bool>,
) -> bool {
    let is_read = |access: &&ArrayUse| kernel.ops[access.op].kind == OpKind::Load;
    let Some(last_read) = accesses.iter().rposition(is_read) else { return true };
    let Type::Array(ty) = kernel.ty(accesses[0].base) else { return false };
    let Some(first_write) = accesses.iter().position(|access| access.writes) else { return true };
    ty.boundary == Boundary::Unsafe
        && last_read < first_write
        && axes.iter().all(|&axis| {
            (0..ty.rank.into())
                .any(|position| separates_iterations(kernel, accesses, position, axis, axes, inside))
        })
}

/// Where each axis stands among the indices of an access, if each stands alone somewhere.
fn positions(kernel: &Kernel, access: &ArrayUse, axes: &[Value]) -> Option<Vec<usize>> {
    let forms = access.forms(kernel);
    let alone = |form: &Option<Affine>, axis| form.as_ref().is_some_and(|form| form.terms == [(axis, 1)]);
    axes.iter().map(|&axis| forms.iter().position(|form| alone(form, axis))).collect()
}

/// The accesses of one array with their distances, if they are all updates that can be collected.
fn updates_of(
    kernel: &Kernel,
    base: Value,
    accesses: &[&ArrayUse],
    axes: &[Value],
    inside: &SideTable<Value, bool>,
) -> Option<Vec<(Op, Vec<i64>)>> {
    let Type::Array(ty) = kernel.ty(base) else { return None };
    if ty.boundary != Boundary::Unsafe || kernel.as_param(base).is_none() {
        return None;
    }
    let positions = positions(kernel, accesses.first()?, axes)?;
    let mut found = Vec::with_capacity(accesses.len());
    for access in accesses {
        let OpKind::Atomic(AtomicOp::Add | AtomicOp::Sub) = kernel.ops[access.op].kind else { return None };
        let mut distance = vec![0; axes.len()];
        for (position, form) in access.forms(kernel).into_iter().enumerate() {
            let form = form?;
            if let Some(axis) = positions.iter().position(|&own| own == position) {
                if form.terms != [(axes[axis], 1)] || form.constant.abs() > MAX_OFFSET {
                    return None;
                }
                distance[axis] = form.constant;
            } else if form.terms.iter().any(|&(term, _)| inside[term]) {
                return None;
            }
        }
        found.push((access.op, distance));
    }
    Some(found)
}

/// Whether the atomic updates cost more than computing the shares once for each distance.
fn pays(kernel: &Kernel, parents: &Parents, updates: &Updates) -> bool {
    let slice = |number: usize| {
        let own = updates.all.iter().map(|update| update.op).filter(|&op| updates.has(op, number));
        slice_cost(kernel, parents, own.collect())
    };
    let again = (0..updates.distances.len()).fold(0, |sum: u32, number| sum.saturating_add(slice(number)));
    let atomic =
        updates.all.iter().fold(0, |sum: u32, update| sum.saturating_add(own_cost(kernel, update.op)));
    again <= atomic
}

/// What the updates are computed from, without themselves.
fn slice_cost(kernel: &Kernel, parents: &Parents, updates: Vec<Op>) -> u32 {
    let (mut seen, mut is_update, mut cost) = (SideTable::new(false), SideTable::new(false), 0_u32);
    for &update in &updates {
        is_update.set(update, true);
    }
    let mut pending = updates;
    while let Some(op) = pending.pop() {
        if seen[op] {
            continue;
        }
        seen.set(op, true);
        let data = &kernel.ops[op];
        if !is_update[op] && data.regions.is_empty() {
            cost = cost.saturating_add(own_cost(kernel, op));
        }
        let yields = data.regions.iter().filter_map(|&region| kernel.terminator(region));
        for &value in data.operands.iter().chain(yields.flat_map(|end| &end.operands)) {
            if let ValueDef::Result(def, _) = kernel.values[value].def {
                pending.push(def);
            }
        }
        pending.extend(parents.region(op).and_then(|region| parents.op(region)));
    }
    cost
}

/// Puts loops at the end of the kernel's body that do the updates; what the first and last iterations do, `inside` of the loop's own body if its
/// ops for that are asked for.
fn gather(kernel: &mut Kernel, op: Op, updates: &Updates, inside: bool) -> Vec<Op> {
    let data = kernel.ops[op].clone();
    let OpKind::ParallelFor(attributes) = data.kind else { return Vec::new() };
    let mut building = Gathering {
        updates,
        attributes: &attributes,
        body: data.regions[0],
        loc: data.loc,
        bounds: Vec::new(),
    };
    for axis in data.operands.chunks_exact(2) {
        // A range that ends before it begins is empty, and so is what is left of it.
        let b = &mut Builder::at(kernel, kernel.body, data.loc);
        let hi = b.arith(ArithOp::Max, axis[0], axis[1]);
        building.bounds.push((axis[0], hi));
    }
    building.inner_elements(kernel);
    if inside {
        return building.outer_updates(kernel);
    }
    for axis in 0..building.bounds.len() {
        if updates.spread(axis) > 0 {
            building.outer_elements(kernel, axis);
        }
    }
    Vec::new()
}

struct Gathering<'g> {
    updates: &'g Updates,
    attributes: &'g ParallelFor,
    body: Region,
    loc: Loc,
    /// Of the iterations.
    bounds: Vec<(Value, Value)>,
}

impl Gathering<'_> {
    fn moved(&self, kernel: &mut Kernel, region: Region, value: Value, amount: i64) -> Value {
        moved(&mut Builder::at(kernel, region, self.loc), value, amount)
    }

    /// The elements along an axis that all distances reach from iterations.
    fn elements(&self, kernel: &mut Kernel, region: Region, axis: usize) -> (Value, Value) {
        let lo = self.moved(kernel, region, self.bounds[axis].0, self.updates.greatest(axis));
        let hi = self.last_bound(kernel, region, axis);
        (lo, self.moved(kernel, region, hi, self.updates.least(axis)))
    }

    /// The end of an axis, or less, where iterations behind it reach by the greatest distance what is no element: any distance added to it is an index.
    fn last_bound(&self, kernel: &mut Kernel, region: Region, axis: usize) -> Value {
        let hi = self.bounds[axis].1;
        let most = i64::from(i32::MAX) - self.updates.greatest(axis).max(0);
        let known = kernel.as_const(hi).and_then(Const::as_i128);
        if known.is_some_and(|known| known <= most.into()) {
            return hi;
        }
        let b = &mut Builder::at(kernel, region, self.loc);
        let most = constant_like(b, hi, most);
        b.arith(ArithOp::Min, hi, most)
    }

    /// Whether no iteration that is computed from an element of an axis can be beyond the greatest integer.
    fn ends_early(&self, kernel: &Kernel, axis: usize) -> bool {
        let known = kernel.as_const(self.bounds[axis].1).and_then(Const::as_i128);
        known.is_some_and(|known| known <= i128::from(i64::from(i32::MAX) - self.updates.spread(axis)))
    }

    /// A loop at the end of the kernel's body.
    fn add_loop(&self, kernel: &mut Kernel, bounds: Vec<Value>, region: Region, brief: bool) {
        Builder::at(kernel, region, self.loc).yields(&[]);
        let kind = OpKind::ParallelFor(Box::new(ParallelFor { brief, ..self.attributes.clone() }));
        Builder::at(kernel, kernel.body, self.loc).op(kind, bounds, [], [region]);
    }

    /// A loop over the elements that all distances reach: each collects.
    fn inner_elements(&self, kernel: &mut Kernel) {
        let mut bounds = Vec::new();
        for axis in 0..self.bounds.len() {
            let (lo, hi) = self.elements(kernel, kernel.body, axis);
            bounds.extend([lo, hi]);
        }
        let region = kernel.add_region();
        let params = kernel.regions[self.body].params.clone();
        let indices: Vec<_> =
            params.iter().map(|&param| kernel.add_region_param(region, kernel.ty(param))).collect();
        // By what is addressed beside the axes: the path, and the sum so far.
        let mut sums: Vec<(Vec<Value>, Value)> = Vec::new();
        let mut numbers: HashMap<Vec<Option<Affine>>, usize> = HashMap::new();
        for (number, distance) in self.updates.distances.iter().enumerate() {
            let mut names = ValueMap::new();
            for ((&param, &index), &distance) in params.iter().zip(&indices).zip(distance) {
                let index = self.moved(kernel, region, index, -distance);
                names.insert(param, index);
            }
            let chosen: Vec<_> =
                self.updates.all.iter().filter(|update| self.updates.has(update.op, number)).collect();
            let mut is_nested = SideTable::new(false);
            chosen.iter().filter(|update| !update.always).for_each(|update| is_nested.set(update.op, true));
            let nested = |op: Op| is_nested[op];
            copy_ops(kernel, self.body, region, &mut names, &nested, None);
            for update in chosen.iter().filter(|update| update.always) {
                let data = kernel.ops[update.op].clone();
                let (&share, path) = data.operands[1..].split_last().expect("an update has a value");
                let share = names.map(share);
                let path: Vec<_> = path.iter().map(|&index| names.map(index)).collect();
                let key: Vec<_> = path.iter().map(|&index| Affine::of(kernel, index)).collect();
                let b = &mut Builder::at(kernel, region, data.loc);
                let subtracts = data.kind == OpKind::Atomic(AtomicOp::Sub);
                if let Some(&known) = numbers.get(&key) {
                    let op = if subtracts { ArithOp::Sub } else { ArithOp::Add };
                    sums[known].1 = b.arith(op, sums[known].1, share);
                } else {
                    let first = if subtracts { b.arith_unary(ArithOp::Neg, share) } else { share };
                    numbers.insert(key, sums.len());
                    sums.push((path, first));
                }
            }
        }
        for (path, sum) in sums {
            Builder::at(kernel, region, self.loc).atomic(AtomicOp::Add, self.updates.base, &path, sum);
        }
        self.add_loop(kernel, bounds, region, self.attributes.brief);
    }

    /// The elements near both ends of an axis, and far from those of the axes before it, which not all distances reach: each collects from those that do.
    fn outer_elements(&self, kernel: &mut Kernel, ends: usize) {
        let body = kernel.body;
        let mut bounds = Vec::new();
        for axis in 0..self.bounds.len() {
            let (lo, _) = self.bounds[axis];
            let updates = self.updates;
            bounds.extend(match axis.cmp(&ends) {
                std::cmp::Ordering::Less => <[Value; 2]>::from(self.elements(kernel, body, axis)),
                std::cmp::Ordering::Equal => {
                    let b = &mut Builder::at(kernel, body, self.loc);
                    [0, 2 * updates.spread(axis)].map(|bound| constant_like(b, lo, bound))
                }
                std::cmp::Ordering::Greater => {
                    let hi = self.last_bound(kernel, body, axis);
                    [
                        self.moved(kernel, body, lo, updates.least(axis)),
                        self.moved(kernel, body, hi, updates.greatest(axis)),
                    ]
                }
            });
        }
        let region = kernel.add_region();
        let params = kernel.regions[self.body].params.clone();
        let mut element = Vec::new();
        for (axis, &param) in params.iter().enumerate() {
            let index = kernel.add_region_param(region, kernel.ty(param));
            element.push(if axis == ends { self.end_element(kernel, region, axis, index) } else { index });
        }
        for (number, distance) in self.updates.distances.iter().enumerate() {
            let mut names = ValueMap::new();
            let mut reaches = None;
            for (axis, (&param, &index)) in params.iter().zip(&element).enumerate() {
                let iteration = self.moved(kernel, region, index, -distance[axis]);
                names.insert(param, iteration);
                let (lo, hi) = self.bounds[axis];
                let mut checks = Vec::new();
                let is_first = distance[axis] == self.updates.least(axis);
                if axis >= ends && !(is_first && (distance[axis] >= 0 || self.ends_early(kernel, axis))) {
                    checks.push((CompareOp::Ge, lo));
                }
                if axis == ends || axis > ends && distance[axis] != self.updates.greatest(axis) {
                    checks.push((CompareOp::Lt, hi));
                }
                for (compare, bound) in checks {
                    let b = &mut Builder::at(kernel, region, self.loc);
                    let here = b.compare(compare, iteration, bound);
                    reaches = Some(reaches.map_or(here, |other| b.bit(BitOp::And, other, here)));
                }
            }
            let then = kernel.add_region();
            let own = |op: Op| self.updates.has(op, number);
            copy_ops(kernel, self.body, then, &mut names, &own, None);
            Builder::at(kernel, then, self.loc).yields(&[]);
            let b = &mut Builder::at(kernel, region, self.loc);
            let none = b.region_of(&[], |_, _| Vec::new());
            b.op(OpKind::If, reaches, [], [then, none]);
        }
        // Nobody else could find out that elements of different numbers are different ones.
        demote_updates_of_own(kernel, region, self.updates.base);
        self.add_loop(kernel, bounds, region, true);
    }

    /// A region with the updates of an iteration whose elements are not collected.
    fn uncollected_updates(
        &self,
        kernel: &mut Kernel,
        names: &mut ValueMap,
        collected: &[(Value, Value)],
    ) -> Region {
        let region = kernel.add_region();
        let is_update = |op: Op| self.updates.number[op].is_some();
        let uncollected = |kernel: &mut Kernel, region: Region, operands: &[Value]| {
            self.is_outside(kernel, region, operands, collected)
        };
        copy_ops(kernel, self.body, region, names, &is_update, Some(&uncollected));
        Builder::at(kernel, region, self.loc).yields(&[]);
        region
    }

    /// The same for the loop's own body: ops for its beginning. Most iterations do nothing there; that is the side of the `if` that stands first.
    fn outer_updates(&self, kernel: &mut Kernel) -> Vec<Op> {
        let body = kernel.body;
        let mut far = Vec::new();
        let mut collected = Vec::new();
        for axis in 0..self.bounds.len() {
            let (lo, spread) = (self.bounds[axis].0, self.updates.spread(axis));
            let hi = self.last_bound(kernel, body, axis);
            collected.push(self.elements(kernel, body, axis));
            far.push((self.moved(kernel, body, lo, spread), self.moved(kernel, body, hi, -spread)));
        }
        let region = kernel.add_region();
        let indices = kernel.regions[self.body].params.clone();
        let mut is_far = None;
        for (axis, (first, end)) in
            far.into_iter().enumerate().filter(|&(axis, _)| self.updates.spread(axis) > 0)
        {
            let b = &mut Builder::at(kernel, region, self.loc);
            let (behind, before) = (
                b.compare(CompareOp::Ge, indices[axis], first),
                b.compare(CompareOp::Lt, indices[axis], end),
            );
            let here = b.bit(BitOp::And, behind, before);
            is_far = Some(is_far.map_or(here, |other| b.bit(BitOp::And, other, here)));
        }
        let near = self.uncollected_updates(kernel, &mut ValueMap::new(), &collected);
        let b = &mut Builder::at(kernel, region, self.loc);
        let none = b.region_of(&[], |_, _| Vec::new());
        b.op(OpKind::If, is_far, [], [none, near]);
        std::mem::take(&mut kernel.regions[region].ops)
    }

    /// The elements at both ends by number: as many at the beginning as distances lie apart, then those behind the inner ones. There may be fewer:
    /// no iteration reaches what is left of the numbers.
    fn end_element(&self, kernel: &mut Kernel, region: Region, axis: usize, number: Value) -> Value {
        let (inner, end) = self.elements(kernel, region, axis);
        let first = self.moved(kernel, region, self.bounds[axis].0, self.updates.least(axis));
        let b = &mut Builder::at(kernel, region, self.loc);
        let spread = constant_like(b, first, self.updates.spread(axis));
        let behind = b.arith(ArithOp::Max, inner, end);
        let behind = b.arith(ArithOp::Sub, behind, spread);
        let is_begin = b.compare(CompareOp::Lt, number, spread);
        let from = b.select(is_begin, first, behind);
        b.arith(ArithOp::Add, from, number)
    }

    /// Whether the element of an update with these operands is not collected.
    fn is_outside(
        &self,
        kernel: &mut Kernel,
        region: Region,
        operands: &[Value],
        collected: &[(Value, Value)],
    ) -> Value {
        let b = &mut Builder::at(kernel, region, self.loc);
        let mut outside = None;
        for (&(lo, hi), &position) in collected.iter().zip(&self.updates.positions) {
            let index = operands[1 + position];
            let scalar = b.kernel.ty(lo).scalar().unwrap_or(Scalar::I32);
            let index = if b.kernel.ty(index) == b.kernel.ty(lo) { index } else { b.cast(index, scalar) };
            let (before, behind) = (b.compare(CompareOp::Lt, index, lo), b.compare(CompareOp::Ge, index, hi));
            let here = b.bit(BitOp::Or, before, behind);
            outside = Some(outside.map_or(here, |other| b.bit(BitOp::Or, other, here)));
        }
        outside.expect("a loop has an axis")
    }
}

/// Says at the end of a region whether an update with these operands is to run.
type Guard<'g> = &'g dyn Fn(&mut Kernel, Region, &[Value]) -> Value;

/// Copies what a region does, without the terminator, to the end of another one. Of what it writes only what is `kept`, there under a guard.
fn copy_ops(
    kernel: &mut Kernel,
    from: Region,
    to: Region,
    names: &mut ValueMap,
    kept: &dyn Fn(Op) -> bool,
    guard: Option<Guard<'_>>,
) {
    for op in kernel.regions[from].ops.clone() {
        let data = kernel.ops[op].clone();
        match (&data.kind, guard) {
            (OpKind::Yield, _) => {}
            (OpKind::Store | OpKind::Atomic(_), _) if !kept(op) => {}
            (OpKind::Atomic(_), Some(guard)) => {
                let operands: Vec<_> = data.operands.iter().map(|&operand| names.map(operand)).collect();
                let runs = guard(kernel, to, &operands);
                let copy = clone_op(kernel, op, names);
                let then = kernel.add_region();
                kernel.regions[then].ops.push(copy);
                Builder::at(kernel, then, data.loc).yields(&[]);
                let b = &mut Builder::at(kernel, to, data.loc);
                let none = b.region_of(&[], |_, _| Vec::new());
                b.op(OpKind::If, [runs], [], [then, none]);
            }
            (OpKind::If, _) => {
                let mut regions = Vec::new();
                for &inner in &data.regions {
                    let copy = kernel.add_region();
                    copy_ops(kernel, inner, copy, names, kept, guard);
                    let yielded: Vec<_> =
                        yielded(kernel, inner).iter().map(|&value| names.map(value)).collect();
                    Builder::at(kernel, copy, data.loc).yields(&yielded);
                    regions.push(copy);
                }
                let types: Vec<_> = data.results.iter().map(|&result| kernel.ty(result)).collect();
                let condition = names.map(data.operands[0]);
                let copy = Builder::at(kernel, to, data.loc).op(OpKind::If, [condition], types, regions);
                for (index, &result) in data.results.iter().enumerate() {
                    names.insert(result, kernel.ops[copy].results[index]);
                }
            }
            _ => {
                let copy = clone_op(kernel, op, names);
                kernel.regions[to].ops.push(copy);
            }
        }
    }
}
