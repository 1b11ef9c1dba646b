//! A list of commands as text, for tests and whoever debugs a launch.

use std::fmt::{self, Write};

use octants_ir::plan::{Plan, Task};

use super::{BoundSource, Command, CommandList, Fork, TaskLaunch, Value};

impl CommandList {
    /// The memory of a launch, then a line for each command. `plan` is what the list was lowered from.
    pub fn print(&self, plan: &Plan) -> String {
        let mut text = String::new();
        self.write(plan, &mut text).expect("a String takes all");
        text
    }

    fn write(&self, plan: &Plan, out: &mut String) -> fmt::Result {
        let scratch = self.scratch;
        if scratch.bytes() > 0 {
            write!(out, "scratch {}:", scratch.bytes())?;
            write_part(out, "temps", 0, scratch.temps)?;
            write_part(out, "counters of prints", scratch.temps, scratch.counters)?;
            out.push('\n');
        }
        if let Some(report) = self.report {
            write!(out, "report {}:", report.bytes)?;
            write_part(out, "faults", 0, report.cancel_at)?;
            write_part(out, "stop", report.cancel_at, report.results_at - report.cancel_at)?;
            write_part(out, "results", report.results_at, report.bytes - report.results_at)?;
            out.push('\n');
        }
        let mut fork: Option<&Fork> = None;
        for (at, command) in self.commands.iter().enumerate() {
            if fork.is_some_and(|fork| fork.end == at) {
                out.push_str("join\n");
                fork = None;
            }
            let branches = fork.map_or(&[][..], |fork| &fork.branches);
            if let Some(branch) = branches.iter().position(|branch| branch.commands.start == at) {
                writeln!(out, "  branch {branch}:")?;
            }
            out.push_str(if fork.is_some() { "    " } else { "" });
            match command {
                Command::FillScratch => writeln!(out, "fill scratch with 0")?,
                Command::Launch(launch) => write_launch(out, plan, launch)?,
                Command::Wait(Value::Temps) => writeln!(out, "wait for temps")?,
                Command::Wait(Value::Faults) => writeln!(out, "wait for faults")?,
                Command::Fork(begun) => {
                    writeln!(out, "fork {}", begun.branches.len())?;
                    fork = Some(begun);
                }
            }
        }
        if fork.is_some() {
            out.push_str("join\n");
        }
        Ok(())
    }
}

/// A part of a block of memory, unless it is empty.
fn write_part(out: &mut String, name: &str, at: usize, bytes: usize) -> fmt::Result {
    if bytes > 0 { write!(out, " {name} {at}..{}", at + bytes) } else { Ok(()) }
}

fn write_launch(out: &mut String, plan: &Plan, launch: &TaskLaunch) -> fmt::Result {
    write!(out, "launch t{}", launch.task)?;
    match &plan.tasks[launch.task] {
        Task::Serial => out.push_str(" once"),
        Task::Range { axes, .. } => {
            let axes: Vec<_> = axes.iter().map(|(lo, hi)| format!("{lo}..{hi}")).collect();
            write!(out, " over ({})", axes.join(", "))?;
        }
    }
    out.push_str(match launch.bounds {
        BoundSource::Arguments | BoundSource::Temps => "\n",
        BoundSource::Device => ", bounds read by the device\n",
    });
    Ok(())
}
