//! Forks on a device that works on the host's memory: the launching stream is immediate, the others run what they were told only when
//! somebody waits for them. Whatever the runtime looks at too early is not there yet.

// A test of a boundary crate: the device below keeps the contract of `octants_hal`.
#![allow(unsafe_code)]

use std::sync::{Arc, Mutex};

use octants_hal::host::{HostMemory, copy, fill};
use octants_hal::{
    Address, Cancel, Capabilities, Device, DeviceError, Domain, Event, Fault, FaultRecord, ForkCosts,
    Function, Image, Launch, LaunchMemory, LaunchShape, Module, Stream, StreamPriority,
};
use octants_ir::plan::{
    ArgLayout, Bound, Branch, LaunchUses, Plan, ResultLayout, RunTime, Schedule, Task, TempLayout, Work,
};
use octants_ir::{SiteScope, SiteTable, text};
use octants_runtime::{
    Arguments, Assumptions, Code, Context, LaunchEnv, LaunchFailure, LaunchPlan, MakeVersion, TaskCode,
};

/// What a task does: it may write temporaries and fail.
type Body = fn(&LaunchMemory);

/// A task that was told of and has not run.
struct Job {
    function: usize,
    points: Option<u64>,
    memory: LaunchMemory,
}

#[derive(Default)]
struct State {
    /// By stream; the default one stays empty.
    queues: Vec<Vec<Job>>,
    log: Vec<String>,
    events: u64,
}

struct LazyDevice {
    bodies: Vec<Body>,
    costs: ForkCosts,
    memory: HostMemory,
    state: Mutex<State>,
}

impl LazyDevice {
    fn new(bodies: &[Body]) -> Self {
        let costs = ForkCosts { threads: 1, branch_instructions: 0, loops_fill: false };
        Self { bodies: bodies.to_vec(), costs, memory: HostMemory::new(), state: Mutex::default() }
    }

    fn log(&self, line: String) {
        self.state.lock().unwrap().log.push(line);
    }

    fn run(&self, job: &Job, stream: Stream) {
        let points = job.points.map_or_else(|| "once".to_owned(), |points| format!("for {points}"));
        self.log(format!("t{} {points} on {}", job.function, stream.0));
        self.bodies[job.function](&job.memory);
    }
}

// SAFETY: memory is allocated by `HostMemory`; verbs on a stream run in the order of the calls.
unsafe impl Device for LazyDevice {
    fn name(&self) -> &'static str {
        "lazy"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::HOST_MEMORY | Capabilities::STREAMS
    }

    fn is_immediate(&self, stream: Stream) -> bool {
        stream.0 == 0
    }

    fn fork_costs(&self) -> ForkCosts {
        self.costs
    }

    unsafe fn allocate(&self, _stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        self.memory.allocate(bytes)
    }

    unsafe fn free(&self, _stream: Stream, address: Address, bytes: usize) {
        // SAFETY: the caller says so.
        unsafe { self.memory.free(address, bytes) };
    }

    unsafe fn copy_to_device(
        &self,
        _stream: Stream,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller says so.
        unsafe { copy(to.as_ptr(), from, bytes) };
        Ok(())
    }

    unsafe fn copy_to_host(
        &self,
        _stream: Stream,
        to: *mut u8,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller says so.
        unsafe { copy(to, from.as_ptr(), bytes) };
        Ok(())
    }

    unsafe fn copy(
        &self,
        _stream: Stream,
        to: Address,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller says so.
        unsafe { copy(to.as_ptr(), from.as_ptr(), bytes) };
        Ok(())
    }

    unsafe fn fill(
        &self,
        _stream: Stream,
        to: Address,
        pattern: &[u8],
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller says so.
        unsafe { fill(to.as_ptr(), pattern, bytes) };
        Ok(())
    }

    fn create_stream(&self, _priority: StreamPriority) -> Result<Stream, DeviceError> {
        let mut state = self.state.lock().unwrap();
        state.queues.push(Vec::new());
        Ok(Stream(state.queues.len() as u64))
    }

    fn create_event(&self, _timing: bool) -> Result<Event, DeviceError> {
        let mut state = self.state.lock().unwrap();
        state.events += 1;
        Ok(Event(state.events))
    }

    unsafe fn synchronise(&self, stream: Stream) -> Result<(), DeviceError> {
        if stream.0 > 0 {
            let jobs = std::mem::take(&mut self.state.lock().unwrap().queues[stream.0 as usize - 1]);
            for job in &jobs {
                self.run(job, stream);
            }
        }
        Ok(())
    }

    unsafe fn load_module(&self, _image: &Image<'_>) -> Result<Module, DeviceError> {
        Ok(Module(1))
    }

    unsafe fn unload_module(&self, _module: Module) {}

    unsafe fn function(&self, _module: Module, symbol: &str) -> Option<Function> {
        symbol.strip_prefix('t').and_then(|number| number.parse().ok()).map(Function)
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        let points = match launch.domain {
            Domain::Once => None,
            Domain::Range(range) => Some(range.points),
            Domain::DeviceRange(_) => panic!("the device does not read bounds"),
        };
        let stream = launch.context.stream;
        let job = Job { function: launch.function.0 as usize, points, memory: launch.context.memory };
        if stream.0 == 0 {
            self.run(&job, stream);
        } else {
            self.state.lock().unwrap().queues[stream.0 as usize - 1].push(job);
        }
        Ok(())
    }
}

struct Maker(Plan);

impl MakeVersion for Maker {
    type Info = ();
    type Error = DeviceError;

    fn make(&self, _assume: Assumptions, _cancel: &Cancel) -> Result<Code<()>, DeviceError> {
        let task = |number| TaskCode {
            symbol: format!("t{number}"),
            bytes: Vec::new(),
            lanes: 1,
            shape: LaunchShape::default(),
        };
        let tasks = (0..self.0.tasks.len()).map(task).collect();
        Ok(Code {
            name: "k".to_owned(),
            place: octants_ir::LocData::NOWHERE,
            plan: self.0.clone(),
            tasks,
            info: (),
        })
    }

    fn refused(&self, error: DeviceError) -> DeviceError {
        error
    }

    fn loaded(&self, (): &mut (), _time: std::time::Duration) {}
}

/// Two checks, and a temporary for each of two branches.
const KERNEL: &str = "kernel @k(%n \"n\": i32) {
  %a: local<i32> = local
  %b: local<i32> = local
  %c: u1 = const true
  assert \"one\", %c
  assert \"two\", %c
  return
}";

/// Branches of a serial task and a loop up to the temporary that it wrote, with this work.
fn plan(can_fail: bool, work: [Option<Vec<Work>>; 2]) -> Plan {
    let mut kernel = text::parse(KERNEL).unwrap_or_else(|error| panic!("{error}"));
    let sites = if can_fail { SiteTable::of(&kernel, SiteScope::Reports) } else { SiteTable::default() };
    let body = kernel.body;
    kernel.regions[body].ops.clear();
    for _ in 0..2 {
        octants_ir::Builder::new(&mut kernel).temp(octants_ir::Scalar::I32.into());
    }
    let range = |temp| Task::Range {
        axes: vec![(Bound::Const(0), Bound::Temp(temp))],
        max_threads: None,
        block_dim: None,
        name: None,
        cost: 1,
        multiple: None,
        copied: Vec::new(),
    };
    let branch = |first, work| Branch {
        schedule: Schedule::Seq(vec![Schedule::Task(first), Schedule::Task(first + 1)]),
        work,
    };
    let [one, two] = work;
    Plan {
        args: ArgLayout::of(&kernel),
        temps: TempLayout::of(&kernel),
        results: ResultLayout::of(&kernel),
        tasks: vec![Task::Serial, range(0), Task::Serial, range(1)],
        schedule: Schedule::Seq(vec![Schedule::Fork(vec![branch(0, one), branch(2, two)])]),
        access: vec![octants_ir::Access::default()],
        needs_noalias: false,
        uses: LaunchUses::default(),
        run_time: RunTime::Unknown,
        sites,
    }
}

static NEVER: Cancel = Cancel::new();

/// Launches with `n` and gives what ran.
fn launch(device: LazyDevice, plan: Plan, n: i32) -> (Result<(), LaunchFailure<DeviceError>>, Vec<String>) {
    let device = Arc::new(device);
    let context = Context::new(device.clone());
    let plan = LaunchPlan::new(&context, Maker(plan), &NEVER).unwrap();
    let mut args = n.to_le_bytes().to_vec();
    args.resize(plan.args().bytes as usize, 0);
    // SAFETY: the block has no addresses.
    let arguments = unsafe { Arguments::new(&args) };
    let ran = plan.launch(arguments, &mut [], LaunchEnv::plain(Stream(0), &NEVER));
    let log = device.state.lock().unwrap().log.clone();
    (ran, log)
}

fn nothing(_: &LaunchMemory) {}

/// # Panics
/// If there is no such temporary.
fn write_temp(memory: &LaunchMemory, number: usize, value: i32) {
    // SAFETY: the launch's temporaries are two words of eight bytes at most.
    unsafe { memory.temps.offset(TEMP_BYTES * number).as_ptr::<i32>().write(value) };
}

/// How far temporaries of 32 bits lie apart.
const TEMP_BYTES: usize = 4;

fn fail(memory: &LaunchMemory, site: u32) {
    // SAFETY: the runtime has put a record there.
    let record = unsafe { &*memory.fault.as_ptr::<FaultRecord>() };
    record.write(&Fault { site, arguments: [0; octants_hal::FAULT_ARGUMENTS] });
}

fn bounds(device: &mut LazyDevice) {
    device.bodies =
        vec![|memory| write_temp(memory, 0, 5), nothing, |memory| write_temp(memory, 1, 3), nothing];
}

#[test]
fn a_bound_is_read_when_its_branch_has_come_so_far() {
    let mut device = LazyDevice::new(&[]);
    bounds(&mut device);
    let (ran, log) = launch(device, plan(false, [None, None]), 0);
    assert_eq!(ran, Ok(()));
    // The launching stream runs its branch while the other is under way; nobody waits for that one before.
    assert_eq!(log, ["t0 once on 0", "t1 for 5 on 0", "t2 once on 1", "t3 for 3 on 1"]);
}

#[test]
fn a_failure_ends_its_branch_and_is_told_with_those_of_the_others() {
    let fails: [Body; 4] = [|memory| fail(memory, 1), nothing, |memory| fail(memory, 0), nothing];
    let (ran, log) = launch(LazyDevice::new(&fails), plan(true, [None, None]), 0);
    let Err(LaunchFailure::Fault(report)) = ran else { panic!("{ran:?}") };
    assert_eq!((report.first.site, report.others.len()), (1, 1), "in the order of the program");
    assert_eq!(report.others[0].site, 0);
    assert_eq!(log, ["t0 once on 0", "t2 once on 1"], "what was begun is joined, nothing more begins");
}

#[test]
fn a_failure_in_the_last_task_of_a_branch_is_seen() {
    let fails: [Body; 4] = [
        |memory| write_temp(memory, 0, 5),
        nothing,
        |memory| write_temp(memory, 1, 3),
        |memory| fail(memory, 1),
    ];
    let (ran, log) = launch(LazyDevice::new(&fails), plan(true, [None, None]), 0);
    assert!(matches!(&ran, Err(LaunchFailure::Fault(report)) if report.first.site == 1), "{ran:?}");
    assert_eq!(log.len(), 4);
}

/// `n` points of ten instructions each.
#[allow(clippy::unnecessary_wraps, reason = "as branches have it")]
fn small() -> Option<Vec<Work>> {
    let axes = vec![(Bound::Const(0), Bound::Param(0))];
    Some(vec![Work { axes, max_threads: None, instructions: vec![(10, Vec::new())] }])
}

#[test]
fn small_branches_run_in_order_on_the_launching_stream() {
    let is_forked = |work, n, loops_fill| {
        let mut device = LazyDevice::new(&[]);
        bounds(&mut device);
        device.costs = ForkCosts { threads: 4, branch_instructions: 1000, loops_fill };
        let (ran, log) = launch(device, plan(false, work), n);
        assert_eq!((ran, log.len()), (Ok(()), 4));
        log.iter().any(|line| line.ends_with("on 1"))
    };
    let fills = is_forked;
    let is_forked = |work, n| fills(work, n, false);
    assert!(!is_forked([small(), small()], 100));
    assert!(!is_forked([small(), small()], 396));
    assert!(is_forked([small(), small()], 397), "four threads run a thousand instructions each");
    assert!(is_forked([small(), small()], i32::MAX));
    assert!(is_forked([None, None], 0), "what is not known may be long");
    assert!(!is_forked([None, small()], 100), "no more than the short one can be saved");
    assert!(is_forked([None, small()], 1000));
    // A serial loop counts its trips; one thread runs them.
    let serial = || {
        let trips = vec![(Bound::Const(0), Bound::Param(0))];
        Some(vec![Work {
            axes: Vec::new(),
            max_threads: None,
            instructions: vec![(3, Vec::new()), (2, trips)],
        }])
    };
    assert!(!is_forked([serial(), serial()], 498));
    assert!(is_forked([serial(), serial()], 499));
    // Loops that fill the device gain nothing; one with few points, or a serial one, does.
    assert!(!fills([small(), small()], 1_000_000, true));
    assert!(fills([serial(), serial()], 499, true) && fills([serial(), small()], 1000, true));
    let narrow = || small().map(|tasks| vec![Work { max_threads: Some(2), ..tasks[0].clone() }]);
    assert!(fills([narrow(), narrow()], 1000, true));
}
