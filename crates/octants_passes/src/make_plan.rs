//! From a kernel in its tasks phase to what a launch does with it.

use octants_ir::ops::{ConvertOp, Effects};
use octants_ir::plan::part_of_param;
use octants_ir::{
    ArgLayout, Bound, Branch, Const, Copied, Data, Kernel, LaunchUses, Op, OpKind, Plan, Region,
    ResultLayout, RunTime, Schedule, SiteScope, SiteTable, Task, TempLayout, Value,
};

use crate::analysis::{array_access, arrays_of_siblings, cost, sums_of, work_of};
use crate::assumptions::Assumptions;
use crate::split_tasks::launch::as_division;

/// # Panics
/// If the kernel is not in the tasks phase.
pub fn make_plan(kernel: &Kernel, assumptions: Assumptions) -> Plan {
    let (args, temps) = (ArgLayout::of(kernel), TempLayout::of(kernel));
    let mut tasks = Vec::new();
    for op in kernel.tasks() {
        let data = &kernel.ops[op];
        match &data.kind {
            OpKind::Serial => tasks.push(Task::Serial),
            OpKind::ParallelFor(attributes) => {
                let parallel = kernel.parallel_loop(op).expect("the kind says so");
                let bound = |value| bound(kernel, &args, value);
                let copies = assumptions.copies && assumptions.noalias && attributes.max_threads != Some(1);
                tasks.push(Task::Range {
                    axes: parallel.bounds().map(|(lo, hi)| (bound(lo), bound(hi))).collect(),
                    max_threads: attributes.max_threads,
                    block_dim: attributes.block_dim,
                    name: attributes.name.clone(),
                    cost: cost(kernel, data.regions[0]).max(1),
                    multiple: kernel.whole_blocks(op),
                    copied: if copies { own_sums(kernel, op, assumptions.exclusive) } else { Vec::new() },
                });
            }
            other => panic!("`{}` is no task", other.name()),
        }
    }
    let access = array_access(kernel);
    let touched = access.iter().filter(|a| a.read || a.written).count();
    let needs_noalias = assumptions.noalias && touched > 1 && access.iter().any(|a| a.written);
    Plan {
        temps,
        results: ResultLayout::of(kernel),
        run_time: run_time(kernel, &tasks),
        sites: SiteTable::of(kernel, SiteScope::Reports),
        schedule: Schedule::Seq(schedule(kernel, &args, kernel.body, &mut 0)),
        args,
        tasks,
        access,
        needs_noalias,
        uses: LaunchUses::of(kernel),
    }
}

/// The arrays that a loop only adds to and that no other branch refers to: copies are added to the array without regard to others.
/// Fields need none where nobody else adds to them.
fn own_sums(kernel: &Kernel, op: Op, exclusive: bool) -> Vec<Copied> {
    let mut sums = sums_of(kernel, op);
    let body = &kernel.regions[kernel.body].ops;
    if exclusive && !kernel.has_branches() {
        sums.retain(|sum| !kernel.is_field(kernel.regions[kernel.body].params[sum.param]));
    }
    for &fork in body.iter().filter(|&&fork| kernel.ops[fork].kind == OpKind::Fork) {
        if sums.is_empty() {
            break;
        }
        for (&branch, elsewhere) in kernel.ops[fork].regions.iter().zip(arrays_of_siblings(kernel, fork)) {
            if kernel.regions[branch].ops.contains(&op) {
                let params = &kernel.regions[kernel.body].params;
                sums.retain(|sum| elsewhere.binary_search(&params[sum.param]).is_err());
            }
        }
    }
    sums
}

/// The tasks of a body or a branch, which are numbered from `next` on. Branches without tasks are left out, and one that is alone
/// is no branch.
fn schedule(kernel: &Kernel, args: &ArgLayout, region: Region, next: &mut usize) -> Vec<Schedule> {
    let mut nodes = Vec::new();
    for &op in &kernel.regions[region].ops {
        match kernel.ops[op].kind {
            OpKind::Serial | OpKind::ParallelFor(_) => {
                nodes.push(Schedule::Task(*next));
                *next += 1;
            }
            OpKind::Fork => {
                let regions = kernel.ops[op].regions.iter();
                let branches = regions.map(|&branch| (branch, schedule(kernel, args, branch, next)));
                let mut branches: Vec<_> = branches.filter(|(_, nodes)| !nodes.is_empty()).collect();
                if branches.len() == 1 {
                    nodes.append(&mut branches[0].1);
                } else if !branches.is_empty() {
                    let branch = |(region, nodes)| Branch {
                        schedule: Schedule::Seq(nodes),
                        work: work_of(kernel, region, &|value| bound(kernel, args, value)),
                    };
                    nodes.push(Schedule::Fork(branches.into_iter().map(branch).collect()));
                }
            }
            _ => {}
        }
    }
    nodes
}

fn run_time(kernel: &Kernel, tasks: &[Task]) -> RunTime {
    let mut serial_cost = 0_u64;
    for (task, op) in tasks.iter().zip(kernel.tasks()) {
        let bounded = is_bounded(kernel, op);
        match task {
            Task::Serial if bounded => {
                let regions = kernel.ops[op].regions.iter();
                let cost = regions.map(|&region| u64::from(cost(kernel, region))).sum();
                serial_cost = serial_cost.saturating_add(cost);
            }
            Task::Range { .. } if bounded && !task.needs_temps() => {}
            Task::Serial | Task::Range { .. } => return RunTime::Unknown,
        }
    }
    RunTime::Bounded { serial_cost }
}

/// Whether nothing inside runs for a time that is not known while compiling.
fn is_bounded(kernel: &Kernel, op: Op) -> bool {
    let data = &kernel.ops[op];
    let is_open = data.kind.is_counted_loop()
        && data.operands.iter().take(2).any(|&bound| kernel.as_const(bound).is_none());
    !is_open
        && !data.kind.effects().contains(Effects::UNBOUNDED)
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
