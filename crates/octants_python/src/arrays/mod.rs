//! Handles of memory: ndarrays, fields and their trees, tensors, views of parts, and the logs of who writes them.

pub mod buffer_view;
pub mod field;
pub mod field_index;
pub mod ndarray;
pub mod shared;
pub mod tensor;
pub mod tree;
pub mod write_log;
