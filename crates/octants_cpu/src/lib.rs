//! The CPU as a device: native code on a pool of threads.
//!
//! [`CpuDevice`] is the table of device verbs over LLVM's objects, the [`pool`], and queues for streams beside the default one. Making the objects is the compile driver's work,
//! policy (plans, guards, lifetimes) the runtime's.

// A boundary crate: it owns raw memory and calls generated code.
#![allow(unsafe_code)]

mod copies;
mod core;
mod device;
mod exclusive;
pub mod pool;
mod sparse_pools;
mod stack;
mod stream;
mod tape;
mod work;

pub use device::CpuDevice;
