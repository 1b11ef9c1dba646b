//! Scalar types as Python objects: one canonical object for each, so that `is` compares them.

use octants::front::ScalarAnnotation;
use octants::ir::{Const, Scalar};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyType};

use crate::gateway::errors;

/// A scalar type. Called on the host, it converts a number; inside a kernel, it casts.
#[pyclass(frozen, module = "octants")]
pub struct DataType {
    pub scalar: Scalar,
}

static CANONICAL: PyOnceLock<Vec<Py<DataType>>> = PyOnceLock::new();

fn canonical(py: Python<'_>) -> &Vec<Py<DataType>> {
    CANONICAL.get_or_init(py, || {
        let make = |&scalar| Py::new(py, DataType { scalar }).expect("a small object can be allocated");
        Scalar::ALL.iter().map(make).collect()
    })
}

/// The object that stands for a scalar type.
pub fn object_of(py: Python<'_>, scalar: Scalar) -> &Bound<'_, DataType> {
    let index = Scalar::ALL.iter().position(|&s| s == scalar).expect("every scalar is in the list");
    canonical(py)[index].bind(py)
}

/// All types by name.
pub fn table(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for &scalar in Scalar::ALL {
        dict.set_item(scalar.name(), object_of(py, scalar))?;
    }
    Ok(dict)
}

pub fn numpy_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::U1 => "bool",
        Scalar::I8 => "int8",
        Scalar::I16 => "int16",
        Scalar::I32 => "int32",
        Scalar::I64 => "int64",
        Scalar::U8 => "uint8",
        Scalar::U16 => "uint16",
        Scalar::U32 => "uint32",
        Scalar::U64 => "uint64",
        Scalar::F16 => "float16",
        Scalar::F32 => "float32",
        Scalar::F64 => "float64",
    }
}

/// What a Python object means as a type: one of ours, numpy's or torch's, or Python's own `int`, `float`, `bool`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TypeLike {
    Is(Scalar),
    DefaultInt,
    DefaultFloat,
}

pub fn scalar_annotation(object: &Bound<'_, PyAny>) -> Option<ScalarAnnotation> {
    Some(match type_like(object)? {
        TypeLike::Is(scalar) => ScalarAnnotation::Is(scalar),
        TypeLike::DefaultInt => ScalarAnnotation::DefaultInt,
        TypeLike::DefaultFloat => ScalarAnnotation::DefaultFloat,
    })
}

pub fn type_like(object: &Bound<'_, PyAny>) -> Option<TypeLike> {
    if let Ok(dtype) = object.cast::<DataType>() {
        return Some(TypeLike::Is(dtype.get().scalar));
    }
    let py = object.py();
    if object.is(py.get_type::<PyInt>()) {
        return Some(TypeLike::DefaultInt);
    }
    if object.is(py.get_type::<PyFloat>()) {
        return Some(TypeLike::DefaultFloat);
    }
    if object.is(py.get_type::<PyBool>()) {
        return Some(TypeLike::Is(Scalar::U1));
    }
    by_library_name(object).map(TypeLike::Is)
}

/// The type of the elements of an array of numpy's: there, Python's own types mean numpy's.
pub fn type_for_numpy(object: &Bound<'_, PyAny>) -> Option<Scalar> {
    Some(match type_like(object)? {
        TypeLike::Is(scalar) => scalar,
        TypeLike::DefaultInt => Scalar::I64,
        TypeLike::DefaultFloat => Scalar::F64,
    })
}

/// numpy's and torch's types, by the names that they give themselves.
fn by_library_name(object: &Bound<'_, PyAny>) -> Option<Scalar> {
    let owner = if object.is_instance_of::<PyType>() { object.clone() } else { object.get_type().into_any() };
    let module = owner.getattr("__module__").ok()?;
    let module = module.cast::<PyString>().ok()?.to_string();
    let library = module.split('.').next()?;
    let name = match library {
        "numpy" => object.getattr("name").or_else(|_| object.getattr("__name__")).ok()?.to_string(),
        "torch" => object.str().ok()?.to_string().strip_prefix("torch.")?.to_string(),
        _ => return None,
    };
    let name = if name == "bool_" { "bool" } else { &name };
    Scalar::ALL.iter().copied().find(|&s| numpy_name(s) == name)
}

/// The refusal of an object that is no data type.
pub fn no_data_type(object: &Bound<'_, PyAny>) -> PyErr {
    let described = object.repr().map(|text| format!("{text} is not a data type"));
    described.map_or_else(|error| error, |text| errors::exception(object.py(), "OctantsDataTypeError", &text))
}

/// A Python number as a constant of a type: integers wrap, reals truncate toward zero.
pub fn constant_from(object: &Bound<'_, PyAny>, scalar: Scalar) -> PyResult<Const> {
    if scalar == Scalar::U1 {
        return Ok(Const::bool(object.is_truthy()?));
    }
    if scalar.is_real() {
        return Ok(Const::from_f64(scalar, object.extract()?));
    }
    match crate::values::number::wrapped_integer(object) {
        Some(bits) => Ok(Const::from_bits(scalar, bits?)),
        None => Ok(Const::from_f64(scalar, object.extract()?)),
    }
}

/// A constant as a Python number.
pub fn constant_to(py: Python<'_>, constant: Const) -> PyResult<Bound<'_, PyAny>> {
    match (constant.ty(), constant.as_i128()) {
        (Scalar::U1, _) => Ok(PyBool::new(py, constant.bits() != 0).to_owned().into_any()),
        (_, Some(integer)) => Ok(integer.into_pyobject(py)?.into_any()),
        (_, None) => Ok(PyFloat::new(py, constant.as_f64()).into_any()),
    }
}

#[pymethods]
impl DataType {
    /// The dtype that an object means, `int` and `float` being `i32` and `f32`.
    #[staticmethod]
    fn of<'py>(py: Python<'py>, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, DataType>> {
        let scalar = match type_like(object) {
            Some(TypeLike::Is(scalar)) => scalar,
            Some(TypeLike::DefaultInt) => Scalar::I32,
            Some(TypeLike::DefaultFloat) => Scalar::F32,
            None => return Err(no_data_type(object)),
        };
        Ok(object_of(py, scalar).clone())
    }

    #[getter]
    fn name(&self) -> &'static str {
        self.scalar.name()
    }

    #[getter]
    fn numpy_name(&self) -> &'static str {
        numpy_name(self.scalar)
    }

    #[getter]
    fn is_integral(&self) -> bool {
        self.scalar.is_integral()
    }

    #[getter]
    fn is_signed(&self) -> bool {
        self.scalar.is_signed()
    }

    fn __call__<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(expr) =
            crate::values::expr::call_in_trace(object_of(value.py(), self.scalar).as_any(), value)
        {
            return expr;
        }
        constant_to(value.py(), constant_from(value, self.scalar)?)
    }

    fn __repr__(&self) -> &'static str {
        self.scalar.name()
    }

    /// The type's name.
    fn to_string(&self) -> &'static str {
        self.scalar.name()
    }

    fn __hash__(&self) -> u64 {
        self.scalar as u64
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        matches!(type_like(other), Some(TypeLike::Is(scalar)) if scalar == self.scalar)
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let by_name = py.import("octants._octants")?.getattr("dtype_by_name")?;
        Ok((by_name, (self.scalar.name(),)).into_pyobject(py)?.into_any().unbind())
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }
}

/// The canonical object of a name, for pickles.
#[pyfunction]
pub fn dtype_by_name<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, DataType>> {
    let scalar = Scalar::from_name(name)
        .ok_or_else(|| PyTypeError::new_err(format!("no data type is named {name}")))?;
    Ok(object_of(py, scalar).clone())
}
