//! Threads that run together: the block of a loop, and the subgroups that a block consists of.

use serde::{Deserialize, Serialize};

use super::family;

/// Threads of a subgroup: aligned runs of so many threads of a block run in step. A block with fewer threads is one subgroup.
pub const SUBGROUP: u32 = 32;

/// What the iterations of a loop with blocks of so many threads must be a multiple of. Where lanes only exchange values a subgroup may be without the
/// others of its block, unless the block's last one has fewer lanes.
pub fn whole_number_of(threads: u32, needs_block: bool) -> u32 {
    if needs_block || !threads.is_multiple_of(SUBGROUP) { threads } else { SUBGROUP }
}

/// Threads of a block, where a loop needs one and the user has named no number.
pub const DEFAULT_BLOCK: u32 = 128;

family! {
    /// `(v, lane or distance) → T`: what `v` is on another lane of the subgroup.
    ShuffleOp {
        Lane "shuffle" Numeric 2 flat "Of the lane of that number, modulo the subgroup's threads.";
        Up "shuffle_up" Numeric 2 flat "Of the lane so many below; the own value if there is none.";
        Down "shuffle_down" Numeric 2 flat "Of the lane so many above; the own value if there is none.";
        Xor "shuffle_xor" Numeric 2 flat "Of the lane whose number differs in these bits.";
    }
}

/// Among which threads something holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Scope {
    Subgroup,
    Block,
    Device,
}

impl Scope {
    pub const ALL: &'static [Self] = &[Self::Subgroup, Self::Block, Self::Device];

    pub fn name(self) -> &'static str {
        match self {
            Self::Subgroup => "subgroup",
            Self::Block => "block",
            Self::Device => "device",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|scope| scope.name() == name)
    }
}
