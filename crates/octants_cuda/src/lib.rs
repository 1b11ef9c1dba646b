//! NVIDIA GPUs as a device: the driver, loaded at run time, and the verbs over it.
//!
//! **Nothing but the driver is needed, and not even that to load this crate.** The driver's functions are one table
//! ([`driver::table`]); a second vendor with functions of these shapes is a second table.

// A boundary crate: it calls the driver.
#![allow(unsafe_code)]

mod device;
pub mod driver;
mod grid;
mod nvtx;
mod staging;

pub use device::CudaDevice;
pub use nvtx::Nvtx;

#[cfg(test)]
mod tests;
