//! Devices that fail: whichever verb does, what was taken is given back, and the next launch is right.

mod programs;

use std::sync::Arc;

use octants::ir::{Const, KernelOptions, Scalar, text};
use octants::{Arch, HostQueue, Invocation, LaunchError, Session, SessionOptions, Stream, StreamPriority};
use octants_hal::Device;
use octants_hal::failing::FailingDevice;
use programs::{NEVER, compile, filled, values};

/// Three branches that are long enough for streams of their own. One computes the bound of its loop, one can fail, and the sum of one is
/// the result.
const FORK: &str = r#"kernel @fork(%0 "a": array<i32, 1>, %1 "b": array<i32, 1>, %2 "n": i32) -> (i32) {
  %3: local<i32> = local
  %4: i32 = const 0
  fork {
    parallel_for (%5: i32) in (%4..%2) {
      store %0[%5], %5
      %6: i32 = atomic_add %3, %5
    }
  } and {
    %7: i32 = load %1[%4]
    parallel_for (%8: i32) in (%4..%7) {
      %9: i32 = load %1[%8]
      %10: i32 = add %9, %2
      store %1[%8], %10
    }
  } and {
    parallel_for (%11: i32) in (%4..%2) {
      %12: u1 = ge %11, %4
      assert "it is not negative", %12
    }
  }
  %13: i32 = load %3
  return %13
}"#;

const POINTS: i32 = 20_000;
const FAILURES: u32 = 1000;

/// A session over a device that can be told to fail.
fn failing(threads: usize) -> (Arc<FailingDevice>, Session) {
    let mut device = None;
    let kernel = KernelOptions::default();
    let options = SessionOptions { arch: Arch::Cpu, threads, kernel, ..SessionOptions::default() };
    let wrap = |inner: Arc<dyn Device>| -> Arc<dyn Device> {
        Arc::clone(device.insert(Arc::new(FailingDevice::new(inner)))) as _
    };
    let session = Session::wrapped(options, wrap).unwrap();
    (device.unwrap(), session)
}

#[test]
fn a_thousand_failures_leave_the_pools_as_they_were_and_the_next_launch_right() {
    let (device, session) = failing(2);
    let fork = compile(&session, text::parse(FORK).unwrap());
    let a = filled(&session, Scalar::I32, &[POINTS], -1.0);
    let b = filled(&session, Scalar::I32, &[POINTS], f64::from(POINTS));
    let stream = Stream::new(&session, StreamPriority::Normal).unwrap();
    let live = stream.live().unwrap();
    let launch = |explicit: bool| -> Result<Vec<Const>, LaunchError> {
        // Whatever an earlier launch has made of it: its first element is a bound.
        b.fill(&[Const::i32(POINTS)], HostQueue::default())?;
        let invocation = Invocation::new(&fork).array(&a)?.array(&b)?.scalar(&[Const::i32(POINTS)])?;
        let invocation = if explicit { invocation.on(&live) } else { invocation };
        invocation.launch(&NEVER)
    };
    // What launches need, on both kinds of streams.
    let mut rounds = 0;
    for explicit in [false, true] {
        launch(explicit).unwrap();
        rounds += 1;
    }
    let at_first = device.live();
    let mut failed = 0;
    for attempt in 0..FAILURES {
        let explicit = attempt % 2 == 1;
        device.fail_after(attempt / 2 % 23);
        let result = launch(explicit);
        let has_failed = device.stop_failing();
        assert_eq!(result.is_err(), has_failed, "attempt {attempt}: {result:?}");
        failed += u32::from(has_failed);
        assert_eq!(launch(explicit).unwrap(), [Const::i32((0..POINTS).fold(0, i32::wrapping_add))]);
        if attempt % 100 < 2 {
            assert_eq!(values(&a), (0..POINTS).map(f64::from).collect::<Vec<_>>());
            assert_eq!(values(&b), vec![f64::from(2 * POINTS); POINTS as usize]);
        }
        assert_eq!(device.live(), at_first, "attempt {attempt}");
        rounds += 1;
    }
    assert!(failed > FAILURES / 4, "only {failed} of {rounds} launches failed");
    drop(live);
    stream.destroy(&NEVER).unwrap();
    drop((a, b, fork));
    session.reset();
    drop(session);
    let left = device.live();
    assert_eq!((left.streams, left.events), (0, 0), "all goes with the session");
}
