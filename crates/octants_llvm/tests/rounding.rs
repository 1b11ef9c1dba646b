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
