//! Sums of a warp's lanes that go to the same cells: added up first, so that memory sees one update for all of them.
//!
//! Updates of one cell wait for each other in the cache: 32 lanes that add to one take as long as 32 warps that add to neighbouring ones.
//! Where the cell is computed or loaded (rows of a sparse matrix, particles in the order of their cells) nobody knows while compiling, so
//! each warp looks:
//!
//! ```text
//! head = lane is 0, or the lane before adds to another cell;  heads = ballot(head)
//! if there are few heads:
//!     left = lanes from here to the next head
//!     for d in 1, 2, 4, 8, 16:  value += value of lane + d, if d < left
//!     lanes that are no head are done
//! update
//! ```
//!
//! On an H200, with 2²⁴ sums of `x[k[i]] += v[i]`: 114 to 44 µs where the lanes of a warp share a cell, 29 to 0.9 ms where all do, 352 to
//! 43 µs where 4096 neighbours do; and 1 to 5 % slower where few lanes share one, or none do.
//!
//! **A warp is convergent here**: all of its lanes come, or none. The body's own ops alone are written so, for warps all of whose lanes have all of their points, and only if no op
//! of the body can end a thread. What a thread decides for itself before (whether it has a row, a second row, a column) is voted on where all lanes
//! still come, and the exchange is written under that vote.
//!
//! All lanes run a loop of the body *in step* whose bounds are the same for all of them. What they add there to a cell that does not depend on the point, of an
//! array that the body does nothing else with, is added up without a look: gradients of forces between all bodies, where each point adds to every other one.
//!
//! ```text
//! for d in 16, 8, 4, 2, 1:  value += value of lane + d
//! lane 0: update
//! ```

use std::cell::OnceCell;
use std::rc::Rc;

use octants_ir::ops::AtomicOp;
use octants_ir::rewrite::{ops_in, walk};
use octants_ir::{
    Boundary, Const, Data, Kernel, Op, OpKind, Region, Scalar, SideTable, Type, Value, ValueDef,
};

use super::choose::Tiling;
use super::instructions::word;
use super::registers::Register;
use super::runs::{entry, run_along};
use crate::address::elem_of;
use crate::alias::Class;
use crate::emitter::Emitter;
use crate::iterations::{Sharing, WholeWarp};
use crate::value::{Label, Ptr, Ty, Val};

/// Cells of a warp, at most, for which adding up pays.
const MOST_CELLS: u32 = 8;
/// Updates that are written so, at most, with all points of a thread. Chosen, not measured: each takes about 40 instructions.
const MOST_UPDATES: usize = 16;
/// Ops one behind the other that compute an index or a bound, at most. Chosen, not measured: a bound on the time.
const MOST_INDEX_OPS: u32 = 8;

impl Emitter<'_> {
    /// Which lanes share the cells of the updates of a body and of its loops in step; `None` if no update is written so.
    pub(super) fn shared_updates(
        &self,
        (body, axis): (Region, Value),
        tiling: Tiling,
    ) -> Option<Rc<SideTable<Op, Sharing>>> {
        let kernel = self.kernel;
        if !tiling.block.is_multiple_of(self.vendor().lanes) {
            return None;
        }
        let own: Vec<_> =
            kernel.regions[body].ops.iter().copied().filter(|&op| self.is_scattered(axis, op)).collect();
        let in_step = InStep::of(kernel, body);
        let ops_in_step = in_step.loops.iter().flat_map(|&region| &kernel.regions[region].ops);
        let shared: Vec<_> = ops_in_step.copied().filter(|&op| self.is_shared_by_all(&in_step, op)).collect();
        let are_few = |updates: &[Op]| {
            (1..=MOST_UPDATES).contains(&(updates.len() * (tiling.columns() * tiling.rows) as usize))
        };
        let ends = |op: &Op| kernel.ops[*op].kind.may_stop_thread();
        if !are_few(&own) && !are_few(&shared) || ops_in(kernel, body).iter().any(ends) {
            return None;
        }
        let mut sharing = SideTable::new(Sharing::Unknown);
        own.iter().filter(|_| are_few(&own)).for_each(|&op| sharing.set(op, Sharing::Some));
        for &op in &shared {
            sharing.set(op, Sharing::All);
        }
        Some(Rc::new(sharing))
    }

    /// Asks, where all lanes of a warp come, whether all of them have their points.
    pub(super) fn whole_warp(
        &mut self,
        sharing: Rc<SideTable<Op, Sharing>>,
        inside: Option<Val>,
    ) -> WholeWarp {
        let whole = match inside {
            None => Val::constant(Const::bool(true)),
            Some(inside) => {
                let vendor = self.vendor();
                self.value_of(&vendor.all, Scalar::U1, &[inside])
            }
        };
        WholeWarp { sharing, whole }
    }

    /// Whether an op of the body adds to a cell that lanes may share, and nobody asks for what it held.
    fn is_scattered(&self, axis: Value, op: Op) -> bool {
        // What runs along the axis is a cell for each lane.
        self.sum_path(op).is_some_and(|path| run_along(self.kernel, axis, path).is_none())
    }

    /// Whether an op of a loop in step adds to one cell for all lanes, and nobody asks for what it held.
    fn is_shared_by_all(&self, in_step: &InStep, op: Op) -> bool {
        let kernel = self.kernel;
        let Some((array, indices)) = self.sum_path(op).and_then(<[Value]>::split_first) else { return false };
        self.options.noalias
            && indices.iter().all(|&index| in_step.is_uniform(kernel, index, MOST_INDEX_OPS))
            // A thread that reads the array sees what it has added itself.
            && !in_step.reads(self)[*array]
    }

    /// The cell of an op that adds to an array, if lanes can add up what it adds.
    fn sum_path(&self, op: Op) -> Option<&[Value]> {
        let kernel = self.kernel;
        let data = &kernel.ops[op];
        let OpKind::Atomic(AtomicOp::Add | AtomicOp::Sub) = data.kind else { return None };
        let path = &data.operands[..data.operands.len() - 1];
        let (Some(param), Type::Array(array)) = (kernel.as_param(path[0]), kernel.ty(path[0])) else {
            return None;
        };
        let is_global = !matches!(self.array_class(param), Class::Shared(_) | Class::Unknown);
        if !is_global || matches!(array.elem, Data::Struct(_)) || array.boundary == Boundary::Clamp {
            return None;
        }
        let known = entry(kernel, array.elem, &path[1 + usize::from(array.rank)..]).is_some();
        let is_added = matches!(elem_of(array.elem).bytes(), 4 | 8);
        (known && is_added && !self.facts.used[data.results[0]]).then_some(path)
    }

    /// The updates among ops of the body, or of a loop in step, that lanes share.
    pub(super) fn scattered_sums(&self, ops: &[Op]) -> Vec<Op> {
        ops.iter().copied().filter(|&op| self.sharing(op) != Sharing::Unknown).collect()
    }

    /// Which lanes share the cells of an update.
    pub(super) fn sharing(&self, op: Op) -> Sharing {
        self.warp.as_ref().map_or(Sharing::Unknown, |warp| warp.sharing[op])
    }

    /// Runs an update of cells that all lanes of a whole warp share, with what they add together.
    pub(super) fn add_for_all_lanes(&mut self, values: &[Val], update: impl FnOnce(&mut Self, &[Val])) {
        let Some(whole) = self.warp.as_ref().map(|warp| warp.whole) else { return update(self, values) };
        let (sum, plain, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let mut incoming: Vec<(Vec<Val>, Label)> = Vec::new();
        if whole.as_const().is_some() {
            self.f.jump(sum);
        } else {
            incoming.push((values.to_vec(), self.f.block()));
            self.f.branch(whole, sum, plain);
        }

        self.f.begin(sum);
        let mut totals = values.to_vec();
        let all = self.vendor().all_lanes();
        let mut distance = self.vendor().lanes / 2;
        while distance > 0 {
            for total in &mut totals {
                let other = self.shuffle_down(*total, all, word(distance));
                *total = self.combine(AtomicOp::Add, *total, other);
            }
            distance /= 2;
        }
        let thread = self.register(Register::Thread);
        let lane = self.lane_of(thread);
        let is_first = self.compare("eq", lane, word(0));
        incoming.push((totals, self.f.block()));
        self.f.branch(is_first, plain, done);

        self.f.begin(plain);
        let values = self.joined(values, &incoming);
        update(self, &values);
        self.f.jump(done);
        self.f.begin(done);
    }

    /// Values by where control comes from.
    fn joined(&mut self, values: &[Val], incoming: &[(Vec<Val>, Label)]) -> Vec<Val> {
        let joined = (0..values.len()).map(|number| {
            let from: Vec<_> = incoming.iter().map(|(values, block)| (values[number], *block)).collect();
            self.f.join(values[number].ty(), &from)
        });
        joined.collect()
    }

    /// Runs an update of cells from this one on, with what the lanes that share them add together.
    pub(super) fn add_for_warp(&mut self, cell: Ptr, values: &[Val], update: impl FnOnce(&mut Self, &[Val])) {
        let Some(whole) = self.warp.as_ref().map(|warp| warp.whole) else { return update(self, values) };
        let (look, sum, plain, done) =
            (self.f.new_label(), self.f.new_label(), self.f.new_label(), self.f.new_label());
        let mut incoming: Vec<(Vec<Val>, Label)> = Vec::new();
        if whole.as_const().is_some() {
            self.f.jump(look);
        } else {
            incoming.push((values.to_vec(), self.f.block()));
            self.f.branch(whole, look, plain);
        }

        self.f.begin(look);
        let thread = self.register(Register::Thread);
        let lane = self.lane_of(thread);
        let is_first = self.compare("eq", lane, word(0));
        let bits = self.f.value(Ty::new(Scalar::U64, 1), format_args!("ptrtoint ptr {cell} to i64"));
        let low = self.resize(bits, Scalar::U32);
        let is_head = self.differs_from_lane_before(low, is_first);
        let heads = self.ballot(is_head);
        let count = self.intrinsic("llvm.ctpop", &[heads], "");
        let few = self.compare("ule", count, Val::int(count.ty, MOST_CELLS.into()));
        incoming.push((values.to_vec(), self.f.block()));
        self.f.branch(few, sum, plain);

        self.f.begin(sum);
        // Cells that differ by a multiple of 4 GiB look alike so far.
        let high = self.binary("lshr", bits, Val::int(Scalar::U64, 32));
        let high = self.resize(high, Scalar::U32);
        let is_head = self.differs_from_lane_before(high, is_head);
        let heads = self.ballot(is_head);
        // All lanes but the first, moved to where this lane is the first.
        let others = Val::int(heads.ty, (u64::MAX >> (64 - self.vendor().lanes) ^ 1).into());
        let places = self.resize(lane, heads.ty);
        let behind = self.binary("shl", others, places);
        let behind = self.binary("and", heads, behind);
        let next = self.trailing_zeros(behind);
        let next = self.resize(next, Scalar::U32);
        let left = self.binary("sub", next, lane);
        let totals = self.sums_of_lanes(values, left);
        incoming.push((totals, self.f.block()));
        self.f.branch(is_head, plain, done);

        self.f.begin(plain);
        let values = self.joined(values, &incoming);
        update(self, &values);
        self.f.jump(done);
        self.f.begin(done);
    }

    /// Each value with those of so many lanes, less one, behind it.
    fn sums_of_lanes(&mut self, values: &[Val], left: Val) -> Vec<Val> {
        let before = self.f.block();
        let (head, done) = (self.f.new_label(), self.f.new_label());
        self.f.jump(head);
        self.f.begin(head);
        let distance = self.f.phi(Ty::new(Scalar::U32, 1));
        let phis: Vec<_> = values.iter().map(|value| self.f.phi(value.ty())).collect();
        let is_there = self.compare("ugt", left, distance.value);
        let all = self.vendor().all_lanes();
        let mut sums = Vec::new();
        for phi in &phis {
            let other = self.shuffle_down(phi.value, all, distance.value);
            let sum = self.combine(AtomicOp::Add, phi.value, other);
            sums.push(self.select(is_there, sum, phi.value));
        }
        let lanes = self.vendor().lanes;
        let twice = self.binary("shl", distance.value, word(1));
        let more = self.compare("ult", twice, word(lanes));
        let latch = self.f.block();
        self.f.branch(more, head, done);
        self.f.fill(distance, &[(word(1), before), (twice, latch)]);
        self.fill_phis(&phis, values, before, &sums, latch);
        self.f.begin(done);
        sums
    }

    /// Whether a word is not that of the lane before, or something else is known to differ.
    fn differs_from_lane_before(&mut self, own: Val, known: Val) -> Val {
        let vendor = self.vendor();
        let before = self.value_of(&vendor.lane_before, Scalar::U32, &[own]);
        let differs = self.compare("ne", before, own);
        self.binary("or", differs, known)
    }

    /// A bit for each lane.
    fn ballot(&mut self, bit: Val) -> Val {
        let vendor = self.vendor();
        self.value_of(&vendor.ballot, vendor.mask(), &[bit])
    }

    fn trailing_zeros(&mut self, v: Val) -> Val {
        self.intrinsic("llvm.cttz", &[v], ", i1 false")
    }
}

/// The loops of a body that all lanes run in step: how often is the same for all of them.
struct InStep {
    body: Region,
    /// The bodies of the loops, those outside first.
    loops: Vec<Region>,
    uniform: SideTable<Region, bool>,
    /// Arrays that the body does something else with than adding to them; found when it is asked for.
    reads: OnceCell<SideTable<Value, bool>>,
}

impl InStep {
    fn of(kernel: &Kernel, body: Region) -> Self {
        let mut found =
            Self { body, loops: Vec::new(), uniform: SideTable::new(false), reads: OnceCell::new() };
        let mut looked_at = 0;
        loop {
            let region = if looked_at == 0 { body } else { found.loops[looked_at - 1] };
            for &op in &kernel.regions[region].ops {
                let data = &kernel.ops[op];
                if data.kind == OpKind::For
                    && data.operands[..2].iter().all(|&bound| found.is_uniform(kernel, bound, MOST_INDEX_OPS))
                {
                    found.loops.push(data.regions[0]);
                    found.uniform.set(data.regions[0], true);
                }
            }
            looked_at += 1;
            if looked_at > found.loops.len() {
                return found;
            }
        }
    }

    fn reads(&self, e: &Emitter<'_>) -> &SideTable<Value, bool> {
        self.reads.get_or_init(|| {
            let mut reads = SideTable::new(false);
            walk(e.kernel, self.body, &mut |op| {
                let data = &e.kernel.ops[op];
                let adds = matches!(data.kind, OpKind::Atomic(_)) && !e.facts.used[data.results[0]];
                if !adds && !matches!(data.kind, OpKind::Extent(_)) {
                    data.operands.iter().for_each(|&operand| reads.set(operand, true));
                }
            });
            reads
        })
    }

    /// Whether a value is certainly the same for all lanes of a warp that are at it: it follows from arguments, shapes and indices of loops in step. Looks at
    /// chains of so many ops.
    fn is_uniform(&self, kernel: &Kernel, value: Value, depth: u32) -> bool {
        match kernel.values[value].def {
            ValueDef::Param(region, number) => {
                region == kernel.body || number == 0 && region != self.body && self.uniform[region]
            }
            ValueDef::Result(op, _) => {
                let data = &kernel.ops[op];
                depth > 0
                    && data.kind.is_pure()
                    && data.regions.is_empty()
                    && data.operands.iter().all(|&operand| self.is_uniform(kernel, operand, depth - 1))
            }
        }
    }
}
