//! What a compile-time argument, or anything else that code was made for, is compared by.
//!
//! Laws: two objects match only if no code can tell them apart by what they hold, so numbers are compared by their bits. A container that is met again
//! in the same walk is walked once: it must be the same one again. So a walk is as long as what it goes through, also where containers share others or
//! hold themselves.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyList, PyRange, PyString, PyTuple, PyType, PyWeakrefMethods,
    PyWeakrefReference,
};

use self::parts::{attributes, is_all_content, items_of, number_of};
pub use self::parts::{bound, is_derived, pairs_of};
use self::values::same_value;
use crate::interop::numpy;
use crate::values::dtype::DataType;

mod parts;
mod same;
mod values;

/// How deep containers are compared by what they hold. What lies deeper is compared by identity: the walk must not use up the stack. Chosen, not
/// measured.
const MAX_DEPTH: usize = 64;

/// Numbers, strings, types, vectors, matrices and structs by value; Python's containers by their items, in order; those of classes derived from these by
/// identity, items and attributes; what a function is bound to by both; anything else by identity and class, held weakly so that a key neither keeps an
/// object alive nor matches another one that took its address. What cannot be held weakly is kept alive.
pub enum TemplateKey {
    Value(Py<PyAny>),
    Tuple(Vec<TemplateKey>),
    List(Vec<TemplateKey>),
    /// Of a dict, a view of one or a view of its items: keys and values in the order in which a loop would see them.
    Dict(Py<PyType>, Vec<(TemplateKey, TemplateKey)>),
    /// A set, a deque, a view of a dict: what a loop over it gives, behind what else belongs to it.
    Items(Py<PyType>, Vec<TemplateKey>),
    /// An array without axes: the number that it holds.
    Number(Py<PyType>, Box<TemplateKey>),
    /// What a value of the package says of itself: a vector, a matrix, a product of ranges.
    Own(Py<PyType>, Box<TemplateKey>),
    Struct(Py<PyType>, Vec<(Py<PyString>, TemplateKey)>),
    /// A function, and the object that it is bound to: a new object whenever it is asked for.
    Bound(Py<PyType>, Box<(TemplateKey, TemplateKey)>),
    /// Of an object of a class that a program may give it another one for, also the class.
    Weak(Py<PyWeakrefReference>, Option<Py<PyWeakrefReference>>),
    Kept(Py<PyAny>),
    /// Of a class derived from one of Python's containers: the object itself, unless its class adds nothing that could be another in an equal one; what it
    /// holds as a container; its attributes.
    Derived(Py<PyType>, Box<(Option<TemplateKey>, TemplateKey, Option<TemplateKey>)>),
    /// The container that the walk met as the one of this number.
    Again(usize),
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

/// Numbers of numpy are new objects whenever an array is asked for one. Other objects of its own never change, either, if they are functions or say
/// what a type is; elements of structured arrays, iterators and polynomials do.
fn is_numpy_scalar(object: &Bound<'_, PyAny>) -> bool {
    const FIXED: &[&str] = &["dtype", "finfo", "iinfo", "ufunc"];
    static GENERIC: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static VOID: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let (py, class) = (object.py(), object.get_type());
    if !class.module().is_ok_and(|module| module == "numpy") || numpy::View::of(object).is_some() {
        return false;
    }
    let is_a = |class: PyResult<&Bound<'_, PyType>>| {
        class.is_ok_and(|class| object.is_instance(class).unwrap_or(false))
    };
    if is_a(GENERIC.import(py, "numpy", "generic")) {
        return !is_a(VOID.import(py, "numpy", "void"));
    }
    class.name().is_ok_and(|name| FIXED.contains(&&*name.to_string()))
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

/// The containers of one walk. They are held, so that none that is made on the way takes the place of another.
#[derive(Default)]
struct Walk<'py> {
    numbers: HashMap<usize, usize>,
    met: Vec<Bound<'py, PyAny>>,
}

impl<'py> Walk<'py> {
    /// The number of a container that was met before; else it gets the next one.
    fn meet(&mut self, object: &Bound<'py, PyAny>) -> Option<usize> {
        match self.numbers.entry(object.as_ptr() as usize) {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(new) => {
                new.insert(self.met.len());
                self.met.push(object.clone());
                None
            }
        }
    }

    fn key(&mut self, object: &Bound<'py, PyAny>, depth: usize) -> PyResult<TemplateKey> {
        type Key = TemplateKey;
        if is_value(object) {
            // One of a class of the user's may have attributes besides its value, and says itself what it equals.
            return Ok(if is_known_class(object.get_type().as_any()) {
                Key::Value(object.clone().unbind())
            } else {
                Key::Kept(object.clone().unbind())
            });
        }
        if depth == 0 {
            return Ok(Key::identity(object));
        }
        let class = || object.get_type().unbind();
        let inner = depth - 1;
        let is_container = object.is_instance_of::<PyTuple>()
            || object.is_instance_of::<PyList>()
            || object.is_instance_of::<PyDict>()
            || is_collection(object);
        if is_container {
            if let Some(number) = self.meet(object) {
                return Ok(Key::Again(number));
            }
            let content = self.container(object, inner)?;
            if !is_derived(object) {
                return Ok(content);
            }
            let identity = (!is_all_content(object)).then(|| Key::identity(object));
            let attributes = attributes(object).map(|attributes| self.key(&attributes, inner)).transpose()?;
            return Ok(Key::Derived(class(), Box::new((identity, content, attributes))));
        }
        if let Some(number) = number_of(object) {
            return Ok(Key::Number(class(), Box::new(self.key(&number, inner)?)));
        }
        if let Some((function, receiver)) = bound(object) {
            return Ok(Key::Bound(
                class(),
                Box::new((self.key(&function, inner)?, Key::identity(&receiver))),
            ));
        }
        match mark(object).as_deref() {
            Some("Matrix" | "Vector" | "ndrange") => {
                // It is made anew each time, and holds numbers.
                let constant = self.key(&object.call_method0("constant")?, MAX_DEPTH)?;
                Ok(Key::Own(class(), Box::new(constant)))
            }
            Some("Struct") => {
                if let Some(number) = self.meet(object) {
                    return Ok(Key::Again(number));
                }
                let entries = object.getattr("entries")?.cast_into::<PyDict>()?;
                let members = entries.iter().map(|(name, value)| {
                    Ok((name.cast_into::<PyString>()?.unbind(), self.key(&value, inner)?))
                });
                Ok(Key::Struct(class(), members.collect::<PyResult<_>>()?))
            }
            _ => Ok(Key::identity(object)),
        }
    }

    /// What a container holds.
    fn container(&mut self, object: &Bound<'py, PyAny>, inner: usize) -> PyResult<TemplateKey> {
        type Key = TemplateKey;
        if let Ok(items) = object.cast::<PyTuple>() {
            return Ok(Key::Tuple(items.iter().map(|item| self.key(&item, inner)).collect::<PyResult<_>>()?));
        }
        if let Ok(items) = object.cast::<PyList>() {
            return Ok(Key::List(items.iter().map(|item| self.key(&item, inner)).collect::<PyResult<_>>()?));
        }
        let class = object.get_type().unbind();
        if let Some(pairs) = pairs_of(object)? {
            let pairs =
                pairs.iter().map(|(name, value)| Ok((self.key(name, inner)?, self.key(value, inner)?)));
            return Ok(Key::Dict(class, pairs.collect::<PyResult<_>>()?));
        }
        let items = items_of(object)?;
        Ok(Key::Items(class, items.iter().map(|item| self.key(item, inner)).collect::<PyResult<_>>()?))
    }
}

impl TemplateKey {
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Walk::default().key(object, MAX_DEPTH)
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
        self.fits(object, &mut Vec::new())
    }

    /// The containers that were met are numbered as they were when the key was made.
    fn fits<'py>(&self, object: &Bound<'py, PyAny>, met: &mut Vec<Bound<'py, PyAny>>) -> bool {
        let py = object.py();
        match self {
            Self::Value(value) => same_value(value.bind(py), object),
            Self::Tuple(_) | Self::List(_) | Self::Dict(..) | Self::Items(..) => {
                met.push(object.clone());
                !is_derived(object) && self.holds(object, met)
            }
            Self::Derived(class, parts) => {
                let (identity, content, known) = &**parts;
                met.push(object.clone());
                object.get_type().is(class)
                    && identity.as_ref().is_none_or(|identity| identity.fits(object, met))
                    && content.holds(object, met)
                    && match (known, attributes(object)) {
                        (Some(known), Some(now)) => known.fits(&now, met),
                        (None, None) => true,
                        _ => false,
                    }
            }
            Self::Again(number) => met.get(*number).is_some_and(|first| first.is(object)),
            Self::Number(class, known) => {
                object.get_type().is(class)
                    && number_of(object).is_some_and(|number| known.fits(&number, met))
            }
            Self::Own(class, constant) => {
                object.get_type().is(class)
                    && object.call_method0("constant").is_ok_and(|now| constant.fits(&now, met))
            }
            Self::Struct(class, members) => {
                met.push(object.clone());
                object.get_type().is(class)
                    && object.getattr("entries").is_ok_and(|entries| {
                        entries.len().is_ok_and(|count| count == members.len())
                            && members.iter().all(|(name, key)| {
                                entries.get_item(name).is_ok_and(|value| key.fits(&value, met))
                            })
                    })
            }
            Self::Bound(class, parts) => {
                object.get_type().is(class)
                    && bound(object).is_some_and(|(function, receiver)| {
                        parts.0.fits(&function, met) && parts.1.fits(&receiver, met)
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

    /// Whether a container holds what another one held.
    fn holds<'py>(&self, object: &Bound<'py, PyAny>, met: &mut Vec<Bound<'py, PyAny>>) -> bool {
        match self {
            Self::Tuple(keys) => object.cast::<PyTuple>().is_ok_and(|items| {
                items.len() == keys.len() && items.iter().zip(keys).all(|(item, key)| key.fits(&item, met))
            }),
            Self::List(keys) => object.cast::<PyList>().is_ok_and(|items| {
                items.len() == keys.len() && items.iter().zip(keys).all(|(item, key)| key.fits(&item, met))
            }),
            Self::Dict(class, known) => {
                object.get_type().is(class)
                    && object.len().is_ok_and(|count| count == known.len())
                    && pairs_of(object).ok().flatten().is_some_and(|pairs| {
                        pairs.len() == known.len()
                            && pairs.iter().zip(known).all(|((name, value), (key, known))| {
                                key.fits(name, met) && known.fits(value, met)
                            })
                    })
            }
            Self::Items(class, keys) => {
                object.get_type().is(class)
                    && items_of(object).is_ok_and(|items| {
                        items.len() == keys.len()
                            && items.iter().zip(keys).all(|(item, key)| key.fits(item, met))
                    })
            }
            _ => false,
        }
    }

    /// Whether an object that matches does so as long as it lives and is of the same class.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Value(_) | Self::Weak(..) | Self::Kept(_) => true,
            Self::Tuple(_)
            | Self::List(_)
            | Self::Dict(..)
            | Self::Items(..)
            | Self::Number(..)
            | Self::Own(..)
            | Self::Struct(..)
            | Self::Bound(..)
            | Self::Derived(..)
            | Self::Again(_) => false,
        }
    }

    /// Whether objects that match hold the same.
    pub fn is_by_value(&self) -> bool {
        match self {
            // What is met again was told of when it was met first.
            Self::Value(_) | Self::Own(..) | Self::Number(..) | Self::Again(_) => true,
            Self::Tuple(keys) | Self::List(keys) | Self::Items(_, keys) => keys.iter().all(Self::is_by_value),
            Self::Dict(_, pairs) => pairs.iter().all(|(key, value)| key.is_by_value() && value.is_by_value()),
            Self::Struct(_, members) => members.iter().all(|(_, key)| key.is_by_value()),
            Self::Derived(_, parts) => {
                parts.0.is_none() && parts.1.is_by_value() && parts.2.as_ref().is_none_or(Self::is_by_value)
            }
            Self::Bound(..) | Self::Weak(..) | Self::Kept(_) => false,
        }
    }

    /// The object itself, if it is one that is held and still there.
    pub fn held<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self {
            Self::Weak(weak, _) => weak.bind(py).upgrade(),
            Self::Kept(held) | Self::Value(held) => Some(held.bind(py).clone()),
            Self::Tuple(_)
            | Self::List(_)
            | Self::Dict(..)
            | Self::Items(..)
            | Self::Number(..)
            | Self::Own(..)
            | Self::Struct(..)
            | Self::Bound(..)
            | Self::Derived(..)
            | Self::Again(_) => None,
        }
    }

    /// Whether it can ever match again.
    pub fn is_alive(&self) -> bool {
        match self {
            Self::Value(_) | Self::Kept(_) | Self::Own(..) | Self::Number(..) | Self::Again(_) => true,
            Self::Derived(_, parts) => {
                parts.0.as_ref().is_none_or(Self::is_alive)
                    && parts.1.is_alive()
                    && parts.2.as_ref().is_none_or(Self::is_alive)
            }
            Self::Struct(_, members) => members.iter().all(|(_, key)| key.is_alive()),
            Self::Tuple(keys) | Self::List(keys) | Self::Items(_, keys) => keys.iter().all(Self::is_alive),
            Self::Dict(_, pairs) => pairs.iter().all(|(key, value)| key.is_alive() && value.is_alive()),
            Self::Bound(_, parts) => parts.0.is_alive() && parts.1.is_alive(),
            Self::Weak(weak, _) => Python::attach(|py| weak.bind(py).upgrade().is_some()),
        }
    }
}
