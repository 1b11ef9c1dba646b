//! What the runtime tells a device of memory and streams: who comes after whom, and who does not. Seen on the null device.

// Streams of other libraries are named by an unsafe function.
#![allow(unsafe_code)]

mod setup;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use octants_hal::null::NullDevice;
use octants_hal::{Cancel, Capabilities, Stream, StreamPriority};
use octants_ir::Scalar;
use octants_runtime::{
    Context, ExternalStream, HostQueue, Invocation, LaunchEnv, LaunchFailure, LaunchPlan, LiveStream, Memory,
    MemoryError, StreamHandle,
};
use setup::{Maker, NEVER, plan, setup_with};

fn start() -> (Arc<NullDevice>, Arc<Context>, LaunchPlan<Maker>) {
    let capabilities = Capabilities::STREAMS | Capabilities::DEVICE_BOUNDS | Capabilities::EXTERNAL_STREAMS;
    let mut quiet = plan();
    quiet.results = octants_ir::plan::ResultLayout::default();
    setup_with(NullDevice::with_capabilities(capabilities), quiet)
}

fn stream(context: &Arc<Context>) -> StreamHandle {
    StreamHandle::create(context, StreamPriority::Normal).unwrap()
}

fn memory(context: &Arc<Context>) -> Memory {
    Memory::allocate(context, 40).unwrap()
}

/// Launches as the facade does; in the default stream, if none is named.
fn launch(plan: &LaunchPlan<Maker>, on: Option<&LiveStream>, a: &Memory) {
    let f32s = Scalar::F32.into();
    let invocation = Invocation::new(plan).array(a, f32s, &[10]).unwrap().array(a, f32s, &[10]).unwrap();
    if let Some(on) = on {
        a.before_launch(on).unwrap();
    }
    let stream = on.map_or(Stream(0), LiveStream::stream);
    invocation.launch(&mut [], LaunchEnv::plain(stream, &NEVER)).unwrap().unwrap();
    if let Some(on) = on {
        on.after_work().unwrap();
        a.after_launch(on);
    }
}

/// The streams that were told to wait, and where the events that they wait for stand: `(behind, waits)`.
fn orders(trace: &[String]) -> Vec<(u64, u64)> {
    let on = |line: &str| line.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap();
    let event = |line: &str| line.split(' ').nth(1).map(str::to_owned);
    let mut recorded = std::collections::BTreeMap::new();
    let mut orders = Vec::new();
    for line in trace {
        if line.starts_with("record_event") {
            recorded.insert(event(line), on(line));
        } else if line.starts_with("wait_event") {
            // Those that were recorded before the trace begins are the host's writes.
            orders.push((recorded.get(&event(line)).copied().unwrap_or(0), on(line)));
        }
    }
    orders
}

fn raised() -> Cancel {
    let cancel = Cancel::new();
    cancel.raise();
    cancel
}

#[test]
fn an_interrupted_access_leaves_its_stream_in_the_record() {
    let (device, context, plan) = start();
    let (a, one, two) = (memory(&context), stream(&context), stream(&context));
    launch(&plan, Some(&one.live().unwrap()), &a);
    device.set_busy(Stream(one.handle()), true);
    device.set_busy(Stream(two.handle()), true);
    let (live, cancel) = (two.live().unwrap(), raised());
    let interrupted = a.wait(HostQueue { stream: Some(&live), cancel: &cancel });
    assert_eq!(interrupted, Err(MemoryError::Cancelled));
    device.take_trace();
    a.read(HostQueue::default(), 0, &mut [0; 40]).unwrap();
    assert_eq!(orders(&device.take_trace()), [(two.handle(), 0)], "the other stream is behind the first");
    a.read(HostQueue::default(), 0, &mut [0; 40]).unwrap();
    assert_eq!(orders(&device.take_trace()), [], "the default stream is behind both");
}

#[test]
fn who_has_waited_in_a_stream_is_the_last_to_wait() {
    let (device, context, plan) = start();
    let (a, one, two) = (memory(&context), stream(&context), stream(&context));
    launch(&plan, Some(&one.live().unwrap()), &a);
    let live = two.live().unwrap();
    a.wait(HostQueue { stream: Some(&live), cancel: &NEVER }).unwrap();
    assert!(!a.is_used_by_streams());
    launch(&plan, Some(&one.live().unwrap()), &a);
    a.read(HostQueue { stream: Some(&live), cancel: &NEVER }, 0, &mut [0; 40]).unwrap();
    assert!(!a.is_used_by_streams());
    drop(device);
}

/// A busy default stream holds nobody up who uses memory that is older than what it is busy with, and neither does a new array or stream.
#[test]
fn new_arrays_and_streams_order_no_others() {
    let (device, context, plan) = start();
    let (old, other) = (memory(&context), memory(&context));
    launch(&plan, None, &other);
    device.set_busy(Stream(0), true);
    launch(&plan, None, &other);
    let (one, two) = (stream(&context), stream(&context));
    device.take_trace();
    launch(&plan, Some(&one.live().unwrap()), &old);
    assert_eq!(orders(&device.take_trace()), [], "its zeros are passed");
    let new = memory(&context);
    let trace = device.take_trace();
    let births = trace.iter().find_map(|line| line.strip_prefix("create_stream high -> ")).unwrap();
    let births: u64 = births.parse().unwrap();
    assert_eq!(orders(&trace), [(births, 0)], "the default stream comes after the zeros: {trace:?}");
    assert!(trace.contains(&format!("allocate 40 on {births}")), "{trace:?}");
    device.set_busy(Stream(births), true);
    for on in [&one, &two] {
        launch(&plan, Some(&on.live().unwrap()), &new);
        let orders_of_first_use = orders(&device.take_trace());
        let waits: Vec<_> = orders_of_first_use.iter().map(|(_, waits)| *waits).collect();
        assert_eq!(waits, [on.handle()], "and so does a stream that uses it");
        launch(&plan, Some(&on.live().unwrap()), &new);
        assert_eq!(orders(&device.take_trace()), [], "once");
    }
}

/// The fill of a new array is in no queue that another library's stream would wait for by itself.
#[test]
fn a_launch_in_an_external_stream_comes_after_the_zeros_of_new_memory() {
    let (device, context, plan) = start();
    // SAFETY: the null device has no streams at all.
    let [first, second] =
        [77, 78].map(|handle| StreamHandle::wrap(&context, unsafe { ExternalStream::new(handle) }).unwrap());
    let born_in_default = memory(&context);
    device.set_busy(Stream(0), true);
    device.take_trace();
    launch(&plan, Some(&first.live().unwrap()), &born_in_default);
    let trace = device.take_trace();
    assert_eq!(orders(&trace)[0], (0, 77), "{trace:?}");
    let born_apart = memory(&context);
    let births = device.take_trace().iter().find_map(|line| {
        line.strip_prefix("create_stream high -> ").and_then(|number| number.parse::<u64>().ok())
    });
    device.set_busy(Stream(births.unwrap()), true);
    for (external, handle) in [(&first, 77), (&second, 78), (&first, 77)] {
        launch(&plan, Some(&external.live().unwrap()), &born_apart);
        let trace = device.take_trace();
        // A handle may be that of another stream by now: each launch is told.
        assert!(
            trace
                .iter()
                .any(|line| line.starts_with("wait_event") && line.ends_with(&format!(" on {handle}"))),
            "{trace:?}"
        );
    }
    device.set_busy(Stream(births.unwrap()), false);
    launch(&plan, Some(&second.live().unwrap()), &born_apart);
    let trace = device.take_trace();
    let waits =
        trace.iter().filter(|line| line.starts_with("wait_event") && line.ends_with(" on 78")).count();
    assert_eq!(waits, 0, "they are known to be over: {trace:?}");
}

/// Each external stream has a follower of its own: who waits for one does not wait for another library's other work.
#[test]
fn external_streams_are_not_ordered_with_each_other() {
    let (device, context, plan) = start();
    let (a, b) = (memory(&context), memory(&context));
    // SAFETY: as above.
    let [first, second] =
        [77, 78].map(|handle| StreamHandle::wrap(&context, unsafe { ExternalStream::new(handle) }).unwrap());
    device.take_trace();
    launch(&plan, Some(&first.live().unwrap()), &a);
    let follower_of_first = orders(&device.take_trace()).last().unwrap().1;
    launch(&plan, Some(&second.live().unwrap()), &b);
    let follower_of_second = orders(&device.take_trace()).last().unwrap().1;
    assert_ne!(follower_of_first, follower_of_second);
    a.read(HostQueue::default(), 0, &mut [0; 40]).unwrap();
    assert_eq!(orders(&device.take_trace()), [(follower_of_first, 0)]);
}

/// Memory that a busy stream never saw goes back at once; what it uses when it has come so far.
#[test]
fn memory_goes_back_when_the_streams_that_used_it_are_past_it() {
    let (device, context, plan) = start();
    let (busy, other) = (stream(&context), stream(&context));
    let (used, unused, third) = (memory(&context), memory(&context), memory(&context));
    device.set_busy(Stream(busy.handle()), true);
    launch(&plan, Some(&busy.live().unwrap()), &used);
    launch(&plan, Some(&other.live().unwrap()), &third);
    device.take_trace();
    let frees = |device: &NullDevice| {
        let trace = device.take_trace();
        assert!(!trace.iter().any(|line| line.starts_with("wait_event")), "nobody waits: {trace:?}");
        trace.iter().filter(|line| line.starts_with("free 40")).count()
    };
    drop(unused);
    assert_eq!(frees(&device), 1);
    drop(used);
    assert_eq!(frees(&device), 0);
    drop(third);
    assert_eq!(frees(&device), 1, "what is behind a busy stream holds up no other");
    drop(memory(&context));
    device.set_busy(Stream(busy.handle()), false);
    device.take_trace();
    drop(memory(&context));
    assert_eq!(device.take_trace().iter().filter(|line| line.starts_with("free 40")).count(), 2);
}

/// The default stream is busy with other memory: what it does not use goes back without it, and the host's copies in streams do not wait for it.
#[test]
fn memory_that_the_default_stream_does_not_use_does_not_wait_for_it() {
    let (device, context, plan) = start();
    let one = stream(&context);
    let live = one.live().unwrap();
    let [busy, used, unused, written, both, joined] = [(); 6].map(|()| memory(&context));
    for a in [&written, &used] {
        a.write(HostQueue::default(), 0, &[1; 40]).unwrap();
    }
    launch(&plan, None, &both);
    launch(&plan, None, &busy);
    device.set_busy(Stream(0), true);
    for a in [&written, &both, &joined] {
        launch(&plan, Some(&live), a);
    }
    // The default stream stands for the other one.
    joined.fill(HostQueue::default(), &[1]).unwrap();
    device.take_trace();
    let queue = HostQueue { stream: Some(&live), cancel: &NEVER };
    written.fill(queue, &[1]).unwrap();
    assert_eq!(orders(&device.take_trace()), [], "not behind what the default stream does with other memory");
    both.fill(queue, &[1]).unwrap();
    assert_eq!(orders(&device.take_trace()), [(0, one.handle())]);
    let freed = |device: &NullDevice| {
        let trace = device.take_trace();
        let on = trace.iter().find_map(|line| line.strip_prefix("free 40 on ").map(str::to_owned));
        on.map(|on| on.parse::<u64>().unwrap())
    };
    drop(unused);
    assert!(freed(&device).is_some_and(|on| on != 0 && on != one.handle()), "in the order of its zeros");
    drop(written);
    assert!(freed(&device).is_some(), "the other stream is behind the host's write, and past its launch");
    drop(used);
    assert_eq!(freed(&device), Some(0), "in which the host wrote");
    drop(joined);
    assert_eq!(freed(&device), Some(0), "which stands for the other stream");
    drop(both);
    assert_eq!(freed(&device), None);
    device.set_busy(Stream(0), false);
    drop(memory(&context));
    assert_eq!(device.take_trace().iter().filter(|line| line.starts_with("free 40")).count(), 2);
    drop(busy);
}

#[test]
fn memory_that_is_in_use_when_the_session_ends_goes_back_after_that() {
    let (device, context, plan) = start();
    let (one, a) = (stream(&context), memory(&context));
    device.set_busy(Stream(one.handle()), true);
    launch(&plan, Some(&one.live().unwrap()), &a);
    drop(a);
    device.take_trace();
    drop((plan, one, context));
    let trace = device.take_trace();
    assert_eq!(trace.iter().filter(|line| line.starts_with("free 40")).count(), 1, "{trace:?}");
}

/// A stream that a thread still has is told more after the end, and then has uses of its own.
#[test]
fn a_stream_is_not_past_its_work_because_the_session_ends() {
    let (device, context, plan) = start();
    let (one, a) = (stream(&context), memory(&context));
    let live = one.live().unwrap();
    context.end();
    device.set_busy(live.stream(), true);
    a.after_launch(&live);
    device.take_trace();
    drop(live);
    assert!(a.is_in_use(), "the thread has let it go, and it is at work");
    drop(a);
    let trace = device.take_trace();
    assert!(!trace.iter().any(|line| line.starts_with("free 40 ")), "{trace:?}");
    device.set_busy(Stream(one.handle()), false);
    drop((plan, one, context));
    let trace = device.take_trace();
    assert_eq!(trace.iter().filter(|line| line.starts_with("free 40 ")).count(), 1, "{trace:?}");
    assert!(trace.iter().any(|line| line.starts_with("destroy_stream")), "{trace:?}");
}

/// A handle may be that of another stream by now, or of another thread's.
#[test]
fn an_access_in_an_external_stream_comes_after_what_its_handle_was_told_before() {
    let (device, context, plan) = start();
    let a = memory(&context);
    // SAFETY: the null device has no streams at all.
    let wrap = |handle| StreamHandle::wrap(&context, unsafe { ExternalStream::new(handle) }).unwrap();
    let live = wrap(77).live().unwrap();
    device.take_trace();
    launch(&plan, Some(&live), &a);
    let follower = orders(&device.take_trace()).last().unwrap().1;
    a.write(HostQueue { stream: Some(&live), cancel: &NEVER }, 0, &[0; 40]).unwrap();
    let trace = device.take_trace();
    assert!(orders(&trace).contains(&(follower, 77)), "{trace:?}");
    assert!(wrap(1).live().unwrap().is_default(), "CUDA's other name of it");
}

/// A stream that was told a part of a copy uses the memory.
#[test]
fn a_copy_that_fails_leaves_its_stream_in_the_record() {
    for verb in ["fill", "copy_to_device", "copy", "copy_to_host"] {
        let (device, context, _plan) = start();
        let (a, b, one) = (memory(&context), memory(&context), stream(&context));
        let live = one.live().unwrap();
        let queue = HostQueue { stream: Some(&live), cancel: &NEVER };
        device.fail_next(verb);
        let told = match verb {
            "fill" => a.fill(queue, &[1]),
            "copy_to_device" => a.write(queue, 0, &[0; 40]),
            "copy" => b.copy_from(queue, &a),
            _ => a.read(queue, 0, &mut [0; 40]),
        };
        assert!(told.is_err() && a.is_used_by_streams(), "{verb}");
        assert_eq!(b.is_used_by_streams(), verb == "copy");
    }
}

#[test]
fn memory_whose_zeros_nobody_comes_after_goes_back_in_their_order() {
    let (device, context, _plan) = start();
    let _one = stream(&context);
    drop(memory(&context));
    device.take_trace();
    device.fail_next("wait_event");
    Memory::allocate(&context, 40).unwrap_err();
    let trace = device.take_trace();
    let births = trace.iter().find_map(|line| line.strip_prefix("allocate 40 on ")).unwrap();
    assert!(trace.contains(&format!("free 40 on {births}")), "{trace:?}");
}

#[test]
fn who_finds_no_memory_waits_for_what_is_on_its_way_back() {
    let (device, context, plan) = start();
    let one = stream(&context);
    for (verb, on_its_way) in [("allocate", 24), ("allocate_scratch", 48)] {
        let used = Memory::allocate(&context, on_its_way).unwrap();
        let live = one.live().unwrap();
        device.set_busy(live.stream(), true);
        used.after_launch(&live);
        drop(used);
        let free = format!("free {on_its_way} ");
        let freed = |device: &NullDevice| device.take_trace().iter().any(|line| line.starts_with(&free));
        assert!(!freed(&device));
        device.run_out_next(verb);
        let (device, busy) = (&device, live.stream());
        thread::scope(|scope| {
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(20));
                device.set_busy(busy, false);
            });
            let a = memory(&context);
            if verb == "allocate_scratch" {
                launch(&plan, None, &a);
            }
        });
        assert!(freed(device), "{verb}");
    }
}

#[test]
fn a_wait_for_memory_that_is_on_its_way_back_can_be_ended() {
    let (device, context, plan) = start();
    let (one, a) = (stream(&context), memory(&context));
    let live = one.live().unwrap();
    let stop = Cancel::new();
    stop.raise();
    let used = Memory::allocate(&context, 24).unwrap();
    device.set_busy(live.stream(), true);
    used.after_launch(&live);
    drop(used);
    device.run_out_next("allocate");
    let allocated = Memory::allocate_or_cancel(&context, 40, &stop).err();
    assert!(matches!(allocated, Some(MemoryError::Cancelled)), "{allocated:?}");
    // A launch waits for room for its temporaries, and for nothing else.
    device.run_out_next("allocate_scratch");
    let f32s = Scalar::F32.into();
    let invocation = Invocation::new(&plan).array(&a, f32s, &[10]).unwrap().array(&a, f32s, &[10]).unwrap();
    let launched = invocation.launch(&mut [], LaunchEnv::plain(Stream(0), &stop)).unwrap();
    assert!(matches!(launched, Err(LaunchFailure::Cancelled)), "{launched:?}");
    // What was waited for stays on its way, and goes back when its stream is past it.
    assert!(!device.take_trace().iter().any(|line| line.starts_with("free 24 ")));
    device.set_busy(live.stream(), false);
    memory(&context);
    assert!(device.take_trace().iter().any(|line| line.starts_with("free 24 ")));
}

/// A host write that a busy default stream was told before its launches is waited for by a mark, not by the stream's end.
#[test]
fn a_launch_comes_after_a_write_of_the_host_and_not_after_later_launches() {
    let (device, context, plan) = start();
    let (a, b, one) = (memory(&context), memory(&context), stream(&context));
    a.write(HostQueue::default(), 0, &[1; 40]).unwrap();
    launch(&plan, None, &b);
    device.set_busy(Stream(0), true);
    device.take_trace();
    launch(&plan, Some(&one.live().unwrap()), &a);
    let trace = device.take_trace();
    assert_eq!(orders(&trace), [], "the mark is passed: {trace:?}");
    assert!(
        !trace.iter().any(|line| line.starts_with("record_event") && line.ends_with("on 0")),
        "{trace:?}"
    );
}
