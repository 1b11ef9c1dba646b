//! One device in use.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use octants_hal::{Cancel, Capabilities, Device, DeviceError, FaultRecord, Function, Module, Stream, forked};

use crate::deferred_faults::{DeferredFault, DeferredFaults};
use crate::deferred_free::DeferredFrees;
use crate::host_writes::HostWrites;
use crate::launch_log::LaunchLog;
use crate::profiler::{ProfiledDevice, Profiler, RangeMarker};
use crate::release::MemoryReleases;
use crate::retired_modules::RetiredModules;
use crate::shared_pool::SharedPool;
use crate::stop_words::StopWords;
use crate::stream::StreamState;
use crate::stream_point::StreamPoint;
use crate::stream_pool::{KeptEvent, StreamPool};
use crate::stream_table::StreamTable;

/// How long a wait polls without a pause: what takes longer is not noticeably later for a sleep. Chosen, not measured.
const SPIN_TIME: Duration = Duration::from_millis(2);
/// Likewise, where the device works on the host's processors, of which a wait without a pause takes one. Chosen, not measured: about what a
/// sleep takes.
const SPIN_TIME_ON_HOST: Duration = Duration::from_micros(50);
/// Between two polls of a wait that takes longer. Chosen, not measured: the scheduler adds about as much.
const POLL_INTERVAL: Duration = Duration::from_micros(50);

/// A device, whether its session still lives, and what is allocated on it. Handles hold it by [`Arc`], so that the device outlives
/// them; two handles belong together if they hold the same one.
pub struct Context {
    device: Arc<dyn Device>,
    table: StreamTable,
    streams: Arc<StreamPool>,
    modules: RetiredModules,
    shared: SharedPool,
    log: LaunchLog,
    deferred_faults: DeferredFaults,
    profiler: Arc<Profiler>,
    /// What launches look at that nobody waits for: they end early when the session does.
    abandon: Cancel,
    /// What launches look at that somebody waits for, beside the caller's own.
    stops: StopWords,
    /// The record of launches that cannot fail, on a device that looks at one in any case.
    no_fault: FaultRecord,
    /// Writes of the host in the default stream, and zeros of new memory in a stream of their own; of a device whose default stream is not
    /// immediate, and that has others.
    host_writes: HostWrites,
    births: HostWrites,
    counts_writes: bool,
    /// Whether work in the default stream is over when the verb that tells of it is.
    runs_at_once: bool,
    deferred_frees: DeferredFrees,
    releases: MemoryReleases,
    /// Who has it has taken some of those, to give them back.
    freeing: Mutex<()>,
    ended: AtomicBool,
    allocations: AtomicUsize,
    bytes: AtomicU64,
    peak_bytes: AtomicU64,
}

/// The session that a handle belongs to was reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stale;

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it belongs to a session that was reset")
    }
}

impl std::error::Error for Stale {}

impl Context {
    pub fn new(device: Arc<dyn Device>) -> Arc<Self> {
        Self::over(device, Arc::new(Profiler::idle()))
    }

    /// One that records what its device is told. `marker` is told of launches, too.
    pub fn profiled(device: Arc<dyn Device>, marker: Option<Box<dyn RangeMarker>>) -> Arc<Self> {
        let profiler = Arc::new(Profiler::recording(&device, marker));
        Self::over(Arc::new(ProfiledDevice::new(device, Arc::clone(&profiler))), profiler)
    }

    fn over(device: Arc<dyn Device>, profiler: Arc<Profiler>) -> Arc<Self> {
        forked::watch();
        let runs_at_once = device.is_immediate(device.default_stream());
        let counts_writes = device.capabilities().has(Capabilities::STREAMS) && !runs_at_once;
        Arc::new(Self {
            table: StreamTable::default(),
            streams: Arc::new(StreamPool::new(&device)),
            modules: RetiredModules::default(),
            shared: SharedPool::new(&device),
            log: LaunchLog::default(),
            deferred_faults: DeferredFaults::new(&device),
            profiler,
            abandon: Cancel::new(),
            stops: StopWords::default(),
            no_fault: FaultRecord::new(),
            host_writes: HostWrites::default(),
            births: HostWrites::default(),
            counts_writes,
            runs_at_once,
            deferred_frees: DeferredFrees::default(),
            releases: MemoryReleases::new(),
            freeing: Mutex::new(()),
            device,
            ended: AtomicBool::new(false),
            allocations: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            peak_bytes: AtomicU64::new(0),
        })
    }

    #[inline]
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Whether parts of a range of addresses get memory while kernels run: [`Memory::reserve_range`](crate::Memory::reserve_range).
    pub fn has_growing_ranges(&self) -> bool {
        self.device.capabilities().has(Capabilities::GROWING_RANGES)
    }

    /// Whether kernels ask for more of what was reserved as they need it: [`Memory::commit`](crate::Memory::commit).
    pub fn commits_on_demand(&self) -> bool {
        self.device.capabilities().has(Capabilities::COMMITS_ON_DEMAND)
    }

    /// Whether the device works on the host's memory.
    #[inline]
    pub fn sees_host_memory(&self) -> bool {
        self.device.capabilities().has(Capabilities::HOST_MEMORY)
    }

    pub(crate) fn shared_device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Whether arrays and streams that other libraries of this process have on the device are the device's own.
    pub fn shares_device(&self) -> bool {
        self.device.capabilities().has(Capabilities::EXTERNAL_STREAMS)
    }

    /// Ends the context: handles are stale from now on. Memory is given back when its handles are dropped, so that whoever still
    /// looks at it (a view of another library) never looks at somebody else's. Streams are destroyed here, which waits for them; a device
    /// that can end work early does.
    pub fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.abandon_work();
    }

    /// Ends the work in streams that programs made, and destroys the streams.
    pub fn abandon_work(&self) {
        self.abandon.raise();
        self.stops.raise_all();
        self.table.end();
    }

    /// Whether this process is a forked child that must not touch the context: the device is its parent's alone, or something was under way when it
    /// was forked.
    pub fn is_cut_off(&self) -> bool {
        self.streams.is_cut_off()
    }

    /// In a child that is cut off: handles are stale from now on, and nothing else changes.
    pub fn cut_off(&self) {
        self.ended.store(true, Ordering::Release);
    }

    #[inline]
    pub fn check(&self) -> Result<(), Stale> {
        // In one order with the launches that say that they are under way: who is seen by neither has not begun.
        if self.ended.load(Ordering::SeqCst) { Err(Stale) } else { Ok(()) }
    }

    /// The stream that the device has from the start.
    pub fn default_stream(&self) -> Stream {
        self.device.default_stream()
    }

    /// Streams and events that programs made.
    pub(crate) fn table(&self) -> &StreamTable {
        &self.table
    }

    /// What launches look at that nobody waits for.
    pub(crate) fn abandon_flag(&self) -> &Cancel {
        &self.abandon
    }

    /// Requests to stop that the end of the session raises.
    pub(crate) fn stops(&self) -> &StopWords {
        &self.stops
    }

    /// The record of launches that cannot fail.
    pub(crate) fn no_fault(&self) -> &FaultRecord {
        &self.no_fault
    }

    /// Writes of the host in the default stream.
    pub(crate) fn host_writes(&self) -> &HostWrites {
        &self.host_writes
    }

    /// Zeros of new memory in the stream for it.
    pub(crate) fn births(&self) -> &HostWrites {
        &self.births
    }

    /// Whether work in the default stream is over when whoever told of it goes on.
    #[inline]
    pub fn runs_at_once(&self) -> bool {
        self.runs_at_once
    }

    /// Whether streams must be told to come after what the host writes in the default one.
    #[inline]
    pub(crate) fn counts_writes(&self) -> bool {
        self.counts_writes
    }

    /// Called before a stream is told of a launch, or to wait for another: who needs what the host wrote before that does not wait for it.
    #[inline]
    pub(crate) fn before_work(&self, stream: Stream) -> Result<(), DeviceError> {
        if self.counts_writes && stream == self.default_stream() {
            self.host_writes.mark(self, stream)
        } else {
            Ok(())
        }
    }

    /// Whether there ever was a stream beside the default one.
    pub(crate) fn has_made_streams(&self) -> bool {
        self.table.has_made_streams() || self.streams.has_made_streams()
    }

    /// An event for as long as its recording is asked after.
    pub(crate) fn keep_event(&self) -> Result<KeptEvent, DeviceError> {
        self.streams.keep_event()
    }

    /// What was released, but is in use.
    pub(crate) fn releases(&self) -> &MemoryReleases {
        &self.releases
    }

    pub(crate) fn freeing(&self) -> &Mutex<()> {
        &self.freeing
    }

    /// Memory that is given back while there are handles to it.
    #[inline]
    pub fn deferred_frees(&self) -> &DeferredFrees {
        &self.deferred_frees
    }

    /// Streams for branches.
    pub(crate) fn streams(&self) -> &StreamPool {
        &self.streams
    }

    /// Memory that host and device see, for launches.
    pub(crate) fn shared(&self) -> &SharedPool {
        &self.shared
    }

    /// The kernels that were launched last and may still be under way.
    pub fn launch_log(&self) -> &LaunchLog {
        &self.log
    }

    /// A check that failed in a launch that nobody waited for: told once, to who waits for the device.
    #[inline]
    pub fn take_deferred_fault(&self) -> Option<DeferredFault> {
        self.deferred_faults.take()
    }

    pub(crate) fn deferred_faults(&self) -> &DeferredFaults {
        &self.deferred_faults
    }

    /// What the session records of itself.
    #[inline]
    pub fn profiler(&self) -> &Arc<Profiler> {
        &self.profiler
    }

    /// Waits until a stream is past everything that it was told before this call, or `cancel` is raised: then the answer is false. `meanwhile` is
    /// called now and then.
    pub fn wait(
        &self,
        stream: Stream,
        cancel: &Cancel,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<bool, DeviceError> {
        let point = StreamPoint::new(self, stream)?;
        self.wait_until(|| point.poll(), cancel, meanwhile)
    }

    /// Likewise, for something else to be over.
    pub(crate) fn wait_until(
        &self,
        is_over: impl Fn() -> Result<bool, DeviceError>,
        cancel: &Cancel,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<bool, DeviceError> {
        let begin = Instant::now();
        let spin_time = if self.sees_host_memory() { SPIN_TIME_ON_HOST } else { SPIN_TIME };
        while !is_over()? {
            if cancel.is_wanted() {
                return Ok(false);
            }
            meanwhile();
            if begin.elapsed() > spin_time {
                std::thread::sleep(POLL_INTERVAL);
            } else if self.sees_host_memory() {
                // The device may need this processor.
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        Ok(true)
    }

    /// What comes later on `then` waits for what `first` was told so far. The host waits for neither.
    pub(crate) fn order(&self, first: Stream, then: Stream) -> Result<(), DeviceError> {
        self.before_work(then)?;
        let event = self.streams.event()?;
        // SAFETY: both streams are live, and the guard keeps the event.
        unsafe {
            self.device.record_event(first, event.event())?;
            self.device.wait_event(then, event.event())
        }
    }

    /// Waits until a stream of this context's device has done everything.
    pub fn synchronise(&self, stream: Stream) -> Result<(), DeviceError> {
        // SAFETY: a context gives out live streams alone.
        unsafe { self.device.synchronise(stream) }
    }

    /// Waits for a stream, unless its verbs are over when they return.
    pub(crate) fn wait_if_async(&self, stream: Stream) -> Result<(), DeviceError> {
        if self.device.is_immediate(stream) { Ok(()) } else { self.synchronise(stream) }
    }

    /// Unloads a module that nobody can launch any more, once no stream runs it. Does not wait.
    pub(crate) fn retire_module(&self, module: Module, functions: Vec<Function>) {
        if self.is_cut_off() {
            return;
        }
        self.sweep();
        let made = self.table.streams();
        let busy: Vec<_> = self.streams_with(&made).filter(|&stream| self.is_busy(stream)).collect();
        if busy.is_empty() {
            self.unload(module, &functions);
        } else {
            self.modules.add(&*self.device, module, functions, &busy);
        }
    }

    /// The default stream, those that programs made, and those of branches.
    pub(crate) fn streams_with<'a>(
        &'a self,
        made: &'a [Arc<StreamState>],
    ) -> impl Iterator<Item = Stream> + 'a {
        let made = made.iter().map(|state| state.stream());
        std::iter::once(self.default_stream()).chain(made).chain(self.streams.streams())
    }

    /// Whether the stream may run something that it was told before.
    pub(crate) fn is_busy(&self, stream: Stream) -> bool {
        // SAFETY: a context has live streams alone.
        !self.device.is_immediate(stream) && !unsafe { self.device.is_idle(stream) }
    }

    fn all_idle(&self) -> bool {
        let made = self.table.streams();
        !self.streams_with(&made).any(|stream| self.is_busy(stream))
    }

    fn unload(&self, module: Module, functions: &[Function]) {
        if self.profiler.is_recording() {
            for &function in functions {
                self.profiler.forget_task(function);
            }
        }
        // SAFETY: loaded by this device, nothing runs it, and nobody can launch it any more.
        unsafe { self.device.unload_module(module) };
    }

    /// Gives back what was retired and is no longer used.
    fn sweep(&self) {
        self.table.sweep();
        self.free_released();
        for one in self.modules.take(&*self.device, &|| self.all_idle()) {
            self.unload(one.module, &one.functions);
        }
    }

    /// Waits until all streams are past what they were told before this call, or `cancel` is raised: then the answer is false. What failed in one of them is told when the
    /// others are past it, too.
    pub fn wait_all(&self, cancel: &Cancel) -> Result<bool, DeviceError> {
        let made = self.table.streams();
        let busy = self.streams_with(&made).filter(|&stream| !self.device.is_immediate(stream));
        let points: Vec<_> = busy.map(|stream| StreamPoint::new(self, stream)).collect();
        let mut first = Ok(());
        for point in points {
            match point.and_then(|point| self.wait_until(|| point.poll(), cancel, &mut || {})) {
                Ok(true) => {}
                Ok(false) => return first.map(|()| false),
                Err(error) => first = first.and(Err(error)),
            }
        }
        drop(made);
        self.sweep();
        first.and_then(|()| self.table.take_untold()).map(|()| true)
    }

    /// How many allocations live.
    pub fn allocations(&self) -> usize {
        self.allocations.load(Ordering::Relaxed)
    }

    /// How many bytes they hold.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The most bytes that they held at once.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn count_allocation(&self, bytes: usize) {
        self.allocations.fetch_add(1, Ordering::Relaxed);
        let now = self.bytes.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        self.peak_bytes.fetch_max(now, Ordering::Relaxed);
    }

    pub(crate) fn count_release(&self, bytes: usize) {
        self.allocations.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.is_cut_off() {
            return;
        }
        // What failed is told to nobody. Code that is still not seen to be over stays.
        let made = self.table.streams();
        for stream in self.streams_with(&made) {
            drop(self.wait_if_async(stream));
        }
        drop(made);
        self.free_all_released();
        self.sweep();
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("device", &self.device.name())
            .field("ended", &self.check().is_err())
            .field("allocations", &self.allocations())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}
