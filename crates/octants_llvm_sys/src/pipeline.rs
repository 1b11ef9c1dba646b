//! Which passes run, and why these.

use std::ffi::CStr;

use llvm_sys::target_machine::LLVMCodeGenOptLevel;

/// How hard to optimise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OptLevel {
    /// Straight translation. For finding out whether a wrong result is the optimiser's.
    None,
    /// Everything that makes kernels fast and pays for its compile time.
    #[default]
    Default,
    /// LLVM's own `-O3`, for comparison.
    Thorough,
}

impl OptLevel {
    pub(crate) fn codegen(self) -> LLVMCodeGenOptLevel {
        match self {
            OptLevel::None => LLVMCodeGenOptLevel::LLVMCodeGenLevelNone,
            OptLevel::Default => LLVMCodeGenOptLevel::LLVMCodeGenLevelDefault,
            OptLevel::Thorough => LLVMCodeGenOptLevel::LLVMCodeGenLevelAggressive,
        }
    }

    pub(crate) fn passes(self) -> Option<&'static CStr> {
        match self {
            OptLevel::None => None,
            OptLevel::Default => Some(c"default<O3>"),
            OptLevel::Thorough => Some(c"default<O3>"),
        }
    }
}
