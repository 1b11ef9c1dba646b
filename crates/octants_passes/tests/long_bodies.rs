//! Bodies of thousands of ops take time in proportion to their length: no pass compares all of their ops with each other.

use std::fmt::Write;
use std::time::{Duration, Instant};

use octants_passes::{Assumptions, run_pass};

/// A loop with so many of the same statements.
fn body(statements: usize, statement: impl Fn(&mut String, usize)) -> String {
    let mut text = String::new();
    for number in 0..statements {
        statement(&mut text, number);
    }
    format!(
        r#"
kernel @long(%x "x": array<f32, 1>, %s "s": array<f32, 1>, %a "a": array<f32, 1>, %n "n": i32) {{
  %zero: i32 = const 0
  %one: i32 = const 1
  %real: f32 = const 1.0
  parallel_for (%i: i32) in (%zero..%n) {{
{text}  }}
  return
}}"#
    )
}

/// Least and greatest values by comparison, of a cell each, beside an assignment that is none.
fn maxima(text: &mut String, k: usize) {
    writeln!(text, "    %c{k}: i32 = const {k}\n    %v{k}: f32 = load %x[%i]").unwrap();
    writeln!(text, "    %m{k}: f32 = load %s[%c{k}]\n    %g{k}: u1 = gt %v{k}, %m{k}").unwrap();
    writeln!(text, "    if %g{k} {{\n      store %s[%c{k}], %v{k}\n    }}").unwrap();
    if k == 0 {
        writeln!(text, "    %far: i32 = const 1000000\n    store %s[%far], %real").unwrap();
    }
}

/// Reads, and updates of two neighbouring elements.
fn neighbours(text: &mut String, k: usize) {
    writeln!(text, "    %v{k}: f32 = load %x[%i]\n    %j{k}: i32 = add %i, %one").unwrap();
    writeln!(text, "    %o{k}: f32 = atomic_add %a[%i], %v{k}\n    %p{k}: f32 = atomic_add %a[%j{k}], %v{k}")
        .unwrap();
}

fn time(pass: &str, text: &str) -> Duration {
    let kernel = octants_ir::text::parse(text).unwrap_or_else(|error| panic!("{error:?}"));
    let assumptions = Assumptions { noalias: true, ..Assumptions::default() };
    let times = (0..3).map(|_| {
        let mut kernel = kernel.clone();
        let begin = Instant::now();
        assert!(run_pass(pass, &mut kernel, assumptions));
        begin.elapsed()
    });
    times.min().expect("there are three")
}

#[test]
fn passes_take_time_in_proportion_to_a_body() {
    for (pass, statement) in
        [("recognise_reductions", maxima as fn(&mut String, usize)), ("gather_updates", neighbours)]
    {
        let [short, long] = [500, 4000].map(|count| time(pass, &body(count, statement)));
        println!("{pass}: {short:?} and {long:?}");
        // Eight times as long; 64 times if it looked at pairs.
        assert!(long < short * 24, "{pass}: {short:?} and {long:?}");
    }
}
