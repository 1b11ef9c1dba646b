//! Links the functions of the GPU vendor's library that a module calls.
//!
//! The library is libdevice, bitcode that is part of this crate as the vendor ships it (`build.rs` finds it). It is read lazily: of its 352 functions
//! those bodies are parsed that a module needs, and only if it needs any. What the library asks about its user (`__nvvm_reflect`) is
//! answered here: subnormal numbers stay what they are, roots and quotients are correctly rounded, and the architecture is the target's.

use llvm_sys::LLVMLinkage;
use llvm_sys::core::{
    LLVMConstInt, LLVMDeleteFunction, LLVMGetAsString, LLVMGetCalledValue, LLVMGetInitializer,
    LLVMGetLinkage, LLVMGetOperand, LLVMInstructionEraseFromParent, LLVMIsACallInst, LLVMIsAGlobalVariable,
    LLVMIsConstantString, LLVMIsDeclaration, LLVMReplaceAllUsesWith, LLVMSetLinkage, LLVMTypeOf,
};
use llvm_sys::prelude::LLVMValueRef;

use crate::handles::{Context, Module, TargetMachine, name_of, users};
use crate::target::{Processor, Target};

/// Empty if this crate was built without.
static LIBRARY: &[u8] = include_bytes!(env!("OCTANTS_LIBDEVICE_FILE"));

/// What names of its functions begin with.
const PREFIX: &str = "__nv_";

/// Whether there is a library to link.
pub fn has_device_library() -> bool {
    !LIBRARY.is_empty()
}

/// Links what the module declares and the library has. `Err` says why a module that needs it cannot have it.
pub(crate) fn link(
    context: &Context,
    module: &Module<'_>,
    machine: &TargetMachine,
    target: &Target,
) -> Result<(), String> {
    if target.processor() != Processor::Gpu || !module.functions().into_iter().any(is_wanted) {
        return Ok(());
    }
    if LIBRARY.is_empty() {
        return Err("this build of Octants has no functions of reals for NVIDIA's GPUs: it was built with \
                    OCTANTS_LIBDEVICE=none"
            .to_owned());
    }
    let library = context.read_bitcode(LIBRARY)?;
    machine.adopt(&library);
    // Of what is `linkonce` the linker takes what the module refers to, and what that refers to.
    change_linkage(&library, LLVMLinkage::LLVMExternalLinkage, LLVMLinkage::LLVMLinkOnceODRLinkage);
    module.link(library)?;
    context.check()?;
    change_linkage(module, LLVMLinkage::LLVMLinkOnceODRLinkage, LLVMLinkage::LLVMInternalLinkage);
    answer_questions(module, target)?;
    match module.functions().into_iter().find(|&function| is_wanted(function)) {
        Some(unknown) => Err(format!("the library has no function {}", name_of(unknown))),
        None => Ok(()),
    }
}

/// Whether a function is one of the library's that is not there yet.
fn is_wanted(function: LLVMValueRef) -> bool {
    // SAFETY: a function of a live module.
    unsafe { LLVMIsDeclaration(function) != 0 && name_of(function).starts_with(PREFIX) }
}

/// Of functions that are defined.
fn change_linkage(module: &Module<'_>, from: LLVMLinkage, to: LLVMLinkage) {
    for function in module.functions() {
        // SAFETY: a function of a live module.
        unsafe {
            if LLVMIsDeclaration(function) == 0 && LLVMGetLinkage(function) as u32 == from as u32 {
                LLVMSetLinkage(function, to);
            }
        }
    }
}

/// Replaces what the library's functions ask by the answers.
fn answer_questions(module: &Module<'_>, target: &Target) -> Result<(), String> {
    let Some(ask) = module.functions().into_iter().find(|&function| name_of(function) == "__nvvm_reflect")
    else {
        return Ok(());
    };
    for call in users(ask) {
        // SAFETY: live values; a question is a call with the name of what is asked, a constant string, as its only argument.
        unsafe {
            if LLVMIsACallInst(call).is_null() || LLVMGetCalledValue(call) != ask {
                return Err("`__nvvm_reflect` is used otherwise than by a call".to_owned());
            }
            let name = constant_string(LLVMGetOperand(call, 0))
                .ok_or("`__nvvm_reflect` is asked for no constant string")?;
            let answer = answer(&name, target)?;
            LLVMReplaceAllUsesWith(call, LLVMConstInt(LLVMTypeOf(call), answer, 0));
            LLVMInstructionEraseFromParent(call);
        }
    }
    // SAFETY: nothing uses it any more.
    unsafe { LLVMDeleteFunction(ask) };
    Ok(())
}

fn answer(question: &str, target: &Target) -> Result<u64, String> {
    match question {
        "__CUDA_FTZ" => Ok(0),
        "__CUDA_PREC_SQRT" | "__CUDA_PREC_DIV" => Ok(1),
        "__CUDA_ARCH" => {
            let capability = target.cpu.strip_prefix("sm_").and_then(|number| number.parse::<u64>().ok());
            capability.map(|number| 10 * number).ok_or_else(|| format!("{} is no architecture", target.cpu))
        }
        unknown => Err(format!("the library asks for {unknown}")),
    }
}

/// The bytes of a global string without the zero at its end.
///
/// # Safety
/// A live value.
unsafe fn constant_string(value: LLVMValueRef) -> Option<String> {
    // SAFETY: each step checks what it asks the next one for; the bytes are copied.
    unsafe {
        if LLVMIsAGlobalVariable(value).is_null() {
            return None;
        }
        let content = LLVMGetInitializer(value);
        if content.is_null() || LLVMIsConstantString(content) == 0 {
            return None;
        }
        let mut length = 0;
        let start = LLVMGetAsString(content, &raw mut length).cast::<u8>();
        let bytes = std::slice::from_raw_parts(start, length);
        String::from_utf8(bytes.strip_suffix(&[0])?.to_vec()).ok()
    }
}
