//! References that Python's garbage collector visits.

use std::ops::Deref;

use pyo3::Py;

/// A reference to an object that may refer back.
///
/// Python may run its collector when an object is allocated and not yet written: all of its bytes are zero then, which means none here.
pub struct Traced<T>(Option<Py<T>>);

impl<T> Traced<T> {
    pub fn new(object: Py<T>) -> Self {
        Self(Some(object))
    }

    /// What the collector visits.
    pub fn visited(&self) -> Option<&Py<T>> {
        self.0.as_ref()
    }
}

impl<T> Deref for Traced<T> {
    type Target = Py<T>;

    fn deref(&self) -> &Py<T> {
        self.0.as_ref().expect("it is there from the moment that its owner is written")
    }
}
