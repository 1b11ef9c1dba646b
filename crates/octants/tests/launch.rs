//! Kernels through the whole facade: compiled, launched and looked at, on each device.

mod programs;

use std::sync::Arc;
use std::time::{Duration, Instant};

use octants::ir::{Const, Id, Kernel, Loc, LocData, Scalar};
use octants::{Arch, Dump, Error, HostQueue, Invocation, LaunchError, NdArray, Session, SessionOptions};
use programs::{NEVER, compile, filled, listed, session, values};

const RUNNING: [Arch; 2] = [Arch::Cpu, Arch::Reference];

#[test]
fn saxpy_sum_and_stencil_give_what_they_say() {
    let plain = SessionOptions { opt_level: 0, threads: 1, ..SessionOptions::default() };
    let sessions = [session(Arch::Cpu), session(Arch::Reference), Session::new(plain).unwrap()];
    for session in sessions {
        let arch = session.options().arch;
        let n = if arch == Arch::Cpu { 100_003 } else { 1003 };
        let (x, y) = (filled(&session, Scalar::F32, &[n], 3.0), filled(&session, Scalar::F32, &[n], 1.0));
        let saxpy = compile(&session, programs::saxpy());
        let invocation = Invocation::new(&saxpy).scalar(&[Const::f32(2.0)]).unwrap();
        invocation.array(&x).unwrap().array(&y).unwrap().launch(&NEVER).unwrap();
        assert!(values(&y).iter().all(|&v| v == 7.0) && values(&x).iter().all(|&v| v == 3.0), "{arch:?}");

        let sum = compile(&session, programs::sum());
        let v = listed(&session, Scalar::I64, &(0..n).map(f64::from).collect::<Vec<_>>());
        let results = Invocation::new(&sum).array(&v).unwrap().launch(&NEVER).unwrap();
        let expected = i128::from(n) * (i128::from(n) - 1) / 2;
        assert_eq!(results, [Const::from_i128(Scalar::I64, expected), Const::i32(n)], "{arch:?}");

        let stencil = compile(&session, programs::stencil());
        let (rows, columns) = (33, 70);
        let a = filled(&session, Scalar::F64, &[rows, columns], 1.0);
        let out = filled(&session, Scalar::F64, &[rows, columns], -1.0);
        a.set(&[5, 7], &[Const::f64(9.0)], HostQueue::default()).unwrap();
        Invocation::new(&stencil).array(&a).unwrap().array(&out).unwrap().launch(&NEVER).unwrap();
        for i in 0..i64::from(rows) {
            for j in 0..i64::from(columns) {
                let border = i == 0 || j == 0 || i == i64::from(rows) - 1 || j == i64::from(columns) - 1;
                let expected = match ((i - 5).abs() + (j - 7).abs(), border) {
                    (_, true) => -1.0,
                    (1, false) => 3.0,
                    (_, false) => 1.0,
                };
                assert_eq!(
                    out.get(&[i, j], HostQueue::default()).unwrap(),
                    [Const::f64(expected)],
                    "{arch:?} at {i}, {j}"
                );
            }
        }
    }
}

/// Two branches, of which one computes the bound of its loop; what one of them sums is known after the fork.
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
    print "{} iterations\n", %7
    parallel_for (%8: i32) in (%4..%7) {
      %9: i32 = atomic_add %1[%8], %2
    }
  }
  %10: i32 = load %3
  return %10
}"#;

#[test]
fn branches_of_a_fork_run_their_own_tasks() {
    for arch in RUNNING {
        let session = session(arch);
        let fork = compile(&session, octants::ir::text::parse(FORK).unwrap());
        let a = filled(&session, Scalar::I32, &[1000], -1.0);
        let b = filled(&session, Scalar::I32, &[5], 3.0);
        let invocation = Invocation::new(&fork).array(&a).unwrap().array(&b).unwrap();
        let (text, results) =
            invocation.scalar(&[Const::i32(1000)]).unwrap().launch_printing(&NEVER, &|_| String::new());
        assert_eq!(results.unwrap(), [Const::i32(499_500)], "{arch:?}");
        assert_eq!(text, "3 iterations\n");
        assert_eq!(values(&a), (0..1000).map(f64::from).collect::<Vec<_>>());
        assert_eq!(values(&b), [1003.0, 1003.0, 1003.0, 3.0, 3.0]);
    }
}

#[test]
fn empty_arrays_and_loops_without_iterations_do_nothing() {
    for arch in RUNNING {
        let session = session(arch);
        let saxpy = compile(&session, programs::saxpy());
        let (x, y) = (filled(&session, Scalar::F32, &[0], 0.0), filled(&session, Scalar::F32, &[0], 0.0));
        let invocation = Invocation::new(&saxpy).scalar(&[Const::f32(2.0)]).unwrap();
        invocation.array(&x).unwrap().array(&y).unwrap().launch(&NEVER).unwrap();
        let sum = compile(&session, programs::sum());
        let v = filled(&session, Scalar::I64, &[0], 0.0);
        let results = Invocation::new(&sum).array(&v).unwrap().launch(&NEVER).unwrap();
        assert_eq!(results, [Const::from_i128(Scalar::I64, 0), Const::i32(0)]);
        let stencil = compile(&session, programs::stencil());
        let a = filled(&session, Scalar::F64, &[1, 5], 1.0);
        Invocation::new(&stencil).array(&a).unwrap().array(&a).unwrap().launch(&NEVER).unwrap();
    }
}

#[test]
fn overlapping_arrays_run_the_version_that_allows_it() {
    let session = session(Arch::Cpu);
    let shift = compile(&session, programs::shift());
    let (x, y) = (listed(&session, Scalar::I32, &[1.0, 2.0, 3.0]), filled(&session, Scalar::I32, &[3], 0.0));
    Invocation::new(&shift).array(&x).unwrap().array(&y).unwrap().launch(&NEVER).unwrap();
    assert_eq!(values(&y), [0.0, 1.0, 2.0]);
    assert!(!shift.has_overlapping_version(), "made only when it is needed");
    // In order, the first element runs through all of the array; code that assumes two arrays would copy it once.
    let n = 1000;
    let both = listed(&session, Scalar::I32, &(0..n).map(f64::from).map(|v| v + 5.0).collect::<Vec<_>>());
    Invocation::new(&shift).array(&both).unwrap().array(&both).unwrap().launch(&NEVER).unwrap();
    assert_eq!(values(&both), vec![5.0; n as usize]);
    assert!(shift.has_overlapping_version());
}

#[test]
fn a_failed_assertion_tells_its_arguments_and_where_it_stands() {
    for arch in RUNNING {
        let session = session(arch);
        let mut kernel = programs::check_positive();
        locate_assert(&mut kernel);
        let check = compile(&session, kernel);
        let x = filled(&session, Scalar::F32, &[1000], 1.0);
        x.set(&[700], &[Const::f32(-0.1)], HostQueue::default()).unwrap();
        let error = Invocation::new(&check).array(&x).unwrap().launch(&NEVER).unwrap_err();
        let LaunchError::Fault(fault) = error else { panic!("{arch:?}: {error:?}") };
        assert_eq!(fault.message, "x[700] is -0.1");
        assert_eq!(&*fault.kernel, "check_positive");
        assert_eq!(fault.arguments, [Const::i32(700), Const::f32(-0.1)]);
        let functions: Vec<_> = fault.locations.iter().map(|loc| loc.function.as_deref()).collect();
        assert_eq!(functions, [Some("inner"), Some("outer")], "{arch:?}");
        // The session goes on, and the next launch starts clean.
        x.fill(&[Const::f32(1.0)], HostQueue::default()).unwrap();
        Invocation::new(&check).array(&x).unwrap().launch(&NEVER).unwrap();
        assert_eq!(values(&x), vec![2.0; 1000]);
    }
}

#[test]
fn the_reference_device_checks_every_index() {
    let session = session(Arch::Reference);
    let shift = compile(&session, programs::shift());
    let (x, y) = (filled(&session, Scalar::I32, &[5], 1.0), filled(&session, Scalar::I32, &[3], 0.0));
    let error = Invocation::new(&shift).array(&x).unwrap().array(&y).unwrap().launch(&NEVER).unwrap_err();
    assert_eq!(
        error.to_string(),
        "index 3 is out of bounds for axis 0 of `y`, which has size 3 (in kernel `shift`)"
    );
    assert_eq!(values(&y), [0.0, 1.0, 1.0], "what was written before stays");
}

/// Puts the assertion into `inner`, called by `outer`.
fn locate_assert(kernel: &mut Kernel) {
    let place = |function: &str, caller| LocData { span: None, function: Some(function.into()), caller };
    let outer = kernel.intern_loc(place("outer", None));
    let inner = kernel.intern_loc(place("inner", Some(outer)));
    let asserts: Vec<_> = kernel
        .ops
        .iter()
        .filter(|(_, op)| matches!(op.kind, octants::ir::OpKind::Assert(..)))
        .map(|(id, _)| id)
        .collect();
    assert_ne!(inner, Loc::from_index(0));
    for op in asserts {
        kernel.ops[op].loc = inner;
    }
}

#[test]
fn raising_the_flag_ends_a_kernel_that_never_would() {
    for arch in RUNNING {
        let session = session(arch);
        let endless = compile(&session, programs::endless());
        let x = filled(&session, Scalar::I32, &[1], 0.0);
        let cancel = octants::Cancel::new();
        let begin = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                cancel.raise();
            });
            let error = Invocation::new(&endless).array(&x).unwrap().launch(&cancel).unwrap_err();
            assert!(matches!(error, LaunchError::Cancelled), "{arch:?}: {error:?}");
        });
        assert!(begin.elapsed() < Duration::from_secs(20));
        // A flag that was up before ends a compilation, too.
        let error = session.compile(programs::sum(), Duration::ZERO, &cancel).map(drop);
        if arch == Arch::Cpu {
            assert!(matches!(error, Err(Error::Cancelled)), "{error:?}");
        }
        compile(&session, programs::sum());
    }
}

#[test]
fn the_null_device_is_told_the_tasks_in_order() {
    let device = Arc::new(octants_hal::null::NullDevice::new());
    let session = Session::over_null(device.clone(), SessionOptions::default());
    let sum = compile(&session, programs::sum());
    let x = NdArray::new(&session, Scalar::I64.into(), &[64]).unwrap();
    device.take_trace();
    Invocation::new(&sum).array(&x).unwrap().launch(&NEVER).unwrap();
    let launches: Vec<_> =
        device.take_trace().into_iter().filter(|line| line.starts_with("launch")).collect();
    assert_eq!(launches, ["launch sum_t0 0..64 on 0", "launch sum_t1 once on 0"]);
    assert!(matches!(x.host_pointer(), Err(Error::Unsupported { .. })));
}

#[test]
fn equal_ir_is_compiled_once_and_texts_can_be_looked_at() {
    let session = session(Arch::Cpu);
    let first = compile(&session, programs::saxpy());
    assert!(Arc::ptr_eq(&first, &compile(&session, programs::saxpy())));
    let threads: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..6).map(|_| scope.spawn(|| compile(&session, programs::stencil()))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(threads.iter().all(|one| Arc::ptr_eq(one, &threads[0])));

    let statistics = first.statistics();
    assert_eq!(statistics.tasks, 1);
    assert!(
        statistics.llvm > Duration::ZERO && statistics.passes > Duration::ZERO && statistics.code_bytes > 0
    );
    let text = |what| first.dump(what).unwrap().unwrap();
    assert!(text(Dump::Ir).contains("kernel @saxpy"));
    assert!(text(Dump::IrAfterPasses).contains("parallel_for"));
    assert!(text(Dump::Llvm).contains("define") && text(Dump::Llvm).contains("fmul"));
    assert!(text(Dump::OptimisedLlvm).contains("x float>"), "the loop is vectorised");
    assert!(text(Dump::Assembly).contains("saxpy_t0"));
    let reference =
        Session::new(SessionOptions { arch: Arch::Reference, ..SessionOptions::default() }).unwrap();
    assert_eq!(compile(&reference, programs::saxpy()).dump(Dump::Assembly).unwrap(), None);
}

#[test]
fn handles_may_go_to_any_thread() {
    fn check<T: Send + Sync>() {}
    check::<Session>();
    check::<NdArray>();
    check::<octants::CompiledKernel>();
    check::<LaunchError>();
}

#[test]
fn after_a_reset_kernels_and_arrays_refuse() {
    let session = session(Arch::Cpu);
    let sum = compile(&session, programs::sum());
    let x = filled(&session, Scalar::I64, &[8], 1.0);
    let pointer = x.host_pointer().unwrap();
    session.reset();
    let stale = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Stale { .. })), "{result:?}");
    stale(Invocation::new(&sum).array(&x).map(drop));
    stale(x.fill(&[Const::from_i128(Scalar::I64, 2)], HostQueue::default()));
    stale(x.get(&[0], HostQueue::default()).map(drop));
    stale(x.host_pointer().map(drop));
    let ended = |result: Result<(), Error>| {
        let error = result.expect_err("the session has ended");
        assert!(matches!(error, Error::SessionEnded));
        assert_eq!(error.to_string(), "this session was reset");
    };
    ended(NdArray::new(&session, Scalar::F32.into(), &[1]).map(drop));
    ended(session.compile(programs::sum(), Duration::ZERO, &NEVER).map(drop));
    ended(session.sync(&octants::Cancel::new()));
    assert!(!pointer.is_null());
    // Another session neither takes it nor is disturbed.
    let next = self::session(Arch::Cpu);
    stale(x.address(&next).map(drop));
    let live = filled(&next, Scalar::I64, &[8], 1.0);
    let other = self::session(Arch::Cpu);
    assert!(matches!(live.address(&other), Err(Error::OtherSession { .. })));
    assert!(compile(&next, programs::sum()).name() == "sum");
}
