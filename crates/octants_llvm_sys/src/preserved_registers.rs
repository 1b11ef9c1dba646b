//! Functions that promise to leave all registers as they are (`preserve_allcc`).
//!
//! Where LLVM compiles one for x86 with AVX, it restores the vector registers and then clears their upper halves, which it does before every return
//! (`vzeroupper`): its callers find zeros there. So these functions are compiled without that instruction.

use llvm_sys::LLVMCallConv;
use llvm_sys::core::LLVMGetFunctionCallConv;

use crate::handles::{Context, Module};
use crate::target::{Processor, Target};

pub(crate) fn keep(context: &Context, module: &Module<'_>, target: &Target) {
    if target.processor() != Processor::X86 {
        return;
    }
    // A function's features replace those of its target.
    let features = match target.features.as_str() {
        "" => "-vzeroupper".to_owned(),
        all => format!("{all},-vzeroupper"),
    };
    module.set_function_attribute(context, ("target-features", &features), |function| {
        // SAFETY: a function of the live module.
        unsafe { LLVMGetFunctionCallConv(function) == LLVMCallConv::LLVMPreserveAllCallConv as u32 }
    });
}
