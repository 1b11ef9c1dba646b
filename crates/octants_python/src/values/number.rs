//! Python numbers as machine numbers, without a detour where the object is exactly an `int` or a `float`.

use octants::ir::{Const, Scalar};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

/// The low 64 bits of an integer (`int`, `bool`, or anything with `__index__`); `None` if it is no integer.
pub fn wrapped_integer(object: &Bound<'_, PyAny>) -> Option<PyResult<u64>> {
    if object.is_exact_instance_of::<PyInt>() || object.is_exact_instance_of::<PyBool>() {
        return Some(low_bits(object));
    }
    if object.is_exact_instance_of::<PyFloat>() {
        return None;
    }
    // SAFETY: the object is alive; a null result is an exception, which `from_owned_ptr_or_err` takes.
    let index = unsafe { Bound::from_owned_ptr_or_err(object.py(), ffi::PyNumber_Index(object.as_ptr())) };
    match index {
        Ok(index) => Some(low_bits(&index)),
        Err(_) => numpy_truth(object).map(|truth| Ok(truth.into())),
    }
}

/// The value of a `numpy.bool_`, which is no integer to Python, or of a 0-d array of them.
#[cold]
fn numpy_truth(object: &Bound<'_, PyAny>) -> Option<bool> {
    let kind = object.getattr_opt("dtype").ok()??.getattr_opt("kind").ok()??;
    let is_scalar =
        object.getattr("ndim").and_then(|ndim| ndim.extract::<usize>()).is_ok_and(|ndim| ndim == 0);
    if is_scalar && kind.extract::<char>().ok()? == 'b' { object.is_truthy().ok() } else { None }
}

fn low_bits(integer: &Bound<'_, PyAny>) -> PyResult<u64> {
    // SAFETY: the object is an `int`; the call masks and sets an exception only for what is none.
    let bits = unsafe { ffi::PyLong_AsUnsignedLongLongMask(integer.as_ptr()) };
    if bits == u64::MAX
        && let Some(error) = PyErr::take(integer.py())
    {
        return Err(error);
    }
    Ok(bits)
}

/// A real number from a `float`, an integer, or anything with `__float__`; `None` if it is no number.
pub fn real(object: &Bound<'_, PyAny>) -> Option<f64> {
    if let Ok(float) = object.cast_exact::<PyFloat>() {
        return Some(float.value());
    }
    if object.is_instance_of::<pyo3::types::PyString>() {
        return None;
    }
    object.extract().ok()
}

/// Whether it is a number of Python's own kind: using it runs no code of Python's.
#[inline]
pub fn is_plain(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyBool>()
}

/// A number in the bits of a parameter's type; `None` if it cannot be one without loss of meaning.
#[inline]
pub fn bits_of(scalar: Scalar, object: &Bound<'_, PyAny>) -> Option<PyResult<u64>> {
    if scalar.is_real() {
        let value = real(object)?;
        return Some(Ok(match scalar {
            Scalar::F64 => value.to_bits(),
            Scalar::F32 => (value as f32).to_bits().into(),
            _ => Const::from_f64(scalar, value).bits(),
        }));
    }
    let bits = wrapped_integer(object)?;
    Some(bits.map(|bits| if scalar == Scalar::U1 { u64::from(bits != 0) } else { bits }))
}
