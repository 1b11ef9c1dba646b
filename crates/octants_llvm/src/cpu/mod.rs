//! A task of the CPU: what its function is called with, and how it runs a chunk of its iterations.

pub mod abi;
pub(crate) mod domain;
pub(crate) mod flat;
pub(crate) mod order;
mod reduce;
pub(crate) mod widen;
