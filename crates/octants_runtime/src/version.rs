//! A kernel's code under some assumptions, loaded on a device.

use std::sync::{Arc, OnceLock};

use octants_hal::{
    Address, Cancel, DeviceError, Function, FunctionUsage, Image, ImagePart, LaunchShape, Module,
};
use octants_ir::LocData;
use octants_ir::plan::{Plan, Task};

use crate::commands::CommandList;
use crate::context::Context;
use crate::copies::has_copies;
use crate::launch_log::KernelOrigin;

/// What code may take for granted; the launch's guards see to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Assumptions {
    /// No two array arguments overlap, unless both are only read.
    pub noalias: bool,
    /// Copies of arrays that a loop only adds to pay, where the plan has any.
    pub copies: bool,
    /// Nothing else of the device's runs meanwhile, and the launch runs on one thread.
    pub exclusive: bool,
}

impl Assumptions {
    /// What holds of every launch.
    pub const NOTHING: Self = Self { noalias: false, copies: false, exclusive: false };

    /// How many there are.
    pub(crate) const COUNT: usize = 8;

    /// A number below [`Self::COUNT`] that no others have.
    pub(crate) fn number(self) -> usize {
        usize::from(self.noalias) | usize::from(self.copies) << 1 | usize::from(self.exclusive) << 2
    }
}

/// Makes versions of one kernel when a launch first needs them.
pub trait MakeVersion: Send + Sync {
    /// What the maker wants to find again beside the code.
    type Info: Send + Sync;
    type Error;

    /// Compiles. Raising `cancel` may end it early, with an error.
    fn make(&self, assume: Assumptions, cancel: &Cancel) -> Result<Code<Self::Info>, Self::Error>;

    /// Whether the code was kept, or has another form so that it can be: there is another way to make it.
    fn was_kept(&self, _info: &Self::Info) -> bool {
        false
    }

    /// The device refused code that was kept: compiles.
    fn make_anew(&self, assume: Assumptions, cancel: &Cancel) -> Result<Code<Self::Info>, Self::Error> {
        self.make(assume, cancel)
    }

    /// The device refused the code.
    fn refused(&self, error: DeviceError) -> Self::Error;

    /// The code was loaded, in this time.
    fn loaded(&self, info: &mut Self::Info, time: std::time::Duration);
}

/// Compiled code on its way to the device.
pub struct Code<I> {
    pub name: String,
    /// Where the kernel begins.
    pub place: LocData,
    pub plan: Plan,
    /// A function for each task, in the order of the tasks' numbers.
    pub tasks: Vec<TaskCode>,
    pub info: I,
}

pub struct TaskCode {
    pub symbol: String,
    pub bytes: Vec<u8>,
    /// How many points of a range it runs at once; 1 if it does not say.
    pub lanes: u32,
    /// How it deals its points to the threads of a GPU.
    pub shape: LaunchShape,
}

/// Loaded code. Unloaded when dropped.
pub struct Version<I> {
    context: Arc<Context>,
    module: Module,
    /// By task number; and how many points each runs at once.
    functions: Vec<(Function, u32)>,
    /// The functions' names.
    symbols: Vec<String>,
    origin: Arc<KernelOrigin>,
    /// The name as profiles show it: without the functions that it is defined in.
    label: Arc<str>,
    plan: Plan,
    commands: CommandList,
    has_copies: bool,
    /// Where the device sees the record of faults of launches that report late.
    deferred_record: OnceLock<Address>,
    info: I,
}

impl<I> Version<I> {
    /// How many points of a range a task runs at once, at most.
    pub fn most_lanes(&self) -> u32 {
        self.functions.iter().map(|&(_, lanes)| lanes).max().unwrap_or(1)
    }

    /// Whether loops of it have copies of arrays.
    pub(crate) fn has_copies(&self) -> bool {
        self.has_copies
    }

    pub(crate) fn load(context: &Arc<Context>, code: Code<I>) -> Result<Self, DeviceError> {
        let Code { name, place, plan, tasks, info } = code;
        let parts: Vec<_> = tasks
            .iter()
            .map(|task| ImagePart { symbol: &task.symbol, bytes: &task.bytes, shape: task.shape })
            .collect();
        // SAFETY: the maker compiled it for this device.
        let module = unsafe { context.device().load_module(&Image { name: &name, parts: &parts })? };
        let label = name.rsplit_once("<locals>.").map_or(name.as_str(), |(_, label)| label).into();
        let origin = Arc::new(KernelOrigin { name, place });
        let mut version = Self {
            context: Arc::clone(context),
            module,
            functions: Vec::new(),
            symbols: tasks.iter().map(|task| task.symbol.clone()).collect(),
            origin,
            label,
            has_copies: has_copies(&plan),
            plan,
            commands: CommandList::default(),
            deferred_record: OnceLock::new(),
            info,
        };
        for task in &tasks {
            // SAFETY: the module was just loaded.
            let function = unsafe { context.device().function(module, &task.symbol) };
            let Some(function) = function else {
                let message = format!("`{}` does not define `{}`", version.origin.name, task.symbol);
                return Err(DeviceError::BadImage { message });
            };
            version.functions.push((function, task.lanes));
            version.name_task(function);
        }
        let named = version.plan.schedule.tasks().into_iter().map(|task| task + 1).max().unwrap_or(0);
        if named > version.functions.len() {
            let message = format!(
                "`{}` has {named} tasks, but code for {}",
                version.origin.name,
                version.functions.len()
            );
            return Err(DeviceError::BadImage { message });
        }
        let capabilities = context.device().capabilities();
        version.commands = CommandList::lower(&version.plan, &version.functions, capabilities);
        Ok(version)
    }

    /// Tells the profiler what the function that was added last is called: the kernel, the task's number and kind, and the name that the
    /// user gave it.
    fn name_task(&self, function: Function) {
        let profiler = self.context.profiler();
        if !profiler.is_recording() {
            return;
        }
        let number = self.functions.len() - 1;
        let kernel = &self.label;
        let name = match self.plan.tasks.get(number) {
            Some(Task::Range { name: Some(given), .. }) => format!("{kernel}_{number}_range_for_{given}"),
            Some(Task::Range { name: None, .. }) => format!("{kernel}_{number}_range_for"),
            Some(Task::Serial) | None => format!("{kernel}_{number}_serial"),
        };
        profiler.name_task(function, name.into());
    }

    /// What the kernel is called in messages, and where it begins.
    pub(crate) fn origin(&self) -> &Arc<KernelOrigin> {
        &self.origin
    }

    /// The record of faults of all launches that report late.
    pub(crate) fn deferred_record(&self) -> Result<Address, DeviceError> {
        if let Some(&record) = self.deferred_record.get() {
            return Ok(record);
        }
        let record = self.context.deferred_faults().add(&self.origin, &self.plan.sites)?;
        // If two threads made one, the other stays unused.
        Ok(*self.deferred_record.get_or_init(|| record))
    }

    /// The kernel's name in profiles.
    pub(crate) fn label(&self) -> &Arc<str> {
        &self.label
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn info(&self) -> &I {
        &self.info
    }

    pub(crate) fn info_mut(&mut self) -> &mut I {
        &mut self.info
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The name of each task's code, and what it takes of the device, by task number; empty where there is nothing to count.
    pub fn usage(&self) -> Result<Vec<(&str, FunctionUsage)>, DeviceError> {
        let mut list = Vec::new();
        for (symbol, &(function, _)) in self.symbols.iter().zip(&self.functions) {
            // SAFETY: the module is loaded as long as the version is there.
            match unsafe { self.context.device().function_usage(function)? } {
                Some(usage) => list.push((symbol.as_str(), usage)),
                None => return Ok(Vec::new()),
            }
        }
        Ok(list)
    }

    /// What the host tells the device at each launch.
    #[inline]
    pub(crate) fn commands(&self) -> &CommandList {
        &self.commands
    }

    /// Likewise as text, for tests.
    pub fn print_commands(&self) -> String {
        self.commands.print(&self.plan)
    }
}

impl<I> Drop for Version<I> {
    fn drop(&mut self) {
        let functions = self.functions.iter().map(|&(function, _)| function).collect();
        // Loaded by this device, and nobody can launch it any more.
        self.context.retire_module(self.module, functions);
    }
}
