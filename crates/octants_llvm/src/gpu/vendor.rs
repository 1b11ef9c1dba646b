//! What makers of GPUs have different words for: instructions that only a GPU has, the head of a kernel, the library of functions.
//!
//! [`Vendor`] is data, and all that the emitter knows of a maker; the rest of this folder says what is computed, for any of them. Tests run
//! its code under a second one with other words and twice as many lanes.

use octants_ir::Scalar;

use crate::value::Val;

/// An instruction: its text, with `<0>`, `<1>`, … where its operands go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instruction {
    pub text: &'static str,
    /// Names that the text uses, with the declaration or the definition of each.
    pub needs: &'static [(&'static str, &'static str)],
}

/// What the thread's place in the grid is called: numbers of 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registers {
    /// The thread's number in its block.
    pub thread: Instruction,
    /// Threads of a block.
    pub threads: Instruction,
    /// The block's number in the grid.
    pub block: Instruction,
    /// Blocks of the grid.
    pub blocks: Instruction,
}

/// How threads of a warp that print together meet: parts of a function's first block, of lines that are indented by two blanks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrintMeeting {
    /// From `%count`: `%peers`, whatever names the threads here that have the same count; `%rank`, how many of them are before this one;
    /// `%together`, how many they are; and `%first`, the lane of the first.
    pub meet: Instruction,
    /// From `%own.count`, `%own.low` and `%own.high` of the first: `%fitting`, `%low` and `%high` of all of them.
    pub share: Instruction,
}

/// Sines and cosines of a library whose code for large angles is better kept apart, once. It decides by the comparison that is given here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LargeAngles {
    /// Where they begin: a constant as LLVM writes it.
    pub from: &'static str,
    /// The magnitude of a real of 32 bits, as the library computes it.
    pub magnitude: Instruction,
    /// Writes sine and cosine of `<0>` to the addresses `<1>` and `<2>`.
    pub both: Instruction,
}

/// The words of one maker of GPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vendor {
    /// Threads that run in step: a power of two, 64 at most. Masks of them are words of 32 bits, or of 64 where there are more.
    pub lanes: u32,
    /// A kernel's head up to its name.
    pub kernel: &'static str,
    /// A parameter of `<0>` bytes by value, up to its name.
    pub by_value: &'static str,
    /// Metadata of the module: a name, and its nodes for a kernel `<0>` with `<1>` threads a block.
    pub annotations: &'static [(&'static str, &'static [&'static str])],
    pub registers: Registers,
    /// All threads of a block wait for each other.
    pub wait_for_block: Instruction,
    /// All lanes of a warp wait for each other.
    pub wait_for_warp: Instruction,
    /// What was written before is seen by the host before what is written later.
    pub fence_for_host: Instruction,
    /// Among the lanes of the mask `<0>`, what `<1>`, a word of 32 bits, is `<2>` lanes further on; anything where there is none.
    pub lane_behind: Instruction,
    /// Among all lanes, what `<0>`, a word of 32 bits, is in the lane before; anything in the first.
    pub lane_before: Instruction,
    /// Whether `<0>` holds in all lanes.
    pub all: Instruction,
    /// The mask of the lanes in which `<0>` holds.
    pub ballot: Instruction,
    /// The lanes of the mask `<0>` wait for each other, and see what each other wrote.
    pub wait_for_lanes: Instruction,
    /// All threads of a block wait for each other, also where the lanes of a warp come to it one by one.
    pub meet_of_block: Instruction,
    /// Likewise; the sum of what `<0>` is.
    pub count_of_block: Instruction,
    /// What was written before is seen by threads of the block, and of the device, before what is written later.
    pub fence_for_block: Instruction,
    pub fence_for_device: Instruction,
    /// Among the lanes of the mask `<0>`, on which ones `<1>` holds.
    pub ballot_of: Instruction,
    /// Among the lanes of the mask `<0>`, what `<1>`, a word of 32 bits, is in the lane `<2>`, in the lane `<2>` below or above, and in that whose
    /// number differs in the bits of `<2>`. The own where there is none.
    pub shuffles: [Instruction; 4],
    pub printing: PrintMeeting,
    /// Adds two, and four, neighbouring reals of 32 bits, `<1>` and so on, to global memory at `<0>`, which is a multiple of their bytes.
    pub add_neighbours: Option<[Instruction; 2]>,
    /// The library's functions of 32 and of 64 bits, with `<0>` for what C's mathematics calls them.
    pub library: [&'static str; 2],
    pub large_angles: Option<LargeAngles>,
}

impl Vendor {
    /// The type of a mask of lanes.
    pub(super) fn mask(&self) -> Scalar {
        if self.lanes > 32 { Scalar::U64 } else { Scalar::U32 }
    }

    /// All lanes.
    pub(super) fn all_lanes(&self) -> Val {
        Val::int(self.mask(), (u64::MAX >> (64 - self.lanes)).into())
    }
}
