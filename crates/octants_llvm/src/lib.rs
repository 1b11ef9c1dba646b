//! octants_llvm
