//! NVIDIA's GPUs: what their driver is called and what it calls things, and ranges for their profilers. What a GPU is stands in `octants_gpu`.

// A boundary crate: it calls a library.
#![allow(unsafe_code)]

mod nvidia;
mod nvtx;

use octants_gpu::{GpuDevice, Unavailable};

pub use nvidia::NVIDIA;
pub use nvtx::Nvtx;

/// Opens a GPU by the driver's number for it.
pub fn open(ordinal: u32) -> Result<GpuDevice, Unavailable> {
    GpuDevice::open(&NVIDIA, ordinal)
}
