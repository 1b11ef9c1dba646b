//! When two keys stand for the same, and what a key keeps alive.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyWeakrefMethods;

use super::TemplateKey;
use super::values::same_value;

impl TemplateKey {
    /// The class of what matches, if that is known.
    pub fn class<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self {
            Self::Value(object) | Self::Kept(object) => Some(object.bind(py).get_type().into_any()),
            Self::Weak(object, class) => match class {
                Some(class) => class.bind(py).upgrade(),
                None => object.bind(py).upgrade().map(|object| object.get_type().into_any()),
            },
            Self::Dict(class, _)
            | Self::Items(class, _)
            | Self::Number(class, _)
            | Self::Own(class, _)
            | Self::Struct(class, _)
            | Self::Bound(class, _)
            | Self::Derived(class, _) => Some(class.bind(py).clone().into_any()),
            Self::Tuple(_) | Self::List(_) | Self::Again(_) => None,
        }
    }

    /// What it keeps alive, for Python's collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let all = |keys: &[Self]| keys.iter().try_for_each(|key| key.visit(visit));
        match self {
            Self::Value(object) | Self::Kept(object) => visit.call(object),
            Self::Tuple(keys) | Self::List(keys) => all(keys),
            Self::Items(class, keys) => {
                visit.call(class)?;
                all(keys)
            }
            Self::Dict(class, pairs) => {
                visit.call(class)?;
                pairs.iter().try_for_each(|(key, value)| {
                    key.visit(visit)?;
                    value.visit(visit)
                })
            }
            Self::Number(class, key) | Self::Own(class, key) => {
                visit.call(class)?;
                key.visit(visit)
            }
            Self::Struct(class, members) => {
                visit.call(class)?;
                members.iter().try_for_each(|(_, key)| key.visit(visit))
            }
            Self::Bound(class, parts) => {
                visit.call(class)?;
                parts.0.visit(visit)?;
                parts.1.visit(visit)
            }
            Self::Derived(class, parts) => {
                visit.call(class)?;
                parts.0.iter().chain([&parts.1]).chain(&parts.2).try_for_each(|key| key.visit(visit))
            }
            // The weak references themselves refer to nothing that could lead here.
            Self::Weak(..) | Self::Again(_) => Ok(()),
        }
    }

    /// Whether what matches one of two keys matches the other.
    pub fn is_same(&self, other: &Self, py: Python<'_>) -> bool {
        let all =
            |a: &[Self], b: &[Self]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b, py));
        let both = |a: &Option<Self>, b: &Option<Self>| match (a, b) {
            (Some(a), Some(b)) => a.is_same(b, py),
            (None, None) => true,
            _ => false,
        };
        match (self, other) {
            (Self::Value(a), Self::Value(b)) => same_value(a.bind(py), b.bind(py)),
            (Self::Tuple(a), Self::Tuple(b)) | (Self::List(a), Self::List(b)) => all(a, b),
            (Self::Dict(class, a), Self::Dict(other, b)) => {
                class.is(other)
                    && a.len() == b.len()
                    && a.iter().zip(b).all(|(a, b)| a.0.is_same(&b.0, py) && a.1.is_same(&b.1, py))
            }
            (Self::Items(class, a), Self::Items(other, b)) => class.is(other) && all(a, b),
            (Self::Number(class, a), Self::Number(other, b)) | (Self::Own(class, a), Self::Own(other, b)) => {
                class.is(other) && a.is_same(b, py)
            }
            (Self::Struct(class, a), Self::Struct(other, b)) => {
                class.is(other)
                    && a.len() == b.len()
                    && a.iter().zip(b).all(|(a, b)| {
                        a.0.bind(py).as_any().eq(&b.0).unwrap_or(false) && a.1.is_same(&b.1, py)
                    })
            }
            (Self::Bound(class, a), Self::Bound(other, b)) => {
                class.is(other) && a.0.is_same(&b.0, py) && a.1.is_same(&b.1, py)
            }
            (Self::Weak(a, _), Self::Weak(b, _)) => match (a.bind(py).upgrade(), b.bind(py).upgrade()) {
                (Some(a), Some(b)) => a.is(&b),
                _ => false,
            },
            (Self::Kept(a), Self::Kept(b)) => a.is(b),
            (Self::Derived(class, a), Self::Derived(other, b)) => {
                class.is(other) && both(&a.0, &b.0) && a.1.is_same(&b.1, py) && both(&a.2, &b.2)
            }
            (Self::Again(a), Self::Again(b)) => a == b,
            _ => false,
        }
    }
}
