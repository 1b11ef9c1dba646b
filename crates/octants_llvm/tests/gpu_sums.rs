//! Sums of a GPU's code (of blocks, of warps, of neighbouring cells), held against the interpreter on a GPU that is not there.

mod harness;

use std::fmt::Write;

use harness::gpu_text::{input, kernel, tasks, tasks_for, whole_numbers};
use harness::oracle::{Input, Random, check_gpu, check_gpu_sums};
use octants_ir::plan::Copied;
use octants_ir::{Const, Scalar};
use octants_llvm::{EmitOptions, GpuOptions, NVIDIA, Target, emit};

#[test]
fn blocks_add_to_copies_of_small_arrays() {
    let text = r#"
kernel @histogram(%x "x": array<i32, 1>, %count "count": array<i32, 2>, %sum "sum": array<f32, 1>) {
  %zero: i32 = const 0
  %n: i32 = extent 0 %x
  parallel_for (%i: i32) in (%zero..%n) {
    %none: i32 = const 0
    %one: i32 = const 1
    %three: i32 = const 3
    %v: i32 = load %x[%i]
    %c: i32 = mod %v, %three
    %old: i32 = atomic_add %count[%v, %c], %one
    %older: i32 = atomic_sub %count[%none, %none], %v
    %w: f32 = cast %v
    %p: f32 = atomic_add %sum[%v], %w
  }
  return
}"#;
    let sum = |param, scalar| Copied { param, scalar, updates: 1, span: None };
    let sums = [sum(1, Scalar::I32), sum(2, Scalar::F32)];
    // In shared memory, or too large for it.
    for bins in [100, 4000] {
        let values: Vec<_> = (0..5000).map(|i| Const::i32(i * i % 97)).collect();
        let x = Input::array(Scalar::I32, &values, &[5000]);
        let mut sum_of_nothing = whole_numbers(Scalar::F32, bins as usize);
        sum_of_nothing[99] = Const::f32(-0.0);
        let inputs = [x, input(Scalar::I32, &[bins, 3]), Input::array(Scalar::F32, &sum_of_nothing, &[bins])];
        check_gpu_sums(&kernel(text), &inputs, |_| 0.0, &sums);
    }
}

/// Each point adds to every other one, in loops that all lanes of a warp run in step: one of them adds for all.
#[test]
fn lanes_in_step_add_together_to_a_cell_that_all_share() {
    let text = r#"
kernel @pairs(%x "x": array<f32, 1>, %sum "sum": array<tensor<f32, 2>, 1>, %count "count": array<i32, 2>, %wide "wide": array<f64, 1>) {
  %zero: i32 = const 0
  %n: i32 = extent 0 %x
  %m: i32 = extent 0 %sum
  parallel_for (%i: i32) in (%zero..%n) {
    %none: i32 = const 0
    %one: i32 = const 1
    %v: f32 = load %x[%i]
    for %j: i32 in %none..BOUND {
      %back: i32 = sub %m, %j
      %at: i32 = sub %back, %one
      %p: f32 = cast %j
      %q: f32 = mul %v, %p
      %a: f32 = atomic_add %sum[%at, %none], %v
      %b: f32 = atomic_sub %sum[%at, %one], %q
      for %k: i32 in %none..%j {
        %w: i32 = cast %q
        %c: i32 = atomic_add %count[%j, INDEX], %w
      }
      %d: f64 = cast %v
      %e: f64 = atomic_add %wide[%j], %d
    }
  }
  return
}"#;
    let all = text.replace("BOUND", "%m").replace("INDEX", "%k");
    for count in [1, 32, 300, 1000] {
        let x = whole_numbers(Scalar::F32, count as usize);
        let inputs = [
            Input::array(Scalar::F32, &x, &[count]),
            Input::array(Scalar::F32, &whole_numbers(Scalar::F32, 14), &[7]),
            input(Scalar::I32, &[7, 7]),
            input(Scalar::F64, &[7]),
        ];
        check_gpu(&kernel(&all), &inputs, |_| 0.0);
    }
    let shuffles = |text: &str| tasks(text)[0].text.matches("call i32 @llvm.nvvm.shfl.sync.down").count();
    // Five for each word: two reals, an integer, and the halves of a real of 64 bits.
    assert!(shuffles(&all) > 0 && shuffles(&all).is_multiple_of(5), "{}", shuffles(&all));
    // How often a loop runs is each lane's own, or which cell it adds to is, or it reads the array.
    assert_eq!(shuffles(&text.replace("BOUND", "%i").replace("INDEX", "%k")), 0);
    let one_array = all.replace("%wide[%j]", "%wide[%i]").replace("%sum[%at", "%sum[%i");
    assert!(shuffles(&one_array) > 0);
    assert_eq!(shuffles(&one_array.replace("%count[%j, %k]", "%count[%i, %k]")), 0);
    assert_eq!(shuffles(&one_array.replace("%w: i32 = cast %q", "%w: i32 = load %count[%j, %k]")), 0);
}

#[test]
fn two_entries_of_a_vector_are_added_by_one_instruction() {
    let text = r#"
kernel @scatter(%x "x": array<tensor<f32, 2>, 1>, %k "k": array<i32, 1>) {
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
    let count = |text: &str, sums| {
        tasks_for(text, GpuOptions { vendor: &NVIDIA, vector_sums: sums })[0]
            .text
            .matches("red.relaxed.gpu.global.add.v2")
            .count()
    };
    assert!(count(text, true) > 0);
    assert_eq!(count(text, false), 0, "older GPUs have no such instruction");
    let asks = text.replace("%v: f32 = cast %i", "%v: f32 = const 1.0").replace(
        "%b: f32 = atomic_add %x[%at, %one], %v",
        "%b: f32 = atomic_add %x[%at, %one], %v\n store %x[%i, %none], %b",
    );
    assert_eq!(count(&asks, true), 0, "it gives no old value");
}

/// Rows of a grid that particles add to: pairs and quadruples from an even cell or an odd one, and what is left over.
#[test]
fn sums_of_neighbouring_cells_are_joined() {
    let row = |cells: i32, entries: usize, column: &str| {
        let mut text = String::new();
        for cell in 0..cells {
            writeln!(text, "    %c{cell}: i32 = const {}\n    %j{cell}: i32 = add %at, %c{cell}", cell - 1)
                .unwrap();
            for entry in 0..entries {
                let component = if entries > 1 { format!(", %e{entry}") } else { String::new() };
                writeln!(text, "    %v{cell}_{entry}: f32 = add %v, %w{entry}").unwrap();
                let path = format!("%x[{}{component}]", column.replace("AT", &format!("%j{cell}")));
                writeln!(text, "    %o{cell}_{entry}: f32 = atomic_add {path}, %v{cell}_{entry}").unwrap();
            }
        }
        text
    };
    for (entries, count, wide, narrow) in [
        (2, 3, 1, 1),
        (1, 3, 0, 1),
        (1, 2, 0, 1),
        (2, 2, 1, 2),
        (1, 4, 0, 3),
        (4, 1, 1, 0),
        (1, 5, 0, 2),
        (3, 3, 0, 4),
        (2, 1, 0, 1),
    ] {
        for (rank, column) in [(1, "AT"), (2, "%i, AT")] {
            let elem = if entries > 1 { format!("tensor<f32, {entries}>") } else { "f32".to_owned() };
            let sums = row(count, entries, column);
            let text = format!(
                r#"
kernel @scatter(%x "x": array<{elem}, {rank}>, %k "k": array<i32, 1>) {{
  %zero: i32 = const 0
  %n: i32 = extent 0 %k
  parallel_for (%i: i32) in (%zero..%n) {{
    %at: i32 = load %k[%i]
    %v: f32 = cast %i
    %e0: i32 = const 0
    %e1: i32 = const 1
    %e2: i32 = const 2
    %e3: i32 = const 3
    %w0: f32 = const 0.0
    %w1: f32 = const 8.0
    %w2: f32 = const 16.0
    %w3: f32 = const 32.0
{sums}
  }}
  return
}}"#
            );
            let emitted = &tasks_for(&text, GpuOptions { vendor: &NVIDIA, vector_sums: true })[0].text;
            // The body is written twice where the array's alignment tells something.
            let of = |width: u32| emitted.matches(&format!("add.v{width}.f32")).count();
            assert!(
                of(4) >= wide && of(2) >= narrow,
                "{entries} entries, {count} cells: {} and {}\n{emitted}",
                of(4),
                of(2)
            );
            let n = 70;
            let mut random = Random(5);
            let places: Vec<_> = (0..n).map(|_| Const::i32(1 + (random.next() % 60) as i32)).collect();
            let shape = if rank == 1 { vec![64] } else { vec![n, 64] };
            let cells = entries * shape.iter().product::<i32>() as usize;
            let x = Input::array(Scalar::F32, &whole_numbers(Scalar::F32, cells), &shape);
            check_gpu(&kernel(&text), &[x, Input::array(Scalar::I32, &places, &[n])], |_| 0.0);
        }
    }
}

/// Updates are not moved across what could tell.
#[test]
fn sums_wait_for_nothing_that_sees_them() {
    let text = r#"
kernel @scatter(%x "x": array<f32, 1>, %k "k": array<i32, 1>, %y "y": array<f32, 1>) {
  %zero: i32 = const 0
  %n: i32 = extent 0 %k
  parallel_for (%i: i32) in (%zero..%n) {
    %one: i32 = const 1
    %at: i32 = load %k[%i]
    %next: i32 = add %at, %one
    %v: f32 = cast %i
    %a: f32 = atomic_add %x[%at], %v
    BETWEEN
    %b: f32 = atomic_sub %x[%next], %v
  }
  return
}"#;
    let count = |between: &str, noalias| {
        let kernel = kernel(&text.replace("BETWEEN", between));
        let target = Target::Gpu(GpuOptions { vendor: &NVIDIA, vector_sums: true });
        let options = EmitOptions { noalias, target, ..EmitOptions::default() };
        emit(&kernel, &harness::plan_of(&kernel), &options)[0].text.matches("add.v2.f32").count()
    };
    let own = "%s: f32 = load %x[%i]\n    store %y[%i], %s";
    let other = "%s: f32 = load %y[%i]\n    store %y[%i], %s";
    let greatest = "%s: f32 = atomic_max %x[%i], %v";
    let condition = "%s: u1 = lt %i, %at\n    if %s {\n    store %y[%i], %v\n    }";
    assert!(count("", true) > 0 && count(other, true) > 0 && count("", false) > 0);
    for between in [own, greatest, condition] {
        assert_eq!(count(between, true), 0, "{between}");
    }
    assert_eq!(count(other, false), 0, "arrays may overlap");
}

/// Lanes of a warp that add to one cell add up first, where few cells are met; others are updates as they are.
#[test]
fn lanes_that_share_a_cell_add_up_first() {
    let text = r#"
kernel @scatter(%k "k": array<i32, 1>, %x "x": array<TY, 1>, %y "y": array<tensor<f32, 2>, 1>) {
  %zero: i32 = const 0
  %n: i32 = extent 0 %k
  parallel_for (%i: i32) in (%zero..%n) LOOP {
    %none: i32 = const 0
    %one: i32 = const 1
    %at: i32 = load %k[%i]
    %v: TY = cast %i
    %w: f32 = cast %at
    %a: TY = atomic_SIGN %x[%at], %v
    %b: f32 = atomic_add %y[%at, %none], %w
    %c: f32 = atomic_sub %y[%at, %one], %w
    EXTRA
  }
  return
}"#;
    let text = |ty: &str, sign: &str, attributes: &str, extra: &str| {
        let text = text.replace("TY", ty).replace("SIGN", sign);
        text.replace("LOOP", attributes).replace("EXTRA", extra)
    };
    let looks = |text: &str| tasks(text)[0].text.contains("llvm.nvvm.vote.ballot.sync");
    // One point a thread, and several.
    let one = "%odd: u1 = lt %at, %i\n    if %odd {\n    %e: f32 = atomic_add %y[%none, %none], %w\n    }";
    for (scalar, sign, extra) in
        [(Scalar::F32, "add", ""), (Scalar::I64, "sub", ""), (Scalar::U32, "sub", one)]
    {
        let text = text(scalar.name(), sign, "", extra);
        assert!(looks(&text), "{text}");
        let n = 600;
        // One cell for all, for some, runs that begin anywhere, and no two alike.
        for places in [|_: i32| 3, |i: i32| i / 37, |i: i32| i / 3 % 50, |i: i32| i * 7 % 61] {
            let places: Vec<_> = (0..n).map(|i| Const::i32(places(i))).collect();
            let inputs = [
                Input::array(Scalar::I32, &places, &[n]),
                input(scalar, &[64]),
                Input::array(Scalar::F32, &whole_numbers(Scalar::F32, 128), &[64]),
            ];
            check_gpu(&kernel(&text), &inputs, |_| 0.0);
        }
    }
    assert!(!looks(&text("f32", "add", "block_dim 100", "")), "its last warp has lanes missing");
    let own = text("f32", "add", "", "").replace("[%at", "[%i");
    assert!(!looks(&own), "each lane has a cell of its own");
}

#[test]
fn least_and_greatest_integers_are_one_instruction() {
    for (ty, update) in
        [(Scalar::I32, "min"), (Scalar::U32, "max"), (Scalar::I64, "max"), (Scalar::U64, "min")]
    {
        let name = ty.name();
        let text = format!(
            r#"
kernel @extreme(%x "x": array<{name}, 1>, %k "k": array<i32, 1>, %v "v": array<{name}, 1>) {{
  %zero: i32 = const 0
  %n: i32 = extent 0 %v
  parallel_for (%i: i32) in (%zero..%n) {{
    %at: i32 = load %k[%i]
    %a: {name} = load %v[%i]
    %old: {name} = atomic_{update} %x[%at], %a
  }}
  return
}}"#
        );
        let emitted = &tasks(&text)[0].text;
        assert!(emitted.contains("atomicrmw") && !emitted.contains("cmpxchg"), "{emitted}");
        let mut random = Random(5);
        let places: Vec<_> = (0..500).map(|i| Const::i32(i % 7)).collect();
        let inputs = [
            Input::array(ty, &random.values(ty, 7), &[7]),
            Input::array(Scalar::I32, &places, &[500]),
            Input::array(ty, &random.values(ty, 500), &[500]),
        ];
        check_gpu(&kernel(&text), &inputs, |_| 0.0);
    }
}

#[test]
fn many_reductions_go_in_batches() {
    use std::fmt::Write;
    let (mut heads, mut body, mut yields) = (String::new(), String::new(), Vec::new());
    let mut places = String::new();
    for n in 0..35 {
        writeln!(places, "  %k{n}: i32 = const {n}").unwrap();
        write!(heads, "{}%a{n}: i32 = atomic_add %s[%k{n}]", if n == 0 { "" } else { ", " }).unwrap();
        writeln!(
            body,
            "    %c{n}: i32 = const {n}\n    %p{n}: i32 = mul %v, %c{n}\n    %b{n}: i32 = add %a{n}, %p{n}"
        )
        .unwrap();
        yields.push(format!("%b{n}"));
    }
    let text = format!(
        "kernel @many(%x \"x\": array<i32, 1>, %s \"s\": array<i32, 1>) {{
  %zero: i32 = const 0
  %n: i32 = extent 0 %x
{places}  parallel_for (%i: i32) in (%zero..%n) reduce ({heads}) {{
    %v: i32 = load %x[%i]
{body}    yield {}
  }}
  return
}}",
        yields.join(", ")
    );
    assert!(tasks(&text)[0].text.contains("global [512 x i64]"));
    check_gpu(&kernel(&text), &[input(Scalar::I32, &[700]), input(Scalar::I32, &[35])], |_| 0.0);
}
