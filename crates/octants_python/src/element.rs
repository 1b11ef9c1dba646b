//! Elements of arrays and fields: Python values as the constants that one is set to.

use octants::ir::{Const, Data, Scalar};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::{aggregate, dtype, number};

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
        let found = value.get_type().name()?.to_string();
        return Err(PyTypeError::new_err(format!(
            "an element of shape {:?} cannot be set to this {found}",
            tensor.shape.dims()
        )));
    }
    Ok(bits.into_iter().map(|(scalar, bits)| Const::from_bits(scalar, bits)).collect())
}

/// A number as a constant of the type.
pub fn constant(scalar: Scalar, value: &Bound<'_, PyAny>) -> PyResult<Const> {
    dtype::constant_from(value, scalar).map_err(|_| {
        let found = value.get_type().name().map_or_else(|_| "object".to_owned(), |n| n.to_string());
        PyTypeError::new_err(format!("an element of type {} cannot be set to a {found}", scalar.name()))
    })
}
