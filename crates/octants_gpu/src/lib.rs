//! GPUs as devices: the verbs over a driver that is loaded at run time, whoever makes it.
//!
//! Staging of copies, memory in stream order, ranges of addresses, the pace of launches and grids stand here once. What makers differ in is
//! data, a [`Vendor`]: where the driver is, what its functions are called, its numbers for what we ask of it, and which functions there
//! are at all. **Nothing but the driver is needed, and not even that to load this crate.**

// A boundary crate: it calls the driver.
#![allow(unsafe_code)]

mod device;
pub mod driver;
mod grid;
mod staging;
pub mod vendor;

pub use device::GpuDevice;
pub use driver::Unavailable;
pub use driver::table::Symbols;
pub use vendor::Vendor;

#[cfg(test)]
mod other_vendor;
#[cfg(test)]
mod tests;
