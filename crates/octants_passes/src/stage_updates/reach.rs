//! Where an index of an array may lie, seen from the first iteration of a box of a loop's iterations.

use std::collections::HashMap;

use octants_ir::ops::{ArithOp, BitOp, ConvertOp};
use octants_ir::rewrite::ops_in;
use octants_ir::{Const, Kernel, Op, OpKind, SideTable, Value};

use crate::analysis::Affine;
use crate::demote_atomics::values_in;

/// Indices that are made of more ops around sums are not looked at. Chosen, not measured.
const MOST_DEPTH: u32 = 8;
/// Digits up to this are known to be digits, in elements of an axis. Chosen, not measured: beyond it no tile holds all.
const MOST_DIGIT: i128 = 1 << 12;

/// An index as `Σ coefficient · index of the loop + Σ coefficient · value + constant`, with a constant between two others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Reach {
    /// Axes of the loop, ascending, with coefficients that are positive.
    pub axes: Vec<(usize, i64)>,
    /// Values that are the same in all iterations.
    pub fixed: Vec<(Value, i64)>,
    pub least: i64,
    pub greatest: i64,
    /// It is this one at least, and this one at most, whatever the sum is.
    pub floor: Option<i64>,
    pub ceiling: Option<i64>,
    /// Whether the index is never another one, in wrapping arithmetic of 32 bits.
    pub is_exact: bool,
}

impl Reach {
    fn constants(least: i64, greatest: i64) -> Self {
        Self {
            axes: Vec::new(),
            fixed: Vec::new(),
            least,
            greatest,
            floor: None,
            ceiling: None,
            is_exact: true,
        }
    }

    fn grows_like(&self, other: &Self) -> bool {
        self.axes == other.axes && self.fixed == other.fixed
    }

    pub fn contains(&self, other: &Self) -> bool {
        self.grows_like(other) && self.least <= other.least && other.greatest <= self.greatest
    }

    /// Includes the other one, if they then span no more than that.
    pub fn include(&mut self, other: &Self, most: i64) {
        let (least, greatest) = (self.least.min(other.least), self.greatest.max(other.greatest));
        if self.grows_like(other) && greatest.saturating_sub(least) <= most {
            (self.least, self.greatest) = (least, greatest);
        }
    }

    /// How many indices there are in a box with so many iterations along each axis.
    pub fn width(&self, sizes: &[u32]) -> u64 {
        let own =
            self.axes.iter().map(|&(axis, by)| by.cast_unsigned().saturating_mul(u64::from(sizes[axis]) - 1));
        own.fold(self.greatest.abs_diff(self.least) + 1, u64::saturating_add)
    }

    fn add(&mut self, other: &Self) {
        self.axes.extend(&other.axes);
        self.fixed.extend(&other.fixed);
        self.least = self.least.saturating_add(other.least);
        self.greatest = self.greatest.saturating_add(other.greatest);
        self.is_exact &= other.is_exact && other.floor.is_none() && other.ceiling.is_none();
    }

    fn sorted(mut self) -> Option<Self> {
        self.axes.sort_unstable();
        self.fixed.sort_unstable();
        // An axis that occurs twice came from sums inside of sums.
        let is_once = self.axes.windows(2).all(|two| two[0].0 != two[1].0);
        is_once.then_some(self)
    }
}

/// A loop, as far as indices ask.
pub(super) struct Nest<'k> {
    kernel: &'k Kernel,
    /// The loop's indices.
    pub indices: &'k [Value],
    /// First and last values of an axis, where they are constants and it is not empty.
    pub ranges: Vec<Option<(i64, i64)>>,
    inside: SideTable<Value, bool>,
    /// Of inner loops with constant bounds.
    counters: HashMap<Value, (i64, i64)>,
}

impl<'k> Nest<'k> {
    pub fn new(kernel: &'k Kernel, op: Op) -> Self {
        let parallel = kernel.parallel_loop(op).expect("the caller saw a parallel loop");
        let known = |value: Value| {
            kernel.as_const(value).and_then(Const::as_i128).and_then(|value| i64::try_from(value).ok())
        };
        let range = |lo: Value, hi: Value| {
            let (lo, hi) = (known(lo)?, known(hi)?);
            (lo < hi).then(|| (lo, hi - 1))
        };
        let ranges = parallel.bounds().map(|(lo, hi)| range(lo, hi)).collect();
        let mut counters = HashMap::new();
        for op in ops_in(kernel, parallel.body) {
            let data = &kernel.ops[op];
            if data.kind == OpKind::For
                && let Some(range) = range(data.operands[0], data.operands[1])
            {
                counters.insert(kernel.regions[data.regions[0]].params[0], range);
            }
        }
        let mut inside = values_in(kernel, parallel.body);
        for &index in parallel.indices() {
            inside.set(index, true);
        }
        Self { kernel, indices: parallel.indices(), ranges, inside, counters }
    }

    /// Whether an index is inside of what a tile holds, wherever its box is: `tile` is in elements of one axis of an array.
    pub fn is_inside(&self, index: &Reach, tile: &Reach) -> bool {
        if !index.is_exact || !tile.contains(index) {
            return false;
        }
        if index.floor.is_none() && index.ceiling.is_none() {
            return true;
        }
        // Bounds of an index are inside of each tile whose box may have indices beyond them.
        let &[(axis, 1)] = &tile.axes[..] else { return false };
        let Some((first, last)) = self.ranges[axis].filter(|_| tile.fixed.is_empty()) else { return false };
        // No sum wraps there.
        let is_small = |index: i64| index.abs() < 1 << 30;
        is_small(first)
            && is_small(last)
            && index.floor.is_none_or(|floor| first.saturating_add(tile.greatest) >= floor)
            && index.ceiling.is_none_or(|ceiling| last.saturating_add(tile.least) <= ceiling)
    }

    /// Where an index lies, if that is known up to constants.
    pub fn reach(&self, index: Value) -> Option<Reach> {
        self.of(index, MOST_DEPTH)
    }

    fn known(&self, value: Value) -> Option<i128> {
        self.kernel.as_const(value)?.as_i128()
    }

    fn is_fixed(&self, value: Value) -> bool {
        !self.inside[value] || self.known(value).is_some()
    }

    fn axis(&self, value: Value) -> Option<usize> {
        self.indices.iter().position(|&index| index == value)
    }

    fn of(&self, value: Value, depth: u32) -> Option<Reach> {
        let depth = depth.checked_sub(1)?;
        let scalar = self.kernel.ty(value).scalar().filter(|ty| ty.is_integral() && ty.bits() >= 32)?;
        let parts = self.kernel.def(value).map(|op| (&op.kind, &op.operands[..]));
        match parts {
            // What keeps an index inside of bounds moves few of them.
            Some((OpKind::Arith(kind @ (ArithOp::Min | ArithOp::Max)), &[a, b])) => {
                let (clamped, bound) = match (self.is_fixed(a), self.is_fixed(b)) {
                    (false, true) => (a, b),
                    (true, false) => (b, a),
                    _ => return None,
                };
                let mut reach = self.of(clamped, depth)?;
                let bound = self.known(bound).and_then(|bound| i64::try_from(bound).ok());
                match (kind, bound) {
                    (_, None) => reach.is_exact = false,
                    _ if !scalar.is_signed() => reach.is_exact = false,
                    (ArithOp::Max, bound) => reach.floor = reach.floor.max(bound),
                    (_, Some(bound)) => {
                        reach.ceiling = Some(reach.ceiling.map_or(bound, |other| other.min(bound)));
                    }
                }
                return Some(reach);
            }
            Some((OpKind::Bit(BitOp::And), &[_, mask])) => {
                let mask = self.known(mask).filter(|mask| (0..MOST_DIGIT).contains(mask))?;
                return Some(Reach::constants(0, mask as i64));
            }
            Some((OpKind::Arith(ArithOp::Mod), &[_, by])) => {
                let by = self.known(by).filter(|by| (1..=MOST_DIGIT).contains(by))?;
                return Some(Reach::constants(0, by as i64 - 1));
            }
            Some((OpKind::Bit(BitOp::Shr), &[sum, by])) => {
                let by = self.known(by).filter(|by| (0..31).contains(by))?;
                return self.quotient(sum, by as u32);
            }
            Some((OpKind::Arith(ArithOp::FloorDiv), &[sum, by])) => {
                let by = self.known(by).filter(|by| *by > 0 && by.count_ones() == 1 && *by < 1 << 31)?;
                return self.quotient(sum, by.trailing_zeros());
            }
            Some((OpKind::Convert(ConvertOp::Cast), &[from])) => {
                let wide = self
                    .kernel
                    .ty(from)
                    .scalar()
                    .is_some_and(|from| from.is_integral() && from.bits() >= scalar.bits());
                if wide {
                    return self.of(from, depth);
                }
            }
            _ => {}
        }
        let form = Affine::of(self.kernel, value).filter(|form| form.ty.bits() >= 32)?;
        let mut reach = Reach::constants(form.constant, form.constant);
        for &(term, by) in &form.terms {
            if let Some(axis) = self.axis(term) {
                reach.axes.push((axis, Some(by).filter(|&by| by > 0)?));
            } else if self.is_fixed(term) {
                reach.fixed.push((term, by));
            } else if let Some(&range) = self.counters.get(&term) {
                reach.add(&scaled(range, by)?);
            } else if by == 1 && term != value {
                reach.add(&self.of(term, depth)?);
            } else {
                return None;
            }
        }
        reach.sorted()
    }

    /// `sum >> by`: what is a multiple of the power is divided, the rest is known.
    fn quotient(&self, sum: Value, by: u32) -> Option<Reach> {
        let form = Affine::of(self.kernel, sum).filter(|form| form.ty.bits() >= 32)?;
        let mut rest = Reach::constants(form.constant, form.constant);
        let mut reach = Reach::constants(0, 0);
        for &(term, factor) in &form.terms {
            let axis = self.axis(term);
            if factor.trailing_zeros() >= by {
                let factor = factor >> by;
                match axis {
                    Some(axis) if factor > 0 => reach.axes.push((axis, factor)),
                    None if self.is_fixed(term) => reach.fixed.push((term, factor)),
                    _ => return None,
                }
                continue;
            }
            let range = match axis {
                Some(axis) => self.ranges[axis]?,
                None => *self.counters.get(&term)?,
            };
            rest.add(&scaled(range, factor)?);
        }
        // Sums that wrap are no such sums.
        let known =
            Reach { least: rest.least >> by, greatest: rest.greatest >> by, is_exact: false, ..reach };
        known.sorted()
    }
}

fn scaled((first, last): (i64, i64), by: i64) -> Option<Reach> {
    let (a, b) = (first.checked_mul(by)?, last.checked_mul(by)?);
    Some(Reach::constants(a.min(b), a.max(b)))
}
