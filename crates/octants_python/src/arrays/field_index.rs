//! Indices of fields as host code writes them.

use octants::{FieldLeaf, Place};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::gateway::errors;
use crate::values::number;

/// A host index as numbers, if it has as many parts as the field has axes.
pub fn numbers(leaf: &FieldLeaf, index: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let parts = parts(index);
    let rank = leaf.layout().rank();
    if parts.len() != rank {
        let (axes, given) = (plural(rank, "axis", "axes"), plural(parts.len(), "index", "indices"));
        let message = format!(
            "the field{} has {axes}, got {given}. Slicing is not supported on fields; to_numpy() gives an array",
            name_of(leaf)
        );
        return Err(errors::exception(index.py(), "OctantsAssertionError", &message));
    }
    parts.iter().map(integer).collect()
}

/// The parts of a host index: of a tuple or a list its items, of `None` nothing.
pub fn parts<'py>(index: &Bound<'py, PyAny>) -> Vec<Bound<'py, PyAny>> {
    if let Ok(tuple) = index.cast::<PyTuple>() {
        tuple.iter().collect()
    } else if let Ok(list) = index.cast::<PyList>() {
        list.iter().collect()
    } else if index.is_none() {
        Vec::new()
    } else {
        vec![index.clone()]
    }
}

fn integer(part: &Bound<'_, PyAny>) -> PyResult<i64> {
    if let Ok(integer) = part.extract::<i64>() {
        return Ok(integer);
    }
    // Too large for any field, but an integer.
    if number::wrapped_integer(part).is_some() {
        return Ok(i64::MAX);
    }
    let found = part.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "an index of a field is an integer, not {found}; slicing a field is not supported: to_numpy() gives an array"
    )))
}

fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The element that a host index means.
pub fn place(leaf: &FieldLeaf, index: &Bound<'_, PyAny>) -> PyResult<Place> {
    let numbers = numbers(leaf, index)?;
    leaf.place(&numbers)
        .ok_or_else(|| errors::exception(index.py(), "OctantsAssertionError", &outside(leaf, &numbers)))
}

/// The name that the field was made with, after a space.
fn name_of(leaf: &FieldLeaf) -> String {
    if leaf.name().is_empty() { String::new() } else { format!(" `{}`", leaf.name()) }
}

fn outside(leaf: &FieldLeaf, index: &[i64]) -> String {
    let layout = leaf.layout();
    let name = name_of(leaf);
    let shape: Vec<i64> = layout.shape.iter().map(|&extent| extent.into()).collect();
    let origin: Vec<i64> = layout.origin.iter().map(|&first| first.into()).collect();
    let offset = if origin.iter().all(|&first| first == 0) {
        String::new()
    } else {
        format!(" and offset {}", as_tuple(&origin))
    };
    let (shape, index) = (as_tuple(&shape), as_tuple(index));
    format!("Out of bound access to field{name} of shape {shape}{offset} with index {index}")
}

/// Numbers as Python writes a tuple.
fn as_tuple(numbers: &[i64]) -> String {
    match numbers {
        [one] => format!("({one},)"),
        many => {
            let all: Vec<_> = many.iter().map(ToString::to_string).collect();
            format!("({})", all.join(", "))
        }
    }
}
