//! Handles of memory: ndarrays, fields and their trees, tensors, views of parts, and the logs of who writes them.

pub mod buffer_view;
pub mod exporter;
pub mod field;
pub mod field_index;
pub mod ndarray;
pub mod shared;
pub mod tensor;
pub mod tree;
pub mod write_log;

use pyo3::prelude::*;

use crate::interop::foreign::ForeignArray;

/// An object as an array of another library, if it is one and none of ours, which other libraries may look at, too.
pub fn foreign_array<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<ForeignArray<'py>>> {
    if object.is_instance_of::<field::Field>() || object.is_instance_of::<buffer_view::BufferView>() {
        return Ok(None);
    }
    ForeignArray::of(object)
}
