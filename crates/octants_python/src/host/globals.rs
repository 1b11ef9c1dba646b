//! What names outside of a kernel's functions stood for when code was made.
//!
//! Law: **a kernel and its derivatives see the same globals.** A kernel that was compiled does not see it when a global changes; neither does a derivative
//! that is made later, for the same arguments.

use std::cell::RefCell;
use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyFunction, PyWeakrefMethods, PyWeakrefReference};

use super::Object;
use crate::host::template::is_value;

/// Names that were looked up, with what they stood for. Shared by all code that is made for the same arguments.
pub struct Globals {
    names: Vec<(Py<PyWeakrefReference>, String, Meant)>,
}

/// Numbers and texts are kept; objects are held weakly, so that code keeps none of them alive.
enum Meant {
    Value(Py<PyAny>),
    Object(Py<PyWeakrefReference>),
}

impl Globals {
    fn get<'py>(&self, function: &Bound<'py, PyFunction>, name: &str) -> Option<Object<'py>> {
        let py = function.py();
        let is_asked = |(of, known, _): &&(Py<PyWeakrefReference>, String, Meant)| {
            known == name && of.bind(py).upgrade().is_some_and(|of| of.is(function))
        };
        match &self.names.iter().find(is_asked)?.2 {
            Meant::Value(value) => Some(value.bind(py).clone()),
            Meant::Object(object) => object.bind(py).upgrade(),
        }
    }

    /// What it keeps alive, for Python's collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.names.iter().try_for_each(|(_, _, meant)| match meant {
            Meant::Value(value) => visit.call(value),
            Meant::Object(_) => Ok(()),
        })
    }
}

/// The globals of one lowering: those of code that is there already, then those that are looked up.
#[derive(Default)]
pub struct GlobalNames<'py> {
    given: Option<Arc<Globals>>,
    found: RefCell<Vec<(Bound<'py, PyFunction>, String, Object<'py>)>>,
}

impl<'py> GlobalNames<'py> {
    pub fn new(given: Option<Arc<Globals>>) -> Self {
        Self { given, found: RefCell::default() }
    }

    /// What a name stands for; `find` looks it up.
    pub fn get(
        &self,
        function: &Bound<'py, PyFunction>,
        name: &str,
        find: impl FnOnce() -> PyResult<Option<Object<'py>>>,
    ) -> PyResult<Option<Object<'py>>> {
        if let Some(given) = self.given.as_ref().and_then(|given| given.get(function, name)) {
            return Ok(Some(given));
        }
        let found = find()?;
        if let Some(object) = &found {
            let mut names = self.found.borrow_mut();
            if !names.iter().any(|(of, known, _)| known == name && of.is(function)) {
                names.push((function.clone(), name.to_owned(), object.clone()));
            }
        }
        Ok(found)
    }

    /// What was seen, for code that is made later.
    pub fn seen(&self, py: Python<'py>) -> PyResult<Arc<Globals>> {
        let mut names = Vec::new();
        for (function, name, object) in self.found.borrow().iter() {
            let meant = if is_value(object) {
                Meant::Value(object.clone().unbind())
            } else if let Ok(object) = PyWeakrefReference::new(object) {
                Meant::Object(object.unbind())
            } else {
                continue;
            };
            names.push((PyWeakrefReference::new(function)?.unbind(), name.clone(), meant));
        }
        for (function, name, meant) in self.given.iter().flat_map(|given| &given.names) {
            let meant = match meant {
                Meant::Value(value) => Meant::Value(value.clone_ref(py)),
                Meant::Object(object) => Meant::Object(object.clone_ref(py)),
            };
            names.push((function.clone_ref(py), name.clone(), meant));
        }
        Ok(Arc::new(Globals { names }))
    }
}
