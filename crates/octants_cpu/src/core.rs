//! What runs tasks, copies and fills, at once or from a queue.

use std::ffi::c_void;
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use octants_abi::cpu::{Fault, Frame, ReleaseTapes, TakeTape, Worker};
use octants_hal::host::{self, Filler, HostMemory, LINE};
use octants_hal::{
    Address, Cancel, DeviceBound, DeviceError, DeviceRangeDomain, Domain, FaultRecord, Launch, LaunchContext,
    PrintQueue, RangeDomain,
};
use smallvec::SmallVec;

use crate::copies::{IdleCopies, LoopCopies};
use crate::exclusive::Exclusive;
use crate::pool::{Outcome, Pool, Schedule};
use crate::stream::LiveStreams;
use crate::work::{MeasuredWork, is_short, threads_worth};
use crate::{sparse_pools, stack, tape};

/// A range task: arguments, frame, worker, and a range of the flattened points. A serial task ignores the range.
pub(crate) type Task = unsafe extern "C" fn(*const u8, *const Frame, *const Worker, i64, i64);

// Generated code reads a request to stop by its offsets.
const _: () = {
    assert!(offset_of!(octants_abi::cpu::Cancel, raised) == Cancel::RAISED_OFFSET);
    assert!(offset_of!(octants_abi::cpu::Cancel, confirm) == Cancel::CONFIRM_OFFSET);
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

/// The parts of the device that verbs need whenever they run.
pub(crate) struct Core {
    pub memory: HostMemory,
    pub pool: Pool,
    pub streams: LiveStreams,
    /// Of a device with one thread.
    pub exclusive: Option<Exclusive>,
    copies: IdleCopies,
    start: Instant,
}

/// One task's code, and what is known of its running time.
pub(crate) struct TaskFunction {
    pub code: Task,
    pub work: MeasuredWork,
}

impl Core {
    /// With loops on so many threads; 0 means one for each processor of the process.
    pub fn new(threads: usize) -> Self {
        let pool = Pool::new(threads);
        Self {
            memory: HostMemory::new(),
            streams: LiveStreams::default(),
            exclusive: (pool.threads() == 1).then(Exclusive::default),
            pool,
            copies: IdleCopies::default(),
            start: Instant::now(),
        }
    }

    /// Nanoseconds since the device was opened; never 0.
    pub fn nanoseconds(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64 + 1
    }

    /// # Safety
    /// The ranges are valid and do not overlap.
    pub unsafe fn copy(&self, to: Address, from: Address, bytes: usize) {
        self.in_pieces(bytes, LINE, MIN_BYTES_PER_THREAD, &|begin, length| {
            // SAFETY: a piece of what the caller vouches for.
            unsafe { host::copy(to.offset(begin).as_ptr(), from.offset(begin).as_ptr(), length) };
        });
    }

    /// # Safety
    /// The range is valid.
    pub unsafe fn fill(&self, to: Address, filler: &Filler, bytes: usize) {
        self.in_pieces(bytes, filler.period(), MIN_BYTES_PER_THREAD, &|begin, length| {
            // SAFETY: a piece of what the caller vouches for, which begins where the pattern does.
            unsafe { filler.fill(to.offset(begin).as_ptr(), length) };
        });
    }

    /// Runs a task.
    ///
    /// # Safety
    /// As for the verb `launch`; all that comes before it is done.
    #[inline]
    pub unsafe fn run_task(&self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        if let Some(exclusive) = &self.exclusive {
            exclusive.enter();
        }
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
            grow_pool: sparse_pools::grow,
        };
        // SAFETY: the caller keeps the verb's contract.
        unsafe {
            match &launch.domain {
                Domain::Once => {
                    with_worker(std::ptr::null(), |worker| {
                        (task.code)(context.args.as_ptr(), &raw const frame, worker, 0, 0);
                    });
                    Ok(())
                }
                Domain::Range(range) => {
                    frame.bounds = range.bounds.as_ptr();
                    self.run_range(task, context, &frame, range)
                }
                Domain::DeviceRange(range) => self.run_device_range(task, context, &mut frame, range),
            }
        }
    }

    /// # Safety
    /// As for the verb `launch`; the tasks that write the bounds are done.
    #[cold]
    unsafe fn run_device_range(
        &self,
        task: &TaskFunction,
        context: &LaunchContext<'_>,
        frame: &mut Frame,
        range: &DeviceRangeDomain<'_>,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        let bounds: SmallVec<[i64; 8]> =
            range.bounds.iter().map(|bound| unsafe { value_of(bound) }).collect();
        let mut points = Some(1_u64);
        for axis in bounds.chunks_exact(2) {
            if axis[0] >= axis[1] {
                return Ok(());
            }
            points = points.and_then(|points| points.checked_mul(axis[1].wrapping_sub(axis[0]) as u64));
        }
        let points = points.filter(|&points| i64::try_from(points).is_ok()).ok_or_else(|| {
            let message = "a parallel loop has more iterations than 63 bits can count".to_owned();
            DeviceError::Failed { verb: "launch", message }
        })?;
        frame.bounds = bounds.as_ptr();
        let &DeviceRangeDomain { max_threads, block, cost, lanes, copied, .. } = range;
        let range = RangeDomain { bounds: &bounds, points, max_threads, block, cost, lanes, copied };
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.run_range(task, context, frame, &range) }
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
        // SAFETY: the record outlives the launch; one that cannot fail has none.
        let fault = unsafe { context.memory.fault.as_ptr::<FaultRecord>().as_ref() };
        let has_failed = || fault.is_some_and(FaultRecord::happened);
        let busy = task.work.is_sampled().then(|| AtomicU64::new(0));
        let schedule = Schedule { grain, max_chunk, max_threads, cancel: Some(context.cancel) };
        let outcome = self.pool.run(points, &schedule, &|thread, lo, hi| {
            if has_failed() {
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
            && !has_failed()
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

/// The bound's value now.
///
/// # Safety
/// What lies in memory is there, and written.
unsafe fn value_of(bound: &DeviceBound) -> i64 {
    match *bound {
        DeviceBound::Known(value) => value,
        DeviceBound::InMemory { at, bits, signed } => {
            let mut bytes = [0; 8];
            // SAFETY: the caller says so; an integer has at most eight bytes.
            unsafe { host::copy(bytes.as_mut_ptr(), at.as_ptr(), (bits / 8) as usize) };
            let unused = 64 - bits;
            let value = i64::from_le_bytes(bytes) << unused;
            if signed { value >> unused } else { (value as u64 >> unused) as i64 }
        }
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
