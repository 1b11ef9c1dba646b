//! Code that is long or deep: compiled or refused, never a crash.

mod fake_host;

use fake_host::{FakeHost, Object};
use octants_diag::Code;
use octants_front::{ArgSpec, LowerOptions, Sources, lower_kernel};
use octants_ir::{Kernel, Scalar};

fn lower(body: &str) -> Result<Kernel, Code> {
    let source = format!("@oc.kernel\ndef f(n: oc.i32) -> oc.i32:\n{body}    return k\n");
    let host = FakeHost::new(&source);
    let function = Object::Kernel("f".to_owned());
    let args = [ArgSpec::Scalar(Scalar::I32)];
    let lowered = lower_kernel(&host, &Sources::new(), &function, &args, &LowerOptions::default(), &[]);
    lowered.map(|lowered| lowered.kernel).map_err(|errors| errors[0].code)
}

#[test]
fn thousands_of_terms_are_one_flat_block() {
    let kernel = lower(&format!("    k = {}\n", vec!["n"; 5000].join(" + "))).unwrap();
    assert!(kernel.regions[kernel.body].ops.len() > 4999);
}

#[test]
fn many_elifs_do_not_nest() {
    let arms: Vec<_> = (1..3000).map(|at| format!("    elif n == {at}:\n        k = {at}\n")).collect();
    let kernel = lower(&format!("    k = 0\n    if n == 0:\n        k = 1\n{}", arms.concat())).unwrap();
    assert!(kernel.regions[kernel.body].ops.len() > 6000);
}

#[test]
fn many_statements_that_leave_nest_in_groups() {
    let leaving = |count: usize| {
        let each: Vec<_> =
            (0..count).map(|at| format!("        if i == {at}:\n            continue\n")).collect();
        format!("    k = 0\n    for i in range(n):\n{}        k += 1\n", each.concat())
    };
    for count in [60, 100, 300, 10_000] {
        assert!(lower(&leaving(count)).is_ok(), "{count}");
    }
}

#[test]
fn blocks_that_are_nested_too_deeply_are_refused() {
    let nested = |depth: usize| {
        let each: Vec<_> = (1..=depth).map(|at| format!("{}if n > {at}:\n", "    ".repeat(at))).collect();
        format!("    k = 0\n{}{}k = 1\n", each.concat(), "    ".repeat(depth + 1))
    };
    assert!(lower(&nested(100)).is_ok());
    assert_eq!(lower(&nested(300)).unwrap_err(), Code::TooDeep);
}

#[test]
fn expressions_that_are_nested_too_deeply_are_refused() {
    assert!(lower(&format!("    k = {}n\n", "-".repeat(100))).is_ok());
    assert_eq!(lower(&format!("    k = {}n\n", "-".repeat(20_000))).unwrap_err(), Code::TooDeep);
}
