//! Failing assertions and requests to stop.

use octants_ir::Op;

use crate::cpu::abi::{Fault, Frame};
use crate::emitter::Emitter;
use crate::value::{Typed, Val};

impl Emitter<'_> {
    /// Where the condition is false the task records the failure, unless another was first, and returns.
    pub(crate) fn assertion(&mut self, op: Op) {
        let (condition, arguments) =
            self.kernel.ops[op].operands.split_first().expect("an assertion has a condition");
        let condition = self.get(*condition);
        let (holds, fails) = (self.f.new_label(), self.f.new_label());
        let unlikely = self.module.cold_node();
        let arguments: Vec<_> =
            arguments.iter().take(Fault::ARGUMENTS).map(|&value| self.get(value)).collect();
        if condition.lanes == 1 {
            // Some lane runs, or this would not.
            self.f.terminate(format_args!(
                "br i1 {condition}, label %{holds}, label %{fails}, !prof {unlikely}"
            ));
            self.f.begin(fails);
            let first: Vec<_> = arguments.iter().map(|&value| self.first_running(value)).collect();
            self.record(op, &first);
        } else {
            let broken = self.not(condition);
            let broken = self.narrowed(broken);
            let any = self.any_lane(broken);
            let none = self.not(any);
            self.f.terminate(format_args!("br i1 {none}, label %{holds}, label %{fails}, !prof {unlikely}"));
            self.f.begin(fails);
            let lane = self.first_lane(broken);
            let first: Vec<_> = arguments.iter().map(|&value| self.lane_at(value, lane)).collect();
            self.record(op, &first);
        }
        self.f.begin(holds);
    }

    /// What the first lane that runs holds.
    fn first_running(&mut self, value: Val) -> Val {
        match self.lanes.mask {
            _ if value.lanes == 1 => value,
            None => self.lane(value, 0),
            Some(mask) => {
                let lane = self.first_lane(mask);
                self.lane_at(value, lane)
            }
        }
    }

    pub(crate) fn record(&mut self, op: Op, arguments: &[Val]) {
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
        self.f.line(format_args!("store i32 {}, ptr {address}, align 4", self.facts.sites.number(op)));
        for (index, &argument) in arguments.iter().enumerate() {
            let argument = self.word(argument);
            let address = self.offset(fault, Fault::ARGUMENTS_OFFSET + 8 * index);
            self.f.line(format_args!("store {}, ptr {address}, align 8", Typed(argument)));
        }
        self.f.line(format_args!("store atomic i32 {written}, ptr {state} release, align 4"));
        self.f.jump(stop);
    }

    /// At the back edge of a loop that may run for long: returns if the launch should stop.
    ///
    /// Volatile keeps it in the loop; `unordered` lets other memory accesses pass.
    pub(crate) fn poll_cancel(&mut self) {
        let flag = self.cancel_flag();
        let set = self.f.define(format_args!("load atomic volatile i8, ptr {flag} unordered, align 1"));
        let clear = self.f.define(format_args!("icmp eq i8 %v{set}, 0"));
        let (go_on, stop) = (self.f.new_label(), self.stop_block());
        let unlikely = self.module.cold_node();
        self.f.terminate(format_args!("br i1 %v{clear}, label %{go_on}, label %{stop}, !prof {unlikely}"));
        self.f.begin(go_on);
    }
}
