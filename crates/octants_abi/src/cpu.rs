//! The memory that a CPU task sees: what its function is called with, and how a failing task reports.
//!
//! A task is `extern "C" fn(args: *const u8, frame: *const Frame, worker: *const Worker, lo: i64, hi: i64)`. `args` is a block in
//! the plan's `ArgLayout`; the frame belongs to the launch, the worker to the thread. A serial task is called once with `lo = hi = 0`; a range task with any `[lo, hi)`
//! of its flattened iteration space, last axis fastest. Data only: whoever launches fills a frame, emitted code reads it by
//! the offsets below.

use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::atomic::{AtomicBool, AtomicU32};

/// What all calls of one launch share.
#[repr(C)]
#[derive(Debug)]
pub struct Frame {
    /// A block in the plan's `TempLayout`, aligned to eight; null if that is empty.
    pub temps: *mut u8,
    /// A block in the plan's `ResultLayout`, aligned to eight; null if that is empty.
    pub results: *mut u8,
    /// Where the first failing task writes.
    pub fault: *mut Fault,
    /// `lo, hi` of each axis of the step that is running, outermost first. Each fits an `i32`, and `lo <= hi`.
    pub bounds: *const i64,
    /// Long loops look at it; where it is raised and confirmed, the task returns early.
    pub cancel: *const Cancel,
    /// What `launch_key` gives.
    pub key: u64,
    /// Called by each `print`, from any thread. May be left out for a kernel without any.
    pub print: Option<Print>,
    /// What it is called with: where the launch's prints go.
    pub prints: *const c_void,
    /// Called where a pool of a sparse tree needs memory.
    pub grow_pool: GrowPool,
}

/// A request to stop.
#[repr(C)]
#[derive(Debug)]
pub struct Cancel {
    /// One byte (an `i8` to the code, never wider): not zero as soon as the launch may have to stop.
    pub raised: AtomicBool,
    /// Asked where it is raised: whether to stop.
    pub confirm: extern "C" fn(*const Cancel) -> u8,
}

impl Cancel {
    pub const CONFIRM: usize = offset_of!(Cancel, confirm);
}

/// Is told of a `print`: where prints go, the site's number in the plan, and its operands in so many slots as
/// [`Fault::arguments`] has them.
pub type Print = unsafe extern "C" fn(prints: *const c_void, site: u32, count: u32, slots: *const u64);

/// Raises a pool's count of slots that have memory to at least `wanted`, if there is memory. Gives the count then, or a negative number.
pub type GrowPool = unsafe extern "C" fn(count: *mut u32, wanted: i32) -> i32;

/// What the thread has that runs a task: nothing of it is shared with other threads.
#[repr(C)]
#[derive(Debug)]
pub struct Worker {
    /// The lowest address that a frame of a recursive function may have.
    pub stack_limit: usize,
    /// The thread's private copies of arrays, in the order of the task's `copied`; null for a task without any.
    pub copies: *const *mut u8,
    /// The thread's memory for tapes, for the two functions below.
    pub tape: *mut c_void,
    pub take_tape: TakeTape,
    pub release_tapes: ReleaseTapes,
}

/// Gives so many bytes of a thread's tape, aligned to 64; null if there is no memory for them.
pub type TakeTape = unsafe extern "C" fn(tape: *mut c_void, bytes: u64) -> *mut u8;

/// What was taken since `first` was, and `first` itself, may be taken again.
pub type ReleaseTapes = unsafe extern "C" fn(tape: *mut c_void, first: *mut u8);

impl Worker {
    pub const STACK_LIMIT: usize = offset_of!(Worker, stack_limit);
    pub const COPIES: usize = offset_of!(Worker, copies);
    pub const TAPE: usize = offset_of!(Worker, tape);
    pub const TAKE_TAPE: usize = offset_of!(Worker, take_tape);
    pub const RELEASE_TAPES: usize = offset_of!(Worker, release_tapes);
}

impl Frame {
    pub const TEMPS: usize = offset_of!(Frame, temps);
    pub const RESULTS: usize = offset_of!(Frame, results);
    pub const FAULT: usize = offset_of!(Frame, fault);
    pub const BOUNDS: usize = offset_of!(Frame, bounds);
    pub const CANCEL: usize = offset_of!(Frame, cancel);
    pub const KEY: usize = offset_of!(Frame, key);
    pub const PRINT: usize = offset_of!(Frame, print);
    pub const PRINTS: usize = offset_of!(Frame, prints);
    pub const GROW_POOL: usize = offset_of!(Frame, grow_pool);
}

/// The failure that a launch ends with: the first one wins.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Fault {
    /// [`Fault::NONE`], then [`Fault::TAKEN`] by one task, then [`Fault::WRITTEN`] once the rest is there.
    pub state: AtomicU32,
    /// The number in the plan's table of sites of the `assert` that failed, or of the `call` that was nested too deep.
    pub site: u32,
    /// The op's operands after the condition, as many as fit: integers extended to 64 bits as their sign says, `u1` as 0 or
    /// 1, reals as the bits of an `f64`.
    pub arguments: [u64; Fault::ARGUMENTS],
}

impl Fault {
    pub const NONE: u32 = 0;
    pub const TAKEN: u32 = 1;
    pub const WRITTEN: u32 = 2;
    /// How many arguments are kept.
    pub const ARGUMENTS: usize = 8;

    pub const STATE_OFFSET: usize = offset_of!(Fault, state);
    pub const SITE_OFFSET: usize = offset_of!(Fault, site);
    pub const ARGUMENTS_OFFSET: usize = offset_of!(Fault, arguments);
}
