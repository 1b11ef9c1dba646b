//! Reductions of a block: its threads' totals become one, which is combined into its place by one atomic update.
//!
//! ```text
//! each warp: total = op(total of lane, total of lane + 16), then 8, 4, 2, 1     -> lane 0 writes it to shared memory
//! barrier
//! first warp: the same over the totals of the warps                            -> lane 0 updates the place
//! ```
//!
//! What a lane takes from beyond the last thread is the identity, for which `op(x, identity)` is `x`, bit by bit. A place that nothing was
//! contributed to is not touched. Many reductions go through shared memory in batches. A thread that failed has left; its block's totals are of no meaning then, as the launch is a
//! failure.

use octants_ir::ops::AtomicOp;
use octants_ir::views::ReductionView;
use octants_ir::{Op, Scalar};

use super::instructions::word;
use super::registers::Register;
use crate::emitter::Emitter;
use crate::value::{Ptr, Ty, Typed, Val, in_memory};

/// Reductions whose totals lie in shared memory at once: 4 KiB, which leave room for copies of arrays.
const BATCH: usize = 16;

impl Emitter<'_> {
    /// Combines the totals of a block's threads into the places that the loop's operands name. All threads come here.
    pub(super) fn combine_block_totals(&mut self, op: Op, totals: &[Val], block: u32) {
        let kernel = self.kernel;
        let parallel = kernel.parallel_loop(op).unwrap_or_else(|| panic!("{op} is no parallel loop"));
        let reductions: Vec<_> = parallel.reductions().zip(totals.iter().copied()).collect();
        for (number, batch) in reductions.chunks(BATCH).enumerate() {
            if number > 0 {
                // The batch before has been read.
                self.wait_for_block();
            }
            self.combine_batch(batch, block);
        }
    }

    fn combine_batch(&mut self, batch: &[(ReductionView<'_>, Val)], block: u32) {
        let thread = self.register(Register::Thread);
        let (lane, warp) = (self.lane_of(thread), self.warp_number_of(thread));
        let lanes = self.vendor().lanes;
        let warps = block.div_ceil(lanes);
        // Threads of this warp: all, but for the last warp of a block of another size.
        let threads = if block.is_multiple_of(lanes) {
            word(lanes)
        } else {
            let first = self.binary("and", thread, word(!(lanes - 1)));
            let rest = self.binary("sub", word(block), first);
            self.intrinsic("llvm.umin", &[rest, word(lanes)], "")
        };
        let totals = batch
            .iter()
            .map(|(reduction, total)| self.warp_total(reduction.op, *total, lane, threads, lanes.min(block)));
        let mut totals: Vec<_> = totals.collect();
        if warps > 1 {
            self.write_warp_totals(&totals, warp, lane);
            self.wait_for_block();
        }
        let (first, done) = (self.f.new_label(), self.f.new_label());
        let in_first = self.compare("ult", thread, word(lanes));
        self.f.branch(in_first, first, done);

        self.f.begin(first);
        if warps > 1 {
            for (number, ((reduction, _), total)) in batch.iter().zip(&mut totals).enumerate() {
                let op = reduction.op;
                *total = self.read_warp_total(op, (number, total.ty), lane, warps);
                *total = self.warp_total(op, *total, lane, word(lanes.min(block)), warps.next_power_of_two());
            }
        }
        let update = self.f.new_label();
        let is_leader = self.compare("eq", lane, word(0));
        self.f.branch(is_leader, update, done);
        self.f.begin(update);
        for ((reduction, _), &total) in batch.iter().zip(&totals) {
            self.combine_total(reduction, total);
        }
        self.f.jump(done);
        self.f.begin(done);
    }

    /// What the first `count` lanes of a warp, whose `threads` all come here, hold together; in lane 0.
    fn warp_total(&mut self, op: AtomicOp, total: Val, lane: Val, threads: Val, count: u32) -> Val {
        let mut total = total;
        // As many ones as there are threads.
        let (lanes, all) = (self.vendor().lanes, self.vendor().all_lanes());
        let zeros = self.binary("sub", word(lanes), threads);
        let zeros = self.resize(zeros, all.ty);
        let mask = self.binary("lshr", all, zeros);
        let mut distance = count.next_power_of_two() / 2;
        while distance > 0 {
            let other = self.shuffle_down(total, mask, word(distance));
            let from = self.binary("add", lane, word(distance));
            let there = self.compare("ult", from, threads);
            let identity = self.identity(op, total.ty);
            let other = self.select(there, other, identity);
            total = self.combine(op, total, other);
            distance /= 2;
        }
        total
    }

    /// Lane 0 of each warp writes what the warp has; a slot of eight bytes for each reduction and warp.
    fn write_warp_totals(&mut self, totals: &[Val], warp: Val, lane: Val) {
        let (write, done) = (self.f.new_label(), self.f.new_label());
        let is_leader = self.compare("eq", lane, word(0));
        self.f.branch(is_leader, write, done);
        self.f.begin(write);
        for (number, &total) in totals.iter().enumerate() {
            let slot = self.total_slot(number, totals.len(), warp);
            let total = self.memory_form(total);
            self.f.line(format_args!("store {}, ptr addrspace(3) {slot}, align 8", Typed(total)));
        }
        self.f.jump(done);
        self.f.begin(done);
    }

    /// What the warp with the lane's number has; the identity where there is none.
    fn read_warp_total(
        &mut self,
        op: AtomicOp,
        (number, scalar): (usize, Scalar),
        lane: Val,
        warps: u32,
    ) -> Val {
        // A slot is there for each lane.
        let slot = self.total_slot(number, BATCH, lane);
        let ty = Ty::new(in_memory(scalar), 1);
        let total = self.f.value(ty, format_args!("load {ty}, ptr addrspace(3) {slot}, align 8"));
        let total = self.read_memory(total, scalar);
        if warps == self.vendor().lanes {
            return total;
        }
        let there = self.compare("ult", lane, word(warps));
        let identity = self.identity(op, scalar);
        self.select(there, total, identity)
    }

    /// Whoever asks first has the largest batch.
    fn total_slot(&mut self, number: usize, batch: usize, warp: Val) -> Ptr {
        let lanes = self.vendor().lanes;
        let slots = batch * lanes as usize;
        self.module.declare("octants.totals", || {
            format!("@octants.totals = internal addrspace(3) global [{slots} x i64] undef, align 8")
        });
        let slot = self.binary("add", warp, word(number as u32 * lanes));
        self.f
            .pointer(format_args!("getelementptr inbounds i64, ptr addrspace(3) @octants.totals, i32 {slot}"))
    }
}
