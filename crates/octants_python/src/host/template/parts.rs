//! What objects that are compared consist of.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

use super::is_value;
use crate::host::func::Func;
use crate::interop::numpy;

/// Whether its class is derived from one of Python's containers.
pub fn is_derived(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyTuple>() && !object.is_exact_instance_of::<PyTuple>()
        || object.is_instance_of::<PyList>() && !object.is_exact_instance_of::<PyList>()
        || object.is_instance_of::<PyDict>() && !object.is_exact_instance_of::<PyDict>()
}

/// Whether an object of a derived class is its items and its attributes, and no more: tuples with names, and dicts of Python's own that keep nothing else.
pub fn is_all_content(object: &Bound<'_, PyAny>) -> bool {
    let class = object.get_type();
    object.is_instance_of::<PyTuple>()
        || class.module().is_ok_and(|module| module == "collections")
            && class.name().is_ok_and(|name| name == "OrderedDict" || name == "Counter")
}

pub fn attributes<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    object.getattr_opt("__dict__").ok()?.filter(pyo3::types::PyAnyMethods::is_exact_instance_of::<PyDict>)
}

type Pairs<'py> = Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;

fn ordered_dict(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static ORDERED_DICT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    ORDERED_DICT.import(py, "collections", "OrderedDict")
}

/// The pairs of a dict, of a view that lets none be changed, or of a view of pairs.
pub fn pairs_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Pairs<'py>>> {
    if let Ok(pairs) = object.cast::<PyDict>() {
        let ordered = ordered_dict(object.py())?;
        if object.is_exact_instance_of::<PyDict>() || !object.is_instance(ordered)? {
            return Ok(Some(pairs.iter().collect()));
        }
        // It keeps an order of its own beside that of the dict.
        let pairs = ordered.call_method1("items", (object,))?;
        return pairs.try_iter()?.map(|pair| pair?.extract()).collect::<PyResult<_>>().map(Some);
    }
    let name = object.get_type().name()?;
    let pairs = if name == "mappingproxy" {
        object.call_method0("items")?
    } else if name == "dict_items" {
        object.clone()
    } else {
        return Ok(None);
    };
    pairs.try_iter()?.map(|pair| pair?.extract()).collect::<PyResult<_>>().map(Some)
}

/// What a loop over a collection gives, behind what else belongs to it: how long it may become, what its items are stored as.
pub fn items_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let name = object.get_type().name()?.to_string();
    let more = match &*name {
        "deque" => Some("maxlen"),
        "array" => Some("typecode"),
        "memoryview" => Some("format"),
        _ => None,
    };
    let more = more.map(|name| object.getattr(name));
    more.into_iter().chain(object.try_iter()?).collect()
}

/// The number that an array without axes holds, of numpy or of another library.
pub fn number_of<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    if object.is_instance_of::<PyType>() {
        return None;
    }
    if let Some(view) = numpy::View::of(object) {
        return if view.shape().is_empty() { object.call_method0("item").ok() } else { None };
    }
    // Of what is no array, asking for a shape may run code of the user's. Arrays of ours are no numbers.
    object.getattr_opt("__dlpack__").ok()??;
    if object.get_type().module().is_ok_and(|module| module.to_string().starts_with("octants")) {
        return None;
    }
    let shape = object.getattr_opt("shape").ok()??;
    if shape.len().ok()? == 0 { object.call_method0("item").ok().filter(is_value) } else { None }
}

/// The function behind a method, and the object that it is bound to.
pub fn bound<'py>(object: &Bound<'py, PyAny>) -> Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    static METHOD: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = object.py();
    if let Ok(func) = object.cast::<Func>() {
        let func = func.get();
        let receiver = func.receiver.as_ref()?.bind(py).clone();
        return Some((func.function.bind(py).clone().into_any(), receiver));
    }
    if object.get_type().is(METHOD.import(py, "types", "MethodType").ok()?) {
        return Some((object.getattr("__func__").ok()?, object.getattr("__self__").ok()?));
    }
    None
}
