//! A GPU's code where not all is as usual: elements that lie apart, rows that some threads have and others do not, truth values of any byte.

mod harness;

use harness::gpu_text::{input, kernel, tasks, tasks_for, whole_numbers};
use harness::oracle::{Input, Random, check, check_gpu};
use octants_ir::{Const, Scalar};
use octants_llvm::{GpuOptions, NVIDIA};

/// Neighbours in a view are no neighbours in memory, unless only its rows lie apart.
#[test]
fn sums_of_neighbours_that_lie_apart_are_not_joined() {
    let text = |rank: u8, spacing: &str, path: &str| {
        format!(
            r#"
kernel @scatter(%x "x": array<f32, {rank}, {spacing}>, %k "k": array<i32, 1>) {{
  %zero: i32 = const 0
  %n: i32 = extent 0 %k
  parallel_for (%i: i32) in (%zero..%n) {{
    %one: i32 = const 1
    %at: i32 = load %k[%i]
    %next: i32 = add %at, %one
    %v: f32 = cast %i
    %w: f32 = add %v, %v
    %a: f32 = atomic_add %x[{}], %v
    %b: f32 = atomic_sub %x[{}], %w
  }}
  return
}}"#,
            path.replace("AT", "%at"),
            path.replace("AT", "%next")
        )
    };
    let joined = |text: &str| {
        tasks_for(text, GpuOptions { vendor: &NVIDIA, vector_sums: true })[0]
            .text
            .matches("add.v2.f32")
            .count()
            > 0
    };
    let (n, mut random) = (90, Random(11));
    let places: Vec<_> = (0..n).map(|_| Const::i32((random.next() % 19) as i32)).collect();
    let places = Input::array(Scalar::I32, &places, &[n]);
    let values = whole_numbers(Scalar::F32, 1000);
    for (rank, spacing, path, shape, strides, is_joined) in [
        (1, "strided", "AT", &[20][..], &[2][..], false),
        (1, "strided", "AT", &[20], &[1], false),
        (2, "strided", "%one, AT", &[3, 20], &[100, 3], false),
        (2, "strided", "AT, %one", &[20, 3], &[10, 2], false),
        (2, "rows", "AT, %one", &[20, 3], &[7, 1], false),
        (2, "rows", "%one, AT", &[3, 20], &[23, 1], true),
    ] {
        let text = text(rank, spacing, path);
        assert_eq!(joined(&text), is_joined, "{spacing} {path}");
        let x = Input::strided(Scalar::F32, &values, shape, strides);
        check_gpu(&kernel(&text), &[x, places.clone()], |_| 0.0);
    }
}

/// The entries of one element lie side by side, wherever the element does.
#[test]
fn entries_of_an_element_are_joined_wherever_it_lies() {
    let text = r#"
kernel @scatter(%x "x": array<tensor<f32, 2>, 1, strided>, %k "k": array<i32, 1>) {
  %zero: i32 = const 0
  %n: i32 = extent 0 %k
  parallel_for (%i: i32) in (%zero..%n) {
    %none: i32 = const 0
    %one: i32 = const 1
    %at: i32 = load %k[%i]
    %v: f32 = cast %i
    %a: f32 = atomic_add %x[%at, %none], %v
    %b: f32 = atomic_add %x[%at, %one], %v
  }
  return
}"#;
    assert!(
        tasks_for(text, GpuOptions { vendor: &NVIDIA, vector_sums: true })[0].text.contains("add.v2.f32")
    );
    for stride in [2, 3, 6] {
        let places: Vec<_> = (0..70).map(|i| Const::i32(i * 7 % 30)).collect();
        let x = Input::strided(Scalar::F32, &whole_numbers(Scalar::F32, 200), &[30], &[stride]);
        check_gpu(&kernel(text), &[x, Input::array(Scalar::I32, &places, &[70])], |_| 0.0);
    }
}

/// A thread has two rows of four points. With short rows the lanes of a warp have different rows, and with an odd number of them one lane has a single row.
#[test]
fn lanes_exchange_sums_only_if_all_of_them_have_all_their_rows() {
    let text = r#"
kernel @rows(%x "x": array<f32, 2>, %y "y": array<f32, 1>, %z "z": array<i32, 1>) {
  %zero: i32 = const 0
  %n: i32 = extent 0 %x
  %m: i32 = extent 1 %x
  parallel_for (%i: i32, %j: i32) in (%zero..%n, %zero..%m) {
    %three: i32 = const 3
    %v: f32 = load %x[%i, %j]
    %at: i32 = shr %i, %three
    %a: f32 = atomic_add %y[%at], %v
    store %x[%i, %j], %v
  }
  return
}"#;
    let emitted = &tasks(text)[0].text;
    assert!(
        emitted.contains("llvm.nvvm.vote.all.sync") && emitted.contains("llvm.nvvm.shfl.sync"),
        "{emitted}"
    );
    for (rows, columns) in
        [(3, 4), (3, 8), (7, 8), (35, 8), (67, 4), (64, 8), (131, 16), (5, 32), (7, 64), (9, 12)]
    {
        let x = input(Scalar::F32, &[rows, columns]);
        check_gpu(&kernel(text), &[x, input(Scalar::F32, &[17]), input(Scalar::I32, &[1])], |_| 0.0);
    }
}

/// Every byte but 0 is true, whatever an update does with it.
#[test]
fn updates_of_truth_values_know_any_byte() {
    for update in ["add", "sub", "mul", "min", "max", "and", "or", "xor", "exchange"] {
        let text = format!(
            r#"
kernel @truth(%x "x": array<u1, 1>, %k "k": array<i32, 1>, %v "v": array<u1, 1>, %o "o": array<u1, 1>) {{
  %zero: i32 = const 0
  %n: i32 = extent 0 %k
  %m: i32 = extent 0 %x
  parallel_for (%i: i32) in (%zero..%n) {{
    %at: i32 = load %k[%i]
    %a: u1 = load %v[%i]
    %old: u1 = atomic_{update} %x[%at], %a
    store %o[%i], %old
  }}
  parallel_for (%j: i32) in (%zero..%m) {{
    %t: u1 = load %x[%j]
    store %x[%j], %t
  }}
  return
}}"#
        );
        check(&kernel(&text), &truths(), |_| 0.0);
    }
    let swap = r#"
kernel @swap(%x "x": array<u1, 1>, %k "k": array<i32, 1>, %v "v": array<u1, 1>, %o "o": array<u1, 1>) {
  %zero: i32 = const 0
  %n: i32 = extent 0 %k
  %m: i32 = extent 0 %x
  parallel_for (%i: i32) in (%zero..%n) {
    %one: i32 = const 1
    %at: i32 = load %k[%i]
    %a: u1 = load %v[%i]
    %last: i32 = sub %n, %one
    %from: i32 = sub %last, %i
    %b: u1 = load %v[%from]
    %old: u1 = atomic_cas %x[%at], %a, %b
    store %o[%i], %old
  }
  parallel_for (%j: i32) in (%zero..%m) {
    %t: u1 = load %x[%j]
    store %x[%j], %t
  }
  return
}"#;
    check(&kernel(swap), &truths(), |_| 0.0);
}

/// Each cell once, since nobody knows the order; with all bytes, and updates by true and false.
fn truths() -> Vec<Input> {
    let count = 512;
    let places: Vec<_> = (0..count).map(Const::i32).collect();
    let truth = |i: i32| Const::bool(i / 256 == 1);
    let values: Vec<_> = (0..count).map(truth).collect();
    let bytes = (0..count).map(|i| i as u8).collect();
    vec![
        Input::Array { ty: Scalar::U1, bytes, shape: vec![count], strides: Vec::new() },
        Input::array(Scalar::I32, &places, &[count]),
        Input::array(Scalar::U1, &values, &[count]),
        Input::array(Scalar::U1, &values, &[count]),
    ]
}

/// No GPU subtracts from reals in memory: what is added is the negation, also under a condition, where nothing is joined.
#[test]
fn differences_are_sums_of_negations() {
    for (ty, adds) in [("f32", "fadd"), ("f64", "fadd")] {
        let text = format!(
            r#"
kernel @scatter(%x "x": array<{ty}, 1>, %k "k": array<i32, 1>) {{
  %zero: i32 = const 0
  %n: i32 = extent 0 %k
  parallel_for (%i: i32) in (%zero..%n) {{
    %at: i32 = load %k[%i]
    %some: u1 = lt %at, %i
    if %some {{
      %v: {ty} = cast %i
      %old: {ty} = atomic_sub %x[%at], %v
    }}
  }}
  return
}}"#
        );
        let emitted = &tasks(&text)[0].text;
        assert!(emitted.contains(&format!("atomicrmw {adds}")) && !emitted.contains("cmpxchg"), "{emitted}");
        let places: Vec<_> = (0..300).map(|i| Const::i32(i * 5 % 40)).collect();
        let scalar = if ty == "f32" { Scalar::F32 } else { Scalar::F64 };
        check(&kernel(&text), &[input(scalar, &[40]), Input::array(Scalar::I32, &places, &[300])], |_| 0.0);
    }
}
