//! Runs a version: does what its list of commands says, with a launch's arguments and memory.
//!
//! What a launch owns (temporaries, results, fault record) lies on the caller's stack where the device works on the host's memory and
//! its stream is immediate. Otherwise temporaries are the device's, in the order of the stream, and what is reported lies in memory
//! that both see. All else is the same.

mod fork;
mod interpreter;
mod report;
mod scratch;

use std::mem::MaybeUninit;

use octants_hal::{
    Address, Capabilities, DEVICE_DROPPED_OFFSET, DeviceError, Fault, FaultRecord, LaunchContext,
    LaunchMemory, PrintQueue,
};

use crate::domain::ScratchBounds;
use crate::plan::LaunchEnv;
use crate::version::Version;
use interpreter::{Place, Run};
use report::Report;
use scratch::Scratch;

/// Words of the stack for temporaries and results, which those of usual kernels fit into: 256 bytes. Chosen, not
/// measured.
const STACK_WORDS: usize = 32;

/// Why a run did not finish.
pub(crate) enum RunError {
    Cancelled,
    TooManyPoints,
    /// A loop whose threads wait for each other has so many points, no multiple of that.
    PartialBlock(u64, u32),
    /// The first failure, and those of other branches.
    Fault(Fault, Vec<Fault>),
    Device(DeviceError),
}

impl From<DeviceError> for RunError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

/// # Safety
/// Both blocks have their layouts' sizes, and the addresses in the arguments are valid for what the version does with them.
#[inline]
pub(crate) unsafe fn run<I>(
    version: &Version<I>,
    args: &[u8],
    results: &mut [u8],
    env: &LaunchEnv<'_>,
    prints: Option<&PrintQueue>,
) -> Result<(), RunError> {
    let &LaunchEnv { stream, cancel, key, .. } = env;
    let (memory, caller) = (LaunchMemory::NONE, Some(cancel));
    let context = LaunchContext { stream, args, memory, cancel, caller, key, launch: 0, prints };
    // SAFETY: the caller vouches for the blocks.
    unsafe {
        if version.context().profiler().is_recording() {
            run_recorded(version, context, results, env.reports_late)
        } else {
            run_in_context(version, context, results, env.reports_late)
        }
    }
}

/// Likewise, and the profiler is told of it.
///
/// # Safety
/// As for [`run`].
#[cold]
unsafe fn run_recorded<I>(
    version: &Version<I>,
    mut context: LaunchContext<'_>,
    results: &mut [u8],
    reports_late: bool,
) -> Result<(), RunError> {
    let profiler = version.context().profiler();
    let launch = profiler.begin_launch(version.label());
    context.launch = launch.number;
    // SAFETY: the caller vouches for the blocks.
    let ran = unsafe { run_in_context(version, context, results, reports_late) };
    profiler.end_launch(version.label(), &launch);
    ran
}

/// # Safety
/// As for [`run`].
#[inline]
unsafe fn run_in_context<I>(
    version: &Version<I>,
    context: LaunchContext<'_>,
    results: &mut [u8],
    reports_late: bool,
) -> Result<(), RunError> {
    let (device, stream) = (version.context().device(), context.stream);
    // SAFETY: the caller vouches for the blocks.
    unsafe {
        if version.context().sees_host_memory() && device.is_immediate(stream) {
            run_on_stack(version, context, results)
        } else {
            run_on_device(version, context, results, reports_late)
        }
    }
}

/// # Safety
/// As for [`run`]; the device has host memory, and the stream is immediate.
unsafe fn run_on_stack<I>(
    version: &Version<I>,
    mut context: LaunchContext<'_>,
    results: &mut [u8],
) -> Result<(), RunError> {
    // Both layouts are multiples of eight, and want that alignment.
    let temp_words = version.commands().scratch.temps / 8;
    let words = temp_words + results.len() / 8;
    let mut few = [MaybeUninit::<u64>::uninit(); STACK_WORDS];
    let mut many = Vec::new();
    let scratch: *mut u64 = if words <= STACK_WORDS {
        few[..words].fill(MaybeUninit::new(0));
        few.as_mut_ptr().cast()
    } else {
        many.resize(words, 0_u64);
        many.as_mut_ptr()
    };
    // SAFETY: inside the scratch, of which so many words are zeros, or one past its end.
    let results_at = unsafe { scratch.add(temp_words) };
    let fault = FaultRecord::new();
    context.memory = LaunchMemory {
        temps: Address::of(scratch),
        results: Address::of(results_at),
        fault: Address::of(&raw const fault),
        prints: Address::NULL,
        stop: Address::NULL,
    };
    let place = Place::Stack { temps: scratch.cast(), temp_bytes: 8 * temp_words, fault: &fault };
    let cancel = context.cancel;
    let mut run = Run { version, context, cancel, place, bounds: ScratchBounds::default() };
    // SAFETY: the caller vouches for the arguments; the launch's memory is as large as the layouts say.
    unsafe { run.commands()? };
    // SAFETY: initialised, in bounds, and no task runs any more.
    let written = unsafe { std::slice::from_raw_parts(results_at.cast::<u8>(), results.len()) };
    results.copy_from_slice(written);
    Ok(())
}

/// Only a launch that reports something is waited for: results, or what its code can tell of. Others are over for the host when the
/// device was told of them, as are those that report late.
///
/// # Safety
/// As for [`run`].
unsafe fn run_on_device<I>(
    version: &Version<I>,
    mut context: LaunchContext<'_>,
    results: &mut [u8],
    reports_late: bool,
) -> Result<(), RunError> {
    let (plan, list, owner) = (version.plan(), version.commands(), version.context());
    owner.launch_log().note(version.origin());
    owner.before_work(context.stream)?;
    // A device that is the host writes to the queue itself.
    let ring_queue = context.prints.filter(|_| !owner.sees_host_memory());
    let cancel = context.cancel;
    // SAFETY: the caller's stream is live.
    let scratch = unsafe { Scratch::new(owner, context.stream, list.scratch.bytes(), cancel)? };
    context.memory.temps = scratch.address();
    if owner.sees_host_memory() {
        context.memory.fault = Address::of(owner.no_fault());
    }
    let is_late = reports_late && context.prints.is_none() && results.is_empty() && plan.sites.may_be_late();
    let report = match list.report {
        Some(_) if is_late && !owner.device().is_immediate(context.stream) => {
            context.memory.fault = version.deferred_record()?;
            None
        }
        Some(layout) => {
            let counters = scratch.address().offset(list.scratch.temps);
            let report = Report::new(owner, layout, ring_queue, counters)?;
            context.memory = report.memory(scratch.address());
            Some(report)
        }
        None => None,
    };
    // Work that is not over when it was told may outlive the caller's request to end.
    let seen_by_work = if owner.device().is_immediate(context.stream) {
        cancel
    } else {
        report.as_ref().map_or(owner.abandon_flag(), Report::cancel)
    };
    let checks = report.as_ref().filter(|_| plan.sites.can_fail());
    let place = Place::Device { scratch: &scratch, temps: Vec::new(), checks };
    let context_of_work = LaunchContext { cancel: seen_by_work, ..context };
    let mut run = Run { version, context: context_of_work, cancel, place, bounds: ScratchBounds::default() };
    // SAFETY: the caller vouches for the arguments; the launch's memory lives until the stream has passed the launch.
    let mut ran = unsafe { run.commands() };
    if owner.device().capabilities().has(Capabilities::RUNS_IN_VERBS) && ran.is_ok() && cancel.is_wanted() {
        ran = Err(RunError::Cancelled);
    }
    // Goes back in the stream's order, before the wait; but a launch that prints looks at its counters after it.
    let scratch = ring_queue.map(|_| scratch);
    let Some(report) = report else { return ran };
    if let Err(
        error @ (RunError::Cancelled
        | RunError::TooManyPoints
        | RunError::PartialBlock(..)
        | RunError::Device(_)),
    ) = ran
    {
        report.end_early(owner, context.stream, cancel);
        return Err(error);
    }
    match owner.wait(context.stream, cancel, &mut || report.take_prints()) {
        Ok(true) => {}
        Ok(false) => {
            report.abandon();
            return Err(RunError::Cancelled);
        }
        // The wait failed, perhaps not the launch: then it is over soon, and its memory goes back.
        Err(error) => {
            report.end_early(owner, context.stream, cancel);
            return Err(error.into());
        }
    }
    if let (Some(queue), Some(ring)) = (ring_queue, report.ring()) {
        let mut dropped = [0; 8];
        if let Some(scratch) = scratch.filter(|_| ring.has_dropped()) {
            scratch.read(context.stream, list.scratch.temps + DEVICE_DROPPED_OFFSET, &mut dropped)?;
        }
        queue.take_last_from(ring, u64::from_le_bytes(dropped));
    }
    // The session has ended, and the launch with it: what it left is of no meaning.
    if report.cancel().is_wanted() {
        return Err(RunError::Cancelled);
    }
    // A fork has looked at the records of its branches, of which ours is one.
    ran?;
    if let Some(fault) = report.fault(0) {
        return Err(RunError::Fault(fault, Vec::new()));
    }
    report.read_results(results);
    Ok(())
}
