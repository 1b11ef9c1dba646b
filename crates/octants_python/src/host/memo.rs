//! What was found out about objects, kept while one kernel is lowered.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use pyo3::prelude::*;

/// By the identity of objects, which it keeps alive: no other object can have the address meanwhile.
pub struct Memo<'py, T> {
    known: RefCell<HashMap<usize, (Bound<'py, PyAny>, T), BuildHasherDefault<AddressHasher>>>,
}

impl<T> Default for Memo<'_, T> {
    fn default() -> Self {
        Self { known: RefCell::default() }
    }
}

impl<'py, T: Clone> Memo<'py, T> {
    pub fn get(&self, object: &Bound<'py, PyAny>) -> Option<T> {
        self.known.borrow().get(&(object.as_ptr() as usize)).map(|(_, found)| found.clone())
    }

    pub fn set(&self, object: &Bound<'py, PyAny>, found: T) {
        self.known.borrow_mut().insert(object.as_ptr() as usize, (object.clone(), found));
    }

    /// What is known of the object, or what `find` says, which may run Python code.
    pub fn get_or_find(&self, object: &Bound<'py, PyAny>, find: impl FnOnce() -> T) -> T {
        self.get(object).unwrap_or_else(|| {
            let found = find();
            self.set(object, found.clone());
            found
        })
    }
}

/// Addresses of objects differ in their middle bits, and are as good as random there.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(byte.into());
        }
    }

    fn write_usize(&mut self, address: usize) {
        self.0 = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
