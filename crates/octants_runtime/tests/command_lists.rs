//! The list of commands that a launch is, as text, and what the null device is told when the host does what the list says.

mod setup;

use octants_hal::null::NullDevice;
use octants_hal::{Cancel, Capabilities, FaultRecord};
use octants_ir::ops::ArithOp;
use octants_ir::plan::{Bound, LaunchUses, Plan, ResultLayout, Schedule, Task, TempLayout};
use octants_ir::text::parse;
use octants_ir::{Scalar, SiteScope, SiteTable};
use octants_runtime::LaunchPlan;
use setup::{Maker, forking_plan, plan, setup_with, trace_of_a_launch};

/// The list on a device that can do this, and what the device is told by one launch, but for the launch's own memory.
fn list_and_trace(capabilities: Capabilities, plan: Plan) -> (Vec<String>, Vec<String>) {
    let (device, context, plan) = setup_with(NullDevice::with_capabilities(capabilities), plan);
    let list = lines(&plan);
    let mut trace = trace_of_a_launch(&device, &context, &plan);
    trace.retain(|line| !line.starts_with("create"));
    (list, trace)
}

fn list(capabilities: Capabilities, plan: Plan) -> Vec<String> {
    lines(&setup_with(NullDevice::with_capabilities(capabilities), plan).2)
}

fn lines(plan: &LaunchPlan<Maker>) -> Vec<String> {
    plan.first().print_commands().lines().map(str::to_owned).collect()
}

/// What a launch of so many branches at once, with results of eight bytes, reports in.
fn report(branches: usize) -> String {
    let stop = branches * size_of::<FaultRecord>();
    let results = stop + size_of::<Cancel>();
    let end = results + 8;
    format!("report {end}: faults 0..{stop} stop {stop}..{results} results {results}..{end}")
}

/// A loop over the rows of the first array alone.
fn loop_alone() -> Plan {
    let plan = plan();
    let task = match plan.tasks[1].clone() {
        Task::Range { axes, max_threads, block_dim, name, cost, multiple, copied } => {
            Task::Range { axes: axes[..1].to_vec(), max_threads, block_dim, name, cost, multiple, copied }
        }
        Task::Serial => panic!("the second task is a loop"),
    };
    Plan { tasks: vec![task], temps: TempLayout::default(), schedule: Schedule::in_order(1), ..plan }
}

/// A check that can fail.
fn checks() -> SiteTable {
    let text = "kernel @k() {\n  %0: u1 = const false\n  assert bounds %0, \"no\"\n  return\n}";
    SiteTable::of(&parse(text).unwrap_or_else(|error| panic!("{error}")), SiteScope::Reports)
}

#[test]
fn a_loop_takes_its_bounds_from_arguments_by_name() {
    let quiet = Plan { results: ResultLayout::default(), ..loop_alone() };
    assert_eq!(list(Capabilities::STREAMS, quiet), ["launch t0 over (2..extent 0 of arg 0)"]);
}

#[test]
fn tasks_come_one_after_the_other() {
    let mut two = loop_alone();
    two.tasks.push(Task::Serial);
    two.schedule = Schedule::in_order(2);
    assert_eq!(
        list(Capabilities::NONE, two),
        [&report(1), "launch t0 over (2..extent 0 of arg 0)", "launch t1 once",]
    );
}

#[test]
fn a_bound_that_a_task_read_stays_on_the_device_or_is_waited_for() {
    let report = report(1);
    let begin = ["scratch 8: temps 0..8", &report, "fill scratch with 0", "launch t0 once"];
    let (list, trace) = list_and_trace(Capabilities::DEVICE_BOUNDS, plan());
    assert_eq!(list[..4], begin);
    assert_eq!(list[4..], ["launch t1 over (2..extent 0 of arg 0, temp 0..7), bounds read by the device"]);
    assert_eq!(trace, ["launch apart_t0 once on 0", "launch apart_t1 2..10 x i32 at temps + 0..7 on 0"]);

    // Where the device reads no bounds, and where a bound is calculated from what was read.
    let waits = ["wait for temps", "launch t1 over (2..extent 0 of arg 0, temp 0..7)"];
    let (list, trace) = list_and_trace(Capabilities::NONE, plan());
    assert_eq!((&list[..4], &list[4..]), (&begin.map(str::to_owned)[..], &waits.map(str::to_owned)[..]));
    assert_eq!(
        trace,
        ["launch apart_t0 once on 0", "copy_to_host 8 on 0", "launch apart_t1 2..10 x 0..7 on 0"]
    );
    let mut calculated = plan();
    let Task::Range { axes, .. } = &mut calculated.tasks[1] else { panic!("the second task is a loop") };
    let (a, b) = (Box::new(Bound::Temp(0)), Box::new(Bound::Const(1)));
    axes[1].0 = Bound::Arith { op: ArithOp::Sub, ty: Scalar::I32, a, b };
    let (list, trace) = list_and_trace(Capabilities::DEVICE_BOUNDS, calculated);
    assert_eq!(list[4..], ["wait for temps", "launch t1 over (2..extent 0 of arg 0, sub.i32(temp 0, 1)..7)"]);
    assert_eq!(trace[1], "copy_to_host 8 on 0");
}

#[test]
fn branches_of_a_fork_follow_each_other_and_may_overlap() {
    let range = "(2..extent 0 of arg 0, temp 0..7), bounds read by the device";
    let (forked, trace) = list_and_trace(Capabilities::STREAMS | Capabilities::DEVICE_BOUNDS, forking_plan());
    let [t1, t3] = [1, 3].map(|task| format!("launch t{task} over {range}"));
    assert_eq!(
        forked,
        [
            "scratch 8: temps 0..8",
            &report(2),
            "fill scratch with 0",
            "launch t0 once",
            "fork 2",
            "  branch 0:",
            &format!("    {t1}"),
            "  branch 1:",
            "    launch t2 once",
            &format!("    {t3}"),
            "join",
            "launch t4 once",
        ]
    );
    // The fork and the join are events.
    let kinds: Vec<_> = trace.iter().map(|line| line.split(' ').next().unwrap_or_default()).collect();
    let [record, wait, launch] = ["record_event", "wait_event", "launch"];
    assert_eq!(kinds, [launch, record, wait, launch, launch, launch, record, wait, launch]);

    // In order, what is left are the tasks.
    let in_order = list(Capabilities::DEVICE_BOUNDS, forking_plan());
    assert_eq!(in_order[1], report(1));
    assert_eq!(in_order[3..], ["launch t0 once", &t1, "launch t2 once", &t3, "launch t4 once"]);
}

#[test]
fn the_host_looks_for_faults_after_each_task_unless_the_device_stops_by_itself() {
    let checked = || Plan { sites: checks(), ..forking_plan() };
    let (looking, trace) = list_and_trace(Capabilities::STREAMS | Capabilities::DEVICE_BOUNDS, checked());
    let waits = |list: &[String]| list.iter().filter(|line| line.trim() == "wait for faults").count();
    assert_eq!(waits(&looking), 5);
    assert_eq!(looking[3..5], ["launch t0 once", "wait for faults"]);
    assert!(trace.iter().any(|line| line.starts_with("launch apart_t4")), "{trace:?}");
    let stops = Capabilities::STREAMS | Capabilities::DEVICE_BOUNDS | Capabilities::STOPS_AT_FAULT;
    assert_eq!(waits(&list(stops, checked())), 0);
    assert_eq!(waits(&list(stops, forking_plan())), 0);
}

#[test]
fn a_kernel_that_prints_has_counters_where_the_device_does_not_see_the_queue() {
    let printing = || Plan { uses: LaunchUses { output: true, key: false }, ..plan() };
    assert_eq!(list(Capabilities::NONE, printing())[0], "scratch 24: temps 0..8 counters of prints 8..24");
    let (_device, _context, plan) =
        setup_with(NullDevice::with_capabilities(Capabilities::HOST_MEMORY), printing());
    assert!(plan.first().print_commands().starts_with("scratch 8: temps 0..8\n"));
}
