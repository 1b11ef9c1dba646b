//! When values are the same constant.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyComplex, PyFloat, PyInt, PyRange, PyString};

use super::{is_enum, is_numpy_scalar};

/// Whether two values are the same constant: `True == 1 == 1.0` and `0.0 == -0.0` are not, and what is not a number is.
pub fn same_value(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> bool {
    // Small integers, and what was not assigned since, are the same objects.
    if a.is(b) {
        return true;
    }
    if !a.get_type().is(b.get_type()) {
        return false;
    }
    if a.is_exact_instance_of::<PyInt>() || a.is_exact_instance_of::<PyString>() {
        return a.eq(b).unwrap_or(false);
    }
    // There is one object for each member of an enum, whose class may say that it equals others.
    if !a.is_exact_instance_of::<PyFloat>() && is_enum(a.get_type().as_any()) {
        return false;
    }
    if let (Ok(a), Ok(b)) = (a.cast::<PyFloat>(), b.cast::<PyFloat>()) {
        return a.value().to_bits() == b.value().to_bits();
    }
    if let (Ok(a), Ok(b)) = (a.cast_exact::<PyComplex>(), b.cast_exact::<PyComplex>()) {
        let parts = |number: &Bound<'_, PyComplex>| {
            let part = |name| number.getattr(name).and_then(|part| part.extract::<f64>()).map(f64::to_bits);
            Some((part("real").ok()?, part("imag").ok()?))
        };
        return parts(a) == parts(b);
    }
    if a.is_exact_instance_of::<PyRange>() {
        return same_range(a, b);
    }
    let is_text = a.is_instance_of::<PyString>() || a.is_instance_of::<PyBytes>();
    if !is_text
        && !a.is_instance_of::<PyInt>()
        && is_numpy_scalar(a)
        && let Ok(same) = same_bits(a, b)
    {
        return same;
    }
    a.eq(b).unwrap_or(false)
}

/// Whether two numbers of numpy are the same; an error for what is no number.
fn same_bits(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<bool> {
    let dtype = a.getattr("dtype")?;
    if !dtype.eq(b.getattr("dtype")?)? {
        return Ok(false);
    }
    // The widest ones have bytes that mean nothing; their text tells all of their bits.
    let is_widest = matches!(&*dtype.getattr("char")?.extract::<String>()?, "g" | "G");
    let bits = if is_widest { "__repr__" } else { "tobytes" };
    a.call_method0(bits)?.eq(b.call_method0(bits)?)
}

/// Ranges with the same items are equal, and may have other ends.
fn same_range(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> bool {
    ["start", "stop", "step"].iter().all(|&end| match (a.getattr(end), b.getattr(end)) {
        (Ok(a), Ok(b)) => a.eq(b).unwrap_or(false),
        _ => false,
    })
}
