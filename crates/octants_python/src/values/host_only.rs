//! What the compiler may call of the package's own while it compiles a kernel. It is a closed list: what is not on it is for the host.
//!
//! A kernel that calls something else of ours by name is refused by the front end. Python code of the user's that runs while compiling
//! is refused by [`guard`], which stands at the beginning of every method that touches data, layouts or the session.

use octants::front::host::HostOnly;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyString, PyType};

use crate::values::expr;

/// Modules of the package whose functions only calculate with the values that they are given.
const VALUE_MODULES: &[&str] = &[
    "octants.types",
    "octants.math",
    "octants.exceptions",
    "octants.algorithms._scratch",
    "octants._arrays.methods",
    "octants._fields.quantised_elements",
    "octants._language",
    "octants._language.fields",
    "octants._language.frexp",
    "octants._language.normal",
    "octants._matrix",
    "octants._matrix.decompositions",
    "octants._matrix.elementwise",
    "octants._matrix.host_forms",
    "octants._matrix.methods",
    "octants._matrix.operators",
    "octants._matrix.promotion",
    "octants._matrix.struct",
    "octants._matrix.types",
    "octants._peer.inside",
    "octants._peer.not_yet",
    "octants._session.extensions",
    "octants.math._complex",
    "octants.simt._compile_time",
];

/// Methods of fields, nodes, arrays and views that ask what does not change once a field is placed.
const QUERIES: &[&str] = &[
    "parent",
    "get_scalar_field",
    "get_member_field",
    "has_grad",
    "has_dual",
    "get_ndarray",
    "subview",
    "_get_children",
    "_path_from_root",
];

/// What marks a plain function as part of kernels: `oc.func(f)(x)` calls it as such.
const MARKS: &[&str] = &["func", "real_func", "_decorate"];

/// Whether a callable is one of the package's own that only the host may call.
pub fn is_host_only(object: &Bound<'_, PyAny>) -> bool {
    let text = |of: &Bound<'_, PyAny>, name: &str| -> Option<String> {
        let found = of.getattr_opt(name).ok()??;
        Some(found.cast::<PyString>().ok()?.to_str().ok()?.to_owned())
    };
    // A method of a compiled class has no module of its own.
    let owner = if object.is_instance_of::<PyCFunction>() {
        let Ok(receiver) = object.getattr("__self__") else { return false };
        if receiver.is_instance_of::<PyType>() { receiver } else { receiver.get_type().into_any() }
    } else {
        object.clone()
    };
    let Some(module) = text(&owner, "__module__") else { return false };
    if module.split('.').next() != Some("octants") || VALUE_MODULES.contains(&module.as_str()) {
        return false;
    }
    let name = text(object, "__name__");
    let is_any_of = |names: &[&str]| name.as_deref().is_some_and(|name| names.contains(&name));
    !(is_any_of(QUERIES) || module == "octants._session" && is_any_of(MARKS))
}

/// Refuses to go on if Python code runs that a compilation called.
#[inline]
pub fn guard(py: Python<'_>, name: &str) -> PyResult<()> {
    expr::refuse(py, HostOnly::Call(name))
}

/// Refuses a launch by Python code that a compilation called.
#[inline]
pub fn guard_launch(py: Python<'_>) -> PyResult<()> {
    expr::refuse(py, HostOnly::Launch)
}

/// Refuses what the package's Python code is about to do, if a compilation called it.
#[pyfunction]
pub fn host_only(py: Python<'_>, name: &str) -> PyResult<()> {
    guard(py, name)
}
