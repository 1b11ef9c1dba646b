//! What is known of a kernel's functions: which call themselves, and which may give up.

use octants_ir::rewrite::walk;
use octants_ir::{Func, Kernel, OpKind, SideTable};

use crate::ops::loop_length::may_stop;

#[derive(Clone, Copy, Default)]
pub(crate) struct Facts {
    /// It may be running already when it is called: calls of it look at the stack first.
    pub recursive: bool,
    /// It, or something that it calls, is recursive: it is told where the stack ends.
    pub needs_limit: bool,
    /// A call may end with a failure or a request to stop, which the caller passes on.
    pub may_stop: bool,
}

/// The facts of each function.
pub(crate) fn facts(kernel: &Kernel) -> SideTable<Func, Facts> {
    let mut facts = SideTable::new(Facts::default());
    for function in kernel.functions.ids() {
        let reached = reached_from(kernel, function);
        if reached.contains(&function) {
            facts.set(function, Facts { recursive: true, needs_limit: true, may_stop: true });
        }
    }
    for function in kernel.functions.ids() {
        let reached = reached_from(kernel, function);
        let deep = reached.iter().any(|&called| facts[called].recursive);
        let stops = reached.iter().chain([&function]).any(|&called| stops(kernel, called));
        let own = facts.get_mut(function);
        own.needs_limit |= deep;
        own.may_stop |= deep || stops;
    }
    facts
}

fn called_by(kernel: &Kernel, function: Func) -> Vec<Func> {
    let mut called = Vec::new();
    walk(kernel, kernel.functions[function].body, &mut |op| {
        if let OpKind::Call(function) = kernel.ops[op].kind
            && !called.contains(&function)
        {
            called.push(function);
        }
    });
    called
}

/// All that may run because the function was called, but for that call itself.
fn reached_from(kernel: &Kernel, function: Func) -> Vec<Func> {
    let mut reached = called_by(kernel, function);
    let mut next = 0;
    while let Some(&function) = reached.get(next) {
        next += 1;
        for called in called_by(kernel, function) {
            if !reached.contains(&called) {
                reached.push(called);
            }
        }
    }
    reached
}

/// Whether the function's own ops can end the task early.
fn stops(kernel: &Kernel, function: Func) -> bool {
    let mut stops = false;
    let polls = !kernel.functions[function].is_whole;
    walk(kernel, kernel.functions[function].body, &mut |op| {
        stops |= match kernel.ops[op].kind {
            OpKind::While => polls,
            OpKind::For => polls && may_stop(kernel, op),
            // What it calls is asked itself.
            OpKind::Call(_) => false,
            ref kind => kind.may_stop_thread(),
        };
    });
    stops
}
