//! What the runtime tells a device to do, in which order: seen on the null device.

mod setup;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use octants_hal::null::NullDevice;
use octants_hal::{Capabilities, DeviceError, Stream};
use octants_ir::plan::{Plan, ResultLayout};
use octants_ir::text::parse;
use octants_ir::{Const, Scalar, SiteScope, SiteTable};
use octants_runtime::{ArgumentError, Context, HostQueue, Invocation, LaunchEnv, LaunchFailure, Memory};
use setup::{Maker, NEVER, forking_plan, launch, plan, setup, setup_with, trace_of_a_launch};

#[test]
fn a_launch_owns_its_memory_and_waits_only_for_what_it_reads() {
    let (device, context, plan) = setup();
    let (a, b) = (Memory::allocate(&context, 40).unwrap(), Memory::allocate(&context, 40).unwrap());
    device.take_trace();
    launch(&plan, &a, &b).unwrap();
    assert_eq!(
        device.take_trace(),
        [
            // Behind the arrays' zeros, for streams that use them.
            "create_event -> 2",
            "record_event 2 on 0",
            "allocate_scratch 8 on 0",
            "allocate_shared 4096",
            "fill 8 with [00] on 0",
            "launch apart_t0 once on 0",
            "copy_to_host 8 on 0",
            "launch apart_t1 2..10 x 0..7 on 0",
            "free_scratch 8 on 0",
            "is_idle 0",
            "synchronise 0",
        ]
    );
    launch(&plan, &a, &b).unwrap();
    let again = device.take_trace();
    assert!(!again.iter().any(|line| line.starts_with("allocate_shared")), "it serves again: {again:?}");
}

/// Without results and without checks there is nothing to wait for.
#[test]
fn the_host_does_not_wait_for_a_launch_that_reports_nothing() {
    let quiet = Plan { results: octants_ir::plan::ResultLayout::default(), ..plan() };
    let capabilities = Capabilities::STREAMS | Capabilities::DEVICE_BOUNDS;
    let (device, context, plan) = setup_with(NullDevice::with_capabilities(capabilities), quiet);
    let (a, b) = (Memory::allocate(&context, 40).unwrap(), Memory::allocate(&context, 40).unwrap());
    device.take_trace();
    let f32s = Scalar::F32.into();
    let invocation = Invocation::new(&plan).array(&a, f32s, &[10]).unwrap().array(&b, f32s, &[10]).unwrap();
    invocation.launch(&mut [], LaunchEnv::plain(Stream(0), &NEVER)).unwrap().unwrap();
    drop((a, b));
    assert_eq!(
        device.take_trace(),
        [
            "create_event -> 2",
            "record_event 2 on 0",
            "allocate_scratch 8 on 0",
            "fill 8 with [00] on 0",
            "launch apart_t0 once on 0",
            "launch apart_t1 2..10 x i32 at temps + 0..7 on 0",
            "free_scratch 8 on 0",
            "free 40 on 0",
            "free 40 on 0",
        ]
    );
}

/// Checks of a derivative's memory are told to who waits next: neither a task nor the launch's end is waited for.
#[test]
fn the_host_does_not_wait_for_a_launch_that_reports_late() {
    let (capabilities, none) = (Capabilities::STREAMS | Capabilities::DEVICE_BOUNDS, ResultLayout::default());
    let sites = |about: &str| {
        let text = format!(
            "kernel @k() {{\n  %0: u1 = const false\n  assert {about} %0, \"no memory\"\n  return\n}}"
        );
        SiteTable::of(&parse(&text).unwrap_or_else(|error| panic!("{error}")), SiteScope::Reports)
    };
    let trace = |about: &str, reports_late: bool| {
        let checked = Plan { results: none.clone(), sites: sites(about), ..forking_plan() };
        let (device, context, plan) = setup_with(NullDevice::with_capabilities(capabilities), checked);
        let (a, b) = (Memory::allocate(&context, 40).unwrap(), Memory::allocate(&context, 40).unwrap());
        let f32s = Scalar::F32.into();
        let launch = || {
            let invocation =
                Invocation::new(&plan).array(&a, f32s, &[10]).unwrap().array(&b, f32s, &[10]).unwrap();
            let env = LaunchEnv { reports_late, ..LaunchEnv::plain(Stream(0), &NEVER) };
            invocation.launch(&mut [], env).unwrap().unwrap();
        };
        launch();
        device.take_trace();
        launch();
        assert!(context.take_deferred_fault().is_none());
        device.take_trace()
    };
    let waits = |trace: &[String]| trace.iter().any(|line| line.starts_with("synchronise"));
    for about in ["tape", "tape_limit"] {
        let late = trace(about, true);
        assert!(!waits(&late), "{late:?}");
        assert_eq!(late.iter().filter(|line| line.starts_with("launch")).count(), 5);
        assert!(waits(&trace(about, false)));
    }
    // What may leave arrays half written is waited for.
    assert!(waits(&trace("bounds", true)));
}

/// No branch waits for another, and the host waits only for bounds that it must know. The first branch keeps the launching stream.
#[test]
fn a_branch_waits_for_the_launching_stream_which_then_waits_for_each_branch() {
    let (device, context, plan) = setup_with(NullDevice::new(), forking_plan());
    let fork = [
        "launch apart_t0 once on 0",
        "record_event 5 on 0",
        "wait_event 5 on 3",
        "launch apart_t2 once on 3",
        "copy_to_host 8 on 0",
        "launch apart_t1 2..10 x 0..7 on 0",
        "copy_to_host 8 on 3",
        "launch apart_t3 2..10 x 0..7 on 3",
        "record_event 4 on 3",
        "wait_event 4 on 0",
        "launch apart_t4 once on 0",
    ];
    let first = trace_of_a_launch(&device, &context, &plan);
    let made: Vec<_> = first.iter().filter(|line| line.starts_with("create")).collect();
    assert_eq!(made, ["create_stream -> 3", "create_event -> 4", "create_event -> 5"]);
    let others: Vec<_> = first.iter().filter(|line| !line.starts_with("create")).collect();
    assert_eq!(others, fork);
    let again = trace_of_a_launch(&device, &context, &plan);
    assert!(
        !again.iter().any(|line| line.starts_with("create")),
        "streams and events serve again: {again:?}"
    );
    drop((plan, context));
    let end = device.take_trace();
    for stream in ["destroy_stream 3", "destroy_event 4", "destroy_event 5"] {
        assert!(end.iter().any(|line| line == stream), "{stream} in {end:?}");
    }
}

#[test]
fn bounds_stay_on_a_device_that_can_read_them() {
    let capabilities = Capabilities::STREAMS | Capabilities::DEVICE_BOUNDS;
    let (device, context, plan) = setup_with(NullDevice::with_capabilities(capabilities), plan());
    assert_eq!(
        trace_of_a_launch(&device, &context, &plan),
        ["launch apart_t0 once on 0", "launch apart_t1 2..10 x i32 at temps + 0..7 on 0"]
    );
}

#[test]
fn without_streams_branches_run_in_order() {
    let device = NullDevice::with_capabilities(Capabilities::DEVICE_BOUNDS);
    let (device, context, plan) = setup_with(device, forking_plan());
    let trace = trace_of_a_launch(&device, &context, &plan);
    let names: Vec<_> = trace.iter().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(names, ["apart_t0", "apart_t1", "apart_t2", "apart_t3", "apart_t4"]);
    assert!(trace.iter().all(|line| line.ends_with("on 0")), "{trace:?}");
}

#[test]
fn a_fork_that_fails_half_way_joins_what_was_begun() {
    let (device, context, plan) = setup_with(NullDevice::new(), forking_plan());
    let (a, b) = (Memory::allocate(&context, 40).unwrap(), Memory::allocate(&context, 40).unwrap());
    for verb in ["create_stream", "create_event", "record_event", "wait_event", "launch", "copy_to_host"] {
        device.take_trace();
        device.fail_next(verb);
        let failed = launch(&plan, &a, &b);
        assert!(
            matches!(&failed, Err(LaunchFailure::Device(DeviceError::Failed { verb: v, .. })) if *v == verb)
        );
        assert_eq!((context.allocations(), context.bytes()), (2, 80), "after a failed {verb}");
        let trace = device.take_trace();
        let position = |line: &str| trace.iter().position(|other| other == line);
        // Memory of the launch is freed, on its stream, after that stream or the host has waited for the branches.
        let freed = position("free_scratch 8 on 0");
        assert!(freed.is_some(), "{verb}: {trace:?}");
        let launched = trace.iter().filter(|line| !line.ends_with('!'));
        let streams = launched.filter_map(|line| line.strip_prefix("launch ")?.split(" on ").nth(1));
        for stream in streams.filter(|stream| *stream != "0") {
            let recorded = trace.iter().rposition(|line| {
                line.starts_with("record_event") && line.ends_with(&format!(" on {stream}"))
            });
            let joined = recorded.and_then(|at| {
                let event = trace[at].split(' ').nth(1)?;
                trace.iter().rposition(|line| *line == format!("wait_event {event} on 0"))
            });
            let waited = joined.or_else(|| position(&format!("synchronise {stream}")));
            assert!(waited < freed && waited.is_some(), "{verb}: {trace:?}");
        }
    }
    launch(&plan, &a, &b).unwrap();
}

#[test]
fn overlapping_arrays_get_their_own_version_which_is_kept() {
    let (device, context, plan) = setup();
    let a = Memory::allocate(&context, 40).unwrap();
    let launches = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| launch(&plan, &a, &a))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(launches, [const { Ok(()) }; 4]);
    let trace = device.take_trace();
    let count = |what: &str| trace.iter().filter(|line| line.starts_with(what)).count();
    // Threads that come at the same time may each make one, of which one is kept.
    let made = count("load_module overlapping");
    assert!((1..=4).contains(&made) && count("unload_module") == made - 1, "{trace:?}");
    assert_eq!(count("launch overlapping_t1"), 4);
    assert_eq!(count("launch apart"), 0);
    launch(&plan, &a, &a).unwrap();
    assert!(device.take_trace().iter().all(|line| !line.starts_with("load_module")));
    assert_eq!(plan.maker().made.load(Ordering::Relaxed), 1 + made);
}

#[test]
fn a_failed_verb_leaves_nothing_behind() {
    let (device, context, plan) = setup();
    let (a, b) = (Memory::allocate(&context, 40).unwrap(), Memory::allocate(&context, 40).unwrap());
    for verb in ["allocate_scratch", "allocate_shared", "launch", "copy_to_host", "synchronise"] {
        device.fail_next(verb);
        let failed = launch(&plan, &a, &b);
        assert!(
            matches!(&failed, Err(LaunchFailure::Device(DeviceError::Failed { verb: v, .. })) if *v == verb),
            "{verb}: {failed:?}"
        );
        assert_eq!((context.allocations(), context.bytes()), (2, 80), "after a failed {verb}");
    }
    launch(&plan, &a, &b).unwrap();
}

#[test]
fn handles_of_an_ended_session_are_refused_and_never_reach_the_device() {
    let (device, context, plan) = setup();
    let (a, b) = (Memory::allocate(&context, 40).unwrap(), Memory::allocate(&context, 40).unwrap());
    let f32s = Scalar::F32.into();
    let early = Invocation::new(&plan).array(&a, f32s, &[10]).unwrap().array(&b, f32s, &[10]).unwrap();
    context.end();
    device.take_trace();
    assert_eq!(
        early.launch(&mut [0; 8], LaunchEnv::plain(Stream(0), &NEVER)).unwrap(),
        Err(LaunchFailure::Stale)
    );
    assert!(Invocation::new(&plan).array(&a, f32s, &[10]).is_err());
    assert!(
        a.fill(HostQueue::default(), &[0; 4]).is_err()
            && a.read(HostQueue::default(), 0, &mut [0; 4]).is_err()
            && a.address().is_err()
    );
    assert!(Memory::allocate(&context, 8).is_err());
    assert_eq!(device.take_trace(), [""; 0]);
    drop((a, b));
    assert_eq!(context.allocations(), 0, "memory is given back all the same");
}

#[test]
fn arguments_are_compared_with_the_parameters() {
    let (_device, context, plan) = setup();
    let a = Memory::allocate(&context, 40).unwrap();
    let (f32s, f64s) = (Scalar::F32.into(), Scalar::F64.into());
    let text =
        |result: Result<Invocation<'_, Maker>, ArgumentError>| result.err().map(|error| error.to_string());
    assert_eq!(
        text(Invocation::new(&plan).array(&a, f64s, &[5])).as_deref(),
        Some("argument 0 is to be an array of rank 1 of Scalar(F32)")
    );
    assert!(text(Invocation::new(&plan).array(&a, f32s, &[2, 5])).is_some());
    assert_eq!(
        text(Invocation::new(&plan).array(&a, f32s, &[11])).as_deref(),
        Some("argument 0 has more elements than memory")
    );
    assert!(text(Invocation::new(&plan).data(&[Const::f32(1.0)])).is_some());
    let one = Invocation::new(&plan).array(&a, f32s, &[10]).unwrap();
    assert_eq!(
        one.launch(&mut [0; 8], LaunchEnv::plain(Stream(0), &NEVER)).unwrap_err().to_string(),
        "2 arguments are expected, not 1"
    );
    let other = Context::new(Arc::new(NullDevice::new()));
    let foreign = Memory::allocate(&other, 40).unwrap();
    assert_eq!(
        text(Invocation::new(&plan).array(&foreign, f32s, &[10])).as_deref(),
        Some("this array belongs to another session")
    );
}

/// A thousand forks, most of which fail somewhere, need no more streams and events than one.
#[test]
fn failed_forks_give_back_what_they_took() {
    let (device, context, plan) = setup_with(NullDevice::new(), forking_plan());
    let (a, b) = (Memory::allocate(&context, 40).unwrap(), Memory::allocate(&context, 40).unwrap());
    let verbs = ["launch", "record_event", "wait_event", "copy_to_host", "allocate_scratch", "fill"];
    launch(&plan, &a, &b).unwrap();
    device.take_trace();
    for verb in verbs.iter().cycle().take(1000) {
        device.fail_next(verb);
        assert!(launch(&plan, &a, &b).is_err());
        launch(&plan, &a, &b).unwrap();
    }
    let trace = device.take_trace();
    let made: Vec<_> = trace.iter().filter(|line| line.starts_with("create")).collect();
    assert!(made.is_empty(), "{made:?}");
    // What comes after a failure is told the right streams.
    let launches = trace.iter().filter(|line| line.starts_with("launch apart_t4"));
    assert!(launches.count() >= 1000);
    assert!(
        trace.iter().filter(|line| line.starts_with("launch apart_t4")).all(|line| line.contains(" on 0"))
    );
}
