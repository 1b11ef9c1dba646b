//! How the points of a range are dealt to threads.
//!
//! Points are numbered along the flattened iteration space, last axis fastest. A thread takes the point of its own number, then the one
//! a whole grid further, and so on; so neighbouring threads touch neighbouring elements, and any grid is right, one thread included.

use octants_ir::views::ParallelLoop;
use octants_ir::{Const, Op, Scalar, Value};

use super::GpuOptions;
use super::abi::GpuFrame;
use crate::address::Index;
use crate::emitter::Emitter;
use crate::index_range::Counter;
use crate::value::{Ty, Val};

impl Emitter<'_> {
    /// The whole task of a `parallel_for`.
    pub(super) fn strided_range(&mut self, op: Op, options: GpuOptions) {
        let parallel = self.kernel.parallel_loop(op).unwrap_or_else(|| panic!("{op} is no parallel loop"));
        let width = Ty::new(if options.wide { Scalar::I64 } else { Scalar::I32 }, 1);
        let points = self.load_entry("%frame", GpuFrame::POINTS, Scalar::I64);
        let points = self.resize(points, width.scalar);
        let (block, threads) = (self.special("ctaid.x"), self.special("ntid.x"));
        let (thread, blocks) = (self.special("tid.x"), self.special("nctaid.x"));
        let [block, threads, thread, blocks] = [block, threads, thread, blocks]
            .map(|number| self.resize(number.read_as(Scalar::U32), width.scalar));
        let first = self.binary("mul", block, threads);
        let first = self.binary("add", first, thread);
        let stride = self.binary("mul", blocks, threads);

        let initial = self.identities(&parallel);
        let (head, inside, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let before = self.f.block();
        self.f.jump(head);

        self.f.begin(head);
        let point = self.f.phi(width);
        let totals: Vec<_> = initial.iter().map(|value| self.f.phi(value.ty())).collect();
        // Unsigned: the last step may pass the greatest signed number.
        let more = self.compare("ult", point.value, points);
        self.f.branch(more, inside, done);

        self.f.begin(inside);
        self.place_point(&parallel, point.value);
        for (&accumulator, phi) in parallel.accumulators().iter().zip(&totals) {
            self.set(accumulator, phi.value);
        }
        let next = self.region(parallel.body);
        let stepped = self.binary("add", point.value, stride);
        let latch = self.f.block();
        self.f.jump(head);
        self.f.fill(point, &[(first, before), (stepped, latch)]);
        self.fill_phis(&totals, &initial, before, &next, latch);

        self.f.begin(done);
        let totals: Vec<_> = totals.iter().map(|phi| phi.value).collect();
        self.combine_totals(op, &totals);
    }

    /// The indices of a point.
    fn place_point(&mut self, parallel: &ParallelLoop<'_>, point: Val) {
        let bounds = parallel.bound_operands();
        let mut rest = point;
        for (axis, (&index, (lo, hi))) in parallel.indices().iter().zip(parallel.bounds()).enumerate().rev() {
            let range = self.counted_range(lo, hi);
            let lo = self.bound(bounds, 2 * axis, point.ty);
            let digit = if axis == 0 {
                rest
            } else {
                let hi = self.bound(bounds, 2 * axis + 1, point.ty);
                let extent = self.binary("sub", hi, lo);
                let digit = self.binary("urem", rest, extent);
                rest = self.binary("udiv", rest, extent);
                digit
            };
            let place = self.binary("add", lo, digit);
            let exact = self.resize(place, Scalar::I64);
            let narrow = self.resize(place, self.scalar(index));
            self.set(index, narrow);
            self.counters.set(index, Some(Counter { index: Index::uniform(exact), range }));
        }
    }

    /// A bound: a constant where the kernel has one, else what the launch computed.
    fn bound(&mut self, bounds: &[Value], number: usize, ty: Scalar) -> Val {
        if let Some(known) = self.kernel.as_const(bounds[number]).and_then(Const::as_i128) {
            return Val::int(ty, known);
        }
        let bound = self.load_entry("%frame", GpuFrame::BOUNDS + 8 * number, Scalar::I64);
        self.resize(bound, ty)
    }

    /// A special register of the thread.
    fn special(&mut self, name: &str) -> Val {
        let intrinsic = format!("llvm.nvvm.read.ptx.sreg.{name}");
        self.module.declare(&intrinsic, || format!("declare i32 @{intrinsic}()"));
        self.f.in_entry(|f| f.value(Ty::new(Scalar::I32, 1), format_args!("call i32 @{intrinsic}()")))
    }
}
