//! Deals the iterations of a loop out by words where it assigns elements that share them: who has all elements of a word needs no compare-and-swap.
//!
//! Before (`replace …` stands for a compare-and-swap until it succeeds, `replacement` has its form):
//! ```text
//! parallel_for (%j: i32) in (%lo..%hi) {
//!   %1: u32 = …
//!   replace bits (%j & 7) * 4 of %y[%j >> 3] by %1
//! }
//! ```
//! After:
//! ```text
//! parallel_for (%w: i32) in (%lo >> 3..((%hi - 1) >> 3) + 1) {
//!   for %j: i32 in max(%lo, %w * 8)..min(%hi, %w * 8 + 8) {
//!     %1: u32 = …
//!     %old: u32 = load %y[%w]
//!     %new: u32 = …                                  %old with the bits replaced
//!     store %y[%w], %new
//!   }
//! }
//! ```
//! Acts on loops over ranges of many words that need no order, on arrays whose writes in the loop are all such assignments to the word of the iteration's own index,
//! and that no other branch refers to: it may write other elements of the same words at the same time.
//! Where tasks are to be few there are many threads, and a word has too few elements to give each of them enough to do: not there.
//!
//! Expects plain index forms; structured phase.

use octants_ir::ops::{ArithOp, BitOp, CompareOp, Effects};
use octants_ir::rewrite::{ValueMap, clone_body, clone_op, insert_before, ops_in, regions_in, use_counts};
use octants_ir::{Boundary, Builder, Kernel, Op, OpKind, Region, SideTable, Type, Value};

use crate::analysis::{ArrayUse, accesses_of, arrays_beside};
use crate::analysis::{Replacement, may_replace};
use crate::assumptions::Assumptions;
use crate::demote_atomics::{separates_iterations, values_in};

/// A loop of fewer words is left as it is: threads would have nothing to do. Chosen, not measured: a few for each thread of a large machine.
const LEAST_WORDS: i128 = 256;

pub fn partition_by_words(kernel: &mut Kernel, assumptions: Assumptions) {
    if !assumptions.noalias || assumptions.few_tasks {
        return;
    }
    let mut uses = None;
    for region in kernel.top_regions() {
        let mut elsewhere = None;
        for op in kernel.regions[region].ops.clone() {
            if !may_replace(kernel, op) {
                continue;
            }
            let uses = uses.get_or_insert_with(|| use_counts(kernel));
            let elsewhere = elsewhere.get_or_insert_with(|| arrays_beside(kernel, region));
            if let Some(partition) = find(kernel, op, uses, elsewhere) {
                run_by_words(kernel, region, op, &partition);
            }
        }
    }
}

/// What an iteration for a word has to itself.
struct Partition {
    /// Which axis runs over words, and how many elements they have.
    axis: usize,
    lanes: i32,
    /// Arrays of words, with the position of the index that counts them.
    arrays: Vec<(Value, usize)>,
}

/// How the iterations can be dealt out by words; not for arrays that are touched `elsewhere`.
fn find(kernel: &Kernel, op: Op, uses: &SideTable<Value, u32>, elsewhere: &[Value]) -> Option<Partition> {
    let parallel = kernel.parallel_loop(op).filter(|parallel| !parallel.attributes.keeps_order())?;
    let (body, axes) = (parallel.body, parallel.indices());
    if kernel.has_effects(body, Effects::CONVERGENT) {
        return None;
    }
    let inside = values_in(kernel, body);
    let accesses = accesses_of(kernel, body);
    let mut partition: Option<Partition> = None;
    for assignment in ops_in(kernel, body).into_iter().filter_map(|op| Replacement::of(kernel, op, uses)) {
        let array = assignment.base;
        if elsewhere.binary_search(&array).is_ok() {
            continue;
        }
        if partition
            .as_ref()
            .is_some_and(|partition| partition.arrays.iter().any(|&(known, _)| known == array))
        {
            continue;
        }
        let writes: Vec<_> = accesses.iter().filter(|access| access.writes && access.base == array).collect();
        let Some((position, axis, lanes)) = own_word(kernel, &writes, &assignment.path, axes) else {
            continue;
        };
        let fits =
            partition.as_ref().is_none_or(|partition| (partition.axis, partition.lanes) == (axis, lanes));
        let is_unsafe = matches!(kernel.ty(array), Type::Array(ty) if ty.boundary == Boundary::Unsafe);
        let is_assigned = |access: &&ArrayUse| matches!(kernel.ops[access.op].kind, OpKind::AtomicCas);
        let separate = axes.iter().filter(|&&other| other != axes[axis]).all(|&other| {
            (0..assignment.path.len())
                .any(|position| separates_iterations(kernel, &writes, position, other, axes, &inside))
        });
        if fits && is_unsafe && separate && writes.iter().all(is_assigned) {
            partition
                .get_or_insert(Partition { axis, lanes, arrays: Vec::new() })
                .arrays
                .push((array, position));
        }
    }
    let found = partition.filter(|partition| has_enough_words(kernel, op, partition))?;
    // All that write such an array are assignments, no other compare-and-swap.
    let assigned = ops_in(kernel, body).into_iter().filter_map(|op| Replacement::of(kernel, op, uses));
    let assigned: Vec<_> = assigned.map(|assignment| assignment.base).collect();
    let is_only_assigned = |&(array, _): &(Value, usize)| {
        let exchanges = accesses.iter().filter(|access| access.writes && access.base == array).count();
        exchanges == assigned.iter().filter(|&&base| base == array).count()
    };
    found.arrays.iter().all(is_only_assigned).then_some(found)
}

/// Whether there are words for many threads, as far as bounds are known.
fn has_enough_words(kernel: &Kernel, op: Op, partition: &Partition) -> bool {
    let Some(parallel) = kernel.parallel_loop(op) else { return false };
    let bound = |value| kernel.as_const(value).and_then(octants_ir::Const::as_i128);
    let extents: Option<Vec<_>> =
        parallel.bounds().map(|(lo, hi)| Some((bound(hi)? - bound(lo)?).max(0))).collect();
    extents
        .is_none_or(|extents| extents.iter().product::<i128>() / i128::from(partition.lanes) >= LEAST_WORDS)
}

/// Where all writes of an array have the number of the word that an index of the loop is in: the position in the path, the axis, and how many
/// elements a word has.
fn own_word(
    kernel: &Kernel,
    writes: &[&ArrayUse],
    path: &[Value],
    axes: &[Value],
) -> Option<(usize, usize, i32)> {
    path.iter().enumerate().find_map(|(position, &index)| {
        let data = kernel.def(index)?;
        let &[lane, amount] = &data.operands[..] else { return None };
        let axis = axes.iter().position(|&axis| axis == lane)?;
        let amount = i32::try_from(kernel.as_const(amount)?.as_i128()?).ok()?;
        let lanes = match data.kind {
            OpKind::Bit(BitOp::Shr) if (1..=6).contains(&amount) => 1 << amount,
            OpKind::Arith(ArithOp::FloorDiv) if (2..=64).contains(&amount) => amount,
            _ => return None,
        };
        let same = writes.iter().all(|access| access.path.get(position) == Some(&index));
        same.then_some((position, axis, lanes))
    })
}

fn run_by_words(kernel: &mut Kernel, region: Region, op: Op, partition: &Partition) {
    let parallel = kernel.parallel_loop(op).expect("what is partitioned is a parallel loop");
    let (body, axes) = (parallel.body, parallel.axes());
    let loc = kernel.ops[op].loc;
    let (lo, hi) =
        (kernel.ops[op].operands[2 * partition.axis], kernel.ops[op].operands[2 * partition.axis + 1]);
    let outer = kernel.add_region();
    let mut params: Vec<_> = (0..axes).map(|_| kernel.add_region_param(outer, Type::I32)).collect();
    let word = params[partition.axis];
    let inner = kernel.add_region();
    params[partition.axis] = kernel.add_region_param(inner, Type::I32);
    let (ops, _) = clone_body(kernel, body, &params, &mut ValueMap::new());
    kernel.regions[inner].ops.extend(ops);
    Builder::at(kernel, inner, loc).yields(&[]);
    make_plain(kernel, inner, word, partition);
    let mut b = Builder::at(kernel, outer, loc);
    let lanes = b.i32(partition.lanes);
    let first = b.arith(ArithOp::Mul, word, lanes);
    let begin = b.arith(ArithOp::Max, first, lo);
    let end = end_of_word(&mut b, (word, first, lanes), hi);
    b.op(OpKind::For, [begin, end], [], [inner]);
    b.yields(&[]);
    kernel.ops[op].regions = [outer].into_iter().collect();
    count_words(kernel, region, op, partition.axis, partition.lanes);
}

/// Makes the assignments to elements of words that one iteration has to itself loads and stores.
fn make_plain(kernel: &mut Kernel, inner: Region, word: Value, partition: &Partition) {
    let unused = SideTable::new(0);
    for region in regions_in(kernel, inner) {
        for op in std::mem::take(&mut kernel.regions[region].ops) {
            let assignment = Replacement::of(kernel, op, &unused);
            let position = assignment
                .as_ref()
                .and_then(|assignment| partition.arrays.iter().find(|&&(array, _)| array == assignment.base));
            let (Some(assignment), Some(&(array, position))) = (assignment.as_ref(), position) else {
                kernel.regions[region].ops.push(op);
                continue;
            };
            let mut path = assignment.path.clone();
            path[position] = word;
            let loc = kernel.ops[op].loc;
            let old = Builder::at(kernel, region, loc).load(array, &path);
            let mut map = ValueMap::new();
            map.insert(assignment.old, old);
            for calculated in assignment.calculated.clone() {
                let copy = clone_op(kernel, calculated, &mut map);
                kernel.regions[region].ops.push(copy);
            }
            Builder::at(kernel, region, loc).store(array, &path, map.map(assignment.new));
        }
    }
}

/// The end of the indices of a word, whose first one is given, in a range that ends there. The range may be longer than an `i32` counts, so nothing is
/// subtracted from its end but 1, and a sum is used where it is inside.
pub(crate) fn end_of_word(
    b: &mut Builder<'_>,
    (word, first, lanes): (Value, Value, Value),
    hi: Value,
) -> Value {
    let one = b.i32(1);
    let last = b.arith(ArithOp::Sub, hi, one);
    let last = b.arith(ArithOp::FloorDiv, last, lanes);
    let is_before = b.compare(CompareOp::Lt, word, last);
    let behind = b.arith(ArithOp::Add, first, lanes);
    b.select(is_before, behind, hi)
}

/// Makes the bounds of an axis of a loop those of words of so many elements.
pub(crate) fn count_words(kernel: &mut Kernel, region: Region, op: Op, axis: usize, lanes: i32) {
    let (lo, hi) = (kernel.ops[op].operands[2 * axis], kernel.ops[op].operands[2 * axis + 1]);
    let before = kernel.add_region();
    let mut b = Builder::at(kernel, before, kernel.ops[op].loc);
    let (lanes, one) = (b.i32(lanes), b.i32(1));
    let first = b.arith(ArithOp::FloorDiv, lo, lanes);
    let last = b.arith(ArithOp::Sub, hi, one);
    let last = b.arith(ArithOp::FloorDiv, last, lanes);
    let end = b.arith(ArithOp::Add, last, one);
    let runs = b.compare(CompareOp::Lt, lo, hi);
    let end = b.select(runs, end, first);
    let ops = std::mem::take(&mut kernel.regions[before].ops);
    insert_before(kernel, region, op, ops);
    kernel.ops[op].operands[2 * axis] = first;
    kernel.ops[op].operands[2 * axis + 1] = end;
}
