//! Which shape a parallel loop gets, and why. What decides stands here, and nowhere else.
//!
//! | what the loop does | shape | measured on an H200 with kernels written by hand |
//! |---|---|---|
//! | runs through arrays, few ops | 4 neighbouring points a thread, 128-bit accesses, a block for each tile | fill 4500 GB/s, saxpy 4340 |
//! | two axes or more | tiles of 32 × 8 threads; 4 columns and 2 rows a thread where it runs through arrays | 5-point stencil 4065 with a row, 4160 with two |
//! | has reductions | as above, with one wave of blocks, each of which ends in one atomic update | sum 4450 GB/s |
//! | adds to small arrays | one wave of blocks of 1024, each with copies in shared memory | histogram 3820 GB/s |
//! | has loops inside | one point a thread, blocks of 128: the last ones to end leave less idle; tiles of 8 × 16 if points diverge, several a block | Julia set 64 Gpix/s with 32 × 4, 70 with 8 × 16, 81 with 12 tiles a block |
//! | has one point a thread, and elements of 3 words or more at its index | as above; a warp loads and stores them together ([`exchange`](super::exchange)) | 3 × 3 matrices 3860 GB/s, 630 with 4 a thread |
//! | runs through elements of 12 bytes, or more than 16 | one point a thread | vectors of 3 reals 3820 GB/s, 2990 with 4 a thread |
//! | has short last axes | one point a thread, by its number | – |
//! | at most so many threads | one point a thread, by its number: any grid is right | – |

use octants_hal::{Grid, LaunchShape};
use octants_ir::ops::{AtomicOp, Effects, ParallelFor};
use octants_ir::plan::{Copied, Task};
use octants_ir::rewrite::ops_in;
use octants_ir::{Const, Kernel, Op, OpKind, Region, Type, Value};

use super::guards::{Guards, common_ops};
use super::runs::{Run, WIDEST, cell_of, gcd, run_along};

/// Threads of a block, at most, on every GPU.
const MOST_THREADS: u32 = 1024;
/// Threads of a block of a short body.
const SHORT_BLOCK: u32 = 256;
/// Threads of a block of a body with loops.
const LONG_BLOCK: u32 = 128;
/// Threads of a block that has copies: the more share one, the fewer are filled and added up. On an H200, a histogram of 1024 bins.
const COPIES_BLOCK: u32 = 1024;
/// Bytes of a block's copies: as many blocks of 1024 threads as a multiprocessor runs at once have room on every GPU since 2017.
pub(super) const SHARED_BYTES: u64 = 32 << 10;
/// Ops of a body that is written twice, for arrays that are aligned and for others, at most.
const MOST_OPS_ALIGNED: usize = 512;
/// Ops of a body that is written twice, with copies and without, at most.
const MOST_OPS_TWICE: usize = 64;
/// Threads of a tile along the last axis, at most: a warp.
const ACROSS: u32 = 32;
/// The same for bodies whose points run for different times: a warp of 8 × 4 points has fewer neighbours outside than one of 32 × 1, so
/// fewer of them wait for a longer one. Eight elements of four bytes still fill a sector of the cache.
const DIVERGENT_ACROSS: u32 = 8;
/// Ops that the points of a thread have together, at most: beyond, the body is bound by arithmetic, and its registers are short.
const MOST_OPS: usize = 256;
/// Groups of points of a thread, at most: with four loads of 16 bytes in each of 2048 threads, a multiprocessor waits for 128 KiB at once.
const MOST_GROUPS: u32 = 4;
/// Points of a thread, at most.
const MOST_POINTS: u64 = 16;

/// Bytes of the narrowest elements that a warp exchanges.
const THREE_WORDS: u64 = 12;

/// How a loop's points are dealt out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// By their numbers, one to a thread, in whole blocks: threads of a block do something together.
    Blocks { block: u32 },
    /// By their numbers, one to a thread.
    Points {
        block: u32,
        grid: Grid,
        /// Blocks may be smaller.
        limited: bool,
    },
    Tiles {
        tiling: Tiling,
        grouping: Grouping,
        /// Arrays that blocks may have copies of.
        copied: Vec<Copied>,
    },
}

/// What groups of neighbouring points ask for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Grouping {
    /// Arrays whose bases and rows have to be aligned.
    pub aligned: Vec<usize>,
    /// Conditions that have to hold for all points.
    pub guards: Guards,
}

/// Blocks take tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tiling {
    pub block: u32,
    /// Neighbouring points of the last axis that a thread takes; a power of two.
    pub points: u32,
    /// Groups of so many points that a thread takes of a tile, as far apart as all threads of a row have points; a power of two.
    pub groups: u32,
    /// Neighbouring rows that a thread takes, where there are several axes; a power of two.
    pub rows: u32,
    /// Threads along the last axis, at most, where there are others; a power of two.
    pub most_across: u32,
    /// A block goes from tile to tile by steps of its digits, without a division.
    pub stepped: bool,
    pub grid: Grid,
}

impl Choice {
    pub fn launch_shape(&self) -> LaunchShape {
        match self {
            Self::Blocks { block } => LaunchShape { block: *block, ..LaunchShape::default() },
            Self::Points { block, grid, .. } => {
                LaunchShape { block: *block, grid: *grid, ..LaunchShape::default() }
            }
            Self::Tiles { tiling, .. } => LaunchShape {
                block: tiling.block,
                mapping: tiling.mapping(),
                grid: tiling.grid,
                ..LaunchShape::default()
            },
        }
    }
}

pub(super) fn choose_shape(kernel: &Kernel, task: &Task, op: Op) -> Choice {
    let OpKind::ParallelFor(attributes) = &kernel.ops[op].kind else { panic!("{op} is no parallel loop") };
    let body = kernel.ops[op].regions[0];
    if kernel.has_effects(body, Effects::CONVERGENT) {
        let block = attributes.block_dim.expect("the laws say that such a loop names its block");
        return Choice::Blocks { block };
    }
    let long = ops_in(kernel, body).iter().any(|&op| is_long(&kernel.ops[op].kind));
    let mut guards = Guards::of(kernel, body);
    // What most points do.
    let mut common = common_ops(kernel, body, &guards);
    if !common.iter().any(|&op| kernel.cell_access(op).is_some()) {
        // All stands where a guard does not hold, as behind an `if …: continue`: that is what points do.
        guards = Guards::default();
        common = ops_in(kernel, body);
    }
    let copied = if long { Vec::new() } else { copied_arrays(kernel, task, &common) };
    let preferred = if long {
        LONG_BLOCK
    } else if copied.is_empty() {
        SHORT_BLOCK
    } else {
        COPIES_BLOCK
    };
    let block = attributes.block_dim.unwrap_or(preferred).clamp(1, MOST_THREADS);
    if attributes.max_threads.is_some() {
        return Choice::Points { block, grid: Grid::Cover, limited: true };
    }
    let resident = !attributes.reductions.is_empty() || !copied.is_empty();
    let grid = if resident { Grid::Resident } else { Grid::Cover };
    if copied.is_empty() && has_short_rows(kernel, op) {
        return Choice::Points { block, grid, limited: false };
    }
    let (points, grouping) =
        if long { None } else { points_of_thread(kernel, attributes, body, (guards, &common)) }
            .unwrap_or_else(|| {
                (1, Grouping { aligned: arrays_of_vectors(kernel, body), ..Grouping::default() })
            });
    let across = if is_divergent(kernel, body) { DIVERGENT_ACROSS } else { ACROSS };
    // The greatest power of two that the block has threads for.
    let most_across = across.min(1 << block.ilog2());
    // A thread whose guards do not hold runs its points one behind the other.
    let several = !attributes.reductions.is_empty() && grouping.guards.ifs.is_empty();
    let groups = if several { groups_of_thread(kernel, &common, points) } else { 1 };
    // Neighbouring rows of a stencil share loads, and what a thread does for its place in a tile is done once for both.
    // A thread that guards leave work to does it for one point after the other, while others wait for it to end.
    let may_have_rows = attributes.axes > 1 && groups == 1 && !grouping.guards.leave_work(kernel);
    let rows = if may_have_rows && may_repeat(kernel, &common, points, 2) { 2 } else { 1 };
    let stepped = long && attributes.axes > 1 && points == 1;
    let grid = if stepped && !resident { Grid::Several } else { grid };
    let tiling = Tiling { block, points, groups, rows, most_across, stepped, grid };
    Choice::Tiles { tiling, grouping, copied }
}

/// Arrays that the loop only adds to, if all of them may fit into shared memory. Those of arrays are known at launch; the body is then written
/// with copies and without.
fn copied_arrays(kernel: &Kernel, task: &Task, common: &[Op]) -> Vec<Copied> {
    let Task::Range { copied, .. } = task else { return Vec::new() };
    let is_added_to = |array: &Copied| {
        let arrays = common.iter().filter_map(|&op| kernel.as_param(sum_path(kernel, op)?[0]));
        arrays.into_iter().any(|param| param == array.param)
    };
    if !copied.iter().any(is_added_to) {
        return Vec::new();
    }
    let spans: Option<u64> = copied.iter().map(|array| array.span).sum();
    // Each is rounded up.
    let known = spans.map(|bytes| bytes + WIDEST * copied.len() as u64);
    let worthwhile = match known {
        Some(bytes) => bytes <= SHARED_BYTES,
        None => common.len() <= MOST_OPS_TWICE,
    };
    if worthwhile { copied.clone() } else { Vec::new() }
}

/// Whether the last axes are so short that a tile of them leaves threads without a point: digits of nested nodes, or entries that are looped
/// over. Their extents are constants, so numbers are taken apart without a division.
fn has_short_rows(kernel: &Kernel, op: Op) -> bool {
    let Some(parallel) = kernel.parallel_loop(op) else { return false };
    let known = |value: Value| kernel.as_const(value).and_then(Const::as_i128);
    let mut extents = parallel.bounds().map(|(lo, hi)| Some((known(hi)? - known(lo)?).max(0))).rev();
    match (extents.next().flatten(), extents.next()) {
        (Some(last), Some(row)) => {
            last < ACROSS.into() || row.is_some_and(|row| row * last < SHORT_BLOCK.into())
        }
        _ => false,
    }
}

/// Whether a point runs as long as its values say.
fn is_divergent(kernel: &Kernel, body: Region) -> bool {
    ops_in(kernel, body).iter().any(|&op| kernel.ops[op].kind == OpKind::While)
}

/// Whether an op may take long, or does something that is not worth writing several times, or may not be written so.
pub(super) fn is_long(kind: &OpKind) -> bool {
    kind.is_loop() || kind.acts()
}

/// How many neighbouring points a thread takes so that its accesses have 128 bits, and the arrays whose alignment that asks for. 1 where
/// less than half of the accesses run along the last axis, memory is touched under a condition, or elements are so wide that the accesses of a
/// warp would lie far apart.
fn points_of_thread(
    kernel: &Kernel,
    attributes: &ParallelFor,
    body: Region,
    (guards, common): (Guards, &[Op]),
) -> Option<(u32, Grouping)> {
    if attributes.in_order {
        return None;
    }
    let axis = kernel.regions[body].params[usize::from(attributes.axes) - 1];
    let (accesses, runs) = runs_along(kernel, axis, common);
    let ops = written_ops(kernel, common);
    let wide = runs.iter().any(|run| run.stride > WIDEST || run.stride == THREE_WORDS);
    if runs.is_empty() || 2 * runs.len() < accesses || wide || ops > MOST_OPS {
        return None;
    }
    if has_conditional_accesses(kernel, body, &guards) {
        return None;
    }
    // So many points that each run covers a multiple of 16 bytes.
    let wanted = runs.iter().map(|run: &Run| WIDEST / gcd(WIDEST, run.stride)).max().unwrap_or(1);
    let mut points = wanted.min(MOST_POINTS) as usize;
    while points > 1 && points * ops > MOST_OPS {
        points /= 2;
    }
    let mut aligned: Vec<_> = runs.iter().map(|run| run.param).collect();
    aligned.sort_unstable();
    aligned.dedup();
    (points > 1).then_some((points as u32, Grouping { aligned, guards }))
}

/// How many groups of points a thread of a reduction takes at once: it waits for its loads, so it begins several before the first is used.
fn groups_of_thread(kernel: &Kernel, common: &[Op], points: u32) -> u32 {
    let mut groups = MOST_GROUPS;
    while groups > 1 && !may_repeat(kernel, common, points, groups) {
        groups /= 2;
    }
    groups
}

/// Whether a thread's several points may be written so many times.
fn may_repeat(kernel: &Kernel, common: &[Op], points: u32, times: u32) -> bool {
    points > 1 && (points * times) as usize * written_ops(kernel, common) <= MOST_OPS
}

/// How many ops become instructions.
fn written_ops(kernel: &Kernel, ops: &[Op]) -> usize {
    ops.iter().filter(|&&op| !matches!(kernel.ops[op].kind, OpKind::Const(_))).count()
}

/// Arrays of vectors whose entries are joined to accesses of 64 or 128 bits if the arrays are aligned. The body is then written twice: none if
/// that is too much.
fn arrays_of_vectors(kernel: &Kernel, body: Region) -> Vec<usize> {
    let ops = ops_in(kernel, body);
    if ops.len() > MOST_OPS_ALIGNED {
        return Vec::new();
    }
    let mut entries: Vec<_> = ops
        .iter()
        .filter_map(|&op| {
            let path = plain_path(kernel, op).or_else(|| sum_path(kernel, op))?;
            let entries = kernel.ty(path[0]).place()?.0.tensor_shape()?.count();
            let first = cell_of(kernel, path)?.alignment();
            let scalar = u64::from(kernel.ty(path[0]).place()?.0.elem()?.bytes());
            (entries > 1 && first > scalar).then(|| kernel.as_param(path[0]))?
        })
        .collect();
    entries.sort_unstable();
    entries.dedup();
    entries
}

/// How many plain accesses of arrays there are among ops, and those that run along an axis.
pub(super) fn runs_along(kernel: &Kernel, axis: Value, ops: &[Op]) -> (usize, Vec<Run>) {
    let (mut accesses, mut runs) = (0, Vec::new());
    for &op in ops {
        if let Some(run) = plain_access(kernel, axis, op) {
            accesses += 1;
            runs.extend(run);
        }
    }
    (accesses, runs)
}

/// An access of an array, and how it runs along the axis, if it does. An atomic update is one cell at a time anyway.
#[expect(clippy::option_option, reason = "no access, or one that does not run")]
fn plain_access(kernel: &Kernel, axis: Value, op: Op) -> Option<Option<Run>> {
    plain_path(kernel, op).map(|path| run_along(kernel, axis, path))
}

/// The cell of an array that an op adds to.
fn sum_path(kernel: &Kernel, op: Op) -> Option<&[Value]> {
    let data = &kernel.ops[op];
    let OpKind::Atomic(AtomicOp::Add | AtomicOp::Sub) = data.kind else { return None };
    let path = &data.operands[..data.operands.len() - 1];
    matches!(kernel.ty(path[0]), Type::Array(_)).then_some(path)
}

/// The cell of an array that an op loads or stores.
fn plain_path(kernel: &Kernel, op: Op) -> Option<&[Value]> {
    let data = &kernel.ops[op];
    let path = match data.kind {
        OpKind::Load => &data.operands[..],
        OpKind::Store => &data.operands[..data.operands.len() - 1],
        _ => return None,
    };
    matches!(kernel.ty(path[0]), Type::Array(_)).then_some(path)
}

/// Whether an access of an array stands inside an `if` that is no guard: it is not joined with those of other points.
fn has_conditional_accesses(kernel: &Kernel, body: Region, guards: &Guards) -> bool {
    kernel.regions[body].ops.iter().any(|&op| {
        let regions = &kernel.ops[op].regions;
        if guards.ifs.contains(&op) {
            return has_conditional_accesses(kernel, regions[0], guards);
        }
        regions.iter().flat_map(|&region| ops_in(kernel, region)).any(|op| {
            let place = kernel.cell_access(op).map(|_| kernel.ty(kernel.ops[op].operands[0]));
            place.is_some_and(|place| !matches!(place, Type::Local(_)))
        })
    })
}
