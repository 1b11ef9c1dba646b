//! Which functions there are for whole vectors: what compiles the text knows.

use std::fmt;
use std::ptr::fn_addr_eq;

/// A math function in a form for vectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VectorFunction<'n> {
    /// In the C library, in double precision.
    pub name: &'n str,
    pub arguments: usize,
    /// Of one lane: 32 or 64.
    pub bits: u32,
    pub lanes: u32,
}

/// Gives the symbol of a function of vectors, accurate to a few units in the last place, if there is one.
#[derive(Clone, Copy)]
pub struct VectorLibrary(pub fn(VectorFunction<'_>) -> Option<String>);

impl VectorLibrary {
    /// Has no function.
    pub const EMPTY: Self = Self(|_| None);
}

impl PartialEq for VectorLibrary {
    fn eq(&self, other: &Self) -> bool {
        fn_addr_eq(self.0, other.0)
    }
}

impl Eq for VectorLibrary {}

impl fmt::Debug for VectorLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VectorLibrary")
    }
}
