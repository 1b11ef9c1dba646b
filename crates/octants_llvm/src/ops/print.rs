//! `print`: the operands in slots of eight bytes, handed to whoever listens.

use octants_ir::{Op, Scalar};

use crate::cpu::abi::Frame;
use crate::emitter::Emitter;
use crate::value::{Typed, Val};

impl Emitter<'_> {
    pub(crate) fn print(&mut self, op: Op) {
        let operands: Vec<_> = self.kernel.ops[op].operands.iter().map(|&value| self.get(value)).collect();
        let count = operands.len();
        let slots = self.f.in_entry(|f| f.pointer(format_args!("alloca [{} x i64], align 8", count.max(1))));
        for (index, &operand) in operands.iter().enumerate() {
            let word = self.word(operand);
            let address = self.offset(slots, 8 * index);
            self.f.line(format_args!("store {}, ptr {address}, align 8", Typed(word)));
        }
        let address = self.offset("%frame", Frame::PRINT);
        let function = self.f.pointer(format_args!("load ptr, ptr {address}, align 8"));
        let address = self.offset("%frame", Frame::LISTENER);
        let listener = self.f.pointer(format_args!("load ptr, ptr {address}, align 8"));
        self.f.line(format_args!(
            "call void {function}(ptr {listener}, i32 {}, i32 {count}, ptr {slots}) #0",
            self.facts.sites.number(op)
        ));
    }

    /// A scalar in eight bytes: integers extended as their sign says, reals as an `f64`.
    pub(crate) fn word(&mut self, value: Val) -> Val {
        if value.ty.is_real() { self.cast(value, Scalar::F64) } else { self.resize(value, Scalar::I64) }
    }
}
