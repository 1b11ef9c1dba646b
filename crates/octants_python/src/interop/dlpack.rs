//! DLPack: the protocol by which libraries look at each other's arrays without a copy. Both directions.
//!
//! The structures are the protocol's own (versions 0.8 and 1.x), which are a stable ABI.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use octants::ir::Scalar;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::interop::foreign::{Elements, Owner};

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Device {
    pub kind: i32,
    pub number: i32,
}

impl Device {
    pub const HOST: Self = Self { kind: 1, number: 0 };
    pub const CUDA: i32 = 2;
    /// Memory of the host that a GPU sees, too.
    const CUDA_HOST: i32 = 3;
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "device ({}, {})", self.kind, self.number)
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

impl DataType {
    fn of(scalar: Scalar) -> Self {
        let code = match scalar {
            Scalar::U1 => 6,
            _ if scalar.is_real() => 2,
            _ if scalar.is_signed() => 0,
            _ => 1,
        };
        Self { code, bits: 8 * scalar.bytes() as u8, lanes: 1 }
    }

    fn scalar(self) -> Option<Scalar> {
        let fits = |&scalar: &Scalar| {
            let known = Self::of(scalar);
            (known.code, known.bits, 1) == (self.code, self.bits, self.lanes)
        };
        Scalar::ALL.iter().copied().find(fits)
    }
}

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    dtype: DataType,
    shape: *mut i64,
    /// In elements. May be null for a row-major tensor.
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct ManagedTensor {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Version {
    major: u32,
    minor: u32,
}

#[repr(C)]
struct VersionedTensor {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut VersionedTensor)>,
    flags: u64,
    tensor: Tensor,
}

// ---- out ------------------------------------------------------------------------------------------------------------------

/// Elements that another library is to see.
pub struct Export {
    pub address: u64,
    pub device: Device,
    pub scalar: Scalar,
    pub shape: Vec<usize>,
    /// In bytes; multiples of the scalar's.
    pub strides: Vec<usize>,
    /// Whether nobody else sees the memory.
    pub is_copied: bool,
    /// What keeps the memory until the other library is done with it, on whichever thread.
    pub keep: Box<dyn Send + Sync>,
}

/// What a capsule owns: the protocol's structure, and what it points to.
struct Exported<T> {
    managed: T,
    shape: Vec<i64>,
    strides: Vec<i64>,
    _keep: Box<dyn Send + Sync>,
}

/// The flag of a capsule whose memory is a copy.
const IS_COPIED: u64 = 1 << 1;

const LEGACY: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

impl Export {
    /// A capsule of the protocol's first form, or of the one with versions.
    pub fn into_capsule(self, py: Python<'_>, versioned: bool) -> PyResult<Bound<'_, PyAny>> {
        if versioned {
            let flags = if self.is_copied { IS_COPIED } else { 0 };
            let managed = |tensor| VersionedTensor {
                version: Version { major: 1, minor: 0 },
                context: ptr::null_mut(),
                deleter: Some(delete_versioned),
                flags,
                tensor,
            };
            let raw = self.into_raw(managed, |managed| &mut managed.tensor);
            // SAFETY: a new object, whose deleter frees it.
            unsafe {
                (*raw).managed.context = raw.cast();
                capsule(py, (&raw mut (*raw).managed).cast(), VERSIONED, destroy_versioned)
            }
        } else {
            let managed =
                |tensor| ManagedTensor { tensor, context: ptr::null_mut(), deleter: Some(delete_legacy) };
            let raw = self.into_raw(managed, |managed| &mut managed.tensor);
            // SAFETY: as above.
            unsafe {
                (*raw).managed.context = raw.cast();
                capsule(py, (&raw mut (*raw).managed).cast(), LEGACY, destroy_legacy)
            }
        }
    }

    fn into_raw<T>(
        self,
        make: impl FnOnce(Tensor) -> T,
        tensor: fn(&mut T) -> &mut Tensor,
    ) -> *mut Exported<T> {
        let unit = self.scalar.bytes() as usize;
        let mut exported = Box::new(Exported {
            managed: make(Tensor {
                data: self.address as *mut c_void,
                device: self.device,
                ndim: self.shape.len() as i32,
                dtype: DataType::of(self.scalar),
                shape: ptr::null_mut(),
                strides: ptr::null_mut(),
                byte_offset: 0,
            }),
            shape: self.shape.iter().map(|&extent| extent as i64).collect(),
            strides: self.strides.iter().map(|&stride| (stride / unit) as i64).collect(),
            _keep: self.keep,
        });
        let (shape, strides) = (exported.shape.as_mut_ptr(), exported.strides.as_mut_ptr());
        let tensor = tensor(&mut exported.managed);
        (tensor.shape, tensor.strides) = (shape, strides);
        Box::into_raw(exported)
    }
}

/// # Safety
/// `pointer` is a new object of the protocol's, which the destructor knows.
unsafe fn capsule<'py>(
    py: Python<'py>,
    pointer: *mut c_void,
    name: &'static CStr,
    destructor: unsafe extern "C" fn(*mut ffi::PyObject),
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the name lives forever; the result is a new reference or an error.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destructor))) }
}

unsafe extern "C" fn delete_legacy(managed: *mut ManagedTensor) {
    // SAFETY: called once, with what `into_capsule` made.
    drop(unsafe { Box::from_raw((*managed).context.cast::<Exported<ManagedTensor>>()) });
}

unsafe extern "C" fn delete_versioned(managed: *mut VersionedTensor) {
    // SAFETY: as above.
    drop(unsafe { Box::from_raw((*managed).context.cast::<Exported<VersionedTensor>>()) });
}

/// A capsule that nobody took still has its first name.
unsafe extern "C" fn destroy_legacy(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule is ours; its pointer is that of `into_capsule`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, LEGACY.as_ptr()) != 0 {
            delete_legacy(ffi::PyCapsule_GetPointer(capsule, LEGACY.as_ptr()).cast());
        }
    }
}

unsafe extern "C" fn destroy_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

// ---- in -------------------------------------------------------------------------------------------------------------------

/// The functions of a library by which others look at its arrays quickly.
#[repr(C)]
struct ExchangeApi {
    version: Version,
    previous: *const c_void,
    allocate: *const c_void,
    managed_from_object: *const c_void,
    managed_to_object: *const c_void,
    tensor_from_object: Option<unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int>,
    current_stream: Option<unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int>,
}

const EXCHANGE_API: &CStr = c"dlpack_exchange_api";

/// Classes and their functions, found before. The classes are never freed; both are addresses. Eight are remembered: chosen, not measured;
/// torch has two that are common, `Tensor` and `Parameter`.
static KNOWN: [OnceLock<(usize, usize)>; 8] = [const { OnceLock::new() }; 8];

fn exchange_api(object: &Bound<'_, PyAny>) -> Option<&'static ExchangeApi> {
    let class = object.get_type();
    let address = class.as_ptr() as usize;
    let known = KNOWN.iter().map_while(OnceLock::get).find(|one| one.0 == address);
    let api = match known {
        Some(&(_, api)) => api,
        None => find_api(&class)?,
    };
    // SAFETY: the protocol says that the structure lives as long as the process.
    Some(unsafe { &*(api as *const ExchangeApi) })
}

#[cold]
fn find_api(class: &Bound<'_, pyo3::types::PyType>) -> Option<usize> {
    let capsule = class.getattr_opt(intern!(class.py(), "__dlpack_c_exchange_api__")).ok()??;
    // SAFETY: a live object; another name is an error, which is cleared.
    let api = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), EXCHANGE_API.as_ptr()) == 0 {
            return None;
        }
        ffi::PyCapsule_GetPointer(capsule.as_ptr(), EXCHANGE_API.as_ptr())
    };
    // SAFETY: every version of the structure begins with its version.
    if api.is_null() || unsafe { (*api.cast::<Version>()).major } != 1 {
        return None;
    }
    let found = (class.as_ptr() as usize, api as usize);
    if KNOWN.iter().any(|place| place.set(found).is_ok()) {
        std::mem::forget(class.clone());
    }
    Some(api as usize)
}

/// Calls `look` with where the elements of an object lie, if its library tells that quickly and a kernel can take it as it lies. What `look` is
/// given is valid while the object lives and is not resized.
#[inline]
pub fn look_at<T>(
    object: &Bound<'_, PyAny>,
    look: impl FnOnce(&Elements<'_>, Owner) -> PyResult<T>,
) -> PyResult<Option<T>> {
    let Some(api) = exchange_api(object) else { return Ok(None) };
    let Some(tensor_from_object) = api.tensor_from_object else { return Ok(None) };
    let py = object.py();
    let mut tensor = Tensor {
        data: ptr::null_mut(),
        device: Device::HOST,
        ndim: 0,
        dtype: DataType { code: 0, bits: 0, lanes: 0 },
        shape: ptr::null_mut(),
        strides: ptr::null_mut(),
        byte_offset: 0,
    };
    // SAFETY: the function fills the structure with what the object keeps, or sets an exception.
    if unsafe { tensor_from_object(object.as_ptr().cast(), &raw mut tensor) } != 0 {
        // Whoever asks again is told what is wrong.
        drop(PyErr::take(py));
        return Ok(None);
    }
    let owner = match tensor.device.kind {
        kind if kind == Device::HOST.kind || kind == Device::CUDA_HOST => Owner::Host,
        Device::CUDA => match stream_of(py, api, tensor.device) {
            Some(stream) => Owner::Device {
                stream: Some(stream).filter(|&stream| stream > 2),
                number: u32::try_from(tensor.device.number).ok(),
            },
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let rank = tensor.ndim as usize;
    let axes = |first: *mut i64| -> &[isize] {
        // SAFETY: the object keeps that many numbers, which have the size of an `isize` on all machines that we know.
        if first.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(first.cast(), rank) } }
    };
    let (shape, strides) = (axes(tensor.shape), axes(tensor.strides));
    let elements = Elements {
        data: tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize),
        shape,
        strides,
        unit: isize::from(tensor.dtype.bits) / 8,
        scalar: tensor.dtype.scalar(),
        is_writeable: true,
        is_row_major: strides.len() < rank || follows(shape, strides, (0..rank).rev()),
        is_column_major: follows(shape, strides, 0..rank),
    };
    // A tensor of torch's may stand for the negative of what lies in memory, if it is the imaginary part of complex numbers: never densely.
    let has_gaps = !elements.is_row_major || shape.iter().all(|&extent| extent == 1);
    if has_gaps
        && let Ok(is_negative) = object.call_method0(intern!(py, "is_neg"))
        && is_negative.is_truthy()?
    {
        return Ok(None);
    }
    look(&elements, owner).map(Some)
}

/// Whether elements lie densely with these axes from the fastest to the slowest.
fn follows(shape: &[isize], strides: &[isize], mut axes: impl Iterator<Item = usize>) -> bool {
    let mut expected = 1;
    let mut fits = |axis: usize| {
        let fits = shape[axis] == 1 || strides.get(axis) == Some(&expected);
        expected *= shape[axis];
        fits
    };
    axes.all(&mut fits) || shape.contains(&0)
}

/// The stream that the library works in now.
fn stream_of(py: Python<'_>, api: &ExchangeApi, device: Device) -> Option<u64> {
    let mut stream = ptr::null_mut();
    // SAFETY: the function writes the stream, or sets an exception.
    if unsafe { (api.current_stream?)(device.kind, device.number, &raw mut stream) } != 0 {
        drop(PyErr::take(py));
        return None;
    }
    Some(stream as u64)
}

/// An object that DLPack can look at, as numpy's array of the same memory, if it lies on the host.
pub fn on_host<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    if object.is_instance_of::<pyo3::types::PyType>() {
        return Ok(None);
    }
    let Some(device) = object.getattr_opt(intern!(py, "__dlpack_device__"))? else { return Ok(None) };
    if !object.hasattr(intern!(py, "__dlpack__"))? {
        return Ok(None);
    }
    let device: (i32, i32) = device.call0()?.cast_into::<PyTuple>()?.extract()?;
    if device.0 != Device::HOST.kind && device.0 != Device::CUDA_HOST {
        return Err(PyBufferError::new_err(format!(
            "the array lies on a device that DLPack calls {device:?}, which kernels of this session cannot look at"
        )));
    }
    py.import("numpy")?.getattr("from_dlpack")?.call1((object,)).map(Some)
}
