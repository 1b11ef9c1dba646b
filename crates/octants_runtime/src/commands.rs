//! A launch as a list of commands, lowered from the plan's schedule once, when the code is loaded.
//!
//! What is known of all launches is decided here: in which order the device is told of tasks, where the host waits and for which value, what the
//! launch's scratch and report hold and where. Who runs a list (`run`) allocates that memory, adds arguments, and decides what only a launch can
//! tell: whether the branches of a fork overlap.
//!
//! * **A list holds no address and no argument.** It names memory of the launch by its place in the scratch or the report, and arguments by their
//!   parameters: bounds are those of the plan's tasks, and the block of arguments goes with each task by value. So one list serves all launches of a
//!   version at once, and a graph that a device makes of it is updated by evaluating the bounds again and giving it another block.
//! * **From the first command to the last, on one stream, is always a right order.** Forks and joins only say what may overlap.
//! * What a list waits for, nobody but the host can do: a device replays what stands between two waits.

mod text;

use std::ops::Range;

use octants_hal::{Cancel, Capabilities, DEVICE_COUNTER_BYTES, FaultRecord, Function};
use octants_ir::plan::{Plan, Schedule, Task, Work};

/// The commands of one version's launches, and the memory that they name.
#[derive(Default)]
pub(crate) struct CommandList {
    pub commands: Vec<Command>,
    pub scratch: ScratchLayout,
    /// None where a launch has nothing to tell the host.
    pub report: Option<ReportLayout>,
}

pub(crate) enum Command {
    /// Zeroes all of the scratch.
    FillScratch,
    Launch(TaskLaunch),
    Wait(Value),
    /// The commands up to its end are those of branches, one branch after another.
    Fork(Fork),
}

/// A task, with the launch's block of arguments.
pub(crate) struct TaskLaunch {
    /// Its number in the plan, which has its bounds.
    pub task: usize,
    pub function: Function,
    /// How many points it runs at once.
    pub lanes: u32,
    pub bounds: BoundSource,
}

/// Who evaluates the bounds of a task, from what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BoundSource {
    /// The host, from arguments alone.
    Arguments,
    /// The host, from arguments and temporaries, which it has waited for.
    Temps,
    /// The device, from temporaries where they lie; the host does where all before the task is over.
    Device,
}

/// What the host waits for, in the order of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    /// Temporaries, from which it evaluates the bounds of the next launch.
    Temps,
    /// Whether a check has failed: then nothing more is begun.
    Faults,
}

/// What may run at the same time.
pub(crate) struct Fork {
    pub branches: Vec<BranchCommands>,
    /// The command behind those of the branches, which are joined before it.
    pub end: usize,
}

/// One branch of a fork.
pub(crate) struct BranchCommands {
    /// Less a wait for faults at the end, which is for who runs branches in order: a join looks at those of all branches.
    pub commands: Range<usize>,
    /// As [`Branch::work`](octants_ir::plan::Branch::work).
    pub work: Option<Vec<Work>>,
}

/// Memory of the device that the tasks of a launch share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ScratchLayout {
    /// Bytes of temporaries, which come first.
    pub temps: usize,
    /// Bytes behind them where the device counts prints.
    pub counters: usize,
}

impl ScratchLayout {
    pub fn bytes(self) -> usize {
        self.temps + self.counters
    }
}

/// Memory that host and device see, through which a launch reports. It begins with a record of faults for each branch that runs at the same time;
/// all parts are multiples of eight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReportLayout {
    /// Where a request to end lies, for work that may outlive the caller's own.
    pub cancel_at: usize,
    pub results_at: usize,
    /// All of it, but for the ring that the device prints through, which follows if somebody takes the prints.
    pub bytes: usize,
}

impl CommandList {
    /// `functions` are those of the plan's tasks, each with how many points it runs at once.
    ///
    /// # Panics
    /// If a task of the schedule has no function.
    pub fn lower(plan: &Plan, functions: &[(Function, u32)], capabilities: Capabilities) -> Self {
        // A device that is the host writes prints to their queue itself.
        let counts_prints = plan.uses.output && !capabilities.has(Capabilities::HOST_MEMORY);
        let scratch = ScratchLayout {
            temps: plan.temps.bytes as usize,
            counters: if counts_prints { DEVICE_COUNTER_BYTES } else { 0 },
        };
        let mut lowering = Lowering {
            plan,
            functions,
            capabilities,
            looks_for_faults: plan.sites.can_fail() && !capabilities.has(Capabilities::STOPS_AT_FAULT),
            commands: Vec::new(),
            records: 1,
            is_in_branch: false,
        };
        if scratch.bytes() > 0 {
            lowering.commands.push(Command::FillScratch);
        }
        lowering.schedule(&plan.schedule);
        let Lowering { commands, records, .. } = lowering;
        let results = plan.results.bytes as usize;
        let reports = !plan.sites.is_empty() || results > 0;
        Self { commands, scratch, report: reports.then(|| ReportLayout::new(records, results)) }
    }
}

impl ReportLayout {
    fn new(records: usize, results: usize) -> Self {
        let cancel_at = records * size_of::<FaultRecord>();
        let results_at = cancel_at + size_of::<Cancel>();
        Self { cancel_at, results_at, bytes: results_at + results }
    }
}

struct Lowering<'a> {
    plan: &'a Plan,
    functions: &'a [(Function, u32)],
    capabilities: Capabilities,
    /// Whether the host looks for a failure after each task.
    looks_for_faults: bool,
    commands: Vec<Command>,
    /// How many records of faults there are: one for each branch of the widest fork.
    records: usize,
    is_in_branch: bool,
}

impl Lowering<'_> {
    fn schedule(&mut self, node: &Schedule) {
        match node {
            Schedule::Task(task) => self.task(*task),
            Schedule::Seq(nodes) => nodes.iter().for_each(|node| self.schedule(node)),
            // What a branch forks runs in order, on the branch's stream.
            Schedule::Fork(branches)
                if self.is_in_branch || !self.capabilities.has(Capabilities::STREAMS) =>
            {
                for branch in branches {
                    self.schedule(&branch.schedule);
                }
            }
            Schedule::Fork(branches) => {
                self.records = self.records.max(branches.len());
                let at = self.commands.len();
                self.commands.push(Command::Fork(Fork { branches: Vec::new(), end: at }));
                self.is_in_branch = true;
                let branches = branches.iter().map(|branch| BranchCommands {
                    commands: self.branch(&branch.schedule),
                    work: branch.work.clone(),
                });
                let branches = branches.collect();
                self.is_in_branch = false;
                self.commands[at] = Command::Fork(Fork { branches, end: self.commands.len() });
            }
        }
    }

    fn branch(&mut self, schedule: &Schedule) -> Range<usize> {
        let begin = self.commands.len();
        self.schedule(schedule);
        let end = self.commands.len();
        let looks_last = matches!(self.commands[begin..], [.., Command::Wait(Value::Faults)]);
        begin..if looks_last { end - 1 } else { end }
    }

    fn task(&mut self, number: usize) {
        let bounds = self.bounds(&self.plan.tasks[number]);
        if bounds == BoundSource::Temps {
            self.commands.push(Command::Wait(Value::Temps));
        }
        let (function, lanes) = self.functions[number];
        self.commands.push(Command::Launch(TaskLaunch { task: number, function, lanes, bounds }));
        if self.looks_for_faults {
            self.commands.push(Command::Wait(Value::Faults));
        }
    }

    fn bounds(&self, task: &Task) -> BoundSource {
        if !task.needs_temps() {
            BoundSource::Arguments
        } else if task.has_plain_bounds() && self.capabilities.has(Capabilities::DEVICE_BOUNDS) {
            BoundSource::Device
        } else {
            BoundSource::Temps
        }
    }
}
