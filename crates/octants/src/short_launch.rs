//! Whether a launch is so short that the host language keeps its lock meanwhile.
//!
//! A host language with a lock gives it away while a kernel runs. For a launch of a microsecond that costs more than it gives.

use octants_ir::plan::{Plan, RunTime, Task};

/// IR ops that a short launch runs, at most, counted on one thread: a few microseconds if nothing is vectorised. Above it a launch from Python
/// releases the interpreter's lock, which takes 55 ns: 3000 iterations of `a[i] = a[i] * 2 + 1` take 286 ns, 2400 take 213.
const MAX_SHORT_LAUNCH_OPS: u64 = 10_000;

/// Whether a launch with these arguments is over in about the time that it takes to start one.
pub(crate) fn is_short(plan: &Plan, args: &[u8]) -> bool {
    let RunTime::Bounded { serial_cost } = plan.run_time else { return false };
    let mut total = serial_cost;
    for task in &plan.tasks {
        let Task::Range { axes, cost, .. } = task else { continue };
        let mut points = 1_u64;
        for (lo, hi) in axes {
            let extent = hi.evaluate(plan, args, &[]).saturating_sub(lo.evaluate(plan, args, &[]));
            points = points.saturating_mul(u64::try_from(extent).unwrap_or(0));
        }
        total = total.saturating_add(points.saturating_mul(u64::from(*cost).max(1)));
    }
    total <= MAX_SHORT_LAUNCH_OPS
}
