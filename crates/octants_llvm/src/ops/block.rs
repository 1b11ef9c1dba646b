//! What the threads of a block do together. How they do it is the target's.

use octants_ir::ops::Scope;
use octants_ir::{Op, Scalar};

use crate::emitter::Emitter;
use crate::value::Val;

impl Emitter<'_> {
    /// An array in the block's memory.
    pub(crate) fn shared_array(&mut self, op: Op) {
        let field = self.kernel.ops[op].results[0];
        if self.locals[field].is_some() {
            return;
        }
        let array = self.block_memory.array(op).unwrap_or_else(|| panic!("{op} is in no block"));
        let lowering = self.lowering;
        let pointer = lowering.shared_array(self, array);
        self.locals.set(field, Some(pointer));
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
