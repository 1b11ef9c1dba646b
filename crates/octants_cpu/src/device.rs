//! The host's processor as a device.

use std::mem::transmute;
use std::sync::{Arc, Mutex, PoisonError};

use octants_hal::host::{self, Filler};
use octants_hal::{
    Address, Capabilities, Device, DeviceError, DeviceProperties, Event, ForkCosts, Function, Image, Launch,
    Module, Stream, StreamPriority,
};
use octants_llvm_sys::{LoadError, Loaded, load};

use crate::core::{Core, Task, TaskFunction};
use crate::exclusive::Exclusive;
use crate::pool::{Outcome, Schedule};
use crate::stream::{
    Allocation, Command, EventHandle, QueuedLaunch, Recording, StreamHandle, StreamQueue, error_before,
    error_of,
};
use crate::work::MeasuredWork;

/// Bytes of the host that a copy to a busy stream reads at once, to be written later; for longer ones it waits. Chosen, not measured: what
/// is copied twice stays in a second-level cache.
const MAX_STAGED_BYTES: usize = 1 << 20;

/// Instructions that take as long as giving a branch of a fork to another thread: 5 µs, at three instructions a nanosecond. The queue itself costs
/// half a microsecond, but the thread that takes the branch may have to be woken: of two serial branches, those of 11 µs took as long as
/// in order, those of 32 µs were 1.84 times as fast, and those of 108 µs 1.97 times (2 cores).
const BRANCH_INSTRUCTIONS: u64 = 15_000;

/// The host's processor: native code on a pool of threads.
///
/// The default stream is immediate: its verbs run on the calling thread, and on workers that join. Other streams are queues.
pub struct CpuDevice {
    core: Arc<Core>,
}

/// The code of a module's parts, and what was asked for of it.
struct LoadedModule {
    parts: Vec<Loaded>,
    /// Boxed, since [`Function`]s are their addresses.
    #[allow(clippy::vec_box, reason = "addresses stay when the list grows")]
    functions: Mutex<Vec<Box<TaskFunction>>>,
}

impl CpuDevice {
    /// A device whose loops run on `threads` threads, the caller included; 0 means one for each processor of the process.
    pub fn new(threads: usize) -> Self {
        Self { core: Arc::new(Core::new(threads)) }
    }

    pub fn threads(&self) -> usize {
        self.core.pool.threads()
    }
}

impl Drop for CpuDevice {
    fn drop(&mut self) {
        // Streams that nobody destroyed refer to the core, which refers to them.
        self.core.pool.stop();
        self.core.streams.clear();
    }
}

/// The queue of a stream; `None` for the default one.
///
/// # Safety
/// The stream is live.
#[inline]
unsafe fn queue_of<'a>(stream: Stream) -> Option<&'a Arc<StreamQueue>> {
    // SAFETY: the default stream is null, and others are addresses of handles.
    unsafe { (stream.0 as *const StreamHandle).as_ref() }.map(StreamHandle::queue)
}

/// # Safety
/// The event is live.
unsafe fn handle_of<'a>(event: Event) -> &'a EventHandle {
    // SAFETY: events are addresses of handles.
    unsafe { &*(event.0 as *const EventHandle) }
}

// SAFETY: allocations are the system's, queues keep the order of verbs, and generated code stays inside its arguments.
unsafe impl Device for CpuDevice {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::HOST_MEMORY
            | Capabilities::CANCEL
            | Capabilities::COMMITS_ON_DEMAND
            | Capabilities::STREAMS
            | Capabilities::DEVICE_BOUNDS
            | Capabilities::STOPS_AT_FAULT
    }

    fn properties(&self) -> Result<DeviceProperties, DeviceError> {
        Ok(DeviceProperties::of_host(host::processor_name(), self.threads()))
    }

    fn is_usable_in_child(&self) -> bool {
        true
    }

    fn is_at_rest(&self) -> bool {
        self.core.streams.are_idle()
    }

    #[inline]
    fn is_immediate(&self, stream: Stream) -> bool {
        stream == self.default_stream()
    }

    fn fork_costs(&self) -> ForkCosts {
        let threads = self.threads() as u64;
        // Two loops of a million iterations that keep both of two cores busy take 12 % longer side by side.
        ForkCosts { threads, branch_instructions: BRANCH_INSTRUCTIONS, loops_fill: true }
    }

    fn copies(&self) -> usize {
        self.threads()
    }

    #[inline]
    fn begin_exclusive(&self, stream: Stream) -> bool {
        self.core.exclusive.as_ref().is_some_and(|exclusive| self.is_immediate(stream) && exclusive.begin())
    }

    #[inline]
    fn end_exclusive(&self) {
        if let Some(exclusive) = &self.core.exclusive {
            exclusive.end();
        }
    }

    fn waits_for_exclusive(&self) -> bool {
        self.core.exclusive.as_ref().is_some_and(Exclusive::is_others)
    }

    unsafe fn allocate(&self, _stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        self.core.memory.allocate(bytes)
    }

    unsafe fn reserve(&self, _stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        self.core.memory.reserve(bytes)
    }

    fn reservable(&self) -> u64 {
        self.core.memory.reservable()
    }

    unsafe fn commit(&self, reserved: Address, bytes: usize) -> Result<(), DeviceError> {
        self.core.memory.commit(reserved, bytes)
    }

    unsafe fn free(&self, stream: Stream, address: Address, bytes: usize) {
        // SAFETY: the caller keeps the verb's contract.
        match unsafe { queue_of(stream) }.filter(|queue| !queue.is_idle()) {
            Some(queue) => {
                let allocation = Allocation { core: Arc::clone(&self.core), address, bytes };
                queue.push(Command::Free(allocation), &self.core);
            }
            // SAFETY: as above; an idle stream, such as the default one, has come so far.
            None => unsafe { self.core.memory.free(address, bytes) },
        }
    }

    unsafe fn copy_to_device(
        &self,
        stream: Stream,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract; an address of the device is one of the host.
        unsafe {
            match queue_of(stream) {
                Some(queue) if bytes <= MAX_STAGED_BYTES && !queue.is_idle() => {
                    let from = std::slice::from_raw_parts(from, bytes).into();
                    self.core.push(queue, Command::Write { to, from })
                }
                queue => self.core.copy_now(queue, to, Address::of(from), bytes),
            }
        }
    }

    unsafe fn copy_to_host(
        &self,
        stream: Stream,
        to: *mut u8,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract; an address of the device is one of the host.
        unsafe { self.core.copy_now(queue_of(stream), Address::of(to), from, bytes) }
    }

    unsafe fn copy(
        &self,
        stream: Stream,
        to: Address,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe {
            if let Some(queue) = queue_of(stream) {
                return self.core.push(queue, Command::Copy { to, from, bytes });
            }
            self.core.copy(to, from, bytes);
        }
        Ok(())
    }

    unsafe fn fill(
        &self,
        stream: Stream,
        to: Address,
        pattern: &[u8],
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let filler = Filler::new(pattern, bytes);
        // SAFETY: the caller keeps the verb's contract.
        unsafe {
            if let Some(queue) = queue_of(stream) {
                return self.core.push(queue, Command::Fill { to, filler, bytes });
            }
            self.core.fill(to, &filler, bytes);
        }
        Ok(())
    }

    fn host_threads(&self) -> usize {
        self.threads()
    }

    fn run_on_host(&self, parts: u64, work: &(dyn Fn(u64, u64) + Sync)) {
        let schedule = Schedule { grain: 1, max_chunk: u64::MAX, max_threads: usize::MAX, cancel: None };
        let outcome = self.core.pool.run(parts, &schedule, &|_, begin, end| work(begin, end));
        debug_assert_eq!(outcome, Outcome::Completed, "nobody cancels it");
    }

    fn create_stream(&self, priority: StreamPriority) -> Result<Stream, DeviceError> {
        Ok(Stream(Box::into_raw(Box::new(StreamHandle::new(&self.core, priority))) as u64))
    }

    unsafe fn destroy_stream(&self, stream: Stream) {
        // SAFETY: made by `create_stream`, and never used again.
        let handle = unsafe { Box::from_raw(stream.0 as *mut StreamHandle) };
        // What failed and was not asked for is told to nobody.
        drop(self.core.wait_for(&handle.queue().record(&self.core)));
    }

    fn create_event(&self, _timing: bool) -> Result<Event, DeviceError> {
        Ok(Event(Box::into_raw(Box::<EventHandle>::default()) as u64))
    }

    unsafe fn destroy_event(&self, event: Event) {
        // SAFETY: made by `create_event`, and never used again. Streams that wait have references of their own.
        drop(unsafe { Box::from_raw(event.0 as *mut EventHandle) });
    }

    unsafe fn record_event(&self, stream: Stream, event: Event) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        let (queue, event) = unsafe { (queue_of(stream), handle_of(event)) };
        event.record(match queue {
            Some(queue) => queue.record(&self.core),
            None => Recording::passed_at(self.core.nanoseconds(), None),
        });
        Ok(())
    }

    unsafe fn wait_event(&self, stream: Stream, event: Event) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        let (queue, latest) = unsafe { (queue_of(stream), handle_of(event).latest()) };
        match (queue, latest) {
            (_, None) => Ok(()),
            (Some(queue), Some(recording)) => {
                queue.wait(&recording);
                Ok(())
            }
            (None, Some(recording)) => self.core.wait_for(&recording),
        }
    }

    unsafe fn event_passed(&self, event: Event) -> bool {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { handle_of(event) }.latest().is_none_or(|recording| recording.is_passed())
    }

    unsafe fn poll_event(&self, event: Event) -> Result<bool, DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        let handle = unsafe { handle_of(event) };
        let Some(recording) = handle.latest() else { return Ok(true) };
        if recording.is_passed() {
            if let Some(queue) = handle.take_awaited() {
                Core::end_wait(&queue);
            }
            return error_before(&recording).map(|()| true);
        }
        if let Some(queue) = recording.queue() {
            handle.await_queue(&queue);
            self.core.see_to(&queue)?;
        }
        Ok(false)
    }

    unsafe fn synchronise_event(&self, event: Event) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        match unsafe { handle_of(event) }.latest() {
            Some(recording) => self.core.wait_for(&recording),
            None => Ok(()),
        }
    }

    unsafe fn elapsed(&self, start: Event, end: Event) -> Result<Option<f64>, DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        let [start, end] =
            [start, end].map(|event| unsafe { handle_of(event) }.latest().and_then(|latest| latest.time()));
        Ok(start.zip(end).map(|(start, end)| end as f64 - start as f64))
    }

    unsafe fn synchronise(&self, stream: Stream) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        let Some(queue) = (unsafe { queue_of(stream) }) else { return Ok(()) };
        if !queue.is_idle() {
            self.core.wait_for(&queue.record(&self.core))?;
        }
        error_of(queue)
    }

    unsafe fn is_idle(&self, stream: Stream) -> bool {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { queue_of(stream) }.is_none_or(|queue| queue.is_idle())
    }

    unsafe fn poll(&self, stream: Stream) -> Result<bool, DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        let Some(queue) = (unsafe { queue_of(stream) }) else { return Ok(true) };
        if queue.is_idle() {
            Core::end_wait(queue);
            return error_of(queue).map(|()| true);
        }
        self.core.see_to(queue)?;
        Ok(false)
    }

    unsafe fn assist(&self, stream: Stream) -> bool {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { queue_of(stream) }.is_some_and(|queue| !queue.is_idle() && self.core.assist(queue))
    }

    unsafe fn load_module(&self, image: &Image<'_>) -> Result<Module, DeviceError> {
        let parts = image.parts.iter().map(|part| {
            load(part.bytes, &[]).map_err(|error| match error {
                LoadError::Memory(message) => DeviceError::Failed { verb: "load_module", message },
                other => DeviceError::BadImage { message: format!("`{}`: {other}", part.symbol) },
            })
        });
        let parts = parts.collect::<Result<_, _>>()?;
        let module = Box::new(LoadedModule { parts, functions: Mutex::default() });
        Ok(Module(Box::into_raw(module) as u64))
    }

    unsafe fn unload_module(&self, module: Module) {
        // SAFETY: made by `load_module`, and never used again.
        drop(unsafe { Box::from_raw(module.0 as *mut LoadedModule) });
    }

    unsafe fn function(&self, module: Module, symbol: &str) -> Option<Function> {
        // SAFETY: made by `load_module`, and alive.
        let module = unsafe { &*(module.0 as *const LoadedModule) };
        let address = module.parts.iter().find_map(|part| part.symbol(symbol))?;
        // SAFETY: the address of a task in loaded code, which has this signature.
        let code: Task = unsafe { transmute(address) };
        let function = Box::new(TaskFunction { code, work: MeasuredWork::default() });
        let address = Address::of(&raw const *function);
        module.functions.lock().unwrap_or_else(PoisonError::into_inner).push(function);
        Some(Function(address.0))
    }

    #[inline]
    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe {
            match queue_of(launch.context.stream) {
                None => self.core.run_task(launch),
                Some(queue) => self.core.push(queue, Command::Launch(Box::new(QueuedLaunch::new(launch)))),
            }
        }
    }
}
