//! Changes of a kernel that several passes make: no pass, and no analysis.

pub mod iteration_number;
pub mod offsets;
pub mod slots;
pub mod update;
