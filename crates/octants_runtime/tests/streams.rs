//! What the runtime tells a device of streams and events that programs make, in which order: seen on the null device.

// Handles and ranges of the host are made by unsafe functions.
#![allow(unsafe_code)]

mod setup;

use std::collections::BTreeSet;
use std::sync::Arc;

use octants_hal::null::NullDevice;
use octants_hal::{Cancel, Capabilities, StreamPriority};
use octants_ir::Scalar;
use octants_ir::plan::Plan;
use octants_runtime::{
    Context, EventHandle, ExternalStream, HostQueue, Invocation, LaunchEnv, LaunchPlan, LiveStream, Memory,
    Mirror, StreamError, StreamHandle,
};
use setup::{Maker, NEVER, forking_plan, plan, setup_with};

/// A plan without results: the host waits for nothing.
fn quiet(plan: Plan) -> Plan {
    Plan { results: octants_ir::plan::ResultLayout::default(), ..plan }
}

fn quiet_setup() -> (Arc<NullDevice>, Arc<Context>, LaunchPlan<Maker>) {
    let capabilities = Capabilities::STREAMS | Capabilities::DEVICE_BOUNDS | Capabilities::EXTERNAL_STREAMS;
    setup_with(NullDevice::with_capabilities(capabilities), quiet(plan()))
}

fn stream(context: &Arc<Context>) -> StreamHandle {
    StreamHandle::create(context, StreamPriority::Normal).unwrap()
}

/// Launches as the facade does.
fn launch_in(plan: &LaunchPlan<Maker>, live: &LiveStream, a: &Memory, b: &Memory) {
    let f32s = Scalar::F32.into();
    let invocation = Invocation::new(plan).array(a, f32s, &[10]).unwrap().array(b, f32s, &[10]).unwrap();
    for memory in [a, b] {
        memory.before_launch(live).unwrap();
    }
    let mut results = vec![0; plan.results().bytes as usize];
    invocation.launch(&mut results, LaunchEnv::plain(live.stream(), &NEVER)).unwrap().unwrap();
    live.after_work().unwrap();
    for memory in [a, b] {
        memory.after_launch(live);
    }
}

fn two_arrays(context: &Arc<Context>) -> (Memory, Memory) {
    (Memory::allocate(context, 40).unwrap(), Memory::allocate(context, 40).unwrap())
}

#[test]
fn every_verb_of_a_launch_is_on_its_stream() {
    let (device, context, plan) = quiet_setup();
    let (a, b) = two_arrays(&context);
    let one = stream(&context);
    // The arrays' zeros are seen once.
    launch_in(&plan, &one.live().unwrap(), &a, &b);
    device.take_trace();
    launch_in(&plan, &one.live().unwrap(), &a, &b);
    let at = one.handle();
    assert_eq!(
        device.take_trace(),
        [
            format!("allocate_scratch 8 on {at}"),
            format!("fill 8 with [00] on {at}"),
            format!("launch apart_t0 once on {at}"),
            format!("launch apart_t1 2..10 x i32 at temps + 0..7 on {at}"),
            format!("free_scratch 8 on {at}"),
        ]
    );
}

/// Frees are queued before the wait, and only the launch's own stream is waited for.
#[test]
fn a_launch_with_results_waits_for_its_stream_alone() {
    let capabilities = Capabilities::STREAMS | Capabilities::DEVICE_BOUNDS;
    let (device, context, plan) = setup_with(NullDevice::with_capabilities(capabilities), plan());
    let (a, b) = two_arrays(&context);
    let (one, _two) = (stream(&context), stream(&context));
    launch_in(&plan, &one.live().unwrap(), &a, &b);
    let trace = device.take_trace();
    let at = one.handle();
    let end = [format!("free_scratch 8 on {at}"), format!("is_idle {at}"), format!("synchronise {at}")];
    assert_eq!(trace[trace.len() - 3..], end);
}

#[test]
fn branches_of_a_launch_in_a_stream_wait_for_that_stream_which_waits_for_them() {
    let capabilities = Capabilities::STREAMS | Capabilities::DEVICE_BOUNDS;
    let device = NullDevice::with_capabilities(capabilities);
    let (device, context, plan) = setup_with(device, quiet(forking_plan()));
    let (a, b) = two_arrays(&context);
    let one = stream(&context);
    launch_in(&plan, &one.live().unwrap(), &a, &b);
    device.take_trace();
    launch_in(&plan, &one.live().unwrap(), &a, &b);
    let trace = device.take_trace();
    let at = one.handle();
    assert!(
        trace.iter().all(|line| !line.ends_with(" on 0") && !line.starts_with("synchronise")),
        "{trace:?}"
    );
    let joined =
        trace.iter().filter(|line| line.starts_with("wait_event") && line.ends_with(&format!(" on {at}")));
    assert_eq!(joined.count(), 1, "{trace:?}");
    let begun =
        trace.iter().filter(|line| line.starts_with("record_event") && line.ends_with(&format!(" on {at}")));
    assert_eq!(begun.count(), 1, "{trace:?}");
}

/// What a fork left in its streams' queues is in nobody else's way: an unrelated fork gets streams that are idle.
#[test]
fn forks_of_one_stream_use_the_same_branches_again() {
    let capabilities = Capabilities::STREAMS | Capabilities::DEVICE_BOUNDS;
    let device = NullDevice::with_capabilities(capabilities);
    let (device, context, plan) = setup_with(device, quiet(forking_plan()));
    let (a, b) = two_arrays(&context);
    let (one, two) = (stream(&context), stream(&context));
    let branches = |device: &NullDevice| -> BTreeSet<String> {
        let trace = device.take_trace();
        let launches = trace.iter().filter_map(|line| line.strip_prefix("launch "));
        launches.filter_map(|line| Some(line.split(" on ").nth(1)?.to_owned())).collect()
    };
    launch_in(&plan, &one.live().unwrap(), &a, &b);
    let first = branches(&device);
    for _ in 0..5 {
        launch_in(&plan, &one.live().unwrap(), &a, &b);
        assert_eq!(branches(&device), first);
    }
    launch_in(&plan, &two.live().unwrap(), &a, &b);
    let trace = device.take_trace();
    let asked = trace.iter().filter(|line| line.starts_with("is_idle")).count();
    assert_eq!(asked, 1, "it is asked whether it is idle: {trace:?}");
}

/// Not for a stream that uses other memory, and not for work that was waited for before.
#[test]
fn a_copy_of_the_host_waits_for_the_streams_that_use_its_memory() {
    let (device, context, plan) = quiet_setup();
    let ((a, b), (c, d)) = (two_arrays(&context), two_arrays(&context));
    let (one, two) = (stream(&context), stream(&context));
    launch_in(&plan, &one.live().unwrap(), &a, &b);
    launch_in(&plan, &two.live().unwrap(), &c, &d);
    device.take_trace();
    a.read(HostQueue::default(), 0, &mut [0; 40]).unwrap();
    let trace = device.take_trace();
    let event = trace[0].split(' ').nth(1).unwrap();
    assert_eq!(
        trace,
        [
            format!("record_event {event} on {}", one.handle()),
            format!("wait_event {event} on 0"),
            "copy_to_host 40 on 0".to_owned(),
        ]
    );
    a.read(HostQueue::default(), 0, &mut [0; 40]).unwrap();
    assert_eq!(device.take_trace(), ["copy_to_host 40 on 0"], "it was joined");
    b.fill(HostQueue::default(), &[0]).unwrap();
    assert_eq!(
        device.take_trace(),
        [
            format!("record_event {event} on {}", one.handle()),
            format!("wait_event {event} on 0"),
            "fill 40 with [00] on 0".to_owned(),
        ]
    );
    launch_in(&plan, &one.live().unwrap(), &c, &d);
    device.take_trace();
    c.copy_from(HostQueue::default(), &d).unwrap();
    let trace = device.take_trace();
    let waits = trace.iter().filter(|line| line.starts_with("wait_event")).count();
    assert_eq!(waits, 4, "both memories, both streams: {trace:?}");
}

#[test]
fn a_copy_in_a_stream_comes_after_all_others_and_before_what_waits_for_it() {
    let (device, context, plan) = quiet_setup();
    let (a, b) = two_arrays(&context);
    let (one, two) = (stream(&context), stream(&context));
    launch_in(&plan, &one.live().unwrap(), &a, &b);
    a.note_default_use();
    device.take_trace();
    let live = two.live().unwrap();
    a.fill(HostQueue { stream: Some(&live), cancel: &NEVER }, &[1]).unwrap();
    let lines: Vec<_> = device.take_trace().into_iter().filter(|line| !line.starts_with("create")).collect();
    let [recorded, waited, default, waited_for_default, filled] = &lines[..] else { panic!("{lines:?}") };
    assert!(recorded.ends_with(&format!("on {}", one.handle())), "{lines:?}");
    assert!(waited.ends_with(&format!("on {}", two.handle())), "{lines:?}");
    assert!(default.starts_with("record_event") && default.ends_with("on 0"), "{lines:?}");
    assert!(waited_for_default.ends_with(&format!("on {}", two.handle())), "{lines:?}");
    assert_eq!(*filled, format!("fill 40 with [01] on {}", two.handle()));
    a.read(HostQueue::default(), 0, &mut [0; 40]).unwrap();
    let trace = device.take_trace();
    assert!(trace[0].ends_with(&format!(" on {}", two.handle())), "{trace:?}");
    assert_eq!(trace.len(), 3, "{trace:?}");
}

#[test]
fn a_launch_in_a_stream_comes_after_what_the_host_wrote() {
    let (device, context, plan) = quiet_setup();
    let (a, b) = two_arrays(&context);
    let one = stream(&context);
    a.write(HostQueue::default(), 0, &[1; 40]).unwrap();
    device.take_trace();
    let ordered = |device: &NullDevice| {
        let trace = device.take_trace();
        let waits: Vec<_> = trace.iter().filter(|line| line.starts_with("record_event")).collect();
        waits.iter().all(|line| line.ends_with("on 0")).then_some(waits.len())
    };
    launch_in(&plan, &one.live().unwrap(), &a, &b);
    assert_eq!(ordered(&device), Some(1));
    launch_in(&plan, &one.live().unwrap(), &a, &b);
    assert_eq!(ordered(&device), Some(0), "it is known to come after");
    b.write(HostQueue::default(), 0, &[1; 40]).unwrap();
    device.take_trace();
    launch_in(&plan, &one.live().unwrap(), &a, &b);
    assert_eq!(ordered(&device), Some(1));
}

/// What waits for the context's streams also waits for a stream that the context does not have.
#[test]
fn work_in_an_external_stream_is_followed_by_one_of_the_contexts() {
    let (device, context, plan) = quiet_setup();
    let (a, b) = two_arrays(&context);
    // SAFETY: the null device has no streams at all.
    let external = StreamHandle::wrap(&context, unsafe { ExternalStream::new(77) }).unwrap();
    assert_eq!(external.handle(), 77);
    device.take_trace();
    launch_in(&plan, &external.live().unwrap(), &a, &b);
    let trace = device.take_trace();
    let own = trace.iter().find_map(|line| line.strip_prefix("create_stream -> ")).unwrap().to_owned();
    let [.., recorded, waited] = &trace[..] else { panic!("{trace:?}") };
    assert!(recorded.ends_with(" on 77") && waited.ends_with(&format!(" on {own}")), "{trace:?}");
    a.read(HostQueue::default(), 0, &mut [0; 40]).unwrap();
    let trace = device.take_trace();
    assert!(trace[0].ends_with(&format!(" on {own}")), "{trace:?}");
    external.destroy(&NEVER).unwrap();
    drop(external);
    assert_eq!(device.take_trace(), ["is_idle 77", "synchronise 77"], "it is not ours to destroy");
}

#[test]
fn a_mirror_is_in_the_order_of_its_stream() {
    let (device, context, _plan) = quiet_setup();
    let one = stream(&context);
    let at = one.handle();
    device.take_trace();
    let mut host = [0_u8; 16];
    // SAFETY: the array outlives the mirror.
    let range = unsafe { octants_runtime::HostRange::new(host.as_mut_ptr() as u64, 16, true) };
    let mirror = Mirror::new(&context, one.live().unwrap().stream(), &[range], &Cancel::new()).unwrap();
    mirror.copy_back().unwrap();
    drop(mirror);
    assert_eq!(
        device.take_trace(),
        [
            format!("allocate_scratch 16 on {at}"),
            format!("copy_to_device 16 on {at}"),
            format!("copy_to_host 16 on {at}"),
            format!("free_scratch 16 on {at}"),
        ]
    );
}

#[test]
fn destroying_a_stream_waits_for_its_queue_and_happens_once() {
    let (device, context, _plan) = quiet_setup();
    let one = StreamHandle::create(&context, StreamPriority::High).unwrap();
    let at = one.handle();
    assert_eq!(device.take_trace(), [format!("create_stream high -> {at}")]);
    one.destroy(&NEVER).unwrap();
    let trace = device.take_trace();
    assert_eq!(trace[..2], [format!("is_idle {at}"), format!("synchronise {at}")]);
    assert_eq!(trace.last(), Some(&format!("destroy_stream {at}")));
    one.destroy(&NEVER).unwrap();
    assert_eq!(one.live().err(), Some(StreamError::Destroyed));
    assert_eq!(one.synchronise(&NEVER).err(), Some(StreamError::Destroyed));
    drop(one);
    assert_eq!(device.take_trace(), [""; 0]);
}

#[test]
fn a_stream_is_not_destroyed_while_it_is_used() {
    let (device, context, _plan) = quiet_setup();
    let one = stream(&context);
    let used = one.live().unwrap();
    one.destroy(&NEVER).unwrap();
    let destroyed =
        |device: &NullDevice| device.take_trace().iter().any(|line| line.starts_with("destroy_stream"));
    assert!(!destroyed(&device));
    drop(used);
    assert!(destroyed(&device));
}

#[test]
fn handles_of_an_ended_context_do_nothing() {
    let (device, context, plan) = quiet_setup();
    let (one, event) = (stream(&context), EventHandle::create(&context).unwrap());
    event.record(Some(&one.live().unwrap())).unwrap();
    device.take_trace();
    context.end();
    let trace = device.take_trace();
    assert!(trace.contains(&format!("destroy_stream {}", one.handle())), "{trace:?}");
    assert!(trace.iter().any(|line| line.starts_with("destroy_event")), "{trace:?}");
    assert_eq!(one.live().err(), Some(StreamError::Stale));
    assert_eq!(event.record(None), Err(StreamError::Stale));
    assert_eq!(event.wait(None, &NEVER), Err(StreamError::Stale));
    assert_eq!(event.synchronise(&NEVER), Err(StreamError::Stale));
    assert_eq!(event.is_passed(), Err(StreamError::Stale));
    assert_eq!(event.elapsed(&event, &NEVER), Err(StreamError::Stale));
    assert_eq!(StreamHandle::create(&context, StreamPriority::Low).err(), Some(StreamError::Stale));
    assert_eq!(one.destroy(&NEVER), Ok(()));
    event.destroy();
    drop((one, event));
    assert_eq!(device.take_trace(), [""; 0]);
    drop((plan, context));
}

#[test]
fn an_event_orders_two_streams_and_tells_the_time() {
    let (device, context, _plan) = quiet_setup();
    let (one, two) = (stream(&context), stream(&context));
    let (begin, end) = (EventHandle::create(&context).unwrap(), EventHandle::create(&context).unwrap());
    device.take_trace();
    begin.wait(Some(&two.live().unwrap()), &NEVER).unwrap();
    assert_eq!(begin.is_passed(), Ok(true));
    begin.synchronise(&NEVER).unwrap();
    assert_eq!(device.take_trace(), [""; 0], "there is nothing to wait for before it is recorded");
    assert_eq!(begin.elapsed(&end, &NEVER), Err(StreamError::NeverRecorded));
    begin.record(Some(&one.live().unwrap())).unwrap();
    begin.wait(Some(&two.live().unwrap()), &NEVER).unwrap();
    end.record(None).unwrap();
    let (b, e) = (begin.handle(), end.handle());
    assert_eq!(
        device.take_trace(),
        [
            format!("record_event {b} on {}", one.handle()),
            format!("wait_event {b} on {}", two.handle()),
            format!("record_event {e} on 0"),
        ]
    );
    assert_eq!(begin.elapsed(&end, &NEVER), Ok(0.001));
    begin.destroy();
    begin.destroy();
    assert_eq!(begin.record(None), Err(StreamError::Destroyed));
    drop(begin);
    let trace = device.take_trace();
    assert_eq!(trace.iter().filter(|line| line.starts_with("destroy_event")).count(), 1, "{trace:?}");
}

#[test]
fn another_contexts_streams_are_refused_before_anything_is_told() {
    let (device, context, _plan) = quiet_setup();
    let (_other_device, other, _) = quiet_setup();
    let foreign = stream(&other).live().unwrap();
    let event = EventHandle::create(&context).unwrap();
    let memory = Memory::allocate(&context, 8).unwrap();
    device.take_trace();
    assert_eq!(event.record(Some(&foreign)), Err(StreamError::OtherSession));
    assert_eq!(event.wait(Some(&foreign), &NEVER), Err(StreamError::OtherSession));
    assert!(memory.fill(HostQueue { stream: Some(&foreign), cancel: &NEVER }, &[0]).is_err());
    assert_eq!(device.take_trace(), [""; 0]);
}

#[test]
fn without_streams_the_api_is_the_same_and_all_is_the_default_stream() {
    let (device, context, plan) =
        setup_with(NullDevice::with_capabilities(Capabilities::DEVICE_BOUNDS), quiet(plan()));
    let (a, b) = two_arrays(&context);
    let (one, event) = (stream(&context), EventHandle::create(&context).unwrap());
    assert_eq!((one.handle(), event.handle()), (0, 0));
    assert!(one.live().unwrap().is_default());
    launch_in(&plan, &one.live().unwrap(), &a, &b);
    assert!(device.take_trace().iter().all(|line| !line.contains(" on ") || line.ends_with(" on 0")));
    assert_eq!(event.elapsed(&event, &NEVER), Err(StreamError::NeverRecorded));
    event.record(Some(&one.live().unwrap())).unwrap();
    event.wait(None, &NEVER).unwrap();
    assert_eq!(event.elapsed(&event, &NEVER), Ok(0.0));
    one.destroy(&NEVER).unwrap();
    event.destroy();
    assert_eq!(one.live().err(), Some(StreamError::Destroyed));
    assert_eq!(event.record(None), Err(StreamError::Destroyed));
    // SAFETY: the null device has no streams at all.
    let refused = StreamHandle::wrap(&context, unsafe { ExternalStream::new(5) });
    assert_eq!(refused.err(), Some(StreamError::NoExternalStreams));
    // SAFETY: as above.
    let default = StreamHandle::wrap(&context, unsafe { ExternalStream::new(0) }).unwrap();
    assert!(default.live().unwrap().is_default());
}

/// Every stream and event is destroyed again, however a context was left.
#[test]
fn contexts_leave_no_streams_and_events_behind() {
    let device = Arc::new(NullDevice::new());
    for round in 0..4 {
        let context = Context::new(device.clone());
        let kept: Vec<_> =
            (0..3).map(|_| (stream(&context), EventHandle::create(&context).unwrap())).collect();
        if round % 2 == 0 {
            context.end();
        }
        drop(context);
        drop(kept);
    }
    let trace = device.take_trace();
    let count = |what: &str| trace.iter().filter(|line| line.starts_with(what)).count();
    assert_eq!(count("create_stream"), count("destroy_stream"));
    assert_eq!(count("create_event"), count("destroy_event"));
}

/// Others may tell the stream more while somebody waits: it is idle for no moment in which the wait looks.
#[test]
fn a_wait_is_for_what_the_stream_was_told_before_it() {
    let (device, context, plan) = quiet_setup();
    let (a, b) = two_arrays(&context);
    let one = stream(&context);
    let live = one.live().unwrap();
    launch_in(&plan, &live, &a, &b);
    for on in [context.default_stream(), live.stream()] {
        device.set_busy(on, true);
        let (gives_up, mut looks) = (Cancel::new(), 0);
        let waited = context.wait(on, &gives_up, &mut || {
            looks += 1;
            // What was in the queue is done, and there is more already.
            device.set_busy(on, false);
            device.set_busy(on, true);
            if looks == 10 {
                gives_up.raise();
            }
        });
        assert_eq!((waited, looks), (Ok(true), 1));
        device.set_busy(on, false);
    }
}

/// What the waiting thread has told the stream is done; what became of it is told by a look at the stream or at an event, and not by the first question.
#[test]
fn a_wait_sees_to_a_stream_that_is_told_more_between_two_looks() {
    let (device, context, plan) = quiet_setup();
    let (a, b) = two_arrays(&context);
    let one = stream(&context);
    let live = one.live().unwrap();
    launch_in(&plan, &live, &a, &b);
    let on = live.stream();
    device.set_busy_after_look(on);
    device.take_trace();
    assert_eq!(context.wait(on, &NEVER, &mut || device.set_busy(on, false)), Ok(true));
    let trace = device.take_trace();
    assert!(trace.last().is_some_and(|line| line.starts_with("poll_event")), "{trace:?}");
    device.set_busy_after_look(on);
    device.fail_next("poll_event");
    assert!(context.wait(on, &NEVER, &mut || device.set_busy(on, false)).is_err(), "what failed is told");
}

#[test]
fn a_stream_that_is_idle_is_not_recorded_to_wait_for() {
    let (device, context, _) = quiet_setup();
    let one = stream(&context);
    device.take_trace();
    context.wait(one.live().unwrap().stream(), &NEVER, &mut || {}).unwrap();
    let trace = device.take_trace();
    assert!(!trace.iter().any(|line| line.starts_with("record_event")), "{trace:?}");
}

/// Who keeps something for a stream until then does not let go of it while a session ends: its streams may still be at work.
#[test]
fn an_event_of_a_session_that_ends_is_over_when_its_streams_are_gone() {
    let (device, context, plan) = quiet_setup();
    let (_, other, other_plan) = quiet_setup();
    let (one, event) = (stream(&context), EventHandle::create(&context).unwrap());
    assert!(event.is_of(&context) && !event.is_of(&other));
    device.set_busy(octants_hal::Stream(one.handle()), true);
    event.record(Some(&one.live().unwrap())).unwrap();
    assert!(!event.is_over());
    device.set_busy(octants_hal::Stream(one.handle()), false);
    assert!(event.is_over());
    context.end();
    assert_eq!(event.is_passed(), Err(StreamError::Stale));
    assert!(!event.is_over(), "nobody can say while the context is there");
    drop((plan, context));
    assert!(event.is_over());
    drop((other, other_plan));
}
