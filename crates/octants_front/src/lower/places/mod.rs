//! What can be read and written: names, elements, entries, members, fields, views.

pub(crate) mod access;
pub(crate) mod attribute;
pub(crate) mod choice;
pub(crate) mod encoded;
pub(crate) mod entries;
pub(crate) mod field;
pub(crate) mod index;
pub(crate) mod members;
pub(crate) mod names;
pub(crate) mod pending;
pub(crate) mod shared;
pub(crate) mod slice;
pub(crate) mod view;
