//! The only crate that links LLVM: text in, native code out, and native code into memory.
//!
//! It owns everything that has to do with LLVM as a library: targets, the pass pipeline, emission of objects and
//! assembly, LLVM's ways of failing, and a loader that maps an emitted object as executable memory. It must not know
//! the IR, kernels, or devices: what it compiles is a string, and what it returns is bytes.
//!
//! ```
//! use octants_llvm_sys::{Options, compile, load};
//!
//! let text = "define i32 @twice(i32 %x) { %y = shl i32 %x, 1  ret i32 %y }";
//! let object = compile(text, &Options::default()).unwrap();
//! let code = load(&object.bytes, &[]).unwrap();
//! let twice = code.symbol("twice").unwrap();
//! // SAFETY: the text above defines the function with this signature, and `code` is still loaded.
//! let twice: extern "C" fn(i32) -> i32 = unsafe { std::mem::transmute(twice) };
//! assert_eq!(twice(21), 42);
//! ```
//!
//! Laws:
//! * Nothing here is shared between two compilations: each has its own LLVM context, on its own thread. Any number of
//!   threads may compile and load at once.
//! * A malformed module, and even an internal "fatal error" of LLVM, is an [`CompileError`], never an abort.
//! * Nothing of LLVM runs before the first compilation, or the first question about the host.

// This is a boundary crate: it calls C and makes memory executable.
#![allow(unsafe_code)]

mod compile;
mod device_library;
mod elf;
mod fatal;
mod gpu_approximations;
mod gpu_contraction;
mod handles;
mod jit_symbols;
mod load;
mod machines;
mod pipeline;
mod preserved_registers;
mod reciprocal_roots;
mod relocate;
mod resolve;
mod target;
mod vector_math;

pub use compile::{
    Compilation, CompileError, Compiled, Options, Output, Stage, Timing, compile, start, warm_up,
};
pub use device_library::has_device_library;
pub use fatal::{compiling_threads, forget_compilations_of_parent, wait_for_compilations};
pub use load::{LoadError, Loaded, load};
pub use pipeline::OptLevel;
pub use resolve::system_libraries;
pub use target::Target;
pub use vector_math::host_vector_function;

/// The version of LLVM that is linked in, such as `(19, 1, 7)`.
pub fn version() -> (u32, u32, u32) {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: three valid out-pointers.
    unsafe { llvm_sys::core::LLVMGetVersion(&raw mut major, &raw mut minor, &raw mut patch) };
    (major, minor, patch)
}
