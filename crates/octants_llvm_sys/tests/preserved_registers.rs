//! A function that promises to leave all registers as they are does so, whatever it calls.

#![allow(unsafe_code)]

use octants_llvm_sys::{Options, compile, load};

/// Doubles so many numbers; between the load and the store stands a call that keeps registers.
fn text(lanes: usize) -> String {
    format!(
        "define void @f(ptr %numbers, ptr %called) {{\n  \
           %x = load <{lanes} x float>, ptr %numbers, align 4\n  \
           %r = fadd <{lanes} x float> %x, %x\n  \
           call preserve_allcc void @through(ptr %called)\n  \
           store <{lanes} x float> %r, ptr %numbers, align 4\n  \
           ret void\n}}\n\
         define internal preserve_allcc void @through(ptr %called) noinline nounwind {{\n  \
           call void %called()\n  \
           ret void\n}}"
    )
}

extern "C" fn called() {
    std::hint::black_box([1.0_f32; 64].map(|x| x * std::hint::black_box(3.0)));
}

#[test]
fn vectors_of_every_width_outlive_a_call_that_keeps_registers() {
    for lanes in [1, 4, 8, 16, 32, 64] {
        let object = compile(&text(lanes), &Options::default()).unwrap_or_else(|error| panic!("{error}"));
        let code = load(&object.bytes, &[]).unwrap();
        // SAFETY: the text defines the function with this signature.
        let f: extern "C" fn(*mut f32, extern "C" fn()) =
            unsafe { std::mem::transmute(code.symbol("f").expect("the text defines it")) };
        let mut numbers: Vec<f32> = (0..lanes).map(|lane| lane as f32 + 1.0).collect();
        f(numbers.as_mut_ptr(), called);
        let wanted: Vec<f32> = (0..lanes).map(|lane| 2.0 * (lane as f32 + 1.0)).collect();
        assert_eq!(numbers, wanted, "{lanes} lanes");
    }
}
