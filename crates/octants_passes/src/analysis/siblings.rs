//! What the other branches of a fork do with arrays: they may do it at any time. A pass that makes a plain access of an update asks here first.

use octants_ir::rewrite::walk;
use octants_ir::{Kernel, Op, OpKind, Region, Type, Value};

/// For each branch of a fork the arrays that the others refer to, sorted.
pub fn arrays_of_siblings(kernel: &Kernel, fork: Op) -> Vec<Vec<Value>> {
    let touched: Vec<_> = kernel.ops[fork].regions.iter().map(|&branch| arrays_in(kernel, branch)).collect();
    let elsewhere = |branch| {
        let others = touched.iter().enumerate().filter(|&(other, _)| other != branch);
        let mut arrays: Vec<Value> = others.flat_map(|(_, arrays)| arrays.iter().copied()).collect();
        arrays.sort_unstable();
        arrays.dedup();
        arrays
    };
    (0..touched.len()).map(elsewhere).collect()
}

/// The arrays that branches beside this one refer to, sorted; none beside the kernel's body.
pub fn arrays_beside(kernel: &Kernel, branch: Region) -> Vec<Value> {
    let is_fork = |op: &&Op| kernel.ops[**op].regions.contains(&branch);
    let fork = kernel.regions[kernel.body].ops.iter().find(is_fork).copied();
    let forked = fork.filter(|&fork| kernel.ops[fork].kind == OpKind::Fork);
    let position = |fork: Op| kernel.ops[fork].regions.iter().position(|&region| region == branch);
    forked
        .and_then(|fork| arrays_of_siblings(kernel, fork).into_iter().nth(position(fork)?))
        .unwrap_or_default()
}

fn arrays_in(kernel: &Kernel, region: Region) -> Vec<Value> {
    let mut arrays = Vec::new();
    walk(kernel, region, &mut |op| {
        let operands = kernel.ops[op].operands.iter().copied();
        arrays.extend(operands.filter(|&operand| matches!(kernel.ty(operand), Type::Array(_))));
    });
    arrays.sort_unstable();
    arrays.dedup();
    arrays
}
