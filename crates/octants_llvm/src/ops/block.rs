//! What the threads of a block do together. How they do it is the target's.

use octants_ir::ops::Scope;
use octants_ir::plan::size_and_align;
use octants_ir::{Op, Scalar, Type};

use crate::emitter::Emitter;
use crate::value::Val;

/// Where arrays in a block's memory begin.
const ALIGNMENT: u64 = 16;

impl Emitter<'_> {
    /// Room for a field in the block's memory.
    pub(crate) fn shared_array(&mut self, op: Op) {
        let field = self.kernel.ops[op].results[0];
        if self.locals[field].is_some() {
            return;
        }
        let Type::Array(array) = self.kernel.ty(field) else { panic!("{op} makes no field") };
        let layout = self.kernel.layout(array).unwrap_or_else(|| panic!("{op} makes no field"));
        let bytes = layout.span(size_and_align(self.kernel, array.elem).0);
        let start = self.block_bytes.next_multiple_of(ALIGNMENT);
        self.block_bytes = start + bytes;
        let lowering = self.lowering;
        let pointer = lowering.block_memory(self, start, bytes);
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
