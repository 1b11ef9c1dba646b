//! What the threads of a block do together. How they do it is the target's.

use octants_ir::ops::Scope;
use octants_ir::rewrite::ops_in;
use octants_ir::{Op, OpKind, Scalar, Value};

use crate::emitter::Emitter;
use crate::value::{Ptr, Val};

impl Emitter<'_> {
    /// An array in the block's memory.
    pub(crate) fn shared_array(&mut self, op: Op) {
        let field = self.kernel.ops[op].results[0];
        // A tape is another one in each copy of the body.
        if self.locals[field].is_some() && self.memory_of_block().is_none() {
            return;
        }
        let array = self.block_memory.array(op).unwrap_or_else(|| panic!("{op} is in no block"));
        let lowering = self.lowering;
        let pointer = lowering.shared_array(self, array);
        self.locals.set(field, Some(pointer));
    }

    /// Where the arrays of a block lie that is too large for a stack: the tape that the loop's body makes first.
    pub(crate) fn memory_of_block(&self) -> Option<Ptr> {
        let array = self.block_memory.arrays.first()?;
        let body = self.facts.tasks.iter().find_map(|&task| {
            let body = self.kernel.parallel_loop(task)?.body;
            ops_in(self.kernel, body).contains(&array.op).then_some(body)
        })?;
        let of_tape =
            |&op: &Op| (self.kernel.ops[op].kind == OpKind::Tape).then(|| self.kernel.ops[op].results[0]);
        let tape = self.kernel.regions[body].ops.iter().find_map(of_tape)?;
        let memory = self.locals[tape]?;
        let bytes = self.bytes_of_tape(tape);
        assert!(
            bytes.is_some_and(|bytes| bytes >= self.block_memory.bytes),
            "the arrays of a block take {} bytes, and {tape} has {bytes:?} for them",
            self.block_memory.bytes
        );
        Some(memory)
    }

    /// How many bytes a tape has, if that is known: passes may have changed what a block needs since it was made.
    fn bytes_of_tape(&self, tape: Value) -> Option<u64> {
        let kernel = self.kernel;
        let words = kernel.as_const(kernel.def(tape)?.operands[0])?.as_i128()?;
        u64::try_from(words).ok()?.checked_mul(8)
    }

    /// A scalar of 32 or 64 bits, moved word by word.
    pub(crate) fn in_words(&mut self, value: Val, mut of: impl FnMut(&mut Self, Val) -> Val) -> Val {
        let bits = self.bits(value);
        let moved = if bits.ty.bits() <= 32 {
            let word = self.resize(bits, Scalar::U32);
            let moved = of(self, word);
            self.resize(moved, bits.ty)
        } else {
            let unsigned = bits.read_as(Scalar::U64);
            let high = self.binary("lshr", unsigned, Val::int(Scalar::U64, 32));
            let [low, high] = [unsigned, high].map(|half| {
                let word = self.resize(half, Scalar::U32);
                let moved = of(self, word);
                self.resize(moved, Scalar::U64)
            });
            let high = self.binary("shl", high, Val::int(Scalar::U64, 32));
            self.binary("or", high, low).read_as(bits.ty)
        };
        self.bit_cast(moved, value.ty)
    }
}

/// What a target without blocks says to what only they do.
pub(crate) fn no_blocks(scope: Scope) -> ! {
    panic!("threads of a {} became a loop over its lanes", scope.name())
}
