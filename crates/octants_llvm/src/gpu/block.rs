//! Loops whose threads form blocks: iteration `i` is run by thread `i % block` of a block that runs its neighbours.
//!
//! Blocks take iterations by their numbers ([`points`](super::points)); a block that goes on to other iterations waits for all of its threads first. That
//! there are whole blocks alone is looked at by the launch, or by the kernel where only the device knows the bounds (`check_whole_blocks` of the passes).

use octants_ir::ops::{SUBGROUP, Scope, ShuffleOp};
use octants_ir::{Op, Scalar};

use super::instructions::word;
use crate::emitter::Emitter;
use crate::value::{Ptr, Val};

/// The assembler takes no dot in a name that is not the module's own.
const MEMORY: &str = "octants_block";

impl Emitter<'_> {
    /// Memory of the block, from so many bytes on.
    pub(super) fn block_window(&mut self, start: u64) -> Ptr {
        self.module
            .declare(MEMORY, || format!("@{MEMORY} = external addrspace(3) global [0 x i8], align 16"));
        self.f.in_entry(|f| {
            f.pointer(format_args!(
                "getelementptr inbounds i8, ptr addrspacecast (ptr addrspace(3) @{MEMORY} to ptr), i64 {start}"
            ))
        })
    }

    /// The lanes of a subgroup, all of which are here.
    fn subgroup_mask(&self) -> Val {
        match self.block_threads {
            Some(threads) if threads < SUBGROUP => {
                Val::int(self.vendor().mask(), i128::from((1_u32 << threads) - 1))
            }
            _ => self.vendor().all_lanes(),
        }
    }

    pub(super) fn block_barrier(&mut self, scope: Scope) {
        match scope {
            Scope::Subgroup => {
                let (vendor, mask) = (self.vendor(), self.subgroup_mask());
                self.run_instruction_on(&vendor.wait_for_lanes, &[mask]);
            }
            Scope::Block | Scope::Device => self.meet(),
        }
    }

    /// All threads of the block wait for each other.
    pub(super) fn meet(&mut self) {
        self.run_instruction(&self.vendor().meet_of_block);
    }

    pub(super) fn block_fence(&mut self, scope: Scope) {
        let vendor = self.vendor();
        self.run_instruction(match scope {
            Scope::Subgroup | Scope::Block => &vendor.fence_for_block,
            Scope::Device => &vendor.fence_for_device,
        });
    }

    /// Of how many threads of the block it holds.
    pub(super) fn block_count(&mut self, holds: Val) -> Val {
        let (vendor, holds) = (self.vendor(), self.resize(holds.read_as(Scalar::U1), Scalar::I32));
        let count = self.binary("and", holds, Val::int(Scalar::I32, 1));
        self.value_of(&vendor.count_of_block, Scalar::I32, &[count])
    }

    pub(super) fn subgroup_ballot(&mut self, holds: Val) -> Val {
        let (vendor, mask) = (self.vendor(), self.subgroup_mask());
        let lanes = self.value_of(&vendor.ballot_of, vendor.mask(), &[mask, holds]);
        self.resize(lanes, Scalar::U64)
    }

    pub(super) fn subgroup_shuffle(&mut self, shuffle: ShuffleOp, value: Val, by: Val) -> Val {
        let (vendor, mask) = (self.vendor(), self.subgroup_mask());
        let by = by.read_as(Scalar::U32);
        let moved = self.value_of(&vendor.shuffles[shuffle as usize], Scalar::U32, &[mask, value, by]);
        match shuffle {
            ShuffleOp::Lane | ShuffleOp::Xor => moved,
            ShuffleOp::Up | ShuffleOp::Down => {
                // The instruction looks at the lowest bits alone.
                let near = self.compare("ult", by, word(vendor.lanes));
                self.select(near, moved, value)
            }
        }
    }

    /// The iterations of a loop whose threads form blocks of so many.
    pub(super) fn blocks(&mut self, op: Op, block: u32) {
        self.block_threads = Some(block);
        self.numbered_range(op);
    }
}
