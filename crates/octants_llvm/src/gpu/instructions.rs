//! The vendor's instructions in the text.

use std::fmt::Display;

use octants_ir::Scalar;

use super::vendor::{Instruction, Vendor};
use crate::emitter::Emitter;
use crate::options::GpuOptions;
use crate::options::Target;
use crate::value::{Ty, Val};

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
        self.run_instruction_on(instruction, &[]);
    }

    pub(super) fn run_instruction_on(&mut self, instruction: &Instruction, operands: &[Val]) {
        let operands: Vec<_> = operands.iter().map(|operand| operand as &dyn Display).collect();
        let text = self.instruction(instruction, &operands);
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
