//! Functions of the kernel's own, by what they were compiled for.

use octants_ir::{Func, Type};

use super::term::Term;
use crate::host::Annotation;

/// A function that has been compiled for one kind of arguments, or is being.
#[derive(Debug)]
pub(crate) struct Instance<O> {
    pub object: O,
    pub key: Vec<Key<O>>,
    pub function: Func,
    pub returns: Vec<Annotation>,
    pub is_tuple: bool,
}

/// What of an argument a function is compiled for.
#[derive(Clone, Debug)]
pub(crate) enum Key<O> {
    /// Nothing: its annotation says all.
    Value,
    Array(Type),
    /// A view of an array.
    View(Type),
    Static(Term<O>),
}
