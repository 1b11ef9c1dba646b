//! What a compile-time argument is specialised on.

use pyo3::prelude::*;
use pyo3::types::{
    PyBytes, PyDict, PyFloat, PyInt, PyString, PyTuple, PyType, PyWeakrefMethods, PyWeakrefReference,
};

use crate::dtype::DataType;
use crate::numpy;

/// Numbers, strings, types, vectors, matrices and structs by value; tuples by their items; anything else by identity, held weakly so that a key neither keeps
/// an object alive nor matches another one that took its address. What cannot be held weakly is kept alive.
pub enum TemplateKey {
    Value(Py<PyAny>),
    Tuple(Vec<TemplateKey>),
    /// What a vector or a matrix says of itself.
    Matrix(Py<PyType>, Py<PyAny>),
    Struct(Py<PyType>, Vec<(Py<PyString>, TemplateKey)>),
    Weak(Py<PyWeakrefReference>),
    Kept(Py<PyAny>),
}

/// The mark of the package's own values.
fn mark(object: &Bound<'_, PyAny>) -> Option<String> {
    if object.is_instance_of::<PyType>() {
        return None;
    }
    object.get_type().getattr_opt("__octants__").ok()??.extract().ok()
}

/// Whether an object is a value that never changes.
pub fn is_value(object: &Bound<'_, PyAny>) -> bool {
    object.is_none()
        || object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyBytes>()
        || object.is_instance_of::<DataType>()
        || is_numpy_scalar(object)
}

/// Numbers of numpy are new objects whenever an array is asked for one.
fn is_numpy_scalar(object: &Bound<'_, PyAny>) -> bool {
    numpy::View::of(object).is_none() && object.get_type().module().is_ok_and(|module| module == "numpy")
}

impl TemplateKey {
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if is_value(object) {
            return Ok(Self::Value(object.clone().unbind()));
        }
        if let Ok(items) = object.cast_exact::<PyTuple>() {
            return Ok(Self::Tuple(items.iter().map(|item| Self::of(&item)).collect::<PyResult<_>>()?));
        }
        match mark(object).as_deref() {
            Some("Matrix" | "Vector") => {
                let constant = object.call_method0("constant")?.unbind();
                return Ok(Self::Matrix(object.get_type().unbind(), constant));
            }
            Some("Struct") => {
                let entries = object.getattr("entries")?.cast_into::<PyDict>()?;
                let members = entries
                    .iter()
                    .map(|(name, value)| Ok((name.cast_into::<PyString>()?.unbind(), Self::of(&value)?)));
                return Ok(Self::Struct(object.get_type().unbind(), members.collect::<PyResult<_>>()?));
            }
            _ => {}
        }
        Ok(match PyWeakrefReference::new(object) {
            Ok(weak) => Self::Weak(weak.unbind()),
            Err(_) => Self::Kept(object.clone().unbind()),
        })
    }

    pub fn matches(&self, object: &Bound<'_, PyAny>) -> bool {
        let py = object.py();
        match self {
            Self::Value(value) => {
                let value = value.bind(py);
                // Small integers, and what was not assigned since, are the same objects.
                if value.is(object) {
                    return true;
                }
                // `True == 1 == 1.0`, and `0.0 == -0.0`, but they are different constants.
                value.get_type().is(object.get_type())
                    && match (value.cast::<PyFloat>(), object.cast::<PyFloat>()) {
                        (Ok(a), Ok(b)) => a.value().to_bits() == b.value().to_bits(),
                        _ => value.eq(object).unwrap_or(false),
                    }
            }
            Self::Tuple(keys) => object.cast_exact::<PyTuple>().is_ok_and(|items| {
                items.len() == keys.len()
                    && keys.iter().zip(items.iter()).all(|(key, item)| key.matches(&item))
            }),
            Self::Matrix(class, constant) => {
                object.get_type().is(class)
                    && object.call_method0("constant").is_ok_and(|now| now.eq(constant).unwrap_or(false))
            }
            Self::Struct(class, members) => {
                object.get_type().is(class)
                    && object.getattr("entries").is_ok_and(|entries| {
                        entries.len().is_ok_and(|count| count == members.len())
                            && members.iter().all(|(name, key)| {
                                entries.get_item(name).is_ok_and(|value| key.matches(&value))
                            })
                    })
            }
            Self::Weak(weak) => weak.bind(py).upgrade().is_some_and(|held| held.is(object)),
            Self::Kept(held) => held.bind(py).is(object),
        }
    }

    /// Whether an object that matches does so as long as it lives.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Value(_) | Self::Weak(_) | Self::Kept(_) => true,
            Self::Tuple(_) | Self::Matrix(..) | Self::Struct(..) => false,
        }
    }

    /// The object itself, if it is one that is held and still there.
    pub fn held<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self {
            Self::Weak(weak) => weak.bind(py).upgrade(),
            Self::Kept(held) | Self::Value(held) => Some(held.bind(py).clone()),
            Self::Tuple(_) | Self::Matrix(..) | Self::Struct(..) => None,
        }
    }

    /// Whether it can ever match again.
    pub fn is_alive(&self) -> bool {
        match self {
            Self::Value(_) | Self::Kept(_) | Self::Matrix(..) => true,
            Self::Struct(_, members) => members.iter().all(|(_, key)| key.is_alive()),
            Self::Tuple(keys) => keys.iter().all(Self::is_alive),
            Self::Weak(weak) => Python::attach(|py| weak.bind(py).upgrade().is_some()),
        }
    }
}
