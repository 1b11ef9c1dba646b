//! What makers of GPUs have different words for: instructions that only a GPU has, the head of a kernel, the library of functions.
//!
//! [`Vendor`] is data, and all that the emitter knows of a maker; the rest of this folder says what is computed, for any of them. Tests run
//! its code under a second one with other words and twice as many lanes.

use std::fmt::Display;

use octants_ir::Scalar;

use super::GpuOptions;
use crate::Target;
use crate::emitter::Emitter;
use crate::value::{Ty, Val};

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

/// A text with operands in their places.
pub(super) fn filled(text: &str, operands: &[&dyn Display]) -> String {
    operands.iter().enumerate().fold(text.to_owned(), |text, (number, operand)| {
        text.replace(&format!("<{number}>"), &operand.to_string())
    })
}

/// As an unsigned constant of 32 bits.
pub(super) fn word(value: u32) -> Val {
    Val::int(Scalar::U32, value.into())
}

impl Emitter<'_> {
    pub(super) fn vendor(&self) -> &'static Vendor {
        match self.options.target {
            Target::Gpu(GpuOptions { vendor, .. }) => vendor,
            Target::Cpu(_) => unreachable!("code for a GPU is written for one"),
        }
    }

    /// The vendor's instruction as text, with what it needs declared.
    pub(super) fn instruction(&mut self, instruction: &Instruction, operands: &[&dyn Display]) -> String {
        for (name, text) in instruction.needs {
            self.module.declare(name, || (*text).to_owned());
        }
        filled(instruction.text, operands)
    }

    /// What the vendor's instruction gives.
    pub(super) fn value_of(&mut self, instruction: &Instruction, ty: Scalar, operands: &[Val]) -> Val {
        let operands: Vec<_> = operands.iter().map(|operand| operand as &dyn Display).collect();
        let text = self.instruction(instruction, &operands);
        self.f.value(Ty::new(ty, 1), format_args!("{text}"))
    }

    /// The vendor's instruction, which gives nothing.
    pub(super) fn run_instruction(&mut self, instruction: &Instruction) {
        let text = self.instruction(instruction, &[]);
        self.f.line(format_args!("{text}"));
    }

    /// The thread's lane in its warp.
    pub(super) fn lane_of(&mut self, thread: Val) -> Val {
        let lanes = self.vendor().lanes;
        self.binary("and", thread, word(lanes - 1))
    }

    /// The number of the thread's warp in its block.
    pub(super) fn warp_number_of(&mut self, thread: Val) -> Val {
        let lanes = self.vendor().lanes;
        self.binary("lshr", thread, word(lanes.ilog2()))
    }

    /// What the lane so far up holds, among the lanes of the mask.
    pub(super) fn shuffle_down(&mut self, value: Val, mask: Val, distance: Val) -> Val {
        let bits = self.bits(value);
        let bits = if bits.ty.bits() < 64 {
            let wide = self.resize(bits, Scalar::U32);
            let moved = self.shuffle_word(wide, mask, distance);
            self.resize(moved, bits.ty)
        } else {
            let (low, high) =
                (self.resize(bits, Scalar::U32), self.binary("lshr", bits, Val::int(bits.ty, 32)));
            let high = self.resize(high, Scalar::U32);
            let (low, high) =
                (self.shuffle_word(low, mask, distance), self.shuffle_word(high, mask, distance));
            let (low, high) = (self.resize(low, bits.ty), self.resize(high, bits.ty));
            let high = self.binary("shl", high, Val::int(bits.ty, 32));
            self.binary("or", high, low)
        };
        self.bit_cast(bits, value.ty)
    }

    fn shuffle_word(&mut self, v: Val, mask: Val, distance: Val) -> Val {
        let vendor = self.vendor();
        self.value_of(&vendor.lane_behind, Scalar::U32, &[mask, v, distance])
    }

    /// Waits for all threads of the block.
    pub(super) fn wait_for_block(&mut self) {
        self.run_instruction(&self.vendor().wait_for_block);
    }

    /// Waits for all lanes of the warp.
    pub(super) fn wait_for_warp(&mut self) {
        self.run_instruction(&self.vendor().wait_for_warp);
    }
}
