//! A device that notes what it is told on the way to another one.
//!
//! **Every verb is handed on**, in the same order and with the same arguments; all that is added are recordings of events around work.

use std::sync::Arc;
use std::time::Instant;

use octants_hal::{
    Address, Capabilities, Device, DeviceError, Event, ForkCosts, Function, FunctionUsage, Image, Launch,
    Module, SharedMemory, Stream, StreamPriority,
};

use super::Profiler;
use super::log::{Timing, Work};
use super::trace::{Activity, Track};

pub(crate) struct ProfiledDevice {
    inner: Arc<dyn Device>,
    profiler: Arc<Profiler>,
}

impl ProfiledDevice {
    /// The profiler records for this device.
    pub fn new(inner: Arc<dyn Device>, profiler: Arc<Profiler>) -> Self {
        Self { inner, profiler }
    }

    /// # Safety
    /// The stream is live.
    unsafe fn noted(
        &self,
        stream: Stream,
        work: Work,
        run: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let Profiler { log, streams, .. } = &*self.profiler;
        let Some(streams) = streams else { return run() };
        if streams.has_events(stream) {
            // What waits for the device would make other threads wait.
            let alone = matches!(work, Work::Task { .. });
            // SAFETY: the caller says so.
            return unsafe { streams.record(stream, work, alone, log, run) };
        }
        let begin = Instant::now();
        run()?;
        let duration = begin.elapsed().as_nanos() as u64;
        let timing = Timing { start: self.profiler.since_epoch(begin), duration, on_device: false };
        let track = Track::Stream { stream: streams.number(stream), thread: self.profiler.thread() };
        self.profiler.log().add(track, work, timing);
        Ok(())
    }

    /// # Safety
    /// The stream is live.
    unsafe fn noted_copy(
        &self,
        stream: Stream,
        activity: Activity,
        bytes: usize,
        run: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller says so.
        unsafe { self.noted(stream, Work::Other { activity, bytes: bytes as u64 }, run) }
    }
}

// SAFETY: every verb is one of a device that keeps the contract; recordings of events touch no memory.
unsafe impl Device for ProfiledDevice {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn clock_rate(&self) -> Option<u64> {
        self.inner.clock_rate()
    }

    fn default_stream(&self) -> Stream {
        self.inner.default_stream()
    }

    fn is_immediate(&self, stream: Stream) -> bool {
        self.inner.is_immediate(stream)
    }

    fn fork_costs(&self) -> ForkCosts {
        self.inner.fork_costs()
    }

    fn copies(&self) -> usize {
        self.inner.copies()
    }

    fn allocate(&self, bytes: usize) -> Result<Address, DeviceError> {
        self.inner.allocate(bytes)
    }

    fn reserve(&self, bytes: usize) -> Result<Address, DeviceError> {
        self.inner.reserve(bytes)
    }

    fn reservable(&self) -> u64 {
        self.inner.reservable()
    }

    fn assemble(&self, code: &[u8]) -> Result<Option<Vec<u8>>, DeviceError> {
        self.inner.assemble(code)
    }

    unsafe fn free(&self, address: Address, bytes: usize) {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.free(address, bytes) };
    }

    unsafe fn allocate_scratch(&self, stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.allocate_scratch(stream, bytes) }
    }

    unsafe fn free_scratch(&self, stream: Stream, address: Address, bytes: usize) {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.free_scratch(stream, address, bytes) };
    }

    fn allocate_shared(&self, bytes: usize) -> Result<SharedMemory, DeviceError> {
        self.inner.allocate_shared(bytes)
    }

    unsafe fn free_shared(&self, memory: SharedMemory) {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.free_shared(memory) };
    }

    unsafe fn copy_to_device(
        &self,
        stream: Stream,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe {
            self.noted_copy(stream, Activity::CopyToDevice, bytes, || {
                self.inner.copy_to_device(stream, to, from, bytes)
            })
        }
    }

    unsafe fn copy_to_host(
        &self,
        stream: Stream,
        to: *mut u8,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe {
            self.noted_copy(stream, Activity::CopyToHost, bytes, || {
                self.inner.copy_to_host(stream, to, from, bytes)
            })
        }
    }

    unsafe fn copy(
        &self,
        stream: Stream,
        to: Address,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.noted_copy(stream, Activity::Copy, bytes, || self.inner.copy(stream, to, from, bytes)) }
    }

    unsafe fn fill(
        &self,
        stream: Stream,
        to: Address,
        pattern: &[u8],
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe {
            self.noted_copy(stream, Activity::Fill, bytes, || self.inner.fill(stream, to, pattern, bytes))
        }
    }

    fn create_stream(&self, priority: StreamPriority) -> Result<Stream, DeviceError> {
        self.inner.create_stream(priority)
    }

    unsafe fn destroy_stream(&self, stream: Stream) {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.destroy_stream(stream) };
        if let Some(streams) = &self.profiler.streams {
            streams.retire(stream, &self.profiler.log);
        }
    }

    fn create_event(&self, timing: bool) -> Result<Event, DeviceError> {
        self.inner.create_event(timing)
    }

    unsafe fn destroy_event(&self, event: Event) {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.destroy_event(event) };
    }

    unsafe fn record_event(&self, stream: Stream, event: Event) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.record_event(stream, event) }
    }

    unsafe fn wait_event(&self, stream: Stream, event: Event) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.wait_event(stream, event) }
    }

    unsafe fn event_passed(&self, event: Event) -> Result<bool, DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.event_passed(event) }
    }

    unsafe fn synchronise_event(&self, event: Event) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.synchronise_event(event) }
    }

    unsafe fn elapsed(&self, start: Event, end: Event) -> Result<Option<f64>, DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.elapsed(start, end) }
    }

    unsafe fn synchronise(&self, stream: Stream) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.synchronise(stream) }
    }

    unsafe fn is_idle(&self, stream: Stream) -> Result<bool, DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.is_idle(stream) }
    }

    unsafe fn assist(&self, stream: Stream) -> bool {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.assist(stream) }
    }

    unsafe fn load_module(&self, image: &Image<'_>) -> Result<Module, DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.load_module(image) }
    }

    unsafe fn unload_module(&self, module: Module) {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.unload_module(module) };
    }

    unsafe fn function(&self, module: Module, symbol: &str) -> Option<Function> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.function(module, symbol) }
    }

    unsafe fn function_usage(&self, function: Function) -> Result<Option<FunctionUsage>, DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.function_usage(function) }
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        let name = self.profiler.task_name(launch.function);
        let work = Work::Task { name, launch: launch.context.launch };
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.noted(launch.context.stream, work, || self.inner.launch(launch)) }
    }
}

#[cfg(test)]
mod tests {
    /// A verb with a body that is not handed on would be answered by that body.
    #[test]
    fn every_verb_of_a_device_is_handed_on() {
        let verbs = |text: &'static str| {
            text.lines().filter_map(|line| {
                let line = line.trim_start().trim_start_matches("unsafe ");
                line.strip_prefix("fn ").and_then(|rest| rest.split_once('(')).map(|(name, _)| name)
            })
        };
        let (_, declared) =
            include_str!("../../../octants_hal/src/device.rs").split_once("pub unsafe trait Device").unwrap();
        let handed: Vec<_> = verbs(include_str!("device.rs")).collect();
        for verb in verbs(declared) {
            assert!(handed.contains(&verb), "`{verb}` is not handed on");
            assert!(include_str!("device.rs").contains(&format!("self.inner.{verb}(")), "`{verb}`");
        }
    }
}
