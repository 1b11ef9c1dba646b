//! Text for a GPU becomes PTX.

use std::fmt::Write;

use octants_llvm_sys::{Options, Output, Stage, Target, compile, has_device_library};

#[test]
fn kernels_become_entries() {
    let Some(target) = Target::nvptx(80, 75) else { return };
    let text = "define ptx_kernel void @scale(ptr addrspace(1) %x, float %a) {
                  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
                  %j = zext i32 %i to i64
                  %p = getelementptr float, ptr addrspace(1) %x, i64 %j
                  %v = load float, ptr addrspace(1) %p
                  %w = fmul float %v, %a
                  store float %w, ptr addrspace(1) %p
                  ret void
                }
                declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()";
    let options = Options { target, output: Output::Assembly, ..Options::default() };
    let ptx = String::from_utf8(compile(text, &options).unwrap().bytes).unwrap();
    assert!(ptx.contains(".target sm_80"), "{ptx}");
    assert!(ptx.contains(".entry scale"), "{ptx}");
    assert!(ptx.contains("%tid.x"), "{ptx}");
}

/// A loop through a pointer whose address space was cast away, with a function that only the module knows.
#[test]
fn gpus_have_a_pipeline_of_their_own() {
    let Some(target) = Target::nvptx(80, 75) else { return };
    let text = "define internal float @twice(float %v) { %w = fadd float %v, %v ret float %w }
                define ptx_kernel void @scale(ptr addrspace(1) %x, i64 %n) {
                entry:
                  %p = addrspacecast ptr addrspace(1) %x to ptr
                  br label %head
                head:
                  %i = phi i64 [ 0, %entry ], [ %j, %body ]
                  %more = icmp slt i64 %i, %n
                  br i1 %more, label %body, label %done
                body:
                  %cell = getelementptr float, ptr %p, i64 %i
                  %v = load float, ptr %cell
                  %w = call float @twice(float %v)
                  store float %w, ptr %cell
                  %j = add nsw i64 %i, 1
                  br label %head
                done:
                  ret void
                }";
    let options = Options { target, output: Output::Assembly, keep_ir: true, ..Options::default() };
    let compiled = compile(text, &options).unwrap();
    let (ptx, ir) = (String::from_utf8(compiled.bytes).unwrap(), compiled.ir.unwrap());
    assert!(ptx.contains("ld.global.f32") && ptx.contains("st.global.f32"), "{ptx}");
    assert!(!ptx.contains("call"), "{ptx}");
    assert!(!ir.contains("x float>"), "{ir}");
}

fn calls(functions: &[&str]) -> String {
    let mut text = "define ptx_kernel void @task(ptr addrspace(1) %x) {\n".to_owned();
    text += "  %v0 = load double, ptr addrspace(1) %x\n";
    for (k, name) in functions.iter().enumerate() {
        writeln!(text, "  %v{} = call double @{name}(double %v{k})", k + 1).unwrap();
    }
    writeln!(text, "  store double %v{}, ptr addrspace(1) %x\n  ret void\n}}", functions.len()).unwrap();
    for name in functions {
        writeln!(text, "declare double @{name}(double)").unwrap();
    }
    text
}

/// Functions of the vendor's library become part of the module, and those that it does not call do not.
#[test]
fn functions_of_the_device_library_are_linked_by_need() {
    let Some(target) = Target::nvptx(80, 75) else { return };
    let options = Options { target, output: Output::Assembly, keep_ir: true, ..Options::default() };
    if !has_device_library() {
        let error = compile(&calls(&["__nv_exp"]), &options).unwrap_err();
        assert!(error.message.contains("OCTANTS_LIBDEVICE=none"), "{error}");
        return;
    }
    for (functions, most_lines) in [(&["__nv_exp"][..], 200), (&["__nv_exp", "__nv_sin"], 600)] {
        let compiled = compile(&calls(functions), &options).unwrap();
        let (ptx, ir) = (String::from_utf8(compiled.bytes).unwrap(), compiled.ir.unwrap());
        assert!(!ptx.contains(".extern") && !ptx.contains("__nvvm_reflect"), "{ptx}");
        assert!(ptx.lines().count() < most_lines, "{ptx}");
        // Subnormal numbers are not flushed.
        assert!(!ir.contains(".ftz.f"), "{ir}");
    }
}

#[test]
fn an_unknown_function_of_the_device_library_is_an_error() {
    let Some(target) = Target::nvptx(80, 75) else { return };
    let options = Options { target, output: Output::Assembly, ..Options::default() };
    let error = compile(&calls(&["__nv_sinus"]), &options).unwrap_err();
    assert_eq!(error.stage, Stage::Library);
    assert!(error.message.contains("__nv_sinus") || !has_device_library(), "{error}");
}

/// The PTX of `body`, from `%x` and `%y` to `%r`, with or without the flags of fast math.
fn arithmetic(body: &str, fast: bool) -> String {
    let target = Target::nvptx(80, 75).unwrap();
    let options = Options { target, output: Output::Assembly, ..Options::default() };
    let body = body.replace("OP ", if fast { "nsz contract afn " } else { "" });
    let text = format!(
        "define ptx_kernel void @task(ptr addrspace(1) %p, float %x, float %y) {{
           {body}
           store float %r, ptr addrspace(1) %p
           ret void
         }}
         declare float @llvm.sqrt.f32(float)
         declare float @llvm.fabs.f32(float)
         declare float @llvm.maxnum.f32(float, float)"
    );
    String::from_utf8(compile(&text, &options).unwrap().bytes).unwrap()
}

/// The instruction for reciprocal roots that takes subnormal numbers for zeros is for arguments that are none.
#[test]
fn reciprocal_roots_flush_only_what_is_no_subnormal_number() {
    let of_squares = |softening: &str| {
        format!(
            "%a = fmul OP float %x, %x
             %b = fmul OP float %y, %y
             %c = fadd OP float %a, {softening}
             %d = fadd OP float %b, %c
             %s = call OP float @llvm.sqrt.f32(float %d)
             %r = fdiv OP float 1.0, %s"
        )
    };
    let flushes = |body: &str| arithmetic(body, true).contains("rsqrt.approx.ftz.f32");
    assert!(flushes(&of_squares("0x3F1A36E2E0000000")));
    assert!(!flushes(&of_squares("0.0")) && !flushes(&of_squares("-1.0")) && !flushes(&of_squares("%x")));
    // 2^-140 is subnormal.
    assert!(!flushes(&of_squares("0x3730000000000000")));
    assert!(!flushes(&of_squares("1.0").replace("%y, %y", "%x, %y")));
}

/// A maximum with a small number keeps what is computed of it from being subnormal, as long as that is no smaller than the least normal number.
#[test]
fn roots_of_what_has_a_lower_bound_flush() {
    let of_maximum = |least: &str| {
        format!(
            "%a = call OP float @llvm.fabs.f32(float %x)
             %b = call OP float @llvm.maxnum.f32(float %a, float {least})
             %c = fmul OP float %b, %b
             %d = fmul OP float %y, %y
             %e = fadd OP float %c, %d
             %s = call OP float @llvm.sqrt.f32(float %e)
             %f = fadd OP float %b, %s
             %g = fmul OP float %s, %f
             %h = call OP float @llvm.sqrt.f32(float %g)
             %r = fadd OP float %h, %s"
        )
    };
    let flushing = |body: &str| arithmetic(body, true).matches("sqrt.approx.ftz.f32").count();
    // 2^-60, 2^-70, and a number that is not known.
    assert_eq!(flushing(&of_maximum("0x3C30000000000000")), 2);
    assert_eq!(flushing(&of_maximum("0x3B90000000000000")), 0);
    assert_eq!(flushing(&of_maximum("%y")), 0);
    // A difference has no bound.
    assert_eq!(
        flushing(&of_maximum("0x3C30000000000000").replace("fadd OP float %c", "fsub OP float %c")),
        0
    );
}

/// Quotients and roots are correctly rounded, and products are not fused with sums, unless the text allows it. The assembler fuses
/// what has no rounding mode (`mul.f32`), too.
#[test]
fn arithmetic_is_approximated_only_where_that_is_allowed() {
    let root = "%s = call OP float @llvm.sqrt.f32(float %x)\n";
    let cases = [
        ("%s = fmul OP float %x, %y %r = fadd OP float %s, %x", "mul.rn.f32", "fma.rn.f32"),
        (&format!("{root} %r = fadd float %s, 1.0"), "sqrt.rn.f32", "sqrt.approx.f32"),
        (&format!("{root} %r = fdiv OP float 1.0, %s"), "sqrt.rn.f32", "rsqrt.approx.f32"),
        (&format!("{root} %r = fdiv OP float %y, %s"), "div.rn.f32", "rsqrt.approx.f32"),
        (
            &format!("{root} %t = fmul OP float %x, %s %r = fdiv OP float %y, %t"),
            "div.rn.f32",
            "rsqrt.approx.f32",
        ),
        (&format!("{root} %r = fdiv OP float %x, %s"), "div.rn.f32", "\tsqrt.approx.f32"),
    ];
    for (body, exact, fast) in cases {
        let (with, without) = (arithmetic(body, true), arithmetic(body, false));
        assert!(without.contains(exact) && !without.contains(".approx"), "{without}");
        assert!(with.contains(fast) && !with.contains(exact), "{with}");
        assert_eq!(with.matches("sqrt").count(), usize::from(fast.contains("sqrt")), "{with}");
        for fusible in ["mul.f32", "add.f32"] {
            assert!(!without.contains(fusible), "{without}");
        }
    }
}

/// A quotient is one of what it is of, unless it is one by a root.
#[test]
fn quotients_are_correctly_rounded() {
    let cases = [
        ("%r = fdiv OP float %x, %y", "div.rn.f32"),
        ("%r = fdiv OP float 1.0, %y", "rcp.rn.f32"),
        ("%r = fdiv OP float %x, 141.0", "div.rn.f32"),
        ("%s = fadd OP float %x, -320.0 %r = fdiv OP float %s, 480.0", "div.rn.f32"),
    ];
    for (body, exact) in cases {
        for fast in [false, true] {
            let text = arithmetic(body, fast);
            assert!(text.contains(exact) && !text.contains("mul.") && !text.contains("fma."), "{text}");
        }
    }
}

/// A product that a test and the sum behind it use is part of both, and no instruction of its own.
#[test]
fn products_become_part_of_sums_in_several_blocks() {
    let text = |flags: &str| {
        "define ptx_kernel void @task(ptr addrspace(1) %p, float %x, float %y) {
         entry:
           %a = fmul OP float %x, %x
           %b = fmul OP float %y, %y
           %r = fadd OP float %a, %b
           %c = fcmp olt float %r, 4.0
           br i1 %c, label %near, label %done
         near:
           %d = fsub OP float %a, %b
           store float %d, ptr addrspace(1) %p
           br label %done
         done:
           ret void
         }"
        .replace("OP ", flags)
    };
    let target = Target::nvptx(80, 75).unwrap();
    let options = Options { target, output: Output::Assembly, ..Options::default() };
    let ptx = |flags| String::from_utf8(compile(&text(flags), &options).unwrap().bytes).unwrap();
    let (fused, exact) = (ptx("contract "), ptx(""));
    let count = |text: &str, name: &str| text.matches(name).count();
    assert_eq!((count(&fused, "mul.rn.f32"), count(&fused, "fma.rn.f32")), (1, 2), "{fused}");
    assert_eq!((count(&exact, "mul.rn.f32"), count(&exact, "fma.rn.f32")), (2, 0), "{exact}");
}
