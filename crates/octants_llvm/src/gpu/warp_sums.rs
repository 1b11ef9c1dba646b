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
//! **Every lane comes here**, or none: the body's own ops alone are written so, for warps all of whose lanes have a point, and only if no op
//! of the body can end a thread.

use octants_ir::ops::{AtomicOp, Effects};
use octants_ir::rewrite::ops_in;
use octants_ir::{Boundary, Const, Data, Op, OpKind, Region, Scalar, Type, Value};

use super::choose::Tiling;
use super::registers::Register;
use super::runs::{entry, run_along};
use crate::address::elem_of;
use crate::alias::Class;
use crate::emitter::Emitter;
use crate::value::{Label, Ptr, Ty, Val};

const WARP: u32 = 32;
const ALL: &str = "llvm.nvvm.vote.all.sync";
const BALLOT: &str = "llvm.nvvm.vote.ballot.sync";
const SHUFFLE: &str = "llvm.nvvm.shfl.sync.up.i32";
/// Cells of a warp, at most, for which adding up pays.
const MOST_CELLS: u32 = 8;
/// Updates that are written so, at most, with all points of a thread. Chosen, not measured: each takes about 40 instructions.
const MOST_UPDATES: usize = 16;

/// A body whose points are dealt to whole warps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeWarp {
    body: Region,
    /// The index of the last axis, along which lanes are neighbours.
    axis: Value,
    /// Whether all lanes of this warp have a point.
    whole: Val,
}

impl Emitter<'_> {
    /// Whether a body has updates that are written so.
    pub(super) fn has_scattered_sums(&self, (body, axis): (Region, Value), tiling: Tiling) -> bool {
        let kernel = self.kernel;
        let ends = |op: &Op| {
            let kind = &kernel.ops[*op].kind;
            kind.effects().contains(Effects::ENDS) && !kind.is_terminator()
        };
        let updates = kernel.regions[body].ops.iter().filter(|&&op| self.is_scattered(axis, op)).count();
        let written = updates * (tiling.columns() * tiling.rows) as usize;
        let has_warps = tiling.block.is_multiple_of(WARP);
        (1..=MOST_UPDATES).contains(&written) && has_warps && !ops_in(kernel, body).iter().any(ends)
    }

    /// Asks, where all lanes of a warp come, whether all of them have a point.
    pub(super) fn whole_warp(&mut self, (body, axis): (Region, Value), inside: Option<Val>) -> WholeWarp {
        let whole = match inside {
            None => Val::constant(Const::bool(true)),
            Some(inside) => {
                self.module.declare(ALL, || format!("declare i1 @{ALL}(i32, i1)"));
                self.f.value(Ty::new(Scalar::U1, 1), format_args!("call i1 @{ALL}(i32 -1, i1 {inside})"))
            }
        };
        WholeWarp { body, axis, whole }
    }

    /// Whether an op of the body adds to a cell that lanes may share, and nobody asks for what it held.
    fn is_scattered(&self, axis: Value, op: Op) -> bool {
        let kernel = self.kernel;
        let data = &kernel.ops[op];
        let OpKind::Atomic(AtomicOp::Add | AtomicOp::Sub) = data.kind else { return false };
        let path = &data.operands[..data.operands.len() - 1];
        let (Some(param), Type::Array(array)) = (kernel.as_param(path[0]), kernel.ty(path[0])) else {
            return false;
        };
        let is_global = !matches!(self.array_class(param), Class::Shared(_) | Class::Unknown);
        if !is_global || matches!(array.elem, Data::Struct(_)) || array.boundary == Boundary::Clamp {
            return false;
        }
        let known = entry(kernel, array.elem, &path[1 + usize::from(array.rank)..]).is_some();
        let is_added = matches!(elem_of(array.elem).bytes(), 4 | 8);
        // What runs along the axis is a cell for each lane.
        let runs = run_along(kernel, axis, path).is_some();
        known && is_added && !runs && !self.facts.used[data.results[0]]
    }

    /// The updates among the body's own ops that no others are joined with.
    pub(super) fn scattered_sums<'a>(&'a self, ops: &'a [Op]) -> impl Iterator<Item = Op> + 'a {
        let warp = self.warp.filter(|warp| self.kernel.regions[warp.body].ops.first() == ops.first());
        let ops = if warp.is_some() { ops } else { &[] };
        ops.iter().copied().filter(move |&op| warp.is_some_and(|warp| self.is_scattered(warp.axis, op)))
    }

    /// Whether the first of these updates is one of the body's own that lanes may share.
    pub(super) fn lanes_may_share(&self, op: Op) -> bool {
        self.warp.is_some_and(|warp| {
            self.kernel.regions[warp.body].ops.contains(&op) && self.is_scattered(warp.axis, op)
        })
    }

    /// Runs an update of cells from this one on, with what the lanes that share them add together.
    pub(super) fn add_for_warp(&mut self, cell: Ptr, values: &[Val], update: impl FnOnce(&mut Self, &[Val])) {
        let Some(warp) = self.warp else { return update(self, values) };
        let (look, sum, plain, done) =
            (self.f.new_label(), self.f.new_label(), self.f.new_label(), self.f.new_label());
        let mut incoming: Vec<(Vec<Val>, Label)> = Vec::new();
        if warp.whole.as_const().is_some() {
            self.f.jump(look);
        } else {
            incoming.push((values.to_vec(), self.f.block()));
            self.f.branch(warp.whole, look, plain);
        }

        self.f.begin(look);
        let thread = self.register(Register::Thread);
        let lane = self.binary("and", thread, word(WARP - 1));
        let is_first = self.compare("eq", lane, word(0));
        let bits = self.f.value(Ty::new(Scalar::U64, 1), format_args!("ptrtoint ptr {cell} to i64"));
        let low = self.resize(bits, Scalar::U32);
        let is_head = self.differs_from_lane_before(low, is_first);
        let heads = self.ballot(is_head);
        let count = self.intrinsic("llvm.ctpop", &[heads], "");
        let few = self.compare("ule", count, word(MOST_CELLS));
        incoming.push((values.to_vec(), self.f.block()));
        self.f.branch(few, sum, plain);

        self.f.begin(sum);
        // Cells that differ by a multiple of 4 GiB look alike so far.
        let high = self.binary("lshr", bits, Val::int(Scalar::U64, 32));
        let high = self.resize(high, Scalar::U32);
        let is_head = self.differs_from_lane_before(high, is_head);
        let heads = self.ballot(is_head);
        let behind = self.binary("shl", word(u32::MAX - 1), lane);
        let behind = self.binary("and", heads, behind);
        let next = self.trailing_zeros(behind);
        let left = self.binary("sub", next, lane);
        let totals = self.sums_of_lanes(values, left);
        incoming.push((totals, self.f.block()));
        self.f.branch(is_head, plain, done);

        self.f.begin(plain);
        let values: Vec<_> = (0..values.len())
            .map(|number| {
                let from: Vec<_> = incoming.iter().map(|(values, block)| (values[number], *block)).collect();
                self.f.join(values[number].ty(), &from)
            })
            .collect();
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
        let mut sums = Vec::new();
        for phi in &phis {
            let other = self.shuffle_down(phi.value, word(u32::MAX), distance.value);
            let sum = self.combine(AtomicOp::Add, phi.value, other);
            sums.push(self.select(is_there, sum, phi.value));
        }
        let twice = self.binary("shl", distance.value, word(1));
        let more = self.compare("ult", twice, word(WARP));
        let latch = self.f.block();
        self.f.branch(more, head, done);
        self.f.fill(distance, &[(word(1), before), (twice, latch)]);
        self.fill_phis(&phis, values, before, &sums, latch);
        self.f.begin(done);
        sums
    }

    /// Whether a word is not that of the lane before, or something else is known to differ.
    fn differs_from_lane_before(&mut self, own: Val, known: Val) -> Val {
        self.module.declare(SHUFFLE, || format!("declare i32 @{SHUFFLE}(i32, i32, i32, i32)"));
        let ty = Ty::new(Scalar::U32, 1);
        let before = self.f.value(ty, format_args!("call i32 @{SHUFFLE}(i32 -1, i32 {own}, i32 1, i32 0)"));
        let differs = self.compare("ne", before, own);
        self.binary("or", differs, known)
    }

    /// A bit for each lane.
    fn ballot(&mut self, bit: Val) -> Val {
        self.module.declare(BALLOT, || format!("declare i32 @{BALLOT}(i32, i1)"));
        self.f.value(Ty::new(Scalar::U32, 1), format_args!("call i32 @{BALLOT}(i32 -1, i1 {bit})"))
    }

    fn trailing_zeros(&mut self, v: Val) -> Val {
        let symbol = "llvm.cttz.i32";
        self.module.declare(symbol, || format!("declare i32 @{symbol}(i32, i1 immarg)"));
        self.f.value(Ty::new(Scalar::U32, 1), format_args!("call i32 @{symbol}(i32 {v}, i1 false)"))
    }
}

fn word(value: u32) -> Val {
    Val::int(Scalar::U32, value.into())
}
