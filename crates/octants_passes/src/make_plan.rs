//! From a kernel in its tasks phase to what a launch does with it.

use octants_ir::ops::ConvertOp;
use octants_ir::plan::part_of_param;
use octants_ir::{
    ArgLayout, Bound, Const, Data, Kernel, LaunchUses, Op, OpKind, Plan, ResultLayout, RunTime, SiteScope,
    SiteTable, Step, TempLayout, Value,
};

use crate::analysis::{array_access, cost, sums_of};
use crate::manager::Assumptions;
use crate::split_tasks::launch::as_division;

/// # Panics
/// If the kernel is not in the tasks phase.
pub fn make_plan(kernel: &Kernel, assumptions: Assumptions) -> Plan {
    let (args, temps) = (ArgLayout::of(kernel), TempLayout::of(kernel));
    let mut steps = Vec::new();
    for (task, op) in kernel.tasks().enumerate() {
        let data = &kernel.ops[op];
        match &data.kind {
            OpKind::Serial => steps.push(Step::Serial { task }),
            OpKind::ParallelFor(attributes) => {
                let parallel = kernel.parallel_loop(op).expect("the kind says so");
                let bound = |value| bound(kernel, &args, value);
                let copies = assumptions.copies && assumptions.noalias && attributes.max_threads != Some(1);
                steps.push(Step::Range {
                    task,
                    axes: parallel.bounds().map(|(lo, hi)| (bound(lo), bound(hi))).collect(),
                    max_threads: attributes.max_threads,
                    block_dim: attributes.block_dim,
                    name: attributes.name.clone(),
                    cost: cost(kernel, data.regions[0]).max(1),
                    copied: if copies { sums_of(kernel, op) } else { Vec::new() },
                });
            }
            other => panic!("`{}` is no task", other.name()),
        }
    }
    let access = array_access(kernel);
    let touched = access.iter().filter(|a| a.read || a.written).count();
    let needs_noalias = assumptions.noalias && touched > 1 && access.iter().any(|a| a.written);
    Plan {
        args,
        temps,
        results: ResultLayout::of(kernel),
        run_time: run_time(kernel, &steps),
        sites: SiteTable::of(kernel, SiteScope::Reports),
        steps,
        access,
        needs_noalias,
        uses: LaunchUses::of(kernel),
    }
}

fn run_time(kernel: &Kernel, steps: &[Step]) -> RunTime {
    let mut serial_cost = 0_u64;
    for (step, op) in steps.iter().zip(kernel.tasks()) {
        let bounded = is_bounded(kernel, op);
        match step {
            Step::Serial { .. } if bounded => {
                let regions = kernel.ops[op].regions.iter();
                let cost = regions.map(|&region| u64::from(cost(kernel, region))).sum();
                serial_cost = serial_cost.saturating_add(cost);
            }
            Step::Range { axes, .. }
                if bounded && !axes.iter().any(|(lo, hi)| lo.needs_temps() || hi.needs_temps()) => {}
            Step::Serial { .. } | Step::Range { .. } => return RunTime::Unknown,
        }
    }
    RunTime::Bounded { serial_cost }
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

fn bound(kernel: &Kernel, args: &ArgLayout, value: Value) -> Bound {
    if let Some(param) = kernel.as_param(value) {
        return Bound::Param(param);
    }
    if let Some((param, offset, Data::Scalar(ty))) = part_of_param(kernel, value) {
        return Bound::Part { offset: args.slots[param].offset + offset, ty };
    }
    let boxed = |value| Box::new(bound(kernel, args, value));
    let ty = kernel.ty(value).scalar().expect("a bound is a scalar");
    let op = kernel.def(value).expect("a bound is a parameter or an op's result");
    if let Some((division, dividend, divisor)) = as_division(kernel, value) {
        return Bound::Arith { op: division, ty, a: boxed(dividend), b: Box::new(Bound::Const(divisor)) };
    }
    match (&op.kind, &op.operands[..]) {
        (OpKind::Const(c), _) => Bound::Const(Const::as_i128(*c).map_or(0, |c| c as i64)),
        (OpKind::Extent(axis), &[array]) => {
            let param = kernel.as_param(array).expect("an array is a parameter");
            Bound::Extent { param, axis: *axis }
        }
        (OpKind::Load, &[temp]) => {
            let slot = kernel.temps().position(|place| place == temp);
            Bound::Temp(slot.expect("a bound is loaded from a temporary"))
        }
        (OpKind::Arith(op), &[a]) => Bound::Arith { op: *op, ty, a: boxed(a), b: Box::new(Bound::Const(0)) },
        (OpKind::Arith(op), &[a, b]) => Bound::Arith { op: *op, ty, a: boxed(a), b: boxed(b) },
        (OpKind::Convert(ConvertOp::Cast), &[a]) => Bound::Cast { to: ty, value: boxed(a) },
        (other, _) => panic!("`{}` is no bound that the host computes", other.name()),
    }
}
