//! Points dealt to threads one by one, by their numbers along the flattened iteration space.
//!
//! A thread takes the point of its own number, then the one a whole grid further, and so on: any grid is right, one thread included,
//! which then runs all points in order. Loops whose number of threads the user limits are written so, and loops with short last axes.

use octants_ir::{Op, Scalar};

use super::bounds::Axis;
use super::registers::Register;
use crate::emitter::Emitter;
use crate::value::{Ty, Val};
use octants_abi::gpu::GpuFrame;

const NUMBER: Ty = Ty { scalar: Scalar::I64, lanes: 1 };

impl Emitter<'_> {
    /// The iterations of a `parallel_for`. Gives the thread's totals.
    pub(super) fn numbered_range(&mut self, op: Op) -> Vec<Val> {
        let kernel = self.kernel;
        let parallel = kernel.parallel_loop(op).unwrap_or_else(|| panic!("{op} is no parallel loop"));
        let axes = self.axes(op);
        let points = self.point_count(op, &axes);
        let [block, threads, thread, blocks] =
            [Register::Block, Register::Threads, Register::Thread, Register::Blocks]
                .map(|register| self.wide_register(register));
        let first = self.binary("mul", block, threads);
        let first = self.binary("add", first, thread);
        let stride = self.binary("mul", blocks, threads);

        let initial = self.identities(&parallel);
        let (head, inside, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let before = self.f.block();
        self.f.jump(head);

        self.f.begin(head);
        let point = self.f.phi(NUMBER);
        let totals: Vec<_> = initial.iter().map(|value| self.f.phi(value.ty())).collect();
        let more = self.compare("ult", point.value, points);
        self.f.branch(more, inside, done);

        self.f.begin(inside);
        self.place_point(&axes, point.value);
        for (&accumulator, phi) in parallel.accumulators().iter().zip(&totals) {
            self.set(accumulator, phi.value);
        }
        let next = self.region(parallel.body);
        if self.block_threads.is_some() {
            // Nobody looks any more at what the block's memory holds of this iteration.
            self.meet();
        }
        let stepped = self.binary("add", point.value, stride);
        let latch = self.f.block();
        self.f.jump(head);
        self.f.fill(point, &[(first, before), (stepped, latch)]);
        self.fill_phis(&totals, &initial, before, &next, latch);

        self.f.begin(done);
        totals.iter().map(|phi| phi.value).collect()
    }

    /// How many points a range has.
    fn point_count(&mut self, op: Op, axes: &[Axis]) -> Val {
        let Some(any) = self.any_points(op, axes) else {
            return self.load_entry("%frame", GpuFrame::POINTS, Scalar::I64);
        };
        let mut points = Val::i64(1);
        for axis in axes {
            let extent = self.binary("sub", axis.hi, axis.lo);
            points = self.binary("mul", points, extent);
        }
        self.select(any, points, Val::i64(0))
    }

    /// The indices of a point.
    fn place_point(&mut self, axes: &[Axis], point: Val) {
        // Numbers of 32 bits, where all of them have no more.
        let mut points = Some(1_i128);
        for axis in axes {
            let extent = axis.hi.as_int().zip(axis.lo.as_int()).map(|(hi, lo)| (hi - lo).max(0));
            points = points.zip(extent).and_then(|(points, extent)| points.checked_mul(extent));
        }
        let narrow = points.is_some_and(|points| points <= i32::MAX.into());
        let width = if narrow { Scalar::U32 } else { Scalar::I64 };
        let mut rest = self.resize(point, width);
        for (number, axis) in axes.iter().enumerate().rev() {
            let digit = if number == 0 {
                rest
            } else {
                let extent = self.binary("sub", axis.hi, axis.lo);
                let extent = self.resize(extent, width);
                let digit = self.binary("urem", rest, extent);
                rest = self.binary("udiv", rest, extent);
                digit
            };
            let digit = self.resize(digit, Scalar::I64);
            let exact = self.binary("add nsw", axis.lo, digit);
            self.place_index(axis, exact);
        }
    }
}
