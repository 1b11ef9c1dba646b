//! Arrays of other libraries: numpy's, torch's, DLPack's, and views of memory for them.

pub mod dlpack;
pub mod foreign;
pub mod host_memory;
pub mod numpy;
pub mod plain_array;
