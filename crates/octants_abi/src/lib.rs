//! How a task is called: the memory that emitted code and the devices share.
//!
//! Data and offsets only. The emitter writes code that reads these structures by their offsets, a device fills them in; neither knows
//! the other. What a kernel's own arguments look like is the plan's (`octants_ir::plan`).

pub mod cpu;
pub mod gpu;
pub mod pool;
