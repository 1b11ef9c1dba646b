//! How a GPU's code deals points to threads, held against the interpreter on a GPU that is not there.

mod harness;

use std::fmt::Write;

use harness::gpu_text::{input, kernel, tasks, whole_numbers};
use harness::oracle::{Input, check_gpu};
use octants_hal::{Grid, PointMapping};
use octants_ir::{Const, Scalar};

#[test]
fn groups_of_points_leave_no_gap() {
    for (ty, points) in [(Scalar::F32, 4), (Scalar::F64, 2), (Scalar::I16, 8), (Scalar::U8, 16)] {
        let name = ty.name();
        let text = format!(
            r#"
kernel @shift(%x "x": array<{name}, 1>, %y "y": array<{name}, 1>, %lo "lo": i32, %hi "hi": i32) {{
  parallel_for (%i: i32) in (%lo..%hi) {{
    %one: i32 = const 1
    %h: i32 = sub %i, %one
    %j: i32 = add %i, %one
    %a: {name} = load %x[%h]
    %b: {name} = load %x[%j]
    %c: {name} = add %a, %b
    store %y[%i], %c
  }}
  return
}}"#
        );
        let shape = tasks(&text)[0].shape;
        assert_eq!(shape.mapping, PointMapping::Tiles { across: 32, points, rows: 1 }, "of {name}");
        let n = 256 * points as i32 * 3;
        for (lo, hi) in [(1, n - 1), (1, 2), (n / 3, 2 * n / 3), (5, n / 2 + 3), (3, 3)] {
            let bounds = [Input::Scalar(Const::i32(lo)), Input::Scalar(Const::i32(hi))];
            let [lo, hi] = bounds;
            check_gpu(&kernel(&text), &[input(ty, &[n]), input(ty, &[n]), lo, hi], |_| 0.0);
        }
    }
}

#[test]
fn ranges_may_begin_below_zero() {
    let text = r#"
kernel @negative(%y "y": array<f32, 1>, %lo "lo": i32, %hi "hi": i32) {
  parallel_for (%i: i32) in (%lo..%hi) {
    %j: i32 = sub %i, %lo
    %a: f32 = cast %i
    store %y[%j], %a
  }
  return
}"#;
    for (lo, hi) in [(-1, 2), (-1000, 1000), (-33, -3)] {
        let bounds = [lo, hi].map(|bound| Input::Scalar(Const::i32(bound)));
        let [lo, hi] = bounds;
        check_gpu(&kernel(text), &[input(Scalar::F32, &[2000]), lo, hi], |_| 0.0);
    }
}

#[test]
fn tiles_cover_two_axes_and_three() {
    let stencil = r#"
kernel @stencil(%x "x": array<f32, 2>, %y "y": array<f32, 2>, %m "m": i32, %n "n": i32) {
  %zero: i32 = const 1
  parallel_for (%i: i32, %j: i32) in (%zero..%m, %zero..%n) ATTRIBUTES {
    %one: i32 = const 1
    %up: i32 = sub %i, %one
    %left: i32 = sub %j, %one
    %right: i32 = add %j, %one
    %a: f32 = load %x[%up, %j]
    %b: f32 = load %x[%i, %left]
    %c: f32 = load %x[%i, %right]
    %d: f32 = add %a, %b
    %e: f32 = add %d, %c
    store %y[%i, %j], %e
  }
  return
}"#;
    for (attributes, block) in
        [("", 256), ("block_dim 100", 100), ("block_dim 7", 7), ("block_dim 4096", 1024)]
    {
        let text = stencil.replace("ATTRIBUTES", attributes);
        assert_eq!(tasks(&text)[0].shape.block, block);
        for (rows, columns) in [(20, 400), (9, 131), (70, 3), (40, 9), (33, 64), (3, 1028), (300, 2)] {
            let ends = [rows - 1, columns - 1].map(|end| Input::Scalar(Const::i32(end)));
            let [m, n] = ends;
            let (x, y) = (input(Scalar::F32, &[rows, columns]), input(Scalar::F32, &[rows, columns]));
            check_gpu(&kernel(&text), &[x, y, m, n], |_| 0.0);
        }
    }
    let cells = r#"
kernel @cells(%x "x": array<tensor<f32, 3>, 3>, %y "y": array<f32, 3>) {
  %zero: i32 = const 0
  %l: i32 = extent 0 %x
  %m: i32 = extent 1 %x
  %n: i32 = extent 2 %x
  parallel_for (%i: i32, %j: i32, %k: i32) in (%zero..%l, %zero..%m, %zero..%n) {
    %two: i32 = const 2
    %none: i32 = const 0
    %a: f32 = load %x[%i, %j, %k, %two]
    %b: f32 = load %x[%i, %j, %k, %none]
    %c: f32 = add %a, %b
    store %y[%i, %j, %k], %c
  }
  return
}"#;
    for shape in [[3, 4, 260], [2, 19, 5], [5, 2, 33]] {
        let count = 3 * shape.iter().product::<i32>() as usize;
        let x = Input::array(Scalar::F32, &whole_numbers(Scalar::F32, count), &shape);
        check_gpu(&kernel(cells), &[x, input(Scalar::F32, &shape)], |_| 0.0);
    }
}

#[test]
fn reductions_of_a_block_are_one_update() {
    for attributes in ["", "block_dim 100", "block_dim 32", "block_dim 1", "block_dim 1024"] {
        let text = format!(
            r#"
kernel @sums(%x "x": array<f32, 1>, %s "s": array<f32, 1>, %k "k": array<i64, 1>, %n "n": i32) {{
  %zero: i32 = const 0
  %one: i32 = const 1
  parallel_for (%i: i32) in (%zero..%n) reduce (%a: f32 = atomic_add %s[%zero], %b: f32 = atomic_max %s[%one], %c: i64 = atomic_add %k[%zero]) {attributes} {{
    %v: f32 = load %x[%i]
    %a1: f32 = add %a, %v
    %b1: f32 = max %b, %v
    %w: i64 = cast %v
    %c1: i64 = add %c, %w
    yield %a1, %b1, %c1
  }}
  return
}}"#
        );
        let task = &tasks(&text)[0];
        assert_eq!(task.shape.grid, Grid::Resident);
        for n in [1, 40, 3000] {
            let inputs = [
                input(Scalar::F32, &[3000]),
                input(Scalar::F32, &[2]),
                input(Scalar::I64, &[1]),
                Input::Scalar(Const::i32(n)),
            ];
            check_gpu(&kernel(&text), &inputs, |_| 0.0);
        }
    }
}

#[test]
fn a_limit_of_threads_deals_points_by_their_numbers() {
    let text = r#"
kernel @k(%x "x": array<f32, 1>, %n "n": i32) {
  %zero: i32 = const 0
  parallel_for (%i: i32) in (%zero..%n) max_threads 5 {
    %a: f32 = cast %i
    store %x[%i], %a
  }
  return
}"#;
    assert_eq!(tasks(text)[0].shape.mapping, PointMapping::Points);
    check_gpu(&kernel(text), &[input(Scalar::F32, &[1000]), Input::Scalar(Const::i32(999))], |_| 0.0);
}

#[test]
fn bounds_that_a_task_left_are_read_on_the_device() {
    let text = r#"
kernel @bounded(%n "n": array<i32, 1>, %x "x": array<f32, 2>) tasks {
  %t: temp<i32> = temp
  serial {
    %zero: i32 = const 0
    %a: i32 = load %n[%zero]
    store %t, %a
  }
  %first: i32 = const 1
  %end: i32 = load %t
  parallel_for (%i: i32, %j: i32) in (%first..%end, %first..%end) {
    %b: f32 = cast %j
    store %x[%i, %j], %b
  }
  return
}"#;
    let with_loop = text.replace(
        "%b: f32 = cast %j",
        "%none: f32 = const 0.0
    %begin: i32 = const 0
    %b: f32 = for %k: i32 in %begin..%i carry (%s: f32 = %none) {
      %c: f32 = cast %k
      %d: f32 = add %s, %c
      yield %d
    }",
    );
    for text in [text, &with_loop] {
        let emitted = tasks(text);
        assert!(emitted[1].text.contains("load i32"), "{}", emitted[1].text);
        for end in [40, 2, 1, 0, -5] {
            let inputs = [Input::array(Scalar::I32, &[Const::i32(end)], &[1]), input(Scalar::F32, &[40, 40])];
            check_gpu(&kernel(text), &inputs, |_| 0.0);
        }
    }
}

#[test]
fn guards_hold_for_whole_groups_or_are_asked_for_each_point() {
    let text = r#"
kernel @inner(%x "x": array<f32, 2>, %y "y": array<f32, 2>) {
  %zero: i32 = const 0
  %m: i32 = extent 0 %x
  %n: i32 = extent 1 %x
  parallel_for (%i: i32, %j: i32) in (%zero..%m, %zero..%n) {
    %none: i32 = const 0
    %one: i32 = const 1
    %last: i32 = sub %n, %one
    %a: u1 = gt %i, %none
    %b: u1 = if %a {
      %c: u1 = gt %j, %none
      %d: u1 = lt %j, %last
      %e: u1 = and %c, %d
      yield %e
    } else {
      %f: u1 = const false
      yield %f
    }
    if %b {
      %up: i32 = sub %i, %one
      %right: i32 = add %j, %one
      %p: f32 = load %x[%up, %j]
      %q: f32 = load %x[%i, %right]
      %r: f32 = add %p, %q
      %odd: i32 = const 77
      %s: u1 = ne %j, %odd
      if %s {
        store %y[%i, %j], %r
      }
    }
  }
  return
}"#;
    assert_eq!(tasks(text)[0].shape.mapping, PointMapping::Tiles { across: 32, points: 4, rows: 2 });
    for shape in [[12, 384], [5, 40], [9, 130], [4, 4]] {
        check_gpu(&kernel(text), &[input(Scalar::F32, &shape), input(Scalar::F32, &shape)], |_| 0.0);
    }
    // Every second point: no group would be whole.
    let checkered = text.replace("%s: u1 = ne %j, %odd", "%t: i32 = mod %j, %odd\n %s: u1 = ne %t, %none");
    assert_eq!(tasks(&checkered)[0].shape.mapping, PointMapping::Tiles { across: 32, points: 1, rows: 1 });
}

#[test]
fn what_stands_where_a_guard_does_not_hold_is_left_to_single_points() {
    let text = r#"
kernel @ends(%x "x": array<f32, 1>, %y "y": array<f32, 1>, %s "s": array<f32, 1>) {
  %zero: i32 = const 0
  %n: i32 = extent 0 %x
  parallel_for (%i: i32) in (%zero..%n) {
    %one: i32 = const 1
    %last: i32 = sub %n, %one
    %a: u1 = ge %i, %one
    %b: u1 = lt %i, %last
    %c: u1 = and %a, %b
    if %c {
    } else {
      %v: f32 = load %y[%i]
      %first: i32 = const 0
      %old: f32 = atomic_add %s[%first], %v
    }
    %w: f32 = load %x[%i]
    store %y[%i], %w
  }
  return
}"#;
    assert_eq!(tasks(text)[0].shape.mapping, PointMapping::Tiles { across: 32, points: 4, rows: 1 });
    for n in [1, 2, 3, 1024, 2500] {
        let inputs = [input(Scalar::F32, &[n]), input(Scalar::F32, &[n]), input(Scalar::F32, &[1])];
        check_gpu(&kernel(text), &inputs, |_| 1e-5);
    }
    // Neither side is empty: either may be the common one.
    let both = text.replace("if %c {\n", "if %c {\n store %x[%i], %one_\n");
    let both = both.replace("%a: u1 = ge", "%one_: f32 = const 1.0\n %a: u1 = ge");
    assert_eq!(tasks(&both)[0].shape.mapping, PointMapping::Tiles { across: 32, points: 1, rows: 1 });
}

#[test]
fn points_of_a_body_that_branches_load_first_and_store_last() {
    // `%y` is stored before and read afterwards; `%z` is read after it was written; `%s` sums all.
    let text = r#"
kernel @stages(%x "x": array<f32, 1>, %y "y": array<f32, 1>, %z "z": array<f32, 1>, %s "s": array<f32, 1>) {
  %zero: i32 = const 0
  %n: i32 = extent 0 %x
  parallel_for (%i: i32) in (%zero..%n) reduce (%sum: f32 = atomic_add %s[%zero]) {
    %one: i32 = const 1
    %next: i32 = add %i, %one
    %a: f32 = load %x[%i]
    %b: f32 = load %z[%i]
    store %z[%i], %a
    %limit: f32 = const 2.0
    %c: u1 = lt %a, %limit
    %d: f32 = if %c {
      %e: f32 = mul %a, %b
      yield %e
    } else {
      %f: f32 = exp %a
      %g: f32 = div %b, %f
      yield %g
    }
    %h: f32 = load %z[%i]
    %k: f32 = load %y[%i]
    store %y[%i], %d
    %l: f32 = add %h, %k
    %m: f32 = load %y[%i]
    %o: f32 = add %l, %m
    store %z[%i], %o
    %total: f32 = add %sum, %o
    yield %total
  }
  return
}"#;
    for n in [1, 3, 1024, 5000] {
        let inputs = [&[n][..]; 3].map(|shape| input(Scalar::F32, shape));
        let inputs = [&inputs[..], &[input(Scalar::F32, &[1])]].concat();
        check_gpu(&kernel(text), &inputs, |_| 1e-4);
    }
}

#[test]
fn sines_and_cosines_share_the_code_for_large_angles() {
    let task = |ops: &str| {
        let text = format!(
            r#"
kernel @k(%x "x": array<f32, 1>) {{
  %zero: i32 = const 0
  %n: i32 = extent 0 %x
  parallel_for (%i: i32) in (%zero..%n) {{
    %a: f32 = load %x[%i]
    {ops}
    store %x[%i], %t
  }}
  return
}}"#
        );
        tasks(&text)[0].text.clone()
    };
    let both = task("%s: f32 = sin %a\n %b: f32 = mul %a, %s\n %t: f32 = cos %b");
    let defined = |text: &str, name: &str| text.matches(&format!("@{name}(float %x) noinline")).count();
    assert_eq!(defined(&both, "octants.sincos.large"), 1);
    assert!(both.contains("extractvalue { float, float } %both, 0"), "{both}");
    assert!(both.contains("extractvalue { float, float } %both, 1"), "{both}");
    assert!(!both.contains("@octants.sin.large") && !both.contains("@octants.cos.large"));
    // Called as the library calls it, so that LLVM sees at once that the library's own code for them never runs.
    assert_eq!(both.matches("call float @llvm.nvvm.fabs.f(float %x) nounwind").count(), 2);
    let other = task("%s: f32 = sin %a\n %t: f32 = tan %s");
    assert_eq!((defined(&other, "octants.sin.large"), defined(&other, "octants.tan.large")), (1, 1));
    assert!(!other.contains("sincos"));
}

#[test]
fn a_sine_and_a_cosine_of_one_angle_are_computed_together() {
    let text = |ops: &str| {
        format!(
            r#"
kernel @k(%x "x": array<f32, 1>, %y "y": array<f32, 1>) {{
  %zero: i32 = const 0
  %one: i32 = const 1
  %n: i32 = extent 0 %y
  parallel_for (%i: i32) in (%zero..%n) {{
    %a: f32 = load %x[%i]
    %b: f32 = load %y[%i]
    {ops}
    store %y[%i], %t
  }}
  return
}}"#
        )
    };
    // In either order, of two angles in turn, an odd one among them, on both sides of an `if`, and of an angle that all points share.
    let cases = [
        ("%s: f32 = sin %a\n %c: f32 = cos %a\n %t: f32 = sub %s, %c", 1, 0),
        ("%c: f32 = cos %a\n %s: f32 = sin %a\n %t: f32 = sub %s, %c", 1, 0),
        (
            "%s: f32 = sin %a\n %u: f32 = sin %b\n %v: f32 = cos %b\n %c: f32 = cos %a\n \
             %d: f32 = sub %s, %c\n %e: f32 = sub %d, %u\n %f: f32 = sub %e, %v\n %g: f32 = sin %f\n %t: f32 = add %f, %g",
            2,
            1,
        ),
        (
            "%w: u1 = lt %a, %b\n %t: f32 = if %w {\n %s: f32 = sin %a\n %c: f32 = cos %a\n %p: f32 = sub %s, %c\n yield %p\n } else {\n \
             %s2: f32 = sin %a\n %c2: f32 = cos %a\n %q: f32 = sub %c2, %s2\n yield %q\n }",
            2,
            0,
        ),
        (
            "%o: f32 = load %x[%one]\n %s: f32 = sin %o\n %c: f32 = cos %o\n %d: f32 = sub %s, %c\n %t: f32 = mul %d, %b",
            1,
            0,
        ),
        (
            "%w: u1 = lt %a, %b\n %s: f32 = sin %a\n %t: f32 = if %w {\n %c: f32 = cos %a\n yield %c\n } else {\n yield %s\n }",
            0,
            2,
        ),
    ];
    for (ops, pairs, alone) in cases {
        let text = text(ops);
        let emitted = &tasks(&text)[0].text;
        // The points of a thread, and the one of the loop over those that are left.
        let copies = 5;
        assert_eq!(
            emitted.matches("= call { float, float } @octants.sincos(").count(),
            copies * pairs,
            "{emitted}"
        );
        let calls = |name: &str| emitted.matches(&format!("= call float @octants.{name}(")).count();
        assert_eq!(calls("sin") + calls("cos"), copies * alone, "{emitted}");
        for n in [3, 1024, 3000] {
            check_gpu(&kernel(&text), &[input(Scalar::F32, &[n]), input(Scalar::F32, &[n])], |_| 1e-6);
        }
    }
}

#[test]
fn a_loop_is_unrolled_less_the_longer_its_iterations_are() {
    let unrolled = |step: &str| {
        let text = format!(
            r#"
kernel @k(%x "x": array<f32, 1>, %steps "steps": i32) {{
  %zero: i32 = const 0
  %n: i32 = extent 0 %x
  parallel_for (%i: i32) in (%zero..%n) {{
    %v: f32 = load %x[%i]
    %s: f32 = for %j: i32 in %zero..%steps carry (%a: f32 = %v) {{
      {step}
      yield %t
    }}
    store %x[%i], %s
  }}
  return
}}"#
        );
        let text = &tasks(&text)[0].text;
        let count = text.split("llvm.loop.unroll.count\", i32 ").nth(1);
        count.and_then(|rest| rest.split('}').next()?.parse::<u32>().ok())
    };
    assert_eq!(unrolled("%t: f32 = mul %a, %a"), Some(16));
    // A math function is as long as many ops.
    assert_eq!(unrolled("%b: f32 = mul %a, %a\n %t: f32 = sin %b"), Some(2));
    assert_eq!(unrolled("%b: f32 = pow %a, %a\n %t: f32 = sin %b"), None);
    assert_eq!(unrolled("%b: f32 = pow %a, %zero\n %t: f32 = sqrt %b"), Some(16));
}

#[test]
fn loops_inside_a_body_are_unrolled_and_keep_their_order() {
    // Halving after each addition: the order matters.
    let text = r#"
kernel @fold(%x "x": array<f32, 1>, %m "m": array<f32, 2>, %y "y": array<f32, 1>, %lo "lo": i32) {
  %zero: i32 = const 0
  %n: i32 = extent 0 %y
  parallel_for (%i: i32) in (%zero..%n) {
    %none: f32 = const 0.0
    %half: f32 = const 0.5
    %s: f32 = for %j: i32 in %lo..%i carry (%a: f32 = %none) {
      %v: f32 = load %x[%j]
      %w: f32 = load %m[%i, %j]
      %b: f32 = add %a, %v
      %c: f32 = add %b, %w
      %d: f32 = mul %c, %half
      yield %d
    }
    store %y[%i], %s
  }
  return
}"#;
    assert_eq!(tasks(text)[0].shape.mapping, PointMapping::Tiles { across: 32, points: 1, rows: 1 });
    let kernel = kernel(text);
    for n in [40, 37] {
        for lo in [0, 4, 3] {
            let x = input(Scalar::F32, &[n]);

            let lo = Input::Scalar(Const::i32(lo));
            let inputs = [x, input(Scalar::F32, &[n, n]), input(Scalar::F32, &[n]), lo];
            check_gpu(&kernel, &inputs, |_| 0.0);
        }
    }
}

#[test]
fn entries_of_a_vector_are_joined_where_the_array_is_aligned() {
    let text = r#"
kernel @gather(%x "x": array<tensor<f32, 2>, 2>, %k "k": array<i32, 1>, %y "y": array<tensor<f64, 2>, 1>, %lo "lo": i32) {
  %zero: i32 = const 0
  %n: i32 = extent 0 %y
  parallel_for (%i: i32) in (%zero..%n) {
    %none: i32 = const 0
    %one: i32 = const 1
    %at: i32 = load %k[%i]
    %p: f32 = load %x[%at, %at, %none]
    %q: f32 = load %x[%at, %at, %one]
    %a: f64 = cast %p
    %b: f64 = cast %q
    %s: f64 = for %j: i32 in %lo..%at carry (%c: f64 = %a) {
      %u: f32 = load %x[%at, %j, %one]
      %v: f32 = load %x[%at, %j, %none]
      %w: f32 = sub %u, %v
      %d: f64 = cast %w
      %e: f64 = add %c, %d
      yield %e
    }
    store %y[%i, %none], %s
    store %y[%i, %one], %b
  }
  return
}"#;
    let emitted = &tasks(text)[0];
    assert_eq!(emitted.shape.mapping, PointMapping::Tiles { across: 32, points: 1, rows: 1 });
    assert!(emitted.text.lines().any(|line| line.contains("load float") && line.contains("align 8")));
    for (n, lo) in [(9, 0), (8, 3)] {
        let entries = |ty, count| whole_numbers(ty, count as usize);
        let inputs = [
            Input::array(Scalar::F32, &entries(Scalar::F32, 2 * n * n), &[n, n]),
            Input::array(Scalar::I32, &(0..300).map(|i| Const::i32(i % n)).collect::<Vec<_>>(), &[300]),
            Input::array(Scalar::F64, &entries(Scalar::F64, 600), &[300]),
            Input::Scalar(Const::i32(lo)),
        ];
        check_gpu(&kernel(text), &inputs, |_| 0.0);
    }
}

/// Elements of several words are loaded and stored by the lanes of a warp together, one word at a time or four.
#[test]
fn lanes_exchange_the_words_of_elements() {
    for entries in [3, 5, 6, 8, 9, 11, 12, 14, 16] {
        let (mut loads, mut stores) = (String::new(), String::new());
        for entry in 0..entries {
            writeln!(
                loads,
                "    %e{entry}: i32 = const {entry}\n    %a{entry}: f32 = load %x[%i, %e{entry}]"
            )
            .unwrap();
            let other = (entry + 1) % entries;
            writeln!(stores, "    %b{entry}: f32 = add %a{entry}, %a{other}").unwrap();
        }
        // A body with a loop has a point a thread.
        let twice = "    %s: f32 = for %k: i32 in %e0..%e2 carry (%q: f32 = %b0) {\n    %r: f32 = add %q, %b1\n    yield %r\n    }";
        writeln!(stores, "{twice}").unwrap();
        for entry in 0..entries {
            let value = if entry == 2 { "%s".to_owned() } else { format!("%b{entry}") };
            writeln!(stores, "    store %y[%i, %e{entry}], {value}").unwrap();
        }
        let text = format!(
            r#"
kernel @turn(%x "x": array<tensor<f32, {entries}>, 1>, %y "y": array<tensor<f32, {entries}>, 1>, %lo "lo": i32, %hi "hi": i32) {{
  parallel_for (%i: i32) in (%lo..%hi) {{
{loads}{stores}
  }}
  return
}}"#
        );
        let emitted = &tasks(&text)[0].text;
        assert!(emitted.contains("llvm.nvvm.bar.warp.sync"), "{emitted}");
        assert_eq!(emitted.contains("load <4 x float>"), entries % 2 == 1 || entries % 4 == 0, "{emitted}");
        for (lo, hi) in [(0, 640), (5, 33), (31, 400), (0, 1), (64, 607)] {
            let array = || Input::array(Scalar::F32, &whole_numbers(Scalar::F32, 640 * entries), &[640]);
            let bounds = [lo, hi].map(|bound| Input::Scalar(Const::i32(bound)));
            let [lo, hi] = bounds;
            check_gpu(&kernel(&text), &[array(), array(), lo, hi], |_| 0.0);
        }
    }
}

/// Bodies with loops: a block goes on by digits, which carry, in numbers of 32 bits or of 64.
#[test]
fn blocks_step_from_tile_to_tile() {
    let text = r#"
kernel @count(%x "x": array<i32, AXES>, %lo "lo": i32, LIST) {
  %zero: i32 = const 0
  parallel_for (INDICES) in (RANGES) {
    %none: i32 = const 0
    %one: i32 = const 1
    %five: i32 = const 5
    %s: i32 = while carry (%a: i32 = %none) {
      %sum: i32 = add %a, %i
      %m: i32 = mod %sum, %five
      %r: u1 = ne %m, %one
      yield %r, %a
    } do (%b: i32) {
      %c: i32 = add %b, %one
      yield %c
    }
    STORE
  }
  return
}"#;
    let two = text
        .replace("AXES", "2")
        .replace("LIST", r#"%m0 "m0": i32, %m1 "m1": i32"#)
        .replace("INDICES", "%i: i32, %j: i32")
        .replace("RANGES", "%lo..%m0, FROM..%m1");
    let moved = "%p: i32 = sub %i, %lo\n    %q: i32 = sub %j, FROM\n    store %x[%p, %q], %s";
    let two = two.replace("STORE", moved);
    let three = text
        .replace("AXES", "3")
        .replace("LIST", r#"%m0 "m0": i32, %m1 "m1": i32, %m2 "m2": i32"#)
        .replace("INDICES", "%i: i32, %j: i32, %k: i32")
        .replace("RANGES", "%zero..%m0, %zero..%m1, %zero..%m2")
        .replace("STORE", "store %x[%i, %j, %k], %s");
    for (from, lo) in [("%zero", 0), ("%zero", 3), ("%lo", -7)] {
        let text = two.replace("FROM", from);
        let shape = tasks(&text)[0].shape;
        assert_eq!(
            (shape.mapping, shape.grid),
            (PointMapping::Tiles { across: 8, points: 1, rows: 1 }, Grid::Several)
        );
        for (rows, columns) in [(70, 33), (5, 100), (40, 3)] {
            let begin = if from == "%lo" { lo } else { 0 };
            let numbers = [lo, lo + rows, begin + columns].map(|number| Input::Scalar(Const::i32(number)));
            let mut inputs = vec![input(Scalar::I32, &[rows, columns])];
            inputs.extend(numbers);
            check_gpu(&kernel(&text), &inputs, |_| 0.0);
        }
    }
    for shape in [[3, 20, 40], [9, 17, 5], [2, 3, 70]] {
        let numbers = [0, shape[0], shape[1], shape[2]].map(|number| Input::Scalar(Const::i32(number)));
        let mut inputs = vec![input(Scalar::I32, &shape)];
        inputs.extend(numbers);
        check_gpu(&kernel(&three), &inputs, |_| 0.0);
    }
}

#[test]
fn short_last_axes_are_numbered() {
    let text = r#"
kernel @entries(%x "x": array<f32, 3>, %s "s": array<f32, 1>, %n "n": i32) {
  %zero: i32 = const 0
  %one: i32 = const 1
  %three: i32 = const 3
  %four: i32 = const 4
  parallel_for (%i: i32, %j: i32, %k: i32) in (%one..BOUND, %zero..%three, %one..%four) reduce (%a: f32 = atomic_add %s[%zero]) {
    %v: f32 = load %x[%i, %j, %k]
    %b: f32 = add %a, %v
    %w: f32 = cast %k
    store %x[%i, %j, %k], %w
    yield %b
  }
  return
}"#;
    for bound in ["%n", "%four"] {
        let text = text.replace("BOUND", bound);
        let shape = tasks(&text)[0].shape;
        assert_eq!((shape.mapping, shape.grid), (PointMapping::Points, Grid::Resident));
        let n = Input::Scalar(Const::i32(99));
        check_gpu(&kernel(&text), &[input(Scalar::F32, &[100, 3, 4]), input(Scalar::F32, &[1]), n], |_| 0.0);
    }
}

#[test]
fn groups_of_fields_are_aligned_as_their_layouts_say() {
    // Rows that are aligned, with an origin; rows that are not; cells that hold another field too; vectors.
    let layouts = [
        "layout [20, 264] from [-2, -5] { dense (axis 0 below 1 extent 20 stride 1056, axis 1 below 1 extent 264 stride 4) }",
        "layout [20, 265] from [-2, -5] { dense (axis 0 below 1 extent 20 stride 1060, axis 1 below 1 extent 265 stride 4) }",
        "layout [20, 264] from [-2, -5] { dense (axis 0 below 1 extent 20 stride 2112, axis 1 below 1 extent 264 stride 8) }",
    ];
    for layout in layouts {
        let text = format!(
            r#"layout0 = {layout}

kernel @stencil(%x "x": field<f32, layout0>, %y "y": field<f32, layout0>) {{
  %i0: i32 = const -1
  %i1: i32 = const 17
  %j0: i32 = const -4
  %j1: i32 = const 258
  parallel_for (%i: i32, %j: i32) in (%i0..%i1, %j0..%j1) {{
    %one: i32 = const 1
    %seven: i32 = const 7
    %up: i32 = sub %i, %one
    %left: i32 = sub %j, %one
    %right: i32 = add %j, %one
    %a: f32 = load %x[%up, %j]
    %b: f32 = load %x[%i, %left]
    %c: f32 = load %x[%i, %right]
    %d: f32 = add %a, %b
    %e: f32 = sub %d, %c
    %in: u1 = ge %j, %seven
    if %in {{
      store %y[%i, %j], %e
    }}
  }}
  return
}}"#
        );
        let memory = || {
            let scalars = whole_numbers(Scalar::F32, 20 * 265 * 2);
            Input::array(Scalar::F32, &scalars, &[])
        };
        check_gpu(&kernel(&text), &[memory(), memory()], |_| 0.0);
    }
}
