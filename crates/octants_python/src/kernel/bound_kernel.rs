//! A kernel as a method of an object: its call and its derivative take the object first.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyDict, PyTuple};

use crate::kernel::Kernel;
use crate::values::traced::Traced;

#[pyclass(frozen, module = "octants", weakref)]
pub struct BoundKernel {
    kernel: Traced<Kernel>,
    receiver: Traced<PyAny>,
}

impl BoundKernel {
    pub fn new(kernel: Py<Kernel>, receiver: Py<PyAny>) -> Self {
        Self { kernel: Traced::new(kernel), receiver: Traced::new(receiver) }
    }

    fn with_receiver<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
        let receiver = self.receiver.bind(args.py()).clone();
        PyTuple::new(args.py(), std::iter::once(receiver).chain(args.iter()).collect::<Vec<_>>())
    }
}

#[pymethods]
impl BoundKernel {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        Kernel::call_method(self.kernel.bind(py), self.receiver.bind(py), args, kwargs)
    }

    /// The derivative of the kernel; see there.
    #[pyo3(signature = (*args, **kwargs))]
    fn grad<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Kernel::grad(self.kernel.bind(args.py()), &self.with_receiver(args)?, kwargs)
    }

    /// What the derivative does; see the kernel's.
    #[pyo3(signature = (*args, **kwargs))]
    fn grad_plan<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        Kernel::grad_plan(self.kernel.bind(args.py()), &self.with_receiver(args)?, kwargs)
    }

    #[getter]
    fn __self__(&self, py: Python<'_>) -> Py<PyAny> {
        self.receiver.clone_ref(py)
    }

    #[getter]
    fn __func__(&self, py: Python<'_>) -> Py<Kernel> {
        self.kernel.clone_ref(py)
    }

    #[getter]
    fn __doc__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.kernel.bind(py).getattr("__doc__")
    }

    /// All else is the kernel's.
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.kernel.bind(py).getattr(name)
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> Py<PyAny> {
        let py = other.py();
        let same = other.cast::<Self>().is_ok_and(|other| {
            let other = other.get();
            self.kernel.is(&*other.kernel) && self.receiver.is(&*other.receiver)
        });
        let result = match op {
            CompareOp::Eq => same,
            CompareOp::Ne => !same,
            CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => return py.NotImplemented(),
        };
        result
            .into_pyobject(py)
            .map_or_else(|_| py.NotImplemented(), |found| found.to_owned().into_any().unbind())
    }

    fn __hash__(&self) -> usize {
        (self.kernel.as_ptr() as usize ^ (self.receiver.as_ptr() as usize).rotate_left(1)) >> 4
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let getattr = py.import("builtins")?.getattr("getattr")?;
        let name = self.kernel.bind(py).getattr("__name__")?;
        Ok((getattr, (self.receiver.clone_ref(py), name)).into_pyobject(py)?.into_any())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name: String = self.kernel.bind(py).getattr("__qualname__")?.extract()?;
        Ok(format!("<octants kernel {name} of {}>", self.receiver.bind(py).repr()?))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.kernel.visited())?;
        visit.call(self.receiver.visited())
    }
}
