//! The verbs over the driver's table.

mod code;
mod entered;
mod open;
mod pace;
mod properties;
mod ranges;
mod rows;

use std::ffi::c_int;
use std::ptr;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use octants_abi::gpu::GpuFrame;
use octants_hal::{
    Address, Capabilities, Device, DeviceError, DeviceProperties, Domain, Event, ForkCosts, Function,
    FunctionUsage, Image, Launch, LaunchContext, Module, Rows, SharedMemory, Stream, StreamPriority,
};

use crate::driver::Driver;
use crate::driver::table::{Handle, Status};
use crate::grid::GridSize;
use crate::staging::{Staging, Transfer};
use crate::vendor::Flags;
use code::{LoadedFunction, LoadedModule};
use entered::Entered;
use pace::Paces;
use ranges::Ranges;

/// What the driver gives to streams that ask for none, the legacy stream among them.
const DEFAULT_PRIORITY: c_int = 0;

/// The stream that libraries of a process share unless they say otherwise: work of ours is in order with theirs without a word.
const LEGACY_STREAM: Handle = ptr::null_mut();

/// Bytes before and behind an allocation that are its own. Programs that look one row beyond the edge of a grid, without a check, find
/// zeros there, and what they write there is nobody else's. They are memory: as much as the array only if that is little, half of it up to 4
/// MiB, and 3 % of large ones.
fn margin(bytes: usize) -> usize {
    let part = (bytes / 2).min(2 << 20).max(bytes / 64);
    part.max(bytes.min(64 << 10)).next_multiple_of(ALIGN)
}

/// What the driver aligns memory to.
const ALIGN: usize = 256;

/// What the smallest atomic instruction works on.
const WORD: usize = 4;

/// Threads that a multiprocessor runs at once, at least. An estimate that is too low makes loops longer: they are worth a stream sooner.
const THREADS_PER_MULTIPROCESSOR: u64 = 1024;

/// Instructions of a thread that take as long as giving a branch of a fork a stream of its own: four calls of the driver, and a wait between
/// streams. On an H200 two branches of 1024 threads cost 3 to 5 µs more as a fork than in order, and an instruction that needs the result of
/// the one before it takes 1.7 ns; one that waits for memory takes far longer, so the least of that is taken.
const BRANCH_INSTRUCTIONS: u64 = 2000;

/// A GPU.
pub struct GpuDevice {
    driver: Driver,
    ordinal: c_int,
    context: Shared,
    pool: Shared,
    staging: Staging,
    ranges: Mutex<Ranges>,
    /// Whether there ever was one.
    has_ranges: AtomicBool,
    paces: Paces,
    /// How often the context had been reset when the device was opened.
    resets: u64,
    lost: AtomicBool,
    name: String,
    capability: u32,
    /// Ticks of the multiprocessors' clock in a second, by the device's description.
    clock_rate: u64,
    multiprocessors: u32,
    /// Bytes of a thread's stack.
    stack: AtomicU64,
}

/// A driver's handle. The driver's functions may be called from any thread.
#[derive(Clone, Copy)]
struct Shared(Handle);

// SAFETY: the driver locks what it shares between threads.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl GpuDevice {
    /// The device's capability: 90 for 9.0.
    pub fn capability(&self) -> u32 {
        self.capability
    }

    /// In the driver's own numbering.
    pub fn driver_version(&self) -> u32 {
        self.driver.version
    }

    /// The driver's functions, with the context current on this thread while the result lives.
    fn enter(&self) -> Result<Entered<'_>, DeviceError> {
        if self.lost.load(Ordering::Relaxed)
            || self.resets != self.driver.vendor.resets.of(self.ordinal).load(Ordering::Relaxed)
        {
            let message = "it failed before, and is to be opened again".to_owned();
            return Err(DeviceError::Lost { message });
        }
        Entered::new(self).map_err(|status| match self.check("enter", status) {
            Err(error) => error,
            Ok(()) => unreachable!("a status that is no error"),
        })
    }

    fn flags(&self) -> &'static Flags {
        &self.driver.vendor.flags
    }

    /// Whether a query says that something is left to do.
    fn is_not_ready(&self, status: Status) -> bool {
        status == self.driver.vendor.statuses.not_ready
    }

    fn check(&self, verb: &'static str, status: Status) -> Result<(), DeviceError> {
        self.noted(self.driver.check(verb, status))
    }

    /// Notes whether the device was lost.
    fn noted(&self, result: Result<(), DeviceError>) -> Result<(), DeviceError> {
        if let Err(DeviceError::Lost { .. }) = result {
            self.lost.store(true, Ordering::Relaxed);
        }
        result
    }

    /// The answer to a question of the driver: yes, unless something is left to do or the driver cannot say. A context that is lost runs nothing; who
    /// waits is told of that, not who asks.
    fn answer(&self, query: impl FnOnce(&crate::driver::table::DriverTable) -> Status) -> bool {
        match self.enter() {
            Ok(table) => match query(&table) {
                0 => true,
                status => self.driver.is_lost(status),
            },
            Err(error) => matches!(error, DeviceError::Lost { .. }),
        }
    }

    /// One end of a copy between host and device.
    fn transfer(&self, stream: Stream, device: Address, bytes: usize) -> Transfer<'_> {
        let (stream, context) = (handle(stream.0), self.context.0);
        Transfer { driver: &self.driver, context, stream, device: device.0, bytes }
    }

    /// # Safety
    /// The stream is alive.
    unsafe fn allocate_on(&self, stream: Handle, bytes: usize) -> Result<u64, DeviceError> {
        let (table, mut address) = (self.enter()?, 0);
        // SAFETY: the pool lives as long as the device.
        let status = unsafe { (table.allocate_async)(&raw mut address, bytes, self.pool.0, stream) };
        match self.check("allocate", status) {
            Err(DeviceError::OutOfMemory { .. }) => Err(DeviceError::OutOfMemory { bytes }),
            other => other.map(|()| address),
        }
    }
}

impl Drop for GpuDevice {
    fn drop(&mut self) {
        // A context that is lost refuses all of this, and takes its memory along.
        if let Ok(table) = self.enter() {
            // SAFETY: made by this device, and never used again.
            unsafe {
                (table.stream_synchronise)(LEGACY_STREAM);
                self.staging.clear(&self.driver);
                self.end_ranges();
                (table.pool_destroy)(self.pool.0);
                (table.context_release)(self.ordinal);
            }
        }
    }
}

fn handle(bits: u64) -> Handle {
    bits as Handle
}

/// Repetitions of a pattern that the driver can fill with: one, two or four equal bytes at a time.
fn fill_word(pattern: &[u8]) -> Option<(u32, u32)> {
    if pattern.iter().all(|&byte| byte == pattern[0]) {
        return Some((u32::from(pattern[0]), 1));
    }
    match *pattern {
        [a, b] => Some((u16::from_le_bytes([a, b]).into(), 2)),
        _ if pattern.len().is_multiple_of(4)
            && pattern.chunks_exact(4).all(|chunk| chunk == &pattern[..4]) =>
        {
            Some((u32::from_le_bytes([pattern[0], pattern[1], pattern[2], pattern[3]]), 4))
        }
        _ => None,
    }
}

// SAFETY: allocations are the driver's, its streams keep the order of verbs, and generated code stays inside its arguments.
unsafe impl Device for GpuDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        let ranges = self.driver.table.virtual_memory().map(|_| Capabilities::GROWING_RANGES);
        Capabilities::STREAMS
            | Capabilities::EXTERNAL_STREAMS
            | Capabilities::DEVICE_BOUNDS
            | ranges.unwrap_or(Capabilities::NONE)
    }

    fn properties(&self) -> Result<DeviceProperties, DeviceError> {
        self.describe()
    }

    fn clock_rate(&self) -> Option<u64> {
        Some(self.clock_rate)
    }

    fn default_stream(&self) -> Stream {
        Stream(LEGACY_STREAM as u64)
    }

    fn is_immediate(&self, _stream: Stream) -> bool {
        false
    }

    fn fork_costs(&self) -> ForkCosts {
        let threads = u64::from(self.multiprocessors) * THREADS_PER_MULTIPROCESSOR;
        // Two loops of 262,144 threads of an H200 take 4 to 7 % less time side by side.
        ForkCosts { threads, branch_instructions: BRANCH_INSTRUCTIONS, loops_fill: false }
    }

    unsafe fn allocate(&self, stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        let (before, queue) = (margin(bytes), handle(stream.0));
        let whole = bytes.next_multiple_of(ALIGN).checked_add(2 * before);
        let whole = whole.ok_or(DeviceError::OutOfMemory { bytes })?;
        let _entered = self.enter()?;
        // SAFETY: the caller keeps the verb's contract; all that was allocated is filled.
        unsafe {
            let mut allocated = self.allocate_on(queue, whole);
            if matches!(allocated, Err(DeviceError::OutOfMemory { .. })) && self.unmap_retired() {
                allocated = self.allocate_on(queue, whole);
            }
            let address = allocated.map_err(|error| match error {
                DeviceError::OutOfMemory { .. } => DeviceError::OutOfMemory { bytes },
                other => other,
            })?;
            let status = (self.driver.table.fill_8)(address, 0, whole, queue);
            self.check("allocate", status).inspect_err(|_| {
                (self.driver.table.free_async)(address, queue);
            })?;
            Ok(Address(address).offset(before))
        }
    }

    fn reservable(&self) -> u64 {
        self.free_and_total("reserve").map_or(0, |(_, total)| total)
    }

    fn reserve_range(&self, bytes: usize) -> Result<Address, DeviceError> {
        self.new_range(bytes)
    }

    unsafe fn back(&self, range: Address, offset: usize, bytes: usize) -> Result<(), DeviceError> {
        self.back_part(range, offset, bytes)
    }

    unsafe fn write_beside(&self, to: Address, from: &[u8]) -> Result<(), DeviceError> {
        self.write_words(to, from)
    }

    unsafe fn read_beside(&self, from: Address, to: &mut [u8]) -> Result<(), DeviceError> {
        self.read_words(from, to)
    }

    unsafe fn free(&self, stream: Stream, address: Address, bytes: usize) {
        if self.free_range(address) {
            return;
        }
        // A device that is lost has freed it already.
        if let Ok(table) = self.enter() {
            // SAFETY: the caller keeps the verb's contract.
            unsafe { (table.free_async)(address.0 - margin(bytes) as u64, handle(stream.0)) };
        }
    }

    unsafe fn allocate_scratch(&self, stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        // Atomics of small scalars work on whole words: the word around the last element is there, and has a content.
        let (whole, words) = (bytes.next_multiple_of(ALIGN), bytes / WORD * WORD);
        let _entered = self.enter()?;
        // SAFETY: the caller keeps the verb's contract; the word is inside of what was allocated.
        unsafe {
            let address = self.allocate_on(handle(stream.0), whole)?;
            if words < bytes {
                let status = (self.driver.table.fill_8)(address + words as u64, 0, WORD, handle(stream.0));
                self.check("allocate_scratch", status).inspect_err(|_| {
                    (self.driver.table.free_async)(address, handle(stream.0));
                })?;
            }
            Ok(Address(address))
        }
    }

    unsafe fn free_scratch(&self, stream: Stream, address: Address, _bytes: usize) {
        if let Ok(table) = self.enter() {
            // SAFETY: the caller keeps the verb's contract.
            unsafe { (table.free_async)(address.0, handle(stream.0)) };
        }
    }

    fn allocate_shared(&self, bytes: usize) -> Result<SharedMemory, DeviceError> {
        let (table, mut host, mut device) = (self.enter()?, ptr::null_mut(), 0);
        // SAFETY: both write what they are asked for.
        unsafe {
            self.check("allocate_shared", (table.host_allocate)(&raw mut host, bytes, self.flags().pinned))?;
            self.check("allocate_shared", (table.host_address)(&raw mut device, host, 0)).inspect_err(
                |_| {
                    (table.host_free)(host);
                },
            )?;
        }
        Ok(SharedMemory { host: host.cast(), device: Address(device), bytes })
    }

    unsafe fn free_shared(&self, memory: SharedMemory) {
        if let Ok(table) = self.enter() {
            // SAFETY: the caller keeps the verb's contract.
            unsafe { (table.host_free)(memory.host.cast()) };
        }
    }

    unsafe fn copy_to_device(
        &self,
        stream: Stream,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let _entered = self.enter()?;
        // SAFETY: the caller keeps the verb's contract.
        self.noted(unsafe { self.staging.to_device(self.transfer(stream, to, bytes), from) })
    }

    unsafe fn copy_to_host(
        &self,
        stream: Stream,
        to: *mut u8,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let _entered = self.enter()?;
        // SAFETY: the caller keeps the verb's contract.
        self.noted(unsafe { self.staging.to_host(self.transfer(stream, from, bytes), to) })
    }

    unsafe fn copy(
        &self,
        stream: Stream,
        to: Address,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let table = self.enter()?;
        // SAFETY: the caller keeps the verb's contract.
        let status = unsafe { (table.copy)(to.0, from.0, bytes, handle(stream.0)) };
        self.check("copy", status)
    }

    unsafe fn scatter(
        &self,
        stream: Stream,
        to: Address,
        from: Address,
        rows: &Rows,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.scatter_rows(stream, to, from, rows) }
    }

    unsafe fn fill(
        &self,
        stream: Stream,
        to: Address,
        pattern: &[u8],
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let table = self.enter()?;
        let queue = handle(stream.0);
        // SAFETY: the caller keeps the verb's contract.
        unsafe {
            let status = match fill_word(pattern) {
                Some((word, 1)) => (table.fill_8)(to.0, word as u8, bytes, queue),
                Some((word, 2)) => (table.fill_16)(to.0, word as u16, bytes / 2, queue),
                Some((word, _)) => (table.fill_32)(to.0, word, bytes / 4, queue),
                None => return self.fill_by_doubling(stream, to, pattern, bytes),
            };
            self.check("fill", status)
        }
    }

    fn create_stream(&self, priority: StreamPriority) -> Result<Stream, DeviceError> {
        let (table, mut stream) = (self.enter()?, ptr::null_mut());
        let (mut least, mut greatest) = (DEFAULT_PRIORITY, DEFAULT_PRIORITY);
        if priority != StreamPriority::Normal {
            // SAFETY: writes two integers.
            let status = unsafe { (table.context_priorities)(&raw mut least, &raw mut greatest) };
            self.check("create_stream", status)?;
        }
        let level = match priority {
            StreamPriority::Low => least,
            StreamPriority::Normal => DEFAULT_PRIORITY,
            StreamPriority::High => greatest,
        };
        // SAFETY: writes the new handle.
        let status = unsafe { (table.stream_create)(&raw mut stream, self.flags().non_blocking, level) };
        self.check("create_stream", status).map(|()| Stream(stream as u64))
    }

    unsafe fn destroy_stream(&self, stream: Stream) {
        if let Ok(table) = self.enter() {
            // SAFETY: the caller keeps the verb's contract.
            unsafe { (table.stream_synchronise)(handle(stream.0)) };
        }
        // As soon as the stream is destroyed its handle may be another's.
        self.staging.forget_stream(stream.0);
        self.forget_pace(stream);
        if let Ok(table) = self.enter() {
            // SAFETY: as above.
            unsafe { (table.stream_destroy)(handle(stream.0)) };
        }
    }

    fn create_event(&self, timing: bool) -> Result<Event, DeviceError> {
        let (table, mut event) = (self.enter()?, ptr::null_mut());
        let Flags { with_timing, without_timing, .. } = *self.flags();
        let flags = if timing { with_timing } else { without_timing };
        // SAFETY: writes the new handle.
        let status = unsafe { (table.event_create)(&raw mut event, flags) };
        self.check("create_event", status).map(|()| Event(event as u64))
    }

    unsafe fn destroy_event(&self, event: Event) {
        if let Ok(table) = self.enter() {
            // SAFETY: the caller keeps the verb's contract.
            unsafe { (table.event_destroy)(handle(event.0)) };
        }
    }

    unsafe fn record_event(&self, stream: Stream, event: Event) -> Result<(), DeviceError> {
        let table = self.enter()?;
        // SAFETY: the caller keeps the verb's contract.
        let status = unsafe { (table.event_record)(handle(event.0), handle(stream.0)) };
        self.check("record_event", status)
    }

    unsafe fn wait_event(&self, stream: Stream, event: Event) -> Result<(), DeviceError> {
        let table = self.enter()?;
        // SAFETY: the caller keeps the verb's contract.
        let status = unsafe { (table.stream_wait)(handle(stream.0), handle(event.0), 0) };
        self.check("wait_event", status)
    }

    unsafe fn event_passed(&self, event: Event) -> bool {
        // SAFETY: the caller keeps the verb's contract.
        self.answer(|table| unsafe { (table.event_query)(handle(event.0)) })
    }

    unsafe fn poll_event(&self, event: Event) -> Result<bool, DeviceError> {
        let table = self.enter()?;
        // SAFETY: the caller keeps the verb's contract.
        match unsafe { (table.event_query)(handle(event.0)) } {
            status if self.is_not_ready(status) => Ok(false),
            status => self.check("poll_event", status).map(|()| true),
        }
    }

    unsafe fn synchronise_event(&self, event: Event) -> Result<(), DeviceError> {
        let table = self.enter()?;
        // SAFETY: the caller keeps the verb's contract.
        let status = unsafe { (table.event_synchronise)(handle(event.0)) };
        self.check("synchronise_event", status)
    }

    unsafe fn elapsed(&self, start: Event, end: Event) -> Result<Option<f64>, DeviceError> {
        let (table, mut milliseconds) = (self.enter()?, 0.0);
        let statuses = &self.driver.vendor.statuses;
        // SAFETY: the caller keeps the verb's contract; writes one number.
        let status = unsafe { (table.event_elapsed)(&raw mut milliseconds, handle(start.0), handle(end.0)) };
        match status {
            status if status == statuses.not_ready || status == statuses.invalid_handle => Ok(None),
            status => self.check("elapsed", status).map(|()| Some(f64::from(milliseconds) * 1e6)),
        }
    }

    unsafe fn synchronise(&self, stream: Stream) -> Result<(), DeviceError> {
        let table = self.enter()?;
        // SAFETY: the caller keeps the verb's contract.
        let status = unsafe { (table.stream_synchronise)(handle(stream.0)) };
        self.check("synchronise", status)
    }

    unsafe fn is_idle(&self, stream: Stream) -> bool {
        // SAFETY: the caller keeps the verb's contract.
        self.answer(|table| unsafe { (table.stream_query)(handle(stream.0)) })
    }

    unsafe fn poll(&self, stream: Stream) -> Result<bool, DeviceError> {
        let table = self.enter()?;
        // SAFETY: the caller keeps the verb's contract.
        match unsafe { (table.stream_query)(handle(stream.0)) } {
            status if self.is_not_ready(status) => Ok(false),
            status => self.check("poll", status).map(|()| true),
        }
    }

    fn assemble(&self, code: &[u8]) -> Result<Option<Vec<u8>>, DeviceError> {
        match self.driver.table.linker() {
            Some(linker) => {
                self.assemble_part(linker, code).map(|code| Some(code).filter(|code| !code.is_empty()))
            }
            None => Ok(None),
        }
    }

    unsafe fn load_module(&self, image: &Image<'_>) -> Result<Module, DeviceError> {
        let _entered = self.enter()?;
        if image.parts.iter().any(|part| part.shape.deep_stack) {
            self.deepen_stack()?;
        }
        let module = self.load(image)?;
        Ok(Module(Box::into_raw(Box::new(module)) as u64))
    }

    unsafe fn unload_module(&self, module: Module) {
        // SAFETY: made by `load_module`, and never used again.
        let module = unsafe { Box::from_raw(module.0 as *mut LoadedModule) };
        self.unload(&module);
    }

    unsafe fn function(&self, module: Module, symbol: &str) -> Option<Function> {
        // SAFETY: made by `load_module`, and alive.
        let module = unsafe { &*(module.0 as *const LoadedModule) };
        let function = module.functions.iter().find(|function| function.symbol == symbol)?;
        Some(Function(ptr::from_ref(function) as u64))
    }

    unsafe fn function_usage(&self, function: Function) -> Result<Option<FunctionUsage>, DeviceError> {
        // SAFETY: made by `function`, whose module is loaded.
        let function = unsafe { &*(function.0 as *const LoadedFunction) };
        self.usage(function).map(Some)
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        let _entered = self.enter()?;
        self.pace(launch.context.stream)?;
        let LaunchContext { memory, key, .. } = launch.context;
        // SAFETY: made by `function`, whose module is loaded.
        let function = unsafe { &*(launch.function.0 as *const LoadedFunction) };
        let mut no_bounds = smallvec::SmallVec::<[i64; 8]>::new();
        let (bounds, points, grid): (&[i64], _, _) = match &launch.domain {
            Domain::Once => (&[], 1, GridSize::ONE),
            Domain::Range(range) => (range.bounds, range.points, function.shape.grid(range)),
            // The code reads its bounds itself: those of the frame are of no meaning.
            Domain::DeviceRange(range) => {
                no_bounds.resize(range.bounds.len(), 0);
                (&no_bounds, 0, function.shape.device_grid(range))
            }
        };
        let head = GpuFrame {
            temps: memory.temps.0,
            results: memory.results.0,
            fault: memory.fault.0,
            prints: memory.prints.0,
            key,
            points,
            // The rest is for what is no call of a recursive function.
            stack: self.stack.load(Ordering::Relaxed) / 8 * 7,
            stop: memory.stop.0,
        };
        let mut frame: smallvec::SmallVec<[u64; 32]> = head.words().into_iter().collect();
        frame.extend(bounds.iter().map(|&bound| bound as u64));
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.start(launch, &frame, function, grid) }
    }
}

impl GpuDevice {
    /// Writes the pattern once, then copies what is there behind itself, twice as much each time.
    ///
    /// # Safety
    /// As for the verb `fill`.
    unsafe fn fill_by_doubling(
        &self,
        stream: Stream,
        to: Address,
        pattern: &[u8],
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: inside what the caller vouches for.
        unsafe {
            self.copy_to_device(stream, to, pattern.as_ptr(), pattern.len().min(bytes))?;
            let mut done = pattern.len();
            while done < bytes {
                let step = done.min(bytes - done);
                self.copy(stream, to.offset(done), to, step)?;
                done += step;
            }
        }
        Ok(())
    }
}
