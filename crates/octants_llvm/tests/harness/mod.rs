//! Runs kernels of the tasks phase: text in, LLVM, native code, memory out.

#![allow(unsafe_code, dead_code)]

use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use octants_abi::cpu::{Cancel, Fault, Frame, Worker};
use octants_ir::plan::{
    Access, ArgKind, ArgLayout, Bound, LaunchUses, Plan, ResultLayout, RunTime, Schedule, Task, TempLayout,
    leaves_of,
};
use octants_ir::{Const, Data, Kernel, OpKind, Scalar, SiteScope, SiteTable, Value};
use octants_llvm::{EmitOptions, emit};
use octants_llvm_sys::{Loaded, OptLevel, Options, compile, load};

pub mod gpu;
pub mod gpu_text;
pub mod oracle;
pub mod other_vendor;

extern "C" fn confirm(_: *const Cancel) -> u8 {
    1
}

/// A request to stop that is not raised yet.
pub fn never_cancelled() -> Cancel {
    Cancel { raised: AtomicBool::new(false), confirm }
}

type Entry = unsafe extern "C" fn(*const u8, *const Frame, *const Worker, i64, i64);

pub struct Program {
    pub kernel: Kernel,
    pub plan: Plan,
    tasks: Vec<(Loaded, Entry)>,
}

pub enum Arg<'a> {
    Scalar(Const),
    /// Its memory, its shape, and its strides, if they are passed.
    Array(&'a mut [u8], &'a [i32], &'a [i64]),
    /// A tensor or a struct by its scalars.
    Whole(Vec<Const>),
}

/// What a launch left behind.
pub struct Outcome {
    pub results: Vec<u8>,
    pub temps: Vec<u8>,
    /// The failed site and its arguments.
    pub fault: Option<(u32, [u64; Fault::ARGUMENTS])>,
    /// Each print that ran, and its operands.
    pub prints: Vec<(u32, Vec<u64>)>,
    /// Most bytes of tapes that a chunk held at once.
    pub taped: u64,
}

/// What a chunk holds.
#[derive(Default)]
struct Tapes {
    held: Vec<(Vec<u64>, u64)>,
    most: u64,
}

type Prints = Mutex<Vec<(u32, Vec<u64>)>>;

/// What `launch_key` gives.
pub const KEY: u64 = 0x0123_4567_89AB_CDEF;

unsafe extern "C" fn on_print(prints: *const c_void, op: u32, count: u32, slots: *const u64) {
    // SAFETY: the harness passes its list, and the emitter as many slots as it says.
    let (prints, words) =
        unsafe { (&*prints.cast::<Prints>(), std::slice::from_raw_parts(slots, count as usize)) };
    prints.lock().unwrap().push((op, words.to_vec()));
}

/// The plan of a kernel in its tasks phase.
pub fn plan_of(kernel: &Kernel) -> Plan {
    let mut tasks = Vec::new();
    for op in kernel.tasks() {
        match &kernel.ops[op].kind {
            OpKind::Serial => tasks.push(Task::Serial),
            OpKind::ParallelFor(attributes) => {
                let parallel = kernel.parallel_loop(op).expect("the kind says so");
                let axes =
                    parallel.bounds().map(|(lo, hi)| (bound_of(kernel, lo), bound_of(kernel, hi))).collect();
                let (max_threads, block_dim) = (attributes.max_threads, attributes.block_dim);
                let (name, cost, multiple, copied) = (None, 1, None, Vec::new());
                tasks.push(Task::Range { axes, max_threads, block_dim, name, cost, multiple, copied });
            }
            _ => {}
        }
    }
    Plan {
        args: ArgLayout::of(kernel),
        temps: TempLayout::of(kernel),
        results: ResultLayout::of(kernel),
        schedule: Schedule::in_order(tasks.len()),
        tasks,
        access: vec![Access { read: true, written: true }; kernel.params.len()],
        needs_noalias: false,
        uses: LaunchUses::of(kernel),
        run_time: RunTime::Unknown,
        sites: SiteTable::of(kernel, SiteScope::Reports),
    }
}

fn bound_of(kernel: &Kernel, value: Value) -> Bound {
    if let Some(param) = kernel.as_param(value) {
        return Bound::Param(param);
    }
    let def = kernel.def(value).expect("a bound is a launch-time value");
    match def.kind {
        OpKind::Const(c) => Bound::Const(c.as_i128().unwrap() as i64),
        OpKind::Extent(axis) => Bound::Extent { param: kernel.as_param(def.operands[0]).unwrap(), axis },
        OpKind::Load => Bound::Temp(kernel.temps().position(|temp| temp == def.operands[0]).unwrap()),
        ref kind => panic!("the harness evaluates no {}", kind.name()),
    }
}

impl Program {
    pub fn parse(text: &str, options: &EmitOptions, opt: OptLevel) -> Self {
        let kernel = octants_ir::text::parse(text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
        Self::new(kernel, options, opt)
    }

    pub fn new(kernel: Kernel, options: &EmitOptions, opt: OptLevel) -> Self {
        let plan = plan_of(&kernel);
        let tasks = emit(&kernel, &plan, options)
            .iter()
            .map(|task| {
                let options = Options { opt, ..Options::default() };
                let object =
                    compile(&task.text, &options).unwrap_or_else(|error| panic!("{error}\n{}", task.text));
                let code = load(&object.bytes, &[]).unwrap();
                let symbol = code.symbol(&task.symbol).expect("the module defines its function");
                // SAFETY: the emitter defines the function with this signature.
                let function = unsafe { std::mem::transmute::<*const (), Entry>(symbol) };
                (code, function)
            })
            .collect();
        Self { kernel, plan, tasks }
    }

    /// Runs all steps; ranges in chunks of so many iterations.
    pub fn run(&self, arguments: &mut [Arg<'_>], chunk: i64) -> Outcome {
        self.run_until(arguments, chunk, &never_cancelled())
    }

    /// Likewise, until somebody raises the flag.
    pub fn run_until(&self, arguments: &mut [Arg<'_>], chunk: i64, cancel: &Cancel) -> Outcome {
        let mut args = argument_block(&self.kernel, &self.plan, arguments);
        let mut temps = vec![0_u64; self.plan.temps.bytes as usize / 8];
        let mut results = vec![0_u64; self.plan.results.bytes as usize / 8];
        let mut fault = Fault::default();
        let prints: Prints = Mutex::new(Vec::new());
        let mut taped = 0;
        for (planned, (_, task)) in self.plan.tasks.iter().zip(&self.tasks) {
            let bounds: Vec<i64> = match planned {
                Task::Serial => Vec::new(),
                Task::Range { axes, .. } => axes
                    .iter()
                    .flat_map(|(lo, hi)| [lo, hi])
                    .map(|bound| bound.evaluate(&self.plan, bytes_of(&mut args), bytes_of(&mut temps)))
                    .collect(),
            };
            let frame = Frame {
                temps: temps.as_mut_ptr().cast(),
                results: results.as_mut_ptr().cast(),
                fault: &raw mut fault,
                bounds: bounds.as_ptr(),
                cancel,
                key: KEY,
                print: Some(on_print),
                prints: (&raw const prints).cast(),
                grow_pool,
            };
            // Tests run on threads with two megabytes of stack.
            let stack_limit = (&raw const frame).addr() - (1 << 20);
            let mut tapes = Tapes::default();
            let tapes = &raw mut tapes;
            let worker = Worker {
                stack_limit,
                copies: std::ptr::null(),
                tape: tapes.cast(),
                take_tape,
                release_tapes,
            };
            let args: *const u8 = args.as_ptr().cast();
            // SAFETY: blocks are as the plan lays them out, and arrays as long as their extents say.
            let call = |lo, hi| unsafe { task(args, &raw const frame, &raw const worker, lo, hi) };
            if *planned == Task::Serial {
                call(0, 0);
                continue;
            }
            let points: i64 = bounds.chunks(2).map(|axis| (axis[1] - axis[0]).max(0)).product();
            let mut lo = 0;
            while lo < points && fault.state.load(Ordering::Relaxed) == Fault::NONE {
                let hi = points.min(lo + chunk);
                call(lo, hi);
                lo = hi;
            }
            // SAFETY: nobody else refers to it, now that the code has run.
            taped = taped.max(unsafe { (*tapes).most });
        }
        let failed = fault.state.load(Ordering::Acquire);
        assert!(failed == Fault::NONE || failed == Fault::WRITTEN);
        Outcome {
            results: bytes_of(&mut results).to_vec(),
            temps: bytes_of(&mut temps).to_vec(),
            fault: (failed != Fault::NONE).then_some((fault.site, fault.arguments)),
            prints: prints.into_inner().unwrap(),
            taped,
        }
    }
}

/// The block of arguments in the plan's layout.
pub fn argument_block(kernel: &Kernel, plan: &Plan, arguments: &mut [Arg<'_>]) -> Vec<u64> {
    let mut args = vec![0_u64; plan.args.bytes as usize / 8 + 1];
    for (slot, argument) in plan.args.slots.iter().zip(arguments) {
        let block = bytes_of(&mut args);
        match (slot.kind, argument) {
            (ArgKind::Data(Data::Scalar(ty)), Arg::Scalar(c)) => {
                assert_eq!(ty, c.ty());
                put(block, slot.offset, &c.bits().to_le_bytes()[..ty.bytes() as usize]);
            }
            (ArgKind::Array(array), Arg::Array(bytes, extents, strides)) => {
                // A field has its extents in its layout.
                assert_eq!(extents.len(), if array.layout.is_some() { 0 } else { usize::from(array.rank) });
                put(block, slot.offset, &(bytes.as_mut_ptr() as u64).to_le_bytes());
                for (axis, extent) in extents.iter().enumerate() {
                    put(block, slot.extent_offset(axis as u8), &extent.to_le_bytes());
                }
                assert_eq!(strides.is_empty(), !array.has_strides());
                for (axis, stride) in strides.iter().enumerate() {
                    put(block, slot.stride_offset(axis as u8), &stride.to_le_bytes());
                }
            }
            (ArgKind::Data(data), Arg::Whole(scalars)) => {
                let leaves = leaves_of(kernel, data);
                assert_eq!(leaves.len(), scalars.len());
                for ((offset, ty), scalar) in leaves.into_iter().zip(scalars.iter()) {
                    assert_eq!(ty, scalar.ty());
                    let bytes = scalar.bits().to_le_bytes();
                    put(block, slot.offset + offset, &bytes[..ty.bytes() as usize]);
                }
            }
            (kind, _) => panic!("no argument for {kind:?}"),
        }
    }
    args
}

fn put(block: &mut [u8], offset: u32, bytes: &[u8]) {
    block[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
}

pub fn bytes_of(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: any bytes are words, and the other way round.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len() * 8) }
}

/// Reads element number `index` of an array of scalars.
pub fn read(bytes: &[u8], ty: Scalar, index: usize) -> Const {
    let width = ty.bytes() as usize;
    let mut word = [0; 8];
    word[..width].copy_from_slice(&bytes[index * width..(index + 1) * width]);
    Const::from_bits(ty, u64::from_le_bytes(word))
}

pub fn write(bytes: &mut [u8], index: usize, value: Const) {
    let width = value.ty().bytes() as usize;
    bytes[index * width..(index + 1) * width].copy_from_slice(&value.bits().to_le_bytes()[..width]);
}

/// Every tape is a vector of its own: its neighbours are none of its business. Sixteen words more, for the alignment.
/// Gives what is wanted up to a thousand, and says no to more.
unsafe extern "C" fn grow_pool(count: *mut u32, wanted: i32) -> i32 {
    if wanted > 1000 {
        return -1;
    }
    // SAFETY: a cell of an array of the test.
    let count = unsafe { &mut *count };
    *count = (*count).max(wanted.cast_unsigned());
    count.cast_signed()
}

unsafe extern "C" fn take_tape(tapes: *mut c_void, bytes: u64) -> *mut u8 {
    // SAFETY: the worker below holds them.
    let tapes = unsafe { &mut *tapes.cast::<Tapes>() };
    let mut tape = vec![0xaaaa_aaaa_aaaa_aaaa_u64; bytes as usize / 8 + 16];
    let start: *mut u8 = tape.as_mut_ptr().cast();
    tapes.held.push((tape, bytes));
    tapes.most = tapes.most.max(tapes.held.iter().map(|&(_, bytes)| bytes).sum());
    start.wrapping_add(start.align_offset(64))
}

unsafe extern "C" fn release_tapes(tapes: *mut c_void, first: *mut u8) {
    // SAFETY: likewise.
    let tapes = unsafe { &mut *tapes.cast::<Tapes>() };
    let is_first = |(tape, _): &(Vec<u64>, u64)| {
        let range = tape.as_ptr_range();
        (range.start.addr()..range.end.addr()).contains(&first.addr())
    };
    let number = tapes.held.iter().position(is_first).expect("it was taken");
    tapes.held.truncate(number);
}
