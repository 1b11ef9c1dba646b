//! The side that asks.

use std::io;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::mirror::{Blocks, Point};
use super::wire::{Reader, Verb, Writer, broken, read_outcome, receive};
use crate::capabilities::Capabilities;
use crate::device::{
    Address, Device, Event, ForkCosts, Function, Module, Rows, SharedMemory, Stream, StreamPriority,
};
use crate::error::DeviceError;
use crate::forked;
use crate::image::Image;
use crate::launch::{DeviceBound, Domain, Launch, LaunchContext};
use crate::properties::DeviceProperties;
use crate::shape::{Grid, PointMapping};
use crate::usage::FunctionUsage;

/// Bytes of a copy that travel in one message. Chosen.
const COPY_BYTES: usize = 4 << 20;

/// How long a process may take to end by itself: a driver closes its context in a third of a second. Chosen.
const MAX_END_TIME: Duration = Duration::from_secs(3);
const END_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// What such a device may be able to do. Streams of this process' other libraries are none of its own, and it does not see this
/// process' flags.
const CAPABILITIES: [Capabilities; 2] = [Capabilities::DEVICE_BOUNDS, Capabilities::STREAMS];

/// Those of [`CAPABILITIES`] that a device has.
pub(super) fn capability_words(capabilities: Capabilities) -> [u64; CAPABILITIES.len()] {
    CAPABILITIES.map(|one| capabilities.has(one).into())
}

pub(super) fn usage_words(usage: &FunctionUsage) -> [u64; 6] {
    let &FunctionUsage {
        registers,
        local_bytes,
        shared_bytes,
        block,
        resident_threads,
        max_resident_threads,
    } = usage;
    [registers, local_bytes, shared_bytes, block, resident_threads, max_resident_threads].map(u64::from)
}

/// A device of another process.
pub struct ProcessDevice {
    state: Mutex<State>,
    name: String,
    capabilities: Capabilities,
    clock_rate: Option<u64>,
    default_stream: Stream,
    fork_costs: ForkCosts,
    /// Of the process that connected.
    generation: u32,
}

struct State {
    channel: UnixStream,
    shared: Blocks,
    /// The process, if it is a child of this one: it ends when the channel does.
    child: Option<Child>,
}

impl ProcessDevice {
    /// The device of whoever [serves](super::serve) at the other end, and what a compiler for it wants to know; or why there is none.
    pub fn connect(mut channel: UnixStream, child: Option<Child>) -> Result<(Self, Vec<u64>), String> {
        forked::watch();
        let said =
            |error: io::Error| format!("the process that was to open the device does not answer: {error}");
        let hello = receive(&mut channel).map_err(said)?;
        let hello = hello.ok_or_else(|| said(io::ErrorKind::UnexpectedEof.into()))?;
        let mut hello = Reader(&hello);
        let mut read = || -> io::Result<Result<(Self, Vec<u64>), String>> {
            if hello.word()? == 0 {
                return Ok(Err(hello.text()?));
            }
            let name = hello.text()?;
            let has = hello.words()?;
            let there = CAPABILITIES.into_iter().zip(has).filter(|(_, has)| *has != 0);
            let capabilities = there.fold(Capabilities::NONE, |all, (one, _)| all | one);
            let (clock_rate, default_stream) = (hello.option()?, Stream(hello.word()?));
            let fork_costs = ForkCosts {
                threads: hello.word()?,
                branch_instructions: hello.word()?,
                loops_fill: hello.word()? != 0,
            };
            let facts = hello.words()?;
            let state = State { channel: channel.try_clone()?, shared: Blocks::default(), child: None };
            let state = Mutex::new(state);
            let generation = forked::generation();
            let device =
                Self { state, name, capabilities, clock_rate, default_stream, fork_costs, generation };
            Ok(Ok((device, facts)))
        };
        let (device, facts) = read().map_err(said)??;
        device.state().child = child;
        Ok((device, facts))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks, and reads the answer of a verb that did what it was told.
    fn ask<T>(
        &self,
        verb: Verb,
        name: &'static str,
        write: impl FnOnce(&mut Writer, &mut Blocks),
        read: impl FnOnce(&mut Reader<'_>, &mut Blocks) -> io::Result<T>,
    ) -> Result<T, DeviceError> {
        let state = &mut *self.state();
        let mut request = Writer::default();
        request.word(verb as u64);
        write(&mut request, &mut state.shared);
        let exchange = || -> io::Result<Result<T, DeviceError>> {
            request.send(&mut state.channel)?;
            let answer = receive(&mut state.channel)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let mut answer = Reader(&answer);
            match read_outcome(&mut answer, name)? {
                Ok(()) => read(&mut answer, &mut state.shared).map(Ok),
                Err(error) => Ok(Err(error)),
            }
        };
        exchange().unwrap_or_else(|error| {
            Err(DeviceError::Lost { message: format!("the process that has the device is gone: {error}") })
        })
    }

    /// A verb of words alone that gives nothing.
    fn tell(&self, verb: Verb, name: &'static str, words: &[u64]) -> Result<(), DeviceError> {
        self.ask(verb, name, |request, _| put(request, words), |_, _| Ok(()))
    }

    /// A verb of words alone that gives one.
    fn word(&self, verb: Verb, name: &'static str, words: &[u64]) -> Result<u64, DeviceError> {
        self.ask(verb, name, |request, _| put(request, words), |answer, _| answer.word())
    }

    /// What a stream was told so far: to be asked for before it is looked at, since other threads launch meanwhile.
    fn end_of(&self, stream: Stream) -> Point {
        self.state().shared.end_of(stream)
    }

    /// Takes over what launches have written to shared memory. Whoever has waited for a launch looks at it, whatever was waited for: a point that a stream was seen
    /// to be past, or an event, behind which its stream may have more to do.
    fn read_shared(&self, passed: Option<Point>) -> Result<(), DeviceError> {
        let under_way = self.state().shared.under_way();
        under_way.into_iter().try_for_each(|(device, bytes)| {
            self.ask(
                Verb::ReadShared,
                "poll",
                |request, _| put(request, &[device.0, bytes]),
                |answer, blocks| {
                    blocks.update(device, answer.bytes()?, passed);
                    Ok(())
                },
            )
        })
    }
}

fn put(request: &mut Writer, words: &[u64]) {
    for &word in words {
        request.word(word);
    }
}

impl Drop for ProcessDevice {
    /// In a forked child the channel and the process at its end are the parent's: the child only closes its own copy.
    fn drop(&mut self) {
        if self.generation != forked::generation() {
            return;
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // The other side ends with the channel, unless its device does not let it go.
        let _ = state.channel.shutdown(std::net::Shutdown::Both);
        let Some(mut child) = state.child.take() else { return };
        let begin = Instant::now();
        while let Ok(None) = child.try_wait() {
            if begin.elapsed() > MAX_END_TIME {
                let _ = child.kill();
                let _ = child.wait();
                return;
            }
            std::thread::sleep(END_POLL_INTERVAL);
        }
    }
}

// SAFETY: the other side keeps the contract; handles and addresses are its own, and shared memory is a copy that stays where it is.
unsafe impl Device for ProcessDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn properties(&self) -> Result<DeviceProperties, DeviceError> {
        let read = |answer: &mut Reader<'_>, _: &mut Blocks| Ok((answer.text()?, answer.words()?));
        let (name, numbers) = self.ask(Verb::Properties, "properties", |_, _| {}, read)?;
        Ok(DeviceProperties::from_numbers(name, &numbers))
    }

    fn clock_rate(&self) -> Option<u64> {
        self.clock_rate
    }

    fn default_stream(&self) -> Stream {
        self.default_stream
    }

    fn is_immediate(&self, _stream: Stream) -> bool {
        false
    }

    fn fork_costs(&self) -> ForkCosts {
        self.fork_costs
    }

    unsafe fn allocate(&self, stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        self.word(Verb::Allocate, "allocate", &[stream.0, bytes as u64]).map(Address)
    }

    unsafe fn free(&self, stream: Stream, address: Address, bytes: usize) {
        // A process that is gone has freed it already.
        let _ = self.tell(Verb::Free, "free", &[stream.0, address.0, bytes as u64]);
    }

    unsafe fn allocate_scratch(&self, stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        self.word(Verb::AllocateScratch, "allocate_scratch", &[stream.0, bytes as u64]).map(Address)
    }

    unsafe fn free_scratch(&self, stream: Stream, address: Address, bytes: usize) {
        let _ = self.tell(Verb::FreeScratch, "free_scratch", &[stream.0, address.0, bytes as u64]);
    }

    fn allocate_shared(&self, bytes: usize) -> Result<SharedMemory, DeviceError> {
        self.ask(
            Verb::AllocateShared,
            "allocate_shared",
            |request, _| put(request, &[bytes as u64]),
            |answer, blocks| Ok(blocks.add(Address(answer.word()?), answer.word()? as usize)),
        )
    }

    unsafe fn free_shared(&self, memory: SharedMemory) {
        let _ = self.tell(Verb::FreeShared, "free_shared", &[memory.device.0]);
        self.state().shared.remove(memory.device);
    }

    unsafe fn copy_to_device(
        &self,
        stream: Stream,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        for offset in (0..bytes).step_by(COPY_BYTES) {
            // SAFETY: the caller keeps the verb's contract.
            let piece =
                unsafe { std::slice::from_raw_parts(from.add(offset), COPY_BYTES.min(bytes - offset)) };
            self.ask(
                Verb::CopyToDevice,
                "copy_to_device",
                |request, _| {
                    request.word(stream.0).word(to.offset(offset).0).bytes(piece);
                },
                |_, _| Ok(()),
            )?;
        }
        Ok(())
    }

    unsafe fn copy_to_host(
        &self,
        stream: Stream,
        to: *mut u8,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        for offset in (0..bytes).step_by(COPY_BYTES) {
            // SAFETY: the caller keeps the verb's contract.
            let piece =
                unsafe { std::slice::from_raw_parts_mut(to.add(offset), COPY_BYTES.min(bytes - offset)) };
            let words = [stream.0, from.offset(offset).0, piece.len() as u64];
            self.ask(
                Verb::CopyToHost,
                "copy_to_host",
                |request, _| put(request, &words),
                |answer, _| {
                    let found = answer.bytes()?;
                    if found.len() != piece.len() {
                        return Err(broken("a copy of another length"));
                    }
                    piece.copy_from_slice(found);
                    Ok(())
                },
            )?;
        }
        Ok(())
    }

    unsafe fn copy(
        &self,
        stream: Stream,
        to: Address,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        self.tell(Verb::Copy, "copy", &[stream.0, to.0, from.0, bytes as u64])
    }

    unsafe fn scatter(
        &self,
        stream: Stream,
        to: Address,
        from: Address,
        rows: &Rows,
    ) -> Result<(), DeviceError> {
        let &Rows { bytes, count, stride, slices, slice_stride } = rows;
        let [bytes, count, stride, slices, slice_stride] =
            [bytes, count, stride, slices, slice_stride].map(|number| number as u64);
        let words = [stream.0, to.0, from.0, bytes, count, stride, slices, slice_stride];
        self.tell(Verb::Scatter, "scatter", &words)
    }

    unsafe fn fill(
        &self,
        stream: Stream,
        to: Address,
        pattern: &[u8],
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let write = |request: &mut Writer, _: &mut Blocks| {
            request.word(stream.0).word(to.0).bytes(pattern).word(bytes as u64);
        };
        self.ask(Verb::Fill, "fill", write, |_, _| Ok(()))
    }

    fn create_stream(&self, priority: StreamPriority) -> Result<Stream, DeviceError> {
        let priority = match priority {
            StreamPriority::Low => 0,
            StreamPriority::Normal => 1,
            StreamPriority::High => 2,
        };
        self.word(Verb::CreateStream, "create_stream", &[priority]).map(Stream)
    }

    unsafe fn destroy_stream(&self, stream: Stream) {
        let _ = self.tell(Verb::DestroyStream, "destroy_stream", &[stream.0]);
    }

    fn create_event(&self, timing: bool) -> Result<Event, DeviceError> {
        self.word(Verb::CreateEvent, "create_event", &[timing.into()]).map(Event)
    }

    unsafe fn destroy_event(&self, event: Event) {
        let _ = self.tell(Verb::DestroyEvent, "destroy_event", &[event.0]);
    }

    unsafe fn record_event(&self, stream: Stream, event: Event) -> Result<(), DeviceError> {
        self.tell(Verb::RecordEvent, "record_event", &[stream.0, event.0])
    }

    unsafe fn wait_event(&self, stream: Stream, event: Event) -> Result<(), DeviceError> {
        self.tell(Verb::WaitEvent, "wait_event", &[stream.0, event.0])
    }

    unsafe fn event_passed(&self, event: Event) -> bool {
        // Only a process that is gone does not answer, and it runs nothing.
        self.word(Verb::EventPassed, "event_passed", &[event.0]) != Ok(0)
    }

    unsafe fn poll_event(&self, event: Event) -> Result<bool, DeviceError> {
        let passed = self.word(Verb::PollEvent, "poll_event", &[event.0])? != 0;
        if passed {
            self.read_shared(None)?;
        }
        Ok(passed)
    }

    unsafe fn synchronise_event(&self, event: Event) -> Result<(), DeviceError> {
        self.tell(Verb::SynchroniseEvent, "synchronise_event", &[event.0])?;
        self.read_shared(None)
    }

    unsafe fn elapsed(&self, start: Event, end: Event) -> Result<Option<f64>, DeviceError> {
        let words = [start.0, end.0];
        let read = |answer: &mut Reader<'_>, _: &mut Blocks| answer.option();
        let elapsed = self.ask(Verb::Elapsed, "elapsed", |request, _| put(request, &words), read)?;
        Ok(elapsed.map(f64::from_bits))
    }

    unsafe fn synchronise(&self, stream: Stream) -> Result<(), DeviceError> {
        let end = self.end_of(stream);
        self.tell(Verb::Synchronise, "synchronise", &[stream.0])?;
        self.read_shared(Some(end))
    }

    unsafe fn is_idle(&self, stream: Stream) -> bool {
        // Only a process that is gone does not answer, and it runs nothing.
        self.word(Verb::IsIdle, "is_idle", &[stream.0]) != Ok(0)
    }

    unsafe fn poll(&self, stream: Stream) -> Result<bool, DeviceError> {
        let end = self.end_of(stream);
        let idle = self.word(Verb::Poll, "poll", &[stream.0])? != 0;
        if idle {
            self.read_shared(Some(end))?;
        }
        Ok(idle)
    }

    unsafe fn load_module(&self, image: &Image<'_>) -> Result<Module, DeviceError> {
        let write = |request: &mut Writer, _: &mut Blocks| {
            request.bytes(image.name.as_bytes()).word(image.parts.len() as u64);
            for part in image.parts {
                let shape = part.shape;
                request.bytes(part.symbol.as_bytes()).bytes(part.bytes);
                request.word(shape.block.into()).word(shape.shared_bytes.into());
                request.word(shape.deep_stack.into()).word(shape.waits.into());
                request.word(match shape.grid {
                    Grid::Cover => 0,
                    Grid::Several => 1,
                    Grid::Resident => 2,
                });
                match shape.mapping {
                    PointMapping::Points => request.words(&[]),
                    PointMapping::Tiles { across, points, rows } => {
                        request.words(&[across.into(), points.into(), rows.into()])
                    }
                };
            }
        };
        self.ask(Verb::LoadModule, "load_module", write, |answer, _| answer.word()).map(Module)
    }

    unsafe fn unload_module(&self, module: Module) {
        let _ = self.tell(Verb::UnloadModule, "unload_module", &[module.0]);
    }

    unsafe fn function(&self, module: Module, symbol: &str) -> Option<Function> {
        let write = |request: &mut Writer, _: &mut Blocks| {
            request.word(module.0).bytes(symbol.as_bytes());
        };
        let found = self.ask(Verb::Function, "function", write, |answer, _| answer.option());
        found.ok().flatten().map(Function)
    }

    unsafe fn function_usage(&self, function: Function) -> Result<Option<FunctionUsage>, DeviceError> {
        let read = |answer: &mut Reader<'_>, _: &mut Blocks| answer.words();
        let words = self.ask(Verb::FunctionUsage, "function_usage", |r, _| put(r, &[function.0]), read)?;
        let words: Vec<_> = words.into_iter().map(|word| word as u32).collect();
        let &[registers, local_bytes, shared_bytes, block, resident_threads, max_resident_threads] =
            &words[..]
        else {
            return Ok(None);
        };
        Ok(Some(FunctionUsage {
            registers,
            local_bytes,
            shared_bytes,
            block,
            resident_threads,
            max_resident_threads,
        }))
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        self.ask(
            Verb::Launch,
            "launch",
            |request, blocks| write_launch(request, blocks, launch),
            |_, _| Ok(()),
        )
    }
}

fn write_launch(request: &mut Writer, blocks: &mut Blocks, launch: &Launch<'_>) {
    let LaunchContext { stream, args, memory, key, launch: number, .. } = launch.context;
    // Changes of a block are told once: those that come after the first have none.
    let given = [memory.results, memory.fault, memory.prints].map(|address| blocks.give(address, stream));
    request.word(given.iter().flatten().count() as u64);
    for (block, changes) in given.into_iter().flatten() {
        request.word(block.0).word(changes.len() as u64);
        for change in changes {
            request.word(change.offset).words(&change.words);
        }
    }
    request.word(launch.function.0).word(stream.0).bytes(args);
    put(request, &[memory.temps.0, memory.results.0, memory.fault.0, memory.prints.0, key, number]);
    let limit = |limit: Option<u32>| limit.map(u64::from);
    match &launch.domain {
        Domain::Once => {
            request.word(0).option(None).option(None);
            put(request, &[0, 0, 1]);
            request.words(&[]);
        }
        Domain::Range(range) => {
            request.word(1).option(limit(range.max_threads)).option(limit(range.block));
            put(request, &[range.cost.into(), range.lanes.into(), range.points]);
            let bounds: Vec<_> = range.bounds.iter().map(|&bound| bound as u64).collect();
            request.words(&bounds);
        }
        Domain::DeviceRange(range) => {
            request.word(2).option(limit(range.max_threads)).option(limit(range.block));
            put(request, &[range.cost.into(), range.lanes.into(), 0]);
            let bounds = range.bounds.iter().map(|bound| match *bound {
                DeviceBound::Known(known) => [0, known as u64, 0, 0],
                DeviceBound::InMemory { at, bits, signed } => [1, at.0, bits.into(), signed.into()],
            });
            request.words(bounds.collect::<Vec<_>>().as_flattened());
        }
    }
}
