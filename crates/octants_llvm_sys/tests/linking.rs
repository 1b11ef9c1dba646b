//! The ways in which generated code refers to what is outside of it: each needs its own relocation.

// Calls generated code through function pointers.
#![allow(unsafe_code)]

use std::fmt::Write as _;

use octants_llvm_sys::{Loaded, OptLevel, Options, compile, load};

fn loaded(text: &str, opt: OptLevel, symbols: &[(&str, *const ())]) -> Loaded {
    let options = Options { opt, ..Options::default() };
    let object = compile(text, &options).unwrap_or_else(|error| panic!("{error}"));
    load(&object.bytes, symbols).unwrap_or_else(|error| panic!("{error}"))
}

/// Calls a function of the given signature in loaded code.
macro_rules! call {
    ($code:expr, $name:literal, fn($($kind:ty),*) -> $result:ty, $($value:expr),*) => {{
        let address = $code.symbol($name).expect($name);
        // SAFETY: the text of each test defines the function with this signature.
        let function: extern "C" fn($($kind),*) -> $result = unsafe { std::mem::transmute(address) };
        function($($value),*)
    }};
}

const LEVELS: [OptLevel; 2] = [OptLevel::None, OptLevel::Default];

extern "C" fn triple(x: i32) -> i32 {
    x * 3
}

#[test]
fn functions_given_by_the_caller() {
    let text = "declare i32 @triple(i32)
                define i32 @f(i32 %x) { %y = call i32 @triple(i32 %x) %z = add i32 %y, 1 ret i32 %z }
                define ptr @address() { ret ptr @triple }";
    for opt in LEVELS {
        let code = loaded(text, opt, &[("triple", triple as *const ())]);
        assert_eq!(call!(code, "f", fn(i32) -> i32, 5), 16);
        assert_eq!(call!(code, "address", fn() -> *const (),), triple as *const ());
        assert_eq!(code.symbols().collect::<Vec<_>>(), ["address", "f"]);
    }
}

#[test]
fn constants_variables_and_tables() {
    let text = "@table = internal constant [4 x i32] [i32 10, i32 20, i32 30, i32 40]
                @pointers = internal constant [2 x ptr] [ptr @one, ptr @two]
                @counter = global i64 5
                @zeros = internal global [100 x i64] zeroinitializer
                define internal i32 @one() noinline { ret i32 1 }
                define internal i32 @two() noinline { ret i32 2 }
                define i32 @look_up(i64 %i) {
                  %p = getelementptr [4 x i32], ptr @table, i64 0, i64 %i
                  %v = load i32, ptr %p ret i32 %v }
                define i32 @through(i64 %i) {
                  %p = getelementptr [2 x ptr], ptr @pointers, i64 0, i64 %i
                  %f = load ptr, ptr %p %v = call i32 %f() ret i32 %v }
                define i64 @count() {
                  %v = load i64, ptr @counter %w = add i64 %v, 1 store i64 %w, ptr @counter
                  %z = getelementptr [100 x i64], ptr @zeros, i64 0, i64 99
                  %old = load volatile i64, ptr %z store volatile i64 7, ptr %z
                  %sum = add i64 %w, %old ret i64 %sum }
                define double @constant(double %x) { %y = fmul double %x, 0x3FD5555555555555 ret double %y }";
    for opt in LEVELS {
        let code = loaded(text, opt, &[]);
        assert_eq!(
            (0..4).map(|i| call!(code, "look_up", fn(i64) -> i32, i)).collect::<Vec<_>>(),
            [10, 20, 30, 40]
        );
        assert_eq!((0..2).map(|i| call!(code, "through", fn(i64) -> i32, i)).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(call!(code, "count", fn() -> i64,), 6);
        assert_eq!(call!(code, "count", fn() -> i64,), 14);
        assert_eq!(call!(code, "constant", fn(f64) -> f64, 3.0), 3.0 * (1.0 / 3.0));
    }
}

#[test]
fn switches_become_jump_tables() {
    let mut text = "define i32 @f(i32 %x, ptr %p) {\n switch i32 %x, label %none [\n".to_owned();
    for case in 0..20 {
        let _ = writeln!(text, "i32 {case}, label %c{case}");
    }
    text += "]\nnone: ret i32 -1\n";
    for case in 0..20 {
        let _ = writeln!(text, "c{case}: store volatile i32 {case}, ptr %p\n ret i32 {}", case * case + 3);
    }
    text += "}";
    for opt in LEVELS {
        let code = loaded(&text, opt, &[]);
        let mut seen = 0;
        for case in 0..20 {
            assert_eq!(call!(code, "f", fn(i32, *mut i32) -> i32, case, &raw mut seen), case * case + 3);
            assert_eq!(seen, case);
        }
        assert_eq!(call!(code, "f", fn(i32, *mut i32) -> i32, 99, &raw mut seen), -1);
    }
}

#[test]
fn math_and_runtime_functions_of_the_system() {
    let text = "declare double @tanh(double)
                declare float @llvm.pow.f32(float, float)
                declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
                define double @tanh_of(double %x) { %y = call double @tanh(double %x) ret double %y }
                define float @power(float %x, float %y) {
                  %z = call float @llvm.pow.f32(float %x, float %y) ret float %z }
                define void @clear(ptr %p, i64 %n) {
                  call void @llvm.memset.p0.i64(ptr %p, i8 3, i64 %n, i1 false) ret void }
                define i64 @wide(i64 %x, i64 %y) {
                  %a = sext i64 %x to i128 %b = mul i128 %a, 123456789123456789
                  %c = sext i64 %y to i128 %d = sdiv i128 %b, %c %e = trunc i128 %d to i64 ret i64 %e }
                define i16 @half(double %x) {
                  %h = fptrunc double %x to half %i = bitcast half %h to i16 ret i16 %i }
                define float @single(i16 %x) {
                  %h = bitcast i16 %x to half %f = fpext half %h to float ret float %f }";
    // The baseline processor has no instructions for half floats.
    let mut plain = octants_llvm_sys::Target::host().clone();
    if cfg!(target_arch = "x86_64") {
        (plain.cpu, plain.features) = ("x86-64".to_owned(), String::new());
    }
    for target in [octants_llvm_sys::Target::host().clone(), plain] {
        let object = compile(text, &Options { target, ..Options::default() }).unwrap();
        let code = load(&object.bytes, &[]).unwrap();
        assert_eq!(call!(code, "tanh_of", fn(f64) -> f64, 0.5), 0.5_f64.tanh());
        assert_eq!(call!(code, "power", fn(f32, f32) -> f32, 1.5, 2.5), 1.5_f32.powf(2.5));
        let mut bytes = [0_u8; 100];
        call!(code, "clear", fn(*mut u8, i64) -> (), bytes.as_mut_ptr(), 99);
        assert_eq!((bytes[98], bytes[99]), (3, 0));
        let wide = call!(code, "wide", fn(i64, i64) -> i64, 1_000_000_007, -1_000_003);
        assert_eq!(wide, (1_000_000_007 * 123_456_789_123_456_789_i128 / -1_000_003) as i64);
        assert_eq!(call!(code, "half", fn(f64) -> u16, 1.5), 0x3e00);
        assert_eq!(call!(code, "half", fn(f64) -> u16, 1e9), 0x7c00);
        assert_eq!(call!(code, "single", fn(u16) -> f32, 0xc100), -2.5);
    }
}
