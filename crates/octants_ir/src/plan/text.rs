//! A plan as text, for tests and dumps. It is not read back: a plan follows from its kernel.

use std::fmt::{self, Display, Write};

use super::{ArgKind, Bound, Copied, Plan, RunTime, Schedule, Task, Work};
use crate::types::{Data, Type};

/// One line for each block of memory, then the schedule with its tasks.
pub fn print(plan: &Plan) -> String {
    let mut out = "plan {\n".to_owned();
    let slots = plan.args.slots.iter().map(|slot| match slot.kind {
        ArgKind::Data(data) => (data.to_string(), slot.offset),
        ArgKind::Array(array) => (Type::Array(array).to_string(), slot.offset),
    });
    block(&mut out, "args", plan.args.bytes, slots.collect());
    let data = |data: Data, offset: u32| (data.to_string(), offset);
    let temps = plan.temps.slots.iter().map(|slot| data(slot.data, slot.offset));
    block(&mut out, "temps", plan.temps.bytes, temps.collect());
    let results = plan.results.slots.iter().map(|slot| data(slot.data, slot.offset));
    block(&mut out, "results", plan.results.bytes, results.collect());
    facts(&mut out, plan);
    match &plan.schedule {
        Schedule::Seq(nodes) => sequence(&mut out, plan, nodes, 1),
        other => schedule(&mut out, plan, other, 1),
    }
    out += "}\n";
    out
}

fn block(out: &mut String, name: &str, bytes: u32, slots: Vec<(String, u32)>) {
    if !slots.is_empty() {
        let slots: Vec<_> = slots.into_iter().map(|(ty, offset)| format!("{ty} at {offset}")).collect();
        line(out, 1, format_args!("{name} {bytes}: {}", slots.join(", ")));
    }
}

fn facts(out: &mut String, plan: &Plan) {
    for (param, access) in plan.access.iter().enumerate() {
        let words = [(access.read, "read"), (access.written, "written")];
        let words: Vec<_> = words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
        if !words.is_empty() {
            line(out, 1, format_args!("arg {param} is {}", words.join(" and ")));
        }
    }
    if plan.needs_noalias {
        line(out, 1, format_args!("needs noalias"));
    }
    if plan.uses.output {
        line(out, 1, format_args!("prints"));
    }
    if plan.uses.key {
        line(out, 1, format_args!("reads the launch key"));
    }
    if let RunTime::Bounded { serial_cost } = plan.run_time {
        line(out, 1, format_args!("serial cost {serial_cost}"));
    }
}

fn line(out: &mut String, depth: usize, text: fmt::Arguments<'_>) {
    writeln!(out, "{:1$}{text}", "", 2 * depth).expect("a String takes all");
}

fn sequence(out: &mut String, plan: &Plan, nodes: &[Schedule], depth: usize) {
    for node in nodes {
        schedule(out, plan, node, depth);
    }
}

fn schedule(out: &mut String, plan: &Plan, node: &Schedule, depth: usize) {
    match node {
        Schedule::Task(number) => match plan.tasks.get(*number) {
            Some(task) => line(out, depth, format_args!("t{number}: {}", TaskText(task))),
            None => line(out, depth, format_args!("t{number}: missing")),
        },
        Schedule::Seq(nodes) => {
            line(out, depth, format_args!("seq {{"));
            sequence(out, plan, nodes, depth + 1);
            line(out, depth, format_args!("}}"));
        }
        Schedule::Fork(branches) => {
            for (number, branch) in branches.iter().enumerate() {
                line(out, depth, format_args!("{}", if number == 0 { "fork {" } else { "} and {" }));
                line(out, depth + 1, format_args!("work {}", WorkText(branch.work.as_deref())));
                match &branch.schedule {
                    Schedule::Seq(nodes) => sequence(out, plan, nodes, depth + 1),
                    other => schedule(out, plan, other, depth + 1),
                }
            }
            line(out, depth, format_args!("}}"));
        }
    }
}

struct WorkText<'a>(Option<&'a [Work]>);

impl Display for WorkText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(tasks) = self.0 else { return f.write_str("unknown") };
        for (number, task) in tasks.iter().enumerate() {
            f.write_str(if number == 0 { "" } else { ", then " })?;
            for (lo, hi) in &task.axes {
                write!(f, "({lo}..{hi}) of ")?;
            }
            for (number, (instructions, loops)) in task.instructions.iter().enumerate() {
                write!(f, "{}{instructions}", if number == 0 { "" } else { " + " })?;
                for (lo, hi) in loops {
                    write!(f, " * ({lo}..{hi})")?;
                }
            }
        }
        Ok(())
    }
}

struct TaskText<'a>(&'a Task);

impl Display for TaskText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Task::Range { axes, max_threads, block_dim, name, cost, multiple, copied } = self.0 else {
            return f.write_str("serial");
        };
        let axes: Vec<_> = axes.iter().map(|(lo, hi)| format!("{lo}..{hi}")).collect();
        write!(f, "range ({}) cost {cost}", axes.join(", "))?;
        if let Some(threads) = max_threads {
            write!(f, " max_threads {threads}")?;
        }
        if let Some(block) = block_dim {
            write!(f, " block_dim {block}")?;
        }
        if let Some(multiple) = multiple {
            write!(f, " multiple {multiple}")?;
        }
        if let Some(name) = name {
            write!(f, " name {name:?}")?;
        }
        for Copied { param, scalar, updates, .. } in copied {
            write!(f, " private arg {param} of {scalar} updates {updates}")?;
        }
        Ok(())
    }
}

impl Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Const(value) => write!(f, "{value}"),
            Self::Param(param) => write!(f, "arg {param}"),
            Self::Extent { param, axis } => write!(f, "extent {axis} of arg {param}"),
            Self::Part { offset, ty } => write!(f, "{ty} at {offset} of args"),
            Self::Temp(temp) => write!(f, "temp {temp}"),
            Self::Arith { op, ty, a, b } => write!(f, "{}.{ty}({a}, {b})", op.name()),
            Self::Cast { to, value } => write!(f, "cast.{to}({value})"),
        }
    }
}
