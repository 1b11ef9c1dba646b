//! Calls of functions. A function that calls itself has a second set of values while the inner call runs.

use octants_ir::rewrite::regions_in;
use octants_ir::{Func, Id, Op, Type, Value};

use crate::datum::Datum;
use crate::machine::Machine;
use crate::trap::{Trap, TrapKind};

/// About where this thread's stack ends now.
#[inline(never)]
pub fn stack_position() -> usize {
    let here = 0_u8;
    std::hint::black_box(&raw const here) as usize
}

impl Machine<'_> {
    pub fn call(&mut self, op: Op, function: Func) -> Result<(), Trap> {
        if self.stack_base.abs_diff(stack_position()) > self.context.stack_bytes {
            return self.trap(op, TrapKind::TooDeep);
        }
        let kernel = self.kernel;
        let body = kernel.functions[function].body;
        let arguments: Vec<(Datum, Option<usize>)> = kernel.ops[op]
            .operands
            .iter()
            .map(|argument| (self.get(*argument).clone(), self.places[argument.index()]))
            .collect();
        let own = self.values_of(function);
        let kept: Vec<_> = own
            .iter()
            .map(|value| (self.values[value.index()].clone(), self.places[value.index()].take()))
            .collect();
        let height = self.cells.len();
        for (&param, (datum, place)) in kernel.regions[body].params.iter().zip(arguments) {
            match kernel.ty(param) {
                Type::Data(_) => self.set(param, datum),
                Type::Array(_) | Type::Local(_) | Type::Temp(_) | Type::Tape(_) => {
                    self.places[param.index()] = place;
                }
            }
        }
        let whole = usize::from(kernel.functions[function].is_whole);
        self.whole_calls += whole;
        let returned = self.region(body, [])?;
        self.whole_calls -= whole;
        self.cells.truncate(height);
        for (value, (datum, place)) in own.into_iter().zip(kept) {
            self.values[value.index()] = datum;
            self.places[value.index()] = place;
        }
        self.set_results(op, returned);
        Ok(())
    }

    /// Everything that a call of the function defines.
    fn values_of(&self, function: Func) -> Vec<Value> {
        let kernel = self.kernel;
        let mut own = Vec::new();
        for region in regions_in(kernel, kernel.functions[function].body) {
            own.extend(&kernel.regions[region].params);
            own.extend(kernel.regions[region].ops.iter().flat_map(|&op| &kernel.ops[op].results));
        }
        own
    }
}
