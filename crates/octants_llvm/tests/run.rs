//! Whole tasks: chunks, reductions, temporaries and results, faults, cancellation, order.

mod harness;

use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;

use harness::oracle::{Input, Random, check};
use harness::{Arg, Program};
use octants_ir::{Const, Scalar};
use octants_llvm::{CpuOptions, EmitOptions, emit};
use octants_llvm_sys::OptLevel;

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn to_f32s(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn kernel(text: &str) -> octants_ir::Kernel {
    octants_ir::text::parse(text).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

#[test]
fn arrays_that_overlap_are_seen_as_such() {
    // Without the promise that arrays do not overlap, a store to one is seen in the other.
    let text = r#"
kernel @twice(%0 "x": array<f32, 1>, %1 "y": array<f32, 1>) tasks {
  serial {
    %2: i32 = const 0
    %3: f32 = load %0[%2]
    %4: f32 = add %3, %3
    store %1[%2], %4
    %5: f32 = load %0[%2]
    %6: i32 = const 1
    store %1[%6], %5
  }
  return
}"#;
    let options = EmitOptions { noalias: false, ..EmitOptions::default() };
    let program = Program::parse(text, &options, OptLevel::Default);
    let mut x = f32s(&[3.0, 0.0]);
    let same = x.as_mut_ptr();
    // SAFETY: the harness only takes addresses; the kernel may see them overlap.
    #[allow(unsafe_code)]
    let y = unsafe { std::slice::from_raw_parts_mut(same, 8) };
    program.run(&mut [Arg::Array(&mut x, &[2], &[]), Arg::Array(y, &[2], &[])], 1);
    assert_eq!(to_f32s(&x), [6.0, 6.0]);
}

#[test]
fn reductions_combine_chunks_and_lanes() {
    for &ty in Scalar::ALL {
        let ops: &[(&str, &str)] = if ty.is_real() {
            &[("atomic_min", "min"), ("atomic_max", "max")]
        } else if ty == Scalar::U1 {
            &[("atomic_and", "and"), ("atomic_or", "or"), ("atomic_xor", "xor")]
        } else {
            &[
                ("atomic_add", "add"),
                ("atomic_mul", "mul"),
                ("atomic_min", "min"),
                ("atomic_max", "max"),
                ("atomic_and", "and"),
                ("atomic_or", "or"),
                ("atomic_xor", "xor"),
            ]
        };
        let name = ty.name();
        let mut text =
            format!("kernel @reduce_{name}(%x \"x\": array<{name}, 2>, %r \"r\": array<{name}, 1>) {{\n");
        text += "  %zero: i32 = const 0\n  %rows: i32 = extent 0 %x\n  %columns: i32 = extent 1 %x\n";
        for (index, (atomic, op)) in ops.iter().enumerate() {
            write!(
                text,
                "  %k{index}: i32 = const {index}
  parallel_for (%i{index}: i32, %j{index}: i32) in (%zero..%rows, %zero..%columns) reduce (%a{index}: {name} = {atomic} %r[%k{index}]) {{
    %v{index}: {name} = load %x[%i{index}, %j{index}]
    %b{index}: {name} = {op} %a{index}, %v{index}
    yield %b{index}
  }}\n"
            )
            .unwrap();
        }
        text += "  return\n}";
        let mut random = Random(11);
        let x = Input::array(ty, &random.values(ty, 3 * 31), &[3, 31]);
        let r = Input::array(ty, &random.values(ty, ops.len()), &[ops.len() as i32]);
        check(&kernel(&text), &[x, r], |_| 0.0);
    }
}

#[test]
fn a_sum_of_reals_is_near_in_any_order() {
    let text = r#"
kernel @sum(%x "x": array<f32, 1>) -> (f32) fast_math tasks {
  %zero: i32 = const 0
  %n: i32 = extent 0 %x
  %t: temp<f32> = temp
  parallel_for (%i: i32) in (%zero..%n) reduce (%s: f32 = atomic_add %t) {
    %v: f32 = load %x[%i]
    %s1: f32 = add %s, %v
    yield %s1
  }
  serial {
    %r: f32 = load %t
    store_result 0 %r
  }
  return
}"#;
    let values: Vec<_> = (0..1000).map(|i| Const::f32(i as f32 * 0.25)).collect();
    check(&kernel(text), &[Input::array(Scalar::F32, &values, &[1000])], |_| 8.0);
}

#[test]
fn scalars_of_all_types_come_in_and_go_out() {
    let types: Vec<_> = Scalar::ALL.iter().map(|ty| ty.name()).collect();
    let params: Vec<_> = types.iter().enumerate().map(|(i, ty)| format!("%p{i} \"p{i}\": {ty}")).collect();
    let stores: Vec<_> = (0..types.len()).map(|i| format!("store_result {i} %p{i}")).collect();
    let text = format!(
        "kernel @echo({}) -> ({}) tasks {{\n serial {{\n{}\n }}\n return\n}}",
        params.join(", "),
        types.join(", "),
        stores.join("\n")
    );
    let mut random = Random(12);
    let inputs: Vec<_> = Scalar::ALL.iter().map(|&ty| Input::Scalar(random.value(ty))).collect();
    check(&kernel(&text), &inputs, |_| 0.0);
}

#[test]
fn the_first_failed_assertion_stops_the_launch_and_tells_its_arguments() {
    let text = r#"
kernel @guard(%x "x": array<f32, 1>, %n "n": i32) {
  %zero: i32 = const 0
  parallel_for (%i: i32) in (%zero..%n) {
    %three: i32 = const 3
    %low: u1 = lt %i, %three
    %half: f32 = const 0.5
    assert %low, "index {} {}", %i, %half
    store %x[%i], %half
  }
  return
}"#;
    for opt in [OptLevel::None, OptLevel::Default] {
        let scalar = EmitOptions::for_cpu(CpuOptions { vector_bits: 0, ..CpuOptions::default() });
        let program = Program::parse(text, &scalar, opt);
        let mut x = f32s(&[0.0; 8]);
        let outcome = program.run(&mut [Arg::Array(&mut x, &[8], &[]), Arg::Scalar(Const::i32(8))], 8);
        assert_eq!(to_f32s(&x), [0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0]);
        let (site, arguments) = outcome.fault.expect("the fourth iteration fails");
        let site = program.plan.sites.get(site).expect("a site of the plan");
        assert!(matches!(site.kind, octants_ir::SiteKind::Assert { .. }));
        assert_eq!(arguments[..3], [3, 0.5_f64.to_bits(), 0]);

        let mut x = f32s(&[0.0; 8]);
        let outcome = program.run(&mut [Arg::Array(&mut x, &[8], &[]), Arg::Scalar(Const::i32(3))], 8);
        assert!(outcome.fault.is_none());
    }
    // Widened: the first lane that fails is told; its vector stores nothing.
    let options = EmitOptions::for_cpu(CpuOptions { force_lanes: Some(2), ..CpuOptions::default() });
    let program = Program::parse(text, &options, OptLevel::Default);
    let mut x = f32s(&[0.0; 8]);
    let outcome = program.run(&mut [Arg::Array(&mut x, &[8], &[]), Arg::Scalar(Const::i32(8))], 8);
    assert_eq!(to_f32s(&x), [0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(outcome.fault.expect("the second vector fails").1[..2], [3, 0.5_f64.to_bits()]);
}

#[test]
fn an_endless_loop_ends_when_the_launch_is_cancelled() {
    // The loop has no effect: if it were assumed to end, nothing would be left of it.
    let body = "
    %one: i32 = const 1
    %r: i32 = while carry (%a: i32 = %one) {
      %more: u1 = ne %a, %zero
      yield %more, %a
    } do (%b: i32) {
      yield %b
    }";
    let serial = format!("serial {{\n %zero: i32 = const 0 {body}\n store %x[%zero], %r\n }}");
    let range = format!(
        "%c: i32 = const 0\n %d: i32 = const 64\n parallel_for (%i: i32) in (%c..%d) {{\n %zero: i32 = const 0 {body}\n store %x[%i], %r\n }}"
    );
    for (task, lanes) in [(&serial, None), (&range, None), (&range, Some(16))] {
        let text = format!("kernel @endless(%x \"x\": array<i32, 1>) tasks {{\n{task}\n return\n}}");
        let options = EmitOptions::for_cpu(CpuOptions { force_lanes: lanes, ..CpuOptions::default() });
        let program = Program::parse(&text, &options, OptLevel::Default);
        let cancel = harness::never_cancelled();
        let mut x = vec![0; 256];
        let started = std::time::Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(30));
                cancel.raised.store(true, Ordering::Relaxed);
            });
            program.run_until(&mut [Arg::Array(&mut x, &[64], &[])], 64, &cancel);
        });
        assert!(started.elapsed() >= Duration::from_millis(30), "the loop ended by itself");
        assert_eq!(x, vec![0; 256], "what comes after the loop never ran");
    }
}

#[test]
fn one_thread_means_strictly_in_order() {
    // Each iteration needs what the one before it wrote: neither LLVM nor widening may run two at once.
    let text = r#"
kernel @prefix(%x "x": array<i32, 1>) {
  %one: i32 = const 1
  %n: i32 = extent 0 %x
  parallel_for (%i: i32) in (%one..%n) max_threads 1 {
    %o: i32 = const 1
    %h: i32 = sub %i, %o
    %a: i32 = load %x[%h]
    %b: i32 = load %x[%i]
    %c: i32 = add %a, %b
    store %x[%i], %c
  }
  return
}"#;
    let values: Vec<_> = (0..100).map(Const::i32).collect();
    check(&kernel(text), &[Input::array(Scalar::I32, &values, &[100])], |_| 0.0);
}

#[test]
fn tests_for_nan_hold_with_fast_math() {
    let text = r#"
kernel @test(%x "x": array<f32, 1>, %nan "nan": array<u1, 1>, %inf "inf": array<u1, 1>) fast_math {
  %zero: i32 = const 0
  %n: i32 = extent 0 %x
  parallel_for (%i: i32) in (%zero..%n) {
    %v: f32 = load %x[%i]
    %w: f32 = mul %v, %v
    %a: u1 = is_nan %w
    store %nan[%i], %a
    %b: u1 = is_inf %w
    store %inf[%i], %b
  }
  return
}"#;
    let values: Vec<_> =
        [0.0, f32::NAN, f32::INFINITY, 1e30, -1.0].iter().cycle().take(50).map(|&v| Const::f32(v)).collect();
    let flags = vec![Const::bool(false); 50];
    let flags = Input::array(Scalar::U1, &flags, &[50]);
    check(&kernel(text), &[Input::array(Scalar::F32, &values, &[50]), flags.clone(), flags], |_| 0.0);
}

#[test]
fn tensors_in_arrays_are_addressed_by_components() {
    let text = r#"
kernel @turn(%m "m": array<tensor<f32, 2, 3>, 2>, %k "k": array<i32, 1>) {
  %zero: i32 = const 0
  %r: i32 = extent 0 %m
  %c: i32 = extent 1 %m
  parallel_for (%i: i32, %j: i32) in (%zero..%r, %zero..%c) {
    %one: i32 = const 1
    %two: i32 = const 2
    %d: i32 = load %k[%j]
    %a: f32 = load %m[%i, %j, %one, %d]
    %b: f32 = load %m[%i, %j, %one, %two]
    %s: f32 = add %a, %b
    store %m[%i, %j, %d, %one], %s
    %old: f32 = atomic_add %m[%i, %j, %d, %d], %b
    store %m[%i, %j, %one, %one], %old
  }
  return
}"#;
    let values: Vec<_> = (0..3 * 21 * 6).map(|i| Const::f32(i as f32)).collect();
    // Some components are outside their dimension.
    let components: Vec<_> = (0..21).map(|i| Const::i32(i % 5 - 1)).collect();
    let m = Input::array(Scalar::F32, &values, &[3, 21]);
    check(&kernel(text), &[m, Input::array(Scalar::I32, &components, &[21])], |_| 0.0);
}

#[test]
fn components_updated_as_one_word_are_both_updated() {
    // Twice in each cell, by neighbouring iterations; the third component has no neighbour left, the fourth waits for its value.
    let text = r#"
kernel @scatter(%x "x": array<tensor<f32, 2, 2>, 1>, %old "old": array<tensor<f32, 2, 2>, 1>) {
  %zero: i32 = const 0
  %n: i32 = extent 0 %old
  parallel_for (%i: i32) in (%zero..%n) {
    %o: i32 = const 0
    %l: i32 = const 1
    %two: i32 = const 2
    %cell: i32 = floor_div %i, %two
    %a: f32 = cast %i
    %b: f32 = mul %a, %a
    %p: f32 = atomic_add %x[%cell, %o, %o], %a
    %q: f32 = atomic_add %x[%cell, %o, %l], %b
    %r: f32 = atomic_sub %x[%cell, %l, %o], %b
    %s: f32 = atomic_sub %x[%cell, %l, %l], %r
    store %old[%i, %o, %o], %p
    store %old[%i, %o, %l], %q
    store %old[%i, %l, %o], %r
    store %old[%i, %l, %l], %s
  }
  return
}"#;
    let options = EmitOptions::default();
    let program = Program::parse(text, &options, OptLevel::Default);
    let emitted = emit(&program.kernel, &program.plan, &options);
    assert_eq!(emitted[0].text.matches("cmpxchg").count(), 1);
    // The array begins at a word, or in the middle of one.
    for begin in [0, 4] {
        let mut room = f32s(&[1.0; 4 * 5 + 3]);
        let begin = begin + room.as_ptr().align_offset(8) % 8;
        let mut old = f32s(&[0.0; 4 * 10]);
        let x = &mut room[begin..begin + 16 * 5];
        program.run(&mut [Arg::Array(x, &[5], &[]), Arg::Array(&mut old, &[10], &[])], 10);
        let (x, old) = (to_f32s(x), to_f32s(&old));
        for cell in 0..5 {
            let (a, b) = (2.0 * cell as f32, 2.0 * cell as f32 + 1.0);
            assert_eq!(
                x[4 * cell..4 * cell + 4],
                [1.0 + a + b, 1.0 + a * a + b * b, 1.0 - a * a - b * b, a * a - 1.0]
            );
            assert_eq!(old[8 * cell..8 * cell + 4], [1.0; 4]);
            assert_eq!(old[8 * cell + 4..8 * cell + 8], [1.0 + a, 1.0 + a * a, 1.0 - a * a, 0.0]);
        }
    }
}

#[test]
fn chunks_of_a_saxpy_leave_no_gap() {
    let text = r#"
kernel @saxpy(%a "a": f32, %x "x": array<f32, 1>, %y "y": array<f32, 1>) {
  %zero: i32 = const 0
  %n: i32 = extent 0 %x
  parallel_for (%i: i32) in (%zero..%n) {
    %p: f32 = load %x[%i]
    %q: f32 = load %y[%i]
    %r: f32 = mul %a, %p
    %s: f32 = add %r, %q
    store %y[%i], %s
  }
  return
}"#;
    for noalias in [false, true] {
        let options = EmitOptions { noalias, ..EmitOptions::default() };
        let program = Program::parse(text, &options, OptLevel::Default);
        for (n, chunk) in [(103, 1), (103, 7), (103, 1000), (0, 1), (1, 1)] {
            let mut x = f32s(&(0..n).map(|i| i as f32).collect::<Vec<_>>());
            let mut y = f32s(&(0..n).map(|i| 1.0 - i as f32).collect::<Vec<_>>());
            let mut args =
                [Arg::Scalar(Const::f32(2.0)), Arg::Array(&mut x, &[n], &[]), Arg::Array(&mut y, &[n], &[])];
            program.run(&mut args, chunk);
            let expected: Vec<_> = (0..n).map(|i| 1.0 + i as f32).collect();
            assert_eq!(to_f32s(&y), expected);
            assert_eq!(n, (y.len() / 4) as i32);
        }
    }
}

/// The host is asked for memory, and registers keep what they hold.
#[test]
fn a_pool_that_needs_memory_asks_for_it() {
    let text = r#"
kernel @k(%c "c": array<i32, 1>, %out "out": array<i32, 1>) {
  %zero: i32 = const 0
  %n: i32 = extent 0 %c
  %step: i32 = const 300
  parallel_for (%i: i32) in (%zero..%n) {
    %wanted: i32 = mul %i, %step
    %before: i32 = load %out[%i]
    %slots: i32 = grow_pool %c[%i], %wanted
    %sum: i32 = add %slots, %before
    %all: i32 = add %sum, %wanted
    store %out[%i], %all
  }
  return
}"#;
    let program = Program::parse(text, &EmitOptions::default(), OptLevel::Default);
    let bytes = |words: &[i32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let (mut counts, mut out) = (bytes(&[0, 500, 0, 7, 7]), bytes(&[1, 2, 3, 4, 5]));
    program.run(&mut [Arg::Array(&mut counts, &[5], &[]), Arg::Array(&mut out, &[5], &[])], 5);
    assert_eq!(counts, bytes(&[0, 500, 600, 900, 7]));
    // A thousand are all that there is.
    assert_eq!(out, bytes(&[1, 502 + 300, 603 + 600, 904 + 900, 4 + 1200]));
}

/// Rows of different length, also none; a tape of a loop's own inside it, under a condition that lanes differ in, and of narrow scalars.
#[test]
fn tapes_belong_to_their_lanes() {
    let text = r#"
kernel @k(%n "n": array<i32, 1>, %x "x": array<f32, 1>) tasks {
  %lo: i32 = const 0
  %hi: i32 = extent 0 %n
  parallel_for (%i: i32) in (%lo..%hi) {
    %zero: i32 = const 0
    %one: i32 = const 1
    %half: f32 = const 0.5
    %rows: i32 = load %n[%i]
    %first: f32 = load %x[%i]
    %t: tape<f32> = tape %rows
    %u: tape<u1> = tape %rows
    %last: f32 = for %k: i32 in %zero..%rows carry (%v: f32 = %first) {
      store %t[%k], %v
      %c: u1 = gt %v, %half
      store %u[%k], %c
      %a: f32 = mul %v, %half
      %b: f32 = cast %k
      %w: f32 = add %a, %b
      %y: f32 = if %c {
        %s: tape<f32> = tape %k
        for %m: i32 in %zero..%k {
          %e: f32 = cast %m
          %g: f32 = add %e, %v
          store %s[%m], %g
        }
        %z: f32 = for %o: i32 in %zero..%k carry (%h: f32 = %w) {
          %p: f32 = load %s[%o]
          %q: f32 = mul %h, %half
          %r: f32 = add %q, %p
          yield %r
        }
        yield %z
      } else {
        yield %w
      }
      yield %y
    }
    %total: f32 = for %j: i32 in %zero..%rows carry (%sum: f32 = %last) {
      %back: i32 = sub %rows, %one
      %at: i32 = sub %back, %j
      %held: f32 = load %t[%at]
      %was: u1 = load %u[%at]
      %less: f32 = mul %sum, %half
      %d: f32 = select %was, %held, %half
      %more: f32 = add %less, %d
      yield %more
    }
    store %x[%i], %total
  }
  return
}"#;
    let count = 37;
    let rows: Vec<_> = (0..count).map(|i| Const::i32(i * 7 % 11 - 2)).collect();
    let values: Vec<_> = (0..count).map(|i| Const::f32(i as f32 / 8.0 - 1.0)).collect();
    let inputs = [Input::array(Scalar::I32, &rows, &[count]), Input::array(Scalar::F32, &values, &[count])];
    check(&kernel(text), &inputs, |_| 0.0);
}

/// A loop that keeps what it carries, and goes back over it; a sum and an extreme of all iterations; rows of two axes.
const KEPT: &str = r#"
kernel @kept(%x "x": array<f32, 2>, %s "s": array<i32, 1>, %m "m": array<f32, 1>, %n "n": i32) tasks {
  %lo: i32 = const 0
  %rows: i32 = extent 0 %x
  %columns: i32 = extent 1 %x
  parallel_for (%r: i32, %i: i32) in (%lo..%rows, %lo..%columns) reduce (%a: i32 = atomic_add %s[%lo], %b: f32 = atomic_max %m[%lo]) {
    %zero: i32 = const 0
    %one: i32 = const 1
    %half: f32 = const 0.5
    %first: f32 = load %x[%r, %i]
    %t: tape<f32> = tape %n
    %last: f32 = for %k: i32 in %zero..%n carry (%v: f32 = %first) {
      store %t[%k], %v
      %w: f32 = sqrt %v
      %y: f32 = sqrt %w
      yield %y
    }
    %total: f32 = for %j: i32 in %zero..%n carry (%sum: f32 = %last) {
      %back: i32 = sub %n, %one
      %at: i32 = sub %back, %j
      %held: f32 = load %t[%at]
      %p: f32 = mul %sum, %half
      %q: f32 = add %p, %held
      yield %q
    }
    store %x[%r, %i], %total
    %whole: i32 = cast %total
    %c: i32 = add %a, %whole
    %e: f32 = max %b, %total
    yield %c, %e
  }
  return
}"#;

#[test]
fn rows_of_every_length_give_the_same_in_lanes_and_one_by_one() {
    for (rows, columns) in [(1, 1), (1, 2), (1, 5), (1, 64), (1, 67), (9, 1), (5, 3), (3, 70)] {
        let values = (0..rows * columns).map(|i| Const::f32((i * 37 % 101) as f32 / 8.0 + 0.5));
        let inputs = [
            Input::array(Scalar::F32, &values.collect::<Vec<_>>(), &[rows, columns]),
            Input::array(Scalar::I32, &[Const::i32(7)], &[1]),
            Input::array(Scalar::F32, &[Const::f32(-1e9)], &[1]),
            Input::Scalar(Const::i32(6)),
        ];
        check(&kernel(KEPT), &inputs, |_| 0.0);
    }
}

#[test]
fn the_tape_of_few_iterations_is_that_of_one() {
    let options = EmitOptions::for_cpu(CpuOptions { vector_bits: 512, ..CpuOptions::default() });
    let program = Program::parse(KEPT, &options, OptLevel::Default);
    let taped = |rows: i32, columns: i32, steps: i32| {
        let mut x = f32s(&vec![0.5; (rows * columns) as usize]);
        let (mut s, mut m) = (vec![0; 4], f32s(&[0.0]));
        let mut arguments = [
            Arg::Array(&mut x, &[rows, columns], &[]),
            Arg::Array(&mut s, &[1], &[]),
            Arg::Array(&mut m, &[1], &[]),
            Arg::Scalar(Const::i32(steps)),
        ];
        program.run(&mut arguments, i64::MAX / 2).taped
    };
    // Four bytes for a step, of each iteration in turn: two scalars take less than a vector's roots.
    assert_eq!([(1, 1), (1, 2), (50, 2)].map(|(rows, columns)| taped(rows, columns, 1000)), [4000; 3]);
    let lanes = taped(1, 64, 1000) / 4000;
    assert!(lanes >= 16, "whole vectors: {lanes}");
    assert_eq!(taped(1, 65, 1000), 4000 * lanes, "the last one alone");
}

#[test]
fn a_loop_without_a_trip_loads_nothing() {
    // Only rows below the number of trips exist: before the loop, no lane may look for its own.
    let text = r#"
kernel @k(%x "x": array<f32, 1>, %m "m": array<f32, 2>, %s "s": array<f32, 1>, %n "n": i32) fast_math tasks {
  %zero: i32 = const 0
  %end: i32 = extent 0 %x
  parallel_for (%i: i32) in (%zero..%end) {
    %none: i32 = const 0
    %first: f32 = load %x[%i]
    %r: f32 = for %j: i32 in %none..%n carry (%c: f32 = %first) {
      %own: f32 = load %m[%i, %none]
      %p: f32 = mul %c, %own
      %o: f32 = atomic_add %s[%j], %own
      yield %p
    }
    store %x[%i], %r
  }
  return
}"#;
    let reals = |count: i32| (0..count).map(|i| Const::f32(1.0 + (i % 3) as f32)).collect::<Vec<_>>();
    for (rows, trips) in [(0, 0), (40, 3)] {
        let inputs = [
            Input::array(Scalar::F32, &reals(40), &[40]),
            Input::array(Scalar::F32, &reals(2 * rows), &[rows, 2]),
            Input::array(Scalar::F32, &reals(4), &[4]),
            Input::Scalar(Const::i32(trips)),
        ];
        check(&kernel(text), &inputs, |_| 0.0);
    }
}
