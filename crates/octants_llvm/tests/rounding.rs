//! Which ops on reals carry flags: of kernels with exact choices, all that does not flow into a choice.

mod harness;

use harness::gpu_text::{kernel, tasks};
use octants_llvm::{EmitOptions, emit};

/// A greatest value, and a sum that has nothing to do with it.
fn text(options: &str) -> String {
    format!(
        r#"
kernel @k(%x "x": array<f32, 1>, %y "y": array<f32, 1>, %n "n": i32) {options} tasks {{
  %zero: i32 = const 0
  %one: i32 = const 1
  parallel_for (%i: i32) in (%zero..%n) {{
    %a: f32 = load %x[%i]
    %product: f32 = mul %a, %a
    %value: f32 = sub %product, %a
    %root: f32 = sqrt %value
    %quotient: f32 = div %a, %root
    %old: f32 = atomic_max %y[%zero], %quotient
    %b: f32 = load %x[%one]
    %other: f32 = mul %a, %b
    %more: f32 = add %other, %b
    %norm: f32 = sqrt %more
    %share: f32 = div %b, %norm
    %before: f32 = atomic_add %y[%one], %share
  }}
  return
}}"#
    )
}

/// The flags of all instructions of a name, in the order of the text.
fn flags<'t>(text: &'t str, instruction: &str) -> Vec<&'t str> {
    let begin = format!("= {instruction} ");
    let rest = text.split(begin.as_str()).skip(1);
    rest.map(|rest| rest.split(['<', 'f']).next().unwrap_or_default().trim()).collect()
}

#[test]
fn what_flows_into_the_greatest_carries_no_flags_and_the_rest_does() {
    let text = text("fast_math exact_choices");
    let on_cpu = &emit(&kernel(&text), &harness::plan_of(&kernel(&text)), &EmitOptions::default())[0].text;
    for emitted in [on_cpu, &tasks(&text)[0].text] {
        let products = flags(emitted, "fmul");
        assert!(products.contains(&"") && products.contains(&"nsz contract"), "{emitted}");
        assert!(flags(emitted, "fsub").iter().all(|flags| flags.is_empty()), "{emitted}");
        let sums = flags(emitted, "fadd");
        assert!(!sums.is_empty() && sums.iter().all(|flags| flags.contains("contract")), "{emitted}");
        for root in ["fdiv ", "call "] {
            let plain = [format!("= {root}float"), format!("= {root}<")];
            assert!(plain.iter().any(|plain| emitted.contains(plain)), "{emitted}");
            assert!(emitted.contains(&format!("= {root}afn ")), "{emitted}");
        }
    }
}

#[test]
fn without_exact_choices_all_carry_flags() {
    let text = text("fast_math");
    let emitted = &tasks(&text)[0].text;
    for instruction in ["fmul", "fsub", "fadd"] {
        let found = flags(emitted, instruction);
        assert!(found.iter().all(|flags| flags.contains("contract")), "{emitted}");
    }
}

/// The sums of a kernel's text, each as its operands.
fn sums(text: &str) -> Vec<&str> {
    text.split(" = fadd ")
        .skip(1)
        .map(|rest| rest.split("float ").nth(1).unwrap_or_default().lines().next().unwrap())
        .collect()
}

#[test]
fn a_sum_of_squares_begins_with_its_constant() {
    let text = |constant: &str, last: &str, options: &str| {
        format!(
            r#"
kernel @k(%x "x": array<f32, 1>, %y "y": array<f32, 1>, %n "n": i32) {options} tasks {{
  %zero: i32 = const 0
  %c: f32 = const {constant}
  parallel_for (%i: i32) in (%zero..%n) {{
    %a: f32 = load %x[%i]
    %b: f32 = load %y[%i]
    %aa: f32 = mul %a, %a
    %bb: f32 = mul %b, {last}
    %sum: f32 = add %aa, %bb
    %soft: f32 = add %sum, %c
    %root: f32 = sqrt %soft
    store %x[%i], %root
  }}
  return
}}"#
        )
    };
    let begins_with_constant = |text: &str| {
        let emitted = &tasks(text)[0].text;
        let found = sums(emitted);
        let with_constant = found.iter().filter(|sum| sum.contains("0x")).count();
        assert_eq!(2 * with_constant, found.len(), "{emitted}");
        found[0].contains("0x")
    };
    assert!(begins_with_constant(&text("0.25", "%b", "fast_math")));
    // What could cancel, and what is to be as written, stays in its order.
    assert!(!begins_with_constant(&text("-0.25", "%b", "fast_math")));
    assert!(!begins_with_constant(&text("0.25", "%a", "fast_math")));
    assert!(!begins_with_constant(&text("0.25", "%b", "")));
    let floor = text("0.25", "%b", "fast_math").replace("sqrt", "floor");
    assert!(!begins_with_constant(&floor));
}
