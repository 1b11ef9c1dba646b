//! Rows of a loop on a CPU: what is known of their indices, and which are unrolled.

mod harness;

use harness::oracle::{Input, check};
use octants_ir::{Const, Kernel, Scalar};
use octants_llvm::{CpuOptions, EmitOptions, emit};

fn parse(text: &str) -> Kernel {
    octants_ir::text::parse(text).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

/// The code of the first task.
fn code(kernel: &Kernel) -> String {
    let plan = harness::plan_of(kernel);
    emit(kernel, &plan, &EmitOptions::for_cpu(CpuOptions::default())).swap_remove(0).text
}

fn integers(values: impl IntoIterator<Item = i32>, shape: &[i32]) -> Input {
    let values: Vec<_> =
        values.into_iter().map(|value| Const::from_i128(Scalar::I32, value.into())).collect();
    Input::array(Scalar::I32, &values, shape)
}

/// Quotients and remainders of indices from `first` to 96, by seven.
fn quotients(first: i32) -> Kernel {
    parse(&format!(
        r#"kernel @k(%x "x": array<i32, 2>) {{
          %first: i32 = const {first}
          %end: i32 = const 96
          parallel_for (%i: i32) in (%first..%end) {{
            %zero: i32 = const 0
            %one: i32 = const 1
            %two: i32 = const 2
            %three: i32 = const 3
            %offset: i32 = const {first}
            %seven: i32 = const 7
            %row: i32 = sub %i, %offset
            %a: i32 = floor_div %i, %seven
            %b: i32 = mod %i, %seven
            %c: i32 = raw_div %i, %seven
            %d: i32 = raw_mod %i, %seven
            store %x[%row, %zero], %a
            store %x[%row, %one], %b
            store %x[%row, %two], %c
            store %x[%row, %three], %d
          }}
          return
        }}"#
    ))
}

#[test]
fn indices_that_are_never_negative_are_divided_without_signs() {
    let (signed, unsigned) = (quotients(-1), quotients(0));
    let text = code(&unsigned);
    assert!(text.contains("udiv") && text.contains("urem") && !text.contains("sdiv"), "{text}");
    assert!(!text.contains("srem"), "{text}");
    let text = code(&signed);
    assert!(text.contains("sdiv i32") && !text.contains("udiv i32"), "{text}");
    for kernel in [signed, unsigned] {
        check(&kernel, &[integers(vec![0; 97 * 4], &[97, 4])], |_| 0.0);
    }
}

/// Each element becomes its neighbour's at a distance, in blocks of 16 whose order `entries` says.
fn neighbours(distance: i32, extent: i32) -> Kernel {
    parse(&format!(
        r#"kernel @k(%entries "entries": array<i32, 1>, %x "x": array<i32, 2>, %y "y": array<i32, 2>) {{
          %none: i32 = const 0
          %blocks: i32 = const 8
          %row: i32 = const {extent}
          parallel_for (%b: i32, %j: i32) in (%none..%blocks, %none..%row) {{
            %width: i32 = const 16
            %first: i32 = mul %b, %width
            %at: i32 = add %first, %j
            %distance: i32 = const {distance}
            %next: i32 = add %at, %distance
            %bits: i32 = const 4
            %block: i32 = shr %next, %bits
            %slot: i32 = load %entries[%block]
            %mask: i32 = const 15
            %digit: i32 = and %next, %mask
            %value: i32 = load %x[%slot, %digit]
            store %y[%b, %j], %value
          }}
          return
        }}"#
    ))
}

#[test]
fn the_loop_over_rows_is_not_peeled() {
    let kernel = parse(
        r#"kernel @k(%x "x": array<f32, 2>, %n "n": i32) {
          %zero: i32 = const 0
          parallel_for (%i: i32, %j: i32) in (%zero..%n, %zero..%n) {
            %none: f32 = const 0.0
            store %x[%i, %j], %none
          }
          return
        }"#,
    );
    let text = code(&kernel);
    assert!(text.contains("llvm.loop.unroll.disable"), "{text}");
    let compiled = octants_llvm_sys::Options { keep_ir: true, ..octants_llvm_sys::Options::default() };
    let compiled = octants_llvm_sys::compile(&text, &compiled).expect("code that LLVM takes");
    let ir = compiled.ir.expect("was asked for");
    assert_eq!(ir.matches("call void @llvm.memset").count(), 1, "a second copy is the first row's:\n{ir}");
}

#[test]
fn whole_rows_that_look_up_blocks_are_unrolled() {
    let kernel = neighbours(1, 16);
    assert!(code(&kernel).contains("llvm.loop.unroll.full"), "{}", code(&kernel));
    // Longer rows would be much code.
    assert!(!code(&neighbours(1, 17)).contains("llvm.loop.unroll.full"));
    // Parts of rows, too, are right: chunks are 13 iterations long.
    for distance in [1, 3] {
        let inputs = [
            integers([3, 1, 8, 0, 2, 7, 5, 6, 4], &[9]),
            integers(0..9 * 16, &[9, 16]),
            integers(vec![-1; 8 * 16], &[8, 16]),
        ];
        check(&neighbours(distance, 16), &inputs, |_| 0.0);
    }
}

/// Integers of reals, in a loop with or without a call.
fn truncations(call: &str) -> Kernel {
    parse(&format!(
        r#"func0 = function @same(%v "v": i32) -> (i32) {{
          return %v
        }}
        kernel @k(%x "x": array<f32, 1>, %y "y": array<i32, 1>) {{
          %none: i32 = const 0
          %end: i32 = const 12
          parallel_for (%i: i32) in (%none..%end) {{
            %a: f32 = load %x[%i]
            %b: i32 = cast %a
            {call}
            store %y[%i], %b
          }}
          return
        }}"#
    ))
}

#[test]
fn what_is_not_vectorised_tests_once_whether_a_real_fits_an_integer() {
    let (plain, calls) = (truncations(""), truncations("%c: i32 = call func0 %b"));
    assert!(!code(&plain).contains("llvm.fabs"), "{}", code(&plain));
    assert!(code(&calls).contains("llvm.fabs"), "{}", code(&calls));
    let edge = 2.0_f64.powi(31);
    let reals = [
        0.0,
        -0.5,
        1.9,
        -1.9,
        edge,
        -edge,
        edge - 128.0,
        -edge - 256.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e30,
    ];
    let reals = reals.map(|value| Const::from_f64(Scalar::F32, value));
    for kernel in [plain, calls] {
        let inputs = [Input::array(Scalar::F32, &reals, &[12]), integers(vec![7; 12], &[12])];
        check(&kernel, &inputs, |_| 0.0);
    }
}

/// Stores a value for each point of a domain that does not begin at zero.
fn stores(array: &str, place: &str, value: &str) -> Kernel {
    parse(&format!(
        r#"layout0 = layout [48, 48] from [0, 0] {{ dense (axis 0 below 1 extent 48 stride 192, axis 1 below 1 extent 48 stride 4) }}
        layout1 = layout [48, 48] from [0, 0] {{ dense (axis 0 below 1 extent 48 stride 384, axis 1 below 1 extent 48 stride 8) }}
        kernel @k(%x "x": {array}) {{
          %lo: i32 = const 1
          %hi: i32 = const 47
          parallel_for (%i: i32, %j: i32) in (%lo..%hi, %lo..%hi) {{
            {value}
            store %x[{place}], %v
          }}
          return
        }}"#
    ))
}

#[test]
fn rows_of_zeros_are_cleared_by_one_call() {
    let zero = |ty: Scalar| format!("%v: {} = const 0{}", ty.name(), if ty.is_real() { ".0" } else { "" });
    for ty in [Scalar::F32, Scalar::F64, Scalar::I64, Scalar::U8] {
        let kernel = stores(&format!("array<{}, 2>", ty.name()), "%i, %j", &zero(ty));
        let text = code(&kernel);
        assert_eq!(text.matches("call void @llvm.memset.p0.i64(").count(), 1, "{text}");
        let one = if ty.is_real() { Const::from_f64(ty, 1.0) } else { Const::from_i128(ty, 1) };
        check(&kernel, &[Input::array(ty, &vec![one; 48 * 48], &[48, 48])], |_| 0.0);
    }
    let field = stores("field<f32, layout0>", "%i, %j", &zero(Scalar::F32));
    assert!(code(&field).contains("call void @llvm.memset.p0.i64("));
    // Cells that lie apart, an index that is clamped, a number with a bit that is set, and more to do than that.
    let next = "%one: i32 = const 1\n %next: i32 = add %j, %one\n";
    let others = [
        stores("array<f32, 2>", "%j, %i", &zero(Scalar::F32)),
        stores("array<f32, 2, clamp>", "%i, %j", &zero(Scalar::F32)),
        stores("field<f32, layout1>", "%i, %j", &zero(Scalar::F32)),
        stores("array<f32, 2>", "%i, %j", "%v: f32 = const -0.0"),
        stores("array<f32, 2>", "%i, %next", &format!("{}\n {next}", zero(Scalar::F32))),
        stores("array<f32, 2>", "%i, %j", &format!("{}\n {next} store %x[%i, %next], %v", zero(Scalar::F32))),
    ];
    for kernel in others {
        let text = code(&kernel);
        assert!(!text.contains("llvm.memset"), "{text}");
    }
}
