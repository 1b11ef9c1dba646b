//! A stream that was told to use memory is noted among its uses, whatever came of the launch. Seen on the null device.

// Streams of other libraries are named by an unsafe function, and blocks of arguments are made by one.
#![allow(unsafe_code)]

mod programs;

use std::sync::Arc;

use octants::ir::text::parse;
use octants::ir::{Const, Scalar};
use octants::{
    Arguments, ExternalStream, HostQueue, Invocation, Left, Mode, NdArray, Session, SessionOptions, Storage,
    Stream, StreamPriority,
};
use octants_hal::Capabilities;
use octants_hal::null::NullDevice;
use programs::{NEVER, compile, saxpy};

/// The handle of another library's stream.
const EXTERNAL: u64 = 77;

/// Keeps each value that it overwrites, `rows[i]` times.
const OVERWRITES: &str = r#"kernel @overwrites(%0 "x": array<f64, 1>, %1 "rows": array<i32, 1>) {
  %2: i32 = const 0
  %3: i32 = extent 0 %0
  parallel_for (%4: i32) in (%2..%3) {
    %5: i32 = load %1[%4]
    for %6: i32 in %2..%5 {
      %7: f64 = load %0[%4]
      %8: f64 = mul %7, %7
      store %0[%4], %8
      yield
    }
  }
  return
}"#;

const SQUARES: &str = r#"kernel @squares(%0 "x": array<f64, 1>, %1 "y": array<f64, 1>) {
  %2: i32 = const 0
  %3: i32 = extent 0 %0
  parallel_for (%4: i32) in (%2..%3) {
    %5: f64 = load %0[%4]
    %6: f64 = mul %5, %5
    store %1[%4], %6
  }
  return
}"#;

fn start() -> (Arc<NullDevice>, Session) {
    let capabilities = Capabilities::STREAMS | Capabilities::DEVICE_BOUNDS | Capabilities::EXTERNAL_STREAMS;
    let device = Arc::new(NullDevice::with_capabilities(capabilities));
    let session = Session::over_null(device.clone(), SessionOptions::default());
    (device, session)
}

fn external(session: &Session) -> Stream {
    // SAFETY: the null device takes any number.
    Stream::wrap(session, unsafe { ExternalStream::new(EXTERNAL) }).unwrap()
}

fn starts_with(trace: &[String], verb: &str) -> bool {
    trace.iter().any(|line| line.starts_with(verb))
}

/// Whether an event was recorded in the external stream after the last launch there.
fn is_followed(trace: &[String]) -> bool {
    let on_external = |line: &&String| line.ends_with(&format!("on {EXTERNAL}"));
    trace.iter().rfind(on_external).is_some_and(|line| line.starts_with("record_event"))
}

#[test]
fn launches_in_an_external_stream_are_followed_also_those_of_derivatives() {
    let (device, session) = start();
    let (stream, kernel) = (external(&session), compile(&session, saxpy()));
    let live = stream.live().unwrap();
    let array = |scalar: Scalar| NdArray::new(&session, scalar.into(), &[4]).unwrap();
    let (x, y) = (array(Scalar::F32), array(Scalar::F32));
    let launch = Invocation::new(&kernel).on(&live).scalar(&[Const::f32(1.0)]).unwrap();
    launch.array(&x).unwrap().array(&y).unwrap().launch(&NEVER).unwrap();
    let trace = device.take_trace();
    assert!(is_followed(&trace), "{trace:?}");

    let storage = [Storage::Companion(None), Storage::Companion(None)];
    let made = session.differentiate(&parse(SQUARES).unwrap(), Mode::Reverse, &storage, &NEVER).unwrap();
    let gradient = made.unwrap_or_else(|refusals| panic!("{refusals:?}"));
    let arrays: [NdArray; 4] = std::array::from_fn(|_| array(Scalar::F64));
    let launch = Invocation::new(gradient.kernel()).on(&live);
    let launch = arrays.iter().fold(launch, |launch, array| launch.array(array).unwrap());
    launch.launch_gradient(&gradient, &NEVER).unwrap();
    let trace = device.take_trace();
    assert!(starts_with(&trace, "launch squares"), "{trace:?}");
    assert!(is_followed(&trace), "{trace:?}");
}

#[test]
fn a_launch_that_nothing_can_follow_is_waited_for() {
    let (device, session) = start();
    let (stream, kernel) = (external(&session), compile(&session, saxpy()));
    let live = stream.live().unwrap();
    let [x, y] = [(), ()].map(|()| NdArray::new(&session, Scalar::F32.into(), &[4]).unwrap());
    let launch = || {
        let launch = Invocation::new(&kernel).on(&live).scalar(&[Const::f32(1.0)]).unwrap();
        launch.array(&x).unwrap().array(&y).unwrap().launch(&NEVER)
    };
    launch().unwrap();
    device.take_trace();
    device.fail_next("record_event");
    launch().unwrap();
    let trace = device.take_trace();
    let failed = trace.iter().position(|line| line.starts_with("record_event") && line.ends_with('!'));
    let after = &trace[failed.expect("it was told to fail")..];
    assert!(after.iter().any(|line| line.ends_with(&format!(" {EXTERNAL}"))), "{trace:?}");
    x.memory().read(HostQueue::default(), 0, &mut [0; 16]).unwrap();
}

#[test]
fn memory_of_a_sizing_kernel_that_failed_is_kept_until_its_stream_is_past_it() {
    let (device, session) = start();
    let storage = [Storage::Companion(None), Storage::Constant];
    let plan = session.record(&parse(OVERWRITES).unwrap(), &storage, Left::Parts, &NEVER).unwrap();
    let plan = plan.unwrap_or_else(|refusals| panic!("{refusals:?}"));
    let (recorder, _gradient) = plan.recorder.expect("it overwrites what its derivative needs");
    let stream = Stream::new(&session, StreamPriority::Normal).unwrap();
    let live = stream.live().unwrap();
    // No addresses and no extents: nothing is read there.
    let block = vec![0; recorder.kernel().args().bytes as usize];
    // SAFETY: the null device runs nothing.
    let begin = || recorder.begin(unsafe { Arguments::new(&block) }, Some(&live), &NEVER);
    begin().unwrap();
    device.set_busy(octants_hal::Stream(stream.handle()), true);
    device.take_trace();
    device.fail_next("launch");
    assert!(begin().is_err());
    let trace = device.take_trace();
    assert!(starts_with(&trace, "launch") && starts_with(&trace, "allocate"), "{trace:?}");
    assert!(!starts_with(&trace, "free"), "the stream may be at work on it: {trace:?}");
    device.set_busy(octants_hal::Stream(stream.handle()), false);
    drop(NdArray::new(&session, Scalar::F32.into(), &[4]));
    assert!(starts_with(&device.take_trace(), "free"));
}
