//! Whether a kernel does the same when it runs again.

use octants_ir::ops::Effects;
use octants_ir::rewrite::{Parents, use_counts, walk_all};
use octants_ir::{Kernel, Op, OpKind};

/// What makes a launch differ from another one with the same arguments and contents of arrays, but for random numbers and the order in which sums round.
pub fn differs_each_time(kernel: &Kernel) -> Option<&'static str> {
    let (parents, counts) = (Parents::new(kernel), use_counts(kernel));
    // Iterations come in any order, and functions may be called in them.
    let is_in_order = |op: Op| {
        let mut region = parents.region(op);
        while let Some(inside) = region {
            match parents.op(inside) {
                Some(outer) if matches!(kernel.ops[outer].kind, OpKind::ParallelFor(_)) => return false,
                Some(outer) => region = parents.region(outer),
                None => return inside == kernel.body,
            }
        }
        false
    };
    let mut found = None;
    walk_all(kernel, &mut |op| {
        let data = &kernel.ops[op];
        let why = match data.kind {
            // What a function does stands in its own ops.
            OpKind::Call(_) => None,
            OpKind::Atomic(_) | OpKind::AtomicCas
                if data.results.iter().any(|&result| counts[result] > 0) && !is_in_order(op) =>
            {
                Some("uses what atomic updates found, by the order of its iterations,")
            }
            ref kind
                if kind.effects().contains(Effects::NONDETERMINISTIC) && kernel.cell_access(op).is_none() =>
            {
                Some("reads the clock")
            }
            _ => None,
        };
        found = found.or(why);
    });
    found
}
