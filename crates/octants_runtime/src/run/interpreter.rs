//! Does what a list of commands says, one after another.

use octants_hal::{Cancel, FaultRecord, Launch, LaunchContext};

use super::RunError;
use super::report::Report;
use super::scratch::Scratch;
use crate::commands::{BoundSource, Command, TaskLaunch, Value};
use crate::domain::{ScratchBounds, device_domain, domain};
use crate::version::Version;

/// Where the launch's memory is, as far as the host looks at it while tasks are handed out.
pub(super) enum Place<'a> {
    Stack {
        temps: *const u8,
        temp_bytes: usize,
        fault: &'a FaultRecord,
    },
    /// Without `checks`, a wait for faults has nothing to look at.
    Device {
        scratch: &'a Scratch<'a>,
        temps: Vec<u8>,
        checks: Option<&'a Report<'a>>,
    },
}

pub(super) struct Run<'a, I> {
    pub version: &'a Version<I>,
    pub context: LaunchContext<'a>,
    /// The caller's request to end; code that may outlive it looks at another, the context's.
    pub cancel: &'a Cancel,
    pub place: Place<'a>,
    pub bounds: ScratchBounds,
}

impl<I> Run<'_, I> {
    /// # Safety
    /// As for [`run`](super::run); the context's memory is there until its stream has passed the launch.
    #[inline]
    pub unsafe fn commands(&mut self) -> Result<(), RunError> {
        let version = self.version;
        let list = &version.commands().commands;
        // Whether the device was told of a task since the host last looked for faults.
        let mut is_unchecked = false;
        let mut at = 0;
        while let Some(command) = list.get(at) {
            at += 1;
            match command {
                // SAFETY: the caller says so, and the list waits for what the host evaluates bounds from.
                Command::Launch(launch) => is_unchecked |= unsafe { self.launch(launch)? },
                Command::Wait(Value::Temps) => self.read_temps()?,
                Command::Wait(Value::Faults) => {
                    if std::mem::take(&mut is_unchecked) {
                        self.look_for_faults()?;
                    }
                }
                Command::FillScratch => self.fill_scratch()?,
                Command::Fork(fork) => {
                    if self.overlap_pays(fork) {
                        // SAFETY: the caller says so; a list has forks where the device has streams.
                        unsafe { self.overlap(fork)? };
                        at = fork.end;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether there was anything to run. On the stack it is over then.
    ///
    /// # Safety
    /// As for [`Run::commands`]; what the host evaluates bounds from is over.
    #[inline]
    unsafe fn launch(&mut self, launch: &TaskLaunch) -> Result<bool, RunError> {
        // SAFETY: the caller says so.
        let was_told = unsafe { self.tell(launch)? };
        if let Place::Stack { fault, .. } = &self.place
            && was_told
        {
            if let Some(fault) = fault.fault() {
                return Err(RunError::Fault(fault, Vec::new()));
            }
            if self.cancel.is_wanted() {
                return Err(RunError::Cancelled);
            }
        }
        Ok(was_told)
    }

    /// Tells the device of a task, with and without a fork around it. Whether there was anything to run.
    ///
    /// # Safety
    /// As for [`Run::launch`].
    #[inline]
    pub unsafe fn tell(&mut self, launch: &TaskLaunch) -> Result<bool, RunError> {
        let (plan, device) = (self.version.plan(), self.version.context().device());
        let (task, context, lanes) = (&plan.tasks[launch.task], &self.context, launch.lanes);
        let (temps, on_stack) = match &self.place {
            Place::Device { .. } if self.cancel.is_wanted() => return Err(RunError::Cancelled),
            Place::Device { temps, .. } => (&temps[..], false),
            // SAFETY: the words are initialised, and nobody writes those that the bounds name.
            Place::Stack { temps, temp_bytes, .. } => unsafe {
                (std::slice::from_raw_parts(*temps, *temp_bytes), true)
            },
        };
        // On an immediate stream all before the task is over.
        let on_device =
            launch.bounds == BoundSource::Device && !(on_stack && device.is_immediate(context.stream));
        let domain = if on_device {
            Some(device_domain(plan, task, context, lanes, &mut self.bounds))
        } else {
            domain(plan, task, context.args, temps, lanes, &mut self.bounds)?
        };
        let Some(domain) = domain else { return Ok(false) };
        // SAFETY: the caller vouches for the arguments, and for the launch's memory.
        unsafe { device.launch(&Launch { function: launch.function, domain, context: *context })? };
        Ok(true)
    }

    /// The host gets temporaries when the context's stream is past what it was told. On the stack it sees them.
    pub fn read_temps(&mut self) -> Result<(), RunError> {
        if let Place::Device { scratch, temps, .. } = &mut self.place {
            if self.cancel.is_wanted() {
                return Err(RunError::Cancelled);
            }
            temps.resize(self.version.commands().scratch.temps, 0);
            scratch.read(self.context.stream, 0, temps)?;
        }
        Ok(())
    }

    /// The host waits for the launching stream, and looks whether a task has failed. On the stack it looks after every task.
    fn look_for_faults(&self) -> Result<(), RunError> {
        let Place::Device { checks: Some(report), .. } = &self.place else { return Ok(()) };
        let owner = self.version.context();
        if !owner.wait(self.context.stream, self.cancel, &mut || report.take_prints())? {
            return Err(RunError::Cancelled);
        }
        if let Some(fault) = report.fault(0) {
            return Err(RunError::Fault(fault, Vec::new()));
        }
        if self.cancel.is_wanted() { Err(RunError::Cancelled) } else { Ok(()) }
    }

    /// Memory of the stack begins as zero.
    fn fill_scratch(&self) -> Result<(), RunError> {
        match &self.place {
            Place::Stack { .. } => Ok(()),
            Place::Device { scratch, .. } => Ok(scratch.fill()?),
        }
    }
}
