//! Types and values: data types, numbers, elements, classes of elements, and expressions of kernels that Python code is shown.

pub mod aggregate;
pub mod dtype;
pub mod element;
pub mod expr;
pub mod host_only;
pub mod number;
pub mod traced;
