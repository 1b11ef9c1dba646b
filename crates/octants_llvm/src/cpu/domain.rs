//! The loops of a range task: a chunk `[lo, hi)` of the flattened iteration space as rows of the last axis.
//!
//! The innermost loop is a plain counted one over neighbouring iterations, so that it vectorises. The chunk's first point is
//! found by division once; the outer indices then count on like an odometer.

use octants_ir::rewrite::ops_in;
use octants_ir::views::ParallelLoop;
use octants_ir::{Const, Op, OpKind, Scalar};

use crate::counter::Counter;
use crate::counter::Index;
use crate::counter::Range;
use crate::cpu::fill::cleared_cells;
use crate::cpu::flat;
use crate::cpu::order::order_is_free;
use crate::cpu::whole_rows;
use crate::cpu::widen::{self, BodySummary, ScalarBody, Widening};
use crate::emitter::Emitter;
use crate::lanes::uniform::varying_values;
use crate::module::Node;
use crate::options::CpuOptions;
use crate::value::{Label, Ty, Typed, Val};
use octants_abi::cpu::Frame;

const COUNTER: Ty = Ty { scalar: Scalar::I64, lanes: 1 };

/// What the row loops need to know.
struct Domain<'k> {
    /// What the index of each axis can be.
    ranges: Vec<Range>,
    parallel: ParallelLoop<'k>,
    /// Iterations do not depend on each other.
    group: Option<Node>,
    /// The extents of the last axes, where several run as one row.
    merged: Vec<u64>,
    /// How several neighbouring iterations run at once.
    widening: Option<Widening>,
    /// An iteration may take long: each one asks for cancellation.
    polls: bool,
    /// What LLVM makes of it where it is not widened.
    scalar: ScalarBody,
    /// The store that is all it does, where rows are zeros in memory.
    clears: Option<Op>,
}

/// Which rows a loop is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    Any,
    /// Those that are as long as the axis, which is unrolled.
    Whole,
}

impl Emitter<'_> {
    /// The whole task of a `parallel_for`. Gives how many iterations run at once, and whether its loops are of straight code that is not to be vectorised.
    pub(super) fn range(&mut self, op: Op, options: CpuOptions) -> (u32, bool) {
        let parallel = self.kernel.parallel_loop(op).unwrap_or_else(|| panic!("{op} is no parallel loop"));
        let mut bounds = self.load_bounds(&parallel);
        let ranges = parallel.bounds().map(|(lo, hi)| self.counted_range(lo, hi)).collect();
        let body = parallel.body;
        let merged = match options.force_lanes {
            Some(_) => Vec::new(),
            None => flat::merged_extents(self.kernel, &parallel),
        };
        let widening = if merged.is_empty() {
            widen::widening(self.kernel, &parallel, options, self.options.noalias)
        } else {
            None
        };
        if !merged.is_empty() {
            let row: u64 = merged.iter().product();
            bounds.truncate(parallel.axes() - merged.len());
            bounds.push((Val::i64(0), Val::i64(row as i64)));
        }
        let independent = !parallel.attributes.keeps_order() && {
            let varying = varying_values(self.kernel, body, parallel.lane_params());
            let summary = BodySummary::new(self.kernel, &varying, parallel.last_index());
            order_is_free(self.kernel, body, &summary, self.options.noalias, merged.is_empty())
        };
        let group = independent.then(|| self.scopes.begin_independent(&mut self.module));
        let polls = self.polls(op);
        let clears = if widening.is_none() && merged.is_empty() && !polls {
            cleared_cells(self.kernel, &parallel)
        } else {
            None
        };
        let scalar = if parallel.attributes.brief || clears.is_some() {
            ScalarBody::Straight
        } else {
            widen::scalar_body(self.kernel, &parallel)
        };
        let calls = || {
            ops_in(self.kernel, body).iter().any(|&op| matches!(self.kernel.ops[op].kind, OpKind::Call(_)))
        };
        self.branches = widening.is_none() && (scalar != ScalarBody::Vectorisable || calls());
        let domain = Domain { ranges, parallel, group, merged, widening, polls, scalar, clears };

        // One accumulator for each lane, until the end.
        let lanes = domain.widening.as_ref().map_or(1, |widening| widening.lanes);
        let initial = self.identities(&parallel);
        let initial: Vec<_> = initial.iter().map(|&identity| self.spread(identity, lanes)).collect();
        let totals = if bounds.len() == 1 {
            let (first, _) = bounds[0];
            let begin = self.f.value(COUNTER, format_args!("add nsw i64 {first}, %lo"));
            let end = self.f.value(COUNTER, format_args!("add nsw i64 {first}, %hi"));
            self.row(&domain, begin, end, &initial)
        } else {
            self.rows(&domain, &bounds, &initial)
        };
        self.scopes.end_independent();
        self.combine_totals(op, &totals);
        let straight = domain.widening.map_or(scalar == ScalarBody::Straight, |widening| widening.straight);
        (lanes, straight)
    }

    /// `lo` and `hi` of each axis of the range that is running: constants where the kernel has them, else what the launch computed.
    fn load_bounds(&mut self, parallel: &ParallelLoop<'_>) -> Vec<(Val, Val)> {
        let bounds = parallel.bound_operands();
        let known: Vec<_> =
            bounds.iter().map(|&bound| self.kernel.as_const(bound).and_then(Const::as_i128)).collect();
        let block = known.contains(&None).then(|| self.load_pointer("%frame", Frame::BOUNDS).to_string());
        let mut bound = |index: usize| match (known[index], &block) {
            (Some(constant), _) => Val::int(Scalar::I64, constant),
            (None, Some(block)) => self.load_entry(block, 8 * index, Scalar::I64),
            (None, None) => unreachable!("the block is there unless all are known"),
        };
        (0..bounds.len()).step_by(2).map(|lo| (bound(lo), bound(lo + 1))).collect()
    }

    /// Several axes: row after row.
    fn rows(&mut self, domain: &Domain<'_>, bounds: &[(Val, Val)], initial: &[Val]) -> Vec<Val> {
        let indices = &domain.parallel.indices()[..bounds.len()];
        let (&(row_lo, row_hi), outer) = bounds.split_last().expect("a domain has an axis");
        let entry = self.f.block();
        let (setup, head, inside, ready, done) = (
            self.f.new_label(),
            self.f.new_label(),
            self.f.new_label(),
            self.f.new_label(),
            self.f.new_label(),
        );
        let any = self.f.value(Ty::new(Scalar::U1, 1), format_args!("icmp slt i64 %lo, %hi"));
        self.f.branch(any, setup, done);

        // Not empty, so no extent is zero.
        self.f.begin(setup);
        let count = self.f.value(COUNTER, format_args!("sub nuw nsw i64 %hi, %lo"));
        let mut rest = None;
        let mut start = Vec::new();
        for &(lo, hi) in bounds[1..].iter().rev() {
            let extent = self.binary("sub nsw", hi, lo);
            let flat = rest.map_or_else(|| "%lo".to_owned(), |v: Val| v.to_string());
            let place = self.f.value(COUNTER, format_args!("urem i64 {flat}, {extent}"));
            rest = Some(self.f.value(COUNTER, format_args!("udiv i64 {flat}, {extent}")));
            start.push(self.binary("add nsw", lo, place));
        }
        start.push(self.binary("add nsw", bounds[0].0, rest.expect("there are several axes")));
        start.reverse();
        let column = start.pop().expect("a domain has an axis");
        self.f.jump(head);

        self.f.begin(head);
        let left = self.f.phi(COUNTER);
        let begin = self.f.phi(COUNTER);
        let at: Vec<_> = start.iter().map(|_| self.f.phi(COUNTER)).collect();
        let totals: Vec<_> = initial.iter().map(|value| self.f.phi(value.ty())).collect();
        let sums = self.begin_partial_sums(&domain.parallel, initial);
        let more = self.compare("ne", left.value, Val::i64(0));
        self.f.branch(more, inside, ready);

        self.f.begin(inside);
        for ((&index, phi), &range) in indices.iter().zip(&at).zip(&domain.ranges) {
            let narrow = self.resize(phi.value, self.scalar(index));
            self.set(index, narrow);
            self.counters.set(index, Some(Counter { index: Index::uniform(phi.value), range }));
        }
        let room = self.binary("sub nsw", row_hi, begin.value);
        let length = self.intrinsic("llvm.umin", &[left.value, room], "");
        let end = self.binary("add nsw", begin.value, length);
        let held: Vec<_> = totals.iter().map(|phi| phi.value).collect();
        let summed = match self.unrolled_row(domain, row_lo, row_hi) {
            Some(extent) => {
                let whole = self.compare("eq", length, Val::i64(extent));
                self.whole_or_part(domain, whole, (row_lo, row_hi), (begin.value, end), &held)
            }
            None => self.row(domain, begin.value, end, &held),
        };
        let (summed, added) = self.add_partial_sums(sums.as_ref(), initial, &summed, length);

        let left_over = self.binary("sub nuw nsw", left.value, length);
        // The next row: the last outer index counts on, and each that is full starts over and moves the one before it.
        let mut carry = None;
        let mut next = Vec::new();
        for (phi, &(lo, hi)) in at.iter().zip(outer).rev() {
            let stepped = self.binary("add nsw", phi.value, Val::i64(1));
            let moved = match carry {
                Some(carry) => self.select(carry, stepped, phi.value),
                None => stepped,
            };
            let full = self.compare("eq", moved, hi);
            next.push(self.select(full, lo, moved));
            carry = Some(full);
        }
        next.reverse();
        let latch = self.f.block();
        // LLVM would peel the first row, which alone may begin inside: everything in the loop would be there twice.
        let whole = self.module.not_unrolled();
        self.back_edge(head, &[whole]);
        self.f.fill(left, &[(count, setup), (left_over, latch)]);
        self.f.fill(begin, &[(column, setup), (row_lo, latch)]);
        for (axis, &phi) in at.iter().enumerate() {
            self.f.fill(phi, &[(start[axis], setup), (next[axis], latch)]);
        }
        self.fill_phis(&totals, initial, setup, &summed, latch);
        if let (Some(sums), Some(added)) = (&sums, added) {
            self.fill_partial_sums(sums, initial, setup, &added, latch);
        }

        self.f.begin(ready);
        let held = self.whole_sums(sums.as_ref(), &held);
        self.f.jump(done);
        self.f.begin(done);
        let incoming = initial.iter().zip(&held);
        incoming.map(|(&none, &some)| self.f.join(none.ty(), &[(none, entry), (some, ready)])).collect()
    }

    /// The length of rows that are unrolled where they are whole.
    fn unrolled_row(&self, domain: &Domain<'_>, lo: Val, hi: Val) -> Option<i64> {
        let extent = hi.as_int()? - lo.as_int()?;
        let scalar = domain.widening.is_none() && domain.merged.is_empty() && !domain.polls;
        let unrolls = scalar
            && domain.scalar != ScalarBody::Straight
            && whole_rows::unrolls(self.kernel, &domain.parallel, extent);
        unrolls.then(|| i64::try_from(extent).ok()).flatten()
    }

    /// A row that is unrolled if it is whole, else a part of one.
    fn whole_or_part(
        &mut self,
        domain: &Domain<'_>,
        is_whole: Val,
        (lo, hi): (Val, Val),
        (begin, end): (Val, Val),
        totals: &[Val],
    ) -> Vec<Val> {
        let (whole, part, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        self.f.branch(is_whole, whole, part);
        self.f.begin(whole);
        let of_whole = self.scalar_row(domain, (lo, hi), totals, Rows::Whole);
        let after_whole = self.f.block();
        self.f.jump(done);
        self.f.begin(part);
        let of_part = self.row(domain, begin, end, totals);
        let after_part = self.f.block();
        self.f.jump(done);
        self.f.begin(done);
        let incoming = of_whole.iter().zip(&of_part);
        incoming.map(|(&a, &b)| self.f.join(a.ty(), &[(a, after_whole), (b, after_part)])).collect()
    }

    /// One row. Gives the accumulators.
    fn row(&mut self, domain: &Domain<'_>, begin: Val, end: Val, totals: &[Val]) -> Vec<Val> {
        let Some(widening) = &domain.widening else {
            return self.scalar_row(domain, (begin, end), totals, Rows::Any);
        };
        if widening.scalar_below == 0 {
            return self.wide_part(domain, widening, (begin, end), totals);
        }
        // What is left behind whole vectors runs as one more, unless there is so little of it that scalar code is over sooner.
        let length = self.binary("sub nsw", end, begin);
        let rest = self.binary("and", length, Val::i64(i64::from(widening.lanes) - 1));
        let few = self.compare("ult", rest, Val::i64(widening.scalar_below.into()));
        let before_rest = self.binary("sub nsw", end, rest);
        let middle = self.select(few, before_rest, end);
        let totals = self.wide_part(domain, widening, (begin, middle), totals);
        let first: Vec<_> = totals.iter().map(|&total| self.lane(total, 0)).collect();
        let first = self.scalar_row(domain, (middle, end), &first, Rows::Any);
        totals.iter().zip(&first).map(|(&total, &first)| self.with_first_lane(total, first)).collect()
    }

    /// A vector with another value in its first lane.
    fn with_first_lane(&mut self, v: Val, first: Val) -> Val {
        self.f.value(v.ty(), format_args!("insertelement {}, {}, i64 0", Typed(v), Typed(first)))
    }

    /// A row, or part of one, in vectors. Gives the accumulators.
    fn wide_part(
        &mut self,
        domain: &Domain<'_>,
        widening: &Widening,
        (begin, end): (Val, Val),
        totals: &[Val],
    ) -> Vec<Val> {
        self.lanes.varying = widening.varying.clone();
        if !widening.unmasked_body {
            return self.wide_row(domain, widening, (begin, end), totals, true);
        }
        // Whole vectors, then what is left under a mask.
        let length = self.binary("sub nsw", end, begin);
        let whole = self.binary("and", length, Val::i64(-i64::from(widening.lanes)));
        let middle = self.binary("add nsw", begin, whole);
        let totals = self.wide_row(domain, widening, (begin, middle), totals, false);
        let (inside, done) = (self.f.new_label(), self.f.new_label());
        let rest = self.compare("slt", middle, end);
        let before = self.f.block();
        self.f.branch(rest, inside, done);
        self.f.begin(inside);
        let next = if widening.rest_lanes < widening.lanes {
            let one_vector = Widening { lanes: widening.rest_lanes, ..widening.clone() };
            self.wide_row(domain, &one_vector, (middle, end), &totals, true)
        } else {
            self.wide_body(domain, widening, middle, Some(end), &totals)
        };
        let after = self.f.block();
        self.f.jump(done);
        self.f.begin(done);
        let incoming = totals.iter().zip(&next);
        incoming.map(|(&none, &some)| self.f.join(none.ty(), &[(none, before), (some, after)])).collect()
    }

    fn scalar_row(&mut self, domain: &Domain<'_>, range: (Val, Val), totals: &[Val], rows: Rows) -> Vec<Val> {
        if let Some(store) = domain.clears {
            self.cleared_row(&domain.parallel, store, range, domain.ranges[domain.parallel.axes() - 1]);
            return Vec::new();
        }
        let (axes, accumulators) = (domain.parallel.indices(), domain.parallel.accumulators());
        self.row_loop(domain, range, (1, rows), totals, |e, counter, held| {
            if domain.merged.is_empty() {
                let index = axes[axes.len() - 1];
                let narrow = e.resize(counter, e.scalar(index));
                e.set(index, narrow);
                let range = domain.ranges[axes.len() - 1];
                e.counters.set(index, Some(Counter { index: Index::uniform(counter), range }));
            } else {
                e.split_counter(&axes[axes.len() - domain.merged.len()..], &domain.merged, counter);
            }
            for (&accumulator, &total) in accumulators.iter().zip(held) {
                e.set(accumulator, total);
            }
            e.region(domain.parallel.body)
        })
    }

    /// A loop over part of a row, by steps of so many iterations. The body is given the counter and the accumulators, and gives the next ones.
    fn row_loop(
        &mut self,
        domain: &Domain<'_>,
        (begin, end): (Val, Val),
        (step, rows): (u32, Rows),
        totals: &[Val],
        body: impl FnOnce(&mut Self, Val, &[Val]) -> Vec<Val>,
    ) -> Vec<Val> {
        let (head, inside, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let before = self.f.block();
        self.f.jump(head);

        self.f.begin(head);
        let counter = self.f.phi(COUNTER);
        let phis: Vec<_> = totals.iter().map(|value| self.f.phi(value.ty())).collect();
        let held: Vec<_> = phis.iter().map(|phi| phi.value).collect();
        let more = self.compare("slt", counter.value, end);
        self.f.branch(more, inside, done);

        self.f.begin(inside);
        let next = body(self, counter.value, &held);
        if domain.polls {
            self.poll_between_iterations();
        }
        let stepped = self.binary("add nsw", counter.value, Val::i64(step.into()));
        let latch = self.f.block();
        self.close_loop(domain, rows, head);
        self.f.fill(counter, &[(begin, before), (stepped, latch)]);
        self.fill_phis(&phis, totals, before, &next, latch);

        self.f.begin(done);
        held
    }

    /// A row, or part of one, several iterations at a time; the last ones under a mask if there may be fewer.
    fn wide_row(
        &mut self,
        domain: &Domain<'_>,
        widening: &Widening,
        (begin, end): (Val, Val),
        totals: &[Val],
        masked: bool,
    ) -> Vec<Val> {
        self.row_loop(domain, (begin, end), (widening.lanes, Rows::Any), totals, |e, counter, held| {
            e.wide_body(domain, widening, counter, masked.then_some(end), held)
        })
    }

    /// The body for as many iterations as there are lanes; only those before the end, if one is given. Gives the next
    /// accumulators.
    fn wide_body(
        &mut self,
        domain: &Domain<'_>,
        widening: &Widening,
        counter: Val,
        end: Option<Val>,
        totals: &[Val],
    ) -> Vec<Val> {
        let index = domain.parallel.last_index();
        (self.lanes.count, self.lanes.mask_scalar) = (widening.lanes, widening.mask);
        let narrow = self.resize(counter, self.scalar(index));
        let first = self.spread(narrow, self.lanes.count);
        let indices = self.binary("add", first, Val::lane_ids(narrow.ty, self.lanes.count));
        self.set(index, indices);
        let range = domain.ranges[domain.parallel.axes() - 1];
        self.counters.set(index, Some(Counter { index: Index::Linear { base: counter, stride: 1 }, range }));
        for (&accumulator, &total) in domain.parallel.accumulators().iter().zip(totals) {
            self.set(accumulator, total);
        }
        let before = end.map(|end| self.lanes_before(counter, end));
        (self.lanes.columns, self.lanes.mask) = before.unzip();
        let yielded = self.region(domain.parallel.body);
        let next = yielded
            .iter()
            .zip(totals)
            .map(|(&value, &total)| match self.lanes.mask {
                Some(mask) => self.choose(mask, value, total),
                None => self.spread(value, self.lanes.count),
            })
            .collect();
        (self.lanes.count, self.lanes.mask, self.lanes.columns) = (1, None, None);
        next
    }

    /// How many lanes have iterations that come before the end, and which these are.
    pub(super) fn lanes_before(&mut self, counter: Val, end: Val) -> (Val, Val) {
        let left = self.binary("sub nsw", end, counter);
        let count = self.intrinsic("llvm.umin", &[left, Val::i64(self.lanes.count.into())], "");
        let narrow = self.resize(count, Scalar::U32);
        let before = self.compare("ult", Val::lane_ids(Scalar::U32, self.lanes.count), narrow);
        (count, self.as_mask(before))
    }

    /// The back edge of a row's loop. A widened one is left as it is.
    fn close_loop(&mut self, domain: &Domain<'_>, rows: Rows, head: Label) {
        let mut facts = Vec::new();
        if rows == Rows::Whole {
            facts.push(self.module.node("!{!\"llvm.loop.unroll.full\"}".to_owned()));
            return self.back_edge(head, &facts);
        }
        if let Some(group) = domain.group {
            facts.push(self.module.node(format!("!{{!\"llvm.loop.parallel_accesses\", {group}}}")));
        }
        if domain.widening.is_some() {
            facts.push(self.module.node("!{!\"llvm.loop.isvectorized\", i32 1}".to_owned()));
            facts.push(self.module.not_unrolled());
        } else if domain.scalar != ScalarBody::Vectorisable {
            let off = "!{!\"llvm.loop.vectorize.enable\", i1 false}".to_owned();
            facts.push(self.module.node(off));
        }
        self.back_edge(head, &facts);
    }

    /// Jumps back to the head of a loop of which these facts hold.
    pub(crate) fn back_edge(&mut self, head: Label, facts: &[Node]) {
        if facts.is_empty() {
            return self.f.jump(head);
        }
        let node = self.module.distinct_node(facts);
        self.f.terminate(format_args!("br label %{head}, !llvm.loop {node}"));
    }
}
