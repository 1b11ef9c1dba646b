//! What a task tells the host while it runs, and is told: faults, prints, requests to stop.

use octants_ir::Scalar;

use super::abi::{Cancel, Fault, Frame};
use crate::emitter::Emitter;
use crate::value::{Typed, Val};

impl Emitter<'_> {
    /// Writes the fault, unless another was first, and gives up.
    pub(super) fn record_fault(&mut self, site: u32, arguments: &[Val]) {
        let address = self.offset("%frame", Frame::FAULT);
        let fault = self.f.pointer(format_args!("load ptr, ptr {address}, align 8"));
        let state = self.offset(fault, Fault::STATE_OFFSET);
        let (none, taken, written) = (Fault::NONE, Fault::TAKEN, Fault::WRITTEN);
        let pair = self
            .f
            .define(format_args!("cmpxchg ptr {state}, i32 {none}, i32 {taken} acq_rel monotonic, align 4"));
        let first = self.f.define(format_args!("extractvalue {{ i32, i1 }} %v{pair}, 1"));
        let (write, stop) = (self.f.new_label(), self.stop_block());
        self.f.terminate(format_args!("br i1 %v{first}, label %{write}, label %{stop}"));

        self.f.begin(write);
        let address = self.offset(fault, Fault::SITE_OFFSET);
        self.f.line(format_args!("store i32 {site}, ptr {address}, align 4"));
        for (index, &argument) in arguments.iter().take(Fault::ARGUMENTS).enumerate() {
            let argument = self.word(argument);
            let address = self.offset(fault, Fault::ARGUMENTS_OFFSET + 8 * index);
            self.f.line(format_args!("store {}, ptr {address}, align 8", Typed(argument)));
        }
        self.f.line(format_args!("store atomic i32 {written}, ptr {state} release, align 4"));
        self.f.jump(stop);
    }

    /// Calls the launch's listener with the operands in slots of eight bytes.
    pub(super) fn call_printer(&mut self, site: u32, operands: &[Val]) {
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
            "call void {function}(ptr {listener}, i32 {site}, i32 {count}, ptr {slots}) #0"
        ));
    }

    /// Volatile keeps the load in its loop; `unordered` lets other memory accesses pass.
    pub(super) fn poll_cancel_flag(&mut self) {
        let flag = if let Some(flag) = self.cancel {
            flag
        } else {
            let flag = self.load_pointer("%frame", Frame::CANCEL);
            *self.cancel.insert(flag)
        };
        let set = self.f.define(format_args!("load atomic volatile i8, ptr {flag} unordered, align 1"));
        let clear = self.f.define(format_args!("icmp eq i8 %v{set}, 0"));
        let (go_on, ask, stop) = (self.f.new_label(), self.f.new_label(), self.stop_block());
        let unlikely = self.module.cold_node();
        self.f.terminate(format_args!("br i1 %v{clear}, label %{go_on}, label %{ask}, !prof {unlikely}"));

        self.f.begin(ask);
        let address = self.offset(flag, Cancel::CONFIRM);
        let confirm = self.f.pointer(format_args!("load ptr, ptr {address}, align 8"));
        let wanted = self.f.define(format_args!("call zeroext i8 {confirm}(ptr {flag}) #2"));
        let goes_on = self.f.define(format_args!("icmp eq i8 %v{wanted}, 0"));
        self.f.terminate(format_args!("br i1 %v{goes_on}, label %{go_on}, label %{stop}"));
        self.f.begin(go_on);
    }

    /// A scalar in eight bytes: integers extended as their sign says, reals as an `f64`.
    pub(crate) fn word(&mut self, value: Val) -> Val {
        if value.ty.is_real() { self.cast(value, Scalar::F64) } else { self.resize(value, Scalar::I64) }
    }
}
