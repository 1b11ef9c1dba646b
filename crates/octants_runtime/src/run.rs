//! Runs a version: walks its schedule and hands each task to the device.
//!
//! What a launch owns (temporaries, results, fault record) lies on the caller's stack where the device works on the host's memory and
//! its stream is immediate. Otherwise temporaries are the device's, in the order of the stream, and what is reported lies in memory
//! that both see. All else is the same.

mod fork;

use std::sync::atomic::AtomicU64;

use octants_hal::{
    Address, Cancel, Capabilities, DEVICE_COUNTER_BYTES, DEVICE_DROPPED_OFFSET, DeviceError, Fault,
    FaultRecord, Launch, LaunchContext, LaunchMemory, PrintQueue, PrintRing, Stream,
};
use octants_ir::plan::{Schedule, Task};

use crate::context::Context;
use crate::domain::{ScratchBounds, device_domain, domain};
use crate::plan::LaunchEnv;
use crate::shared_pool::SharedBlock;
use crate::stop_words::StopGuard;
use crate::version::Version;

/// Words of the stack for temporaries and results, which those of usual kernels fit into: 256 bytes, zeroed at each launch. Chosen, not
/// measured.
const STACK_WORDS: usize = 32;

/// Why a run did not finish.
pub(crate) enum RunError {
    Cancelled,
    TooManyPoints,
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
    let plan = version.plan();
    // Both layouts are multiples of eight, and want that alignment.
    let temp_words = plan.temps.bytes as usize / 8;
    let words = temp_words + results.len() / 8;
    let mut few = [0_u64; STACK_WORDS];
    let mut many = Vec::new();
    let scratch = if words <= STACK_WORDS {
        few.as_mut_ptr()
    } else {
        many.resize(words, 0_u64);
        many.as_mut_ptr()
    };
    // SAFETY: inside the scratch, or one past its end.
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
    unsafe { run.schedule(&plan.schedule)? };
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
    let (plan, owner) = (version.plan(), version.context());
    owner.launch_log().note(version.origin());
    owner.before_work(context.stream)?;
    let temp_bytes = plan.temps.bytes as usize;
    // A device that is the host writes to the queue itself.
    let ring_queue = context.prints.filter(|_| !owner.sees_host_memory());
    let counter_bytes = ring_queue.map_or(0, |_| DEVICE_COUNTER_BYTES);
    let cancel = context.cancel;
    // SAFETY: the caller's stream is live.
    let scratch = unsafe { Scratch::new(owner, context.stream, temp_bytes + counter_bytes)? };
    context.memory.temps = scratch.address;
    if owner.sees_host_memory() {
        context.memory.fault = Address::of(owner.no_fault());
    }
    let is_late = reports_late && context.prints.is_none() && results.is_empty() && plan.sites.may_be_late();
    let report = if plan.sites.is_empty() && results.is_empty() {
        None
    } else if is_late && !owner.device().is_immediate(context.stream) {
        context.memory.fault = version.late_record()?;
        None
    } else {
        let counters = scratch.address.offset(temp_bytes);
        let report = Report::new(owner, plan.schedule.width(), results.len(), ring_queue, counters)?;
        let at = |offset| report.block.device().offset(offset);
        context.memory.fault = report.record_on_device(0);
        context.memory.results = at(report.results_at);
        context.memory.prints = report.ring.map_or(Address::NULL, |(_, offset)| at(offset));
        context.memory.stop = at(report.cancel_at + Cancel::RAISED_OFFSET);
        Some(report)
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
    let mut ran = unsafe { run.schedule(&plan.schedule) };
    if owner.device().capabilities().has(Capabilities::RUNS_IN_VERBS) && ran.is_ok() && cancel.is_wanted() {
        ran = Err(RunError::Cancelled);
    }
    // Goes back in the stream's order, before the wait; but a launch that prints looks at its counters after it.
    let scratch = ring_queue.map(|_| scratch);
    let Some(report) = report else { return ran };
    if let Err(error @ (RunError::Cancelled | RunError::TooManyPoints | RunError::Device(_))) = ran {
        // What was begun is over soon, unless the caller cannot wait or the device is past waiting.
        report.cancel().raise();
        if !matches!(owner.wait(context.stream, cancel, &mut || {}), Ok(true)) {
            report.abandon();
        }
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
            report.cancel().raise();
            if !matches!(owner.wait(context.stream, cancel, &mut || {}), Ok(true)) {
                report.abandon();
            }
            return Err(error.into());
        }
    }
    if let (Some(queue), Some(ring)) = (ring_queue, report.ring()) {
        let mut dropped = [0; 8];
        if let Some(scratch) = scratch.filter(|_| ring.has_dropped()) {
            scratch.read(context.stream, temp_bytes + DEVICE_DROPPED_OFFSET, &mut dropped)?;
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
    // SAFETY: the block has as many bytes there, and the device is done with it.
    unsafe {
        let from = report.block.host::<u8>(report.results_at);
        std::ptr::copy_nonoverlapping(from, results.as_mut_ptr(), results.len());
    }
    Ok(())
}

/// What a launch on a device tells the host: faults, results and prints, in memory that both see. It begins with a record of faults for
/// each branch that runs at the same time; all parts are multiples of eight.
struct Report<'a> {
    /// Before the block, which goes back after it.
    stop: StopGuard<'a>,
    block: SharedBlock<'a>,
    /// Where a request to end lies, for work that may outlive the caller's own.
    cancel_at: usize,
    results_at: usize,
    /// The queue that prints go to, and where the ring begins through which they do; none if the device writes to the queue.
    ring: Option<(&'a PrintQueue, usize)>,
}

impl<'a> Report<'a> {
    /// `counters` is where the device counts prints.
    fn new(
        owner: &'a Context,
        branches: usize,
        results: usize,
        prints: Option<&'a PrintQueue>,
        counters: Address,
    ) -> Result<Self, DeviceError> {
        let cancel_at = branches.max(1) * size_of::<FaultRecord>();
        let results_at = cancel_at + size_of::<Cancel>();
        let ring_at = results_at + results;
        let ring_bytes = prints.map_or(0, |queue| size_of_val(queue.memory()));
        let block = owner.shared().take(ring_at + ring_bytes)?;
        // SAFETY: the block has room for it there, aligned to eight.
        unsafe { block.host::<Cancel>(cancel_at).write(Cancel::new()) };
        // SAFETY: it lies there as long as the report.
        let stop = unsafe { owner.stops().add(block.host::<Cancel>(cancel_at)) };
        let report = Self { stop, block, cancel_at, results_at, ring: prints.map(|queue| (queue, ring_at)) };
        if let Some(words) = report.ring_words() {
            PrintRing::format_for_device(words, counters);
        }
        Ok(report)
    }

    /// Where the device sees a branch's record.
    fn record_on_device(&self, branch: usize) -> Address {
        self.block.device().offset(branch * size_of::<FaultRecord>())
    }

    fn cancel(&self) -> &Cancel {
        // SAFETY: it was written when the report was made.
        unsafe { &*self.block.host::<Cancel>(self.cancel_at) }
    }

    /// Gives the memory up: what was begun may still report. It is told to end.
    fn abandon(self) {
        self.cancel().raise();
        drop(self.stop);
        self.block.abandon();
    }

    fn fault(&self, branch: usize) -> Option<Fault> {
        let at = branch * size_of::<FaultRecord>();
        debug_assert!(at < self.cancel_at);
        // SAFETY: the block begins with as many records, aligned as such; all of it is atomic.
        unsafe { &*self.block.host::<FaultRecord>(at) }.fault()
    }

    fn ring_words(&self) -> Option<&[AtomicU64]> {
        let (queue, at) = self.ring?;
        // SAFETY: the block has as many words there, aligned to eight; the device writes them as atomics, too.
        Some(unsafe { std::slice::from_raw_parts(self.block.host::<AtomicU64>(at), queue.memory().len()) })
    }

    /// Moves what was printed so far to the launch's queue.
    fn take_prints(&self) {
        if let (Some((queue, _)), Some(ring)) = (self.ring, self.ring()) {
            queue.take_from(ring);
        }
    }

    fn ring(&self) -> Option<PrintRing<'_>> {
        self.ring_words().map(PrintRing::formatted)
    }
}

/// Temporaries of a launch, which go back when its stream has passed what was told until then.
struct Scratch<'a> {
    owner: &'a Context,
    stream: Stream,
    address: Address,
    bytes: usize,
}

impl<'a> Scratch<'a> {
    /// # Safety
    /// The stream is live as long as this.
    unsafe fn new(owner: &'a Context, stream: Stream, bytes: usize) -> Result<Self, DeviceError> {
        let address = if bytes == 0 {
            Address::NULL
        } else {
            // SAFETY: the caller says so.
            owner.making_room(|| unsafe { owner.device().allocate_scratch(stream, bytes) })?
        };
        let scratch = Self { owner, stream, address, bytes };
        if bytes > 0 {
            // Temporaries begin as zero.
            // SAFETY: it was just allocated, for this stream.
            unsafe { owner.device().fill(stream, address, &[0], bytes)? };
        }
        Ok(scratch)
    }

    /// Copies bytes from `offset` on, and waits.
    fn read(&self, stream: Stream, offset: usize, to: &mut [u8]) -> Result<(), DeviceError> {
        debug_assert!(offset + to.len() <= self.bytes);
        // SAFETY: as many bytes lie on both sides.
        unsafe {
            self.owner.device().copy_to_host(stream, to.as_mut_ptr(), self.address.offset(offset), to.len())
        }
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: allocated for this stream; branches of a fork, which use it too, have been joined to it.
            unsafe { self.owner.device().free_scratch(self.stream, self.address, self.bytes) };
        }
    }
}

/// Where the launch's memory is, as far as the host looks at it while tasks are handed out.
enum Place<'a> {
    Stack {
        temps: *const u8,
        temp_bytes: usize,
        fault: &'a FaultRecord,
    },
    /// Where `checks` can fail, and the device does not stop by itself, a task waits for those before it: nothing runs after a failure.
    Device {
        scratch: &'a Scratch<'a>,
        temps: Vec<u8>,
        checks: Option<&'a Report<'a>>,
    },
}

struct Run<'a, I> {
    version: &'a Version<I>,
    context: LaunchContext<'a>,
    /// The caller's request to end; code that may outlive it looks at another, the context's.
    cancel: &'a Cancel,
    place: Place<'a>,
    bounds: ScratchBounds,
}

impl<I> Run<'_, I> {
    /// # Safety
    /// As for [`run`]; the context's memory is there until its stream has passed the launch.
    unsafe fn schedule(&mut self, node: &Schedule) -> Result<(), RunError> {
        // SAFETY: the caller says so.
        unsafe {
            match node {
                Schedule::Task(task) => self.task(*task),
                Schedule::Seq(nodes) => {
                    for node in nodes {
                        match node {
                            Schedule::Task(task) => self.task(*task)?,
                            other => self.schedule(other)?,
                        }
                    }
                    Ok(())
                }
                Schedule::Fork(branches) => self.fork(branches),
            }
        }
    }

    /// # Safety
    /// As for [`Run::schedule`].
    #[inline]
    unsafe fn task(&mut self, number: usize) -> Result<(), RunError> {
        // SAFETY: the caller says so, and the tasks before this one are over where the host looks at what they wrote.
        if !unsafe { self.tell(number)? } {
            return Ok(());
        }
        let context = &self.context;
        let fault = match &self.place {
            Place::Stack { fault, .. } => fault.fault(),
            Place::Device { checks: None, .. } => return Ok(()),
            Place::Device { .. } if !self.host_checks() => return Ok(()),
            Place::Device { checks: Some(report), .. } => {
                let owner = self.version.context();
                if !owner.wait(context.stream, self.cancel, &mut || report.take_prints())? {
                    return Err(RunError::Cancelled);
                }
                report.fault(0)
            }
        };
        if let Some(fault) = fault {
            return Err(RunError::Fault(fault, Vec::new()));
        }
        if self.cancel.is_wanted() { Err(RunError::Cancelled) } else { Ok(()) }
    }

    /// Tells the device of a task, with and without a fork around it. Whether there was anything to run.
    ///
    /// # Safety
    /// As for [`Run::schedule`]; where the bounds are read by [`Run::host_reads_bounds`] and the launch's memory is on the stack, whatever
    /// writes them is over.
    #[inline]
    unsafe fn tell(&mut self, number: usize) -> Result<bool, RunError> {
        let plan = self.version.plan();
        let (task, context) = (&plan.tasks[number], &self.context);
        let device = self.version.context().device();
        let (function, lanes) = self.version.function(number);
        // Most plans have no temporaries: that is seen at once.
        let on_device = plan.temps.bytes > 0 && task.needs_temps() && self.device_reads_bounds(task);
        let domain = match &mut self.place {
            Place::Device { .. } if self.cancel.is_wanted() => return Err(RunError::Cancelled),
            _ if on_device => Some(device_domain(plan, task, context, lanes, &mut self.bounds)),
            Place::Stack { temps, temp_bytes, .. } => {
                // SAFETY: the words are initialised, and nobody writes those that the bounds name.
                let temps = unsafe { std::slice::from_raw_parts(*temps, *temp_bytes) };
                domain(plan, task, context.args, temps, lanes, &mut self.bounds)?
            }
            Place::Device { scratch, temps, .. } => {
                if task.needs_temps() {
                    temps.resize(plan.temps.bytes as usize, 0);
                    scratch.read(context.stream, 0, temps)?;
                }
                domain(plan, task, context.args, temps, lanes, &mut self.bounds)?
            }
        };
        let Some(domain) = domain else { return Ok(false) };
        // SAFETY: the caller vouches for the arguments, and for the launch's memory.
        unsafe { device.launch(&Launch { function, domain, context: *context })? };
        Ok(true)
    }

    /// Whether a task's bounds are computed by the host from what earlier tasks wrote.
    fn host_reads_bounds(&self, task: &Task) -> bool {
        task.needs_temps() && !self.device_reads_bounds(task)
    }

    /// Whether the device can read the bounds of a task when that begins; where all before it is over already the host does.
    fn device_reads_bounds(&self, task: &Task) -> bool {
        let device = self.version.context().device();
        task.has_plain_bounds()
            && device.capabilities().has(Capabilities::DEVICE_BOUNDS)
            && match &self.place {
                Place::Stack { .. } => !device.is_immediate(self.context.stream),
                Place::Device { .. } => true,
            }
    }

    /// Whether the host looks for a failure between tasks.
    fn host_checks(&self) -> bool {
        !matches!(self.place, Place::Device { checks: None, .. })
            && self.version.plan().sites.can_fail()
            && !self.version.context().device().capabilities().has(Capabilities::STOPS_AT_FAULT)
    }
}
