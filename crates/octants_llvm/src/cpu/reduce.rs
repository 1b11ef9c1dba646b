//! Reductions of a parallel loop: accumulators that start at the op's identity and are combined into their places at the end
//! of a chunk.

use octants_ir::ops::AtomicOp;
use octants_ir::views::{ParallelLoop, ReductionView};
use octants_ir::{Const, Op, Scalar};

use crate::emitter::Emitter;
use crate::value::{Ty, Typed, Val};

impl Emitter<'_> {
    /// What each accumulator starts with.
    pub(crate) fn identities(&self, parallel: &ParallelLoop<'_>) -> Vec<Val> {
        parallel.reductions().map(|r| self.identity(r.op, self.scalar(r.accumulator))).collect()
    }

    /// Combines a chunk's totals into the places that the loop's operands name. A place that nothing was contributed to is not
    /// touched: it may lie outside its array.
    pub(crate) fn combine_totals(&mut self, op: Op, totals: &[Val]) {
        let parallel = self.kernel.parallel_loop(op).unwrap_or_else(|| panic!("{op} is no parallel loop"));
        for (reduction, &total) in parallel.reductions().zip(totals) {
            self.combine_total(&reduction, total);
        }
    }

    /// Combines one total into its place.
    pub(crate) fn combine_total(&mut self, reduction: &ReductionView<'_>, total: Val) {
        let total = self.reduce_lanes(reduction.op, total);
        let contributed = self.differs_from_identity(reduction.op, total);
        let (combine, done) = (self.f.new_label(), self.f.new_label());
        self.f.branch(contributed, combine, done);
        self.f.begin(combine);
        self.atomic(reduction.op, reduction.place.operands(), total);
        self.f.jump(done);
        self.f.begin(done);
    }

    /// Whether a total has other bits than the identity. -0.0 and 0.0 differ, and no NaN equals itself but by its bits.
    fn differs_from_identity(&mut self, op: AtomicOp, total: Val) -> Val {
        let identity = self.identity(op, total.ty);
        let word = match total.ty {
            Scalar::F16 => Scalar::U16,
            Scalar::F32 => Scalar::U32,
            Scalar::F64 => Scalar::U64,
            _ => return self.compare("ne", total, identity),
        };
        let (total, identity) = (self.bit_cast(total, word), self.bit_cast(identity, word));
        self.compare("ne", total, identity)
    }

    /// All lanes of an accumulator in one.
    pub(crate) fn reduce_lanes(&mut self, op: AtomicOp, total: Val) -> Val {
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
    pub(super) fn half(&mut self, v: Val, from: u32) -> Val {
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

    /// `op(identity, x)` is `x`, bit by bit: -0.0 + x is x also for -0.0, and a NaN loses against every number. With fast math an extreme
    /// is one comparison, in which only a NaN among what is contributed loses: it begins with an infinity.
    pub(crate) fn identity(&self, op: AtomicOp, ty: Scalar) -> Val {
        let exact = !self.kernel.options.rewrites_reals();
        Val::constant(match op {
            AtomicOp::Add if ty.is_real() => Const::from_f64(ty, -0.0),
            AtomicOp::Add | AtomicOp::Or | AtomicOp::Xor => Const::from_bits(ty, 0),
            AtomicOp::Mul => Const::from_i128(ty, 1),
            AtomicOp::And => Const::from_bits(ty, u64::MAX),
            AtomicOp::Min | AtomicOp::Max if ty.is_real() && exact => Const::from_f64(ty, f64::NAN),
            AtomicOp::Min => Const::from_f64(ty, f64::INFINITY),
            AtomicOp::Max if ty == Scalar::U1 => Const::bool(false),
            AtomicOp::Max => Const::from_f64(ty, f64::NEG_INFINITY),
            AtomicOp::Sub | AtomicOp::Exchange => panic!("{} is no reduction", op.name()),
        })
    }
}
