//! `@oc.func`: a function that kernels inline.

use octants::front::{FunctionKind, check_signature};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyTuple};

use crate::gateway::errors;
use crate::host::PyHost;
use crate::session::runtime::Runtime;
use crate::values::expr;
use crate::values::traced::Traced;

#[pyclass(frozen, module = "octants", dict)]
pub struct Func {
    pub function: Traced<PyFunction>,
    /// The object that a method is bound to.
    pub receiver: Option<Py<PyAny>>,
    /// Whether it may only be called outside of run-time loops and branches.
    pub requires_top_level: bool,
    /// Whether it is compiled as a function of its own.
    pub is_real: bool,
}

#[pymethods]
impl Func {
    #[new]
    #[pyo3(signature = (function, runtime, requires_top_level=false, is_real=false))]
    fn new(
        py: Python<'_>,
        function: Bound<'_, PyFunction>,
        runtime: &Runtime,
        requires_top_level: bool,
        is_real: bool,
    ) -> PyResult<Self> {
        check_signature(&PyHost::new(py), runtime.sources(), function.as_any(), FunctionKind::Func)
            .map_err(|diagnostics| errors::from_diagnostics(py, &diagnostics, runtime.sources().map()))?;
        Ok(Self { function: Traced::new(function.unbind()), receiver: None, requires_top_level, is_real })
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let given = kwargs.map_or_else(|| PyDict::new(py), Bound::clone);
        if expr::is_compiling(py) {
            return expr::trace_call(slf.as_any(), args, &given);
        }
        let name: String = slf.getattr("__name__")?.extract()?;
        Err(errors::exception(
            py,
            "OctantsSyntaxError",
            &format!(
                "error[OC0609]: the func `{name}` was called from ordinary Python; an @oc.func runs inside kernels only\n  = help: \
                 call it from an @oc.kernel, or take the decorator away to run it as plain Python"
            ),
        ))
    }

    fn __get__(
        slf: &Bound<'_, Self>,
        instance: Option<&Bound<'_, PyAny>>,
        _owner: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let Some(instance) = instance else { return Ok(slf.clone().into_any().unbind()) };
        let function = Traced::new(slf.get().function.clone_ref(slf.py()));
        let requires_top_level = slf.get().requires_top_level;
        let is_real = slf.get().is_real;
        let bound = Self { function, receiver: Some(instance.clone().unbind()), requires_top_level, is_real };
        Ok(Bound::new(slf.py(), bound)?.into_any().unbind())
    }

    /// A func and the globals of its function refer to each other; Python's collector finds such circles through this.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.receiver)?;
        visit.call(self.function.visited())
    }

    #[getter]
    fn __wrapped__(&self, py: Python<'_>) -> Py<PyFunction> {
        self.function.clone_ref(py)
    }

    #[getter]
    fn __name__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.function.bind(py).getattr("__name__")
    }

    #[getter]
    fn __qualname__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.function.bind(py).getattr("__qualname__")
    }

    #[getter]
    fn __doc__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.function.bind(py).getattr("__doc__")
    }

    /// As Python's functions and methods do: a func is pickled as its name, if it has one that finds it, one of an object by way of the
    /// object.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (this, py) = (slf.get(), slf.py());
        let Some(receiver) = &this.receiver else {
            let reduced = py.import("octants._pickling")?.getattr("reduced_function")?;
            return reduced.call1((slf, &*this.function, this.requires_top_level, this.is_real));
        };
        let getattr = py.import("builtins")?.getattr("getattr")?;
        (getattr, (receiver, this.__name__(py)?)).into_pyobject(py).map(Bound::into_any)
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// A method goes with its object.
    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (this, py) = (slf.get(), slf.py());
        let Some(receiver) = &this.receiver else { return Ok(slf.clone().into_any()) };
        let copied = py.import("copy")?.getattr("deepcopy")?.call1((receiver, memo))?;
        copied.getattr(this.__name__(py)?.cast::<pyo3::types::PyString>()?)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(format!("<octants func {}>", slf.getattr("__name__")?))
    }
}
