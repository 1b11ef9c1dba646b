//! How many instructions the tasks of a branch run, in what a launch knows: to see whether the branch is worth a stream of its own.
//!
//! Loops count as often as they go round, which must follow from arguments and extents. What may run for any time is not guessed: a long
//! serial loop that is taken for a short one would lose all the overlap that its author asked for.

use octants_ir::ops::{Effects, Regions};
use octants_ir::plan::Work;
use octants_ir::{Bound, Kernel, Region, Value};

use super::cost::own_cost;
use crate::split_tasks::launch::host_computes;

/// A loop's bound that takes more ops than this is not evaluated by the launch. Chosen, not measured: usual bounds take one to three.
const MAX_BOUND_OPS: u32 = 32;

type Loops = Vec<(Bound, Bound)>;

/// The work of the tasks that stand in a branch; `None` if a launch cannot tell.
pub fn work_of(kernel: &Kernel, branch: Region, bound: &dyn Fn(Value) -> Bound) -> Option<Vec<Work>> {
    let is_task = |op| kernel.ops[op].kind.info().regions == Regions::Task;
    let tasks = kernel.regions[branch].ops.iter().filter(|&&op| is_task(op));
    let work = tasks.map(|&op| {
        let (mut axes, mut max_threads) = (Vec::new(), None);
        if let Some(parallel) = kernel.parallel_loop(op) {
            for (lo, hi) in parallel.bounds() {
                axes.push(range(kernel, lo, hi, bound)?);
            }
            max_threads = parallel.attributes.max_threads;
        }
        let mut instructions = Vec::new();
        for &region in &kernel.ops[op].regions {
            count(kernel, region, &Vec::new(), bound, &mut instructions)?;
        }
        Some(Work { axes, max_threads, instructions })
    });
    work.collect()
}

fn range(kernel: &Kernel, lo: Value, hi: Value, bound: &dyn Fn(Value) -> Bound) -> Option<(Bound, Bound)> {
    let is_known =
        |value| is_small(kernel, value, &mut MAX_BOUND_OPS.clone()) && host_computes(kernel, value);
    (is_known(lo) && is_known(hi)).then(|| (bound(lo), bound(hi)))
}

/// Whether a value is computed by few ops, counting each as often as it is used.
fn is_small(kernel: &Kernel, value: Value, left: &mut u32) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    kernel.def(value).is_none_or(|op| op.operands.iter().all(|&operand| is_small(kernel, operand, left)))
}

/// Appends the instructions of a region that stands in these loops.
fn count(
    kernel: &Kernel,
    region: Region,
    loops: &Loops,
    bound: &dyn Fn(Value) -> Bound,
    found: &mut Vec<(u32, Loops)>,
) -> Option<()> {
    let mut own = 0_u32;
    for &op in &kernel.regions[region].ops {
        let data = &kernel.ops[op];
        match (&data.kind, &data.operands[..]) {
            (kind, _) if kind.effects().contains(Effects::UNBOUNDED) => return None,
            (kind, &[lo, hi, ..]) if kind.is_counted_loop() => {
                let mut inner = loops.clone();
                inner.push(range(kernel, lo, hi, bound)?);
                for &region in &data.regions {
                    count(kernel, region, &inner, bound, found)?;
                }
            }
            // Either side may be the one that runs.
            _ => {
                own = own.saturating_add(if data.regions.is_empty() { own_cost(kernel, op) } else { 1 });
                for &region in &data.regions {
                    count(kernel, region, loops, bound, found)?;
                }
            }
        }
    }
    if own > 0 {
        found.push((own, loops.clone()));
    }
    Some(())
}
