//! Runs a version: walks its schedule and hands each task to the device.
//!
//! What a launch owns (temporaries, results, fault record) lies on the caller's stack where the device works on the host's memory and
//! its stream is immediate, and is allocated on the device otherwise. All else is the same.
//!
//! A fork gives each branch a stream of its own, on a device that has several: the branch's stream waits for an event of the launching
//! stream, and the launching stream then waits for an event of the branch. The host waits for none of them. Without streams branches
//! run in order.

use octants_hal::{
    Address, Capabilities, DeviceError, Fault, FaultRecord, Launch, LaunchContext, LaunchMemory, PrintQueue,
    Stream,
};
use octants_ir::plan::Schedule;
use smallvec::SmallVec;

use crate::domain::{ScratchBounds, device_domain, domain};
use crate::memory::{Memory, MemoryError};
use crate::plan::LaunchEnv;
use crate::stream_pool::PooledStream;
use crate::version::Version;

/// Words of the stack for temporaries and results, which those of usual kernels fit into.
const STACK_WORDS: usize = 32;

/// Why a run did not finish.
pub(crate) enum RunError {
    Cancelled,
    TooManyPoints,
    Fault(Fault),
    Device(DeviceError),
}

impl From<DeviceError> for RunError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

impl From<MemoryError> for RunError {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::Device(error) => Self::Device(error),
            // The session was reset while the launch ran.
            MemoryError::Stale(_) | MemoryError::Range => Self::Cancelled,
        }
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
    let device = version.context().device();
    let memory = LaunchMemory { temps: Address::NULL, results: Address::NULL, fault: Address::NULL };
    let &LaunchEnv { stream, cancel, key, .. } = env;
    let context = LaunchContext { stream, args, memory, cancel, key, prints };
    // SAFETY: the caller vouches for the blocks.
    unsafe {
        if device.capabilities().has(Capabilities::HOST_MEMORY) && device.is_immediate(stream) {
            run_on_stack(version, context, results)
        } else {
            run_on_device(version, context, results)
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
    };
    let place = Place::Stack { temps: scratch.cast(), temp_bytes: 8 * temp_words, fault: &fault };
    let mut run = Run { version, context, place, bounds: ScratchBounds::default() };
    // SAFETY: the caller vouches for the arguments; the launch's memory is as large as the layouts say.
    unsafe { run.schedule(&plan.schedule)? };
    // SAFETY: initialised, in bounds, and no task runs any more.
    let written = unsafe { std::slice::from_raw_parts(results_at.cast::<u8>(), results.len()) };
    results.copy_from_slice(written);
    Ok(())
}

/// # Safety
/// As for [`run`].
unsafe fn run_on_device<I>(
    version: &Version<I>,
    mut context: LaunchContext<'_>,
    results: &mut [u8],
) -> Result<(), RunError> {
    let plan = version.plan();
    let (stream, temp_bytes) = (context.stream, plan.temps.bytes as usize);
    // The fault's record first, for its alignment; the blocks are multiples of eight.
    let temps_at = size_of::<FaultRecord>();
    let results_at = temps_at + temp_bytes;
    let own = Memory::allocate(version.context(), results_at + results.len())?;
    let base = own.address().map_err(|_| RunError::Cancelled)?;
    context.memory =
        LaunchMemory { temps: base.offset(temps_at), results: base.offset(results_at), fault: base };
    let place = Place::Device { memory: &own, temps_at, temps: vec![0; temp_bytes] };
    let mut run = Run { version, context, place, bounds: ScratchBounds::default() };
    // SAFETY: the caller vouches for the arguments; the launch's memory lives until the stream has passed the launch.
    unsafe { run.schedule(&plan.schedule)? };
    let mut record = [0; size_of::<FaultRecord>()];
    own.read(stream, 0, &mut record)?;
    match FaultRecord::from_bytes(&record).fault() {
        Some(fault) => Err(RunError::Fault(fault)),
        None => Ok(own.read(stream, results_at, results)?),
    }
}

/// Where the launch's memory is, as far as the host looks at it while tasks are handed out.
enum Place<'a> {
    Stack { temps: *const u8, temp_bytes: usize, fault: &'a FaultRecord },
    Device { memory: &'a Memory, temps_at: usize, temps: Vec<u8> },
}

struct Run<'a, I> {
    version: &'a Version<I>,
    context: LaunchContext<'a>,
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
        let plan = self.version.plan();
        let (task, context) = (&plan.tasks[number], &self.context);
        let device = self.version.context().device();
        let (function, lanes) = self.version.function(number);
        let domain = match &mut self.place {
            Place::Stack { temps, temp_bytes, .. } => {
                // SAFETY: the tasks before this one are over, so nobody writes; the words are initialised.
                let temps = unsafe { std::slice::from_raw_parts(*temps, *temp_bytes) };
                domain(plan, task, context.args, temps, lanes, &mut self.bounds)?
            }
            Place::Device { memory, temps_at, temps } => {
                if context.cancel.is_wanted() {
                    return Err(RunError::Cancelled);
                }
                let device_reads = device.capabilities().has(Capabilities::DEVICE_BOUNDS);
                if task.needs_temps() && device_reads && task.has_plain_bounds() {
                    Some(device_domain(plan, task, context, lanes, &mut self.bounds))
                } else {
                    if task.needs_temps() {
                        memory.read(context.stream, *temps_at, temps)?;
                    }
                    domain(plan, task, context.args, temps, lanes, &mut self.bounds)?
                }
            }
        };
        let Some(domain) = domain else { return Ok(()) };
        // SAFETY: the caller vouches for the arguments, and for the launch's memory.
        unsafe { device.launch(&Launch { function, domain, context: *context })? };
        if let Place::Stack { fault, .. } = self.place {
            if let Some(fault) = fault.fault() {
                return Err(RunError::Fault(fault));
            }
            if context.cancel.is_wanted() {
                return Err(RunError::Cancelled);
            }
        }
        Ok(())
    }

    /// # Safety
    /// As for [`Run::schedule`].
    #[cold]
    unsafe fn fork(&mut self, branches: &[Schedule]) -> Result<(), RunError> {
        let context = self.version.context();
        if !context.device().capabilities().has(Capabilities::STREAMS) {
            // SAFETY: the caller says so.
            return branches.iter().try_for_each(|branch| unsafe { self.schedule(branch) });
        }
        let (device, launching) = (context.device(), self.context.stream);
        let begin = context.streams().event()?;
        // SAFETY: the guards keep streams and events alive; the launching stream is the caller's.
        unsafe {
            device.record_event(launching, begin.event())?;
            // Held until all branches are begun: a stream that went back could serve the next branch, which would wait.
            let mut streams = SmallVec::<[PooledStream<'_>; 8]>::new();
            for branch in branches {
                streams.push(context.streams().stream()?);
                let (stream, end) = (&streams[streams.len() - 1], context.streams().event()?);
                device.wait_event(stream.stream(), begin.event())?;
                self.context.stream = stream.stream();
                let ran = self.schedule(branch);
                self.context.stream = launching;
                // Also after an error: the launch's memory must outlive what was begun.
                let joined = join(context.device(), stream.stream(), end.event(), launching);
                ran.and(joined.map_err(RunError::Device))?;
            }
        }
        Ok(())
    }
}

/// The launching stream waits for the branch; if that cannot be said, the host does.
///
/// # Safety
/// All are live.
unsafe fn join(
    device: &dyn octants_hal::Device,
    branch: Stream,
    end: octants_hal::Event,
    launching: Stream,
) -> Result<(), DeviceError> {
    // SAFETY: the caller says so.
    unsafe {
        let joined = device.record_event(branch, end).and_then(|()| device.wait_event(launching, end));
        if joined.is_err() {
            device.synchronise(branch)?;
        }
        joined
    }
}
