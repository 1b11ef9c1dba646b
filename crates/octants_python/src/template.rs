//! What a compile-time argument, or anything else that code was made for, is compared by.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyList, PyRange, PyString, PyTuple, PyType, PyWeakrefMethods,
    PyWeakrefReference,
};

use crate::dtype::DataType;
use crate::func::Func;
use crate::numpy;

/// How deep containers are compared by what they hold. What lies deeper is compared by identity: a list may hold itself. Chosen, not measured.
const MAX_DEPTH: usize = 16;

/// Numbers, strings, types, vectors, matrices and structs by value; Python's containers by their items, in order; what a function is bound to by
/// both; anything else by identity and class, held weakly so that a key neither keeps an object alive nor matches another one that took its
/// address. What cannot be held weakly is kept alive.
pub enum TemplateKey {
    Value(Py<PyAny>),
    Tuple(Vec<TemplateKey>),
    List(Py<PyType>, Vec<TemplateKey>),
    /// Keys and values in the order in which a loop would see them.
    Dict(Py<PyType>, Vec<(TemplateKey, TemplateKey)>),
    /// A set, a deque, a view of a dict: what a loop over it gives.
    Items(Py<PyType>, Vec<TemplateKey>),
    /// An array without axes: the number that it holds.
    Number(Py<PyType>, Box<TemplateKey>),
    /// What a vector or a matrix says of itself.
    Matrix(Py<PyType>, Py<PyAny>),
    Struct(Py<PyType>, Vec<(Py<PyString>, TemplateKey)>),
    /// A function, and the object that it is bound to: a new object whenever it is asked for.
    Bound(Py<PyType>, Box<(TemplateKey, TemplateKey)>),
    /// Of an object of a class that a program may give it another one for, also the class.
    Weak(Py<PyWeakrefReference>, Option<Py<PyWeakrefReference>>),
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
        || object.is_exact_instance_of::<PyComplex>()
        || object.is_exact_instance_of::<PyRange>()
        || is_numpy_scalar(object)
}

/// Numbers of numpy are new objects whenever an array is asked for one.
fn is_numpy_scalar(object: &Bound<'_, PyAny>) -> bool {
    numpy::View::of(object).is_none() && object.get_type().module().is_ok_and(|module| module == "numpy")
}

/// Whether a class is one of Python's, numpy's or ours, or of an enum: its operators and attributes are known.
pub fn is_known_class(class: &Bound<'_, PyAny>) -> bool {
    let is_known = |module: Bound<'_, PyString>| {
        matches!(module.to_string().split('.').next(), Some("builtins" | "numpy" | "octants"))
    };
    class.cast::<PyType>().is_ok_and(|class| class.module().is_ok_and(is_known)) || is_enum(class)
}

/// Whether a class is one of an enum.
pub fn is_enum(class: &Bound<'_, PyAny>) -> bool {
    class.get_type().name().is_ok_and(|name| name == "EnumMeta" || name == "EnumType")
}

/// Whether it is a container of Python's own whose contents a loop gives, and which is compared by them.
pub fn is_collection(object: &Bound<'_, PyAny>) -> bool {
    let class = object.get_type();
    collections(object.py()).is_ok_and(|known| known.iter().any(|known| class.is(known)))
}

fn collections(py: Python<'_>) -> PyResult<&'static [Py<PyType>]> {
    static COLLECTIONS: PyOnceLock<Vec<Py<PyType>>> = PyOnceLock::new();
    let find = || {
        let builtins = py.import("builtins")?;
        let mut found = Vec::new();
        for name in ["set", "frozenset", "bytearray", "memoryview"] {
            found.push(builtins.getattr(name)?.cast_into::<PyType>()?.unbind());
        }
        for (module, name) in [("collections", "deque"), ("array", "array"), ("types", "MappingProxyType")] {
            found.push(py.import(module)?.getattr(name)?.cast_into::<PyType>()?.unbind());
        }
        for view in ["keys", "values", "items"] {
            found.push(PyDict::new(py).call_method0(view)?.get_type().unbind());
        }
        Ok::<_, PyErr>(found)
    };
    Ok(COLLECTIONS.get_or_try_init(py, find)?)
}

impl TemplateKey {
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::within(object, MAX_DEPTH)
    }

    fn within(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Self> {
        if is_value(object) {
            // One of a class of the user's may have attributes besides its value.
            let is_more = !is_known_class(object.get_type().as_any()) && object.hasattr("__dict__")?;
            return Ok(if is_more {
                Self::Kept(object.clone().unbind())
            } else {
                Self::Value(object.clone().unbind())
            });
        }
        if depth == 0 {
            return Ok(Self::identity(object));
        }
        let inner = |object: &Bound<'_, PyAny>| Self::within(object, depth - 1);
        let class = || object.get_type().unbind();
        if let Ok(items) = object.cast_exact::<PyTuple>() {
            return Ok(Self::Tuple(items.iter().map(|item| inner(&item)).collect::<PyResult<_>>()?));
        }
        if let Ok(items) = object.cast::<PyList>() {
            return Ok(Self::List(class(), items.iter().map(|item| inner(&item)).collect::<PyResult<_>>()?));
        }
        if let Ok(pairs) = object.cast::<PyDict>() {
            let pairs = pairs.iter().map(|(key, value)| Ok((inner(&key)?, inner(&value)?)));
            return Ok(Self::Dict(class(), pairs.collect::<PyResult<_>>()?));
        }
        if is_collection(object) || object.is_instance_of::<PyTuple>() {
            let items = object.try_iter()?.map(|item| inner(&item?));
            return Ok(Self::Items(class(), items.collect::<PyResult<_>>()?));
        }
        if let Some(number) = number_of(object) {
            return Ok(Self::Number(class(), Box::new(inner(&number)?)));
        }
        if let Some((function, receiver)) = bound(object) {
            return Ok(Self::Bound(class(), Box::new((inner(&function)?, Self::identity(&receiver)))));
        }
        match mark(object).as_deref() {
            Some("Matrix" | "Vector") => {
                let constant = object.call_method0("constant")?.unbind();
                return Ok(Self::Matrix(class(), constant));
            }
            Some("Struct") => {
                let entries = object.getattr("entries")?.cast_into::<PyDict>()?;
                let members = entries
                    .iter()
                    .map(|(name, value)| Ok((name.cast_into::<PyString>()?.unbind(), inner(&value)?)));
                return Ok(Self::Struct(class(), members.collect::<PyResult<_>>()?));
            }
            _ => {}
        }
        Ok(Self::identity(object))
    }

    /// The object itself, whatever it holds.
    pub fn identity(object: &Bound<'_, PyAny>) -> Self {
        let Ok(weak) = PyWeakrefReference::new(object) else { return Self::Kept(object.clone().unbind()) };
        // The class of a class is its metaclass, which nobody replaces.
        let class = (!object.is_instance_of::<PyType>())
            .then(|| PyWeakrefReference::new(&object.get_type()).ok())
            .flatten();
        Self::Weak(weak.unbind(), class.map(Bound::unbind))
    }

    pub fn matches(&self, object: &Bound<'_, PyAny>) -> bool {
        let py = object.py();
        let all = |keys: &[Self], items: &mut dyn Iterator<Item = Bound<'_, PyAny>>| {
            keys.iter().all(|key| items.next().is_some_and(|item| key.matches(&item)))
                && items.next().is_none()
        };
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
                        _ if value.is_exact_instance_of::<PyRange>() => same_range(value, object),
                        _ => value.eq(object).unwrap_or(false),
                    }
            }
            Self::Tuple(keys) => {
                object.cast_exact::<PyTuple>().is_ok_and(|items| all(keys, &mut items.iter()))
            }
            Self::List(class, keys) => {
                object.get_type().is(class)
                    && object.cast::<PyList>().is_ok_and(|items| all(keys, &mut items.iter()))
            }
            Self::Dict(class, pairs) => {
                object.get_type().is(class)
                    && object.cast::<PyDict>().is_ok_and(|items| {
                        items.len() == pairs.len()
                            && items.iter().zip(pairs).all(|((name, value), (key, known))| {
                                key.matches(&name) && known.matches(&value)
                            })
                    })
            }
            Self::Items(class, keys) => {
                object.get_type().is(class)
                    && object.try_iter().is_ok_and(|items| all(keys, &mut items.map_while(Result::ok)))
            }
            Self::Number(class, known) => {
                object.get_type().is(class) && number_of(object).is_some_and(|number| known.matches(&number))
            }
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
            Self::Bound(class, parts) => {
                object.get_type().is(class)
                    && bound(object).is_some_and(|(function, receiver)| {
                        parts.0.matches(&function) && parts.1.matches(&receiver)
                    })
            }
            Self::Weak(weak, class) => {
                weak.bind(py).upgrade().is_some_and(|held| held.is(object))
                    && class.as_ref().is_none_or(|class| {
                        class.bind(py).upgrade().is_some_and(|class| class.is(object.get_type()))
                    })
            }
            Self::Kept(held) => held.bind(py).is(object),
        }
    }

    /// Whether an object that matches does so as long as it lives and is of the same class.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Value(_) | Self::Weak(..) | Self::Kept(_) => true,
            Self::Tuple(_)
            | Self::List(..)
            | Self::Dict(..)
            | Self::Items(..)
            | Self::Number(..)
            | Self::Matrix(..)
            | Self::Struct(..)
            | Self::Bound(..) => false,
        }
    }

    /// Whether objects that match hold the same.
    pub fn is_by_value(&self) -> bool {
        match self {
            Self::Value(_) | Self::Matrix(..) | Self::Number(..) => true,
            Self::Tuple(keys) | Self::List(_, keys) | Self::Items(_, keys) => {
                keys.iter().all(Self::is_by_value)
            }
            Self::Dict(_, pairs) => pairs.iter().all(|(key, value)| key.is_by_value() && value.is_by_value()),
            Self::Struct(_, members) => members.iter().all(|(_, key)| key.is_by_value()),
            Self::Bound(..) | Self::Weak(..) | Self::Kept(_) => false,
        }
    }

    /// The object itself, if it is one that is held and still there.
    pub fn held<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self {
            Self::Weak(weak, _) => weak.bind(py).upgrade(),
            Self::Kept(held) | Self::Value(held) => Some(held.bind(py).clone()),
            Self::Tuple(_)
            | Self::List(..)
            | Self::Dict(..)
            | Self::Items(..)
            | Self::Number(..)
            | Self::Matrix(..)
            | Self::Struct(..)
            | Self::Bound(..) => None,
        }
    }

    /// Whether it can ever match again.
    pub fn is_alive(&self) -> bool {
        match self {
            Self::Value(_) | Self::Kept(_) | Self::Matrix(..) | Self::Number(..) => true,
            Self::Struct(_, members) => members.iter().all(|(_, key)| key.is_alive()),
            Self::Tuple(keys) | Self::List(_, keys) | Self::Items(_, keys) => keys.iter().all(Self::is_alive),
            Self::Dict(_, pairs) => pairs.iter().all(|(key, value)| key.is_alive() && value.is_alive()),
            Self::Bound(_, parts) => parts.0.is_alive() && parts.1.is_alive(),
            Self::Weak(weak, _) => Python::attach(|py| weak.bind(py).upgrade().is_some()),
        }
    }
}

/// The number that an array without axes holds, of numpy or of another library.
fn number_of<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
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
    let py = object.py();
    if let Ok(func) = object.cast::<Func>() {
        let func = func.get();
        let receiver = func.receiver.as_ref()?.bind(py).clone();
        return Some((func.function.bind(py).clone().into_any(), receiver));
    }
    static METHOD: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if object.get_type().is(METHOD.import(py, "types", "MethodType").ok()?) {
        return Some((object.getattr("__func__").ok()?, object.getattr("__self__").ok()?));
    }
    None
}

/// Ranges with the same items are equal, and may have other ends.
fn same_range(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> bool {
    ["start", "stop", "step"].iter().all(|&end| match (a.getattr(end), b.getattr(end)) {
        (Ok(a), Ok(b)) => a.eq(b).unwrap_or(false),
        _ => false,
    })
}
