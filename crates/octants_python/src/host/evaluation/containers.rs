//! Containers of Python's own, and iterators over them.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::Operation;
use super::purity::{self, Purity};
use crate::host::template;

/// Containers with more items, those of their items counted, are not compared as a whole: reads of them are repeated. Chosen, not measured.
const MAX_COMPARED_ITEMS: usize = 1 << 12;

/// Likewise those that are nested deeper. Chosen, not measured.
const MAX_COMPARED_DEPTH: usize = 8;

/// A list, a tuple or a dict whose operators are Python's own.
pub fn is_container(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyList>()
        || object.is_exact_instance_of::<PyDict>()
        || object.is_exact_instance_of::<PyTuple>()
}

/// Whether an object is no container, or one that can be compared by all that it holds. What is in it twice counts twice: it is compared twice, too.
pub fn is_small(object: &Bound<'_, PyAny>) -> bool {
    is_within(object, MAX_COMPARED_DEPTH, &mut { MAX_COMPARED_ITEMS })
}

fn is_within(object: &Bound<'_, PyAny>, depth: usize, left: &mut usize) -> bool {
    let is_list = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
    let is_collection = !is_list && !object.is_instance_of::<PyDict>() && template::is_collection(object);
    let count = if let Ok(list) = object.cast::<PyList>() {
        list.len()
    } else if let Ok(tuple) = object.cast::<PyTuple>() {
        tuple.len()
    } else if let Ok(pairs) = object.cast::<PyDict>() {
        pairs.len()
    } else if is_collection {
        object.len().unwrap_or(usize::MAX)
    } else {
        return true;
    };
    if count > *left || depth == 0 {
        return false;
    }
    *left -= count;
    let mut within = |item: Bound<'_, PyAny>| is_within(&item, depth - 1, left);
    if let Ok(list) = object.cast::<PyList>() {
        list.iter().all(within)
    } else if let Ok(tuple) = object.cast::<PyTuple>() {
        tuple.iter().all(within)
    } else if let Ok(pairs) = object.cast::<PyDict>() {
        pairs.iter().all(|(key, value)| within(key) && within(value))
    } else {
        object.try_iter().is_ok_and(|mut items| items.all(|item| item.is_ok_and(&mut within)))
    }
}

pub fn is_len(callee: &Bound<'_, PyAny>) -> bool {
    callee
        .py()
        .import("builtins")
        .and_then(|builtins| builtins.getattr("len"))
        .is_ok_and(|len| len.is(callee))
}

/// Whether an operation takes items of an iterator of Python's own: it has them once, so that a launch cannot take them again, and code stays with those
/// that it was made with. One that an evaluation made is made again.
pub fn consumes<'py>(
    operation: &Operation,
    operands: &[Bound<'py, PyAny>],
    is_made: impl Fn(&Bound<'py, PyAny>) -> bool,
) -> bool {
    let is_iterator = |object: &Bound<'py, PyAny>| is_iterator(object) && !is_made(object);
    match (operation, operands) {
        (Operation::Iterate, [object]) => is_iterator(object),
        (Operation::Call(_), [callee, given @ ..]) if given.iter().any(is_iterator) => {
            purity::is_next(callee) || matches!(purity::of(callee), Purity::Pure)
        }
        _ => false,
    }
}

fn is_iterator(object: &Bound<'_, PyAny>) -> bool {
    let class = object.get_type();
    class.hasattr("__next__").unwrap_or(false)
        && class
            .module()
            .is_ok_and(|module| module == "builtins" || module == "itertools" || module == "collections")
}
