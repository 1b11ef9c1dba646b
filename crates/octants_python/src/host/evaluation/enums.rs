//! Members of enums: they never change, but their classes may have methods and operators of the user's.

use octants::front::host::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyString, PyType};

use crate::host::template;

pub fn is_member(object: &Bound<'_, PyAny>) -> bool {
    template::is_enum(object.get_type().as_any())
}

fn members<'py>(class: &Bound<'py, PyAny>) -> Option<Bound<'py, PyDict>> {
    class.getattr("_member_map_").ok()?.cast_into().ok()
}

/// Whether a class is one of an enum, and a name that of a member.
pub fn is_name_of_member(class: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> bool {
    template::is_enum(class) && members(class).is_some_and(|members| members.contains(name).unwrap_or(false))
}

/// The module of the class that an attribute is from.
fn module_of_attribute(class: &Bound<'_, PyType>, name: &str) -> Option<String> {
    for of in class.mro().iter() {
        if of.getattr("__dict__").ok()?.contains(name).ok()? {
            return Some(of.cast::<PyType>().ok()?.module().ok()?.to_string());
        }
    }
    None
}

fn is_from_python(module: Option<String>) -> bool {
    matches!(module.as_deref(), Some("enum" | "builtins"))
}

/// Whether an enum has its members, and nothing else of the user's.
pub fn is_simple(class: &Bound<'_, PyType>) -> bool {
    let simple = || {
        let members = members(class)?;
        for of in class.mro().iter() {
            let of = of.cast::<PyType>().ok()?;
            if is_from_python(Some(of.module().ok()?.to_string())) {
                continue;
            }
            for name in of.getattr("__dict__").ok()?.try_iter().ok()? {
                let name = name.ok()?.cast_into::<PyString>().ok()?;
                if members.contains(&name).ok()? || name == "_generate_next_value_" {
                    continue;
                }
                let value = of.getattr("__dict__").ok()?.get_item(&name).ok()?;
                let is_of_user = value.is_instance_of::<PyFunction>()
                    && value.getattr("__module__").ok()?.ne("enum").ok()?;
                if is_of_user || !name.to_string().starts_with('_') {
                    return None;
                }
            }
        }
        Some(())
    };
    template::is_enum(class.as_any()) && simple().is_some()
}

/// Whether a member, and all that can be asked of it, is the same at every launch.
pub fn is_simple_member(member: &Bound<'_, PyAny>) -> bool {
    let has_own_attributes = || {
        let attributes = member.getattr("__dict__").ok()?.cast_into::<PyDict>().ok()?;
        let is_of_user = |name: Bound<'_, PyAny>| !name.to_string().starts_with('_');
        Some(attributes.keys().iter().any(is_of_user))
    };
    let has_plain_value = || member.getattr("_value_").is_ok_and(|value| super::record::is_plain(&value));
    is_simple(&member.get_type()) && has_own_attributes() == Some(false) && has_plain_value()
}

/// Whether an attribute of a member is what Python's own enums have under that name.
pub fn is_fixed_attribute(member: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> bool {
    (name == "value" || name == "name")
        && is_from_python(module_of_attribute(&member.get_type(), &name.to_string()))
}

/// Whether a comparison of a member runs no code of the user's.
pub fn compares_by_identity(member: &Bound<'_, PyAny>, op: CompareOp) -> bool {
    is_member(member)
        && match op {
            CompareOp::Is | CompareOp::IsNot => true,
            CompareOp::Eq | CompareOp::Ne => ["__eq__", "__ne__"]
                .iter()
                .all(|name| is_from_python(module_of_attribute(&member.get_type(), name))),
            _ => false,
        }
}
