//! Text for a GPU becomes PTX.

use octants_llvm_sys::{Options, Output, Target, compile};

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
