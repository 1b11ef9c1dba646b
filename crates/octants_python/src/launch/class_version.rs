//! Versions of classes: whether how attributes of an object are found is as it was.
//!
//! Python gives a class a number when it looks something up there, and takes it away when the class or one of its bases is changed: no number comes
//! again. It lies in the class where all versions of Python so far have it. That it does, and behaves so, is tried out once with classes of our own;
//! where it does not, as in builds for debugging, no version is known, and members are asked for as anybody asks for them.

use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

/// Bytes of a class before its version: a header of three words, and 45 more.
const OFFSET: usize = (3 + 45) * size_of::<usize>();

/// Whether classes have versions that can be read.
pub fn are_known(py: Python<'_>) -> bool {
    static KNOWN: PyOnceLock<bool> = PyOnceLock::new();
    *KNOWN.get_or_init(py, || behave_as_expected(py).unwrap_or(false))
}

/// The version of a class: 0 if it has none at this time. Of meaning only where versions are known.
#[inline]
pub fn of(class: &Bound<'_, PyType>) -> u32 {
    // SAFETY: the class lives.
    unsafe { read(class.as_ptr().cast()) }
}

/// The version of an object's class, likewise.
#[inline]
pub fn of_object(object: &Bound<'_, PyAny>) -> u32 {
    // SAFETY: an object's class lives as long as it.
    unsafe { read(object.get_type_ptr().cast()) }
}

/// The version of a class, which is given one if it has none. `None` if it gets none, or if no version is known.
pub fn given(class: &Bound<'_, PyType>) -> Option<u32> {
    are_known(class.py()).then(|| looked_up(class).ok()).flatten().filter(|version| *version != 0)
}

fn looked_up(class: &Bound<'_, PyType>) -> PyResult<u32> {
    class.getattr("__init__")?;
    Ok(of(class))
}

/// # Safety
///
/// The class lives.
#[inline]
unsafe fn read(class: *const u32) -> u32 {
    // SAFETY: the word is part of every class, and aligned as that is; whether it is the version is another question.
    unsafe { class.byte_add(OFFSET).read() }
}

/// Tries out what this module relies on.
fn behave_as_expected<'py>(py: Python<'py>) -> PyResult<bool> {
    let class_of_classes = py.get_type::<PyType>();
    if class_of_classes.getattr("__basicsize__")?.extract::<usize>()? < OFFSET + size_of::<u32>() {
        return Ok(false);
    }
    let make = |bases: Bound<'py, PyTuple>| {
        Ok::<_, PyErr>(class_of_classes.call1(("Tried", bases, PyDict::new(py)))?.cast_into::<PyType>()?)
    };
    let base = make(PyTuple::empty(py))?;
    let derived = make(PyTuple::new(py, [&base])?)?;
    let mut seen = vec![looked_up(&base)?, looked_up(&derived)?];
    for name in ["first", "second", "__getattribute__"] {
        let value =
            if name == "__getattribute__" { derived.getattr(name)? } else { py.None().into_bound(py) };
        base.setattr(name, value)?;
        if [of(&base), of(&derived)].iter().any(|now| *now != 0 && seen.contains(now)) {
            return Ok(false);
        }
        seen.extend([looked_up(&base)?, looked_up(&derived)?]);
    }
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    Ok(seen.len() == count && seen[0] != 0)
}

/// Something that was found out about a class, which holds while the class has the version that it had.
#[derive(Default)]
pub struct ClassGuard(AtomicU32);

impl ClassGuard {
    /// Whether it holds for the class of this object, which has that version; `look` finds it out again.
    #[inline]
    pub fn is_as_it_was(&self, version: u32, object: &Bound<'_, PyAny>, look: impl FnOnce() -> bool) -> bool {
        (version != 0 && self.0.load(Ordering::Relaxed) == version) || self.look_again(object, look)
    }

    #[cold]
    fn look_again(&self, object: &Bound<'_, PyAny>, look: impl FnOnce() -> bool) -> bool {
        // What the look runs may change the class once more.
        let before = given(&object.get_type());
        let holds = look();
        if holds && before == Some(of_object(object)) {
            self.0.store(before.unwrap_or(0), Ordering::Relaxed);
        }
        holds
    }
}
