//! The host's processor as a device.

use std::ffi::c_void;
use std::mem::{offset_of, transmute};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use octants_hal::host::{self, Filler, HostMemory, LINE};
use octants_hal::{
    Address, Cancel, Capabilities, Device, DeviceError, Domain, FaultRecord, ForkCosts, Function, Image,
    Launch, LaunchContext, Module, PrintQueue, RangeDomain, Stream,
};
use octants_llvm::abi::{Fault, Frame, ReleaseTapes, TakeTape, Worker};
use octants_llvm_sys::{LoadError, Loaded, load};

use crate::copies::{IdleCopies, LoopCopies};
use crate::pool::{Outcome, Pool, Schedule};
use crate::work::{MeasuredWork, is_short, threads_worth};
use crate::{stack, tape};

/// A range task: arguments, frame, worker, and a range of the flattened points. A serial task ignores the range.
type Task = unsafe extern "C" fn(*const u8, *const Frame, *const Worker, i64, i64);

// Generated code reads a request to stop by its offsets.
const _: () = {
    assert!(offset_of!(octants_llvm::abi::Cancel, raised) == Cancel::RAISED_OFFSET);
    assert!(offset_of!(octants_llvm::abi::Cancel, confirm) == Cancel::CONFIRM_OFFSET);
};

// The runtime allocates and reads the record that generated code writes: they are the same.
const _: () = {
    assert!(size_of::<Fault>() == size_of::<FaultRecord>());
    assert!(align_of::<Fault>() == align_of::<FaultRecord>());
    assert!(offset_of!(Fault, state) == FaultRecord::STATE_OFFSET);
    assert!(offset_of!(Fault, site) == FaultRecord::SITE_OFFSET);
    assert!(offset_of!(Fault, arguments) == FaultRecord::ARGUMENTS_OFFSET);
};

/// One chunk takes this, at least. Taking the next one takes some ten nanoseconds where threads compete for it: one percent.
const MIN_CHUNK_NANOSECONDS: u64 = 1000;

/// One chunk takes this, at most, so that a request to stop is heard soon: 10 ms, and about as many instructions where nothing was measured
/// yet. Chosen: Ctrl-C is to be heard within half a second. An iteration that is longer than it seemed asks by itself.
const MAX_CHUNK_NANOSECONDS: u64 = 10_000_000;
const MAX_CHUNK_INSTRUCTIONS: u64 = 1 << 25;

/// Bytes of a fill or a copy that are worth handing to another thread: some ten microseconds at the 25 GB/s of one core (`fill` in
/// `benches/run.py`), several times what waking a thread takes.
const MIN_BYTES_PER_THREAD: u64 = 256 << 10;

/// Bytes of private copies that are worth handing to another thread to merge: some five microseconds. The copies of all
/// threads count together: MPM-88 with 20,000 particles has 16 copies of 200 kB on 16 cores.
const MIN_MERGED_BYTES_PER_THREAD: u64 = 64 << 10;

/// Instructions that take as long as giving a branch of a fork to another thread, which may have to be woken. Chosen, not measured: 5 µs, at
/// three instructions a nanosecond.
const BRANCH_INSTRUCTIONS: u64 = 15_000;

/// The host's processor: native code on a pool of threads.
pub struct CpuDevice {
    memory: HostMemory,
    pool: Pool,
    copies: IdleCopies,
}

/// The code of a module's parts, and what was asked for of it.
struct LoadedModule {
    parts: Vec<Loaded>,
    /// Boxed, since [`Function`]s are their addresses.
    #[allow(clippy::vec_box, reason = "addresses stay when the list grows")]
    functions: Mutex<Vec<Box<TaskFunction>>>,
}

/// One task's code, and what is known of its running time.
struct TaskFunction {
    code: Task,
    work: MeasuredWork,
}

impl CpuDevice {
    /// A device whose loops run on `threads` threads, the caller included; 0 means one for each processor of the process.
    pub fn new(threads: usize) -> Self {
        Self { memory: HostMemory::new(), pool: Pool::new(threads), copies: IdleCopies::default() }
    }

    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Runs `work` over `0..bytes` in pieces that begin at multiples of `period`; `worth` bytes are worth a thread.
    fn in_pieces(&self, bytes: usize, period: usize, worth: u64, work: &(dyn Fn(usize, usize) + Sync)) {
        let periods = bytes.div_ceil(period) as u64;
        let grain = worth / period as u64;
        let schedule = Schedule { grain, max_chunk: u64::MAX, max_threads: usize::MAX, cancel: None };
        let outcome = self.pool.run(periods, &schedule, &|_, begin, end| {
            let (begin, end) = (begin as usize * period, end as usize * period);
            work(begin, end.min(bytes) - begin);
        });
        debug_assert_eq!(outcome, Outcome::Completed, "nobody cancels it");
    }

    /// # Safety
    /// As for the verb `launch`.
    unsafe fn run_range(
        &self,
        task: &TaskFunction,
        context: &LaunchContext<'_>,
        frame: &Frame,
        range: &RangeDomain<'_>,
    ) -> Result<(), DeviceError> {
        let (points, cost) = (range.points, u64::from(range.cost.max(1)));
        if range.copied.is_empty() && is_short(points, cost) && !context.cancel.is_wanted() {
            let run = |worker: &Worker| {
                // SAFETY: the caller vouches for arguments and frame; these are all points.
                unsafe { (task.code)(context.args.as_ptr(), frame, worker, 0, points as i64) };
            };
            with_worker(std::ptr::null(), run);
            return Ok(());
        }
        let work = task.work.nanoseconds(points, cost).max(1);
        let mut worth = threads_worth(work, false).min(self.pool.threads());
        if worth > 1 && self.pool.is_asleep(worth) {
            worth = threads_worth(work, true).min(worth);
        }
        let (mut grain, mut max_chunk) = (points, points);
        if worth > 1 {
            // As many points as take so long; those that are too many to be counted are enough.
            let each = |nanoseconds: u64| points.saturating_mul(nanoseconds) / work;
            grain =
                range.block.map_or_else(|| each(MIN_CHUNK_NANOSECONDS).max(range.lanes.into()), u64::from);
            max_chunk = each(MAX_CHUNK_NANOSECONDS).clamp(1, (MAX_CHUNK_INSTRUCTIONS / cost).max(1));
        }
        let max_threads = range.max_threads.map_or(worth, |threads| worth.min(threads as usize));
        let threads = self.pool.threads_for(points, grain, max_threads);
        let copies = match range.copied {
            [] => None,
            copied => Some(LoopCopies::new(&self.copies, copied, context.args, threads)?),
        };
        let args = Shared(context.args.as_ptr());
        let frame = Shared(frame);
        // SAFETY: the record outlives the launch.
        let fault = unsafe { &*context.memory.fault.as_ptr::<FaultRecord>() };
        let busy = task.work.is_sampled().then(|| AtomicU64::new(0));
        let schedule = Schedule { grain, max_chunk, max_threads, cancel: Some(context.cancel) };
        let outcome = self.pool.run(points, &schedule, &|thread, lo, hi| {
            if fault.happened() {
                return;
            }
            let copies = copies.as_ref().map_or(std::ptr::null(), |copies| copies.of_thread(thread));
            let begin = busy.as_ref().map(|busy| (busy, Instant::now()));
            with_worker(copies, |worker| {
                // SAFETY: the caller vouches for arguments and frame; the pool gives ranges inside the points.
                unsafe { (task.code)(args.get(), frame.get(), worker, lo as i64, hi as i64) };
            });
            if let Some((busy, begin)) = begin {
                busy.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
            }
        });
        // Whoever launched looks at the flag and at the record; here they only tell whether the time is that of all points.
        if let Some(busy) = busy
            && outcome == Outcome::Completed
            && !fault.happened()
        {
            task.work.learn(points, Duration::from_nanos(busy.into_inner()));
        }
        // Also after a failure: what was added until then is there, as it would be without copies.
        if let Some(copies) = &copies {
            let worth = MIN_MERGED_BYTES_PER_THREAD / copies.used().max(1) as u64;
            for array in 0..range.copied.len() {
                self.in_pieces(copies.lines(array) * LINE, LINE, worth, &|begin, length| {
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

    fn fork_costs(&self) -> ForkCosts {
        ForkCosts { threads: self.threads() as u64, branch_instructions: BRANCH_INSTRUCTIONS }
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
        self.in_pieces(bytes, LINE, MIN_BYTES_PER_THREAD, &|begin, length| {
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
        self.in_pieces(bytes, filler.period(), MIN_BYTES_PER_THREAD, &|begin, length| {
            // SAFETY: a piece of what the caller vouches for, which begins where the pattern does.
            unsafe { filler.fill(to.offset(begin).as_ptr(), length) };
        });
        Ok(())
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
        // SAFETY: a function of a module that is alive, and so is what it has given out.
        let task = unsafe { &*(launch.function.0 as *const TaskFunction) };
        let context = &launch.context;
        let mut frame = Frame {
            temps: context.memory.temps.as_ptr(),
            results: context.memory.results.as_ptr(),
            fault: context.memory.fault.as_ptr(),
            bounds: std::ptr::null(),
            cancel: std::ptr::from_ref(context.cancel).cast(),
            key: context.key,
            print: Some(print),
            prints: context.prints.map_or(std::ptr::null(), std::ptr::from_ref).cast(),
        };
        // SAFETY: the caller keeps the verb's contract.
        unsafe {
            match &launch.domain {
                Domain::Once => {
                    with_worker(std::ptr::null(), |worker| {
                        (task.code)(context.args.as_ptr(), &raw const frame, worker, 0, 0);
                    });
                }
                Domain::Range(range) => {
                    frame.bounds = range.bounds.as_ptr();
                    self.run_range(task, context, &frame, range)?;
                }
                Domain::DeviceRange(_) => return Err(DeviceError::Unsupported { verb: "launch" }),
            }
        }
        Ok(())
    }
}

/// Runs code with what this thread has.
#[inline]
fn with_worker<R>(copies: *const *mut u8, run: impl FnOnce(&Worker) -> R) -> R {
    tape::with_tapes(|tape| {
        let (take_tape, release_tapes) = (tape::take as TakeTape, tape::release as ReleaseTapes);
        run(&Worker { stack_limit: stack::limit(), copies, tape, take_tape, release_tapes })
    })
}
