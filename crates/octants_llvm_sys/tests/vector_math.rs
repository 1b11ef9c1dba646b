//! Math functions inside of vectorised loops.

// Calls generated code through function pointers.
#![allow(unsafe_code)]

use std::ffi::CString;

use octants_llvm_sys::{Options, compile, load};

/// A loop that replaces each element of an array by a function of it.
fn text(kind: &str, callee: &str, flags: &str) -> String {
    format!(
        "define void @map(ptr %x, i64 %n) nounwind {{
         entry:
           br label %head
         head:
           %i = phi i64 [ 0, %entry ], [ %j, %body ]
           %c = icmp slt i64 %i, %n
           br i1 %c, label %body, label %exit
         body:
           %p = getelementptr inbounds {kind}, ptr %x, i64 %i
           %v = load {kind}, ptr %p
           %w = call {flags} {kind} @{callee}({kind} %v)
           store {kind} %w, ptr %p
           %j = add nuw nsw i64 %i, 1
           br label %head
         exit:
           ret void
         }}
         declare {kind} @{callee}({kind}) nounwind willreturn memory(none)"
    )
}

/// Whether the system's vector library has a version of the function for any width.
fn has_vector_version(function: &str) -> bool {
    ["_ZGVbN2v", "_ZGVbN4v", "_ZGVnN2v", "_ZGVnN4v"].iter().any(|prefix| {
        let symbol = CString::new(format!("{prefix}_{function}")).unwrap();
        // SAFETY: C strings; the library stays loaded.
        unsafe {
            let library = libc::dlopen(c"libmvec.so.1".as_ptr(), libc::RTLD_NOW);
            !library.is_null() && !libc::dlsym(library, symbol.as_ptr()).is_null()
        }
    })
}

#[test]
fn approximate_functions_use_the_vector_library_of_the_system() {
    type Case = (&'static str, &'static str, fn(f64) -> f64);
    let cases: [Case; 8] = [
        ("llvm.sin.f32", "sinf", f64::sin),
        ("llvm.cos.f32", "cosf", f64::cos),
        ("llvm.exp.f32", "expf", f64::exp),
        ("llvm.tan.f32", "tanf", f64::tan),
        ("llvm.tanh.f32", "tanhf", f64::tanh),
        ("expm1f", "expm1f", f64::exp_m1),
        ("tanhf", "tanhf", f64::tanh),
        ("atanf", "atanf", f64::atan),
    ];
    for (callee, function, reference) in cases {
        let options = Options { keep_assembly: true, ..Options::default() };
        let compiled = compile(&text("float", callee, "afn"), &options).unwrap();
        let assembly = compiled.assembly.unwrap();
        assert_eq!(assembly.contains("_ZGV"), has_vector_version(function), "{callee}\n{assembly}");
        let code = load(&compiled.bytes, &[]).unwrap();
        let mut x: Vec<f32> = (0..1003).map(|index| index as f32 * 0.01 - 5.0).collect();
        let expected: Vec<f64> = x.iter().map(|x| reference(f64::from(*x))).collect();
        // SAFETY: the text defines the function with this signature.
        let map: extern "C" fn(*mut f32, i64) = unsafe { std::mem::transmute(code.symbol("map").unwrap()) };
        map(x.as_mut_ptr(), 1003);
        for (got, expected) in x.iter().zip(expected) {
            let ulp = f64::from((expected as f32).abs().max(f32::MIN_POSITIVE)) * f64::from(f32::EPSILON);
            assert!((f64::from(*got) - expected).abs() <= 4.5 * ulp, "{callee}: {got} against {expected}");
        }
    }
}

#[test]
fn double_precision_and_two_arguments() {
    let text = text("double", "llvm.pow.f64", "afn")
        .replace("(double %v)", "(double %v, double 1.75)")
        .replace("@llvm.pow.f64(double)", "@llvm.pow.f64(double, double)");
    let compiled = compile(&text, &Options { keep_assembly: true, ..Options::default() }).unwrap();
    assert_eq!(compiled.assembly.unwrap().contains("vv_pow"), has_vector_version("sin"));
    let code = load(&compiled.bytes, &[]).unwrap();
    let mut x: Vec<f64> = (0..99).map(f64::from).collect();
    let expected: Vec<f64> = x.iter().map(|x| x.powf(1.75)).collect();
    // SAFETY: the text defines the function with this signature.
    let map: extern "C" fn(*mut f64, i64) = unsafe { std::mem::transmute(code.symbol("map").unwrap()) };
    map(x.as_mut_ptr(), 99);
    for (got, expected) in x.iter().zip(expected) {
        assert!((got - expected).abs() <= 4.0 * f64::EPSILON * expected, "{got} against {expected}");
    }
}

#[test]
fn exact_functions_do_not() {
    for (flags, vector_math) in [("", true), ("afn", false)] {
        let options = Options { vector_math, keep_assembly: true, ..Options::default() };
        let compiled = compile(&text("double", "llvm.sin.f64", flags), &options).unwrap();
        assert!(!compiled.assembly.unwrap().contains("_ZGV"));
        let code = load(&compiled.bytes, &[]).unwrap();
        let mut x = [0.5, 1.0, 2.0];
        // SAFETY: the text defines the function with this signature.
        let map: extern "C" fn(*mut f64, i64) = unsafe { std::mem::transmute(code.symbol("map").unwrap()) };
        map(x.as_mut_ptr(), 3);
        assert_eq!(x, [0.5_f64, 1.0, 2.0].map(f64::sin));
    }
}
