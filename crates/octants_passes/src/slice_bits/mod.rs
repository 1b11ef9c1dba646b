//! Runs a loop that assigns single bits of words for whole words: each iteration does what the iterations of a word's elements did.
//!
//! Before (`replace …` stands for a compare-and-swap until it succeeds, `replacement` has its form):
//! ```text
//! parallel_for (%j: i32) in (%lo..%hi) {
//!   %1: u32 = load %x[%j >> 5]
//!   %2: u32 = load %x[(%j + 1) >> 5]
//!   %3: u32 = and (shr %1, %j & 31), 1
//!   %4: u32 = and (shr %2, (%j + 1) & 31), 1
//!   %5: u32 = add %3, %4
//!   %6: u1 = eq %5, 2
//!   replace bit %j & 31 of %y[%j >> 5] by %6
//! }
//! ```
//! After:
//! ```text
//! parallel_for (%w: i32) in (%lo >> 5..((%hi - 1) >> 5) + 1) {
//!   %lanes: u32 = …                                  a bit for each index from %lo up to %hi
//!   %1: u32 = load %x[%w]
//!   %next: u32 = load %x[min(%w + 1, …)]
//!   %2: u32 = or (shr %1, 1), (shl %next, 31)
//!   %sum: u32 = xor %1, %2                           the numbers 0 to 2 as two planes of bits
//!   %carry: u32 = and %1, %2
//!   %6: u32 = and %carry, (not %sum)
//!   %old: u32 = load %y[%w]
//!   store %y[%w], (%6 & %lanes) | (%old & !%lanes)
//! }
//! ```
//! Sums, comparisons and choices of small numbers are calculated in planes (`planes`); what depends on an index of the loop in another way leaves the loop
//! as it is. So do assignments to other elements than the iteration's own, reads of other elements of an array that the loop writes, assignments
//! to an array that another branch refers to, and everything else that is seen from outside. Words that only lanes outside of the loop would need are not read.
//!
//! Expects plain index forms; structured phase.

mod body;
mod planes;

use octants_ir::rewrite::{ops_in, use_counts};
use octants_ir::{Kernel, Op, Scalar, SideTable, Type, Value};

use crate::analysis::{Replacement, may_replace};
use crate::analysis::{accesses_of, arrays_beside};
use crate::assumptions::Assumptions;
use crate::demote_atomics::{separates_iterations, values_in};
use crate::partition_by_words::count_words;
use body::{Iteration, Slicer, Words, lane_of};

pub fn slice_bits(kernel: &mut Kernel, assumptions: Assumptions) {
    if !assumptions.noalias {
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
            if let Some((axis, lanes)) = slice_loop(kernel, op, uses, elsewhere) {
                count_words(kernel, region, op, axis, lanes);
            }
        }
    }
}

/// Replaces the body by one for words, if that can be: which axis runs over words, and how many elements they have. Not if it writes what is
/// touched `elsewhere`.
fn slice_loop(
    kernel: &mut Kernel,
    op: Op,
    uses: &SideTable<Value, u32>,
    elsewhere: &[Value],
) -> Option<(usize, i32)> {
    let parallel = kernel.parallel_loop(op).filter(|_| !kernel.cooperates(op))?;
    let (body, axes) = (parallel.body, parallel.indices().to_vec());
    let bounds: Vec<_> = parallel.bounds().collect();
    let assignments: Vec<_> =
        ops_in(kernel, body).into_iter().filter_map(|op| Replacement::of(kernel, op, uses)).collect();
    let first = assignments.first()?;
    let (lane, log) = lane_of(kernel, first, &axes)?;
    let Type::Array(ty) = kernel.ty(first.base) else { return None };
    let register = if ty.elem.scalar()? == Scalar::U64 { Scalar::U64 } else { Scalar::U32 };
    let inside = values_in(kernel, body);
    let written: Vec<_> = assignments.iter().map(|assignment| assignment.base).collect();
    if written.iter().any(|array| elsewhere.binary_search(array).is_ok()) {
        return None;
    }
    let accesses = accesses_of(kernel, body);
    let is_own = |&array: &Value| {
        let writes: Vec<_> = accesses.iter().filter(|access| access.writes && access.base == array).collect();
        let rank = writes.first().map_or(0, |access| access.path.len());
        axes.iter().filter(|&&axis| axis != lane).all(|&axis| {
            (0..rank).any(|position| separates_iterations(kernel, &writes, position, axis, &axes, &inside))
        })
    };
    if !written.iter().all(is_own) {
        return None;
    }
    let axis = axes.iter().position(|&index| index == lane)?;
    let (lo, hi) = bounds[axis];
    let loc = kernel.ops[op].loc;
    let region = kernel.add_region();
    let params: Vec<_> = axes.iter().map(|_| kernel.add_region_param(region, Type::I32)).collect();
    let others =
        axes.iter().copied().zip(params.iter().copied()).filter(|&(index, _)| index != lane).collect();
    let iteration = Iteration { region, number: params[axis], others, loc };
    let words = Words { lane, lo, hi, log, register };
    Slicer::new(kernel, words, &iteration, uses, &inside, &written).body(body)?;
    kernel.ops[op].regions = [region].into_iter().collect();
    Some((axis, 1 << log))
}
