//! Lets iterations update what lies in their own row without atomics, where rows turn out to be disjoint.
//!
//! A row is a range between neighbouring entries of an array, as in a sparse matrix; rows are disjoint where the entries ascend, which a launch finds out.
//!
//! Before:
//! ```text
//! parallel_for (%i: i32) in (0..%n) {
//!   %lo: i32 = load %first[%i]
//!   %hi: i32 = load %first[%i + 1]
//!   for %k: i32 in %lo..%hi {
//!     %1: f32 = atomic_add %a[%k], %x
//!   }
//! }
//! ```
//! After (`privatise_reductions` makes the first loop a reduction):
//! ```text
//! %ascend: local<i32> = local
//! store %ascend, 1
//! parallel_for (%i: i32) in (0..%n) {
//!   %2: i32 = …                                    1 where %first[%i] <= %first[%i + 1]
//!   %3: i32 = atomic_min %ascend, %2
//! }
//! parallel_for (%i: i32) in (0..%n) {
//!   %4: i32 = load %ascend
//!   %own: u1 = ne %4, 0
//!   …
//!   for %k: i32 in %lo..%hi {
//!     if %own {
//!       %5: f32 = load %a[%k]
//!       %6: f32 = add %5, %x
//!       store %a[%k], %6
//!     } else {
//!       %1: f32 = atomic_add %a[%k], %x
//!     }
//!   }
//! }
//! ```
//! Acts on loops over one axis whose iterations all read where their row begins and ends, on arrays whose writes in the loop are all such updates, whose
//! old values nobody uses. A row may be run through from its end, as the derivatives of loops do. Where tasks are to be few, atomic updates cost less than a task. Arguments are assumed not to alias.
//!
//! Expects scalars and plain index forms; before `demote_atomics`. Structured phase.

use octants_ir::ops::{AtomicOp, CompareOp, Domain, Effects, ParallelFor};
use octants_ir::rewrite::{ops_in, regions_in, use_counts};
use octants_ir::{Boundary, Builder, Data, Kernel, Op, OpKind, Scalar, SideTable, Type, Value, ValueDef};

use crate::analysis::{Affine, ArrayUse, accesses_of};
use crate::assumptions::Assumptions;
use crate::edit::offsets::moved;
use crate::edit::update::updated_by;

pub fn partition_by_rows(kernel: &mut Kernel, assumptions: Assumptions) {
    if !assumptions.noalias || assumptions.few_tasks {
        return;
    }
    let uses = use_counts(kernel);
    let tops = kernel.regions[kernel.body].ops.clone();
    let found: Vec<_> = tops.into_iter().map(|op| (op, find(kernel, op, &uses))).collect();
    if found.iter().all(|(_, partition)| partition.is_none()) {
        return;
    }
    kernel.regions[kernel.body].ops.clear();
    for (op, partition) in found {
        if let Some(partition) = partition {
            let ascend = check_rows(kernel, op, partition.entries);
            make_plain_if(kernel, op, ascend, &partition.updates);
        }
        kernel.regions[kernel.body].ops.push(op);
    }
}

/// Where rows begin: `array[iteration + offset]`, and where they end: at the next entry.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entries {
    array: Value,
    offset: i64,
}

/// Updates that are inside of rows.
struct Partition {
    entries: Entries,
    updates: Vec<Op>,
}

/// A serial loop over a row.
struct RowLoop {
    counter: Value,
    lo: Value,
    hi: Value,
    entries: Entries,
}

fn find(kernel: &Kernel, op: Op, uses: &SideTable<Value, u32>) -> Option<Partition> {
    let parallel = kernel.parallel_loop(op)?;
    let attributes = parallel.attributes;
    let &[index] = parallel.indices() else { return None };
    if attributes.keeps_order()
        || attributes.domain != Domain::Ranges
        || !attributes.reductions.is_empty()
        || kernel.has_effects(parallel.body, Effects::CONVERGENT)
    {
        return None;
    }
    let accesses = accesses_of(kernel, parallel.body);
    let is_read_only = |array: Value| !accesses.iter().any(|access| access.base == array && access.writes);
    let ops = ops_in(kernel, parallel.body);
    // What is read ahead of the loop must be there: each iteration reads it, and nothing that fails before keeps it from doing so.
    if ops.iter().any(|&op| kernel.ops[op].kind.may_stop_thread()) {
        return None;
    }
    let always = |value: Value| match kernel.values[value].def {
        ValueDef::Result(op, _) => kernel.regions[parallel.body].ops.contains(&op),
        ValueDef::Param(..) => false,
    };
    let is_row = |row: &RowLoop| is_read_only(row.entries.array) && [row.lo, row.hi].into_iter().all(always);
    let mut rows: Vec<_> =
        ops.into_iter().filter_map(|op| row_loop(kernel, op, index)).filter(is_row).collect();
    let entries = rows.first()?.entries;
    rows.retain(|row| row.entries == entries);
    let mut arrays: Vec<_> =
        accesses.iter().filter(|access| access.writes).map(|access| access.base).collect();
    arrays.sort_unstable();
    arrays.dedup();
    let mut updates = Vec::new();
    for array in arrays {
        let Type::Array(ty) = kernel.ty(array) else { continue };
        let writes: Vec<_> = accesses.iter().filter(|access| access.base == array && access.writes).collect();
        let is_update = |access: &&ArrayUse| {
            let data = &kernel.ops[access.op];
            matches!(data.kind, OpKind::Atomic(_)) && uses[data.results[0]] == 0
        };
        let in_row = |position: usize| {
            writes.iter().all(|access| {
                let form = Affine::of(kernel, access.path[position]);
                form.is_some_and(|form| rows.iter().any(|row| row.contains(&form)))
            })
        };
        if ty.boundary == Boundary::Unsafe && writes.iter().all(is_update) && (0..ty.rank.into()).any(in_row)
        {
            updates.extend(writes.iter().map(|access| access.op));
        }
    }
    (!updates.is_empty()).then_some(Partition { entries, updates })
}

/// The op as a loop over the row of the iteration with this index.
fn row_loop(kernel: &Kernel, op: Op, index: Value) -> Option<RowLoop> {
    let data = &kernel.ops[op];
    let OpKind::For = data.kind else { return None };
    let (lo, hi) = (data.operands[0], data.operands[1]);
    let (begin, end) = (entry(kernel, lo, index)?, entry(kernel, hi, index)?);
    let next = Entries { offset: begin.offset.checked_add(1)?, ..begin };
    let counter = *kernel.regions[data.regions[0]].params.first()?;
    (end == next).then_some(RowLoop { counter, lo, hi, entries: begin })
}

/// The value as an entry that the iteration with this index reads.
fn entry(kernel: &Kernel, value: Value, index: Value) -> Option<Entries> {
    let load = kernel.def(value).filter(|op| op.kind == OpKind::Load)?;
    let &[array, at] = &load.operands[..] else { return None };
    let form = Affine::of(kernel, at)?;
    let Type::Array(ty) = kernel.ty(array) else { return None };
    let plain = ty.boundary == Boundary::Unsafe && kernel.as_param(array).is_some();
    (plain && form.terms == [(index, 1)]).then_some(Entries { array, offset: form.constant })
}

impl RowLoop {
    /// Whether an index is of this row: the counter, or, from the end, `lo + hi - 1 - counter`.
    fn contains(&self, index: &Affine) -> bool {
        let forward = index.constant == 0 && index.terms == [(self.counter, 1)];
        let backward = index.constant == -1
            && index.terms.len() == 3
            && index.coefficient(self.counter) == -1
            && [self.lo, self.hi].iter().all(|&bound| index.coefficient(bound) == 1);
        forward || backward
    }
}

/// Puts a loop at the end of the kernel's body that finds out whether rows ascend, and gives the variable that says so.
fn check_rows(kernel: &mut Kernel, op: Op, entries: Entries) -> Value {
    let data = kernel.ops[op].clone();
    let index_ty = kernel.ty(kernel.regions[data.regions[0]].params[0]);
    let region = kernel.add_region();
    let index = kernel.add_region_param(region, index_ty);
    let body = kernel.body;
    let b = &mut Builder::at(kernel, body, data.loc);
    let ascend = b.local(Data::Scalar(Scalar::I32));
    let yes = b.i32(1);
    b.store(ascend, &[], yes);
    b.within(region, |b| {
        let [begin, end] = [entries.offset, entries.offset + 1].map(|offset| {
            let at = moved(b, index, offset);
            b.load(entries.array, &[at])
        });
        let here = b.compare(CompareOp::Le, begin, end);
        let here = b.cast(here, Scalar::I32);
        b.atomic(AtomicOp::Min, ascend, &[], here);
        b.yields(&[]);
    });
    let kind = OpKind::ParallelFor(Box::new(ParallelFor { axes: 1, ..ParallelFor::default() }));
    b.op(kind, data.operands, [], [region]);
    ascend
}

/// Makes the updates of a loop plain ones where rows ascend: iterations have their elements to themselves.
fn make_plain_if(kernel: &mut Kernel, op: Op, ascend: Value, updates: &[Op]) {
    let body = kernel.ops[op].regions[0];
    // In the loop itself, so that no task is needed for it.
    let test = kernel.add_region();
    let loc = kernel.ops[op].loc;
    let b = &mut Builder::at(kernel, test, loc);
    let found = b.load(ascend, &[]);
    let no = b.i32(0);
    let own = b.compare(CompareOp::Ne, found, no);
    for region in regions_in(kernel, body) {
        for op in std::mem::take(&mut kernel.regions[region].ops) {
            if !updates.contains(&op) {
                kernel.regions[region].ops.push(op);
                continue;
            }
            let (plain, shared) = (kernel.add_region(), kernel.add_region());
            let place = kernel.cell_access(op).expect("an update accesses a cell").place;
            let (base, path, loc) = (place.base(), place.path().to_vec(), kernel.ops[op].loc);
            let b = &mut Builder::at(kernel, plain, loc);
            let old = b.load(base, &path);
            let new = updated_by(b, op, old);
            b.store(base, &path, new);
            b.yields(&[]);
            kernel.regions[shared].ops.push(op);
            Builder::at(kernel, shared, loc).yields(&[]);
            Builder::at(kernel, region, loc).op(OpKind::If, [own], [], [plain, shared]);
        }
    }
    let test = std::mem::take(&mut kernel.regions[test].ops);
    kernel.regions[body].ops.splice(0..0, test);
}
