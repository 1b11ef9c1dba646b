//! Which part of each array a launch may touch: boxes of indices, between bounds that the host computes from the launch's arguments.
//!
//! `x[t + 1, i]` for `i` from 0 to `n` touches the box `t + 1 ..= t + 1, 0 ..= n - 1`. What depends on memory may be any index.

use octants_ir::ops::{ArithOp, ConvertOp, Domain, ParallelFor};
use octants_ir::rewrite::{Parents, uses, walk};
use octants_ir::{Const, Kernel, Layout, Op, OpKind, Region, Scalar, SideTable, Value, ValueDef};

use super::array_uses;
use crate::{expand_field_loops, promote_locals, simplify};

/// An index of more ops than this may be anything. Chosen, not measured: it bounds the time for each index.
pub(super) const MAX_DEPTH: usize = 32;

/// What a launch may touch of the arrays that are its parameters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Footprint {
    pub touched: Vec<Touched>,
}

/// A part of an array that some access may touch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Touched {
    pub param: usize,
    pub written: bool,
    /// Whether what the kernel does depends on what is there: a sum that nobody asks for the old value does not.
    pub read: bool,
    /// Whether what it leaves there follows from what was there, as with such a sum.
    pub updated: bool,
    /// One for each axis; none if it may be all of the array.
    pub indices: Vec<Index>,
}

/// An integer of which arguments tell between which two it lies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Index {
    Any,
    Const(i64),
    /// An integer argument.
    Param(usize),
    Extent(usize, u8),
    /// From the first on, up to before the second.
    Between(Box<[Index; 2]>),
    /// Either of both.
    Either(Box<[Index; 2]>),
    Arith(ArithOp, Scalar, Box<[Index; 2]>),
}

/// Two integers and all between them; nothing if the second is below the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    pub first: i64,
    pub last: i64,
}

impl Interval {
    pub const ANY: Self = Self { first: i64::MIN, last: i64::MAX };

    pub fn one(value: i64) -> Self {
        Self { first: value, last: value }
    }

    pub fn meets(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// The interval, if all of it is a value of the type: what wraps may be anything.
    fn in_type(self, ty: Scalar) -> Self {
        let fits = |value: i64| Const::from_bits(ty, value as u64).as_i128() == Some(value.into());
        if fits(self.first) && fits(self.last) { self } else { Self::ANY }
    }

    fn of(values: [Option<i64>; 4]) -> Self {
        let [Some(a), Some(b), Some(c), Some(d)] = values else { return Self::ANY };
        Self { first: a.min(b).min(c).min(d), last: a.max(b).max(c).max(d) }
    }
}

impl Index {
    /// Where the integer lies in a launch whose integer arguments and extents are these; nothing is known of other arguments.
    pub fn evaluate(
        &self,
        param: &impl Fn(usize) -> Option<i64>,
        extent: &impl Fn(usize, u8) -> i64,
    ) -> Interval {
        match self {
            Self::Any => Interval::ANY,
            Self::Const(value) => Interval::one(*value),
            Self::Param(number) => param(*number).map_or(Interval::ANY, Interval::one),
            Self::Extent(number, axis) => Interval::one(extent(*number, *axis)),
            Self::Between(bounds) => {
                let [lo, hi] = bounds.each_ref().map(|bound| bound.evaluate(param, extent));
                Interval { first: lo.first, last: hi.last.saturating_sub(i64::from(hi.last != i64::MAX)) }
            }
            Self::Either(both) => {
                let [a, b] = both.each_ref().map(|one| one.evaluate(param, extent));
                Interval { first: a.first.min(b.first), last: a.last.max(b.last) }
            }
            Self::Arith(op, ty, operands) => {
                let [a, b] = operands.each_ref().map(|operand| operand.evaluate(param, extent));
                arith(*op, a, b).in_type(*ty)
            }
        }
    }
}

fn arith(op: ArithOp, a: Interval, b: Interval) -> Interval {
    if a == Interval::ANY || b == Interval::ANY {
        return Interval::ANY;
    }
    let corners = |apply: fn(i64, i64) -> Option<i64>| {
        Interval::of([
            apply(a.first, b.first),
            apply(a.first, b.last),
            apply(a.last, b.first),
            apply(a.last, b.last),
        ])
    };
    match op {
        ArithOp::Add => corners(i64::checked_add),
        ArithOp::Sub => corners(i64::checked_sub),
        ArithOp::Mul => corners(i64::checked_mul),
        ArithOp::Min => corners(|a, b| Some(a.min(b))),
        ArithOp::Max => corners(|a, b| Some(a.max(b))),
        ArithOp::FloorDiv if b.first > 0 => corners(|a, b| Some(a.div_euclid(b))),
        ArithOp::Mod if b.first > 0 => {
            if b.first == b.last && a.first.div_euclid(b.first) == a.last.div_euclid(b.first) {
                Interval { first: a.first.rem_euclid(b.first), last: a.last.rem_euclid(b.first) }
            } else {
                Interval { first: 0, last: b.last - 1 }
            }
        }
        ArithOp::FloorDiv
        | ArithOp::Mod
        | ArithOp::Div
        | ArithOp::RawDiv
        | ArithOp::RawMod
        | ArithOp::Neg
        | ArithOp::Abs => Interval::ANY,
    }
}

impl Footprint {
    /// Of a kernel in its structured phase.
    pub fn of(kernel: &Kernel) -> Self {
        let mut kernel = kernel.clone();
        expand_field_loops(&mut kernel);
        promote_locals(&mut kernel);
        simplify(&mut kernel);
        let search = Search { kernel: &kernel, parents: Parents::new(&kernel) };
        let accumulating = accumulating(&kernel);
        let mut touched: Vec<Touched> = Vec::new();
        for used in array_uses(&kernel, kernel.body) {
            let Some(param) = kernel.as_param(used.base) else { continue };
            let rank = kernel.ty(used.base).place().map_or(0, |(_, rank)| rank);
            let indices = used.path.iter().take(rank).map(|&index| search.index(index, MAX_DEPTH)).collect();
            let accumulates = accumulating[used.op];
            let (read, updated) = (used.reads && !accumulates, used.writes && accumulates);
            let one = Touched { param, written: used.writes, read, updated, indices };
            if !touched.contains(&one) {
                touched.push(one);
            }
        }
        Self { touched }
    }
}

/// The ops that add to memory, or do the like, and of which nobody asks what was there: updates whose result is not used, and the load and the store of
/// `a[i] = a[i] + b`, if what is loaded goes nowhere else.
pub(super) fn accumulating(kernel: &Kernel) -> SideTable<Op, bool> {
    let uses = uses(kernel);
    let mut ops = SideTable::new(false);
    walk(kernel, kernel.body, &mut |op| match kernel.ops[op].kind {
        OpKind::Atomic(_) => {
            ops.set(op, kernel.ops[op].results.iter().all(|&result| uses[result].is_empty()));
        }
        OpKind::ParallelFor(_) => ops.set(op, true),
        OpKind::Load => {
            let mut stores = Vec::new();
            if is_running_sum(kernel, kernel.ops[op].results[0], op, &uses, &mut stores) {
                stores.iter().chain([&op]).for_each(|&one| ops.set(one, true));
            }
        }
        _ => {}
    });
    ops
}

/// Whether what was loaded goes nowhere but, by sums, back to where it was.
fn is_running_sum(
    kernel: &Kernel,
    value: Value,
    load: Op,
    uses: &SideTable<Value, Vec<(Op, u32)>>,
    stores: &mut Vec<Op>,
) -> bool {
    uses[value].iter().all(|&(op, position)| match kernel.ops[op].kind {
        OpKind::Store => {
            let same = kernel.cell_access(op).zip(kernel.cell_access(load)).is_some_and(|(to, from)| {
                to.values == [value]
                    && to.place.base() == from.place.base()
                    && to.place.path() == from.place.path()
            });
            stores.push(op);
            same
        }
        OpKind::Arith(ArithOp::Add) => is_running_sum(kernel, kernel.ops[op].results[0], load, uses, stores),
        OpKind::Arith(ArithOp::Sub) if position == 0 => {
            is_running_sum(kernel, kernel.ops[op].results[0], load, uses, stores)
        }
        _ => false,
    }) && !stores.is_empty()
}

pub(super) struct Search<'k> {
    pub kernel: &'k Kernel,
    pub parents: Parents,
}

impl Search<'_> {
    pub fn index(&self, value: Value, depth: usize) -> Index {
        let Some(ty) = self.kernel.ty(value).scalar().filter(|ty| ty.is_integral()) else {
            return Index::Any;
        };
        if depth == 0 {
            return Index::Any;
        }
        if let Some(constant) = self.kernel.as_const(value).and_then(Const::as_i128) {
            return i64::try_from(constant).map_or(Index::Any, Index::Const);
        }
        match self.kernel.values[value].def {
            ValueDef::Param(region, position) if region == self.kernel.body => {
                Index::Param(position as usize)
            }
            ValueDef::Param(region, position) => self.loop_index(region, position as usize, depth),
            ValueDef::Result(op, _) => {
                let data = &self.kernel.ops[op];
                let operand = |number: usize| self.index(data.operands[number], depth - 1);
                match data.kind {
                    OpKind::Arith(op) if data.operands.len() == 2 => {
                        Index::Arith(op, ty, Box::new([operand(0), operand(1)]))
                    }
                    OpKind::Arith(ArithOp::Neg) => {
                        Index::Arith(ArithOp::Sub, ty, Box::new([Index::Const(0), operand(0)]))
                    }
                    OpKind::Select => Index::Either(Box::new([operand(1), operand(2)])),
                    OpKind::Extent(axis) => match self.kernel.as_param(data.operands[0]) {
                        Some(param) => Index::Extent(param, axis),
                        None => Index::Any,
                    },
                    // A sum with nothing: what does not fit into the type may be anything.
                    OpKind::Convert(ConvertOp::Cast) => {
                        Index::Arith(ArithOp::Add, ty, Box::new([operand(0), Index::Const(0)]))
                    }
                    _ => Index::Any,
                }
            }
        }
    }

    /// What a region's parameter counts, if it is the index of a loop.
    fn loop_index(&self, region: Region, position: usize, depth: usize) -> Index {
        let Some(op) = self.parents.op(region) else { return Index::Any };
        let data = &self.kernel.ops[op];
        let between = |lo: Value, hi: Value| {
            Index::Between(Box::new([self.index(lo, depth - 1), self.index(hi, depth - 1)]))
        };
        match &data.kind {
            kind if kind.is_counted_loop() && position == 0 => between(data.operands[0], data.operands[1]),
            OpKind::ForCells(layout) => along(&self.kernel.layouts[*layout], position),
            OpKind::ParallelFor(attributes) if position < usize::from(attributes.axes) => {
                let ParallelFor { domain, .. } = &**attributes;
                match domain {
                    Domain::Ranges => between(data.operands[2 * position], data.operands[2 * position + 1]),
                    Domain::Cells(layout) => along(&self.kernel.layouts[*layout], position),
                }
            }
            _ => Index::Any,
        }
    }
}

/// All indices of one axis.
pub(super) fn along(layout: &Layout, axis: usize) -> Index {
    let first = i64::from(layout.origin[axis]);
    let end = first + i64::from(layout.shape[axis]);
    Index::Between(Box::new([Index::Const(first), Index::Const(end)]))
}
