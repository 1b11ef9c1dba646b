//! Writes the loop whose blocks have tiles.

use octants_ir::ops::{ArithOp, AtomicOp, BitOp, CompareOp, ParallelFor, Scope};
use octants_ir::rewrite::{ValueMap, insert_before, regions_in, replace_values};
use octants_ir::{Builder, Const, Data, Kernel, Loc, Op, OpKind, Region, Scalar, SideTable, Value};

use super::reach::Reach;
use super::{Staging, Tile};
use crate::edit::slots::set_params;

/// The loop becomes one over the threads of blocks.
pub(super) fn stage(kernel: &mut Kernel, top: Region, op: Op, staging: &Staging) {
    let data = kernel.ops[op].clone();
    let OpKind::ParallelFor(attributes) = data.kind else { return };
    let loc = data.loc;
    let (before, around) = (kernel.add_region(), kernel.add_region());
    let b = &mut Builder::at(kernel, before, loc);
    let grid = Grid::new(b, &data.operands, staging);
    let zero = b.constant(Const::from_i128(grid.number, 0));
    let ops = std::mem::take(&mut kernel.regions[before].ops);
    insert_before(kernel, top, op, ops);

    let body = data.regions[0];
    let thread = kernel.add_region_param(around, grid.number.into());
    let b = &mut Builder::at(kernel, around, loc);
    let tiles: Vec<_> =
        staging.tiles.iter().map(|tile| PlacedTile::declare(b, tile, &staging.boxes.sizes)).collect();
    let block = grid.enter(b, thread, staging);
    let bases: Vec<_> = tiles.iter().map(|tile| tile.bases(b, &block.first)).collect();
    for tile in &tiles {
        each(b, tile.elements, staging.threads, block.lane, |b, element| {
            let neutral = b.constant(neutral(tile.tile.scalar));
            let element = b.cast(element, Scalar::I32);
            b.store(tile.shared, &[element], neutral);
        });
    }
    b.barrier(Scope::Block);
    let points: u64 = staging.boxes.sizes.iter().map(|&size| u64::from(size)).product();
    each(b, points, staging.threads, block.lane, |b, point| {
        let (indices, is_inside) = block.point(b, &grid, point, staging);
        let kernel = &mut *b.kernel;
        let mut names = ValueMap::new();
        for (&param, index) in kernel.regions[body].params.iter().zip(indices) {
            names.insert(param, index);
        }
        set_params(kernel, body, Vec::new());
        replace_values(kernel, body, &names);
        for (tile, bases) in tiles.iter().zip(&bases) {
            tile.redirect(kernel, body, bases);
        }
        if let Some(is_inside) = is_inside {
            let none = b.region_of(&[], |_, _| Vec::new());
            b.op(OpKind::If, [is_inside], [], [body, none]);
        } else {
            let mut ops = std::mem::take(&mut b.kernel.regions[body].ops);
            ops.pop();
            b.kernel.regions[b.region].ops.extend(ops);
        }
    });
    b.barrier(Scope::Block);
    for (tile, bases) in tiles.iter().zip(&bases) {
        each(b, tile.elements, staging.threads, block.lane, |b, element| {
            tile.add_to_array(b, bases, element);
        });
    }
    b.yields(&[]);

    let attributes =
        ParallelFor { axes: 1, block_dim: Some(staging.threads), staged: Vec::new(), ..*attributes };
    let data = &mut kernel.ops[op];
    data.kind = OpKind::ParallelFor(Box::new(attributes));
    data.operands = [zero, grid.total].into_iter().collect();
    data.regions = [around].into_iter().collect();
}

/// What nothing was added to holds.
fn neutral(scalar: Scalar) -> Const {
    if scalar.is_real() { Const::from_f64(scalar, -0.0) } else { Const::from_i128(scalar, 0) }
}

/// The threads of a block take numbers up to a count in turn.
fn each(
    b: &mut Builder<'_>,
    count: u64,
    threads: u32,
    lane: Value,
    run: impl FnOnce(&mut Builder<'_>, Value),
) {
    let rounds = count.div_ceil(threads.into());
    let is_whole = count.is_multiple_of(threads.into());
    let guarded = |b: &mut Builder<'_>, number: Value| {
        if is_whole {
            return run(b, number);
        }
        let count = b.constant(Const::from_i128(Scalar::U32, count.into()));
        let is_one = b.compare(CompareOp::Lt, number, count);
        b.if_else(
            is_one,
            |b| {
                run(b, number);
                Vec::new()
            },
            |_| Vec::new(),
        );
    };
    if rounds == 1 {
        return guarded(b, lane);
    }
    let (zero, rounds) = (b.i32(0), b.i32(rounds as i32));
    b.for_range(zero, rounds, &[], |b, round, _| {
        let round = b.cast(round, Scalar::U32);
        let threads = b.constant(Const::from_i128(Scalar::U32, threads.into()));
        let first = b.arith(ArithOp::Mul, round, threads);
        let number = b.arith(ArithOp::Add, first, lane);
        guarded(b, number);
        Vec::new()
    });
}

/// Takes the digit below so many off a number, unless it is the last.
fn digit(b: &mut Builder<'_>, rest: &mut Value, extent: Value, is_last: bool) -> Value {
    if is_last {
        return *rest;
    }
    let digit = b.arith(ArithOp::Mod, *rest, extent);
    *rest = b.arith(ArithOp::FloorDiv, *rest, extent);
    digit
}

/// Digits of a number with constant extents, the last one fastest.
fn digits(b: &mut Builder<'_>, number: Value, extents: &[u64]) -> Vec<Value> {
    let mut rest = number;
    let mut digits: Vec<_> = extents
        .iter()
        .enumerate()
        .rev()
        .map(|(position, &extent)| {
            let extent = b.constant(Const::from_i128(Scalar::U32, extent.into()));
            digit(b, &mut rest, extent, position == 0)
        })
        .collect();
    digits.reverse();
    digits
}

/// The boxes of a loop: of each axis its first index, how many there are, and how many boxes.
struct Grid {
    /// The type of the numbers of threads and boxes.
    number: Scalar,
    axes: Vec<GridAxis>,
    /// How many threads there are.
    total: Value,
}

struct GridAxis {
    lo: Value,
    extent: Value,
    boxes: Value,
    /// Whether boxes end where the axis ends.
    is_whole: bool,
}

/// A block, seen by one of its threads.
struct Block {
    /// The number of the thread.
    lane: Value,
    /// The distance of the block's box from the first index of each axis.
    starts: Vec<Value>,
    /// The first index of the box along each axis.
    first: Vec<Value>,
}

impl Grid {
    /// At the top, before the loop.
    fn new(b: &mut Builder<'_>, bounds: &[Value], staging: &Staging) -> Self {
        let known = |b: &Builder<'_>, value: Value| b.kernel.as_const(value).and_then(Const::as_i128);
        let extents: Vec<_> = bounds
            .chunks_exact(2)
            .map(|axis| Some((known(b, axis[1])? - known(b, axis[0])?).max(0)))
            .collect();
        let count = |(extent, &size): (&Option<i128>, &u32)| Some((*extent)?.div_euclid(size.into()) + 1);
        let total = extents
            .iter()
            .zip(&staging.boxes.sizes)
            .try_fold(i128::from(staging.threads), |total, axis| total.checked_mul(count(axis)?));
        // Where all is known, numbers and distances are below 2³⁰ with room for a box, or have 64 bits.
        let small = |number: i128| number < 1 << 30;
        let is_small = total.is_some_and(small) && extents.iter().all(|extent| extent.is_some_and(small));
        let number = if is_small { Scalar::I32 } else { Scalar::I64 };
        let n = |b: &mut Builder<'_>, value: i128| b.constant(Const::from_i128(number, value));
        let mut axes = Vec::with_capacity(extents.len());
        let mut all = n(b, staging.threads.into());
        for ((axis, known), &size) in bounds.chunks_exact(2).zip(&extents).zip(&staging.boxes.sizes) {
            let (extent, boxes) = if let Some(extent) = *known {
                let boxes = (extent + i128::from(size) - 1) / i128::from(size);
                (n(b, extent), n(b, boxes))
            } else {
                let (lo, hi) = (b.cast(axis[0], number), b.cast(axis[1], number));
                let extent = b.arith(ArithOp::Sub, hi, lo);
                let zero = n(b, 0);
                let extent = b.arith(ArithOp::Max, extent, zero);
                let (almost, size) = (n(b, i128::from(size) - 1), n(b, size.into()));
                let rounded = b.arith(ArithOp::Add, extent, almost);
                (extent, b.arith(ArithOp::FloorDiv, rounded, size))
            };
            let is_whole = known.is_some_and(|extent| extent % i128::from(size) == 0);
            axes.push(GridAxis { lo: axis[0], extent, boxes, is_whole });
            all = b.arith(ArithOp::Mul, all, boxes);
        }
        Self { number, axes, total: all }
    }

    /// At the beginning of the body of the loop over threads.
    fn enter(&self, b: &mut Builder<'_>, thread: Value, staging: &Staging) -> Block {
        let unsigned = if self.number == Scalar::I32 { Scalar::U32 } else { Scalar::U64 };
        let thread = b.cast(thread, unsigned);
        let threads = b.constant(Const::from_i128(unsigned, staging.threads.into()));
        let mut rest = thread;
        let lane = digit(b, &mut rest, threads, false);
        let lane = b.cast(lane, Scalar::U32);
        let (mut starts, mut first) = (Vec::new(), Vec::new());
        for (axis, (own, &size)) in self.axes.iter().zip(&staging.boxes.sizes).enumerate().rev() {
            let boxes = b.cast(own.boxes, unsigned);
            let number = digit(b, &mut rest, boxes, axis == 0);
            let number = b.cast(number, self.number);
            let size = b.constant(Const::from_i128(self.number, size.into()));
            let start = b.arith(ArithOp::Mul, number, size);
            starts.push(start);
            first.push(self.index(b, axis, start));
        }
        starts.reverse();
        first.reverse();
        Block { lane, starts, first }
    }

    /// The index at a distance from the first one.
    fn index(&self, b: &mut Builder<'_>, axis: usize, distance: Value) -> Value {
        let lo = self.axes[axis].lo;
        let scalar = b.kernel.ty(lo).scalar().unwrap_or(Scalar::I32);
        let distance = b.cast(distance, scalar);
        b.arith(ArithOp::Add, lo, distance)
    }
}

impl Block {
    /// The indices of an iteration of the block, and whether the loop has it, if that is not sure.
    fn point(
        &self,
        b: &mut Builder<'_>,
        grid: &Grid,
        point: Value,
        staging: &Staging,
    ) -> (Vec<Value>, Option<Value>) {
        let (sizes, order) = (&staging.boxes.sizes, &staging.boxes.order);
        let extents: Vec<_> = order.iter().map(|&axis| sizes[axis].into()).collect();
        let digits = digits(b, point, &extents);
        let mut is_inside: Option<Value> = None;
        let mut indices = Vec::with_capacity(grid.axes.len());
        for (axis, own) in grid.axes.iter().enumerate() {
            let digit = order.iter().zip(&digits).find(|&(&ordered, _)| ordered == axis);
            let (_, &digit) = digit.expect("an order has all axes");
            let digit = b.cast(digit, grid.number);
            let distance = b.arith(ArithOp::Add, self.starts[axis], digit);
            indices.push(grid.index(b, axis, distance));
            if !own.is_whole {
                let here = b.compare(CompareOp::Lt, distance, own.extent);
                is_inside = Some(is_inside.map_or(here, |other| b.bit(BitOp::And, other, here)));
            }
        }
        (indices, is_inside)
    }
}

/// A tile in the memory of a block.
struct PlacedTile<'s> {
    tile: &'s Tile,
    shared: Value,
    /// How many elements there are along each axis of the array, and in all, with components.
    widths: Vec<u64>,
    elements: u64,
    loc: Loc,
}

impl<'s> PlacedTile<'s> {
    fn declare(b: &mut Builder<'_>, tile: &'s Tile, sizes: &[u32]) -> Self {
        let widths = tile.axes.iter().map(|axis| axis.width(sizes)).collect();
        let elements = tile.elements(sizes);
        let shared = b.shared(Data::Scalar(tile.scalar), &[elements as u32]);
        Self { tile, shared, widths, elements, loc: b.loc }
    }

    /// The index of the array that the tile begins with, for each axis, as a wrapped integer.
    fn bases(&self, b: &mut Builder<'_>, first: &[Value]) -> Vec<Value> {
        self.tile.axes.iter().map(|axis| base(b, axis, first)).collect()
    }

    /// The extents of the tile's memory: components lie apart, so that neighbours do not share a bank.
    fn extents(&self) -> Vec<u64> {
        let components = self.tile.components.iter().map(|&count| u64::from(count));
        components.chain(self.widths.iter().copied()).collect()
    }

    /// Updates go to the tile, where they are inside of it.
    fn redirect(&self, kernel: &mut Kernel, body: Region, bases: &[Value]) {
        let mut number = SideTable::new(None);
        for (index, update) in self.tile.updates.iter().enumerate() {
            number.set(update.op, Some(index));
        }
        for region in regions_in(kernel, body) {
            for op in std::mem::take(&mut kernel.regions[region].ops) {
                match number[op] {
                    None => kernel.regions[region].ops.push(op),
                    Some(index) => self.update(kernel, region, op, &self.tile.updates[index].is_asked, bases),
                }
            }
        }
    }

    /// An update at the end of a region.
    fn update(&self, kernel: &mut Kernel, region: Region, op: Op, is_asked: &[bool], bases: &[Value]) {
        let data = kernel.ops[op].clone();
        let OpKind::Atomic(kind) = data.kind else { return };
        let Some((&value, path)) = data.operands[1..].split_last() else { return };
        let (indices, components) = path.split_at(bases.len());
        let b = &mut Builder::at(kernel, region, data.loc);
        let mut is_inside: Option<Value> = None;
        let mut places = Vec::new();
        for ((&index, &base), (&width, &asked)) in
            indices.iter().zip(bases).zip(self.widths.iter().zip(is_asked))
        {
            let index = b.cast(index, Scalar::I32);
            let distance = b.arith(ArithOp::Sub, index, base);
            let distance = b.cast(distance, Scalar::U32);
            if asked {
                let width = b.constant(Const::from_i128(Scalar::U32, width.into()));
                let here = b.compare(CompareOp::Lt, distance, width);
                is_inside = Some(is_inside.map_or(here, |other| b.bit(BitOp::And, other, here)));
            }
            places.push(distance);
        }
        let components: Vec<_> = components.iter().map(|&component| b.cast(component, Scalar::U32)).collect();
        let mut element: Option<Value> = None;
        for (&place, extent) in components.iter().chain(&places).zip(self.extents()) {
            element = Some(match element {
                None => place,
                Some(outer) => {
                    let extent = b.constant(Const::from_i128(Scalar::U32, extent.into()));
                    let outer = b.arith(ArithOp::Mul, outer, extent);
                    b.arith(ArithOp::Add, outer, place)
                }
            });
        }
        let element = element.expect("an array has an axis");
        let element = b.cast(element, Scalar::I32);
        let Some(is_inside) = is_inside else {
            b.atomic(kind, self.shared, &[element], value);
            return;
        };
        let within = b.region_of(&[], |b, _| {
            b.atomic(kind, self.shared, &[element], value);
            Vec::new()
        });
        let outside = b.region_of(&[], |b, _| {
            b.atomic(kind, self.tile.array, path, value);
            Vec::new()
        });
        b.op(OpKind::If, [is_inside], [], [within, outside]);
    }

    /// Adds an element of the tile to the array, if anything was added to it.
    fn add_to_array(&self, b: &mut Builder<'_>, bases: &[Value], element: Value) {
        b.loc = self.loc;
        let at = b.cast(element, Scalar::I32);
        let sum = b.load(self.shared, &[at]);
        let word = if self.tile.scalar.bits() == 64 { Scalar::U64 } else { Scalar::U32 };
        let neutral = b.constant(Const::from_i128(word, neutral(self.tile.scalar).bits().into()));
        let bits = b.bit_cast(sum, word);
        let is_touched = b.compare(CompareOp::Ne, bits, neutral);
        let then = b.region_of(&[], |b, _| {
            let digits = digits(b, element, &self.extents());
            let (components, places) = digits.split_at(self.tile.components.len());
            let mut path = Vec::with_capacity(digits.len());
            for (&base, &place) in bases.iter().zip(places) {
                let place = b.cast(place, Scalar::I32);
                path.push(b.arith(ArithOp::Add, base, place));
            }
            for &component in components {
                path.push(b.cast(component, Scalar::I32));
            }
            b.atomic(AtomicOp::Add, self.tile.array, &path, sum);
            Vec::new()
        });
        let none = b.region_of(&[], |_, _| Vec::new());
        b.op(OpKind::If, [is_touched], [], [then, none]);
    }
}

/// The least index of a box with these first indices.
fn base(b: &mut Builder<'_>, axis: &Reach, first: &[Value]) -> Value {
    let mut base = b.i32(axis.least as i32);
    let own = axis.axes.iter().map(|&(axis, by)| (first[axis], by));
    for (value, by) in own.chain(axis.fixed.iter().copied()) {
        let value = b.cast(value, Scalar::I32);
        let value = match by {
            1 => value,
            by => {
                let by = b.i32(by as i32);
                b.arith(ArithOp::Mul, value, by)
            }
        };
        base = b.arith(ArithOp::Add, base, value);
    }
    base
}
