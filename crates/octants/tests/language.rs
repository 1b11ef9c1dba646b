//! Prints, random numbers, functions, tensors and structs through the whole facade, on each device and at each level.

mod programs;

use std::time::{Duration, Instant};

use octants::ir::{Const, Kernel, KernelOptions, LocData, Scalar, text};
use octants::{Arch, HostQueue, Invocation, LaunchError, NdArray, Session, SessionOptions};
use programs::{NEVER, compile, filled, session, values};

fn kernel(source: &str) -> Kernel {
    text::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"))
}

/// Debug mode, exact.
const DEBUG: KernelOptions = KernelOptions { debug: true, fast_math: false, exact_choices: false };

/// Native code at both levels, on one thread and on several, and the interpreter.
fn sessions(options: SessionOptions) -> Vec<Session> {
    let options = SessionOptions { kernel: KernelOptions { fast_math: false, ..options.kernel }, ..options };
    let forms = [(Arch::Cpu, 1, 4), (Arch::Cpu, 0, 1), (Arch::Cpu, 1, 1), (Arch::Reference, 1, 1)];
    forms
        .into_iter()
        .map(|(arch, opt_level, threads)| {
            Session::new(SessionOptions { arch, opt_level, threads, ..options }).unwrap()
        })
        .collect()
}

fn nowhere(loc: &LocData) -> String {
    loc.span.map_or("nowhere".to_owned(), |span| format!("file{}:{}", span.file.0, span.start))
}

#[test]
fn what_is_printed_comes_in_order_and_whole() {
    let source = r#"
        struct0 = struct "Unused" { "a": f32 }
        func0 = function @show(%fa "a": i32) { print "in a function: {}\n", %fa  return }
        kernel @talk(%n "n": i32, %v "v": tensor<f32, 2>, %m "m": tensor<i8, 2, 2>, %b "b": u1, %h "h": f16, %d "d": f64,
                     %u "u": u64) {
          print "{} {:.2f} {}\n", %n, %v, %m
          print "{} {} {} {:x} {{}}\n", %b, %h, %d, %u
          %zero: i32 = const 0
          call func0 %n
          parallel_for (%i: i32) in (%zero..%n) { print "{:04d};", %i }
          print "\n"
          return
        }"#;
    for session in sessions(SessionOptions::default()) {
        let talk = compile(&session, kernel(source));
        assert!(talk.prints());
        let (text, ended) = Invocation::new(&talk)
            .scalar(&[Const::i32(300)])
            .unwrap()
            .scalar(&[Const::f32(1.5), Const::f32(-0.126)])
            .unwrap()
            .scalar(&[1, -2, 3, -4].map(|v| Const::from_i128(Scalar::I8, v)))
            .unwrap()
            .scalar(&[Const::bool(true)])
            .unwrap()
            .scalar(&[Const::from_f64(Scalar::F16, 0.5)])
            .unwrap()
            .scalar(&[Const::f64(0.1)])
            .unwrap()
            .scalar(&[Const::from_bits(Scalar::U64, u64::MAX)])
            .unwrap()
            .launch_printing(&NEVER, &nowhere);
        ended.unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "300 [1.50, -0.13] [[1, -2], [3, -4]]");
        assert_eq!(lines[1], "1 0.500000 0.100000000000 ffffffffffffffff {}");
        assert_eq!(lines[2], "in a function: 300");
        let mut iterations: Vec<_> = lines[3].split_terminator(';').collect();
        iterations.sort_unstable();
        assert_eq!(iterations, (0..300).map(|i| format!("{i:04}")).collect::<Vec<_>>());
        assert_eq!(lines.len(), 4);
    }
}

#[test]
fn what_was_printed_before_a_failure_is_there() {
    let source = r#"kernel @fails(%n "n": i32) {
          %zero: i32 = const 0
          %one: i32 = const 1
          for %i: i32 in %zero..%n {
            print "{} ", %i
            %ok: u1 = lt %i, %one
            assert %ok, "stopped at {}", %i
          }
          return
        }"#;
    for session in sessions(SessionOptions::default()) {
        let fails = compile(&session, kernel(source));
        let invocation = Invocation::new(&fails).scalar(&[Const::i32(5)]).unwrap();
        let (text, ended) = invocation.launch_printing(&NEVER, &nowhere);
        assert_eq!(text, "0 1 ");
        let Err(LaunchError::Fault(fault)) = ended else { panic!("{ended:?}") };
        assert_eq!(fault.message, "stopped at 1");
    }
}

const DRAWS: &str = r#"
    func0 = function @pair() -> (f64, u32) {
      %fx: f64 = random
      %fy: u32 = random
      return %fx, %fy
    }
    kernel @draw(%a "a": array<f32, 2>, %b "b": array<f64, 1>, %c "c": array<i64, 1>) -> (f32, f64, u8) {
      %zero: i32 = const 0
      %n: i32 = extent 0 %a
      %m: i32 = extent 1 %a
      %first: f32 = random
      parallel_for (%i: i32, %j: i32) in (%zero..%n, %zero..%m) {
        %u: f32 = random
        store %a[%i, %j], %u
      }
      %k: i32 = extent 0 %b
      parallel_for (%p: i32) in (%zero..%k) {
        %five: i32 = const 5
        %times: i32 = mod %p, %five
        %none: f64 = const 0.0
        %s: f64 = for %t: i32 in %zero..%times carry (%acc: f64 = %none) {
          %x: f64, %y: u32 = call func0
          %z: f64 = add %acc, %x
          yield %z
        }
        store %b[%p], %s
        %w: i64 = random
        store %c[%p], %w
      }
      parallel_for (%q: i32) in (%zero..%k) {
        %nine: i32 = const 9
        %often: i32 = mod %q, %nine
        %nothing: f64 = const 0.0
        %many: f64 = for %v: i32 in %zero..%often carry (%has: f64 = %nothing) {
          %small: f32 = random
          %large: f64 = random
          %wide: f64 = cast %small
          %both: f64 = mul %wide, %large
          %sum: f64 = add %has, %both
          yield %sum
        }
        %there: f64 = load %b[%q]
        %all: f64 = add %there, %many
        store %b[%q], %all
      }
      %second: f64 = random
      %third: u8 = random
      return %first, %second, %third
    }"#;

/// What one launch of [`DRAWS`] leaves.
fn draw(session: &Session, launches: usize) -> (Vec<Const>, Vec<Vec<f64>>) {
    let draws = compile(session, kernel(DRAWS));
    let a = filled(session, Scalar::F32, &[30, 41], 0.0);
    let (b, c) = (filled(session, Scalar::F64, &[500], 0.0), filled(session, Scalar::I64, &[500], 0.0));
    let mut results = Vec::new();
    for _ in 0..launches {
        let invocation = Invocation::new(&draws).array(&a).unwrap().array(&b).unwrap().array(&c).unwrap();
        results = invocation.launch(&NEVER).unwrap();
    }
    (results, vec![values(&a), values(&b), values(&c)])
}

#[test]
fn random_numbers_follow_from_seed_and_launch_alone() {
    let seeded = SessionOptions { random_seed: 7, ..SessionOptions::default() };
    let all: Vec<_> = sessions(seeded).iter().map(|session| draw(session, 1)).collect();
    assert!(all.iter().all(|one| *one == all[0]), "threads, levels and devices agree");
    let again = draw(&sessions(seeded)[0], 1);
    let second = draw(&sessions(seeded)[0], 2);
    let other = draw(&sessions(SessionOptions { random_seed: 8, ..seeded })[0], 1);
    assert!(again == all[0] && second != all[0] && other != all[0]);
    for (index, numbers) in all[0].1.iter().enumerate() {
        let mut sorted = numbers.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.dedup();
        // A real of 24 bits is drawn twice now and then; one in 45 sums is of no numbers.
        let fewest = [numbers.len() - 3, 480, numbers.len()][index];
        assert!(sorted.len() >= fewest, "{} of {}", sorted.len(), numbers.len());
    }
    assert!(all[0].1[0].iter().all(|&x| (0.0..1.0).contains(&x)));
    let mean = all[0].1[0].iter().sum::<f64>() / 1230.0;
    // The mean of so many uniform numbers has a standard deviation of 0.0082.
    assert!((mean - 0.5).abs() < 0.033, "{mean}");
}

#[test]
fn functions_call_themselves_and_each_other_and_change_what_they_are_passed() {
    let source = r#"
        func0 = function @fib(%n "n": i32, %calls "calls": local<i32>) -> (i32) {
          %one: i32 = const 1
          %count: i32 = load %calls
          %more: i32 = add %count, %one
          store %calls, %more
          %two: i32 = const 2
          %small: u1 = lt %n, %two
          %r: i32 = if %small { yield %n } else {
            %a: i32 = sub %n, %one
            %b: i32 = sub %n, %two
            %x: i32 = call func0 %a, %calls
            %y: i32 = call func0 %b, %calls
            %z: i32 = add %x, %y
            yield %z
          }
          return %r
        }
        func1 = function @is_even(%en "n": i32) -> (u1) {
          %ez: i32 = const 0
          %e0: u1 = eq %en, %ez
          %er: u1 = if %e0 { yield %e0 } else {
            %e1: i32 = const 1
            %em: i32 = sub %en, %e1
            %eo: u1 = call func2 %em
            yield %eo
          }
          return %er
        }
        func2 = function @is_odd(%on "n": i32) -> (u1) {
          %oz: i32 = const 0
          %o0: u1 = eq %on, %oz
          %or: u1 = if %o0 { %no: u1 = const false  yield %no } else {
            %o1: i32 = const 1
            %om: i32 = sub %on, %o1
            %oe: u1 = call func1 %om
            yield %oe
          }
          return %or
        }
        func3 = function @put(%pa "a": array<i32, 1>, %pi "i": i32, %pv "v": tensor<i32, 2>, %pm "m": local<tensor<i32, 2>>) -> (tensor<i32, 2>) {
          %p0: i32 = const 0
          %p1: i32 = const 1
          %px: i32 = tensor_get %pv[%p1]
          store %pa[%pi], %px
          %old: tensor<i32, 2> = load %pm
          store %pm[%p0], %px
          return %old
        }
        kernel @all(%arr "a": array<i32, 1>, %ev "b": array<u1, 1>) -> (i32, i32, tensor<i32, 2>, tensor<i32, 2>) {
          %calls0: local<i32> = local
          %nine: i32 = const 9
          %f: i32 = call func0 %nine, %calls0
          %zero: i32 = const 0
          %len: i32 = extent 0 %arr
          parallel_for (%i: i32) in (%zero..%len) {
            %l: local<i32> = local
            %fi: i32 = call func0 %i, %l
            %c: i32 = load %l
            %pair: tensor<i32, 2> = tensor %fi, %c
            %place: local<tensor<i32, 2>> = local
            %before: tensor<i32, 2> = call func3 %arr, %i, %pair, %place
            %even: u1 = call func1 %i
            store %ev[%i], %even
          }
          %total: i32 = load %calls0
          %kept: local<tensor<i32, 2>> = local
          %both: tensor<i32, 2> = tensor %f, %total
          %was: tensor<i32, 2> = call func3 %arr, %zero, %both, %kept
          %is: tensor<i32, 2> = load %kept
          return %f, %total, %was, %is
        }"#;
    for session in sessions(SessionOptions::default()) {
        let all = compile(&session, kernel(source));
        let (a, b) = (filled(&session, Scalar::I32, &[12], 0.0), filled(&session, Scalar::U1, &[12], 0.0));
        let results = Invocation::new(&all).array(&a).unwrap().array(&b).unwrap().launch(&NEVER).unwrap();
        assert_eq!(results, [34, 109, 0, 0, 109, 0].map(Const::i32));
        // The number of calls is 2 fib(n + 1) - 1.
        assert_eq!(values(&a)[..7], [109.0, 1.0, 3.0, 5.0, 9.0, 15.0, 25.0]);
        assert_eq!(values(&b)[..4], [1.0, 0.0, 1.0, 0.0]);
    }
}

#[test]
fn endless_recursion_is_a_failure_and_the_session_lives_on() {
    let source = r#"
        loc0 = 0:10..20 in "down"
        func0 = function @down(%n "n": i32) -> (i32) {
          %one: i32 = const 1
          %m: i32 = add %n, %one
          %r: i32 = call func0 %m loc0
          %s: i32 = add %r, %one
          return %s
        }
        kernel @fall(%a "a": array<i32, 1>) {
          %zero: i32 = const 0
          %len: i32 = extent 0 %a
          parallel_for (%i: i32) in (%zero..%len) {
            %x: i32 = call func0 %i
            store %a[%i], %x
          }
          return
        }"#;
    for session in sessions(SessionOptions::default()) {
        let fall = compile(&session, kernel(source));
        let a = filled(&session, Scalar::I32, &[64], 0.0);
        for _ in 0..2 {
            let ended = Invocation::new(&fall).array(&a).unwrap().launch(&NEVER);
            let Err(LaunchError::Fault(fault)) = ended else { panic!("{ended:?}") };
            assert!(fault.message.starts_with("calls of `down` are nested too deep"), "{}", fault.message);
            assert_eq!(fault.locations[0].function.as_deref(), Some("down"));
        }
    }
}

#[test]
fn tensors_and_structs_are_arguments_results_and_elements() {
    let source = r#"
        struct0 = struct "Inner" { "flag": u1, "m": tensor<f64, 2, 2> }
        struct1 = struct "Outer" { "count": i16, "inner": struct0, "v": tensor<f16, 3> }
        kernel @mix(%s "s": struct1, %m "m": tensor<f32, 2, 3>, %a "a": array<tensor<f32, 2, 3>, 1>, %i "i": i32)
            -> (struct1, tensor<f32, 2, 3>, f32) {
          %zero: i32 = const 0
          %one: i32 = const 1
          %n: i32 = extent 0 %a
          parallel_for (%k: i32) in (%zero..%n) {
            %old: tensor<f32, 2, 3> = load %a[%k]
            %new: tensor<f32, 2, 3> = add %old, %m
            store %a[%k], %new
            %row: i32 = mod %k, %i
            %x: f32 = load %a[%k, %one, %row]
            %two: f32 = const 2.0
            %y: f32 = mul %x, %two
            store %a[%k, %one, %row], %y
          }
          %c: i16 = struct_get 0 %s
          %d: i16 = add %c, %c
          %inner: struct0 = struct_get 1 %s
          %flag: u1 = struct_get 0 %inner
          %not: u1 = not %flag
          %mm: tensor<f64, 2, 2> = struct_get 1 %inner
          %sq: tensor<f64, 2, 2> = mul %mm, %mm
          %fresh: struct0 = struct_new %not, %sq
          %s1: struct1 = struct_set 0 %s, %d
          %s2: struct1 = struct_set 1 %s1, %fresh
          %l: local<tensor<f32, 2, 3>> = local
          store %l, %m
          %e: f32 = load %l[%one, %i]
          %g: f32 = tensor_get %m[%zero, %i]
          %sum: f32 = add %e, %g
          %last: i32 = sub %n, %one
          %r: tensor<f32, 2, 3> = load %a[%last]
          return %s2, %r, %sum
        }"#;
    let entries = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0_f32];
    for session in sessions(SessionOptions::default()) {
        let mix = compile(&session, kernel(source));
        let parsed = kernel(source);
        let matrix = parsed.ty(parsed.regions[parsed.body].params[1]).data().unwrap();
        let a = NdArray::new(&session, matrix, &[5]).unwrap();
        a.fill(&entries.map(|e| Const::f32(10.0 * e)), HostQueue::default()).unwrap();
        let f64s = [2.0, 3.0, 4.0, 5.0].map(Const::f64);
        let halves = [0.5, 1.5, -2.0].map(|h| Const::from_f64(Scalar::F16, h));
        let count = |n| Const::from_i128(Scalar::I16, n);
        let s: Vec<_> = [count(21), Const::bool(true)].into_iter().chain(f64s).chain(halves).collect();
        let results = Invocation::new(&mix)
            .scalar(&s)
            .unwrap()
            .scalar(&entries.map(Const::f32))
            .unwrap()
            .array(&a)
            .unwrap()
            .scalar(&[Const::i32(2)])
            .unwrap()
            .launch(&NEVER)
            .unwrap();
        let squares = [4.0, 9.0, 16.0, 25.0].map(Const::f64);
        let expected: Vec<_> = [count(42), Const::bool(false)]
            .into_iter()
            .chain(squares)
            .chain(halves)
            .chain([11.0, 22.0, 33.0, 88.0, 55.0, 66.0, 9.0].map(Const::f32))
            .collect();
        assert_eq!(results, expected);
        assert_eq!(
            a.get(&[1], HostQueue::default()).unwrap(),
            [11.0, 22.0, 33.0, 44.0, 110.0, 66.0].map(Const::f32)
        );
    }
}

#[test]
fn overflow_is_told_of_in_debug_mode_only() {
    let source = r#"
        loc0 = 3:40..50 in "f"
        kernel @over(%a "a": i32, %b "b": i32, %c "c": u64, %d "d": i64, %s "s": i32) -> (i32, i32, i64, i32, u64, i64) {
          %p: i32 = add %a, %b loc0
          %q: i32 = mul %a, %b loc0
          %r: i64 = sub %d, %d loc0
          %t: i32 = shl %a, %s loc0
          %u: u64 = sub %c, %c loc0
          %one: u64 = const 1
          %v: u64 = add %c, %one loc0
          %w: i64 = mul %d, %d loc0
          %x: i64 = neg %d
          %y: i64 = sub %x, %d loc0
          %tiny: i8 = cast %a
          %z: i8 = add %tiny, %tiny loc0
          return %p, %q, %y, %t, %v, %w
        }"#;
    let lines = |session: &Session, values: [Const; 5]| {
        let over = compile(session, kernel(source));
        let mut invocation = Invocation::new(&over);
        for value in values {
            invocation = invocation.scalar(&[value]).unwrap();
        }
        let (text, ended) = invocation.launch_printing(&NEVER, &nowhere);
        ended.unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (u64, i64) =
        (|v: u64| Const::from_bits(Scalar::U64, v), |v: i64| Const::from_bits(Scalar::I64, v as u64));
    let large = [Const::i32(i32::MAX), Const::i32(2), u64(u64::MAX), i64(i64::MIN), Const::i32(1)];
    let small = [Const::i32(7), Const::i32(-2), u64(5), i64(-3), Const::i32(3)];
    let told = |name: &str| format!("{name} overflow detected in file3:40");
    let all: Vec<_> =
        ["Addition", "Multiplication", "Shift left", "Addition", "Multiplication"].map(told).to_vec();
    for session in sessions(SessionOptions { kernel: DEBUG, ..SessionOptions::default() }) {
        assert_eq!(lines(&session, large), all, "{:?}", session.options());
        assert_eq!(lines(&session, small), [""; 0]);
        let subtracted = [Const::i32(0), Const::i32(0), u64(0), i64(i64::MAX), Const::i32(0)];
        assert_eq!(lines(&session, subtracted), ["Multiplication", "Subtraction"].map(told));
    }
    assert_eq!(lines(&session(Arch::Cpu), large), [""; 0]);

    let power = r#"loc0 = 0:1..2
        kernel @power(%a "a": i32, %b "b": i32) -> (i32) { %c: i32 = pow %a, %b loc0  return %c }"#;
    for session in sessions(SessionOptions { kernel: DEBUG, ..SessionOptions::default() }) {
        let power = compile(&session, kernel(power));
        let raise = |exponent| {
            let invocation = Invocation::new(&power).scalar(&[Const::i32(3)]).unwrap();
            invocation.scalar(&[Const::i32(exponent)]).unwrap().launch(&NEVER)
        };
        assert_eq!(raise(4).unwrap(), [Const::i32(81)]);
        let Err(LaunchError::Fault(fault)) = raise(-1) else { panic!("a negative exponent is a mistake") };
        assert!(fault.message.contains("negative: -1"));
    }
}

/// A parallel loop of few long iterations, each with a loop inside, ends soon after it is told to.
#[test]
fn a_parallel_loop_of_long_iterations_is_cancelled() {
    let source = r#"kernel @long(%a "a": array<i32, 1>, %m "m": i32) {
          %zero: i32 = const 0
          %len: i32 = extent 0 %a
          parallel_for (%i: i32) in (%zero..%len) {
            for %j: i32 in %zero..%m {
              %old: i32 = atomic_add %a[%i], %j
            }
          }
          return
        }"#;
    for threads in [1, 3] {
        let session = Session::new(SessionOptions { threads, ..SessionOptions::default() }).unwrap();
        let long = compile(&session, kernel(source));
        let a = filled(&session, Scalar::I32, &[1 << 22], 0.0);
        let cancel = octants::Cancel::new();
        let begin = Instant::now();
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                cancel.raise();
            });
            let invocation = Invocation::new(&long).array(&a).unwrap();
            invocation.scalar(&[Const::i32(1_000_000)]).unwrap().launch(&cancel)
        });
        assert!(matches!(ended, Err(LaunchError::Cancelled)), "{ended:?}");
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    }
}
