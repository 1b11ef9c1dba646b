//! What arrays, views and fields have in common: the protocols by which other libraries look at their memory.

use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer;
use pyo3::types::{PyDict, PyMemoryView};

use crate::arrays::shared;

/// The base of classes that have memory which others may look at. It has no state, and no instances of its own.
#[pyclass(frozen, subclass, module = "octants._octants")]
pub struct Exporter;

impl Exporter {
    /// What a new object of a class with this base is made of.
    pub fn with<T: PyClass<BaseType = Self>>(value: T) -> PyClassInitializer<T> {
        PyClassInitializer::from(Self).add_subclass(value)
    }
}

#[pymethods]
impl Exporter {
    /// How numpy looks at the memory without a copy. What it cannot look at has no such attribute.
    #[getter]
    fn __array_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        shared::array_interface(slf)
    }

    /// How libraries for NVIDIA's GPUs look at the memory without a copy. What is not there has no such attribute.
    #[getter]
    fn __cuda_array_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        shared::cuda_array_interface(slf)
    }

    /// What `memoryview` and all that takes bytes look at, as Python 3.12 and later ask for it.
    fn __buffer__<'py>(slf: &Bound<'py, Self>, _flags: i32) -> PyResult<Bound<'py, PyMemoryView>> {
        shared::memory_view(slf)
    }

    /// A capsule by which another library looks at the memory, as DLPack asks for it.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        shared::dlpack(slf, &shared::Request { stream, max_version, dl_device, copy })
    }

    /// Kind and number of the device that the memory is on, as DLPack counts them.
    fn __dlpack_device__(slf: &Bound<'_, Self>) -> PyResult<(i32, i32)> {
        shared::dlpack_device(slf)
    }
}
