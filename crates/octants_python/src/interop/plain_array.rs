//! Arrays of numpy's from short lists of Python's own numbers, which vectors and matrices of the host are made of.
//!
//! numpy looks at a list twice, for its type and for its entries, and cannot tell what numbers they were; this takes a third of the time.

use octants::ir::Scalar;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyFloat, PyInt, PyList, PyTuple};
use smallvec::SmallVec;

use crate::interop::numpy;
use crate::values::dtype::DataType;

/// Entries of a matrix of 4 rows and columns: no more memory than the stack is asked for.
const SHORT: usize = 16;

type Numbers = SmallVec<[Number; SHORT]>;

#[derive(Clone, Copy)]
enum Number {
    Integer(i64),
    Real(f64),
}

impl Number {
    /// An object that is exactly an `int` of 64 bits or a `float`.
    fn of(object: &Bound<'_, PyAny>) -> Option<Self> {
        if let Ok(real) = object.cast_exact::<PyFloat>() {
            return Some(Self::Real(real.value()));
        }
        object.cast_exact::<PyInt>().ok()?.extract().ok().map(Self::Integer)
    }

    #[allow(clippy::cast_precision_loss)]
    fn real(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Real(real) => real,
        }
    }

    /// An integer, if it is one.
    fn integer(self) -> Option<i64> {
        if let Self::Integer(integer) = self { Some(integer) } else { None }
    }
}

/// An array of the numbers in a list, or in a list of lists of one length: of `dtype` or of the type that numpy gives them. Lists are tuples, too. `None` for
/// anything else than Python's own numbers, and for numbers that do not fit: those need a closer look.
#[pyfunction]
#[pyo3(signature = (values, dtype=None))]
pub fn plain_array<'py>(
    values: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, DataType>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = values.py();
    let mut numbers = Numbers::new();
    let Some(shape) = collect(values, &mut numbers) else { return Ok(None) };
    let scalar = match dtype {
        Some(dtype) => dtype.get().scalar,
        None if numbers.iter().all(|number| number.integer().is_some()) => Scalar::I64,
        None => Scalar::F64,
    };
    let Some(bytes) = encoded(&numbers, scalar) else { return Ok(None) };
    let array = empty(py, shape, scalar)?;
    let Some(view) = numpy::View::of(&array) else { return Ok(None) };
    // SAFETY: the array is new, has that many bytes, and nobody else knows it.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), view.data(), bytes.len()) };
    Ok(Some(array))
}

/// The extents of nested lists, whose numbers are appended in order.
fn collect(values: &Bound<'_, PyAny>, numbers: &mut Numbers) -> Option<(usize, Option<usize>)> {
    let mut columns = None;
    let count = each(values, |item| {
        if let Some(number) = Number::of(item) {
            numbers.push(number);
            return columns.is_none().then_some(());
        }
        if columns.is_none() && !numbers.is_empty() {
            return None;
        }
        let length = each(item, |entry| {
            numbers.push(Number::of(entry)?);
            Some(())
        })?;
        (length > 0 && *columns.get_or_insert(length) == length).then_some(())
    })?;
    (count > 0).then_some((count, columns))
}

/// Calls a function with each item of a list or tuple, and gives their number; `None` for another object, and if the function gives none.
fn each(object: &Bound<'_, PyAny>, mut visit: impl FnMut(&Bound<'_, PyAny>) -> Option<()>) -> Option<usize> {
    if let Ok(list) = object.cast_exact::<PyList>() {
        for index in 0..list.len() {
            visit(&list.get_item(index).ok()?)?;
        }
        return Some(list.len());
    }
    let tuple = object.cast_exact::<PyTuple>().ok()?;
    for index in 0..tuple.len() {
        visit(&*tuple.get_borrowed_item(index).ok()?)?;
    }
    Some(tuple.len())
}

/// The numbers as they lie in memory, if the type has them: reals may be rounded, and nothing else.
fn encoded(numbers: &[Number], scalar: Scalar) -> Option<SmallVec<[u8; 8 * SHORT]>> {
    let mut bytes = SmallVec::new();
    for &number in numbers {
        match scalar {
            Scalar::F64 => bytes.extend_from_slice(&number.real().to_ne_bytes()),
            Scalar::F32 => {
                #[allow(clippy::cast_possible_truncation)]
                let rounded = number.real() as f32;
                if !rounded.is_finite() {
                    return None;
                }
                bytes.extend_from_slice(&rounded.to_ne_bytes());
            }
            Scalar::I64 => bytes.extend_from_slice(&number.integer()?.to_ne_bytes()),
            Scalar::I32 => {
                bytes.extend_from_slice(&i32::try_from(number.integer()?).ok()?.to_ne_bytes());
            }
            _ => return None,
        }
    }
    Some(bytes)
}

/// A new array, not initialised. numpy reads a type's name for 0.2 µs: its objects are kept.
fn empty(
    py: Python<'_>,
    (rows, columns): (usize, Option<usize>),
    scalar: Scalar,
) -> PyResult<Bound<'_, PyAny>> {
    static MADE_BY: PyOnceLock<(Py<PyAny>, [Py<PyAny>; 4])> = PyOnceLock::new();
    let (function, types) = MADE_BY.get_or_try_init(py, || {
        let numpy = py.import("numpy")?;
        let dtype = |name: &str| Ok::<_, PyErr>(numpy.getattr("dtype")?.call1((name,))?.unbind());
        let types = [dtype("float64")?, dtype("float32")?, dtype("int64")?, dtype("int32")?];
        Ok::<_, PyErr>((numpy.getattr("empty")?.unbind(), types))
    })?;
    let dtype = match scalar {
        Scalar::F64 => &types[0],
        Scalar::F32 => &types[1],
        Scalar::I64 => &types[2],
        _ => &types[3],
    };
    match columns {
        None => function.bind(py).call1((rows, dtype)),
        Some(columns) => function.bind(py).call1(((rows, columns), dtype)),
    }
}
