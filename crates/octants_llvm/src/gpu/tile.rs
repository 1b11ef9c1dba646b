//! Points dealt to blocks by tiles: rectangles of the last two axes, or pieces of a single one.
//!
//! ```text
//! for tile in block, block + blocks, ... while tile < tiles:
//!     column, row, outer indices = the digits of tile          (no division where there is one axis)
//!     y, x = thread / across, thread % across                  (across: threads along the last axis, a power of two)
//!     if row + y < end: the points of columns column + x * points ..., see `group`
//! ```
//!
//! One division for each tile instead of one for each point and axis; numbers of tiles have 64 bits, what a thread adds to them has
//! 32. Where the last axis is shorter than a tile is wide, tiles are narrower and have more rows.

use octants_hal::{LaunchShape, PointMapping};
use octants_ir::{Op, Scalar};

use super::bounds::Axis;
use super::choose::Tiling;
use super::registers::Register;
use crate::counter::Range;
use crate::emitter::Emitter;
use crate::value::Val;

/// The tiles of a range, and this thread's place in each.
pub(super) struct Tiles {
    pub axes: Vec<Axis>,
    /// The type of the numbers below.
    pub(super) number: Scalar,
    /// Where the columns of the first tile begin.
    pub(super) start: Val,
    /// How many tiles there are, side by side, and one below the other.
    pub(super) columns: Val,
    pub(super) rows: Val,
    /// Columns and rows of a tile.
    pub width: Val,
    pub(super) height: Val,
    /// Threads along the last axis.
    pub across: Val,
    /// The thread's place in a tile.
    pub x: Val,
    pub(super) y: Val,
    /// Rows that a thread has.
    pub rows_of_thread: u32,
    /// Whether the thread has a row in a tile, where some have none.
    pub(super) has_row: Option<Val>,
}

/// What a thread has of one tile.
pub(super) struct Piece {
    /// The first column of the tile.
    pub column: Val,
    /// The thread's first row.
    pub row: Option<Val>,
    /// Whether that row is inside its axis, where there are rows.
    pub inside: Option<Val>,
}

impl Emitter<'_> {
    /// What is the same for all tiles.
    pub(super) fn tiles(&mut self, op: Op, tiling: Tiling) -> Tiles {
        let axes = self.axes(op);
        let last = axes[axes.len() - 1];
        let number = if tiling.stepped { number_of_steps(&axes) } else { Scalar::I64 };
        let n = |value: i64| Val::int(number, value.into());
        let sub = if number.is_signed() { "sub nsw" } else { "sub" };
        let (lo, hi) = (self.resize(last.lo, number), self.resize(last.hi, number));
        let start = self.binary("and", lo, n(-LaunchShape::COLUMN_ALIGNMENT));
        let length = self.binary(sub, hi, start);
        let thread = self.wide_register(Register::Thread);
        let thread = self.resize(thread, number);
        let block = n(tiling.block.into());
        let points = n(tiling.columns().into());
        if axes.len() == 1 {
            let width = n((tiling.block * tiling.columns()).into());
            let columns = self.quotient_up(length, width);
            let one = n(1);
            let (x, y) = (thread, n(0));
            let has_row = None;
            let rows_of_thread = 1;
            return Tiles {
                axes,
                number,
                start,
                columns,
                rows: one,
                width,
                height: one,
                across: block,
                x,
                y,
                rows_of_thread,
                has_row,
            };
        }
        // As many threads along the last axis as it has groups of points, rounded up to a power of two; at most a warp.
        let groups = self.quotient_up(length, points);
        let groups = self.binary("sub", groups, n(1));
        let zeros = self.leading_zeros(groups);
        let bits = self.binary("sub", n(number.bits().into()), zeros);
        let bits = self.intrinsic("llvm.umin", &[bits, n(tiling.most_across.ilog2().into())], "");
        let across = self.binary("shl", n(1), bits);
        let width = self.binary("mul", across, points);
        let width_bits = self.binary("add", bits, n(tiling.columns().ilog2().into()));
        let columns = self.shifted_up(length, width, width_bits);
        let down = self.binary("lshr", block, bits);
        let height = self.binary("mul", down, n(tiling.rows.into()));
        let row_axis = axes[axes.len() - 2];
        let [row_lo, row_hi] = [row_axis.lo, row_axis.hi].map(|bound| self.resize(bound, number));
        let extent = self.binary(sub, row_hi, row_lo);
        let rows = if tiling.block.is_power_of_two() {
            let height_bits = self.binary("sub", n((tiling.block * tiling.rows).ilog2().into()), bits);
            self.shifted_up(extent, height, height_bits)
        } else {
            self.quotient_up(extent, height)
        };
        let mask = self.binary("sub", across, n(1));
        let x = self.binary("and", thread, mask);
        let y = self.binary("lshr", thread, bits);
        let has_row =
            (!tiling.block.is_multiple_of(tiling.most_across)).then(|| self.compare("ult", y, down));
        let rows_of_thread = tiling.rows;
        Tiles { axes, number, start, columns, rows, width, height, across, x, y, rows_of_thread, has_row }
    }

    /// How many tiles there are.
    pub(super) fn tile_count(&mut self, op: Op, tiles: &Tiles) -> Val {
        let (columns, rows) = (self.resize(tiles.columns, Scalar::I64), self.resize(tiles.rows, Scalar::I64));
        let mut count = self.binary("mul", columns, rows);
        let outer = tiles.axes.len().saturating_sub(2);
        for axis in &tiles.axes[..outer] {
            let extent = self.binary("sub nsw", axis.hi, axis.lo);
            count = self.binary("mul", count, extent);
        }
        match self.any_points(op, &tiles.axes) {
            Some(any) => self.select(any, count, Val::i64(0)),
            None => count,
        }
    }

    /// Goes to a tile: sets the indices of all axes but the last one.
    pub(super) fn enter_tile(&mut self, tiles: &Tiles, tile: Val) -> Piece {
        let axes = tiles.axes.len();
        if axes == 1 {
            return Piece { column: self.column_of(tiles, tile), row: None, inside: None };
        }
        let (column, mut rest) = self.digit(tile, tiles.columns);
        let mut row = rest;
        if axes > 2 {
            (row, rest) = self.digit(rest, tiles.rows);
        }
        for (number, axis) in tiles.axes[..axes - 2].iter().enumerate().rev() {
            let mut digit = rest;
            if number > 0 {
                let extent = self.binary("sub nsw", axis.hi, axis.lo);
                (digit, rest) = self.digit(rest, extent);
            }
            let exact = self.binary("add nsw", axis.lo, digit);
            self.place_index(axis, exact);
        }
        let axis = tiles.axes[axes - 2];
        let first = self.binary("mul", row, tiles.height);
        let first = self.binary("add nsw", axis.lo, first);
        let shift = self.binary("mul", tiles.y, Val::i64(tiles.rows_of_thread.into()));
        let exact = self.binary("add nsw", first, shift);
        self.place_index(&axis, exact);
        let mut inside = self.compare("slt", exact, axis.hi);
        if let Some(has_row) = tiles.has_row {
            inside = self.binary("and", inside, has_row);
        }
        Piece { column: self.column_of(tiles, column), row: Some(exact), inside: Some(inside) }
    }

    fn column_of(&mut self, tiles: &Tiles, number: Val) -> Val {
        let columns = self.binary("mul", number, tiles.width);
        self.binary("add nsw", tiles.start, columns)
    }

    /// The last digit of a number, and what is left of it.
    pub(super) fn digit(&mut self, number: Val, base: Val) -> (Val, Val) {
        // A remainder of its own would be a second division, which LLVM moves away from the first.
        let rest = self.binary("udiv", number, base);
        let whole = self.binary("mul", rest, base);
        (self.binary("sub", number, whole), rest)
    }

    /// How many times `b` covers `a`, which is at least 0.
    fn quotient_up(&mut self, a: Val, b: Val) -> Val {
        let most = self.binary("sub", b, Val::int(b.ty, 1));
        let sum = self.binary("add", a, most);
        self.binary("udiv", sum, b)
    }

    /// The same for a power of two, with its logarithm.
    fn shifted_up(&mut self, a: Val, power: Val, bits: Val) -> Val {
        let most = self.binary("sub", power, Val::int(power.ty, 1));
        let sum = self.binary("add", a, most);
        self.binary("lshr", sum, bits)
    }

    fn leading_zeros(&mut self, v: Val) -> Val {
        let ty = v.ty();
        let symbol = format!("llvm.ctlz.{ty}");
        self.module.declare(&symbol, || format!("declare {ty} @{symbol}({ty}, i1 immarg)"));
        self.f.value(ty, format_args!("call {ty} @{symbol}({ty} {v}, i1 false)"))
    }
}

impl Tiling {
    /// What the device is told of the tiles.
    pub(super) fn mapping(self) -> PointMapping {
        PointMapping::Tiles { across: self.most_across, points: self.columns(), rows: self.rows }
    }

    /// Columns of a tile that a thread takes.
    pub(super) fn columns(self) -> u32 {
        self.points * self.groups
    }
}

/// The type of digits, rows and columns.
pub(super) fn number_of_steps(axes: &[Axis]) -> Scalar {
    let small = Range::new(0, i32::MAX.into());
    if axes.iter().all(|axis| axis.range.lies_in(small)) { Scalar::U32 } else { Scalar::I64 }
}
