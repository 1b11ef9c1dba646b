//! The host's processor as a device.

use std::ffi::c_void;
use std::mem::{offset_of, transmute};
use std::panic::{AssertUnwindSafe, catch_unwind};

use octants_hal::{
    Address, Capabilities, Device, DeviceError, Domain, Event, FaultRecord, Function, Image, Launch,
    LaunchContext, Module, PrintQueue, RangeDomain, Stream,
};
use octants_llvm::abi::{Fault, Frame};
use octants_llvm_sys::{LoadError, Loaded, load};

use crate::copies::{IdleCopies, LoopCopies};
use crate::host::{self, Filler, LINE, unsupported};
use crate::memory::HostMemory;
use crate::pool::{Pool, Schedule};

/// A range task: arguments, frame, and a range of the flattened points. A serial task ignores the range.
type Task = unsafe extern "C" fn(*const u8, *const Frame, i64, i64);

// The runtime allocates and reads the record that generated code writes: they are the same.
const _: () = {
    assert!(size_of::<Fault>() == size_of::<FaultRecord>());
    assert!(align_of::<Fault>() == align_of::<FaultRecord>());
    assert!(offset_of!(Fault, state) == FaultRecord::STATE_OFFSET);
    assert!(offset_of!(Fault, site) == FaultRecord::SITE_OFFSET);
    assert!(offset_of!(Fault, arguments) == FaultRecord::ARGUMENTS_OFFSET);
};

/// Instructions of one chunk, at least: some microseconds, so that taking the next one costs nothing.
const CHUNK: u64 = 32_000;

/// Instructions of one chunk, at most: some ten milliseconds, so that a request to stop is heard soon. An iteration that is longer
/// than it seemed asks by itself.
const LONGEST: u64 = 1 << 25;

/// A loop of fewer instructions than this stays on its caller: waking a thread takes longer than the half that it would do.
const TINY: u64 = 32_000;

/// The same for bodies so plain that they are vectorised, and run several times as fast: measured on `y[i] += a * x[i]`, where two
/// threads begin to pay at thirty thousand iterations.
const TINY_PLAIN: u64 = 128_000;

/// A body of fewer instructions than this is plain.
const PLAIN: u64 = 32;

/// Bytes of a fill or a copy that are worth handing to another thread.
const BYTES_WORTH_A_THREAD: u64 = 256 << 10;

/// The host's processor: native code on a pool of threads.
pub struct CpuDevice {
    memory: HostMemory,
    pool: Pool,
    copies: IdleCopies,
}

/// The code of a module's parts.
struct LoadedModule {
    parts: Vec<Loaded>,
}

impl CpuDevice {
    /// A device whose loops run on `threads` threads, the caller included; 0 means one for each processor of the process.
    pub fn new(threads: usize) -> Self {
        Self { memory: HostMemory::new(), pool: Pool::new(threads), copies: IdleCopies::default() }
    }

    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Runs `work` over `0..bytes` in pieces that begin at multiples of `period`.
    fn in_pieces(&self, bytes: usize, period: usize, work: &(dyn Fn(usize, usize) + Sync)) {
        let periods = bytes.div_ceil(period) as u64;
        let grain = BYTES_WORTH_A_THREAD / period as u64;
        let schedule = Schedule { grain, most: u64::MAX, max_threads: usize::MAX, cancel: None };
        let outcome = self.pool.run(periods, &schedule, &|_, begin, end| {
            let (begin, end) = (begin as usize * period, end as usize * period);
            work(begin, end.min(bytes) - begin);
        });
        debug_assert_eq!(outcome, crate::pool::Outcome::Completed, "nobody cancels it");
    }

    /// # Safety
    /// As for the verb `launch`.
    unsafe fn run_range(
        &self,
        task: Task,
        context: &LaunchContext<'_>,
        frame: &Frame,
        range: &RangeDomain<'_>,
    ) -> Result<(), DeviceError> {
        let cost = u64::from(range.cost.max(1));
        let tiny = if cost < PLAIN { TINY_PLAIN } else { TINY };
        let grain = match range.block {
            _ if range.points.saturating_mul(cost) < tiny => range.points,
            Some(block) => block.into(),
            None => (CHUNK / cost).max(range.lanes.into()),
        };
        let max_threads = range.max_threads.map_or(usize::MAX, |threads| threads as usize);
        let threads = self.pool.threads_for(range.points, grain, max_threads);
        let copies = match range.copied {
            [] => None,
            copied => Some(LoopCopies::new(&self.copies, copied, context.args, threads)?),
        };
        let args = Shared(context.args.as_ptr());
        let frame = Shared(frame);
        // SAFETY: the record outlives the launch.
        let fault = unsafe { &*context.memory.fault.as_ptr::<FaultRecord>() };
        let most = LONGEST / cost;
        let schedule = Schedule { grain, most, max_threads, cancel: Some(context.cancel) };
        // Whoever launched looks at the flag and at the record, so the outcome says nothing new.
        let _ = self.pool.run(range.points, &schedule, &|thread, lo, hi| {
            if !fault.happened() {
                let args = copies.as_ref().map_or_else(|| args.get(), |copies| copies.args(thread).cast());
                // SAFETY: the caller vouches for arguments and frame; the pool gives ranges inside the points.
                unsafe { task(args, frame.get(), lo as i64, hi as i64) };
            }
        });
        // Also after a failure: what was added until then is there, as it would be without copies.
        if let Some(copies) = &copies {
            for array in 0..range.copied.len() {
                self.in_pieces(copies.lines(array) * LINE, LINE, &|begin, length| {
                    // SAFETY: the loop is over, and each piece is given to one thread.
                    unsafe { copies.add_lines(array, begin / LINE, (begin + length) / LINE) };
                });
            }
        }
        Ok(())
    }
}

/// Writes a print of generated code into the launch's queue.
///
/// # Safety
/// `queue` is null or points to the launch's queue, which is there until the launch is over; there are `count` words in the slots.
unsafe extern "C" fn print(queue: *const c_void, site: u32, count: u32, slots: *const u64) {
    // SAFETY: as the caller vouches.
    let (queue, words) =
        unsafe { (queue.cast::<PrintQueue>().as_ref(), std::slice::from_raw_parts(slots, count as usize)) };
    if let Some(queue) = queue {
        // A panic must not unwind through generated code. One that prints has said so; the launch goes on without it.
        drop(catch_unwind(AssertUnwindSafe(|| queue.push(site, words))));
    }
}

/// A pointer to what all threads of a launch read.
struct Shared<T>(*const T);

// SAFETY: tasks are made to be run on it by many threads; who launches keeps it alive until the last is done.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn get(&self) -> *const T {
        self.0
    }
}

// SAFETY: allocations are the system's, every verb is over when it returns, and generated code stays inside its arguments.
unsafe impl Device for CpuDevice {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::HOST_MEMORY | Capabilities::CANCEL
    }

    fn is_immediate(&self, _stream: Stream) -> bool {
        true
    }

    fn copies(&self) -> usize {
        self.threads()
    }

    fn allocate(&self, bytes: usize) -> Result<Address, DeviceError> {
        self.memory.allocate(bytes)
    }

    unsafe fn free(&self, address: Address, bytes: usize) {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.memory.free(address, bytes) };
    }

    unsafe fn copy_to_device(
        &self,
        stream: Stream,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: an address of the device is one of the host.
        unsafe { self.copy(stream, to, Address::of(from), bytes) }
    }

    unsafe fn copy_to_host(
        &self,
        stream: Stream,
        to: *mut u8,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: an address of the device is one of the host.
        unsafe { self.copy(stream, Address::of(to), from, bytes) }
    }

    unsafe fn copy(
        &self,
        _stream: Stream,
        to: Address,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        self.in_pieces(bytes, LINE, &|begin, length| {
            // SAFETY: a piece of what the caller vouches for.
            unsafe { host::copy(to.offset(begin).as_ptr(), from.offset(begin).as_ptr(), length) };
        });
        Ok(())
    }

    unsafe fn fill(
        &self,
        _stream: Stream,
        to: Address,
        pattern: &[u8],
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let filler = Filler::new(pattern, bytes);
        self.in_pieces(bytes, filler.period(), &|begin, length| {
            // SAFETY: a piece of what the caller vouches for, which begins where the pattern does.
            unsafe { filler.fill(to.offset(begin).as_ptr(), length) };
        });
        Ok(())
    }

    fn create_stream(&self) -> Result<Stream, DeviceError> {
        unsupported("create_stream")
    }

    unsafe fn destroy_stream(&self, _stream: Stream) {}

    fn create_event(&self) -> Result<Event, DeviceError> {
        unsupported("create_event")
    }

    unsafe fn destroy_event(&self, _event: Event) {}

    unsafe fn record_event(&self, _stream: Stream, _event: Event) -> Result<(), DeviceError> {
        unsupported("record_event")
    }

    unsafe fn wait_event(&self, _stream: Stream, _event: Event) -> Result<(), DeviceError> {
        unsupported("wait_event")
    }

    unsafe fn synchronise(&self, _stream: Stream) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn load_module(&self, image: &Image<'_>) -> Result<Module, DeviceError> {
        let parts = image.parts.iter().map(|part| {
            load(part.bytes, &[]).map_err(|error| match error {
                LoadError::Memory(message) => DeviceError::Failed { verb: "load_module", message },
                other => DeviceError::BadImage { message: format!("`{}`: {other}", part.symbol) },
            })
        });
        let module = Box::new(LoadedModule { parts: parts.collect::<Result<_, _>>()? });
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
        Some(Function(address as u64))
    }

    #[inline]
    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        // SAFETY: the address of a task in loaded code, which has this signature.
        let task: Task = unsafe { transmute(launch.function.0 as *const ()) };
        let context = &launch.context;
        let mut frame = Frame {
            temps: context.memory.temps.as_ptr(),
            results: context.memory.results.as_ptr(),
            fault: context.memory.fault.as_ptr(),
            bounds: std::ptr::null(),
            cancel: context.cancel,
            key: context.key,
            print: Some(print),
            listener: context.prints.map_or(std::ptr::null(), std::ptr::from_ref).cast(),
        };
        // SAFETY: the caller keeps the verb's contract.
        unsafe {
            match &launch.domain {
                Domain::Once => task(context.args.as_ptr(), &raw const frame, 0, 0),
                Domain::Range(range) => {
                    frame.bounds = range.bounds.as_ptr();
                    self.run_range(task, context, &frame, range)?;
                }
                Domain::DeviceRange(_) => return unsupported("launch"),
            }
        }
        Ok(())
    }
}
