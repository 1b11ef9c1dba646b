//! Reductions of a parallel loop: accumulators that start at the op's identity and are combined into their places at the end
//! of a chunk.

use octants_ir::ops::{AtomicOp, ParallelFor};
use octants_ir::{Const, Op, OpKind, Region, Scalar};

use crate::emitter::Emitter;
use crate::value::{Ty, Typed, Val};

impl Emitter<'_> {
    /// What each accumulator starts with.
    pub(crate) fn identities(&self, attributes: &ParallelFor, body: Region) -> Vec<Val> {
        let accumulators = &self.kernel.regions[body].params[attributes.axes.into()..];
        let reductions = attributes.reductions.iter();
        reductions.zip(accumulators).map(|(r, &value)| identity(r.op, self.scalar(value))).collect()
    }

    /// Combines a chunk's totals into the places that the loop's operands name. A place that nothing was contributed to is not
    /// touched: it may lie outside its array.
    pub(crate) fn combine_totals(&mut self, op: Op, totals: &[Val]) {
        let data = &self.kernel.ops[op];
        let OpKind::ParallelFor(attributes) = &data.kind else { panic!("{op} is no parallel loop") };
        let mut operands = &data.operands[2 * usize::from(attributes.axes)..];
        for (reduction, &total) in attributes.reductions.iter().zip(totals) {
            let (path, rest) = operands.split_at(reduction.operands.into());
            operands = rest;
            let total = self.reduce_lanes(reduction.op, total);
            let unequal = if total.ty.is_real() { "une" } else { "ne" };
            let contributed = self.compare(unequal, total, identity(reduction.op, total.ty));
            let (combine, done) = (self.f.new_label(), self.f.new_label());
            self.f.branch(contributed, combine, done);
            self.f.begin(combine);
            self.atomic(reduction.op, path, total);
            self.f.jump(done);
            self.f.begin(done);
        }
    }

    /// All lanes of an accumulator in one.
    fn reduce_lanes(&mut self, op: AtomicOp, total: Val) -> Val {
        let mut total = total;
        while total.lanes > 1 {
            let half = total.lanes / 2;
            let low = self.half(total, 0);
            let high = self.half(total, half);
            total = self.combine(op, low, high);
        }
        total
    }

    /// Half of the lanes, from a lane on; a single one as a scalar.
    fn half(&mut self, v: Val, from: u32) -> Val {
        let half = v.lanes / 2;
        if half == 1 {
            return self.lane(v, from);
        }
        let picks: Vec<_> = (from..from + half).map(|lane| format!("i32 {lane}")).collect();
        let ty = Ty::new(v.ty, half);
        self.f.value(
            ty,
            format_args!(
                "shufflevector {}, {} poison, <{half} x i32> < {} >",
                Typed(v),
                v.ty(),
                picks.join(", ")
            ),
        )
    }
}

/// `op(identity, x)` is `x`.
fn identity(op: AtomicOp, ty: Scalar) -> Val {
    match op {
        AtomicOp::Add | AtomicOp::Or | AtomicOp::Xor => Val::constant(Const::from_bits(ty, 0)),
        AtomicOp::Mul => Val::constant(Const::from_i128(ty, 1)),
        AtomicOp::And => Val::constant(Const::from_bits(ty, u64::MAX)),
        AtomicOp::Min => Val::constant(Const::from_f64(ty, f64::INFINITY)),
        AtomicOp::Max if ty == Scalar::U1 => Val::constant(Const::bool(false)),
        AtomicOp::Max => Val::constant(Const::from_f64(ty, f64::NEG_INFINITY)),
        AtomicOp::Sub | AtomicOp::Exchange => panic!("{} is no reduction", op.name()),
    }
}
