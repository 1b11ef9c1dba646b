//! Special registers of a thread, read once in the entry block.

use octants_ir::Scalar;

use crate::emitter::Emitter;
use crate::value::{Ty, Val};

/// What a thread knows of its place in the grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Register {
    /// The thread's number in its block.
    Thread,
    /// Threads of a block.
    Threads,
    /// The block's number in the grid.
    Block,
    /// Blocks of the grid.
    Blocks,
}

impl Emitter<'_> {
    /// A register as an unsigned number of 32 bits.
    pub(super) fn register(&mut self, register: Register) -> Val {
        let registers = &self.vendor().registers;
        let instruction = match register {
            Register::Thread => &registers.thread,
            Register::Threads => &registers.threads,
            Register::Block => &registers.block,
            Register::Blocks => &registers.blocks,
        };
        let text = self.instruction(instruction, &[]);
        self.f.in_entry(|f| f.value(Ty::new(Scalar::U32, 1), format_args!("{text}")))
    }

    /// A register in 64 bits.
    pub(super) fn wide_register(&mut self, register: Register) -> Val {
        let narrow = self.register(register);
        self.f.in_entry(|f| f.value(Ty::new(Scalar::I64, 1), format_args!("zext i32 {narrow} to i64")))
    }
}
