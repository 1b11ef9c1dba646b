//! One task's module: what the task needs of the kernel's top, then its body.

use octants_hal::LaunchShape;
use octants_ir::plan::{Plan, Task};
use octants_ir::rewrite::walk;
use octants_ir::{Kernel, Op, OpKind, SharedLayout, SideTable, ValueDef};

use crate::TaskText;
use crate::emitter::{Emitter, KernelFacts};
use crate::lowering::{IterationMapping, TargetLowering};
use crate::options::{EmitOptions, Target};

pub(crate) fn emit(
    kernel: &Kernel,
    facts: &KernelFacts,
    plan: &Plan,
    number: usize,
    options: &EmitOptions,
) -> TaskText {
    let lowering = lowering_of(&options.target);
    let mut e = Emitter::new(kernel, facts, plan, options, lowering);
    let task = facts.tasks[number];
    if let Some(parallel) = kernel.parallel_loop(task).filter(|_| kernel.cooperates(task)) {
        e.block_memory = SharedLayout::of(kernel, parallel.body, parallel.attributes.block_dim);
    }
    let with_bounds = e.lowering.computes_bounds(&plan.tasks[number]);
    for op in launch_ops(kernel, task, with_bounds) {
        e.op(op);
    }
    let IterationMapping { lanes, straight, shape: mut launch } = match &plan.tasks[number] {
        Task::Serial => {
            e.lowering.serial(&mut e, kernel.ops[task].regions[0]);
            IterationMapping {
                lanes: 1,
                straight: false,
                shape: LaunchShape { block: 1, ..LaunchShape::default() },
            }
        }
        Task::Range { .. } => e.lowering.range(&mut e, task),
    };
    e.finish_blocks();
    e.finish_functions();
    launch.deep_stack = e.limit.is_some();
    launch.shared_bytes += u32::try_from(e.block_memory.bytes).unwrap_or(u32::MAX);

    let symbol = task_symbol(&kernel.name, number);
    let Emitter { f, mut module, scopes, .. } = e;
    scopes.finish(&mut module);
    lowering.annotate(&mut module, &symbol, launch);
    let function = format!("{} {{\n{}}}\n", lowering.head(plan, &plan.tasks[number], &symbol), f.finish());
    let text = module.finish(&options.triple, &options.data_layout, &function);
    // Scalar code that was made in little time takes twice as long, and the ends of a stencil's rows are a twentieth of its gradient.
    let brief = lanes > 1 && kernel.parallel_loop(task).is_some_and(|parallel| parallel.attributes.brief);
    TaskText { symbol, text, lanes, straight, brief, shape: launch }
}

fn lowering_of(target: &Target) -> &dyn TargetLowering {
    match target {
        Target::Cpu(cpu) => cpu,
        Target::Gpu(gpu) => gpu,
    }
}

/// The pure ops and loads of temps outside of tasks that a task's body and the places of its reductions are computed from, in
/// order.
fn launch_ops(kernel: &Kernel, task: Op, with_bounds: bool) -> Vec<Op> {
    let mut needed = SideTable::new(false);
    let mark = |needed: &mut SideTable<Op, bool>, op: Op| {
        for &operand in &kernel.ops[op].operands {
            if let ValueDef::Result(def, _) = kernel.values[operand].def {
                needed.set(def, true);
            }
        }
    };
    for &region in &kernel.ops[task].regions {
        walk(kernel, region, &mut |op| mark(&mut needed, op));
    }
    if let Some(parallel) = kernel.parallel_loop(task) {
        // The bounds come with the frame, unless they are computed where they lie.
        let bounds = if with_bounds { parallel.bound_operands() } else { &[] };
        for &operand in bounds.iter().chain(parallel.place_operands()) {
            if let ValueDef::Result(def, _) = kernel.values[operand].def {
                needed.set(def, true);
            }
        }
    }
    let mut ops = Vec::new();
    for op in kernel.top_ops().into_iter().rev() {
        let kind = &kernel.ops[op].kind;
        if needed[op] && (kind.is_pure() || *kind == OpKind::Load) {
            mark(&mut needed, op);
            ops.push(op);
        }
    }
    ops.reverse();
    ops
}

/// The name of a task's function: ASCII letters, digits and underscores, whatever the kernel's name is.
fn task_symbol(kernel: &str, task: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let kernel: String = kernel.chars().map(plain).collect();
    format!("{kernel}_t{task}")
}
