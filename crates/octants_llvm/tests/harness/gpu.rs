//! A GPU that is not there: code for one, compiled for the host, with a thread of the host for each of a block's.
//!
//! What only a GPU has is replaced by functions of this file: registers, barriers and shuffles. Blocks run one after the other, so memory
//! that a block shares is a variable. A lane that a shuffle must not read gives a value that no program expects. Warps have as many lanes as
//! the vendor says that the code is for.

use std::cell::Cell;
use std::fmt::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use octants_abi::gpu::GpuFrame;
use octants_hal::LaunchShape;
use octants_ir::Kernel;
use octants_ir::plan::{Copied, Plan, Task};
use octants_llvm::{EmitOptions, GpuOptions, Target, Vendor, emit};
use octants_llvm_sys::{Loaded, OptLevel, Options, compile, load};

use super::{KEY, bytes_of, plan_of};

const MOST_LANES: usize = 64;
/// What a shuffle gives of a lane that there is not.
const NOTHING: u32 = 0xDEAD_BEEF;

type Entry = unsafe extern "C" fn(*const u8, *const u64);

/// How long a thread waits for the others, before it is certain that they do not come.
const PATIENCE: Duration = Duration::from_mins(1);

/// Where threads wait for each other. One that does not come is told of: code for a GPU would be undefined there.
struct Barrier {
    threads: usize,
    /// How many wait, and how often all have come.
    waiting: Mutex<(usize, u64)>,
    all: Condvar,
}

impl Barrier {
    fn new(threads: usize) -> Self {
        Self { threads, waiting: Mutex::new((0, 0)), all: Condvar::new() }
    }

    fn wait(&self) {
        let mut waiting = self.waiting.lock().unwrap();
        waiting.0 += 1;
        let round = waiting.1;
        if waiting.0 == self.threads {
            *waiting = (0, round + 1);
            self.all.notify_all();
            return;
        }
        let waited = self.all.wait_timeout_while(waiting, PATIENCE, |waiting| waiting.1 == round).unwrap();
        if waited.1.timed_out() {
            // Generated code does not unwind.
            eprintln!("thread {} waits for others that do not come", PLACE.get().thread);
            std::process::abort();
        }
    }
}

/// What the threads of a block share.
struct Block {
    barrier: Barrier,
    lanes: u32,
    warps: Vec<(Barrier, Mutex<[u32; MOST_LANES]>)>,
}

#[derive(Clone, Copy)]
struct Place {
    thread: u32,
    threads: u32,
    block: u32,
    blocks: u32,
    shared: *const Block,
}

thread_local! {
    static PLACE: Cell<Place> = const {
        Cell::new(Place { thread: 0, threads: 1, block: 0, blocks: 1, shared: std::ptr::null() })
    };
}

extern "C" fn thread_number() -> u32 {
    PLACE.get().thread
}

extern "C" fn thread_count() -> u32 {
    PLACE.get().threads
}

extern "C" fn block_number() -> u32 {
    PLACE.get().block
}

extern "C" fn block_count() -> u32 {
    PLACE.get().blocks
}

extern "C" fn barrier() {
    // SAFETY: the block outlives its threads.
    unsafe { &*PLACE.get().shared }.barrier.wait();
}

extern "C" fn fence() {}

/// Code claims that an address is a multiple of so many bytes.
extern "C" fn claim_alignment(address: usize, bytes: usize) {
    if !address.is_multiple_of(bytes) {
        // Generated code does not unwind.
        eprintln!("{address:#x} is no multiple of {bytes}");
        std::process::abort();
    }
}

/// The block, the thread's warp and its lane there.
fn place_in_warp() -> (&'static Block, u32, u32) {
    let place = PLACE.get();
    // SAFETY: the block outlives its threads.
    let block = unsafe { &*place.shared };
    (block, place.thread / block.lanes, place.thread % block.lanes)
}

/// What each lane of the warp gives, and how many are there.
fn exchanged(value: u32) -> ([u32; MOST_LANES], u32) {
    let (block, warp, lane) = place_in_warp();
    let (barrier, slots) = &block.warps[warp as usize];
    slots.lock().unwrap()[lane as usize] = value;
    barrier.wait();
    let values = *slots.lock().unwrap();
    barrier.wait();
    (values, (PLACE.get().threads - warp * block.lanes).min(block.lanes))
}

fn read_behind(mask: u64, value: u32, distance: u32) -> u32 {
    let (values, present) = exchanged(value);
    assert_eq!(mask, u64::MAX >> (64 - present), "all threads of the warp take part");
    let from = place_in_warp().2 + distance;
    if from < present { values[from as usize] } else { NOTHING }
}

/// What each lane of a warp gives that is whole.
fn exchanged_by_all(value: u32) -> ([u32; MOST_LANES], u32) {
    let (values, present) = exchanged(value);
    assert_eq!(present, place_in_warp().0.lanes, "all lanes of the warp take part");
    (values, present)
}

extern "C" fn read_before(value: u32) -> u32 {
    let lane = place_in_warp().2;
    // A lane whose source there is not gets its own.
    exchanged_by_all(value).0[lane.saturating_sub(1) as usize]
}

extern "C" fn where_it_holds(bit: bool) -> u64 {
    let (bits, lanes) = exchanged_by_all(bit.into());
    (0..lanes).map(|lane| u64::from(bits[lane as usize]) << lane).sum()
}

extern "C" fn holds_everywhere(bit: bool) -> bool {
    where_it_holds(bit).count_ones() == place_in_warp().0.lanes
}

extern "C" fn wait_for_wave() {
    exchanged_by_all(0);
}

extern "C" fn shuffle_down(mask: u32, value: u32, distance: u32, last: u32) -> u32 {
    assert_eq!(last, 31);
    read_behind(mask.into(), value, distance)
}

extern "C" fn shuffle_up(mask: u32, value: u32, distance: u32, first: u32) -> u32 {
    assert_eq!((mask, distance, first), (u32::MAX, 1, 0));
    read_before(value)
}

extern "C" fn wait_for_warp(mask: u32) {
    assert_eq!(mask, u32::MAX);
    wait_for_wave();
}

extern "C" fn ballot(mask: u32, bit: bool) -> u32 {
    assert_eq!(mask, u32::MAX);
    where_it_holds(bit) as u32
}

extern "C" fn vote_all(mask: u32, bit: bool) -> bool {
    assert_eq!(mask, u32::MAX);
    holds_everywhere(bit)
}

extern "C" fn other_read_behind(value: u32, distance: u32, mask: u64) -> u32 {
    read_behind(mask, value, distance)
}

/// Adds to two neighbouring cells at once. Threads of a block may be threads of the host.
extern "C" fn add_2(cell: *mut f32, a: f32, b: f32) {
    add_together(cell, &[a, b]);
}

extern "C" fn add_4(cell: *mut f32, a: f32, b: f32, c: f32, d: f32) {
    add_together(cell, &[a, b, c, d]);
}

fn add_together(cell: *mut f32, values: &[f32]) {
    claim_alignment(cell as usize, size_of_val(values));
    for (number, &value) in values.iter().enumerate() {
        // SAFETY: code adds to cells of its arrays, which other threads access as atomics, too.
        let cell = unsafe { AtomicU32::from_ptr(cell.add(number).cast()) };
        let add = |bits| Some((f32::from_bits(bits) + value).to_bits());
        cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).expect("it always adds");
    }
}

/// What stands for each instruction that code names itself.
const INSTRUCTIONS: [(&str, &str); 2] = [
    (
        r#"asm sideeffect "red.relaxed.gpu.global.add.v2.f32 [$0], {$1, $2};", "l,f,f,~{memory}""#,
        "test_add_2",
    ),
    (
        r#"asm sideeffect "red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};", "l,f,f,f,f,~{memory}""#,
        "test_add_4",
    ),
];

const CLAIM: &str = "test_claim_alignment";

/// What stands for each intrinsic.
const STAND_INS: [(&str, &str, *const ()); 24] = [
    ("llvm.nvvm.read.ptx.sreg.tid.x", "test_thread", thread_number as *const ()),
    ("llvm.nvvm.read.ptx.sreg.ntid.x", "test_threads", thread_count as *const ()),
    ("llvm.nvvm.read.ptx.sreg.ctaid.x", "test_block", block_number as *const ()),
    ("llvm.nvvm.read.ptx.sreg.nctaid.x", "test_blocks", block_count as *const ()),
    ("llvm.nvvm.barrier0", "test_barrier", barrier as *const ()),
    ("llvm.nvvm.membar.sys", "test_fence", fence as *const ()),
    ("claim_alignment", CLAIM, claim_alignment as *const ()),
    ("add_2", "test_add_2", add_2 as *const ()),
    ("add_4", "test_add_4", add_4 as *const ()),
    ("llvm.nvvm.shfl.sync.down.i32", "test_shuffle_down", shuffle_down as *const ()),
    ("llvm.nvvm.shfl.sync.up.i32", "test_shuffle_up", shuffle_up as *const ()),
    ("llvm.nvvm.bar.warp.sync", "test_wait_for_warp", wait_for_warp as *const ()),
    ("llvm.nvvm.vote.ballot.sync", "test_ballot", ballot as *const ()),
    ("llvm.nvvm.vote.all.sync", "test_vote_all", vote_all as *const ()),
    ("other.item", "test_other_thread", thread_number as *const ()),
    ("other.items", "test_other_threads", thread_count as *const ()),
    ("other.group", "test_other_block", block_number as *const ()),
    ("other.groups", "test_other_blocks", block_count as *const ()),
    ("other.wait.group", "test_other_barrier", barrier as *const ()),
    ("other.wait.wave", "test_other_wait_for_wave", wait_for_wave as *const ()),
    ("other.read.behind", "test_other_read_behind", other_read_behind as *const ()),
    ("other.read.before", "test_other_read_before", read_before as *const ()),
    ("other.everywhere", "test_other_everywhere", holds_everywhere as *const ()),
    ("other.where", "test_other_where", where_it_holds as *const ()),
];

pub struct GpuProgram {
    pub plan: Plan,
    tasks: Vec<GpuTask>,
}

struct GpuTask {
    _code: Loaded,
    entry: Entry,
    shape: LaunchShape,
    /// Its threads wait for each other.
    together: bool,
    lanes: u32,
}

impl GpuProgram {
    /// `None` if the kernel calls functions that only the device's library has. Its loops only add to these arrays.
    pub fn new(kernel: &Kernel, vendor: &'static Vendor, noalias: bool, sums: &[Copied]) -> Option<Self> {
        let mut plan = plan_of(kernel);
        for task in &mut plan.tasks {
            if let Task::Range { copied, .. } = task {
                *copied = sums.to_vec();
            }
        }
        // Older GPUs and newer ones.
        let target = Target::Gpu(GpuOptions { vendor, vector_sums: noalias });
        let mut tasks = Vec::new();
        for task in emit(kernel, &plan, &EmitOptions { noalias, target, ..EmitOptions::default() }) {
            if ["@__nv_", "@other_"].iter().any(|library| task.text.contains(library)) {
                return None;
            }
            let waits = [
                "llvm.nvvm.barrier0",
                "llvm.nvvm.bar.warp",
                "llvm.nvvm.shfl",
                "llvm.nvvm.vote",
                "@other.wait",
                "@other.read",
                "@other.everywhere",
                "@other.where",
            ];
            let together = waits.iter().any(|wait| task.text.contains(wait));
            let text = with_claims(&for_host(&task.text));
            let options = Options { opt: OptLevel::Default, ..Options::default() };
            let object = compile(&text, &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let symbols = STAND_INS.map(|(_, name, address)| (name, address));
            let code = load(&object.bytes, &symbols).unwrap();
            let symbol = code.symbol(&task.symbol).expect("the module defines its function");
            // SAFETY: the emitter defines the function with two parameters, here by their addresses.
            let entry = unsafe { std::mem::transmute::<*const (), Entry>(symbol) };
            tasks.push(GpuTask { _code: code, entry, shape: task.shape, together, lanes: vendor.lanes });
        }
        Some(Self { plan, tasks })
    }

    /// Runs all tasks with at most so many blocks; gives the results.
    pub fn run(&self, args: &mut [u64], most_blocks: u64) -> Vec<u8> {
        let mut temps = vec![0_u64; self.plan.temps.bytes as usize / 8 + 1];
        let mut results = vec![0_u64; self.plan.results.bytes as usize / 8 + 1];
        let mut fault = [0_u64; 16];
        for (planned, task) in self.plan.tasks.iter().zip(&self.tasks) {
            let bounds: Vec<i64> = match planned {
                Task::Serial => Vec::new(),
                Task::Range { axes, .. } => axes
                    .iter()
                    .flat_map(|(lo, hi)| [lo, hi])
                    .map(|bound| bound.evaluate(&self.plan, bytes_of(args), bytes_of(&mut temps)))
                    .collect(),
            };
            // Bounds that the host does not know are read by the task, empty ones too.
            let on_device = planned.needs_temps();
            if !on_device && bounds.chunks(2).any(|axis| axis[0] >= axis[1]) {
                continue;
            }
            let points = bounds.chunks(2).map(|axis| (axis[1] - axis[0]).max(0) as u64).product();
            let head = GpuFrame {
                temps: temps.as_mut_ptr() as u64,
                results: results.as_mut_ptr() as u64,
                fault: fault.as_mut_ptr() as u64,
                prints: 0,
                key: KEY,
                points,
                stack: 1 << 20,
                stop: 0,
            };
            let mut frame = head.words().to_vec();
            frame.extend(bounds.iter().map(|&bound| if on_device { 0 } else { bound as u64 }));
            let (blocks, threads) = match planned {
                Task::Range { .. } if on_device => (most_blocks.min(4), task.shape.block),
                Task::Serial | Task::Range { max_threads: Some(1), .. } => (1, 1),
                Task::Range { .. } => (task.shape.blocks(&bounds, points).min(most_blocks), task.shape.block),
            };
            for block in 0..blocks as u32 {
                task.run_block(args, &frame, (block, blocks as u32), threads);
            }
        }
        assert_eq!(fault[0], 0, "a fault without an assertion");
        bytes_of(&mut results).to_vec()
    }
}

impl GpuTask {
    fn run_block(&self, args: &[u64], frame: &[u64], (block, blocks): (u32, u32), threads: u32) {
        let lanes = self.lanes;
        let warps = (0..threads.div_ceil(lanes)).map(|warp| (threads - warp * lanes).min(lanes));
        let shared = Block {
            barrier: Barrier::new(threads as usize),
            lanes,
            warps: warps
                .map(|present| (Barrier::new(present as usize), Mutex::new([0; MOST_LANES])))
                .collect(),
        };
        let (args, frame, entry) = (args.as_ptr() as usize, frame.as_ptr() as usize, self.entry);
        let address = &raw const shared as usize;
        let run = move |thread: u32| {
            PLACE.set(Place { thread, threads, block, blocks, shared: address as *const Block });
            // SAFETY: blocks are as the plan lays them out, and arrays as long as their extents say.
            unsafe { entry(args as *const u8, frame as *const u64) }
        };
        if !self.together {
            return (0..threads).for_each(run);
        }
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let small = std::thread::Builder::new().stack_size(128 << 10);
                small.spawn_scoped(scope, move || run(thread)).unwrap();
            }
        });
    }
}

/// The same text, in which each load and store of more than natural alignment is checked.
fn with_claims(text: &str) -> String {
    let mut checked = String::new();
    for line in text.lines() {
        let access = line.contains("= load ") || line.trim_start().starts_with("store ");
        if let (true, Some((before, after))) = (access, line.split_once(", align ")) {
            let pointer = before.rsplit_once("ptr ").expect("an access has an address").1;
            // Behind the address of an atomic one stands its ordering.
            let pointer = pointer.split(' ').next().unwrap_or(pointer);
            let bytes: String = after.chars().take_while(char::is_ascii_digit).collect();
            writeln!(checked, "  call void @{CLAIM}(ptr {pointer}, i64 {bytes})").unwrap();
        }
        checked.push_str(line);
        checked.push('\n');
    }
    let two = "float, float";
    checked
        + &format!("declare void @{CLAIM}(ptr, i64)\n")
        + &format!("declare void @test_add_2(ptr, {two})\ndeclare void @test_add_4(ptr, {two}, {two})\n")
}

/// The same text with parameters by address, one memory, and this file's functions.
fn for_host(text: &str) -> String {
    let mut text =
        text.replace("addrspace(3) ", "").replace(" addrspace(3)", "").replace(" addrspace(1)", "");
    text = text.replace("addrspacecast ptr ", "bitcast ptr ");
    while let Some(begin) = text.find("byval(") {
        let end = begin + text[begin..].find(") ").expect("it is closed") + 2;
        text.replace_range(begin..end, "");
    }
    for (instruction, name) in INSTRUCTIONS {
        text = text.replace(instruction, &format!("@{name}"));
    }
    for (intrinsic, name, _) in STAND_INS {
        text = text.replace(&format!("@{intrinsic}("), &format!("@{name}("));
    }
    text
}
