//! numpy arrays, read without linking numpy: where its data lies, its extents and its type.
//!
//! The first fields of an array object have been the same in all versions of numpy 1 and 2; they are numpy's own stable ABI, which
//! every compiled extension relies on.

use std::ffi::{c_char, c_int, c_void};

use octants::ir::{Order, Scalar, TensorShape};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::{dtype, errors};

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

fn ndarray_class(py: Python<'_>) -> Option<&Py<PyType>> {
    if let Some(class) = NDARRAY.get(py) {
        return Some(class);
    }
    let modules = py.import("sys").ok()?.getattr("modules").ok()?.cast_into::<PyDict>().ok()?;
    let numpy = modules.get_item("numpy").ok()??;
    let class = numpy.getattr("ndarray").ok()?.cast_into::<PyType>().ok()?;
    let _ = NDARRAY.set(py, class.unbind());
    NDARRAY.get(py)
}

/// How a kernel reaches the elements of an array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Where they lie, in this order.
    InPlace(Order),
    /// Through a row-major copy: they are not aligned, or the entries of one element do not lie side by side.
    Copied,
    /// Not at all: they are neither row-major nor column-major.
    Strided,
}

impl Placement {
    /// The order that the kernel sees, if it can reach them.
    pub fn order(self) -> Option<Order> {
        match self {
            Self::InPlace(order) => Some(order),
            Self::Copied => Some(Order::RowMajor),
            Self::Strided => None,
        }
    }
}

/// A look at an array object; valid while the object lives and is not resized.
pub struct View<'a, 'py> {
    object: &'a Bound<'py, PyAny>,
    raw: *const ArrayObject,
}

impl<'a, 'py> View<'a, 'py> {
    /// The object as an array, if it is one.
    pub fn of(object: &'a Bound<'py, PyAny>) -> Option<Self> {
        let class = ndarray_class(object.py())?;
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

    /// The shape of the elements whose entries the last `inner` axes hold; `None` if no element has it.
    pub fn element_shape(&self, inner: usize) -> Option<TensorShape> {
        let shape = self.shape();
        let extent = |extent: isize| u16::try_from(extent).ok();
        match shape[shape.len().checked_sub(inner)?..] {
            [n] => Some(TensorShape::Vector(extent(n)?)),
            [n, m] => Some(TensorShape::Matrix(extent(n)?, extent(m)?)),
            _ => None,
        }
    }

    pub fn is_c_contiguous(&self) -> bool {
        self.raw().flags & C_CONTIGUOUS != 0
    }

    /// How a kernel reaches the elements, if the last `inner` axes are those of the elements' entries.
    pub fn placement(&self, inner: usize) -> Placement {
        let aligned = self
            .scalar()
            .is_some_and(|scalar| (self.data() as usize).is_multiple_of(scalar.bytes() as usize));
        if self.is_c_contiguous() {
            if aligned { Placement::InPlace(Order::RowMajor) } else { Placement::Copied }
        } else if self.raw().flags & F_CONTIGUOUS != 0 {
            if aligned && inner == 0 { Placement::InPlace(Order::ColumnMajor) } else { Placement::Copied }
        } else {
            Placement::Strided
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

/// The argument as a C-contiguous array of the type, converted and copied only where needed.
pub fn contiguous<'py>(object: &Bound<'py, PyAny>, scalar: Scalar) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
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

/// An array of another library as numpy sees it.
pub struct ForeignArray<'py> {
    array: Bound<'py, PyAny>,
    pub owner: Owner,
}

/// Whose memory an array lies in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    Host,
    /// The host does not look there. With the stream of the library that uses it, where that is not the device's default one.
    Device {
        stream: Option<u64>,
    },
}

impl<'py> ForeignArray<'py> {
    /// The object as an array, if it is one: of numpy, of torch, or one that tells where it lies on a GPU.
    pub fn of(object: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let host = |array| Ok(Some(Self { array, owner: Owner::Host }));
        if View::of(object).is_some() {
            return host(object.clone());
        }
        let is_tensor = is_torch_tensor(object);
        if is_tensor && !object.getattr("is_cuda")?.extract::<bool>()? {
            // The tensor keeps the memory; the array object is only a look at it.
            return host(object.call_method0("detach")?.call_method0("numpy")?);
        }
        let detached = if is_tensor { object.call_method0("detach")? } else { object.clone() };
        let Ok(interface) = detached.getattr("__cuda_array_interface__") else { return Ok(None) };
        let stream = if is_tensor {
            let cuda = object.py().import("torch")?.getattr("cuda")?;
            let current = cuda.call_method1("current_stream", (object.getattr("device")?,))?;
            current.getattr("cuda_stream")?.extract::<u64>()?
        } else {
            let named = interface.get_item("stream").and_then(|stream| stream.extract::<u64>());
            // 1 and 2 name the default streams.
            named.ok().filter(|&stream| stream > 2).unwrap_or(0)
        };
        // numpy looks at extents and strides alone, not at elements.
        let looked_at = Bound::new(object.py(), DeviceInterface { interface: interface.unbind() })?;
        let array = object.py().import("numpy")?.getattr("asarray")?.call1((looked_at,))?;
        Ok(Some(Self { array, owner: Owner::Device { stream: (stream != 0).then_some(stream) } }))
    }

    pub fn view(&self) -> PyResult<View<'_, 'py>> {
        View::of(&self.array).ok_or_else(|| errors::bug("an array is no numpy array"))
    }
}

/// A device's array in the words of a host's.
#[pyclass(frozen, module = "octants")]
struct DeviceInterface {
    interface: Py<PyAny>,
}

#[pymethods]
impl DeviceInterface {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let interface = self.interface.bind(py).call_method0("copy")?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }
}

/// Tells torch that a stream uses a tensor, whose memory is not to serve another one before that is over.
pub fn keep_for_stream(object: &Bound<'_, PyAny>, handle: u64) -> PyResult<()> {
    if is_torch_tensor(object) {
        let cuda = object.py().import("torch")?.getattr("cuda")?;
        object.call_method1("record_stream", (cuda.call_method1("ExternalStream", (handle,))?,))?;
    }
    Ok(())
}

/// Without importing torch.
fn is_torch_tensor(object: &Bound<'_, PyAny>) -> bool {
    let class = object.get_type();
    class.name().is_ok_and(|name| name == "Tensor") && class.module().is_ok_and(|module| module == "torch")
}
