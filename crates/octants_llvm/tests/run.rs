//! Whole tasks: loops, places, reductions, faults.

mod harness;

use harness::{Arg, Program, read};
use octants_ir::{Const, Scalar};
use octants_llvm::EmitOptions;
use octants_llvm_sys::OptLevel;

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn to_f32s(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn a_range_runs_in_any_chunks() {
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
        for chunk in [1, 7, 1000] {
            let n = 103;
            let mut x = f32s(&(0..n).map(|i| i as f32).collect::<Vec<_>>());
            let mut y = f32s(&(0..n).map(|i| 1.0 - i as f32).collect::<Vec<_>>());
            let mut args =
                [Arg::Scalar(Const::f32(2.0)), Arg::Array(&mut x, &[n]), Arg::Array(&mut y, &[n])];
            program.run(&mut args, chunk);
            let expected: Vec<_> = (0..n).map(|i| 1.0 + i as f32).collect();
            assert_eq!(to_f32s(&y), expected);
        }
    }
    let _ = read(&[0, 0, 0, 0], Scalar::F32, 0);
}
