//! A device without a processor: it records the verbs as text.
//!
//! Ordering, lifetimes and error paths of everything above the trait are tested with it, without hardware. Its addresses are made
//! up; copies to the host leave the host's bytes alone; code never runs. Events are passed as soon as they are recorded, each recording a
//! microsecond after the one before it, unless their stream was said to be busy. One verb can be told to fail.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::capabilities::Capabilities;
use crate::device::{Address, Device, Event, Function, Module, Rows, SharedMemory, Stream, StreamPriority};
use crate::error::DeviceError;
use crate::host::HostMemory;
use crate::image::Image;
use crate::launch::{DeviceBound, Domain, Launch};

/// The null device.
pub struct NullDevice {
    state: Mutex<State>,
    capabilities: Capabilities,
    /// The host's side of shared memory.
    memory: HostMemory,
}

impl Default for NullDevice {
    fn default() -> Self {
        Self::with_capabilities(Capabilities::STREAMS)
    }
}

#[derive(Default)]
struct State {
    trace: Vec<String>,
    /// Handles given out so far; streams, events and modules share one numbering.
    handles: u64,
    allocated: u64,
    functions: Vec<String>,
    modules: Vec<(u64, Vec<u64>)>,
    failing: Option<&'static str>,
    /// Whether that is for want of memory.
    is_full: bool,
    /// How many recordings there were of all events.
    recordings: u64,
    /// Which recording was the latest of each event.
    recorded: BTreeMap<u64, u64>,
    /// Streams that come no further.
    busy: BTreeSet<u64>,
    /// A stream that is busy as soon as it was found to be idle.
    busy_after_look: Option<u64>,
    /// Events whose latest recording is in the queue of a busy stream.
    pending: BTreeMap<u64, u64>,
}

impl State {
    /// Far from zero, and each allocation apart from its neighbours.
    fn next_address(&mut self, bytes: usize) -> Address {
        let address = 0x1000_0000 + self.allocated;
        self.allocated += (bytes as u64).next_multiple_of(64) + 64;
        Address(address)
    }
}

impl NullDevice {
    pub fn new() -> Self {
        Self::default()
    }

    /// A device that says it can do this.
    pub fn with_capabilities(capabilities: Capabilities) -> Self {
        Self { state: Mutex::default(), capabilities, memory: HostMemory::new() }
    }

    /// What was recorded since the last call, one verb each.
    pub fn take_trace(&self) -> Vec<String> {
        std::mem::take(&mut self.state().trace)
    }

    /// Makes the next call of a verb fail.
    pub fn fail_next(&self, verb: &'static str) {
        let mut state = self.state();
        (state.failing, state.is_full) = (Some(verb), false);
    }

    /// Makes the next call of a verb find no memory.
    pub fn run_out_next(&self, verb: &'static str) {
        let mut state = self.state();
        (state.failing, state.is_full) = (Some(verb), true);
    }

    /// The stream comes no further than what it was told until now, or goes on.
    pub fn set_busy(&self, stream: Stream, is_busy: bool) {
        let mut state = self.state();
        if is_busy {
            state.busy.insert(stream.0);
        } else {
            state.busy.remove(&stream.0);
            state.pending.retain(|_, on| *on != stream.0);
        }
    }

    /// As [`NullDevice::set_busy`], after somebody has found the stream idle: another thread tells it more.
    pub fn set_busy_after_look(&self, stream: Stream) {
        self.state().busy_after_look = Some(stream.0);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a verb, or fails it.
    fn record(&self, verb: &'static str, rest: &str) -> Result<MutexGuard<'_, State>, DeviceError> {
        let mut state = self.state();
        if state.failing.take_if(|failing| *failing == verb).is_some() {
            state.trace.push(format!("{verb} {rest} !"));
            return Err(if state.is_full {
                DeviceError::OutOfMemory { bytes: 0 }
            } else {
                DeviceError::Failed { verb, message: "told to fail".to_owned() }
            });
        }
        state.trace.push(format!("{verb} {rest}"));
        Ok(state)
    }

    fn handle(&self, verb: &'static str, what: &str) -> Result<u64, DeviceError> {
        let mut state = self.record(verb, what)?;
        state.handles += 1;
        let handle = state.handles;
        let line = state.trace.last_mut().expect("just recorded");
        write!(line, "-> {handle}").expect("writing to a string");
        Ok(handle)
    }
}

// SAFETY: allocations are disjoint numbers, and no memory is touched at all.
unsafe impl Device for NullDevice {
    fn name(&self) -> &'static str {
        "null"
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn is_immediate(&self, _stream: Stream) -> bool {
        false
    }

    unsafe fn allocate(&self, stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        let mut state = self.record("allocate", &format!("{bytes} on {}", stream.0))?;
        Ok(state.next_address(bytes))
    }

    unsafe fn free(&self, stream: Stream, _address: Address, bytes: usize) {
        self.state().trace.push(format!("free {bytes} on {}", stream.0));
    }

    unsafe fn allocate_scratch(&self, stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        let mut state = self.record("allocate_scratch", &format!("{bytes} on {}", stream.0))?;
        Ok(state.next_address(bytes))
    }

    unsafe fn free_scratch(&self, stream: Stream, _address: Address, bytes: usize) {
        self.state().trace.push(format!("free_scratch {bytes} on {}", stream.0));
    }

    /// The host's side is real, so that there is something to look at.
    fn allocate_shared(&self, bytes: usize) -> Result<SharedMemory, DeviceError> {
        let mut state = self.record("allocate_shared", &bytes.to_string())?;
        let device = state.next_address(bytes);
        let host = self.memory.allocate(bytes)?;
        Ok(SharedMemory { host: host.as_ptr(), device, bytes })
    }

    unsafe fn free_shared(&self, memory: SharedMemory) {
        self.state().trace.push(format!("free_shared {}", memory.bytes));
        // SAFETY: allocated so above.
        unsafe { self.memory.free(Address::of(memory.host), memory.bytes) };
    }

    unsafe fn copy_to_device(
        &self,
        stream: Stream,
        _to: Address,
        _from: *const u8,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        self.record("copy_to_device", &format!("{bytes} on {}", stream.0)).map(drop)
    }

    unsafe fn copy_to_host(
        &self,
        stream: Stream,
        _to: *mut u8,
        _from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        self.record("copy_to_host", &format!("{bytes} on {}", stream.0)).map(drop)
    }

    unsafe fn copy(
        &self,
        stream: Stream,
        _to: Address,
        _from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        self.record("copy", &format!("{bytes} on {}", stream.0)).map(drop)
    }

    unsafe fn scatter(
        &self,
        stream: Stream,
        _to: Address,
        _from: Address,
        rows: &Rows,
    ) -> Result<(), DeviceError> {
        let Rows { bytes, count, stride, slices, slice_stride } = rows;
        let all = format!("{bytes} x {count} by {stride} x {slices} by {slice_stride} on {}", stream.0);
        self.record("scatter", &all).map(drop)
    }

    unsafe fn fill(
        &self,
        stream: Stream,
        _to: Address,
        pattern: &[u8],
        bytes: usize,
    ) -> Result<(), DeviceError> {
        self.record("fill", &format!("{bytes} with {pattern:02x?} on {}", stream.0)).map(drop)
    }

    fn create_stream(&self, priority: StreamPriority) -> Result<Stream, DeviceError> {
        let priority = match priority {
            StreamPriority::Low => "low ",
            StreamPriority::Normal => "",
            StreamPriority::High => "high ",
        };
        self.handle("create_stream", priority).map(Stream)
    }

    unsafe fn destroy_stream(&self, stream: Stream) {
        self.state().trace.push(format!("destroy_stream {}", stream.0));
    }

    fn create_event(&self, timing: bool) -> Result<Event, DeviceError> {
        self.handle("create_event", if timing { "timed " } else { "" }).map(Event)
    }

    unsafe fn destroy_event(&self, event: Event) {
        let mut state = self.state();
        state.recorded.remove(&event.0);
        state.trace.push(format!("destroy_event {}", event.0));
    }

    unsafe fn record_event(&self, stream: Stream, event: Event) -> Result<(), DeviceError> {
        let mut state = self.record("record_event", &format!("{} on {}", event.0, stream.0))?;
        state.recordings += 1;
        let recording = state.recordings;
        state.recorded.insert(event.0, recording);
        state.pending.remove(&event.0);
        if state.busy.contains(&stream.0) {
            state.pending.insert(event.0, stream.0);
        }
        Ok(())
    }

    unsafe fn wait_event(&self, stream: Stream, event: Event) -> Result<(), DeviceError> {
        self.record("wait_event", &format!("{} on {}", event.0, stream.0)).map(drop)
    }

    unsafe fn event_passed(&self, event: Event) -> bool {
        !self.state().pending.contains_key(&event.0)
    }

    unsafe fn poll_event(&self, event: Event) -> Result<bool, DeviceError> {
        self.record("poll_event", &event.0.to_string()).map(|state| !state.pending.contains_key(&event.0))
    }

    unsafe fn synchronise_event(&self, event: Event) -> Result<(), DeviceError> {
        self.record("synchronise_event", &event.0.to_string()).map(drop)
    }

    unsafe fn elapsed(&self, start: Event, end: Event) -> Result<Option<f64>, DeviceError> {
        let state = self.record("elapsed", &format!("{} to {}", start.0, end.0))?;
        let time = |event: Event| state.recorded.get(&event.0).map(|&recording| 1000.0 * recording as f64);
        Ok(time(start).zip(time(end)).map(|(start, end)| end - start))
    }

    unsafe fn synchronise(&self, stream: Stream) -> Result<(), DeviceError> {
        self.record("synchronise", &stream.0.to_string()).map(drop)
    }

    unsafe fn is_idle(&self, stream: Stream) -> bool {
        let mut state = self.state();
        state.trace.push(format!("is_idle {}", stream.0));
        let is_idle = !state.busy.contains(&stream.0);
        if is_idle && state.busy_after_look.take_if(|one| *one == stream.0).is_some() {
            state.busy.insert(stream.0);
        }
        is_idle
    }

    unsafe fn poll(&self, stream: Stream) -> Result<bool, DeviceError> {
        if self.state().busy.contains(&stream.0) {
            return Ok(false);
        }
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.synchronise(stream).map(|()| true) }
    }

    unsafe fn load_module(&self, image: &Image<'_>) -> Result<Module, DeviceError> {
        let mut state = self.record("load_module", image.name)?;
        state.handles += 1;
        let module = state.handles;
        let first = state.functions.len() as u64;
        state.functions.extend(image.parts.iter().map(|part| part.symbol.to_owned()));
        let functions = (first..state.functions.len() as u64).collect();
        state.modules.push((module, functions));
        Ok(Module(module))
    }

    unsafe fn unload_module(&self, module: Module) {
        let mut state = self.state();
        state.modules.retain(|(live, _)| *live != module.0);
        state.trace.push(format!("unload_module {}", module.0));
    }

    unsafe fn function(&self, module: Module, symbol: &str) -> Option<Function> {
        let state = self.state();
        let (_, functions) = state.modules.iter().find(|(live, _)| *live == module.0)?;
        functions.iter().copied().find(|&f| state.functions[f as usize] == symbol).map(Function)
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        let name = self.state().functions[launch.function.0 as usize].clone();
        let points = match &launch.domain {
            Domain::Once => "once".to_owned(),
            Domain::Range(range) => axes(range.bounds, ToString::to_string),
            Domain::DeviceRange(range) => axes(range.bounds, |bound| match bound {
                DeviceBound::Known(value) => value.to_string(),
                DeviceBound::InMemory { at, bits, signed } => {
                    let offset = at.0.wrapping_sub(launch.context.memory.temps.0);
                    format!("{}{bits} at temps + {offset}", if *signed { 'i' } else { 'u' })
                }
            }),
        };
        self.record("launch", &format!("{name} {points} on {}", launch.context.stream.0)).map(drop)
    }
}

/// `lo..hi` of each axis.
fn axes<T>(bounds: &[T], text: impl Fn(&T) -> String) -> String {
    let axes: Vec<_> =
        bounds.chunks(2).map(|axis| format!("{}..{}", text(&axis[0]), text(&axis[1]))).collect();
    axes.join(" x ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_recorded_in_order_and_one_can_be_told_to_fail() {
        let device = NullDevice::new();
        let default = device.default_stream();
        // SAFETY: the null device touches no memory.
        let [one, two] = [100, 1].map(|bytes| unsafe { device.allocate(default, bytes).unwrap() });
        assert!(two.0 >= one.0 + 100, "allocations are disjoint");
        device.fail_next("create_event");
        let stream = device.create_stream(StreamPriority::Normal).unwrap();
        assert!(device.create_event(false).is_err());
        let event = device.create_event(false).unwrap();
        // SAFETY: the null device touches no memory, and the handles are its own.
        unsafe {
            device.record_event(device.default_stream(), event).unwrap();
            device.wait_event(stream, event).unwrap();
            device.free(default, one, 100);
        }
        assert_eq!(
            device.take_trace(),
            [
                "allocate 100 on 0",
                "allocate 1 on 0",
                "create_stream -> 1",
                "create_event  !",
                "create_event -> 2",
                "record_event 2 on 0",
                "wait_event 2 on 1",
                "free 100 on 0",
            ]
        );
    }

    #[test]
    fn recordings_are_a_microsecond_apart_and_verbs_of_time_are_recorded_too() {
        let device = NullDevice::new();
        let stream = device.create_stream(StreamPriority::High).unwrap();
        let low = device.create_stream(StreamPriority::Low).unwrap();
        let [start, end] = [(); 2].map(|()| device.create_event(true).unwrap());
        // SAFETY: the null device touches no memory, and the handles are its own.
        unsafe {
            device.record_event(stream, start).unwrap();
            assert!(device.poll_event(end).unwrap(), "never recorded");
            assert_eq!(device.elapsed(start, end), Ok(None));
            device.record_event(low, end).unwrap();
            device.synchronise_event(end).unwrap();
            assert_eq!(device.elapsed(start, end), Ok(Some(1000.0)));
        }
        assert_eq!(
            device.take_trace(),
            [
                "create_stream high -> 1",
                "create_stream low -> 2",
                "create_event timed -> 3",
                "create_event timed -> 4",
                "record_event 3 on 1",
                "poll_event 4",
                "elapsed 3 to 4",
                "record_event 4 on 2",
                "synchronise_event 4",
                "elapsed 3 to 4",
            ]
        );
    }
}
