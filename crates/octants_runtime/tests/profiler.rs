//! What the profiler adds to what a device is told, and what it makes of it: seen on the null device, whose recordings of events are a
//! microsecond apart.

// The null device touches no memory.
#![allow(unsafe_code)]

use std::sync::Arc;

use octants_hal::null::NullDevice;
use octants_hal::{Cancel, Device, DeviceError, LaunchShape, Stream, StreamPriority};
use octants_ir::plan::{
    ArgLayout, Bound, Branch, LaunchUses, Plan, ResultLayout, RunTime, Schedule, Task, TempLayout,
};
use octants_ir::{Kernel, SiteTable};
use octants_runtime::{
    Assumptions, Code, Context, HostQueue, Invocation, LaunchEnv, LaunchPlan, MakeVersion, Memory, TaskCode,
    Trace, Track,
};

static NEVER: Cancel = Cancel::new();

/// A serial task, two branches with a loop each, and a serial task.
struct Maker;

impl MakeVersion for Maker {
    type Info = ();
    type Error = DeviceError;

    fn make(&self, _assume: Assumptions, _cancel: &Cancel) -> Result<Code<()>, DeviceError> {
        let kernel = Kernel::new("k");
        let range = |name: Option<&str>| Task::Range {
            axes: vec![(Bound::Const(0), Bound::Const(10))],
            max_threads: None,
            block_dim: None,
            name: name.map(str::to_owned),
            cost: 1,
            multiple: None,
            copied: Vec::new(),
        };
        let task = Schedule::Task;
        let branch = |number| Branch { schedule: task(number), work: None };
        let plan = Plan {
            args: ArgLayout::of(&kernel),
            temps: TempLayout::default(),
            results: ResultLayout::default(),
            tasks: vec![Task::Serial, range(None), range(Some("far")), Task::Serial],
            schedule: Schedule::Seq(vec![task(0), Schedule::Fork(vec![branch(1), branch(2)]), task(3)]),
            access: Vec::new(),
            needs_noalias: false,
            uses: LaunchUses::default(),
            run_time: RunTime::Unknown,
            sites: SiteTable::default(),
        };
        let code = |number| TaskCode {
            symbol: format!("k_t{number}"),
            bytes: Vec::new(),
            lanes: 1,
            shape: LaunchShape::default(),
        };
        Ok(Code {
            name: "k".to_owned(),
            place: octants_ir::LocData::NOWHERE,
            plan,
            tasks: (0..4).map(code).collect(),
            info: (),
        })
    }

    fn refused(&self, error: DeviceError) -> DeviceError {
        error
    }

    fn loaded(&self, (): &mut (), _time: std::time::Duration) {}
}

fn launch(plan: &LaunchPlan<Maker>) {
    Invocation::new(plan).launch(&mut [], LaunchEnv::plain(Stream(0), &NEVER)).unwrap().unwrap();
}

fn profiled() -> (Arc<NullDevice>, Arc<Context>, LaunchPlan<Maker>) {
    let device = Arc::new(NullDevice::new());
    let context = Context::profiled(device.clone(), None);
    let plan = LaunchPlan::new(&context, Maker, &NEVER).unwrap();
    device.take_trace();
    (device, context, plan)
}

fn trace(context: &Context) -> Trace {
    context.profiler().trace(&NEVER).unwrap()
}

#[test]
fn all_that_is_added_to_a_launch_is_an_event_before_and_behind_each_task() {
    let (device, context, plan) = profiled();
    launch(&plan);
    trace(&context);
    device.take_trace();
    launch(&plan);
    let recorded = device.take_trace();
    let plain_device = Arc::new(NullDevice::new());
    let plain = Context::new(plain_device.clone());
    let plain_plan = LaunchPlan::new(&plain, Maker, &NEVER).unwrap();
    launch(&plain_plan);
    plain_device.take_trace();
    launch(&plain_plan);
    let verbs = |lines: &[String]| -> Vec<String> {
        lines.iter().map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
    };
    let mut expected = Vec::new();
    for verb in verbs(&plain_device.take_trace()) {
        if verb == "launch" {
            expected.extend(["record_event", "launch", "record_event"].map(str::to_owned));
        } else {
            expected.push(verb);
        }
    }
    assert_eq!(verbs(&recorded), expected, "nothing waits, and events serve again");
    // Each on the stream of its task.
    for (at, line) in recorded.iter().enumerate().filter(|(_, line)| line.starts_with("launch")) {
        let on = |line: &str| line.rsplit_once(" on ").map(|(_, stream)| stream.to_owned());
        assert_eq!(on(&recorded[at - 1]), on(line));
        assert_eq!(on(&recorded[at + 1]), on(line));
    }
    drop(context);
}

#[test]
fn tasks_have_their_names_streams_and_launches() {
    let (_device, context, plan) = profiled();
    launch(&plan);
    launch(&plan);
    let trace = trace(&context);
    let tasks: Vec<_> =
        trace.spans.iter().filter(|span| matches!(span.track, Track::Stream { .. })).collect();
    let described: Vec<_> = tasks
        .iter()
        .map(|span| {
            let Track::Stream { stream, .. } = span.track else { unreachable!() };
            (&*span.name, stream > 0, span.launch)
        })
        .collect();
    let of = |launch| {
        [
            ("k_0_serial", false, Some(launch)),
            // The device is told of the launching stream's own branch last.
            ("k_2_range_for_far", true, Some(launch)),
            ("k_1_range_for", false, Some(launch)),
            ("k_3_serial", false, Some(launch)),
        ]
    };
    assert_eq!(described, [of(1), of(2)].concat());
    assert_ne!(tasks[1].track, tasks[2].track);
    assert!(tasks.iter().all(|span| span.duration == 1000), "two recordings, one after the other: {tasks:?}");
    let starts: Vec<_> = tasks.iter().map(|span| span.start).collect();
    assert!(starts.is_sorted_by(|a, b| a + 1000 < *b), "{starts:?}");
    assert_eq!(trace.query("k").count, 2);
    assert_eq!(trace.query("k").min, 4000, "all tasks of a launch");
    assert_eq!(trace.query("k_1_range_for").total, 2000);
    assert_eq!(trace.query("other").count, 0);
    assert_eq!((trace.total(), trace.untimed, trace.dropped), (8000, 0, 0));
    let launches = trace.spans.iter().filter(|span| matches!(span.track, Track::Launches { .. }));
    assert_eq!(
        launches.map(|span| (&*span.name, span.launch)).collect::<Vec<_>>(),
        [("k", Some(1)), ("k", Some(2))]
    );
}

#[test]
fn copies_and_fills_are_recorded_with_their_bytes() {
    let (_device, context, _plan) = profiled();
    let (one, two) = (Memory::allocate(&context, 64).unwrap(), Memory::allocate(&context, 64).unwrap());
    one.fill(HostQueue::default(), &[1]).unwrap();
    one.write(HostQueue::default(), 8, &[0; 16]).unwrap();
    two.copy_from(HostQueue::default(), &one).unwrap();
    two.read(HostQueue::default(), 0, &mut [0; 4]).unwrap();
    two.read(HostQueue::default(), 0, &mut [0; 4]).unwrap();
    let trace = trace(&context);
    let copies: Vec<_> =
        trace.copies.iter().map(|(activity, times, bytes)| (activity.name(), times.count, *bytes)).collect();
    assert_eq!(copies, [("copy to device", 1, 16), ("copy to host", 2, 8), ("copy", 1, 64), ("fill", 1, 64)]);
    assert_eq!(trace.total(), 0, "these are no tasks");
}

#[test]
fn launches_before_a_clear_are_forgotten() {
    let (_device, context, plan) = profiled();
    launch(&plan);
    context.profiler().clear();
    assert!(trace(&context).spans.is_empty());
    launch(&plan);
    assert_eq!(trace(&context).query("k").count, 1);
}

/// Times are read in batches once events are passed, so that few events serve many launches.
#[test]
fn events_are_read_and_serve_again_while_a_program_runs() {
    let (device, context, plan) = profiled();
    for _ in 0..1000 {
        launch(&plan);
    }
    let made = device.take_trace().iter().filter(|line| line.starts_with("create_event timed")).count();
    assert!(made <= 2 * 64 + 2, "{made} events");
    let trace = trace(&context);
    assert_eq!((trace.query("k").count, trace.untimed), (1000, 0));
}

#[test]
fn a_task_whose_event_fails_runs_without_a_time() {
    let (device, context, plan) = profiled();
    launch(&plan);
    context.profiler().clear();
    device.fail_next("record_event");
    launch(&plan);
    let trace = trace(&context);
    assert_eq!((trace.untimed, trace.query("k").count, trace.query("k").total), (1, 1, 3000));
}

#[test]
fn a_stream_that_gets_the_handle_of_a_destroyed_one_is_another_stream() {
    let (_device, context, _plan) = profiled();
    let memory = Memory::allocate(&context, 64).unwrap();
    let device: &dyn Device = context.device();
    let stream = device.create_stream(StreamPriority::Normal).unwrap();
    let address = memory.address().unwrap();
    // SAFETY: the null device's handles are numbers.
    unsafe {
        device.fill(stream, address, &[1], 64).unwrap();
        device.destroy_stream(stream);
        device.fill(stream, address, &[1], 64).unwrap();
    }
    let tracks: Vec<_> = trace(&context).spans.iter().map(|span| span.track).collect();
    assert_eq!(tracks, [1, 2].map(|stream| Track::Stream { stream, thread: 0 }));
}

#[test]
fn everything_that_the_profiler_made_is_destroyed_with_its_context() {
    let device = Arc::new(NullDevice::new());
    let context = Context::profiled(device.clone(), None);
    let plan = LaunchPlan::new(&context, Maker, &NEVER).unwrap();
    launch(&plan);
    trace(&context);
    drop((plan, context));
    let all = device.take_trace();
    let count = |verb: &str| all.iter().filter(|line| line.starts_with(verb)).count();
    assert_eq!(count("create_event"), count("destroy_event"));
    assert_eq!(count("create_stream"), count("destroy_stream"));
}
