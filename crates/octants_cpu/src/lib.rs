//! Devices whose memory is the host's: native code on a pool of threads, and the interpreter.
//!
//! [`CpuDevice`] is the table of device verbs over LLVM's objects and the [`pool`]; [`compile_native`] makes the objects. The
//! [`ReferenceDevice`] runs the interpreter on the same kind of memory. Policy (plans, guards, lifetimes) is the runtime's.

// A boundary crate: it owns raw memory and calls generated code.
#![allow(unsafe_code)]

mod compile;
mod copies;
mod device;
mod host;
mod memory;
pub mod pool;
mod reference;
mod stack;
mod work;

pub use compile::{
    NativeCode, NativeError, NativeOptions, NativeTask, NativeText, compile_native, native_text,
};
pub use device::CpuDevice;
pub use reference::ReferenceDevice;

pub use octants_llvm_sys::wait_for_compilations;

/// The version of the compiler behind the CPU device.
pub fn llvm_version() -> (u32, u32, u32) {
    octants_llvm_sys::version()
}
