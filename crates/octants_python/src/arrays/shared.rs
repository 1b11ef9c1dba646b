//! Memory of arrays and fields that other libraries look at without a copy: by numpy's and CUDA's array interfaces, the buffer protocol,
//! and DLPack. Whoever looks keeps the memory, also when the array is gone and the session has ended.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use octants::ir::Scalar;
use octants::{ExternalStream, Memory, SessionOptions};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyRuntimeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyMemoryView, PyTuple, PyType};

use crate::arrays::buffer_view::BufferView;
use crate::arrays::field::Field;
use crate::arrays::ndarray::Ndarray;
use crate::arrays::tensor::{self, Tensor};
use crate::arrays::write_log::{self, HostAccess};
use crate::gateway::errors;
use crate::interop::dlpack::{self, Export};
use crate::interop::numpy;
use crate::values::host_only;

/// Elements with a stride along each axis.
#[derive(Clone)]
pub struct Shared {
    pub memory: Arc<Memory>,
    pub address: u64,
    pub scalar: Scalar,
    pub shape: Vec<usize>,
    /// In bytes.
    pub strides: Vec<usize>,
    /// Where they lie, in DLPack's words; nothing if no other library knows the device.
    pub device: Option<dlpack::Device>,
}

impl Shared {
    /// What others may look at of an array, a view, a field or a tensor; nothing if elements lie so that no strides tell it.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(memory) = object.cast::<SharedMemory>() {
            return Ok(Some(memory.get().shared.clone()));
        }
        let object = tensor::unwrapped(object);
        let py = object.py();
        host_only::guard(py, "to_numpy")?;
        write_log::tell_watchers(object, "to_numpy", HostAccess::Reads)?;
        let array = object.cast::<Ndarray>().ok();
        let view = object.cast::<BufferView>().ok();
        let shared = match (&array, &view) {
            (Some(array), _) => Some(array.get().shared(py)?),
            (None, Some(view)) => Some(view.get().shared(py)?),
            (None, None) => Field::shared(object.cast::<Field>()?)?,
        };
        // Who looks at the memory sees what was launched before, on whatever stream. On a GPU, the default stream is in order with others.
        if shared.as_ref().is_some_and(|shared| shared.is_on_host() || shared.memory.is_used_by_streams()) {
            match (array, view) {
                (Some(array), _) => array.get().wait(py)?,
                (None, Some(view)) => view.get().ndarray.get().wait(py)?,
                (None, None) => Field::wait(object.cast::<Field>()?)?,
            }
        }
        Ok(shared)
    }

    /// Likewise; refuses what the host cannot look at.
    fn on_host(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        match Self::of(object)? {
            None => Err(PyBufferError::new_err("the elements do not lie side by side")),
            Some(shared) if !shared.is_on_host() => {
                Err(PyBufferError::new_err("the device's memory is not the host's"))
            }
            Some(shared) => Ok(shared),
        }
    }

    /// A session's device, in DLPack's words.
    pub fn device_of(options: &SessionOptions) -> Option<dlpack::Device> {
        let number = options.device as i32;
        options.arch.dlpack_kind().map(|kind| dlpack::Device { kind, number })
    }

    pub fn is_on_host(&self) -> bool {
        self.device == Some(dlpack::Device::HOST)
    }

    /// A numpy array of the same memory.
    pub fn into_numpy(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static AS_ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let exporter = Bound::new(py, SharedMemory { shared: self })?;
        AS_ARRAY.import(py, "numpy", "asarray")?.call1((exporter,))
    }

    fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = numpy::interface(py, &self.shape, self.scalar, self.address as usize)?;
        interface.set_item("strides", PyTuple::new(py, &self.strides)?)?;
        Ok(interface)
    }

    fn into_export(self, is_copied: bool) -> PyResult<Export> {
        let device = self.device.ok_or_else(|| {
            PyBufferError::new_err("DLPack has no name for the device that the memory is on")
        })?;
        Ok(Export {
            address: self.address,
            device,
            scalar: self.scalar,
            shape: self.shape,
            strides: self.strides,
            is_copied,
            keep: Box::new(self.memory),
        })
    }
}

/// What numpy refers to as the owner of an array's memory.
#[pyclass(frozen, module = "octants")]
pub struct SharedMemory {
    shared: Shared,
}

#[pymethods]
impl SharedMemory {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.shared.interface(py)
    }
}

/// How numpy looks at the memory without a copy. What it cannot look at has no such attribute.
pub fn array_interface<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let shared = Shared::on_host(object).map_err(|error| as_attribute_error(object.py(), error))?;
    shared.interface(object.py())
}

/// How libraries for NVIDIA's GPUs look at the memory without a copy. What lies elsewhere has no such attribute.
pub fn cuda_array_interface<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let found =
        Shared::of(object)?.filter(|shared| shared.device.is_some_and(|d| d.kind == dlpack::Device::CUDA));
    let Some(shared) = found else {
        return Err(PyAttributeError::new_err("the memory is not on an NVIDIA GPU"));
    };
    let interface = shared.interface(object.py())?;
    // The default stream that all libraries share, which kernels run in.
    interface.set_item("stream", 1)?;
    Ok(interface)
}

fn as_attribute_error(py: Python<'_>, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyBufferError>(py) {
        return PyAttributeError::new_err(error.value(py).to_string());
    }
    error
}

/// `(kind, number)` of the device that the memory is on.
pub fn dlpack_device(object: &Bound<'_, PyAny>) -> PyResult<(i32, i32)> {
    let device = Shared::of(object)?.and_then(|shared| shared.device);
    let device =
        device.ok_or_else(|| PyBufferError::new_err("the memory cannot be shared through DLPack"))?;
    Ok((device.kind, device.number))
}

/// A capsule by which another library looks at the memory.
pub fn to_dlpack<'py>(object: &Bound<'py, PyAny>, versioned: bool) -> PyResult<Bound<'py, PyAny>> {
    let Some(shared) = Shared::of(object)? else {
        return Err(PyValueError::new_err("Zero-copy not available: the elements do not lie side by side"));
    };
    if shared.device.is_none() {
        return Err(PyRuntimeError::new_err("DLPack has no name for the device that the memory is on"));
    }
    shared.into_export(false)?.into_capsule(object.py(), versioned)
}

/// What `__dlpack__` takes.
pub struct Request<'a, 'py> {
    pub stream: Option<&'a Bound<'py, PyAny>>,
    pub max_version: Option<(u32, u32)>,
    pub dl_device: Option<(i32, i32)>,
    pub copy: Option<bool>,
}

impl Request<'_, '_> {
    /// The stream that what was launched before comes first in; nothing for a default one, and for none.
    fn stream(&self) -> PyResult<Option<u64>> {
        let Some(stream) = self.stream.filter(|stream| !stream.is_none()) else { return Ok(None) };
        // 1 and 2 are the default ones; -1 asks for no order.
        match stream.extract::<i64>()? {
            -1 | 1 | 2 => Ok(None),
            number if number > 2 => Ok(Some(number as u64)),
            number => Err(PyValueError::new_err(format!(
                "stream={number} is no stream of DLPack's: 1 and 2 are the default ones, -1 asks for no order"
            ))),
        }
    }
}

/// The protocol's own method. **The memory of a capsule is on the device that was asked for, or that `__dlpack_device__` tells**: a copy is made there. Without
/// being asked for a copy or for another device, elements are shared or refused: who writes to a copy that he takes for the array loses it.
pub fn dlpack<'py>(object: &Bound<'py, PyAny>, request: &Request<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let refused = |text: String| Err(PyBufferError::new_err(text));
    let versioned = request.max_version.is_some_and(|(major, _)| major >= 1);
    let stream = request.stream()?;
    let shared = Shared::of(object)?;
    let found = match &shared {
        Some(shared) => shared.device,
        None => Field::device(tensor::unwrapped(object).cast::<Field>()?)?,
    };
    // Where the session's device has no name, copies lie on the host.
    let wanted = request.dl_device.map(|(kind, number)| dlpack::Device { kind, number });
    let target = wanted.or(found).unwrap_or(dlpack::Device::HOST);
    if target == dlpack::Device::HOST && found == Some(target) && request.stream.is_some_and(|s| !s.is_none())
    {
        return Err(PyRuntimeError::new_err("memory of the host takes no stream: stream=None"));
    }
    if request.copy != Some(true) {
        match shared {
            Some(shared) if found == Some(target) => return shared.capsule(py, stream, false, versioned),
            None if found == Some(target) => {
                return refused("the elements do not lie side by side; ask for a copy".to_owned());
            }
            _ if request.copy == Some(false) => {
                return refused("the memory is on another device; ask for a copy".to_owned());
            }
            _ if wanted.is_none() => {
                return refused(
                    "DLPack has no name for the device that the memory is on; ask for a copy".to_owned(),
                );
            }
            _ => {}
        }
    }
    if target == dlpack::Device::HOST {
        let copy = object.call_method0("to_numpy")?;
        let view = numpy::View::of(&copy).ok_or_else(|| errors::bug("to_numpy made no array"))?;
        return view.export()?.into_capsule(py, versioned);
    }
    if found != Some(target) {
        let device = found.map_or_else(|| "a device without a name".to_owned(), |found| found.to_string());
        return refused(format!(
            "the memory is on {device}; it is copied there or to the host, not to {target}"
        ));
    }
    let copy = py.import("octants._arrays")?.call_method1("device_copy", (object,))?;
    let Some(copied) = Shared::of(&copy)? else { return Err(errors::bug("an array without strides")) };
    copied.capsule(py, stream, true, versioned)
}

impl Shared {
    /// A capsule of the memory, which what comes in the stream from now on finds as it is.
    fn capsule(
        self,
        py: Python<'_>,
        stream: Option<u64>,
        is_copied: bool,
        versioned: bool,
    ) -> PyResult<Bound<'_, PyAny>> {
        if let Some(stream) = stream {
            let context = self.memory.context();
            // SAFETY: the protocol asks whoever names a stream to keep it.
            let stream = unsafe { ExternalStream::new(stream) };
            let ordered = stream.after(context, context.default_stream());
            ordered.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        }
        self.into_export(is_copied)?.into_capsule(py, versioned)
    }
}

/// What numpy's `__array__` asks for, of an array or a view.
pub fn numpy_array<'py>(
    object: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    py.import("octants._matrix.conversion")?.call_method1("array_of", (object, dtype, copy))
}

// ---- the buffer protocol --------------------------------------------------------------------------------------------------

/// Numbers of the slots, as `PyType_GetSlot` takes them.
const GET_BUFFER: c_int = 1;

/// `PyBufferProcs`
#[repr(C)]
struct BufferProcs {
    get: Option<unsafe extern "C" fn(*mut ffi::PyObject, *mut Buffer, c_int) -> c_int>,
    release: Option<unsafe extern "C" fn(*mut ffi::PyObject, *mut Buffer)>,
}

/// `Py_buffer`; part of the stable ABI since Python 3.11, and the same before.
#[repr(C)]
struct Buffer {
    data: *mut c_void,
    object: *mut ffi::PyObject,
    bytes: isize,
    item_bytes: isize,
    read_only: c_int,
    ndim: c_int,
    format: *const c_char,
    shape: *const isize,
    strides: *const isize,
    suboffsets: *const isize,
    internal: *mut c_void,
}

const WANTS_FORMAT: c_int = 0x4;
const WANTS_SHAPE: c_int = 0x8;
const WANTS_STRIDES: c_int = 0x10 | WANTS_SHAPE;
const WANTS_ROW_MAJOR: c_int = 0x20 | WANTS_STRIDES;
const WANTS_COLUMN_MAJOR: c_int = 0x40 | WANTS_STRIDES;
const WANTS_EITHER: c_int = 0x80 | WANTS_STRIDES;

/// What a buffer that was given out keeps.
struct Lent {
    shared: Shared,
    shape: Vec<isize>,
    strides: Vec<isize>,
}

/// Gives classes the buffer protocol, which PyO3 offers for the stable ABI of Python 3.11 and later only. From Python 3.12 on, classes made
/// of these in Python have it by their method `__buffer__` alone.
///
/// The place of the slots in a type object is the same from Python 3.8 on; a build of Python where it is not is left as it is.
pub fn add_buffer_protocol(py: Python<'_>) {
    // Words from the beginning of a type object to its pointer to the slots.
    const AS_BUFFER: usize = 20;
    let arrays = [py.get_type::<Ndarray>(), py.get_type::<BufferView>(), py.get_type::<SharedMemory>()];
    for class in arrays.into_iter().chain([py.get_type::<Field>(), py.get_type::<Tensor>()]) {
        add_slots(&class, AS_BUFFER);
    }
}

fn add_slots(class: &Bound<'_, PyType>, as_buffer: usize) {
    let pointer = class.as_ptr().cast::<*mut BufferProcs>();
    // SAFETY: a heap type has its slots in the type object itself; that they are where we think is checked before anything is written.
    unsafe {
        let slots = *pointer.add(as_buffer);
        let begin = class.as_ptr() as usize;
        let is_inside = (begin..begin + 1024).contains(&(slots as usize));
        if !is_inside || (*slots).get.is_some() || (*slots).release.is_some() {
            return;
        }
        (*slots).get = Some(get_buffer);
        let read_back = ffi::PyType_GetSlot(class.as_ptr().cast(), GET_BUFFER);
        if std::ptr::eq(read_back, get_buffer as *const c_void) {
            (*slots).release = Some(release_buffer);
        } else {
            (*slots).get = None;
        }
    }
}

unsafe extern "C" fn get_buffer(object: *mut ffi::PyObject, buffer: *mut Buffer, flags: c_int) -> c_int {
    Python::attach(|py| {
        // SAFETY: the interpreter passes a live object, and a buffer to be filled.
        let (object, buffer) = unsafe { (Bound::from_borrowed_ptr(py, object), &mut *buffer) };
        buffer.object = std::ptr::null_mut();
        match errors::gateway(|| Shared::on_host(&object)?.lend(&object, buffer, flags)) {
            Ok(()) => 0,
            Err(error) => {
                as_buffer_error(py, error).restore(py);
                -1
            }
        }
    })
}

/// A view of the memory, which it keeps.
pub fn memory_view<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyMemoryView>> {
    let py = object.py();
    let shared = errors::gateway(|| Shared::on_host(object)).map_err(|error| as_buffer_error(py, error))?;
    PyMemoryView::from(Bound::new(py, SharedMemory { shared })?.as_any())
}

fn as_buffer_error(py: Python<'_>, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyBufferError>(py) {
        return error;
    }
    PyBufferError::new_err(error.value(py).to_string())
}

unsafe extern "C" fn release_buffer(_object: *mut ffi::PyObject, buffer: *mut Buffer) {
    // SAFETY: the buffer is one that `lend` filled, and is released once.
    unsafe { drop(Box::from_raw((*buffer).internal.cast::<Lent>())) };
}

impl Shared {
    fn lend(self, object: &Bound<'_, PyAny>, buffer: &mut Buffer, flags: c_int) -> PyResult<()> {
        let asks = |wanted: c_int| flags & wanted == wanted;
        let (rows, columns) = (self.is_dense(true), self.is_dense(false));
        let refused = (asks(WANTS_ROW_MAJOR) || !asks(WANTS_STRIDES)) && !rows
            || asks(WANTS_COLUMN_MAJOR) && !columns
            || asks(WANTS_EITHER) && !rows && !columns;
        if refused {
            return Err(PyBufferError::new_err(
                "the elements lie in another order than the one that is asked for",
            ));
        }
        let item = self.scalar.bytes() as isize;
        buffer.bytes = item * self.shape.iter().map(|&extent| extent as isize).product::<isize>();
        buffer.item_bytes = item;
        buffer.data = self.address as *mut c_void;
        buffer.read_only = 0;
        buffer.format = if asks(WANTS_FORMAT) { format_of(self.scalar).as_ptr() } else { std::ptr::null() };
        buffer.ndim = self.shape.len() as c_int;
        buffer.suboffsets = std::ptr::null();
        let signed = |numbers: &[usize]| numbers.iter().map(|&number| number as isize).collect::<Vec<_>>();
        let lent =
            Box::new(Lent { shape: signed(&self.shape), strides: signed(&self.strides), shared: self });
        buffer.shape = if asks(WANTS_SHAPE) { lent.shape.as_ptr() } else { std::ptr::null() };
        buffer.strides = if asks(WANTS_STRIDES) { lent.strides.as_ptr() } else { std::ptr::null() };
        debug_assert_eq!(lent.shared.shape.len(), lent.shape.len());
        buffer.internal = Box::into_raw(lent).cast();
        buffer.object = object.clone().into_ptr();
        Ok(())
    }

    /// Whether nothing lies between the elements, in row-major or in column-major order.
    fn is_dense(&self, row_major: bool) -> bool {
        let mut expected = self.scalar.bytes() as usize;
        let rank = self.shape.len();
        (0..rank).map(|place| if row_major { rank - 1 - place } else { place }).all(|axis| {
            let fits = self.shape[axis] == 1 || self.strides[axis] == expected;
            expected *= self.shape[axis];
            fits
        })
    }
}

/// As the module `struct` writes a type.
fn format_of(scalar: Scalar) -> &'static CStr {
    match scalar {
        Scalar::U1 => c"?",
        Scalar::I8 => c"b",
        Scalar::U8 => c"B",
        Scalar::I16 => c"h",
        Scalar::U16 => c"H",
        Scalar::I32 => c"i",
        Scalar::U32 => c"I",
        Scalar::I64 => c"q",
        Scalar::U64 => c"Q",
        Scalar::F16 => c"e",
        Scalar::F32 => c"f",
        Scalar::F64 => c"d",
    }
}
