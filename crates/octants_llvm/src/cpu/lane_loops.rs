//! Loops over the lanes of a block: several lanes at once, if all ops of the loop have a form for vectors and gain by it.
//!
//! LLVM vectorises innermost loops, as far as it sees that iterations do not depend on each other. Lanes do not, whatever stands between two places where they meet; and as they begin
//! at a multiple of how many run at once, what they count of their numbers is known ([`offsets`](crate::lanes::offsets)).

use octants_ir::rewrite::{ops_in, regions_in};
use octants_ir::{Kernel, Op, OpKind, Region, Scalar, SideTable, Type, Value};

use crate::counter::{Counter, Index};
use crate::cpu::widen::{BodySummary, has_vector_forms};
use crate::emitter::Emitter;
use crate::lanes::offsets::{LaneValues, ZERO};
use crate::options::CpuOptions;
use crate::value::{Ty, Val};

/// Lanes in which it is found out which values they count, before it is known how many run at once. Chosen, not measured: vectors of 512 bits have as many singles.
const FEW_LANES: u32 = 16;

/// How the lanes of a block run at once.
struct LaneWidening {
    trips: u32,
    values: LaneValues,
    /// What masks are held in.
    mask: Scalar,
}

/// Whether a region names variables or tapes from around it, which scalar code has.
fn names_outer_variables(kernel: &Kernel, body: Region) -> bool {
    let mut inside = SideTable::new(false);
    for region in regions_in(kernel, body) {
        for &op in &kernel.regions[region].ops {
            kernel.ops[op].results.iter().for_each(|&result| inside.set(result, true));
        }
    }
    let is_outer =
        |&value: &Value| matches!(kernel.ty(value), Type::Local(_) | Type::Tape(_)) && !inside[value];
    ops_in(kernel, body).into_iter().any(|op| kernel.ops[op].operands.iter().any(is_outer))
}

impl Emitter<'_> {
    /// `None` leaves the loop to LLVM.
    fn lane_widening(&self, op: Op, options: CpuOptions) -> Option<LaneWidening> {
        let (kernel, apart) = (self.kernel, self.options.noalias);
        let data = &kernel.ops[op];
        let (body, begins) = (data.regions[0], kernel.as_const(data.operands[0])?.is_zero());
        let trips = u32::try_from(kernel.constant_trips(op)?).ok().filter(|&trips| begins && trips > 1)?;
        if !has_vector_forms(kernel, body) || names_outer_variables(kernel, body) {
            return None;
        }
        let values = |lanes: u32| {
            let multiple = if trips <= lanes { ZERO } else { lanes.into() };
            LaneValues::of(kernel, body, (lanes, multiple), &|value| self.is_never_negative(value))
        };
        // What is counted takes no part in how many lanes a vector has.
        let all = trips.next_power_of_two();
        let few = values(all.min(FEW_LANES));
        let most = BodySummary::of_block(kernel, body, &few, apart).lanes_of_block(options)?.min(all);
        let choices = match options.force_lanes {
            Some(lanes) => vec![lanes],
            None => std::iter::successors(Some(most), |lanes| Some(lanes / 2))
                .take_while(|&lanes| lanes >= most.min(FEW_LANES))
                .collect(),
        };
        // Few accesses that lie apart, no lanes left over, many lanes.
        let mut best: Option<((u32, bool), LaneWidening)> = None;
        for lanes in choices {
            let values = values(lanes);
            let summary = BodySummary::of_block(kernel, body, &values, apart);
            let cost = (summary.loss(), !trips.is_multiple_of(lanes));
            let gains = options.force_lanes.is_some() || summary.block_gains();
            let mask = summary.mask(options);
            if gains && best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, LaneWidening { trips, values, mask }));
            }
        }
        best.map(|(_, widening)| widening)
    }

    /// A loop over the lanes of a block, several at once; or nothing is emitted.
    pub(super) fn lane_loop(&mut self, op: Op, options: CpuOptions) -> bool {
        if self.kernel.ops[op].kind != OpKind::ForLanes {
            return false;
        }
        let data = &self.kernel.ops[op];
        let range = self.counted_range(data.operands[0], data.operands[1]);
        let number = self.kernel.regions[data.regions[0]].params[0];
        self.counters.set(number, Some(Counter { index: Index::uniform(Val::i64(0)), range }));
        let Some(widening) = self.lane_widening(op, options) else { return false };
        let (trips, lanes) = (widening.trips, widening.values.lanes);
        let around = self.lanes.enter_block(widening.values, widening.mask);
        let whole = trips - trips % lanes;
        if whole > lanes {
            self.lane_rows(op, whole);
        } else if whole > 0 {
            self.lanes_from(op, Val::i64(0), None);
        }
        if whole < trips {
            self.lanes_from(op, Val::i64(whole.into()), Some(trips));
        }
        self.lanes.leave_block(around);
        true
    }

    /// So many lanes, a multiple of those that run at once.
    fn lane_rows(&mut self, op: Op, end: u32) {
        let lanes = self.lanes.count;
        let (head, done) = (self.f.new_label(), self.f.new_label());
        let before = self.f.block();
        self.f.jump(head);
        self.f.begin(head);
        let counter = self.f.phi(Ty::new(Scalar::I64, 1));
        self.lanes_from(op, counter.value, None);
        if self.polls(op) {
            self.poll_cancel();
        }
        let next = self.binary("add nuw nsw", counter.value, Val::i64(lanes.into()));
        let again = self.compare("ult", next, Val::i64(end.into()));
        let latch = self.f.block();
        let vectorised = self.module.node("!{!\"llvm.loop.isvectorized\", i32 1}".to_owned());
        let whole = self.module.not_unrolled();
        let facts = self.module.distinct_node(&[vectorised, whole]);
        self.f.terminate(format_args!("br i1 {again}, label %{head}, label %{done}, !llvm.loop {facts}"));
        self.f.fill(counter, &[(Val::i64(0), before), (next, latch)]);
        self.f.begin(done);
    }

    /// The lanes from one on; only those before the end, if one is given.
    fn lanes_from(&mut self, op: Op, first: Val, end: Option<u32>) {
        let data = &self.kernel.ops[op];
        let body = data.regions[0];
        let number = self.kernel.regions[body].params[0];
        let range = self.counted_range(data.operands[0], data.operands[1]);
        self.counters.set(number, Some(Counter { index: Index::Linear { base: first, stride: 1 }, range }));
        let narrow = self.resize(first, self.scalar(number));
        self.set_counted(number, narrow);
        let before = end.map(|end| self.lanes_before(first, Val::i64(end.into())));
        (self.lanes.columns, self.lanes.mask) = before.unzip();
        self.region(body);
        (self.lanes.columns, self.lanes.mask) = (None, None);
    }
}
