//! From tile to tile by steps: a tile's number is taken apart once, where a block begins, and so is the number of blocks, by which it
//! goes on. Then digits are added, with a carry.
//!
//! ```text
//! column, row, outer = the digits of block                     (a division for each but the last)
//! if there are more tiles than blocks:  step = the digits of blocks
//! while the last digit is one:  …;  column += step.column, less columns and with a carry if that is too much;  row += …
//! ```
//!
//! A division takes about 22 instructions, as much as two iterations of a short loop inside the body. Numbers have 32 bits where no axis
//! goes below 0: then a digit, and a tile's last index, are below 2³².

use octants_ir::Scalar;

use super::registers::Register;
use super::tile::{Piece, Tiles};
use crate::emitter::Emitter;
use crate::value::Val;

/// Where a block's tiles are, as digits: columns of tiles, rows of them, then the other axes from the last to the first.
pub(super) struct Steps {
    /// The digits of the first tile.
    pub first: Vec<Val>,
    /// What is added for the next one.
    step: Vec<Val>,
    /// How many of each there are.
    sizes: Vec<Val>,
}

impl Emitter<'_> {
    /// The tiles of this block. There are several axes.
    pub(super) fn steps(&mut self, tiles: &Tiles, count: Val, is_empty: Option<Val>) -> Steps {
        let mut sizes = vec![tiles.columns, tiles.rows];
        for axis in tiles.axes[..tiles.axes.len() - 2].iter().rev() {
            let extent = self.binary("sub nsw", axis.hi, axis.lo);
            sizes.push(self.resize(extent, tiles.number));
        }
        if let Some(is_empty) = is_empty {
            // There are no tiles, and still divisions.
            let one = Val::int(tiles.number, 1);
            sizes = sizes.into_iter().map(|size| self.select(is_empty, one, size)).collect();
        }
        let [block, blocks] =
            [Register::Block, Register::Blocks].map(|register| self.wide_register(register));
        let several = self.compare("ult", blocks, count);
        let [block, blocks] = [block, blocks].map(|value| self.resize(value, tiles.number));
        let mut first = self.digits(block, &sizes);
        if let (Some(is_empty), Some(last), Some(&size)) = (is_empty, first.last_mut(), sizes.last()) {
            *last = self.select(is_empty, size, *last);
        }
        let (more, done) = (self.f.new_label(), self.f.new_label());
        let before = self.f.block();
        self.f.branch(several, more, done);
        self.f.begin(more);
        let digits = self.digits(blocks, &sizes);
        let after = self.f.block();
        self.f.jump(done);
        self.f.begin(done);
        // A single tile is followed by none.
        let none =
            |place: usize| if place + 1 < sizes.len() { Val::int(tiles.number, 0) } else { sizes[place] };
        let step = digits.iter().enumerate();
        let step =
            step.map(|(place, &digit)| self.f.join(digit.ty(), &[(none(place), before), (digit, after)]));
        Steps { first, step: step.collect(), sizes }
    }

    /// Whether there is a tile of these digits.
    pub(super) fn is_tile(&mut self, digits: &[Val], steps: &Steps) -> Val {
        let last = digits.len() - 1;
        self.compare("ult", digits[last], steps.sizes[last])
    }

    /// The digits of a number, the last of which may be too great.
    fn digits(&mut self, value: Val, sizes: &[Val]) -> Vec<Val> {
        let mut digits = Vec::new();
        let mut rest = value;
        for &size in &sizes[..sizes.len() - 1] {
            let (digit, left) = self.digit(rest, size);
            digits.push(digit);
            rest = left;
        }
        digits.push(rest);
        digits
    }

    /// The digits of the block's next tile.
    pub(super) fn stepped_digits(&mut self, digits: &[Val], steps: &Steps) -> Vec<Val> {
        let mut carry: Option<Val> = None;
        let mut next = Vec::new();
        for (place, &digit) in digits.iter().enumerate() {
            let mut sum = self.binary("add", digit, steps.step[place]);
            if let Some(carry) = carry {
                let one = self.resize(carry, digit.ty);
                sum = self.binary("add", sum, one);
            }
            if place + 1 < digits.len() {
                let size = steps.sizes[place];
                let over = self.compare("uge", sum, size);
                let less = self.binary("sub", sum, size);
                sum = self.select(over, less, sum);
                carry = Some(over);
            }
            next.push(sum);
        }
        next
    }

    /// Goes to the tile of these digits: sets the indices of all axes but the last one.
    pub(super) fn enter_tile_of(&mut self, tiles: &Tiles, digits: &[Val]) -> Piece {
        let number = tiles.number;
        let axes = tiles.axes.len();
        for (axis, &digit) in tiles.axes[..axes - 2].iter().rev().zip(&digits[2..]) {
            let lo = self.resize(axis.lo, number);
            let index = self.binary("add", lo, digit);
            let index = self.resize(index, Scalar::I64);
            self.place_index(axis, index);
        }
        let column = self.binary("mul", digits[0], tiles.width);
        let column = self.binary("add", tiles.start, column);
        let axis = tiles.axes[axes - 2];
        let [lo, hi] = [axis.lo, axis.hi].map(|value| self.resize(value, number));
        let row = self.binary("mul", digits[1], tiles.height);
        let row = self.binary("add", row, tiles.y);
        let row = self.binary("add", lo, row);
        let mut inside = self.compare(if number == Scalar::U32 { "ult" } else { "slt" }, row, hi);
        if let Some(has_row) = tiles.has_row {
            inside = self.binary("and", inside, has_row);
        }
        let row = self.resize(row, Scalar::I64);
        self.place_index(&axis, row);
        Piece { column, row: Some(row), inside: Some(inside) }
    }
}
