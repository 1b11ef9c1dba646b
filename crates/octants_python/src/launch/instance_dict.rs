//! Members that lie in the dictionary of their object: read there, without asking the class at each launch.
//!
//! That is what an attribute means where the class neither computes attributes nor has a descriptor of this name that sets. A class may come to:
//! whether it is as it was, a launch sees by its version.

use std::sync::atomic::{AtomicIsize, AtomicU32, Ordering};

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyType};

use super::class_version::{self, ClassGuard};

/// Whether an attribute of an object is the item of its dictionary, and a launch can see that it still is.
pub fn holds(parent: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> bool {
    class_version::are_known(parent.py()) && is_item(parent, name).unwrap_or(false)
}

fn is_item(parent: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> PyResult<bool> {
    let class = parent.get_type();
    if !computes_no_attributes(&class)? {
        return Ok(false);
    }
    // A class written in Python may come to have `__set__`, which no version of ours tells.
    if let Some(of_class) = static_attribute(&class, name)?
        && (is_changeable(&of_class.get_type())
            || of_class.get_type().hasattr("__set__")?
            || of_class.get_type().hasattr("__delete__")?)
    {
        return Ok(false);
    }
    let Ok(dict) = parent.getattr("__dict__")?.cast_into::<PyDict>() else { return Ok(false) };
    dict.contains(name)
}

/// What a class or one of its bases has under a name, as it lies there: neither a descriptor nor the class of the class is asked.
pub fn static_attribute<'py>(
    class: &Bound<'py, PyType>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    for base in class.mro() {
        let names = class_names(&base.cast_into::<PyType>()?)?;
        if names.contains(name)? {
            return names.get_item(name).map(Some);
        }
    }
    Ok(None)
}

/// The names that lie in a class itself.
fn class_names<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
    static GETTER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = class.py();
    let getter = GETTER.get_or_try_init(py, || {
        let names = py.get_type::<PyType>().getattr("__dict__")?;
        names.get_item("__dict__")?.getattr("__get__").map(Bound::unbind)
    })?;
    getter.bind(py).call1((class,))
}

/// Whether a class is one that a program can change.
fn is_changeable(class: &Bound<'_, PyType>) -> bool {
    // SAFETY: the class lives.
    unsafe { ffi::PyType_GetFlags(class.as_type_ptr()) & ffi::Py_TPFLAGS_HEAPTYPE != 0 }
}

/// Whether objects of the class find their attributes as most do.
pub fn computes_no_attributes(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let (py, name) = (class.py(), intern!(class.py(), "__getattribute__"));
    let plain = static_attribute(&py.get_type::<PyAny>(), name)?;
    let found = static_attribute(class, name)?;
    Ok(found.zip(plain).is_some_and(|(found, plain)| found.is(&plain)))
}

/// Whether an object finds its attributes as most do.
pub fn is_asked_plainly(object: &Bound<'_, PyAny>) -> bool {
    computes_no_attributes(&object.get_type()).unwrap_or(false)
}

/// Where an item was last found in its dictionary, so that it is looked for there first: of the work of looking a name up that is a third.
#[derive(Default)]
pub struct LastPlace {
    /// What `PyDict_Next` takes to give the item.
    position: AtomicIsize,
    /// How often the item was not there. A dictionary whose order keeps changing is not searched again and again.
    misses: AtomicU32,
    class: ClassGuard,
}

/// Misses after which an item's place is not looked for any more. Chosen, not measured.
const MAX_MISSES: u32 = 16;

impl LastPlace {
    /// The item of this name, if it is where it was.
    #[inline]
    fn item<'a, 'py>(
        &self,
        dict: &'a Bound<'py, PyAny>,
        name: &Py<PyString>,
    ) -> Option<Borrowed<'a, 'py, PyAny>> {
        let mut position = self.position.load(Ordering::Relaxed);
        let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the object is a dictionary that lives. It says itself whether there is anything from this place on. A dictionary has one item of a key.
        unsafe {
            let found = ffi::PyDict_Next(dict.as_ptr(), &raw mut position, &raw mut key, &raw mut value);
            if found == 0 || key != name.as_ptr() {
                return None;
            }
            Some(Borrowed::from_ptr(dict.py(), value))
        }
    }

    /// Looks where the item of this name is.
    #[cold]
    fn find(&self, dict: &Bound<'_, PyAny>, name: &Py<PyString>) {
        if self.misses.fetch_add(1, Ordering::Relaxed) >= MAX_MISSES {
            return;
        }
        let (mut next, mut key) = (0, std::ptr::null_mut());
        loop {
            let position = next;
            // SAFETY: as above; nothing changes the dictionary meanwhile.
            let found =
                unsafe { ffi::PyDict_Next(dict.as_ptr(), &raw mut next, &raw mut key, std::ptr::null_mut()) };
            if found == 0 {
                return;
            }
            if key == name.as_ptr() {
                self.position.store(position, Ordering::Relaxed);
                return;
            }
        }
    }
}

/// The dictionary that members were read from last, and the number of the input that it belongs to.
#[derive(Default)]
pub struct InstanceDict<'py> {
    of: usize,
    dict: Option<Bound<'py, PyAny>>,
    class_version: u32,
}

impl<'py> InstanceDict<'py> {
    /// A member of the input `of`, if it lies in its dictionary, and its class still leaves it there.
    #[inline]
    pub fn get(
        &mut self,
        of: usize,
        parent: &Bound<'py, PyAny>,
        name: &Py<PyString>,
        class: &ClassGuard,
    ) -> Option<Bound<'py, PyAny>> {
        let (dict, version) = self.of(of, parent)?;
        if !class.is_as_it_was(version, parent, || holds(parent, name.bind(parent.py()))) {
            return None;
        }
        looked_up(dict, name).map(Borrowed::to_owned)
    }

    /// What lies in the dictionary of the input `of`, whatever its class has of this name; for as long as no code of Python's runs.
    #[inline]
    pub fn item(
        &mut self,
        of: usize,
        parent: &Bound<'py, PyAny>,
        name: &Py<PyString>,
    ) -> Option<Borrowed<'_, 'py, PyAny>> {
        looked_up(self.of(of, parent)?.0, name)
    }

    /// As [`InstanceDict::get`], of a member that is asked for again and again, for as long as no code of Python's runs.
    #[inline]
    pub fn item_at(
        &mut self,
        of: usize,
        parent: &Bound<'py, PyAny>,
        name: &Py<PyString>,
        place: &LastPlace,
    ) -> Option<Borrowed<'_, 'py, PyAny>> {
        let (dict, version) = self.of(of, parent)?;
        if !place.class.is_as_it_was(version, parent, || holds(parent, name.bind(parent.py()))) {
            return None;
        }
        if let Some(item) = place.item(dict, name) {
            return Some(item);
        }
        place.find(dict, name);
        looked_up(dict, name)
    }

    /// The version of the class of the input `of`: 0 if it has none.
    #[inline]
    pub fn class_version(&mut self, of: usize, parent: &Bound<'py, PyAny>) -> u32 {
        self.of(of, parent).map_or(0, |(_, version)| version)
    }

    /// The dictionary of the input `of`, and the version of its class.
    #[inline]
    fn of(&mut self, of: usize, parent: &Bound<'py, PyAny>) -> Option<(&Bound<'py, PyAny>, u32)> {
        if self.of != of || self.dict.is_none() {
            self.of = of;
            self.dict = dictionary(parent);
            self.class_version = class_version::of_object(parent);
        }
        self.dict.as_ref().map(|dict| (dict, self.class_version))
    }
}

/// The item of a dictionary.
#[inline]
fn looked_up<'a, 'py>(dict: &'a Bound<'py, PyAny>, name: &Py<PyString>) -> Option<Borrowed<'a, 'py, PyAny>> {
    // SAFETY: the object is a dictionary that lives.
    let item = unsafe {
        let item = ffi::PyDict_GetItemWithError(dict.as_ptr(), name.as_ptr());
        Borrowed::from_ptr_or_opt(dict.py(), item)
    };
    if item.is_none() {
        // What another key raised that was compared with the name, it raises again when the object is asked.
        drop(PyErr::take(dict.py()));
    }
    item
}

fn dictionary<'py>(parent: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: the object lives; a null result is an exception, which is taken.
    let dict = unsafe {
        let dict = ffi::PyObject_GenericGetDict(parent.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(parent.py(), dict)
    };
    dict.ok().filter(PyAnyMethods::is_exact_instance_of::<PyDict>)
}
