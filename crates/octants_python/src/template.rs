//! What a compile-time argument is specialised on.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple, PyWeakrefMethods, PyWeakrefReference};

use crate::dtype::DataType;

/// Numbers, strings and types by value; tuples by their items; anything else by identity, held weakly so that a key neither keeps
/// an object alive nor matches another one that took its address. What cannot be held weakly is kept alive.
pub enum TemplateKey {
    Value(Py<PyAny>),
    Tuple(Vec<TemplateKey>),
    Weak(Py<PyWeakrefReference>),
    Kept(Py<PyAny>),
}

fn is_value(object: &Bound<'_, PyAny>) -> bool {
    object.is_none()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyString>()
        || object.is_exact_instance_of::<PyBytes>()
        || object.is_instance_of::<DataType>()
}

impl TemplateKey {
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if is_value(object) {
            return Ok(Self::Value(object.clone().unbind()));
        }
        if let Ok(items) = object.cast_exact::<PyTuple>() {
            return Ok(Self::Tuple(items.iter().map(|item| Self::of(&item)).collect::<PyResult<_>>()?));
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
            Self::Weak(weak) => weak.bind(py).upgrade().is_some_and(|held| held.is(object)),
            Self::Kept(held) => held.bind(py).is(object),
        }
    }

    /// Whether it can ever match again.
    pub fn is_alive(&self) -> bool {
        match self {
            Self::Value(_) | Self::Kept(_) => true,
            Self::Tuple(keys) => keys.iter().all(Self::is_alive),
            Self::Weak(weak) => Python::attach(|py| weak.bind(py).upgrade().is_some()),
        }
    }
}
