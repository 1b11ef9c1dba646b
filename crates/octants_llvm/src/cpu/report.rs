//! What a task tells the host while it runs, and is told: faults, prints, requests to stop.

use crate::emitter::Emitter;
use crate::report::FaultOrdering;
use crate::value::Val;
use octants_abi::cpu::{Cancel, Frame};

const ORDERING: FaultOrdering = FaultOrdering { take: "acq_rel monotonic", fence: None, publish: "release" };

impl Emitter<'_> {
    /// Writes the fault into the launch's record, unless another was first, and ends the task.
    pub(super) fn record_fault(&mut self, site: u32, arguments: &[Val]) {
        let address = self.offset("%frame", Frame::FAULT);
        let fault = self.f.pointer(format_args!("load ptr, ptr {address}, align 8"));
        self.write_fault(fault, site, arguments, &ORDERING);
    }

    /// Calls the launch's print function with the operands in slots of eight bytes.
    pub(super) fn call_printer(&mut self, site: u32, operands: &[Val]) {
        let count = operands.len();
        let slots = self.print_slots(operands);
        let address = self.offset("%frame", Frame::PRINT);
        let function = self.f.pointer(format_args!("load ptr, ptr {address}, align 8"));
        let address = self.offset("%frame", Frame::PRINTS);
        let prints = self.f.pointer(format_args!("load ptr, ptr {address}, align 8"));
        self.f.line(format_args!(
            "call void {function}(ptr {prints}, i32 {site}, i32 {count}, ptr {slots}) #0"
        ));
    }

    /// Between iterations of a parallel loop, which wait for nobody: whoever is asked touches no array, so that what iterations have in common is
    /// still loaded once.
    pub(super) fn poll_between_iterations(&mut self) {
        let untouched = if self.options.noalias && self.body == self.kernel.body {
            self.scopes.call_suffix(&mut self.module, Vec::new())
        } else {
            String::new()
        };
        self.poll_cancel_flag(&untouched);
    }

    /// Volatile keeps the load in its loop; `unordered` lets other memory accesses pass. The call is followed by what is known of it.
    pub(super) fn poll_cancel_flag(&mut self, untouched: &str) {
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
        self.module.add_function_once(CONFIRM, confirm_function);
        let wanted = self
            .f
            .define(format_args!("call preserve_allcc zeroext i8 @{CONFIRM}(ptr {flag}) #2{untouched}"));
        let goes_on = self.f.define(format_args!("icmp eq i8 %v{wanted}, 0"));
        self.f.terminate(format_args!("br i1 %v{goes_on}, label %{go_on}, label %{stop}"));
        self.f.begin(go_on);
    }
}

const CONFIRM: &str = "octants.confirm";

/// A function that asks whether a launch is to stop. It leaves all registers as they are: a call that is hardly ever made would else keep what a loop carries in memory.
fn confirm_function() -> String {
    let place = Cancel::CONFIRM;
    format!(
        "\ndefine internal preserve_allcc zeroext i8 @{CONFIRM}(ptr %flag) noinline nounwind {{\n  \
         %place = getelementptr inbounds i8, ptr %flag, i64 {place}\n  \
         %confirm = load ptr, ptr %place, align 8\n  \
         %wanted = call zeroext i8 %confirm(ptr %flag) #2\n  \
         ret i8 %wanted\n}}"
    )
}
