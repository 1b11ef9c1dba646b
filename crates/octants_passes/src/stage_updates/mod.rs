//! Lets the threads of a block add to an array in their own memory first, and each element once to the array itself.
//!
//! Before, for a loop of which the program says that blocks had better share `%x`:
//! ```text
//! parallel_for (%i: i32, %k: i32) in (0..%n, 0..8) stage (%x) {
//!   %1: f32 = load %v[%i, %k]
//!   %2: f32 = atomic_add %x[%i], %1
//!   %3: f32 = atomic_add %x[%i + 1], %1
//! }
//! ```
//! After:
//! ```text
//! parallel_for (%g: i64) in (0..%blocks * 256) block_dim 256 {
//!   %tile: field<f32, layout1> = shared                    1025 elements, the first of which stands for %x[%base]
//!   … store %tile[%e], -0.0 for each                       the threads in turn
//!   barrier block
//!   for %step: i32 in 0..32 {                              the block's box of 1024 x 8 iterations
//!     %i, %k = …
//!     if … {                                               inside of the loop's bounds
//!       %1: f32 = load %v[%i, %k]
//!       %2: f32 = atomic_add %tile[%i - %base], %1
//!       %3: f32 = atomic_add %tile[%i + 1 - %base], %1
//!     }
//!   }
//!   barrier block
//!   … %s: f32 = load %tile[%e]; if bits of %s are not -0.0 { atomic_add %x[%base + %e], %s }
//! }
//! ```
//!
//! **Each update is done once, to the element that it names: in the tile, where its distance from the tile's base is inside the tile on each axis, or
//! else in the array.** This is asked for wherever it does not follow from the form of an index ([`reach`]). So what the boxes are ([`boxes`]) decides how quick a
//! loop is, never what it does; and of a sparse tree a tile holds the cells of a few slots, while what is added to other cells goes there directly.
//!
//! **An element to which nothing was added is left alone**: it is neutral bit by bit, 0, or -0.0 for reals. So nothing outside an array is touched that the loop does
//! not touch, and no cell of a sparse tree but those that the loop has made.
//!
//! Acts where threads form blocks, on arrays that the loop only adds to or subtracts from, 32 or 64 bits each and without using what was there, if
//! several updates go to an element of the tile. No other iteration may see when an update is done: the loop reduces nothing, has no order, and no thread of it ends
//! before the others. Arguments are assumed not to alias.
//!
//! Expects scalars and plain index forms; drops the hint. Structured phase.

mod boxes;
mod build;
mod reach;

use octants_ir::ops::{AtomicOp, Domain, Effects};
use octants_ir::rewrite::{Parents, ops_in, use_counts};
use octants_ir::{Boundary, Kernel, Op, OpKind, Scalar, SideTable, Type, Value};

use boxes::Boxes;
use reach::{Nest, Reach};

use crate::analysis::{ArrayUse, array_uses};
use crate::assumptions::Assumptions;

/// Threads of a block, where the program does not say. Chosen, not measured: that of the staged loops of `benches/staging.py`.
const THREADS: u32 = 256;
/// What a program may say: fewer are no block, more are none that every GPU has.
const SOME_THREADS: std::ops::RangeInclusive<u32> = 32..=1024;
/// So far constants of an index may lie apart, in elements of an axis. Chosen, not measured: a bound on what a tile has around the block's own elements.
const MOST_SPREAD: i64 = 64;
/// How often an inner loop is taken to run, where that is not known.
const SOME_TRIPS: u64 = 4;

pub fn stage_updates(kernel: &mut Kernel, assumptions: Assumptions) {
    for region in kernel.top_regions() {
        for op in kernel.regions[region].ops.clone() {
            let OpKind::ParallelFor(attributes) = &mut kernel.ops[op].kind else { continue };
            let staged = std::mem::take(&mut attributes.staged);
            if staged.is_empty() || !assumptions.blocks || !assumptions.noalias {
                continue;
            }
            let arrays: Vec<_> =
                staged.iter().map(|&number| kernel.regions[kernel.body].params[number as usize]).collect();
            let Some(staging) = find(kernel, op, &arrays) else { continue };
            build::stage(kernel, region, op, &staging);
        }
    }
}

/// A loop whose updates of some arrays are staged.
struct Staging {
    threads: u32,
    /// Iterations of a block, by axis.
    boxes: Boxes,
    tiles: Vec<Tile>,
}

/// An array of which each block has a part in its own memory.
struct Tile {
    array: Value,
    scalar: Scalar,
    /// The extents of a tensor in the array; none where it holds scalars.
    components: Vec<u32>,
    /// What the tile holds, by axis of the array.
    axes: Vec<Reach>,
    updates: Vec<Update>,
}

/// An update of a staged array.
struct Update {
    op: Op,
    /// For each axis of the array, whether the index may lie outside the tile.
    is_asked: Vec<bool>,
    /// About how often it runs in an iteration.
    times: u64,
}

fn find(kernel: &Kernel, op: Op, staged: &[Value]) -> Option<Staging> {
    let parallel = kernel.parallel_loop(op)?;
    let attributes = parallel.attributes;
    let threads = attributes.block_dim.unwrap_or(THREADS);
    let counts = |lo: Value| matches!(kernel.ty(lo).scalar(), Some(Scalar::I32 | Scalar::I64));
    if attributes.keeps_order()
        || attributes.max_threads.is_some()
        || attributes.domain != Domain::Ranges
        || !attributes.reductions.is_empty()
        || !SOME_THREADS.contains(&threads)
        || !parallel.bounds().all(|(lo, _)| counts(lo))
        || kernel.has_effects(parallel.body, Effects::CONVERGENT)
    {
        return None;
    }
    let ops = ops_in(kernel, parallel.body);
    // Cells of trees are made by calls, which end a thread only where the launch has failed.
    let ends = |&op: &Op| {
        let kind = &kernel.ops[op].kind;
        kind.may_stop_thread() && !matches!(kind, OpKind::Call(_)) || *kind == OpKind::Tape
    };
    if ops.iter().any(ends) {
        return None;
    }
    let nest = Nest::new(kernel, op);
    let uses = use_counts(kernel);
    let accesses = array_uses(kernel, parallel.body);
    let parents = Parents::new(kernel);
    let is_addressed = |array: Value| {
        ops.iter().any(|&op| {
            kernel.addressed(op).is_some_and(|place| place.base() == array)
                && kernel.cell_access(op).is_none()
        })
    };
    let mut tiles = Vec::new();
    for &array in staged {
        let own: Vec<_> = accesses.iter().filter(|access| access.base == array).collect();
        if !own.is_empty() && !is_addressed(array) {
            tiles.extend(tile(kernel, &nest, &own, &accesses, &uses));
        }
    }
    for update in tiles.iter_mut().flat_map(|tile| &mut tile.updates) {
        update.times = times(kernel, &parents, update.op);
    }
    let boxes = Boxes::choose(&nest, &mut tiles, threads)?;
    Some(Staging { threads, boxes, tiles })
}

/// About how often an iteration of the parallel loop runs an op.
fn times(kernel: &Kernel, parents: &Parents, op: Op) -> u64 {
    let mut times = 1_u64;
    let mut inner = parents.region(op).and_then(|region| parents.op(region));
    while let Some(around) = inner.filter(|&around| kernel.parallel_loop(around).is_none()) {
        if kernel.ops[around].kind.is_loop() {
            let trips = kernel.constant_trips(around).and_then(|trips| u64::try_from(trips).ok());
            times = times.saturating_mul(trips.unwrap_or(SOME_TRIPS));
        }
        inner = parents.region(around).and_then(|region| parents.op(region));
    }
    times
}

/// The tile of an array, as far as all accesses are updates and say where they are.
fn tile(
    kernel: &Kernel,
    nest: &Nest<'_>,
    own: &[&ArrayUse],
    all: &[ArrayUse],
    uses: &SideTable<Value, u32>,
) -> Option<Tile> {
    let array = own[0].base;
    let Type::Array(ty) = kernel.ty(array) else { return None };
    let layout = kernel.layout(ty)?;
    let scalar = ty.elem.elem()?;
    let components: Vec<_> = match ty.elem.tensor_shape() {
        None => Vec::new(),
        Some(shape) => shape.dims(),
    };
    let rank = usize::from(ty.rank);
    let is_update = |access: &&ArrayUse| {
        let data = &kernel.ops[access.op];
        matches!(data.kind, OpKind::Atomic(AtomicOp::Add | AtomicOp::Sub))
            && uses[data.results[0]] == 0
            && access.path.len() == rank + components.len()
    };
    let is_number = matches!(scalar.bits(), 32 | 64);
    if ty.boundary != Boundary::Unsafe || !is_number || rank == 0 || !own.iter().all(is_update) {
        return None;
    }
    let mut axes = Vec::with_capacity(rank);
    let mut is_asked = vec![Vec::with_capacity(rank); own.len()];
    for position in 0..rank {
        let found: Vec<_> = own.iter().map(|access| nest.reach(access.path[position])).collect();
        let beside = || {
            // Other arrays of the same shape say where an iteration is at home: in a slot, while it finds others by looking for them.
            let is_slot = own.iter().any(|access| is_made(kernel, access.path[position]));
            let alike = all.iter().filter(|access| {
                let Type::Array(other) = kernel.ty(access.base) else { return false };
                let shape = kernel.layout(other).map(|layout| &layout.shape);
                is_slot
                    && access.path.len() > position
                    && shape.is_some_and(|shape| shape.get(position) == layout.shape.get(position))
            });
            alike.filter_map(|access| nest.reach(access.path[position])).find(|reach| !reach.axes.is_empty())
        };
        let first = found.iter().flatten().find(|reach| !reach.axes.is_empty()).cloned();
        let mut axis = first.or_else(|| found.iter().flatten().next().cloned()).or_else(beside)?;
        for reach in found.iter().flatten() {
            axis.include(reach, MOST_SPREAD);
        }
        for (asked, reach) in is_asked.iter_mut().zip(&found) {
            asked.push(!reach.as_ref().is_some_and(|reach| nest.is_inside(reach, &axis)));
        }
        axes.push(axis);
    }
    let updates = own.iter().zip(is_asked);
    let updates = updates.map(|(access, is_asked)| Update { op: access.op, is_asked, times: 1 }).collect();
    Some(Tile { array, scalar, components, axes, updates })
}

/// Whether a value is a cell that is made where there is none.
fn is_made(kernel: &Kernel, value: Value) -> bool {
    kernel.def(value).is_some_and(|def| {
        let inner = def.regions.iter().flat_map(|&region| ops_in(kernel, region));
        inner.map(|op| &kernel.ops[op].kind).chain([&def.kind]).any(|kind| matches!(kind, OpKind::Call(_)))
    })
}
