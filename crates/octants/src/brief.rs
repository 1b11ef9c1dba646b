//! Whether a launch is over so soon that nobody needs to be let in meanwhile.
//!
//! A host language with a lock gives it away while a kernel runs. For a launch of a microsecond that costs more than it gives.

use octants_ir::plan::{Plan, Step};
use octants_ir::{Kernel, Op, OpKind};
use octants_passes::analysis::cost;

/// About this many instructions are brief: a few microseconds of one thread.
const BRIEF: u64 = 10_000;

/// What is known of a kernel's running time before its launch.
pub(crate) enum Running {
    /// Some task may run for any time.
    Unknown,
    /// The tasks outside of parallel loops run for this many instructions; every loop's bounds are known at launch.
    Bounded { outside: u64 },
}

impl Running {
    pub fn of(kernel: &Kernel, plan: &Plan) -> Self {
        let mut outside = 0_u64;
        for step in &plan.steps {
            let op = match step {
                Step::Serial { op, .. } | Step::Range { op, .. } => *op,
            };
            if !is_bounded(kernel, op) {
                return Self::Unknown;
            }
            match step {
                Step::Serial { .. } => {
                    let regions = &kernel.ops[op].regions;
                    outside += regions.iter().map(|&region| u64::from(cost(kernel, region))).sum::<u64>();
                }
                Step::Range { axes, .. } => {
                    if axes.iter().any(|(lo, hi)| lo.needs_temps() || hi.needs_temps()) {
                        return Self::Unknown;
                    }
                }
            }
        }
        Self::Bounded { outside }
    }

    pub fn is_brief(&self, plan: &Plan, args: &[u8]) -> bool {
        let Self::Bounded { outside } = self else { return false };
        let mut total = *outside;
        for step in &plan.steps {
            let Step::Range { axes, cost, .. } = step else { continue };
            let mut points = 1_u64;
            for (lo, hi) in axes {
                let extent = hi.evaluate(plan, args, &[]).saturating_sub(lo.evaluate(plan, args, &[]));
                points = points.saturating_mul(u64::try_from(extent).unwrap_or(0));
            }
            total = total.saturating_add(points.saturating_mul(u64::from(*cost).max(1)));
        }
        total <= BRIEF
    }
}

/// Whether nothing inside runs for a time that is not known while compiling.
fn is_bounded(kernel: &Kernel, op: Op) -> bool {
    let data = &kernel.ops[op];
    let unbounded = match &data.kind {
        OpKind::While | OpKind::Call(_) | OpKind::Print(_) => true,
        OpKind::For => data.operands.iter().take(2).any(|&bound| kernel.as_const(bound).is_none()),
        _ => false,
    };
    !unbounded
        && data
            .regions
            .iter()
            .all(|&region| kernel.regions[region].ops.iter().all(|&inner| is_bounded(kernel, inner)))
}
