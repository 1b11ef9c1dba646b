//! Functions of Python: their text, the names that they see, their annotations and defaults.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use octants::front::FunctionSource;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyString, PyTuple};

use super::{Object, PyHost, builtins};
use crate::host::func::Func;
use crate::host::source;
use crate::kernel::Kernel;

/// A plain function, with what does not change while a kernel is lowered.
pub struct KnownFunction<'py> {
    function: Bound<'py, PyFunction>,
    /// Names and cells that it closes over.
    closure: Vec<(String, Object<'py>)>,
    globals: Bound<'py, PyDict>,
    source: RefCell<Option<Arc<FunctionSource>>>,
    /// Those that were asked for, texts resolved.
    annotations: RefCell<HashMap<String, Option<Object<'py>>>>,
}

impl<'py> KnownFunction<'py> {
    fn new(function: Bound<'py, PyFunction>) -> PyResult<Self> {
        let closure = closure(&function)?;
        let globals = function.getattr("__globals__")?.cast_into::<PyDict>()?;
        Ok(Self { function, closure, globals, source: RefCell::default(), annotations: RefCell::default() })
    }

    pub fn function(&self) -> &Bound<'py, PyFunction> {
        &self.function
    }

    /// Where its text is. A file that changes while a kernel is lowered is looked at once.
    pub fn source(&self) -> PyResult<Arc<FunctionSource>> {
        if let Some(known) = &*self.source.borrow() {
            return Ok(Arc::clone(known));
        }
        let found = Arc::new(source::of(&self.function)?);
        *self.source.borrow_mut() = Some(Arc::clone(&found));
        Ok(found)
    }

    pub fn annotation(&self, param: &str) -> PyResult<Option<Object<'py>>> {
        if let Some(known) = self.annotations.borrow().get(param) {
            return Ok(known.clone());
        }
        let found = self.find_annotation(param)?;
        self.annotations.borrow_mut().insert(param.to_owned(), found.clone());
        Ok(found)
    }

    fn find_annotation(&self, param: &str) -> PyResult<Option<Object<'py>>> {
        let annotations = self.function.getattr("__annotations__")?.cast_into::<PyDict>()?;
        let Some(annotation) = annotations.get_item(param)? else { return Ok(None) };
        if !annotation.is_instance_of::<PyString>() {
            return Ok(Some(annotation));
        }
        let py = self.function.py();
        let locals = PyDict::new(py);
        for (name, cell) in &self.closure {
            if let Ok(value) = cell.getattr("cell_contents") {
                locals.set_item(name, value)?;
            }
        }
        let eval = builtins(py)?.getattr("eval")?;
        Ok(Some(eval.call1((annotation, &self.globals, locals))?))
    }

    /// What a name stands for that is none of its own.
    pub fn global(&self, name: &str) -> PyResult<Option<Object<'py>>> {
        if let Some((_, cell)) = self.closure.iter().find(|(free, _)| free == name) {
            // A cell that is still empty belongs to a name that is assigned later.
            return Ok(cell.getattr("cell_contents").ok());
        }
        if let Some(value) = self.globals.get_item(name)? {
            return Ok(Some(value));
        }
        builtins(self.function.py())?.getattr_opt(name)
    }

    /// All names that [`Self::global`] knows, but for builtins.
    pub fn names(&self) -> Vec<String> {
        let free = self.closure.iter().map(|(name, _)| name.clone());
        let globals = self.globals.keys();
        free.chain(globals.iter().filter_map(|name| name.extract().ok())).collect()
    }

    pub fn default(&self, param: &str) -> PyResult<Option<Object<'py>>> {
        let Ok(defaults) = self.function.getattr("__defaults__")?.cast_into::<PyTuple>() else {
            return Ok(None);
        };
        let code = self.function.getattr("__code__")?;
        let count: usize = code.getattr("co_argcount")?.extract()?;
        let names = code.getattr("co_varnames")?.cast_into::<PyTuple>()?;
        for (position, name) in names.iter().take(count).enumerate() {
            if name.eq(param)? {
                let first = count - defaults.len();
                return if position >= first {
                    Ok(Some(defaults.get_item(position - first)?))
                } else {
                    Ok(None)
                };
            }
        }
        Ok(None)
    }
}

fn closure<'py>(function: &Bound<'py, PyFunction>) -> PyResult<Vec<(String, Object<'py>)>> {
    let cells = function.getattr("__closure__")?;
    let Ok(cells) = cells.cast_into::<PyTuple>() else { return Ok(Vec::new()) };
    let names = function.getattr("__code__")?.getattr("co_freevars")?.cast_into::<PyTuple>()?;
    names.iter().zip(cells.iter()).map(|(name, cell)| Ok((name.extract()?, cell))).collect()
}

impl<'py> PyHost<'py> {
    /// What is known of the function behind a kernel, a func or a method.
    pub(super) fn known_function(&self, object: &Object<'py>) -> PyResult<Rc<KnownFunction<'py>>> {
        if let Some(known) = self.functions.get(object) {
            return Ok(known);
        }
        let function = self.plain_function(object)?;
        let known = match self.functions.get(function.as_any()) {
            Some(known) => known,
            None => Rc::new(KnownFunction::new(function)?),
        };
        self.functions.set(known.function.as_any(), Rc::clone(&known));
        self.functions.set(object, Rc::clone(&known));
        Ok(known)
    }

    /// The plain function behind a kernel, a func or a bound method.
    pub(super) fn plain_function(&self, object: &Object<'py>) -> PyResult<Bound<'py, PyFunction>> {
        if let Ok(func) = object.cast::<Func>() {
            return Ok(func.get().function.bind(self.py).clone());
        }
        if let Ok(kernel) = object.cast::<Kernel>() {
            return Ok(kernel.get().function.bind(self.py).clone());
        }
        // Else it is a bound method of Python's own.
        let function = match object.cast::<PyFunction>() {
            Ok(function) => function.clone(),
            Err(_) => object.getattr("__func__")?.cast_into::<PyFunction>()?,
        };
        // A function of ours whose host form is another one.
        match function.getattr_opt("__octants_text__")? {
            Some(text) => Ok(text.cast_into::<PyFunction>()?),
            None => Ok(function),
        }
    }
}
