//! Failing assertions and requests to stop.

use octants_ir::Op;

use crate::emitter::Emitter;
use crate::value::Val;

/// Arguments of an assertion that are reported: as many as a fault record holds.
const MAX_ARGUMENTS: usize = octants_abi::cpu::Fault::ARGUMENTS;

impl Emitter<'_> {
    /// Where the condition is false the task records the failure, unless another was first, and returns.
    pub(crate) fn assertion(&mut self, op: Op) {
        let (condition, arguments) =
            self.kernel.ops[op].operands.split_first().expect("an assertion has a condition");
        let condition = self.get(*condition);
        let (holds, fails) = (self.f.new_label(), self.f.new_label());
        let unlikely = self.module.cold_node();
        let arguments: Vec<_> = arguments.iter().take(MAX_ARGUMENTS).map(|&value| self.get(value)).collect();
        if condition.lanes == 1 {
            // Some lane runs, or this would not.
            self.f.terminate(format_args!(
                "br i1 {condition}, label %{holds}, label %{fails}, !prof {unlikely}"
            ));
            self.f.begin(fails);
            let first: Vec<_> = arguments.iter().map(|&value| self.first_running(value)).collect();
            self.fail(op, &first);
        } else {
            let broken = self.not(condition);
            let broken = self.narrowed(broken);
            let any = self.any_lane(broken);
            let none = self.not(any);
            self.f.terminate(format_args!("br i1 {none}, label %{holds}, label %{fails}, !prof {unlikely}"));
            self.f.begin(fails);
            let lane = self.first_lane(broken);
            let first: Vec<_> = arguments.iter().map(|&value| self.lane_at(value, lane)).collect();
            self.fail(op, &first);
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

    /// The task gives up at this op.
    pub(crate) fn fail(&mut self, op: Op, arguments: &[Val]) {
        let (lowering, site) = (self.lowering, self.facts.sites.number(op));
        lowering.fail(self, site, arguments);
    }

    /// At the back edge of a loop that may run for long: returns if the launch should stop, unless the function runs to its end in any case.
    pub(crate) fn poll_cancel(&mut self) {
        let lowering = self.lowering;
        if !self.is_whole {
            lowering.poll_cancel(self);
        }
    }
}
