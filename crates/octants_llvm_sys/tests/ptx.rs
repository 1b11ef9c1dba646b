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
