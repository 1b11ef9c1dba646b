//! Derivatives through the whole facade, on each device: with memory of threads' own, and with arrays that the launch provides.

mod programs;

use std::sync::Arc;

use octants::ir::text::parse;
use octants::ir::{Const, Scalar};
use octants::{
    Arch, Gradient, Invocation, Left, Mode, NdArray, RefusalKind, Session, SessionOptions, Storage,
    total_bytes,
};
use octants_hal::Capabilities;
use octants_hal::null::NullDevice;
use programs::{NEVER, filled, listed, session, values};

const DEVICES: [Arch; 3] = [Arch::Cpu, Arch::Reference, Arch::Remote];

/// `rows[i]` steps of `v = v * v * 0.5`, and what they end with.
const STEPS: &str = r#"kernel @steps(%0 "x": array<f64, 1>, %1 "y": array<f64, 1>, %2 "rows": array<i32, 1>) {
  %3: i32 = const 0
  %4: i32 = extent 0 %0
  %5: f64 = const 0.5
  parallel_for (%6: i32) in (%3..%4) {
    %7: f64 = load %0[%6]
    %8: i32 = load %2[%6]
    %9: f64 = for %10: i32 in %3..%8 carry (%11: f64 = %7) {
      %12: f64 = mul %11, %11
      %13: f64 = mul %12, %5
      yield %13
    }
    store %1[%6], %9
  }
  return
}"#;

fn gradient(session: &Session, text: &str, mode: Mode) -> Gradient {
    let storage = [Storage::Companion(None), Storage::Companion(None), Storage::Constant];
    let made = session.differentiate(&parse(text).unwrap(), mode, &storage, &NEVER).unwrap();
    made.unwrap_or_else(|refusals| panic!("{refusals:?}"))
}

/// What a launch gave: the gradient, the bytes that it kept, and those of the arrays that it had for that.
fn run(session: &Session, gradient: &Gradient, x: &[f64], rows: &[i32]) -> (Vec<f64>, u64, u64) {
    let count = x.len() as i32;
    let (x, y) = (listed(session, Scalar::F64, x), filled(session, Scalar::F64, &[count], 0.0));
    let rows = listed(session, Scalar::I32, &rows.iter().map(|&n| f64::from(n)).collect::<Vec<_>>());
    let (dx, dy) = (filled(session, Scalar::F64, &[count], 1.0), filled(session, Scalar::F64, &[count], 1.0));
    let arrays = [&x, &y, &rows, &dx, &dy];
    let with = || {
        let invocation = Invocation::new(gradient.kernel());
        arrays.into_iter().fold(invocation, |invocation, array| invocation.array(array).unwrap())
    };
    let kept = total_bytes(&with().kept_memory(gradient, &NEVER).unwrap());
    let reserved = with().launch_gradient(gradient, &NEVER).unwrap();
    assert!(values(&dy).iter().all(|&v| v == 0.0), "what was stored has no adjoint any more");
    (values(&dx), kept, reserved)
}

/// What was there, and the product of the values on the way.
fn expected(x: f64, rows: i32) -> f64 {
    let (mut value, mut product) = (x, 1.0);
    for _ in 0..rows {
        product *= value;
        value = value * value * 0.5;
    }
    1.0 + product
}

#[test]
fn each_launch_keeps_as_much_as_its_loops_run() {
    for arch in DEVICES {
        let session = session(arch);
        let lasting = gradient(&session, STEPS, Mode::Reverse);
        assert_eq!((lasting.params(), lasting.companions()), (5, &[(0, 3), (1, 4)][..]));
        let [kept] = lasting.kept() else { panic!("one loop keeps something") };
        assert_eq!(kept.scalars, [Scalar::F64]);
        for rows in [[3, 0, 5, 1], [0, 0, 0, 0], [-2, 7, 2, 2], [1, 1, 1, 1]] {
            let x = [1.5, 0.5, -1.25, 2.0];
            let (dx, bytes, _) = run(&session, &gradient(&session, STEPS, Mode::Reverse), &x, &rows);
            let (again, kept, reserved) = run(&session, &lasting, &x, &rows);
            for (i, (&x, &rows)) in x.iter().zip(&rows).enumerate() {
                let expected = expected(x, rows);
                assert!((dx[i] - expected).abs() < 1e-12, "{arch:?}: {} is not {expected}", dx[i]);
            }
            assert_eq!((again, kept), (dx, bytes), "{arch:?} {rows:?}");
            let most = rows.into_iter().max().unwrap_or(0).max(0) as u64;
            // An iteration whose loop does not run keeps nothing.
            let keep = rows.into_iter().filter(|&steps| steps > 0).count() as u64;
            if arch == Arch::Remote {
                assert_eq!(bytes, most * keep * 8, "{rows:?}");
                assert!((bytes..=1 << 30).contains(&reserved), "{rows:?}: {reserved}");
            } else {
                assert_eq!(reserved, 0, "{arch:?} {rows:?}");
            }
        }
    }
}

/// On a device that runs work later, launches have memory for whatever they may need.
#[test]
fn the_host_waits_for_no_launch_of_a_gradient() {
    let capabilities = Capabilities::STREAMS | Capabilities::DEVICE_BOUNDS;
    let device = Arc::new(NullDevice::with_capabilities(capabilities));
    let limits = SessionOptions { tape_memory_limit: Some(1 << 16), ..SessionOptions::default() };
    let session = Session::over_null(device.clone(), limits);
    let gradient = gradient(&session, STEPS, Mode::Reverse);
    let array = |scalar| NdArray::new(&session, scalar, &[4]).unwrap();
    let (f64s, i32s) = (Scalar::F64.into(), Scalar::I32.into());
    let arrays = [f64s, f64s, i32s, f64s, f64s].map(array);
    let trace = || {
        device.take_trace();
        let invocation = Invocation::new(gradient.kernel());
        let invocation = arrays.iter().fold(invocation, |invocation, array| invocation.array(array).unwrap());
        invocation.launch_gradient(&gradient, &NEVER).unwrap();
        let setup = ["load_module", "allocate_shared", "create_event", "record_event"];
        let trace = device.take_trace().into_iter();
        trace.filter(|line| !setup.iter().any(|word| line.starts_with(word))).collect::<Vec<_>>()
    };
    let launch = [
        "allocate_scratch 28 on 0",
        "fill 28 with [00] on 0",
        "launch steps_grad_sizes_t0 once on 0",
        "launch steps_grad_sizes_t1 0..4 on 0",
        "allocate_scratch 65536 on 0",
        "allocate_scratch 8 on 0",
        "fill 8 with [00] on 0",
        "launch steps_grad_t0 once on 0",
        "launch steps_grad_t1 0..i32 at temps + 0 on 0",
        "free_scratch 8 on 0",
        "free_scratch 65536 on 0",
        "free_scratch 28 on 0",
    ];
    assert_eq!(trace(), launch);
    assert_eq!(trace(), launch);
}

/// What a run keeps of `steps` squares in place of each element, or of `rows[i]`.
fn squares(bound: &str) -> String {
    format!(
        r#"kernel @squares(%0 "x": array<f64, 1>, %1 "rows": array<i32, 1>, %2 "steps": i32) {{
  %3: i32 = const 0
  %4: i32 = extent 0 %0
  parallel_for (%5: i32) in (%3..%4) {{
    {bound}
    for %7: i32 in %3..%6 carry () {{
      %8: f64 = load %0[%5]
      %9: f64 = mul %8, %8
      store %0[%5], %9
      yield
    }}
  }}
  return
}}"#
    )
}

/// The host computes what follows from arguments and shapes; what stands in memory, the device.
#[test]
fn the_host_waits_for_no_record_whose_size_follows_from_arguments() {
    for (bound, waits) in [("%6: i32 = max %2, %3", false), ("%6: i32 = load %1[%5]", true)] {
        let device = Arc::new(NullDevice::with_capabilities(Capabilities::STREAMS));
        let session = Session::over_null(device.clone(), SessionOptions::default());
        let storage = [Storage::Companion(None), Storage::Constant, Storage::Constant];
        let kernel = parse(&squares(bound)).unwrap();
        let plan = session.record(&kernel, &storage, Left::Nothing, &NEVER).unwrap().unwrap();
        let (recorder, _) = plan.recorder.expect("it overwrites what it needs");
        let x = NdArray::new(&session, Scalar::F64.into(), &[4]).unwrap();
        let rows = NdArray::new(&session, Scalar::I32.into(), &[4]).unwrap();
        for steps in [3, 0, 5] {
            device.take_trace();
            let invocation = Invocation::new(recorder.kernel()).array(&x).unwrap().array(&rows).unwrap();
            let invocation = invocation.scalar(&[Const::i32(steps)]).unwrap();
            let record = invocation.begin_record(&recorder, &NEVER).unwrap();
            let trace = device.take_trace();
            let is_of_device = |line: &String| line.starts_with("launch") || line.starts_with("copy_to_host");
            assert_eq!(trace.iter().any(is_of_device), waits, "{trace:?}");
            if !waits {
                assert_eq!(record.bytes(), 4 * 8 * steps as u64);
            }
        }
    }
}

#[test]
fn forward_mode_does_what_the_kernel_does_and_more() {
    for arch in DEVICES {
        let session = session(arch);
        let gradient = gradient(&session, STEPS, Mode::Forward);
        assert!(gradient.kept().is_empty());
        let (x, y) = (listed(&session, Scalar::F64, &[1.5, 0.5]), filled(&session, Scalar::F64, &[2], 0.0));
        let (dx, dy) = (filled(&session, Scalar::F64, &[2], 1.0), filled(&session, Scalar::F64, &[2], 7.0));
        let rows = listed(&session, Scalar::I32, &[2.0, 0.0]);
        let mut invocation = Invocation::new(gradient.kernel());
        for array in [&x, &y, &rows, &dx, &dy] {
            invocation = invocation.array(array).unwrap();
        }
        invocation.launch_gradient(&gradient, &NEVER).unwrap();
        assert_eq!((values(&y), values(&dy)), (vec![0.632_812_5, 0.5], vec![1.6875, 1.0]), "{arch:?}");
    }
}

/// Many iterations, so that they are shared out; a nest, whose tapes are made anew in each outer iteration.
#[test]
fn threads_and_lanes_keep_what_is_their_own() {
    const NEST: &str = r#"kernel @nest(%0 "x": array<f64, 1>, %1 "y": array<f64, 1>, %2 "rows": array<i32, 1>) {
      %3: i32 = const 0
      %4: i32 = extent 0 %0
      %5: f64 = const 0.5
      %6: f64 = const 1.0
      parallel_for (%7: i32) in (%3..%4) {
        %8: f64 = load %0[%7]
        %9: i32 = load %2[%7]
        %10: f64 = for %11: i32 in %3..%9 carry (%12: f64 = %8) {
          %13: f64 = for %14: i32 in %3..%11 carry (%15: f64 = %12) {
            %16: f64 = sin %15
            %17: f64 = mul %16, %15
            %18: f64 = add %17, %5
            yield %18
          }
          %19: f64 = mul %13, %5
          %20: f64 = add %19, %8
          yield %20
        }
        %21: f64 = mul %10, %10
        store %1[%7], %21
      }
      return
    }"#;
    let count = 10_007;
    let x: Vec<_> = (0..count).map(|i| f64::from(i % 1009) / 500.0 - 1.0).collect();
    let rows: Vec<_> = (0..count).map(|i| i * 7 % 9).collect();
    let run_on = |arch, count: usize| {
        let session = session(arch);
        let gradient = gradient(&session, NEST, Mode::Reverse);
        run(&session, &gradient, &x[..count], &rows[..count]).0
    };
    let (few, placed, all) =
        (run_on(Arch::Reference, 40), run_on(Arch::Remote, 40), run_on(Arch::Cpu, x.len()));
    assert_eq!(few, placed);
    for (i, (a, b)) in few.iter().zip(&all).enumerate() {
        assert!((a - b).abs() < 1e-9 * (1.0 + a.abs()), "{i}: {a} and {b}");
    }
    // The same inputs have the same gradient, whichever thread has them.
    let again = |i: usize| (0..i).rev().find(|&j| x[j] == x[i] && rows[j] == rows[i]);
    for i in 9081..9200 {
        if let Some(j) = again(i) {
            assert!((all[i] - all[j]).abs() < 1e-9 * (1.0 + all[i].abs()), "{i} and {j}");
        }
    }
}

#[test]
fn what_cannot_be_right_is_refused_with_both_places() {
    const IN_PLACE: &str = r#"kernel @k(%0 "x": array<f64, 1>, %1 "y": array<f64, 1>, %2 "n": array<i32, 1>) {
      %3: i32 = const 0
      %4: i32 = extent 0 %0
      parallel_for (%5: i32) in (%3..%4) {
        %6: f64 = load %0[%5]
        %7: f64 = sin %6
        store %0[%5], %7
      }
      return
    }"#;
    let session = session(Arch::Cpu);
    let storage = [Storage::Companion(None), Storage::Companion(None), Storage::Constant];
    let kernel = parse(IN_PLACE).unwrap();
    let Err(refusals) = session.differentiate(&kernel, Mode::Reverse, &storage, &NEVER).unwrap() else {
        panic!("it is refused")
    };
    let [refusal] = refusals[..] else { panic!("{refusals:?}") };
    assert_eq!((refusal.kind, refusal.param), (RefusalKind::Overwritten, Some(0)));
    assert!(refusal.other.is_some());
    // Forward mode needs nothing of before.
    assert!(session.differentiate(&kernel, Mode::Forward, &storage, &NEVER).unwrap().is_ok());
}

#[test]
fn arrays_that_overlap_are_refused_if_one_is_written() {
    for arch in DEVICES {
        let session = session(arch);
        let gradient = gradient(&session, STEPS, Mode::Reverse);
        let (x, d) = (filled(&session, Scalar::F64, &[4], 1.0), filled(&session, Scalar::F64, &[4], 1.0));
        let rows = filled(&session, Scalar::I32, &[4], 2.0);
        let mut invocation = Invocation::new(gradient.kernel());
        for array in [&x, &x, &rows, &d, &d] {
            invocation = invocation.array(array).unwrap();
        }
        let error = invocation.launch_gradient(&gradient, &NEVER).unwrap_err();
        assert!(error.to_string().contains("overlap"), "{arch:?}: {error}");
        assert_eq!(values(&d), [1.0; 4]);
    }
}
