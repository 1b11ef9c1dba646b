//! What a launch is told to do: steps, bounds that the host computes, temporaries, and what must not alias.

use octants_ir::ops::ArithOp;
use octants_ir::text::parse;
use octants_ir::{Access, Bound, Plan, Scalar, Task};
use octants_passes::{Assumptions, PipelineOptions, run_pipeline};

fn plan(text: &str, noalias: bool) -> Plan {
    plan_with(text, Assumptions { noalias, ..Assumptions::default() })
}

fn plan_with(text: &str, assumptions: Assumptions) -> Plan {
    let kernel = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let options = PipelineOptions { assumptions, ..PipelineOptions::default() };
    run_pipeline(kernel, options).plan
}

const HALVES: &str = r#"kernel @halves(%0 "x": array<f32, 1>, %1 "y": array<i32, 1>, %2 "n": i32) -> (i32) {
  %3: i32 = const 0
  %4: i32 = const 2
  %5: i32 = floor_div %2, %4
  %6: i32 = extent 0 %0
  %7: i32 = const 8
  %8: i32 = mod %6, %7
  parallel_for (%9: i32, %10: i32) in (%5..%8, %3..%2) block_dim 64 name "first" {
    for %11: i32 in %3..%9 {
      %12: f32 = load %0[%11]
      %13: f32 = sin %12
      %14: i32 = cast %13
      %15: i32 = atomic_add %1[%14], %10
    }
  }
  %16: i32 = load %1[%3]
  parallel_for (%17: i32) in (%3..%16) {
    store %1[%17], %17
  }
  return %16
}"#;

#[test]
fn bounds_are_what_the_kernel_computes() {
    let plan = plan(HALVES, false);
    let [first, Task::Serial, second] = &plan.tasks[..] else { panic!("{:?}", plan.tasks) };
    let Task::Range { axes, block_dim, name, cost, .. } = first else { panic!("{first:?}") };
    assert_eq!((*block_dim, name.as_deref()), (Some(64), Some("first")));
    assert!(*cost > 64 * 16, "an unknown loop with a sine in it costs {cost}");

    let mut args = vec![0; plan.args.bytes as usize];
    let mut put = |offset: u32, value: i32| {
        args[offset as usize..offset as usize + 4].copy_from_slice(&value.to_le_bytes());
    };
    put(plan.args.slots[0].extent_offset(0), 21);
    put(plan.args.slots[2].offset, -7);
    let bounds: Vec<_> = axes
        .iter()
        .map(|(lo, hi)| (lo.evaluate(&plan, &args, &[]), hi.evaluate(&plan, &args, &[])))
        .collect();
    assert_eq!(bounds, [(-4, 5), (0, -7)]);

    let Task::Range { axes, .. } = second else { panic!("{second:?}") };
    assert!(matches!(axes[..], [(Bound::Const(0), Bound::Temp(0))]));
    let mut temps = vec![0; plan.temps.bytes as usize];
    temps[..4].copy_from_slice(&9_i32.to_le_bytes());
    assert_eq!(axes[0].1.evaluate(&plan, &args, &temps), 9);
}

#[test]
fn a_plan_says_what_is_touched_and_what_must_not_overlap() {
    let touched = |read, written| Access { read, written };
    let careful = plan(HALVES, false);
    assert_eq!(careful.access, [touched(true, false), touched(true, true), touched(false, false)]);
    assert!(!careful.needs_noalias);
    assert!(plan(HALVES, true).needs_noalias);
    let only_one = r#"kernel @one(%0 "x": array<f32, 1>, %1 "y": array<f32, 1>) {
      %2: i32 = const 0
      %3: i32 = extent 0 %1
      parallel_for (%4: i32) in (%2..%3) {
        %5: f32 = load %0[%4]
        store %0[%4], %5
      }
      return
    }"#;
    assert!(
        !plan(only_one, true).needs_noalias,
        "an array of which only the extent is used overlaps nothing"
    );
}

#[test]
fn a_division_by_a_power_of_two_stays_a_division_for_the_host() {
    let plan = plan(HALVES, false);
    let Task::Range { axes, .. } = &plan.tasks[0] else { panic!("{:?}", plan.tasks) };
    let half = Bound::Arith {
        op: ArithOp::FloorDiv,
        ty: Scalar::I32,
        a: Box::new(Bound::Param(2)),
        b: Box::new(Bound::Const(2)),
    };
    assert_eq!(axes[0].0, half);
}

/// `%0` is only added to, `%1` is read as well, the old value of `%2` is used, `%3` holds bytes, and `%4` is the loop's own.
const SUMS: &str = r#"kernel @sums(%0 "a": array<tensor<f32, 2>, 1>, %1 "b": array<i32, 1>, %2 "c": array<i32, 1>, %3 "d": array<u8, 1>, %4 "e": array<f32, 1>) {
  %5: i32 = const 0
  %6: i32 = const 100
  parallel_for (%7: i32) in (%5..%6) {
    %8: i32 = load %1[%7]
    %9: f32 = cast %8
    for %10: i32 in %5..%8 {
      %11: f32 = atomic_add %0[%10, %5], %9
    }
    %12: f32 = atomic_sub %0[%8, %5], %9
    %13: i32 = atomic_add %1[%8], %8
    %14: i32 = atomic_add %2[%8], %8
    %15: u8 = cast %14
    %16: u8 = atomic_add %3[%8], %15
    %17: f32 = atomic_add %4[%7], %9
  }
  return
}"#;

#[test]
fn threads_get_copies_of_arrays_that_a_loop_only_adds_to() {
    let copied = |noalias, copies| {
        let plan = plan_with(
            SUMS,
            Assumptions { noalias, copies, exclusive: false, few_tasks: false, blocks: false },
        );
        let [Task::Range { copied, .. }] = &plan.tasks[..] else { panic!("{:?}", plan.tasks) };
        copied.clone()
    };
    let [one] = copied(true, true)[..] else { panic!("{:?}", copied(true, true)) };
    assert_eq!((one.param, one.scalar, one.updates, one.span), (0, Scalar::F32, 5, None));
    assert_eq!((copied(true, false), copied(false, true)), (vec![], vec![]));

    let plan = plan_with(
        SUMS,
        Assumptions { noalias: true, copies: true, exclusive: false, few_tasks: false, blocks: false },
    );
    let mut args = vec![0; plan.args.bytes as usize];
    let extent = plan.args.slots[0].extent_offset(0) as usize;
    args[extent..extent + 4].copy_from_slice(&33_i32.to_le_bytes());
    assert_eq!(one.bytes(&plan.args, &args), 33 * 8);
}

#[test]
fn long_serial_code_is_several_tasks_that_share_what_they_need() {
    let products: Vec<_> = (0..3000).map(|line| format!("%v{}: i32 = mul %v{line}, %n", line + 1)).collect();
    let mut lines = format!("%zero: i32 = const 0\n%v0: i32 = load %x[%zero]\n{}\n", products.join("\n"));
    lines += "store %x[%zero], %v3000\nreturn %v3000\n";
    let text = format!("kernel @long(%x \"x\": array<i32, 1>, %n \"n\": i32) -> (i32) {{\n{lines}}}");
    let long = plan(&text, false);
    assert_eq!(long.tasks.iter().filter(|task| matches!(task, Task::Serial)).count(), 4);
    assert_eq!(long.temps.slots.len(), 3, "each task hands one value to the next");

    let one_loop = |number: u32| {
        format!(
            "while {{ %l{number}: i32 = load %x[%n]\n%c{number}: u1 = lt %l{number}, %n\nyield %c{number} }} \
             do {{ store %x[%n], %n }}\n"
        )
    };
    let loops: String = (0..100).map(one_loop).collect();
    let text = format!("kernel @loops(%x \"x\": array<i32, 1>, %n \"n\": i32) {{\n{loops}return\n}}");
    let tasks = plan(&text, false).tasks.len();
    assert!((3..=5).contains(&tasks), "{tasks} tasks for 100 loops");
}

/// Each line doubles the ways to the first.
#[test]
fn a_bound_that_is_used_again_and_again_is_looked_at_once() {
    let sums: Vec<_> = (0..64).map(|line| format!("%v{}: i32 = add %v{line}, %v{line}", line + 1)).collect();
    let sums = sums.join("\n");
    let text = format!(
        "kernel @doubled(%x \"x\": array<i32, 1>, %v0 \"n\": i32) {{\n%zero: i32 = const 0\n{sums}\n\
         parallel_for (%i: i32) in (%zero..%v64) {{ store %x[%i], %i }}\nreturn\n}}"
    );
    let plan = plan(&text, false);
    assert!(matches!(plan.tasks[..], [Task::Serial, Task::Range { .. }]), "{:?}", plan.tasks);
}
