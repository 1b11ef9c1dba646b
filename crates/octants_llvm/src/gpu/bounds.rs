//! The bounds of a range's axes: constants where the kernel has them, else what the launch computed. Bounds that an earlier task left
//! in the device's memory are computed here, where they lie.

use octants_ir::rewrite::ops_in;
use octants_ir::{Const, Op, OpKind, Scalar, Value};

use crate::counter::Counter;
use crate::counter::Index;
use crate::counter::Range;
use crate::emitter::Emitter;
use crate::value::Val;
use octants_abi::gpu::GpuFrame;

/// One axis of a range, in 64 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    /// The body's index.
    pub index: Value,
    pub lo: Val,
    pub hi: Val,
    /// What the index can be.
    pub range: Range,
}

impl Emitter<'_> {
    /// The axes of a parallel loop, outermost first.
    pub(super) fn axes(&mut self, op: Op) -> Vec<Axis> {
        let parallel = self.kernel.parallel_loop(op).unwrap_or_else(|| panic!("{op} is no parallel loop"));
        let computed = self.task_of(op).needs_temps();
        let mut axes = Vec::new();
        for (number, (&index, (lo, hi))) in parallel.indices().iter().zip(parallel.bounds()).enumerate() {
            axes.push(Axis {
                index,
                lo: self.bound(lo, 2 * number, computed),
                hi: self.bound(hi, 2 * number + 1, computed),
                range: self.counted_range(lo, hi),
            });
        }
        axes
    }

    fn bound(&mut self, bound: Value, number: usize, computed: bool) -> Val {
        if let Some(known) = self.kernel.as_const(bound).and_then(Const::as_i128) {
            return Val::int(Scalar::I64, known);
        }
        if computed {
            let bound = self.get(bound);
            return self.resize(bound, Scalar::I64);
        }
        self.load_entry("%frame", GpuFrame::BOUNDS + 8 * number, Scalar::I64)
    }

    /// Arrays that a task's region loads and does not write: their memory does not change while it runs, as no other array that it writes
    /// shares it. Functions of the kernel's own may write what they are passed.
    pub(super) fn unwritten_arrays(&self, op: Op) -> Vec<usize> {
        let body = self.kernel.ops[op].regions[0];
        let mut written = vec![!self.options.noalias; self.kernel.params.len()];
        for op in ops_in(self.kernel, body).into_iter().chain([op]) {
            let data = &self.kernel.ops[op];
            let only_reads = matches!(data.kind, OpKind::Load | OpKind::VolatileLoad | OpKind::Extent(_));
            for param in data.operands.iter().filter_map(|&operand| self.kernel.as_param(operand)) {
                written[param] |= !only_reads;
            }
        }
        (0..written.len()).filter(|&param| !written[param]).collect()
    }

    /// Whether a range whose bounds the host does not know has points; `None` if it has them for sure.
    pub(super) fn any_points(&mut self, op: Op, axes: &[Axis]) -> Option<Val> {
        if !self.task_of(op).needs_temps() {
            return None;
        }
        let mut all = None;
        for axis in axes {
            let some = self.compare("slt", axis.lo, axis.hi);
            all = Some(match all {
                Some(others) => self.binary("and", others, some),
                None => some,
            });
        }
        all
    }

    /// Lets an axis' index be this number of 64 bits.
    pub(super) fn place_index(&mut self, axis: &Axis, exact: Val) {
        self.place_counter(axis.index, exact, axis.range);
    }

    /// Lets a loop's index be this number of 64 bits.
    pub(super) fn place_counter(&mut self, index: Value, exact: Val, range: Range) {
        let narrow = self.resize(exact, self.scalar(index));
        self.set(index, narrow);
        self.counters.set(index, Some(Counter { index: Index::uniform(exact), range }));
    }
}
