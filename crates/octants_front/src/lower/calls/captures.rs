//! What functions use of the kernel around them: arrays, fields and members of arguments become parameters of their own.
//!
//! A function's body is lowered as if the kernel's values were there. Here, when everything is lowered, each function gets those that
//! it uses, or that a function it calls uses, as further parameters, and every call passes them.

use octants_ir::rewrite::{ValueMap, free_values, ops_in, replace_values};
use octants_ir::{Func, Id, Kernel, Op, OpKind, Value};

/// Passes the kernel's values to the functions that use them.
pub(crate) fn pass_captures(kernel: &mut Kernel) {
    let functions: Vec<Func> = (0..kernel.functions.len()).map(Func::from_index).collect();
    let bodies: Vec<_> = functions.iter().map(|&function| kernel.functions[function].body).collect();
    let calls: Vec<Vec<(Op, Func)>> = bodies
        .iter()
        .chain([&kernel.body])
        .map(|&body| ops_in(kernel, body).into_iter().filter_map(|op| call(kernel, op)).collect())
        .collect();
    let mut captured: Vec<Vec<Value>> = bodies.iter().map(|&body| free_values(kernel, body)).collect();
    // Functions may call each other in circles: until nothing is added.
    let mut grew = true;
    while std::mem::take(&mut grew) {
        for at in 0..functions.len() {
            for &(_, callee) in &calls[at] {
                for value in captured[callee.index()].clone() {
                    if !captured[at].contains(&value) {
                        captured[at].push(value);
                        grew = true;
                    }
                }
            }
        }
    }
    for (body, calls) in calls.iter().enumerate() {
        let mut passed = ValueMap::new();
        if let Some(&function) = functions.get(body) {
            for &value in &captured[body] {
                let name = kernel.as_param(value).map(|param| kernel.params[param].name.clone());
                let name = name.unwrap_or_else(|| "captured".to_owned());
                let param = kernel.add_function_param(function, name, kernel.ty(value));
                passed.insert(value, param);
            }
            replace_values(kernel, bodies[body], &passed);
        }
        for &(op, callee) in calls {
            kernel.ops[op].operands.extend(captured[callee.index()].iter().map(|&value| passed.map(value)));
        }
    }
}

fn call(kernel: &Kernel, op: Op) -> Option<(Op, Func)> {
    match kernel.ops[op].kind {
        OpKind::Call(function) => Some((op, function)),
        _ => None,
    }
}
