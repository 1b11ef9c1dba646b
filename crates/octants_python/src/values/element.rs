//! Elements of arrays and fields: Python values as the constants that one is set to.

use octants::ir::{Const, Data, Scalar};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::values::{aggregate, dtype, number};

/// The constants of an element; one number stands for all entries of a vector or matrix. A number is converted, whatever its type,
/// as it is when a kernel stores it.
pub fn constants(element: Data, value: &Bound<'_, PyAny>) -> PyResult<Vec<Const>> {
    let tensor = match element {
        Data::Tensor(tensor) => tensor,
        Data::Scalar(scalar) => return Ok(vec![constant(scalar, value)?]),
        Data::Struct(_) => {
            return Err(PyTypeError::new_err("an element that is a struct is set by its members"));
        }
    };
    if number::real(value).is_some() || number::wrapped_integer(value).is_some() {
        return Ok(vec![constant(tensor.elem, value)?; tensor.shape.count() as usize]);
    }
    let mut bits = Vec::new();
    if aggregate::Layout::Tensor(tensor.elem, tensor.shape).convert(value, &mut bits)?.is_none() {
        let element = shape_text(tensor.shape.dims().into_iter().map(|extent| extent as usize));
        let found = value.get_type().name()?.to_string();
        let given = shape_of(value).map_or_else(String::new, |shape| format!(" of shape {shape}"));
        return Err(PyTypeError::new_err(format!(
            "an element of shape {element} cannot be set to a {found}{given}"
        )));
    }
    Ok(bits.into_iter().map(|(scalar, bits)| Const::from_bits(scalar, bits)).collect())
}

/// The shape of a vector, matrix or nested sequence, for a message; nothing for what is none. Of a sequence only the first item at each level is
/// looked at.
pub fn shape_of(value: &Bound<'_, PyAny>) -> Option<String> {
    if aggregate::is_tensor(value)
        && let Ok(extents) = value.call_method0("get_shape").and_then(|shape| shape.extract::<Vec<usize>>())
    {
        return Some(shape_text(extents.into_iter()));
    }
    let mut extents = Vec::new();
    let mut item = value.clone();
    while extents.len() < 3 && !item.is_instance_of::<PyString>() {
        let Ok(length) = item.len() else { break };
        extents.push(length);
        let Ok(first) = item.get_item(0) else { break };
        item = first;
    }
    if extents.is_empty() { None } else { Some(shape_text(extents.into_iter())) }
}

/// As Python writes a tuple.
pub fn shape_text(extents: impl Iterator<Item = usize>) -> String {
    let extents: Vec<_> = extents.map(|extent| extent.to_string()).collect();
    if let [only] = &extents[..] { format!("({only},)") } else { format!("({})", extents.join(", ")) }
}

/// A number as a constant of the type.
pub fn constant(scalar: Scalar, value: &Bound<'_, PyAny>) -> PyResult<Const> {
    dtype::constant_from(value, scalar).map_err(|_| {
        let found = value.get_type().name().map_or_else(|_| "object".to_owned(), |n| n.to_string());
        PyTypeError::new_err(format!("an element of type {} cannot be set to a {found}", scalar.name()))
    })
}
