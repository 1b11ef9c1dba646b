//! Loops inside a body: unrolled, with accesses of neighbouring iterations joined where they run through memory.
//!
//! ```text
//! end = hi, rounded down to a multiple of 4, where lo is one and the arrays are aligned; else lo
//! for j in lo, lo + 4, ... below end: the body for j, j + 1, j + 2, j + 3    (unrolled further)
//! for j in end..hi: the body
//! ```
//!
//! Iterations keep their order. All threads of a warp often load the same cells (bodies of an n-body problem): four of them by one
//! instruction of 128 bits instead of four. On an H200 n-body runs 560 to 840 G interactions/s with a plain loop, and 1250 with 16 unrolled
//! iterations (kernels written by hand).

use octants_ir::ops::{CellUse, Effects};
use octants_ir::rewrite::ops_in;
use octants_ir::{Kernel, Op, OpKind, Scalar, Type};

use super::choose::{is_long, runs_along};
use super::runs::WIDEST;
use crate::emitter::Emitter;
use crate::function::Phi;
use crate::iterations::Group;
use crate::lowering::LibraryFunction;
use crate::module::Node;
use crate::ops::loop_length::is_short;
use crate::value::{Ty, Val};

/// Iterations that are unrolled, at most.
const MOST_UNROLLED: usize = 16;
/// Ops of unrolled iterations, at most: such a loop still fits into the cache of instructions.
const MOST_OPS: usize = 512;

/// Ops that a math function counts as. A sine is 45 lines of PTX, and the loop around it three instructions: two such iterations are unrolled. Four took LLVM
/// and the assembler one and a half times as long (`loop` and `nest` of `benches/gradients.py`).
const OPS_PER_FUNCTION: usize = 200;

/// Iterations of a `while` that are unrolled. A Julia set ran at 65, 75, 81 and 84 Gpix/s on an H200 with 1, 2, 4 and 8, in a kernel written
/// by hand, and at 79.5 and 81.0 with 8 and 16, compiled.
const WHILE_UNROLLED: usize = 16;
/// Ops of an iteration, with its test, that is short. Chosen, not measured: far below what the test and the jump take.
const MOST_WHILE_OPS: usize = 32;

/// How long the code of some ops is, in ops of an instruction or two.
fn weight(kernel: &Kernel, ops: &[Op]) -> usize {
    let weigh = |&op: &Op| match &kernel.ops[op].kind {
        OpKind::Const(_) => 0,
        _ if LibraryFunction::of(kernel, op).is_some() => OPS_PER_FUNCTION,
        _ => 1,
    };
    ops.iter().map(weigh).sum()
}

const COUNTER: Ty = Ty { scalar: Scalar::I64, lanes: 1 };

/// How a loop is unrolled.
struct Unrolling {
    /// Iterations whose accesses are joined; a power of two.
    points: u32,
    /// Arrays that have to be aligned for that.
    aligned: Vec<usize>,
    /// Iterations that are unrolled in all.
    count: usize,
}

impl Emitter<'_> {
    /// Emits a `for` with plain iterations. One that runs a few times only is left to LLVM, and so is one with loops inside.
    pub(super) fn unrolled_for(&mut self, op: Op) -> bool {
        let Some(unrolling) = self.unrolling(op) else { return false };
        let kernel = self.kernel;
        let data = &kernel.ops[op];
        let bounds = [data.operands[0], data.operands[1]].map(|bound| self.get(bound));
        let [lo, hi] = bounds.map(|bound| self.resize(bound, Scalar::I64));
        let mut values: Vec<_> = data.operands[2..].iter().map(|&value| self.get(value)).collect();
        let mut from = lo;
        if unrolling.points > 1 {
            let points = Val::i64(unrolling.points.into());
            let mask = self.binary("sub", Val::i64(0), points);
            let down = self.binary("and", hi, mask);
            let end = self.intrinsic("llvm.smax", &[lo, down], "");
            let first = self.binary("and", lo, mask);
            let mut whole = self.compare("eq", first, lo);
            if let Some(aligned) = self.arrays_are_aligned(&unrolling.aligned, true) {
                whole = self.binary("and", whole, aligned);
            }
            let end = self.select(whole, end, lo);
            values = self.counted_loop(op, (lo, end), (&unrolling, unrolling.points), &values);
            from = end;
        }
        values = self.counted_loop(op, (from, hi), (&unrolling, 1), &values);
        for (&result, &value) in data.results.iter().zip(&values) {
            self.set(result, value);
        }
        true
    }

    fn unrolling(&self, op: Op) -> Option<Unrolling> {
        let data = &self.kernel.ops[op];
        let body = data.regions[0];
        let index = self.kernel.regions[body].params[0];
        let ops = ops_in(self.kernel, body);
        let long = ops.iter().any(|&op| is_long(&self.kernel.ops[op].kind));
        if long || is_short(self.kernel, op) || self.kernel.ty(index) != Type::I32 {
            return None;
        }
        let count = MOST_UNROLLED.min(MOST_OPS / weight(self.kernel, &ops).max(1));
        if count < 2 {
            return None;
        }
        let count = 1 << count.ilog2();
        let (_, runs) = runs_along(self.kernel, index, &ops);
        let narrow = runs.iter().filter(|run| run.stride < WIDEST && WIDEST.is_multiple_of(run.stride));
        let points = narrow.map(|run| (WIDEST / run.stride) as usize).max().unwrap_or(1).min(count);
        let mut aligned: Vec<_> = runs.iter().map(|run| run.param).collect();
        aligned.sort_unstable();
        aligned.dedup();
        let points = if self.body == self.kernel.body { points as u32 } else { 1 };
        Some(Unrolling { points, aligned, count })
    }

    /// A loop over iterations, or over groups of so many points. Gives what it carries in the end.
    fn counted_loop(
        &mut self,
        op: Op,
        (lo, hi): (Val, Val),
        (unrolling, points): (&Unrolling, u32),
        initial: &[Val],
    ) -> Vec<Val> {
        let data = &self.kernel.ops[op];
        let range = self.counted_range(data.operands[0], data.operands[1]);
        let (head, inside, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let before = self.f.block();
        self.f.jump(head);

        self.f.begin(head);
        let counter = self.f.phi(COUNTER);
        let phis: Vec<Phi> = initial.iter().map(|value| self.f.phi(value.ty())).collect();
        let carried: Vec<_> = phis.iter().map(|phi| phi.value).collect();
        let more = self.compare("slt", counter.value, hi);
        self.f.branch(more, inside, done);

        self.f.begin(inside);
        let body = data.regions[0];
        let params = &self.kernel.regions[body].params;
        let (&index, accumulators) = params.split_first().expect("a loop's body has an index");
        let mut next = carried.clone();
        let outer = self.group.clone();
        for lane in 0..points {
            let exact = match lane {
                0 => counter.value,
                _ => self.binary("add nsw", counter.value, Val::i64(lane.into())),
            };
            self.place_counter(index, exact, range);
            for (&accumulator, &value) in accumulators.iter().zip(&next) {
                self.set(accumulator, value);
            }
            if points > 1 {
                // What is aligned around the loop is aligned in it, too.
                let around = outer.iter().flat_map(|group| &group.aligned);
                let aligned = unrolling.aligned.iter().chain(around).copied().collect();
                self.group = Some(Group { axis: index, lane, points, aligned });
            }
            next = self.region(body);
        }
        self.group = outer;
        let stepped = self.binary("add nsw", counter.value, Val::i64(points.into()));
        let latch = self.f.block();
        // What is left of a loop whose iterations are grouped is short.
        let count = if points < unrolling.points { 1 } else { unrolling.count / points as usize };
        let facts = [self.unrolled(count)];
        self.back_edge(head, &facts);
        self.f.fill(counter, &[(lo, before), (stepped, latch)]);
        self.fill_phis(&phis, initial, before, &next, latch);

        self.f.begin(done);
        carried
    }

    /// Of a `while` whose iterations are short: each keeps its test, but what only counts iterations is tested once for all that are
    /// unrolled. A step of a Julia set has 8.3 instructions then, and 10 otherwise. One that looks at what other threads do waits for memory in
    /// each iteration: it is not unrolled.
    pub(super) fn unrolled_while(&mut self, op: Op) -> Option<Node> {
        let kernel = self.kernel;
        let ops: Vec<_> = kernel.ops[op].regions.iter().flat_map(|&region| ops_in(kernel, region)).collect();
        let meets = |kind: &OpKind| {
            kind.effects().contains(Effects::MAY_WAIT) && kind.info().cell != CellUse::Nothing
        };
        if ops.iter().any(|&op| meets(&kernel.ops[op].kind)) {
            return Some(self.module.not_unrolled());
        }
        let long = ops.iter().any(|&op| is_long(&kernel.ops[op].kind));
        (!long && weight(kernel, &ops) <= MOST_WHILE_OPS).then(|| self.unrolled(WHILE_UNROLLED))
    }

    /// Of a loop: LLVM unrolls it so many times.
    fn unrolled(&mut self, count: usize) -> Node {
        match count {
            1 => self.module.not_unrolled(),
            _ => self.module.node(format!("!{{!\"llvm.loop.unroll.count\", i32 {count}}}")),
        }
    }
}
