//! What streams promise, through the device's verbs. Tasks are functions of the tests.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use octants_abi::cpu::{Frame, Worker};
use octants_hal::{
    Address, Cancel, Capabilities, Device, DeviceBound, DeviceError, DeviceRangeDomain, Domain, Event,
    FaultRecord, Function, Launch, LaunchContext, LaunchMemory, RangeDomain, Stream, StreamPriority,
};

use crate::CpuDevice;
use crate::core::{Task, TaskFunction};
use crate::work::MeasuredWork;

static NEVER: Cancel = Cancel::new();

/// A task's code; it lives as long as the tests.
fn function(code: Task) -> Function {
    Function(Address::of(Box::leak(Box::new(TaskFunction { code, work: MeasuredWork::default() }))).0)
}

fn words(args: &[u64]) -> &[u8] {
    // SAFETY: words are bytes.
    unsafe { std::slice::from_raw_parts(args.as_ptr().cast(), size_of_val(args)) }
}

fn launch_over(device: &CpuDevice, stream: Stream, function: Function, args: &[u64], domain: Domain<'_>) {
    let memory = LaunchMemory::NONE;
    let context = LaunchContext {
        stream,
        args: words(args),
        memory,
        cancel: &NEVER,
        caller: None,
        key: 0,
        launch: 0,
        prints: None,
    };
    // SAFETY: the tests' tasks take these arguments, and wait before what these point to is gone.
    unsafe { device.launch(&Launch { function, domain, context }).unwrap() };
}

fn launch(device: &CpuDevice, stream: Stream, function: Function, args: &[u64]) {
    launch_over(device, stream, function, args, Domain::Once);
}

fn new_stream(device: &CpuDevice) -> Stream {
    device.create_stream(StreamPriority::Normal).unwrap()
}

fn synchronise(device: &CpuDevice, streams: &[Stream]) {
    for &stream in streams {
        // SAFETY: the tests' streams are live.
        unsafe { device.synchronise(stream).unwrap() };
    }
}

fn destroy(device: &CpuDevice, streams: impl IntoIterator<Item = Stream>) {
    for stream in streams {
        // SAFETY: live, and not used again.
        unsafe { device.destroy_stream(stream) };
    }
}

fn events<const N: usize>(device: &CpuDevice) -> [Event; N] {
    [(); N].map(|()| device.create_event(true).unwrap())
}

fn order(device: &CpuDevice, first: Stream, then: Stream) {
    let event = device.create_event(false).unwrap();
    // SAFETY: all are live; who waits needs the event no more.
    unsafe {
        device.record_event(first, event).unwrap();
        device.wait_event(then, event).unwrap();
        device.destroy_event(event);
    }
}

/// # Safety
/// The n-th argument is the address of such a value.
unsafe fn argument<'a, T>(args: *const u8, n: usize) -> &'a T {
    // SAFETY: the caller says so.
    unsafe { &*(number(args, n) as *const T) }
}

/// # Safety
/// There are so many arguments.
unsafe fn number(args: *const u8, n: usize) -> u64 {
    // SAFETY: the caller says so.
    u64::from_ne_bytes(unsafe { args.add(8 * n).cast::<[u8; 8]>().read() })
}

fn address<T>(value: &T) -> u64 {
    Address::of(value).0
}

/// Waits until the flag, its argument, is set; not for ever.
unsafe extern "C" fn wait_for_flag(args: *const u8, _: *const Frame, _: *const Worker, _: i64, _: i64) {
    // SAFETY: so it is launched.
    let flag = unsafe { argument::<AtomicBool>(args, 0) };
    let begin = Instant::now();
    while !flag.load(Ordering::Acquire) {
        assert!(begin.elapsed().as_secs() < 20, "nobody sets the flag");
        std::thread::yield_now();
    }
}

unsafe extern "C" fn set_flag(args: *const u8, _: *const Frame, _: *const Worker, _: i64, _: i64) {
    // SAFETY: so it is launched.
    unsafe { argument::<AtomicBool>(args, 0) }.store(true, Ordering::Release);
}

/// Sets the first flag, then waits for the second.
unsafe extern "C" fn meet(args: *const u8, frame: *const Frame, worker: *const Worker, lo: i64, hi: i64) {
    // SAFETY: so it is launched.
    unsafe {
        set_flag(args, frame, worker, lo, hi);
        wait_for_flag(args.add(8), frame, worker, lo, hi);
    }
}

/// `*a0 = *a0 * 31 + a1`, not atomically.
unsafe extern "C" fn append(args: *const u8, _: *const Frame, _: *const Worker, _: i64, _: i64) {
    // SAFETY: so it is launched.
    unsafe {
        let cell = argument::<AtomicU64>(args, 0);
        let old = cell.load(Ordering::Relaxed);
        cell.store(old.wrapping_mul(31).wrapping_add(number(args, 1)), Ordering::Relaxed);
    }
}

/// Adds the number of its iterations.
unsafe extern "C" fn count(args: *const u8, _: *const Frame, _: *const Worker, lo: i64, hi: i64) {
    // SAFETY: so it is launched.
    unsafe { argument::<AtomicU64>(args, 0) }.fetch_add((hi - lo) as u64, Ordering::Relaxed);
}

unsafe extern "C" fn sleep(args: *const u8, _: *const Frame, _: *const Worker, _: i64, _: i64) {
    // SAFETY: so it is launched.
    std::thread::sleep(Duration::from_micros(unsafe { number(args, 0) }));
}

/// `*a0 = *a1 * 31 + *a2 * 17 + a3`, after `a4` rounds.
unsafe extern "C" fn combine(args: *const u8, _: *const Frame, _: *const Worker, _: i64, _: i64) {
    // SAFETY: so it is launched.
    unsafe {
        for _ in 0..number(args, 4) {
            std::hint::spin_loop();
        }
        let [a, b] = [1, 2].map(|n| argument::<AtomicU64>(args, n).load(Ordering::Relaxed));
        let value = a.wrapping_mul(31).wrapping_add(b.wrapping_mul(17)).wrapping_add(number(args, 3));
        argument::<AtomicU64>(args, 0).store(value, Ordering::Relaxed);
    }
}

/// Notes one more than the second number in the first.
unsafe extern "C" fn note(args: *const u8, _: *const Frame, _: *const Worker, _: i64, _: i64) {
    // SAFETY: so it is launched.
    unsafe {
        let done = argument::<AtomicU64>(args, 1).load(Ordering::Relaxed);
        argument::<AtomicU64>(args, 0).store(done + 1, Ordering::Relaxed);
    }
}

fn range(bounds: &[i64]) -> Domain<'_> {
    let points = bounds.chunks(2).map(|axis| (axis[1] - axis[0]) as u64).product();
    Domain::Range(RangeDomain {
        bounds,
        points,
        max_threads: None,
        block: None,
        cost: 1000,
        lanes: 1,
        copied: &[],
    })
}

#[test]
fn a_stream_runs_in_order_and_after_the_verb_returns() {
    let device = CpuDevice::new(2);
    assert!(device.capabilities().has(Capabilities::STREAMS));
    let stream = new_stream(&device);
    assert!(device.is_immediate(device.default_stream()) && !device.is_immediate(stream));
    let (flag, cell) = (AtomicBool::new(false), AtomicU64::new(0));
    let (wait, append) = (function(wait_for_flag), function(append));
    launch(&device, stream, wait, &[address(&flag)]);
    let mut expected = 0_u64;
    for n in 0..5000 {
        // The same block of arguments again: the launch has its own.
        launch(&device, stream, append, &[address(&cell), n]);
        expected = expected.wrapping_mul(31).wrapping_add(n);
        if n == 100 {
            // SAFETY: live.
            assert!(!unsafe { device.is_idle(stream) });
            assert_eq!(cell.load(Ordering::Relaxed), 0, "nothing passes the first");
            flag.store(true, Ordering::Release);
        }
    }
    synchronise(&device, &[stream]);
    // SAFETY: live.
    assert!(unsafe { device.is_idle(stream) });
    assert_eq!(cell.load(Ordering::Relaxed), expected);
    destroy(&device, [stream]);
}

/// Each task waits for what the other sets: both are inside at once.
#[test]
fn streams_overlap_while_the_host_does_something_else() {
    for threads in [2, 4] {
        let device = CpuDevice::new(threads);
        let streams: Vec<_> = (0..threads).map(|_| new_stream(&device)).collect();
        let meet = function(meet);
        for _ in 0..20 {
            let flags: Vec<_> = (0..threads).map(|_| AtomicBool::new(false)).collect();
            for (n, &stream) in streams.iter().enumerate() {
                let next = &flags[(n + 1) % threads];
                launch(&device, stream, meet, &[address(&flags[n]), address(next)]);
            }
            let begin = Instant::now();
            // SAFETY: live.
            while !streams.iter().all(|&stream| unsafe { device.is_idle(stream) }) {
                assert!(begin.elapsed().as_secs() < 20, "the streams wait for each other");
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        destroy(&device, streams);
    }
}

#[test]
fn streams_that_wait_hold_no_thread() {
    let device = CpuDevice::new(1);
    let (first, other) = (new_stream(&device), new_stream(&device));
    let waiting: Vec<_> = (0..64).map(|_| new_stream(&device)).collect();
    let (flag, cell) = (AtomicBool::new(false), AtomicU64::new(0));
    let [event] = events(&device);
    // SAFETY: all are live.
    unsafe {
        // Nothing runs on the first stream until the other has set the flag, and nothing on the many until the first is past it.
        let [gate] = events(&device);
        launch(&device, other, function(sleep), &[2000]);
        launch(&device, other, function(set_flag), &[address(&flag)]);
        device.record_event(other, gate).unwrap();
        device.wait_event(first, gate).unwrap();
        launch(&device, first, function(wait_for_flag), &[address(&flag)]);
        device.record_event(first, event).unwrap();
        let count = function(count);
        for &stream in &waiting {
            device.wait_event(stream, event).unwrap();
            launch_over(&device, stream, count, &[address(&cell)], range(&[0, 10]));
        }
        assert!(!device.event_passed(event));
        assert_eq!(cell.load(Ordering::Relaxed), 0);
        synchronise(&device, &waiting);
        assert_eq!(cell.load(Ordering::Relaxed), 640);
        assert!(device.event_passed(event) && device.event_passed(gate));
        device.destroy_event(event);
        device.destroy_event(gate);
    }
    destroy(&device, waiting.into_iter().chain([first, other]));
}

#[test]
fn a_wait_is_for_the_recording_that_was_latest_then() {
    let device = CpuDevice::new(2);
    let [a, b, c] = [(); 3].map(|()| new_stream(&device));
    let flags = [AtomicBool::new(false), AtomicBool::new(false)];
    let cell = AtomicU64::new(1);
    let [event, never, unrecorded] = events(&device);
    // SAFETY: all are live.
    unsafe {
        launch(&device, a, function(wait_for_flag), &[address(&flags[0])]);
        device.record_event(a, event).unwrap();
        device.wait_event(b, event).unwrap();
        let append = function(append);
        launch(&device, b, append, &[address(&cell), 5]);
        // Recorded again, on an idle stream: passed at once. The stream that waited still does.
        device.record_event(c, event).unwrap();
        assert!(device.event_passed(event));
        device.synchronise_event(event).unwrap();
        assert!(!device.is_idle(b));
        // And destroyed: it still waits.
        device.destroy_event(event);
        assert_eq!(cell.load(Ordering::Relaxed), 1);
        flags[0].store(true, Ordering::Release);
        synchronise(&device, &[b]);
        assert_eq!(cell.load(Ordering::Relaxed), 36);
        // What was never recorded is passed, and has no time.
        assert!(device.event_passed(never));
        device.wait_event(b, never).unwrap();
        device.synchronise_event(never).unwrap();
        device.wait_event(device.default_stream(), never).unwrap();
        assert_eq!(device.elapsed(never, unrecorded), Ok(None));
    }
    destroy(&device, [a, b, c]);
}

#[test]
fn times_of_events_are_those_of_the_stream() {
    let device = CpuDevice::new(2);
    let stream = new_stream(&device);
    let [start, end, now] = events(&device);
    // SAFETY: all are live.
    unsafe {
        device.record_event(stream, start).unwrap();
        launch(&device, stream, function(sleep), &[3000]);
        device.record_event(stream, end).unwrap();
        assert_eq!(device.elapsed(start, end), Ok(None), "not passed yet");
        device.record_event(device.default_stream(), now).unwrap();
        device.synchronise_event(end).unwrap();
        let elapsed = device.elapsed(start, end).unwrap().unwrap();
        assert!((3e6..3e8).contains(&elapsed), "{elapsed} ns");
        assert!(device.elapsed(end, now).unwrap().unwrap() < 0.0);
        for event in [start, end, now] {
            device.destroy_event(event);
        }
    }
    destroy(&device, [stream]);
}

/// The default stream is immediate: a wait on it is one of the host, and what it waits for may be run by the host itself.
#[test]
fn the_default_stream_waits_at_once() {
    let device = CpuDevice::new(2);
    let stream = new_stream(&device);
    let cell = AtomicU64::new(0);
    let count = function(count);
    for round in 1..=200 {
        launch_over(&device, stream, count, &[address(&cell)], range(&[0, 1000]));
        order(&device, stream, device.default_stream());
        assert_eq!(cell.load(Ordering::Relaxed), 1000 * round);
    }
    destroy(&device, [stream]);
}

#[test]
fn memory_lives_until_the_streams_are_past_it() {
    let device = CpuDevice::new(2);
    let (a, b) = (new_stream(&device), new_stream(&device));
    let flag = AtomicBool::new(false);
    let wait = function(wait_for_flag);
    let result = AtomicU64::new(0);
    let bytes = 1 << 16;
    let default = device.default_stream();
    // SAFETY: all are live; memory is freed once, after the last verb that uses it.
    unsafe {
        let memory = device.allocate(default, bytes).unwrap();
        launch(&device, a, wait, &[address(&flag)]);
        launch(&device, b, wait, &[address(&flag)]);
        device.fill(a, memory, &[1, 0, 0, 0], bytes).unwrap();
        order(&device, a, b);
        let scratch = device.allocate_scratch(b, bytes).unwrap();
        device.copy(b, scratch, memory, bytes).unwrap();
        launch(&device, b, function(append), &[scratch.0, 5]);
        device.copy(b, Address::of(&raw const result), scratch, 8).unwrap();
        device.free_scratch(b, scratch, bytes);
        device.free(b, memory, bytes);
        // Something else does not get the memory meanwhile.
        let other = device.allocate(default, bytes).unwrap();
        device.fill(default, other, &[9], bytes).unwrap();
        flag.store(true, Ordering::Release);
        synchronise(&device, &[a, b]);
        device.free(default, other, bytes);
    }
    assert_eq!(result.into_inner(), (1 + (1 << 32)) * 31 + 5);
    destroy(&device, [a, b]);
}

#[test]
fn copies_between_host_and_stream_keep_the_order() {
    let device = CpuDevice::new(2);
    let stream = new_stream(&device);
    for bytes in [8_usize, 4096, 3 << 20] {
        // SAFETY: the default stream is always there.
        let memory = unsafe { device.allocate(device.default_stream(), bytes).unwrap() };
        let flag = AtomicBool::new(false);
        let mut host = vec![7_u8; bytes];
        // SAFETY: all are live and large enough.
        unsafe {
            // Of a stream that has something to do, and of an idle one.
            for busy in [true, false] {
                std::thread::scope(|scope| {
                    if busy {
                        flag.store(false, Ordering::Relaxed);
                        launch(&device, stream, function(wait_for_flag), &[address(&flag)]);
                        scope.spawn(|| {
                            std::thread::sleep(Duration::from_millis(1));
                            flag.store(true, Ordering::Release);
                        });
                    }
                    host.fill(7);
                    device.copy_to_device(stream, memory, host.as_ptr(), bytes).unwrap();
                    host.fill(8);
                    launch(&device, stream, function(append), &[memory.0, 1]);
                    device.copy_to_host(stream, host.as_mut_ptr(), memory, bytes).unwrap();
                });
                let first = u64::from_ne_bytes(host[..8].try_into().unwrap());
                assert_eq!(first, 0x0707_0707_0707_0707_u64.wrapping_mul(31) + 1, "{bytes} bytes");
                assert!(host[8..].iter().all(|&byte| byte == 7));
            }
            device.free(device.default_stream(), memory, bytes);
        }
    }
    destroy(&device, [stream]);
}

#[test]
fn bounds_are_read_when_the_task_begins() {
    let device = CpuDevice::new(2);
    let stream = new_stream(&device);
    let (flag, cell, bound) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU32::new(0));
    let at = Address::of(&raw const bound);
    let device_range = |bits, signed| [DeviceBound::Known(2), DeviceBound::InMemory { at, bits, signed }];
    let count = function(count);
    let over = |bounds: &[DeviceBound]| {
        let (max_threads, block, copied) = (None, None, &[][..]);
        let domain = DeviceRangeDomain { bounds, max_threads, block, cost: 1000, lanes: 1, copied };
        launch_over(&device, stream, count, &[address(&cell)], Domain::DeviceRange(domain));
    };
    launch(&device, stream, function(wait_for_flag), &[address(&flag)]);
    over(&device_range(32, true));
    bound.store(1002, Ordering::Relaxed);
    flag.store(true, Ordering::Release);
    synchronise(&device, &[stream]);
    assert_eq!(cell.load(Ordering::Relaxed), 1000);
    for (bits, signed, value, expected) in
        [(32, true, u32::MAX, 0), (16, false, 0xFFFF_000A, 8), (8, true, 0x80, 0), (8, false, 0x80, 126)]
    {
        bound.store(value, Ordering::Relaxed);
        cell.store(0, Ordering::Relaxed);
        over(&device_range(bits, signed));
        synchronise(&device, &[stream]);
        assert_eq!(cell.load(Ordering::Relaxed), expected, "{value:#x} of {bits} bits");
    }
    destroy(&device, [stream]);
}

/// A loop of too many iterations cannot be refused when it is told: it is when it begins.
#[test]
fn what_fails_later_is_told_once_to_who_asks_or_waits() {
    let device = CpuDevice::new(2);
    let [a, b, c] = [(); 3].map(|()| new_stream(&device));
    let cell = AtomicU64::new(0);
    let flag = AtomicBool::new(false);
    let fail = |stream| {
        let bounds = [DeviceBound::Known(0), DeviceBound::Known(i64::MAX)].repeat(2);
        let (max_threads, block, copied) = (None, None, &[][..]);
        let domain = DeviceRangeDomain { bounds: &bounds, max_threads, block, cost: 1, lanes: 1, copied };
        launch_over(&device, stream, function(count), &[address(&cell)], Domain::DeviceRange(domain));
    };
    let is_told = |result: Result<(), DeviceError>| match result {
        Ok(()) => false,
        Err(DeviceError::Failed { verb: "launch", .. }) => true,
        Err(other) => panic!("{other}"),
    };
    // SAFETY: all are live.
    unsafe {
        fail(a);
        assert!(is_told(device.synchronise(a)));
        assert!(!is_told(device.synchronise(a)));
        launch(&device, a, function(wait_for_flag), &[address(&flag)]);
        fail(a);
        order(&device, a, b);
        order(&device, b, c);
        flag.store(true, Ordering::Release);
        assert!(is_told(device.synchronise(c)), "what waited hears of it");
        assert!(!is_told(device.synchronise(a)) && !is_told(device.synchronise(b)), "and nobody else");
        fail(a);
        let [event] = events(&device);
        device.record_event(a, event).unwrap();
        assert!(is_told(device.wait_event(device.default_stream(), event)));
        device.destroy_event(event);
        launch_over(&device, a, function(count), &[address(&cell)], range(&[0, 10]));
        synchronise(&device, &[a]);
        assert_eq!(cell.load(Ordering::Relaxed), 10, "it works as before");
    }
    destroy(&device, [a, b, c]);
}

#[test]
fn questions_tell_no_error_and_take_none_for_an_answer() {
    let device = CpuDevice::new(2);
    let stream = new_stream(&device);
    let (cell, flag) = (AtomicU64::new(0), AtomicBool::new(false));
    let bounds = [DeviceBound::Known(0), DeviceBound::Known(i64::MAX)].repeat(2);
    let (max_threads, block, copied) = (None, None, &[][..]);
    let domain = DeviceRangeDomain { bounds: &bounds, max_threads, block, cost: 1, lanes: 1, copied };
    launch_over(&device, stream, function(count), &[address(&cell)], Domain::DeviceRange(domain));
    launch(&device, stream, function(meet), &[address(&flag), address(&cell)]);
    let [event] = events(&device);
    let begin = Instant::now();
    // SAFETY: all are live.
    unsafe {
        device.record_event(stream, event).unwrap();
        while !flag.load(Ordering::Acquire) {
            assert!(begin.elapsed().as_secs() < 20, "nobody runs it");
        }
        // The first launch has failed, and the second runs.
        for _ in 0..3 {
            assert!(!device.is_idle(stream) && !device.event_passed(event));
            assert_eq!((device.poll(stream), device.poll_event(event)), (Ok(false), Ok(false)));
        }
        cell.store(1, Ordering::Release);
        while !device.is_idle(stream) || !device.event_passed(event) {}
        assert!(device.poll(stream).is_err(), "who waits is told");
        assert_eq!((device.poll(stream), device.poll_event(event)), (Ok(true), Ok(true)), "once");
        device.destroy_event(event);
    }
    destroy(&device, [stream]);
}

/// One thread, so that one worker serves streams, which a long task of another stream keeps.
#[test]
fn what_a_thread_polls_for_begins_beside_a_busy_stream() {
    let device = CpuDevice::new(1);
    let [busy, first, then] = [(); 3].map(|()| new_stream(&device));
    let (inside, flag, cell) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    launch(&device, busy, function(meet), &[address(&inside), address(&flag)]);
    while !inside.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    for round in 1..=3 {
        launch_over(&device, first, function(count), &[address(&cell)], range(&[0, 10]));
        order(&device, first, then);
        launch_over(&device, then, function(count), &[address(&cell)], range(&[0, 10]));
        let begin = Instant::now();
        // SAFETY: live.
        while !unsafe { device.poll(then).unwrap() } {
            assert!(begin.elapsed().as_secs() < 5, "nobody runs it");
            std::thread::sleep(Duration::from_micros(50));
        }
        assert_eq!(cell.load(Ordering::Relaxed), 20 * round);
    }
    // SAFETY: live.
    assert!(!unsafe { device.is_idle(busy) });
    flag.store(true, Ordering::Release);
    destroy(&device, [busy, first, then]);
}

/// However a wait ends, the next one has all of its patience.
#[test]
fn a_wait_that_is_over_leaves_no_trace() {
    let device = CpuDevice::new(2);
    let stream = new_stream(&device);
    let [event] = events(&device);
    let (inside, flag) = (AtomicBool::new(false), AtomicBool::new(false));
    launch(&device, stream, function(meet), &[address(&inside), address(&flag)]);
    // SAFETY: all are live.
    unsafe {
        let queue = (*(stream.0 as *const super::StreamHandle)).queue();
        let since = || queue.label.waited_since.load(Ordering::Relaxed);
        device.record_event(stream, event).unwrap();
        assert_eq!(device.poll_event(event), Ok(false));
        let begin = since();
        assert_ne!(begin, 0);
        // Nobody looks for long: that wait was given up, and this one begins now.
        std::thread::sleep(Duration::from_millis(80));
        let again = queue.label.core.nanoseconds();
        assert_eq!(device.poll_event(event), Ok(false));
        assert!(since() >= again);
        flag.store(true, Ordering::Release);
        while !device.poll_event(event).unwrap() {
            std::thread::yield_now();
        }
        assert_eq!(since(), 0);
        device.destroy_event(event);
    }
    destroy(&device, [stream]);
}

#[test]
fn no_task_begins_after_a_fault_or_a_request_to_stop() {
    let device = CpuDevice::new(2);
    let stream = new_stream(&device);
    let (cell, flag, fault, cancel) =
        (AtomicU64::new(0), AtomicBool::new(false), FaultRecord::new(), Cancel::new());
    let (count, wait) = (function(count), function(wait_for_flag));
    for (what, args) in [(wait, [address(&flag)]), (count, [address(&cell)])] {
        for domain in [Domain::Once, range(&[0, 100_000])] {
            let memory = LaunchMemory { fault: Address::of(&raw const fault), ..LaunchMemory::NONE };
            let args = words(&args);
            let context = LaunchContext {
                stream,
                args,
                memory,
                cancel: &cancel,
                caller: None,
                key: 0,
                launch: 0,
                prints: None,
            };
            // SAFETY: as in `launch_over`.
            unsafe { device.launch(&Launch { function: what, domain, context }).unwrap() };
        }
    }
    fault.write(&octants_hal::Fault { site: 3, arguments: [0; 8] });
    flag.store(true, Ordering::Release);
    synchronise(&device, &[stream]);
    assert_eq!(cell.load(Ordering::Relaxed), 0);
    cancel.raise();
    let context = LaunchContext {
        stream,
        args: &[],
        memory: LaunchMemory::NONE,
        cancel: &cancel,
        caller: None,
        key: 0,
        launch: 0,
        prints: None,
    };
    // SAFETY: the task is not run.
    unsafe { device.launch(&Launch { function: count, domain: Domain::Once, context }).unwrap() };
    synchronise(&device, &[stream]);
    destroy(&device, [stream]);
}

/// With a single worker: a stream with much to do leaves it to others now and then, and the urgent are first.
#[test]
fn streams_share_a_worker() {
    let device = CpuDevice::new(1);
    let [long, short] = [(); 2].map(|()| new_stream(&device));
    let [low, high] =
        [StreamPriority::Low, StreamPriority::High].map(|level| device.create_stream(level).unwrap());
    let (done, seen) = (AtomicU64::new(0), [const { AtomicU64::new(0) }; 3]);
    let (sleep, count, note) = (function(sleep), function(count), function(note));
    for _ in 0..400 {
        launch(&device, long, sleep, &[50]);
        launch_over(&device, long, count, &[address(&done)], range(&[0, 1]));
    }
    for (stream, seen) in [low, short, high].into_iter().zip(&seen) {
        launch(&device, stream, note, &[address(seen), address(&done)]);
    }
    // Not by waiting, which would take part.
    let begin = Instant::now();
    while done.load(Ordering::Relaxed) < 400 {
        assert!(begin.elapsed().as_secs() < 60, "the stream makes no progress");
        std::thread::sleep(Duration::from_millis(1));
    }
    let seen = seen.each_ref().map(|seen| seen.load(Ordering::Relaxed));
    assert!(seen.iter().all(|&seen| (1..300).contains(&seen)), "after so many of the long stream: {seen:?}");
    assert!(seen[2] <= seen[1] && seen[2] <= seen[0], "{seen:?}");
    destroy(&device, [long, short, low, high]);
}

#[test]
fn destroying_waits_and_a_device_ends_with_streams_that_nobody_destroyed() {
    let device = CpuDevice::new(2);
    let stream = new_stream(&device);
    let cell = AtomicU64::new(0);
    let append = function(append);
    for _ in 0..100 {
        launch(&device, stream, append, &[address(&cell), 1]);
    }
    destroy(&device, [stream]);
    let expected = (0..100).fold(0_u64, |value, _| value.wrapping_mul(31).wrapping_add(1));
    assert_eq!(cell.load(Ordering::Relaxed), expected);
    let left = new_stream(&device);
    launch(&device, left, append, &[address(&cell), 1]);
    synchronise(&device, &[left]);
    drop(device);
}

#[test]
fn a_forked_child_finds_empty_streams() {
    let device = CpuDevice::new(2);
    let (stream, idle) = (new_stream(&device), new_stream(&device));
    let (flag, cell) = (AtomicBool::new(false), AtomicU64::new(0));
    let [event] = events(&device);
    launch(&device, stream, function(wait_for_flag), &[address(&flag)]);
    // SAFETY: live.
    unsafe { device.record_event(stream, event).unwrap() };
    // SAFETY: the child only uses the device and leaves, without returning into the test harness.
    let child = unsafe { libc::fork() };
    if child == 0 {
        launch_over(&device, stream, function(count), &[address(&cell)], range(&[0, 10]));
        order(&device, stream, idle);
        launch_over(&device, idle, function(count), &[address(&cell)], range(&[0, 10]));
        synchronise(&device, &[idle, stream]);
        // SAFETY: live.
        unsafe { device.wait_event(device.default_stream(), event).unwrap() };
        let worked = cell.load(Ordering::Relaxed) == 20;
        destroy(&device, [stream, idle]);
        drop(device);
        // SAFETY: leaves at once.
        unsafe { libc::_exit(if worked { 7 } else { 1 }) };
    }
    let (begin, mut status) = (Instant::now(), 0);
    // SAFETY: waits for our own child, without blocking.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        assert!(begin.elapsed().as_secs() < 20, "the child hangs");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(libc::WEXITSTATUS(status), 7, "the child's streams went wrong");
    flag.store(true, Ordering::Release);
    destroy(&device, [stream, idle]);
}

/// Eight threads, four streams each, thousands of launches; now and then one waits for another's stream.
#[test]
fn many_threads_and_streams_keep_their_order() {
    const LAUNCHES: u64 = 4000;
    let device = CpuDevice::new(3);
    let append = function(append);
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let device = &device;
            scope.spawn(move || {
                let streams = [(); 4].map(|()| new_stream(device));
                let cells = [const { AtomicU64::new(0) }; 4];
                let mut expected = [0_u64; 4];
                for n in 0..LAUNCHES {
                    let which = (n.wrapping_mul(7) + thread) as usize % 4;
                    // A cell belongs to a stream until the next one has waited for it.
                    let stream = streams[(which + n as usize / 1000) % 4];
                    if n % 1000 == 0 {
                        for n in 0..4 {
                            (0..4).for_each(|other| order(device, streams[n], streams[other]));
                        }
                    }
                    launch(device, stream, append, &[address(&cells[which]), n]);
                    expected[which] = expected[which].wrapping_mul(31).wrapping_add(n);
                    if n % 777 == 0 {
                        synchronise(device, &[stream]);
                    }
                }
                synchronise(device, &streams);
                assert_eq!(cells.each_ref().map(|cell| cell.load(Ordering::Relaxed)), expected);
                destroy(device, streams);
            });
        }
    });
}

/// Random programs: tasks that read two cells and write one, on random streams, ordered by events wherever two touch the same cell and
/// one of them writes. They end as they would one after another.
#[test]
fn random_schedules_give_what_the_program_in_order_gives() {
    const SCHEDULES: u64 = 5000;
    const CELLS: usize = 6;
    let device = CpuDevice::new(3);
    let combine = function(combine);
    let mut random = Random(1);
    for schedule in 0..SCHEDULES {
        // The default stream is one of them.
        let mut streams: Vec<_> = (0..=random.below(4)).map(|_| new_stream(&device)).collect();
        streams.push(device.default_stream());
        let cells: Vec<_> = (0..CELLS as u64).map(AtomicU64::new).collect();
        let mut expected: Vec<_> = (0..CELLS as u64).collect();
        // The stream that wrote last to each cell, and those that have read it since.
        let mut writers = [None; CELLS];
        let mut readers = vec![Vec::new(); CELLS];
        for _ in 0..random.below(40) {
            let stream = streams[random.below(streams.len())];
            let [to, a, b] = [(); 3].map(|()| random.below(CELLS));
            let (constant, rounds) = (random.next(), random.below(200) as u64);
            let before: Vec<_> = [to, a, b]
                .iter()
                .filter_map(|&cell| writers[cell])
                .chain(readers[to].iter().copied())
                .filter(|&other| other != stream)
                .collect();
            for other in before {
                order(&device, other, stream);
            }
            let args = [address(&cells[to]), address(&cells[a]), address(&cells[b]), constant, rounds];
            launch(&device, stream, combine, &args);
            for cell in [a, b] {
                readers[cell].push(stream);
            }
            (writers[to], readers[to]) = (Some(stream), Vec::new());
            expected[to] = expected[a]
                .wrapping_mul(31)
                .wrapping_add(expected[b].wrapping_mul(17))
                .wrapping_add(constant);
        }
        streams.pop();
        // Some are waited for, others only destroyed.
        synchronise(&device, &streams[..random.below(streams.len())]);
        destroy(&device, streams);
        let found: Vec<_> = cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect();
        assert_eq!(found, expected, "schedule {schedule}");
    }
}

/// A linear congruence is random enough.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 16
    }

    fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }
}

/// What verbs cost the host. `cargo test --release -p octants_cpu cost_of -- --ignored --nocapture`, on a machine with nothing else to do.
#[test]
#[ignore = "measures, and says nothing of right and wrong"]
fn cost_of_verbs_on_streams() {
    const TIMES: u32 = 1000;
    let device = CpuDevice::new(2);
    let (a, b) = (new_stream(&device), new_stream(&device));
    let cell = AtomicU64::new(0);
    let append = function(append);
    let [event] = events(&device);
    let measure = |what: &str, verb: &dyn Fn()| {
        let mut best = f64::INFINITY;
        for _ in 0..100 {
            let begin = Instant::now();
            (0..TIMES).for_each(|_| verb());
            best = best.min(begin.elapsed().as_secs_f64() / f64::from(TIMES));
            synchronise(&device, &[a, b]);
        }
        println!("{what}: {:.3} us", best * 1e6);
    };
    let args = [address(&cell), 1, 2, 3];
    measure("launch on the default stream", &|| launch(&device, device.default_stream(), append, &args));
    measure("launch", &|| launch(&device, a, append, &args));
    // As a program does that computes something between two launches.
    let between = || (0..40).for_each(|_| std::hint::spin_loop());
    measure("nothing but a pause", &between);
    measure("launch and a pause", &|| {
        launch(&device, a, append, &args);
        between();
    });
    // SAFETY: all are live.
    unsafe {
        measure("record and wait, idle", &|| {
            device.record_event(a, event).unwrap();
            device.wait_event(b, event).unwrap();
        });
        measure("launch, record and wait", &|| {
            launch(&device, a, append, &args);
            device.record_event(a, event).unwrap();
            device.wait_event(b, event).unwrap();
        });
        measure("launch and synchronise", &|| {
            launch(&device, a, append, &args);
            device.synchronise(a).unwrap();
        });
    }
    destroy(&device, [a, b]);
}
