//! Turns an atomic update into a plain one where no other thread can touch the place.
//!
//! Before:
//! ```text
//! parallel_for (%i: i32) in (%0..%n) {
//!   %1: f32 = atomic_add %a[%i], %x
//! }
//! ```
//! After:
//! ```text
//! parallel_for (%i: i32) in (%0..%n) {
//!   %1: f32 = load %a[%i]
//!   %2: f32 = add %1, %x
//!   store %a[%i], %2
//! }
//! ```
//!
//! No other thread can touch it when the op runs outside parallel loops, or in one with `max_threads 1`; when it is a local
//! declared by the iteration; or when it is an array element that belongs to the iteration: each parallel index stands, plus or
//! minus something that is the same for all iterations, at one position of the index of *every* write to that array in the loop.
//! Reads elsewhere do not matter: against an atomic update, too, they see the old or the new element. Arrays may overlap, shifted even, so
//! another array that is written in the loop bars it, unless arguments are assumed not to alias. Indices that are clamped are
//! not distinct.
//!
//! Expects scalars; either phase.

use octants_ir::rewrite::{ValueMap, regions_in};
use octants_ir::{Boundary, Builder, Kernel, Op, OpKind, Region, SideTable, Type, Value};

use crate::analysis::{Affine, ArrayUse, accesses_of, arrays_of_siblings};
use crate::assumptions::Assumptions;
use crate::edit::update::updated_by;

pub fn demote_atomics(kernel: &mut Kernel, assumptions: Assumptions) {
    demote_atomics_where(kernel, assumptions, &|_, _| true);
}

/// Of the updates only those that are `wanted`.
pub(crate) fn demote_atomics_where(kernel: &mut Kernel, assumptions: Assumptions, wanted: Wanted<'_>) {
    let mut demotion = Demotion { names: ValueMap::new(), changed: false, wanted };
    for op in kernel.regions[kernel.body].ops.clone() {
        match &kernel.ops[op].kind {
            OpKind::ParallelFor(attributes) if attributes.max_threads == Some(1) => {
                demotion.region(kernel, kernel.ops[op].regions[0], &PrivatePlaces::Everything);
            }
            OpKind::ParallelFor(_) => {
                let owned = owned_arrays(kernel, op, assumptions);
                demotion.iterations(kernel, op, owned);
            }
            OpKind::Fork => demotion.fork(kernel, op, assumptions),
            _ => {}
        }
    }
    // A function may be called by any thread, but its variables are its own, and so are those that it is passed.
    for (_, function) in kernel.functions.clone().iter() {
        let mut inside = values_in(kernel, function.body);
        for &param in &kernel.regions[function.body].params {
            inside.set(param, matches!(kernel.ty(param), Type::Local(_)));
        }
        demotion.region(kernel, function.body, &PrivatePlaces::Some { inside, owned: Vec::new() });
    }
    // What is left at the top, and in regions of ops there, runs on one thread.
    demotion.region(kernel, kernel.body, &PrivatePlaces::Everything);
    if demotion.changed {
        for body in kernel.bodies() {
            octants_ir::rewrite::replace_values(kernel, body, &demotion.names);
        }
    }
}

/// Makes updates of the array plain ones: the iteration whose body the region is has their elements to itself. Nobody uses their old values.
pub(crate) fn demote_updates_of_own(kernel: &mut Kernel, region: Region, array: Value) {
    let mut demotion = Demotion { names: ValueMap::new(), changed: false, wanted: &|_, _| true };
    let private = PrivatePlaces::Some { inside: SideTable::new(false), owned: vec![array] };
    demotion.region(kernel, region, &private);
}

/// Which places no other thread can touch.
enum PrivatePlaces {
    Everything,
    Some {
        /// Values defined by the iteration.
        inside: SideTable<Value, bool>,
        owned: Vec<Value>,
    },
}

impl PrivatePlaces {
    fn has(&self, base: Value) -> bool {
        match self {
            Self::Everything => true,
            Self::Some { inside, owned } => inside[base] || owned.contains(&base),
        }
    }
}

pub(crate) fn values_in(kernel: &Kernel, region: Region) -> SideTable<Value, bool> {
    let mut inside = SideTable::new(false);
    for region in regions_in(kernel, region) {
        let data = &kernel.regions[region];
        let results = data.ops.iter().flat_map(|&op| &kernel.ops[op].results);
        for &value in data.params.iter().chain(results) {
            inside.set(value, true);
        }
    }
    inside
}

/// Arrays whose written elements each belong to one iteration.
fn owned_arrays(kernel: &Kernel, op: Op, assumptions: Assumptions) -> Vec<Value> {
    let Some(parallel) = kernel.parallel_loop(op) else { return Vec::new() };
    let inside = values_in(kernel, parallel.body);
    let axes = parallel.indices();
    let writes: Vec<_> = accesses_of(kernel, parallel.body)
        .into_iter()
        .filter(|access| access.writes && matches!(kernel.ty(access.base), Type::Array(_)))
        .collect();
    // What the loop reduces into already is written by all iterations.
    let reduced: Vec<_> = parallel.reductions().map(|reduction| reduction.place.base()).collect();
    let is_array = |base: &Value| matches!(kernel.ty(*base), Type::Array(_));
    let mut arrays: Vec<Value> =
        writes.iter().map(|access| access.base).chain(reduced.iter().copied().filter(is_array)).collect();
    arrays.sort_unstable();
    arrays.dedup();
    if arrays.len() > 1 && !assumptions.noalias {
        return Vec::new();
    }
    arrays.retain(|&array| {
        let Type::Array(ty) = kernel.ty(array) else { return false };
        let to_array: Vec<_> = writes.iter().filter(|access| access.base == array).collect();
        // What a function writes, nobody here knows the place of.
        let called = to_array.iter().any(|access| matches!(kernel.ops[access.op].kind, OpKind::Call(_)));
        ty.boundary == Boundary::Unsafe
            && !called
            && !reduced.contains(&array)
            && axes.iter().all(|&axis| {
                (0..ty.rank.into())
                    .any(|position| separates_iterations(kernel, &to_array, position, axis, axes, &inside))
            })
    });
    arrays
}

/// Whether all accesses have one and the same index at the position, and that tells iterations along the axis apart.
pub(crate) fn separates_iterations(
    kernel: &Kernel,
    accesses: &[&ArrayUse],
    position: usize,
    axis: Value,
    axes: &[Value],
    inside: &SideTable<Value, bool>,
) -> bool {
    let form = |access: &ArrayUse| Affine::of(kernel, access.path[position]);
    let Some(first) = form(accesses[0]) else { return false };
    let tells_apart = matches!(first.coefficient(axis), 1 | -1)
        && first.terms.iter().all(|&(term, _)| term == axis || (!axes.contains(&term) && !inside[term]));
    tells_apart && accesses[1..].iter().all(|access| form(access).as_ref() == Some(&first))
}

/// Whether an update is to become a plain one, if it can.
pub(crate) type Wanted<'w> = &'w dyn Fn(&Kernel, Op) -> bool;

struct Demotion<'w> {
    names: ValueMap,
    changed: bool,
    wanted: Wanted<'w>,
}

impl Demotion<'_> {
    /// The iterations of a parallel loop, each of which has its elements of `owned` to itself.
    fn iterations(&mut self, kernel: &mut Kernel, op: Op, owned: Vec<Value>) {
        let body = kernel.ops[op].regions[0];
        let mut inside = values_in(kernel, body);
        // Memory of a block is all of its threads'.
        for op in octants_ir::rewrite::ops_in(kernel, body) {
            if kernel.ops[op].kind.makes_shared() {
                inside.set(kernel.ops[op].results[0], false);
            }
        }
        let private = PrivatePlaces::Some { inside, owned };
        self.region(kernel, body, &private);
    }

    /// A branch has its own variables to itself, and a loop in it what no other branch touches.
    fn fork(&mut self, kernel: &mut Kernel, fork: Op, assumptions: Assumptions) {
        let branches = kernel.ops[fork].regions.clone();
        let touched = arrays_of_siblings(kernel, fork);
        for (&branch, elsewhere) in branches.iter().zip(touched) {
            for op in kernel.regions[branch].ops.clone() {
                if !matches!(kernel.ops[op].kind, OpKind::ParallelFor(_)) {
                    continue;
                }
                let mut owned = owned_arrays(kernel, op, assumptions);
                owned.retain(|array| {
                    if assumptions.noalias { !elsewhere.contains(array) } else { elsewhere.is_empty() }
                });
                self.iterations(kernel, op, owned);
            }
            let private = PrivatePlaces::Some { inside: values_in(kernel, branch), owned: Vec::new() };
            self.region(kernel, branch, &private);
        }
    }

    fn region(&mut self, kernel: &mut Kernel, region: Region, private: &PrivatePlaces) {
        for op in std::mem::take(&mut kernel.regions[region].ops) {
            let data = &kernel.ops[op];
            let updates = matches!(data.kind, OpKind::Atomic(_) | OpKind::AtomicCas);
            if updates && private.has(data.operands[0]) && (self.wanted)(kernel, op) {
                self.plain(kernel, region, op);
                continue;
            }
            let inner = data.regions.clone();
            let is_task = data.kind.holds_tasks();
            kernel.regions[region].ops.push(op);
            if !is_task {
                for inner in inner {
                    self.region(kernel, inner, private);
                }
            }
        }
    }

    fn plain(&mut self, kernel: &mut Kernel, region: Region, op: Op) {
        let data = &kernel.ops[op];
        let (loc, result) = (data.loc, data.results[0]);
        let place = kernel.cell_access(op).expect("an update accesses a cell").place;
        let (base, path) = (place.base(), place.path().to_vec());
        let mut b = Builder::at(kernel, region, loc);
        let old = b.load(base, &path);
        let new = updated_by(&mut b, op, old);
        b.store(base, &path, new);
        self.names.insert(result, old);
        self.changed = true;
    }
}
