//! A kernel's code, ready to be launched.

use std::sync::Arc;

use octants_hal::{Cancel, Stream};
use octants_ir::plan::{Access, ArgLayout, Plan, ResultLayout, Task};
use octants_ir::{Kernel, LocData};
use octants_passes::analysis::{Course, Footprint, Touched, differs_each_time};
use octants_passes::{LaunchOrder, Refusal};
use octants_runtime::{
    Arguments, Context, DeferredFrees, ExternalStream, HostRange, LaunchEnv, LaunchFailure, LaunchPlan,
    LiveStream, Memory, MemoryError, Mirror, Printed,
};

use crate::error::{Error, LaunchError};
use crate::fault::describe_all;
use crate::gpu_code::PtxModule;
use crate::invocation::refused;
use crate::kernel_source::{KernelSource, VersionInfo};
use crate::launch_keys::LaunchKeys;
use crate::output::{Locate, Output};
use crate::report::{CompileStatistics, Dump, TaskResources};
use crate::short_launch::is_short;
use crate::stream::Event;
use crate::wait::{runs_at_once, told_late, wait};
use crate::write_log::{ArrayMemory, ReadBefore, Region, read_and_written, regions, told_by};

/// A kernel compiled in a session.
pub struct CompiledKernel {
    plan: LaunchPlan<KernelSource>,
    keys: Arc<LaunchKeys>,
}

impl CompiledKernel {
    pub(crate) fn new(
        context: &Arc<Context>,
        keys: &Arc<LaunchKeys>,
        source: KernelSource,
        cancel: &Cancel,
    ) -> Result<Self, Error> {
        Ok(Self { plan: LaunchPlan::new(context, source, cancel)?, keys: Arc::clone(keys) })
    }

    pub fn name(&self) -> &str {
        &self.plan.maker().kernel.name
    }

    /// What it was compiled from, in its structured phase.
    pub fn ir(&self) -> &Kernel {
        &self.plan.maker().kernel
    }

    /// What it touches of the arrays that are its parameters, in terms of a launch's arguments.
    pub fn footprint(&self) -> Footprint {
        Footprint::of(self.ir())
    }

    /// Why a condition does not hold of a launch with this block of arguments; `None` if it does. Its kernel's parameters are the first ones of this.
    pub fn refusal(&self, condition: &LaunchOrder, block: &[u8]) -> Option<Refusal> {
        condition.refusal(&|told| told_by(self.ir(), self.args(), block, told))
    }

    /// The parts of arrays that a launch with this block of arguments writes. `footprint` is the kernel's own.
    pub fn writes(&self, footprint: &Footprint, block: &[u8]) -> Vec<(usize, Region)> {
        regions(self.ir(), footprint, self.args(), block, |touched| touched.written)
    }

    /// Likewise those that it reads.
    pub fn reads(&self, footprint: &Footprint, block: &[u8]) -> Vec<(usize, Region)> {
        regions(self.ir(), footprint, self.args(), block, |touched| touched.read)
    }

    /// What it touches, each with the parts that a launch with this block of arguments touches.
    pub fn touched_parts<'f>(
        &self,
        footprint: &'f Footprint,
        block: &[u8],
    ) -> impl Iterator<Item = (&'f Touched, Region)> {
        footprint.touched.iter().flat_map(move |touched| {
            let parts = regions(self.ir(), footprint, self.args(), block, |one| std::ptr::eq(one, touched));
            parts.into_iter().map(move |(_, region)| (touched, region))
        })
    }

    /// In which order it reads and surely writes.
    pub fn course(&self) -> Course {
        Course::of(self.ir())
    }

    /// What a launch with this block of arguments reads of what was there before it, and what it surely writes. `course` is the kernel's own.
    pub fn read_and_written(&self, course: &Course, block: &[u8]) -> (Vec<ReadBefore>, Vec<Region>) {
        read_and_written(self.ir(), course, self.args(), block)
    }

    /// Whether each launch draws other random numbers.
    pub fn draws_random(&self) -> bool {
        self.plan.uses().key
    }

    /// What makes a launch differ from another one with the same arguments and contents of arrays, but for the order in which sums round.
    pub fn differs_each_time(&self) -> Option<&'static str> {
        if self.draws_random() {
            return Some("draws random numbers");
        }
        differs_each_time(self.ir())
    }

    /// Likewise those that it reads or writes, of parameters that are wanted.
    pub fn touches(
        &self,
        footprint: &Footprint,
        block: &[u8],
        wanted: impl Fn(usize) -> bool,
    ) -> Vec<(usize, Region)> {
        regions(self.ir(), footprint, self.args(), block, |touched| wanted(touched.param))
    }

    /// The same part of another parameter's array.
    pub fn same_part(&self, param: usize, part: &Region, block: &[u8]) -> Option<Region> {
        let slot = &self.args().slots[param];
        let array = ArrayMemory::of(self.ir(), slot, slot.array()?, block);
        Some(Region { array, indices: part.indices.clone() })
    }

    /// Where the elements of a part of a parameter's array lie: runs of so many bytes, by where they begin behind the first element.
    pub fn runs_of(&self, param: usize, part: &Region) -> (Vec<i64>, u64) {
        let array = self.args().slots[param].array();
        part.runs(array.and_then(|array| self.ir().layout(array)))
    }

    /// The name of a parameter, as the user wrote it; a member has its path in it.
    pub fn param_name(&self, param: usize) -> &str {
        &self.plan.maker().kernel.params[param].name
    }

    /// How a launch's block of arguments is laid out.
    pub fn args(&self) -> &ArgLayout {
        self.plan.args()
    }

    /// How the block of results is laid out.
    pub fn results(&self) -> &ResultLayout {
        self.plan.results()
    }

    /// What the kernel does with the memory of each parameter.
    pub fn access(&self) -> &[Access] {
        self.plan.access()
    }

    /// Memory of the session that is given back while there are handles to it.
    #[inline]
    pub fn deferred_frees(&self) -> &DeferredFrees {
        self.context().deferred_frees()
    }

    /// Whether arrays of the host are arguments in place; else they are given as a [`Mirror`].
    #[inline]
    pub fn sees_host_memory(&self) -> bool {
        self.context().sees_host_memory()
    }

    /// Whether arrays that other libraries have on the device are arguments in place.
    pub fn shares_device(&self) -> bool {
        self.context().shares_device()
    }

    /// Which of its kind the session's device is.
    #[inline]
    pub fn device_number(&self) -> u32 {
        self.plan.maker().options.device
    }

    /// The queue that a launch joins: a stream of the kernel's session, or the default one.
    #[inline]
    fn stream(&self, on: Option<&LiveStream>) -> Result<Stream, Error> {
        match on {
            None => Ok(self.context().default_stream()),
            Some(live) if Arc::ptr_eq(live.context(), self.context()) => Ok(live.stream()),
            Some(_) => Err(Error::OtherSession { what: "stream" }),
        }
    }

    /// Whether a launch in the default stream is over when it returns.
    #[inline]
    pub fn runs_at_once(&self) -> bool {
        runs_at_once(self.context())
    }

    /// Waits for all launches in a stream until now; in the default one if there is none. Raising `cancel` ends the wait, not the launches.
    pub fn wait(&self, on: Option<&LiveStream>, cancel: &Cancel) -> Result<(), Error> {
        let stream = self.stream(on)?;
        wait(self.context(), stream, cancel)
    }

    /// A launch in this stream, which is about to come, uses this memory.
    pub fn before_launch(&self, on: &LiveStream, memory: &Memory) -> Result<(), Error> {
        self.stream(Some(on))?;
        memory.before_launch(on).map_err(Error::of_device)
    }

    /// Called after a launch in this stream that uses these memories, also one that failed: the stream may have been told all the same.
    ///
    /// What stands for an external stream comes behind the launch before any memory has it among its uses: whoever finds it there comes after the
    /// launch. Where it cannot, the launch is over when this returns.
    pub fn after_launch<'m>(
        &self,
        on: &LiveStream,
        memories: impl IntoIterator<Item = &'m Memory>,
    ) -> Result<(), Error> {
        let followed = on.after_work().or_else(|_| wait(on.context(), on.stream(), &Cancel::new()));
        memories.into_iter().for_each(|memory| memory.after_launch(on));
        followed
    }

    /// An event behind what the stream was told so far.
    pub fn event_behind(&self, on: &LiveStream) -> Result<Event, Error> {
        let event = Event::of(self.context())?;
        event.record(Some(on))?;
        Ok(event)
    }

    /// Arrays of the host on the device, for one launch. Raising `cancel` ends a wait for room.
    pub fn mirror(
        &self,
        ranges: &[HostRange],
        on: Option<&LiveStream>,
        cancel: &Cancel,
    ) -> Result<Mirror, Error> {
        self.context().check().map_err(|_| Error::Stale { what: "kernel" })?;
        Mirror::new(self.context(), self.stream(on)?, ranges, cancel).map_err(|error| match error {
            MemoryError::Device(error) => Error::after_launches(error, self.context()),
            error => Error::of_memory(error, "kernel"),
        })
    }

    /// Copies back what a launch wrote to arrays of the host.
    pub fn copy_back(&self, mirror: &Mirror) -> Result<(), Error> {
        mirror.copy_back().map_err(|error| Error::after_launches(error, self.context()))?;
        told_late(self.context())
    }

    /// A launch that comes now waits for what another library has told its stream.
    pub fn launch_after(&self, stream: ExternalStream, on: Option<&LiveStream>) -> Result<(), Error> {
        stream.before(self.context(), self.stream(on)?).map_err(Error::of_device)
    }

    /// What the library tells its stream from now on waits for the launches until now.
    pub fn launch_before(&self, stream: ExternalStream, on: Option<&LiveStream>) -> Result<(), Error> {
        stream.after(self.context(), self.stream(on)?).map_err(Error::of_device)
    }

    /// Whether a launch with these arguments is over in about the time that it takes to start one.
    pub fn is_short(&self, args: &[u8]) -> bool {
        // A queue may be full, and take long to have room.
        let waits = self.context().device().waits_for_exclusive();
        self.runs_at_once() && !waits && is_short(self.version().0, args)
    }

    /// Of the version that is made first: for arrays that do not overlap.
    pub fn statistics(&self) -> CompileStatistics {
        self.version().1.statistics
    }

    /// What each task of that version takes of the device; empty where there is nothing to count.
    pub fn resources(&self) -> Result<Vec<TaskResources>, Error> {
        self.context().check().map_err(|_| Error::Stale { what: "kernel" })?;
        let first = self.plan.first();
        let usage = first.usage().map_err(Error::of_device)?;
        let tasks = usage.into_iter().zip(&first.plan().tasks);
        let of = |((symbol, usage), task): ((&str, _), _)| TaskResources {
            symbol: symbol.to_owned(),
            parallel: matches!(task, &Task::Range { .. }),
            usage,
        };
        Ok(tasks.map(of).collect())
    }

    /// Where assignments in parallel loops are races: each with the calls that were inlined, the innermost first.
    pub fn races(&self) -> Vec<Vec<LocData>> {
        self.version().1.races.clone()
    }

    /// Whether a launch with overlapping arrays has been, and made a version of its own.
    pub fn has_overlapping_version(&self) -> bool {
        self.plan.has_overlapping_version()
    }

    /// The PTX of the newest version's tasks for a compute capability (90 for 9.0), or for the session's device, and the capability.
    pub fn ptx(&self, capability: Option<u32>) -> Result<(u32, Vec<PtxModule>), Error> {
        self.plan.maker().ptx(capability, self.version().1.assume)
    }

    /// A text that shows the kernel at one stage of its compilation. `None` where the device has no such thing.
    pub fn dump(&self, what: Dump) -> Result<Option<String>, Error> {
        self.plan.maker().dump(what, self.version().1.assume)
    }

    /// Whether the kernel prints: then [`CompiledKernel::launch_printing`] gives the text.
    pub fn prints(&self) -> bool {
        self.plan.uses().output
    }

    /// Runs the kernel, in a stream or in the default one. `args` is laid out as [`CompiledKernel::args`] says, `results` has [`CompiledKernel::results`]`.bytes`.
    ///
    /// Neither allocates nor waits for a lock nor counts references when the kernel's temporaries are small. Which version of the code runs is
    /// chosen here, by comparing the arrays' addresses in the block: arrays may overlap, and may be the same one twice. What the
    /// kernel prints is lost.
    #[inline]
    pub fn launch(
        &self,
        args: Arguments<'_>,
        results: &mut [u8],
        on: Option<&LiveStream>,
        cancel: &Cancel,
    ) -> Result<(), LaunchError> {
        let stream = self.stream(on)?;
        let env = LaunchEnv { stream, cancel, key: self.key(), prints: None, reports_late: false };
        self.plan.launch(args, results, env).map_err(|failure| self.explain(failure))
    }

    /// Likewise; but where all that can fail is the memory of a derivative, nobody waits for that, and who next waits for the device is told.
    pub(crate) fn launch_late(
        &self,
        args: Arguments<'_>,
        on: Option<&LiveStream>,
        cancel: &Cancel,
    ) -> Result<(), LaunchError> {
        let results = &mut vec![0; self.results().bytes as usize][..];
        let env =
            LaunchEnv { stream: self.stream(on)?, cancel, key: self.key(), prints: None, reports_late: true };
        self.plan.launch(args, results, env).map_err(|failure| self.explain(failure))
    }

    /// Likewise, and gives what the kernel printed, also if it failed: each print whole, those of one thread in order. `locate` says
    /// where an op stands, for prints of the compiler's own.
    pub fn launch_printing(
        &self,
        args: Arguments<'_>,
        results: &mut [u8],
        on: Option<&LiveStream>,
        cancel: &Cancel,
        locate: Locate<'_>,
    ) -> (String, Result<(), LaunchError>) {
        let stream = match self.stream(on) {
            Ok(stream) => stream,
            Err(error) => return (String::new(), Err(error.into())),
        };
        let (text, ended) = self.printing(stream, cancel, locate, |env| self.plan.launch(args, results, env));
        (text, ended.map_err(|failure| self.explain(failure)))
    }

    /// Runs `launch` in an environment that collects what is printed.
    fn printing<R>(
        &self,
        stream: Stream,
        cancel: &Cancel,
        locate: Locate<'_>,
        launch: impl FnOnce(LaunchEnv<'_>) -> R,
    ) -> (String, R) {
        let mut output = Output::new(locate);
        let mut sink = |plan: &Plan, printed: Printed<'_>| output.print(&plan.sites, printed);
        let ended = launch(LaunchEnv {
            stream,
            cancel,
            key: self.key(),
            prints: Some(&mut sink),
            reports_late: false,
        });
        (output.into_text(), ended)
    }

    /// As [`CompiledKernel::launch_printing`], with arguments that are checked.
    pub(crate) fn launch_checked(
        &self,
        checked: octants_runtime::Invocation<'_, KernelSource>,
        results: &mut [u8],
        on: Option<&LiveStream>,
        cancel: &Cancel,
        locate: Locate<'_>,
    ) -> (String, Result<(), LaunchError>) {
        let stream = match self.stream(on) {
            Ok(stream) => stream,
            Err(error) => return (String::new(), Err(error.into())),
        };
        let (text, ended) = self.printing(stream, cancel, locate, |env| checked.launch(results, env));
        let ended = match ended {
            Ok(ended) => ended.map_err(|failure| self.explain(failure)),
            Err(error) => Err(refused(error).into()),
        };
        (text, ended)
    }

    /// A key for the next launch; any, if the kernel does not ask for it.
    fn key(&self) -> u64 {
        if self.plan.uses().key { self.keys.next() } else { 0 }
    }

    #[inline]
    pub(crate) fn context(&self) -> &Arc<Context> {
        self.plan.context()
    }

    pub(crate) fn plan(&self) -> &LaunchPlan<KernelSource> {
        &self.plan
    }

    #[cold]
    pub(crate) fn explain(&self, failure: LaunchFailure<Error>) -> LaunchError {
        let refused = LaunchError::Refused;
        match failure {
            LaunchFailure::Stale => refused(Error::Stale { what: "kernel" }),
            LaunchFailure::Cancelled => LaunchError::Cancelled,
            LaunchFailure::BlockSize { .. } => refused(Error::internal("launch", failure)),
            LaunchFailure::TooManyPoints | LaunchFailure::PartialBlock(..) => {
                refused(Error::invalid(failure.to_string()))
            }
            LaunchFailure::Device(error) => refused(Error::after_launches(error, self.context())),
            LaunchFailure::Version(Error::Cancelled) => LaunchError::Cancelled,
            LaunchFailure::Version(error) => refused(error),
            LaunchFailure::Fault(report) => match self.plan.version(report.assume) {
                Some(version) => match describe_all(self.name(), &version.plan().sites, &report) {
                    Some(fault) => LaunchError::Fault(Box::new(fault)),
                    None => refused(Error::internal("launch", "code names a site that its plan lacks")),
                },
                None => refused(Error::internal("launch", "a version that was never made has failed")),
            },
        }
    }

    fn version(&self) -> (&Plan, &VersionInfo) {
        let first = self.plan.first();
        (first.plan(), first.info())
    }
}
