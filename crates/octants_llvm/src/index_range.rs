//! Which index arithmetic may be done in 64 bits.
//!
//! The IR's integers wrap, so the index of an access is the wrapped one, and bounds checks compare that. LLVM vectorises
//! addresses that are affine in a loop's counter, which a sum that may wrap is not. A sum in 64 bits differs from the wrapped
//! one by a multiple of 2³². Where all values that it can take lie in the [`window`](Range::window) of an axis, a wrapped
//! index inside the axis equals it, and any other access is outside the axis in both forms.

use octants_ir::ops::{ArithOp, BitOp, ConvertOp};
use octants_ir::{Const, OpKind, Scalar, Type, Value, ValueDef};

use crate::counter::Index;
use crate::counter::Range;
use crate::emitter::Emitter;

/// The elements that the lanes of one vector may be apart, in all, to be counted from its first lane. Chosen, not measured: far below
/// where 32 bits wrap, and beyond any stride that shares a page.
const LANE_SPAN: i64 = 1 << 16;

/// Definitions that are followed, one behind the other, to find a value's range. Chosen, not measured: it bounds a walk that doubles at each
/// of them; indices have fewer.
const MAX_DEFINITIONS: u32 = 6;

/// How an index is computed: from the leaves of a tree of sums and products, each in 64 bits.
#[derive(Clone, Debug)]
pub(crate) enum Exact {
    /// The wrapped value. Where it is linear in the lanes, those count on from the first.
    Leaf(Value),
    /// The wrapped value of each lane.
    Wrapped(Value),
    /// `add`, `sub`, or `mul` by a factor that is the same in all lanes.
    Node(ArithOp, Box<[Exact; 2]>),
}

impl Emitter<'_> {
    /// What a loop between two bounds can count.
    pub(crate) fn counted_range(&self, lo: Value, hi: Value) -> Range {
        Range::counted(self.range_of(lo, MAX_DEFINITIONS), self.range_of(hi, MAX_DEFINITIONS))
    }

    /// Whether an integer is zero or more, as far as the loops that it comes from say.
    pub(crate) fn is_never_negative(&self, value: Value) -> bool {
        self.range_of(value, MAX_DEFINITIONS).low >= 0
    }

    /// What a value can be.
    fn range_of(&self, value: Value, depth: u32) -> Range {
        if let Some(counter) = self.counters[value] {
            return counter.range;
        }
        let scalar = match self.kernel.ty(value) {
            Type::Data(data) => data.elem(),
            _ => None,
        };
        let whole = scalar.and_then(Range::of_type).unwrap_or(Range::I32);
        let ValueDef::Result(op, _) = self.kernel.values[value].def else { return whole };
        let op = &self.kernel.ops[op];
        let found = match (&op.kind, &op.operands[..]) {
            (OpKind::Const(c), _) => c.as_i128().map(|c| Range::new(c, c)),
            (OpKind::Extent(_), _) => Some(Range::EXTENT),
            _ if depth == 0 => None,
            (OpKind::Arith(op), &[a, b]) => {
                self.range_of(a, depth - 1).combined(*op, self.range_of(b, depth - 1))
            }
            (OpKind::Bit(BitOp::And), operands) => {
                let ranges = operands.iter().map(|&operand| self.range_of(operand, depth - 1));
                ranges
                    .filter(|range| range.low >= 0)
                    .map(|range| range.high)
                    .min()
                    .map(|high| Range::new(0, high))
            }
            (OpKind::Bit(BitOp::Shr), &[a, _]) => {
                let a = self.range_of(a, depth - 1);
                Some(Range::new(a.low.min(0), a.high.max(-1)))
            }
            (OpKind::Convert(ConvertOp::Cast), &[a]) => {
                let integral = matches!(self.kernel.ty(a), Type::Data(data) if data.elem().is_some_and(Scalar::is_integral));
                integral.then(|| self.range_of(a, depth - 1))
            }
            _ => None,
        };
        // A result that may wrap can be anything.
        found.filter(|range| range.lies_in(whole)).unwrap_or(whole)
    }

    /// How to compute an index in 64 bits without leaving the window, and what it can be.
    pub(crate) fn exact(&self, value: Value, window: Range, depth: u32) -> (Exact, Range) {
        let leaf = || self.leaf_in_window(value, window);
        if self.counters[value].is_some() || depth == 0 || self.kernel.ty(value) != Type::I32 {
            return leaf();
        }
        let Some(def) = self.kernel.def(value) else { return leaf() };
        let (&OpKind::Arith(op), &[a, b]) = (&def.kind, &def.operands[..]) else { return leaf() };
        let (first, second) = match op {
            ArithOp::Add | ArithOp::Sub => (a, b),
            ArithOp::Mul if self.is_invariant(b, 4) => (a, b),
            ArithOp::Mul if self.is_invariant(a, 4) => (b, a),
            _ => return leaf(),
        };
        // As deep as possible on both sides, else on one, else on none.
        let deep = [first, second].map(|operand| self.exact(operand, window, depth - 1));
        let flat = [first, second].map(|operand| self.leaf_in_window(operand, window));
        let ([deep_x, deep_y], [flat_x, flat_y]) = (&deep, &flat);
        for (x, y) in [(deep_x, deep_y), (deep_x, flat_y), (flat_x, deep_y), (flat_x, flat_y)] {
            if let Some(range) = x.1.combined(op, y.1).filter(|range| range.lies_in(window)) {
                return (Exact::Node(op, Box::new([x.0.clone(), y.0.clone()])), range);
            }
        }
        leaf()
    }

    /// A value that is not taken apart. Lanes that count on from the first must stay in the window.
    fn leaf_in_window(&self, value: Value, window: Range) -> (Exact, Range) {
        let range = self.range_of(value, MAX_DEFINITIONS);
        if self.counters[value].is_none()
            && let Some(offsets) = self.offsets_from_first(value)
        {
            let (below, above) = (offsets.iter().min().copied(), offsets.iter().max().copied());
            let (below, above) = (below.unwrap_or_default(), above.unwrap_or_default());
            let counted = Range::new(range.low + i128::from(below), range.high + i128::from(above));
            // Narrower types wrap inside the window.
            let is_near = above - below < LANE_SPAN && self.scalar(value).bits() >= 32;
            return if is_near && counted.lies_in(window) {
                (Exact::Leaf(value), counted)
            } else {
                (Exact::Wrapped(value), range)
            };
        }
        let stride = if self.counters[value].is_none() { self.lane_stride(value) } else { None };
        let Some(stride) = stride else { return (Exact::Leaf(value), range) };
        let span = i128::from(LANE_SPAN);
        let (below, above) = (if stride < 0 { span } else { 0 }, if stride > 0 { span } else { 0 });
        let counted = Range::new(range.low - below, range.high + above);
        if counted.lies_in(window) { (Exact::Leaf(value), counted) } else { (Exact::Wrapped(value), range) }
    }

    /// How far apart the values of neighbouring lanes are, where that is constant as long as nothing wraps, and little.
    pub(crate) fn lane_stride(&self, value: Value) -> Option<i64> {
        if self.lanes.count == 1 {
            return None;
        }
        self.stride_of(value, MAX_DEFINITIONS)
            .filter(|stride| stride.unsigned_abs() * u64::from(self.lanes.count) <= LANE_SPAN.unsigned_abs())
    }

    fn stride_of(&self, value: Value, depth: u32) -> Option<i64> {
        if let Some(counter) = self.counters[value] {
            return match counter.index {
                Index::Linear { stride, .. } => Some(stride),
                Index::Offsets { .. } | Index::Lanes(_) => None,
            };
        }
        if !self.lanes.varying[value] {
            return Some(0);
        }
        let def = self.kernel.def(value).filter(|_| depth > 0 && self.kernel.ty(value) == Type::I32)?;
        let (&OpKind::Arith(op), &[a, b]) = (&def.kind, &def.operands[..]) else { return None };
        let factor =
            |value| self.kernel.as_const(value).and_then(Const::as_i128).and_then(|c| i64::try_from(c).ok());
        match op {
            ArithOp::Add => self.stride_of(a, depth - 1)?.checked_add(self.stride_of(b, depth - 1)?),
            ArithOp::Sub => self.stride_of(a, depth - 1)?.checked_sub(self.stride_of(b, depth - 1)?),
            ArithOp::Mul => match (factor(a), factor(b)) {
                (_, Some(factor)) => self.stride_of(a, depth - 1)?.checked_mul(factor),
                (Some(factor), None) => self.stride_of(b, depth - 1)?.checked_mul(factor),
                (None, None) => None,
            },
            _ => None,
        }
    }

    /// Whether a value is the same in all iterations of all loops, plainly.
    fn is_invariant(&self, value: Value, depth: u32) -> bool {
        if self.kernel.as_param(value).is_some() {
            return true;
        }
        let Some(def) = self.kernel.def(value) else { return false };
        match def.kind {
            OpKind::Const(_) | OpKind::Extent(_) => true,
            OpKind::Arith(_) | OpKind::Convert(ConvertOp::Cast) if depth > 0 => {
                def.operands.iter().all(|&operand| self.is_invariant(operand, depth - 1))
            }
            _ => false,
        }
    }
}
