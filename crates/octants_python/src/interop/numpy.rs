//! numpy arrays, read without linking numpy: where its data lies, its extents and its type.
//!
//! The first fields of an array object have been the same in all versions of numpy 1 and 2; they are numpy's own stable ABI, which
//! every compiled extension relies on.

use std::ffi::{c_char, c_int, c_void};

use octants::ir::Scalar;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::gateway::errors;
use crate::interop::dlpack::{Device, Export};
use crate::interop::foreign::{self, Elements};
use crate::values::dtype;

#[repr(C)]
struct ArrayObject {
    head: ffi::PyObject,
    data: *mut c_char,
    nd: c_int,
    dimensions: *mut isize,
    strides: *mut isize,
    base: *mut ffi::PyObject,
    descr: *mut Descr,
    flags: c_int,
}

#[repr(C)]
struct Descr {
    head: ffi::PyObject,
    typeobj: *mut c_void,
    kind: c_char,
    kind_char: c_char,
    byteorder: c_char,
    former_flags: c_char,
    type_num: c_int,
}

const C_CONTIGUOUS: c_int = 0x1;
const F_CONTIGUOUS: c_int = 0x2;
const WRITEABLE: c_int = 0x400;

/// numpy's class `ndarray`, once somebody has imported numpy.
static NDARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// A look at an array object; valid while the object lives and is not resized.
pub struct View<'a, 'py> {
    object: &'a Bound<'py, PyAny>,
    raw: *const ArrayObject,
}

impl<'a, 'py> View<'a, 'py> {
    /// The object as an array, if it is one.
    pub fn of(object: &'a Bound<'py, PyAny>) -> Option<Self> {
        let class = foreign::class_of_library(object.py(), &NDARRAY, "numpy", "ndarray")?;
        // SAFETY: both are live objects; the call has no side effect.
        let is_array = unsafe { ffi::PyObject_TypeCheck(object.as_ptr(), class.as_ptr().cast()) } != 0;
        is_array.then(|| Self { object, raw: object.as_ptr() as *const ArrayObject })
    }

    fn raw(&self) -> &ArrayObject {
        // SAFETY: the object is an instance of numpy's ndarray, which begins with these fields.
        unsafe { &*self.raw }
    }

    pub fn object(&self) -> &'a Bound<'py, PyAny> {
        self.object
    }

    pub fn data(&self) -> *mut u8 {
        self.raw().data.cast()
    }

    pub fn shape(&self) -> &[isize] {
        let raw = self.raw();
        if raw.nd == 0 {
            return &[];
        }
        // SAFETY: numpy keeps `nd` extents there while the array lives.
        unsafe { std::slice::from_raw_parts(raw.dimensions, raw.nd as usize) }
    }

    pub fn is_c_contiguous(&self) -> bool {
        self.raw().flags & C_CONTIGUOUS != 0
    }

    /// Where the elements lie.
    #[inline]
    pub fn elements(&self) -> Elements<'_> {
        Elements {
            data: self.data(),
            shape: self.shape(),
            strides: self.strides(),
            unit: 1,
            scalar: self.scalar(),
            is_writeable: self.is_writeable(),
            is_row_major: self.is_c_contiguous(),
            is_column_major: self.raw().flags & F_CONTIGUOUS != 0,
        }
    }

    /// The bytes between one element and the next along each axis.
    pub fn strides(&self) -> &[isize] {
        let raw = self.raw();
        if raw.nd == 0 {
            return &[];
        }
        // SAFETY: as for the extents.
        unsafe { std::slice::from_raw_parts(raw.strides, raw.nd as usize) }
    }

    pub fn is_writeable(&self) -> bool {
        self.raw().flags & WRITEABLE != 0
    }

    /// The type of its elements, if it is one of ours in this machine's byte order.
    pub fn scalar(&self) -> Option<Scalar> {
        // SAFETY: an array has a descriptor, which begins with these fields.
        let descr = unsafe { &*self.raw().descr };
        if !matches!(descr.byteorder as u8, b'=' | b'|' | b'<') {
            return None;
        }
        // numpy's type numbers; `long` and `long long` are both 64 bits wide where we run.
        match descr.type_num {
            0 => Some(Scalar::U1),
            1 => Some(Scalar::I8),
            2 => Some(Scalar::U8),
            3 => Some(Scalar::I16),
            4 => Some(Scalar::U16),
            5 => Some(Scalar::I32),
            6 => Some(Scalar::U32),
            7 | 9 => Some(Scalar::I64),
            8 | 10 => Some(Scalar::U64),
            11 => Some(Scalar::F32),
            12 => Some(Scalar::F64),
            23 => Some(Scalar::F16),
            _ => None,
        }
    }

    /// The elements of an array that nobody else has, for another library.
    pub fn export(&self) -> PyResult<Export> {
        let scalar = self.scalar().ok_or_else(|| errors::bug("a copy of another type than ours"))?;
        let numbers = |given: &[isize]| given.iter().map(|&number| number as usize).collect();
        Ok(Export {
            address: self.data() as u64,
            device: Device::HOST,
            scalar,
            shape: numbers(self.shape()),
            strides: numbers(self.strides()),
            is_copied: true,
            keep: Box::new(self.object.clone().unbind()),
        })
    }

    /// The bytes of its elements in order, if they lie side by side and are of a type of ours.
    pub fn contiguous_bytes(&self) -> Option<(Scalar, &[u8])> {
        let scalar = self.scalar().filter(|_| self.is_c_contiguous())?;
        let bytes = self.bytes();
        if bytes == 0 {
            return Some((scalar, &[]));
        }
        // SAFETY: a contiguous array has as many bytes there while it lives and is not resized.
        Some((scalar, unsafe { std::slice::from_raw_parts(self.data(), bytes) }))
    }

    pub fn bytes(&self) -> usize {
        let count: usize = self.shape().iter().map(|&n| n as usize).product();
        count * self.scalar().map_or(0, |s| s.bytes() as usize)
    }
}

/// A new array of numpy's, not initialised.
pub fn empty<'py>(py: Python<'py>, shape: &[usize], scalar: Scalar) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import("numpy")?;
    numpy.getattr("empty")?.call1((PyTuple::new(py, shape)?, dtype::numpy_name(scalar)))
}

/// Refuses an array of anything but numbers and truth values, as [`contiguous`] would convert texts and complex numbers, too.
pub fn require_numbers(array: &Bound<'_, PyAny>) -> PyResult<()> {
    let dtype = array.getattr("dtype")?;
    if dtype.getattr("kind")?.extract::<char>().is_ok_and(|kind| "biuf".contains(kind)) {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!("from_numpy takes an array of numbers, not of {}", dtype.str()?)))
}

/// The argument as a C-contiguous array of the type, converted (as `octants._matrix.conversion` says) and copied only where needed.
pub fn contiguous<'py>(object: &Bound<'py, PyAny>, scalar: Scalar) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let mut object = object.clone();
    if View::of(&object).and_then(|view| view.scalar()) != Some(scalar) {
        let conversion = py.import("octants._matrix.conversion")?;
        object = conversion.call_method1("converted", (object, dtype::numpy_name(scalar)))?;
    }
    let options = PyDict::new(py);
    options.set_item("dtype", dtype::numpy_name(scalar))?;
    options.set_item("order", "C")?;
    py.import("numpy")?.getattr("asarray")?.call((object,), Some(&options))
}

/// A new array with the same elements, row-major and aligned.
pub fn dense_copy<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let options = PyDict::new(py);
    options.set_item("order", "C")?;
    options.set_item("copy", true)?;
    py.import("numpy")?.getattr("array")?.call((object,), Some(&options))
}

/// How numpy looks at memory without a copy: rows of elements of the type, unless strides are added.
pub fn interface<'py>(
    py: Python<'py>,
    shape: &[usize],
    scalar: Scalar,
    address: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let kind = if scalar == Scalar::U1 {
        "|b1".to_owned()
    } else {
        let letter = if scalar.is_real() {
            'f'
        } else if scalar.is_signed() {
            'i'
        } else {
            'u'
        };
        format!("<{letter}{}", scalar.bytes())
    };
    let interface = PyDict::new(py);
    interface.set_item("shape", PyTuple::new(py, shape)?)?;
    interface.set_item("typestr", kind)?;
    interface.set_item("data", (address, false))?;
    interface.set_item("version", 3)?;
    Ok(interface)
}
