//! `oc.Tensor`: a handle on an array or a field. Kernels never see it, but what it holds.

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use crate::arrays::field::Field;
use crate::arrays::ndarray::Ndarray;
use crate::arrays::shared;
use crate::values::traced::Traced;

/// What the classes of tensors have in common: the array or field behind them.
#[pyclass(frozen, subclass, weakref, module = "octants")]
pub struct Tensor {
    inner: Traced<PyAny>,
}

/// The array or field behind a tensor; any other object itself.
#[inline]
pub fn unwrapped<'a, 'py>(object: &'a Bound<'py, PyAny>) -> &'a Bound<'py, PyAny> {
    match object.cast::<Tensor>() {
        Ok(tensor) => tensor.get().inner.bind(object.py()),
        Err(_) => object,
    }
}

/// Likewise, of an object of one's own.
#[inline]
pub fn into_unwrapped(object: Bound<'_, PyAny>) -> Bound<'_, PyAny> {
    match object.cast::<Tensor>() {
        Ok(tensor) => tensor.get().inner.bind(object.py()).clone(),
        Err(_) => object,
    }
}

#[pymethods]
impl Tensor {
    #[new]
    #[pyo3(signature = (r#impl, /))]
    fn new(r#impl: &Bound<'_, PyAny>) -> PyResult<Self> {
        if r#impl.is_instance_of::<Ndarray>() || r#impl.is_instance_of::<Field>() {
            return Ok(Self { inner: Traced::new(r#impl.clone().unbind()) });
        }
        let found = r#impl.get_type().name()?.to_string();
        Err(PyTypeError::new_err(format!("a tensor is made of an ndarray or a field, not of {found}")))
    }

    /// What `memoryview` and all that takes bytes look at, as Python 3.12 and later ask for it.
    fn __buffer__<'py>(slf: &Bound<'py, Self>, _flags: i32) -> PyResult<Bound<'py, PyMemoryView>> {
        shared::memory_view(slf)
    }

    /// The array or field itself.
    #[getter]
    fn _impl(&self, py: Python<'_>) -> Py<PyAny> {
        self.inner.clone_ref(py)
    }

    /// The array or field itself.
    fn _unwrap(&self, py: Python<'_>) -> Py<PyAny> {
        self.inner.clone_ref(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.inner.visited())
    }
}
