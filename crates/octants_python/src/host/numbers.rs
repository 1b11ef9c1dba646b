//! Numbers behind objects that code may be told of.

use octants::front::{Host, Meaning, Number};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use super::PyHost;

/// A number that code may be told of: an integer that is no truth value, or a real; those of numpy, too. Huge integers are none.
pub fn number_of(object: &Bound<'_, PyAny>) -> Option<Number> {
    if let Ok(float) = object.cast::<PyFloat>() {
        return Some(Number::Float(float.value()));
    }
    if object.is_instance_of::<PyBool>() {
        return None;
    }
    if object.is_instance_of::<PyInt>() {
        return object.extract::<i64>().ok().map(|value| Number::Int(value.into()));
    }
    numpy_number(object)
}

#[cold]
fn numpy_number(object: &Bound<'_, PyAny>) -> Option<Number> {
    match PyHost::new(object.py()).meaning(object) {
        Meaning::Int(value) => Some(Number::Int(value)),
        Meaning::Float(value) => Some(Number::Float(value)),
        _ => None,
    }
}
