//! How large derivatives are, and how long they take to make: near linear in what is carried, in the depth of loops and in their bodies.

use std::fmt::Write;
use std::time::Instant;

use octants_ir::rewrite::ops_in;
use octants_ir::text::parse;
use octants_ir::{Kernel, verify};
use octants_passes::{Mode, Storage, TapePlan, differentiate};

fn around(body: &str) -> Kernel {
    let text = format!(
        r#"kernel @k(%x "x": array<f64, 1>, %y "y": array<f64, 1>, %n "n": i32) {{
          %zero: i32 = const 0
          %end: i32 = extent 0 %x
          parallel_for (%i: i32) in (%zero..%end) {{
            %start: f64 = load %x[%i]
            {body}
            store %y[%i], %last
          }}
          return
        }}"#
    );
    parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Loops inside each other, with an `if` around the innermost.
fn nest(depth: usize) -> Kernel {
    let mut body = String::new();
    let mut end = String::new();
    let mut before = "%start".to_owned();
    for level in 0..depth {
        let name = if level == 0 { "%last".to_owned() } else { format!("%r{level}") };
        writeln!(body, "{name}: f64 = for %k{level}: i32 in %zero..%n carry (%v{level}: f64 = {before}) {{")
            .unwrap();
        before = format!("%v{level}");
        end = if level + 1 == depth {
            format!("%s: f64 = sin %v{level}\nyield %s\n}}\n{end}")
        } else {
            format!("yield %r{}\n}}\n{end}", level + 1)
        };
    }
    around(&(body + &end))
}

/// A loop that carries so many values, each of which changes all others a little.
fn carried(count: usize) -> Kernel {
    let names = |prefix: &str| (0..count).map(|i| format!("%{prefix}{i}")).collect::<Vec<_>>().join(", ");
    let mut body = String::new();
    let results = (0..count).map(|i| if i == 0 { "%last: f64".to_owned() } else { format!("%r{i}: f64") });
    let slots = (0..count).map(|i| format!("%v{i}: f64 = %start")).collect::<Vec<_>>().join(", ");
    let results = results.collect::<Vec<_>>().join(", ");
    writeln!(body, "{results} = for %k: i32 in %zero..%n carry ({slots}) {{").unwrap();
    for i in 0..count {
        writeln!(body, "%m{i}: f64 = mul %v{i}, %v{}\n%s{i}: f64 = sin %m{i}", (i + 1) % count).unwrap();
    }
    writeln!(body, "yield {}\n}}", names("s")).unwrap();
    around(&body)
}

/// The ops of the reverse kernel and of its sizing kernel, and what it keeps.
fn reverse(kernel: &Kernel) -> (usize, usize, TapePlan) {
    let storage = [Storage::Companion(None), Storage::Companion(None), Storage::Constant];
    let made =
        differentiate(kernel, Mode::Reverse, &storage).unwrap_or_else(|refusals| panic!("{refusals:?}"));
    verify(&made.kernel).unwrap();
    let plan = made.tapes.expect("loops keep something");
    verify(&plan.sizing).unwrap();
    let count = |kernel: &Kernel| ops_in(kernel, kernel.body).len();
    (count(&made.kernel), count(&plan.sizing), plan)
}

#[test]
fn a_deep_nest_keeps_one_value_for_each_loop_and_grows_with_its_square_at_most() {
    let sizes: Vec<_> = [3, 6, 12]
        .into_iter()
        .map(|depth| {
            let (ops, sizing, plan) = reverse(&nest(depth));
            assert_eq!(plan.loops.len(), depth);
            assert!(plan.loops.iter().all(|(_, scalars)| scalars.len() == 1));
            assert!(sizing < 20 * depth + 40, "{sizing} ops for the sizes of {depth} loops");
            ops
        })
        .collect();
    // Each level runs the loops inside it forward once more.
    assert!(sizes[2] < 5 * sizes[1] && sizes[1] < 5 * sizes[0], "{sizes:?}");
}

#[test]
fn many_carried_values_take_time_in_proportion() {
    let (few, _, _) = reverse(&carried(16));
    let begin = Instant::now();
    let (many, _, plan) = reverse(&carried(64));
    let time = begin.elapsed();
    assert_eq!(plan.loops[0].1.len(), 64);
    assert!(many < 5 * few, "{few} ops for 16 values, {many} for 64");
    assert!(time.as_secs() < 5, "{time:?}");
}
