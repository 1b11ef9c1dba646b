//! octants_llvm_sys
