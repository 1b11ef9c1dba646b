//! Checks that lanes that meet come to the same place.
//!
//! Control flow with a meeting inside asks one lane. With `debug` all are asked: where some of them go to a meeting and others do not, the launch fails with the
//! words of the interpreter, at the meeting. It fails, too, if the meeting stands further in, in an inner branch or a loop, and nobody may come to it: as one
//! lane is asked, the others would go the wrong way.

use octants_ir::ops::{ArithOp, AssertKind, BitOp, BitUnary, CompareOp, Scope};
use octants_ir::rewrite::ops_in;
use octants_ir::{Const, Kernel, Op, OpKind, Region, Scalar, Type, Value};

use super::build::{Lane, LaneLoops, Lanes};

impl LaneLoops<'_> {
    /// Lanes take the side where this holds.
    pub(super) fn check_branch(&mut self, region: Region, op: Op, lanes: Lanes) {
        let data = self.kernel.ops[op].clone();
        let condition = data.operands[0];
        if !self.may_differ(condition) {
            return;
        }
        for (&side, wanted) in data.regions.iter().zip([true, false]) {
            let Some(meeting) = Meeting::first(self.kernel, &[side], lanes.scope) else { continue };
            self.check_all_go(region, meeting, lanes, |this, lane| {
                let holds = this.value(condition, lane);
                if wanted { holds } else { this.at(lane.region).bit_unary(BitUnary::Not, holds) }
            });
        }
    }

    /// Lanes go on with a loop where this holds.
    pub(super) fn check_round(&mut self, region: Region, op: Op, goes_on: Value, lanes: Lanes) {
        let regions = &self.kernel.ops[op].regions;
        // The body comes next, then the condition again.
        let order: Vec<_> = regions.iter().rev().copied().collect();
        let Some(meeting) = Meeting::first(self.kernel, &order, lanes.scope) else { return };
        if self.may_differ(goes_on) {
            self.check_all_go(region, meeting, lanes, |this, lane| this.value(goes_on, lane));
        }
    }

    /// Lanes have as many rounds.
    pub(super) fn check_rounds(&mut self, region: Region, op: Op, lanes: Lanes) {
        let data = self.kernel.ops[op].clone();
        let (lo, hi) = (data.operands[0], data.operands[1]);
        let Some(meeting) = Meeting::first(self.kernel, &data.regions, lanes.scope) else { return };
        if !self.may_differ(lo) && !self.may_differ(hi) {
            return;
        }
        let most = i128::from(i64::MAX);
        let extremes = [(ArithOp::Min, most), (ArithOp::Max, 0)].map(|(op, initial)| {
            let initial = self.at(region).constant(Const::from_i128(Scalar::I64, initial));
            self.fold_lanes(region, lanes, &[initial], |this, lane, so_far| {
                let rounds = this.rounds(lo, hi, lane);
                vec![this.at(lane.region).arith(op, so_far[0], rounds)]
            })[0]
        });
        let [least, most] = extremes;
        self.check_all_go(region, meeting, lanes, |this, lane| {
            let rounds = this.rounds(lo, hi, lane);
            let mut b = this.at(lane.region);
            let (more, alike) =
                (b.compare(CompareOp::Gt, rounds, least), b.compare(CompareOp::Eq, least, most));
            b.bit(BitOp::Or, more, alike)
        });
    }

    /// How many rounds a lane has.
    fn rounds(&mut self, lo: Value, hi: Value, lane: &mut Lane) -> Value {
        let [lo, hi] = [lo, hi].map(|bound| self.value(bound, lane));
        let mut b = self.at(lane.region);
        let runs = b.compare(CompareOp::Lt, lo, hi);
        let [lo, hi] = [lo, hi].map(|bound| b.cast(bound, Scalar::I64));
        let (rounds, none) = (b.arith(ArithOp::Sub, hi, lo), b.constant(Const::from_i128(Scalar::I64, 0)));
        b.select(runs, rounds, none)
    }

    /// Whether a value may be another one for other lanes.
    pub(super) fn may_differ(&self, value: Value) -> bool {
        let is_own = self.values.is_own(value) || self.is_index(value);
        is_own && !self.is_uniform(value) && self.kernel.as_const(value).is_none()
    }

    /// If a lane goes to the meeting, all do.
    fn check_all_go(
        &mut self,
        region: Region,
        meeting: Meeting,
        lanes: Lanes,
        mut goes: impl FnMut(&mut Self, &mut Lane) -> Value,
    ) {
        let (_, end) = self.range(region, lanes);
        let mut b = self.at(region);
        let none = b.constant(Const::from_bits(Scalar::U1, 0));
        let found = self.fold_lanes(region, lanes, &[none, end], |this, lane, so_far| {
            let goes = goes(this, lane);
            let number = lane.number;
            let mut b = this.at(lane.region);
            let any = b.bit(BitOp::Or, so_far[0], goes);
            let missing = b.select(goes, end, number);
            vec![any, b.arith(ArithOp::Min, so_far[1], missing)]
        });
        let message = match (self.kernel.ops[meeting.op].kind.barrier_of(), meeting.is_certain) {
            (None, true) => "lanes exchange values, and lane {} of the subgroup is elsewhere",
            (Some(Scope::Subgroup), true) => {
                "a barrier that lane {} of the subgroup never reaches, while others wait for it"
            }
            (Some(_), true) => "a barrier that lane {} of the block never reaches, while others wait for it",
            (None, false) => {
                "threads part at an `if` or a loop where lanes exchange values, and lane {} of the subgroup is elsewhere"
            }
            (Some(Scope::Subgroup), false) => {
                "threads part at an `if` or a loop that has a barrier inside, which lane {} of the subgroup never reaches"
            }
            (Some(_), false) => {
                "threads part at an `if` or a loop that has a barrier inside, which lane {} of the block never reaches"
            }
        };
        let around = std::mem::replace(&mut self.loc, self.kernel.ops[meeting.op].loc);
        let mut b = self.at(region);
        let nobody = b.bit_unary(BitUnary::Not, found[0]);
        let all = b.compare(CompareOp::Eq, found[1], end);
        let holds = b.bit(BitOp::Or, nobody, all);
        b.assert(AssertKind::Condition, holds, message, &[found[1]]);
        self.loc = around;
    }

    /// A loop over the lanes that carries values.
    fn fold_lanes(
        &mut self,
        region: Region,
        lanes: Lanes,
        initial: &[Value],
        step: impl FnOnce(&mut Self, &mut Lane, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let (first, end) = self.range(region, lanes);
        let types: Vec<Type> = initial.iter().map(|&value| self.kernel.ty(value)).collect();
        let inner = self.kernel.add_region();
        let number = self.kernel.add_region_param(inner, Type::I32);
        let so_far: Vec<_> = types.iter().map(|&ty| self.kernel.add_region_param(inner, ty)).collect();
        let operands: Vec<_> = [first, end].iter().chain(initial).copied().collect();
        let op = self.at(region).op(OpKind::For, operands, types, [inner]);
        let mut lane = Lane::new(number, inner);
        let next = step(self, &mut lane, &so_far);
        self.at(inner).yields(&next);
        self.kernel.ops[op].results.to_vec()
    }
}

/// The op of a scope that lanes come to first in some regions.
#[derive(Clone, Copy)]
struct Meeting {
    op: Op,
    /// Whether all lanes come to it that come to the regions.
    is_certain: bool,
}

impl Meeting {
    fn first(kernel: &Kernel, regions: &[Region], scope: Scope) -> Option<Self> {
        let meets = |op: Op| kernel.ops[op].kind.meets() == Some(scope);
        let op = regions.iter().flat_map(|&region| ops_in(kernel, region)).find(|&op| meets(op))?;
        let is_certain = regions.iter().any(|&region| kernel.on_every_path(region, &meets) == Some(op));
        Some(Self { op, is_certain })
    }
}
