//! Plans and contexts over the null device.

// Each file of tests uses a part of it.
#![allow(dead_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use octants_hal::null::NullDevice;
use octants_hal::{Cancel, DeviceError, LaunchShape, Stream};
use octants_ir::plan::{
    Access, ArgLayout, Bound, Branch, LaunchUses, Plan, ResultLayout, RunTime, Schedule, Task, TempLayout,
};
use octants_ir::{ArrayType, Boundary, Builder, Kernel, Scalar, SiteTable, Type};
use octants_runtime::{
    Assumptions, Code, Context, Invocation, LaunchEnv, LaunchFailure, LaunchPlan, MakeVersion, Memory,
    TaskCode,
};

/// A serial task that leaves the length in a temporary, then a loop over the rows of `a` and that many columns.
pub fn plan() -> Plan {
    let mut kernel = Kernel::new("k");
    let array = ArrayType::array(Scalar::F32, 1, Boundary::Unsafe);
    kernel.add_param("a", Type::Array(array));
    kernel.add_param("b", Type::Array(array));
    kernel.results.push(Scalar::F64.into());
    Builder::new(&mut kernel).temp(Scalar::I32.into());
    let extent = Bound::Extent { param: 0, axis: 0 };
    let axes = vec![(Bound::Const(2), extent), (Bound::Temp(0), Bound::Const(7))];
    let (max_threads, block_dim, name, cost) = (None, None, None, 1);
    Plan {
        args: ArgLayout::of(&kernel),
        temps: TempLayout::of(&kernel),
        results: ResultLayout::of(&kernel),
        tasks: vec![
            Task::Serial,
            Task::Range { axes, max_threads, block_dim, name, cost, multiple: None, copied: Vec::new() },
        ],
        schedule: Schedule::in_order(2),
        access: vec![Access { read: true, written: false }, Access { read: true, written: true }],
        needs_noalias: true,
        uses: LaunchUses::default(),
        run_time: RunTime::Unknown,
        sites: SiteTable::default(),
    }
}

pub struct Maker {
    pub made: AtomicUsize,
    pub plan: Plan,
}

impl Maker {
    pub fn new(plan: Plan) -> Self {
        Self { made: AtomicUsize::new(0), plan }
    }
}

impl MakeVersion for Maker {
    type Info = ();
    type Error = DeviceError;

    fn make(&self, assume: Assumptions, _cancel: &Cancel) -> Result<Code<()>, DeviceError> {
        self.made.fetch_add(1, Ordering::Relaxed);
        let prefix = if assume.noalias { "apart" } else { "overlapping" };
        let task = |n| TaskCode {
            symbol: format!("{prefix}_t{n}"),
            bytes: Vec::new(),
            lanes: 1,
            shape: LaunchShape::default(),
        };
        let tasks = (0..self.plan.tasks.len()).map(task).collect();
        Ok(Code {
            name: prefix.to_owned(),
            place: octants_ir::LocData::NOWHERE,
            plan: self.plan.clone(),
            tasks,
            info: (),
        })
    }

    fn refused(&self, error: DeviceError) -> DeviceError {
        error
    }

    fn loaded(&self, (): &mut (), _time: std::time::Duration) {}
}

pub static NEVER: Cancel = Cancel::new();

pub fn setup() -> (Arc<NullDevice>, Arc<Context>, LaunchPlan<Maker>) {
    setup_with(NullDevice::new(), plan())
}

pub fn setup_with(device: NullDevice, plan: Plan) -> (Arc<NullDevice>, Arc<Context>, LaunchPlan<Maker>) {
    let device = Arc::new(device);
    let context = Context::new(device.clone());
    let plan = LaunchPlan::new(&context, Maker::new(plan), &NEVER).unwrap();
    device.take_trace();
    (device, context, plan)
}

/// The serial task, then two branches: the loop, and the serial task and the loop again; then the serial task.
pub fn forking_plan() -> Plan {
    let mut plan = plan();
    let (serial, range) = (plan.tasks[0].clone(), plan.tasks[1].clone());
    plan.tasks = vec![serial.clone(), range.clone(), serial.clone(), range, serial];
    let task = Schedule::Task;
    let branches = [task(1), Schedule::Seq(vec![task(2), task(3)])];
    let branches = branches.map(|schedule| Branch { schedule, work: None }).to_vec();
    plan.schedule = Schedule::Seq(vec![task(0), Schedule::Fork(branches), task(4)]);
    plan
}

/// What was recorded, but for the mark behind the zeros of new arrays, the launch's own memory and the end of the launch.
pub fn trace_of_a_launch(
    device: &NullDevice,
    context: &Arc<Context>,
    plan: &LaunchPlan<Maker>,
) -> Vec<String> {
    let (a, b) = (Memory::allocate(context, 40).unwrap(), Memory::allocate(context, 40).unwrap());
    device.take_trace();
    launch(plan, &a, &b).unwrap();
    let own = ["allocate_scratch", "fill 8", "free_scratch", "allocate_shared", "is_idle 0", "synchronise 0"];
    let mut trace = device.take_trace();
    if let Some(mark) = trace.first().and_then(|line| line.strip_prefix("create_event -> "))
        && trace[1] == format!("record_event {mark} on 0")
    {
        trace.drain(..2);
    }
    trace.retain(|line| !own.iter().any(|own| line.starts_with(own)));
    trace
}

pub fn launch(plan: &LaunchPlan<Maker>, a: &Memory, b: &Memory) -> Result<(), LaunchFailure<DeviceError>> {
    let f32s = Scalar::F32.into();
    let invocation = Invocation::new(plan).array(a, f32s, &[10]).unwrap().array(b, f32s, &[10]).unwrap();
    invocation.launch(&mut [0; 8], LaunchEnv::plain(Stream(0), &NEVER)).unwrap()
}
