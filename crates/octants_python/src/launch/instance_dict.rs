//! Members that lie in the dictionary of their object: read there, without asking the class at each launch.
//!
//! That is what an attribute means where the class neither computes attributes nor has a descriptor of this name that sets.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// Whether an attribute of an object is the item of its dictionary.
pub fn holds(parent: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> bool {
    is_item(parent, name).unwrap_or(false)
}

fn is_item(parent: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> PyResult<bool> {
    let class = parent.get_type();
    let plain = parent.py().import("builtins")?.getattr("object")?.getattr("__getattribute__")?;
    if !class.getattr("__getattribute__")?.is(&plain) {
        return Ok(false);
    }
    if let Some(of_class) = class.getattr_opt(name)?
        && of_class.get_type().hasattr("__set__")?
    {
        return Ok(false);
    }
    let Ok(dict) = parent.getattr("__dict__")?.cast_into::<PyDict>() else { return Ok(false) };
    dict.contains(name)
}

/// The dictionary that members were read from last, and the number of the input that it belongs to.
#[derive(Default)]
pub struct InstanceDict<'py> {
    of: usize,
    dict: Option<Bound<'py, PyAny>>,
}

impl<'py> InstanceDict<'py> {
    /// A member of the input `of`, if it lies in its dictionary.
    #[inline]
    pub fn get(
        &mut self,
        of: usize,
        parent: &Bound<'py, PyAny>,
        name: &Py<PyString>,
    ) -> Option<Bound<'py, PyAny>> {
        self.item(of, parent, name).map(Borrowed::to_owned)
    }

    /// As [`InstanceDict::get`], for as long as no code of Python's runs.
    #[inline]
    pub fn item(
        &mut self,
        of: usize,
        parent: &Bound<'py, PyAny>,
        name: &Py<PyString>,
    ) -> Option<Borrowed<'_, 'py, PyAny>> {
        if self.of != of || self.dict.is_none() {
            self.of = of;
            self.dict = dictionary(parent);
        }
        let dict = self.dict.as_ref()?;
        // SAFETY: the object is a dictionary that lives; the exception that a missing item leaves is none.
        unsafe {
            let item = ffi::PyDict_GetItemWithError(dict.as_ptr(), name.as_ptr());
            Borrowed::from_ptr_or_opt(parent.py(), item)
        }
    }
}

fn dictionary<'py>(parent: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: the object lives; a null result is an exception, which is taken.
    let dict = unsafe {
        let dict = ffi::PyObject_GenericGetDict(parent.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(parent.py(), dict)
    };
    dict.ok().filter(PyAnyMethods::is_exact_instance_of::<PyDict>)
}
