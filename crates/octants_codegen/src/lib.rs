//! The compile driver: from a kernel's tasks to native objects or to PTX, several at once.
//!
//! It joins the emitter, which knows no LLVM, and LLVM, which knows no kernels. It runs nothing: code is a device's to load.

mod driver;
mod native;
mod ptx;
mod ptx_launch_order;
mod ptx_target;
mod ptx_workarounds;

pub use driver::{CodegenError, CompiledTask, KernelCode, KernelText, TaskStore};
pub use native::{NativeOptions, compile_native, native_identity, native_text};
pub use ptx::{Assemble, PtxOptions, compile_ptx, ptx_text};
pub use ptx_target::{DriverTooOld, PtxTarget};

/// Waits a moment for compilations that nobody waits for any more, before the process ends.
pub use octants_llvm_sys::{compiling_threads, forget_compilations_of_parent, wait_for_compilations};

/// Where LLVM's time went, of one task.
pub use octants_llvm_sys::Timing as LlvmTiming;

/// The version of LLVM.
pub fn llvm_version() -> (u32, u32, u32) {
    octants_llvm_sys::version()
}
