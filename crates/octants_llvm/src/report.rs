//! What faults and prints of all targets share: the record of the first fault, and operands in slots of eight bytes.
//!
//! A target's shape says where the record is, and how a write to it becomes visible to the host.

use octants_ir::Scalar;

use crate::emitter::Emitter;
use crate::value::{Ptr, Typed, Val};
use octants_abi::cpu::Fault;

/// How the writes of a fault record are ordered for whoever reads it.
pub(crate) struct FaultOrdering {
    /// The two orderings of the exchange that takes the record.
    pub take: &'static str,
    /// Stands before the last store, where the target's atomics alone do not order the stores.
    pub fence: Option<fn(&mut Emitter<'_>)>,
    /// The ordering of the last store, which says that the record is complete.
    pub publish: &'static str,
}

impl Emitter<'_> {
    /// Writes the fault, unless another was first, and ends the task.
    pub(crate) fn write_fault(&mut self, fault: Ptr, site: u32, arguments: &[Val], ordering: &FaultOrdering) {
        let state = self.offset(fault, Fault::STATE_OFFSET);
        let (none, taken, written) = (Fault::NONE, Fault::TAKEN, Fault::WRITTEN);
        let FaultOrdering { take, fence, publish } = ordering;
        let pair =
            self.f.define(format_args!("cmpxchg ptr {state}, i32 {none}, i32 {taken} {take}, align 4"));
        let first = self.f.define(format_args!("extractvalue {{ i32, i1 }} %v{pair}, 1"));
        let (write, stop) = (self.f.new_label(), self.stop_block());
        self.f.terminate(format_args!("br i1 %v{first}, label %{write}, label %{stop}"));

        self.f.begin(write);
        let address = self.offset(fault, Fault::SITE_OFFSET);
        self.f.line(format_args!("store i32 {site}, ptr {address}, align 4"));
        for (index, &argument) in arguments.iter().take(Fault::ARGUMENTS).enumerate() {
            self.store_word(argument, fault, Fault::ARGUMENTS_OFFSET + 8 * index);
        }
        if let Some(fence) = fence {
            fence(self);
        }
        self.f.line(format_args!("store atomic i32 {written}, ptr {state} {publish}, align 4"));
        self.f.jump(stop);
    }

    /// The operands of a `print`, in slots of eight bytes on the stack.
    pub(crate) fn print_slots(&mut self, operands: &[Val]) -> Ptr {
        let count = operands.len().max(1);
        let slots = self.f.in_entry(|f| f.pointer(format_args!("alloca [{count} x i64], align 8")));
        for (index, &operand) in operands.iter().enumerate() {
            self.store_word(operand, slots, 8 * index);
        }
        slots
    }

    fn store_word(&mut self, value: Val, base: Ptr, offset: usize) {
        let word = self.word(value);
        let address = self.offset(base, offset);
        self.f.line(format_args!("store {}, ptr {address}, align 8", Typed(word)));
    }

    /// A scalar in eight bytes: integers extended as their sign says, reals as an `f64`.
    pub(crate) fn word(&mut self, value: Val) -> Val {
        if value.ty.is_real() { self.cast(value, Scalar::F64) } else { self.resize(value, Scalar::I64) }
    }
}
