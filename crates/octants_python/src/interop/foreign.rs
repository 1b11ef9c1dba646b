//! Arrays of other libraries: where their elements lie, and how a kernel reaches them.

use octants::ir::{Order, Scalar, Spacing, TensorShape};
use octants::{CompiledKernel, LiveStream};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use smallvec::SmallVec;

use crate::gateway::errors;
use crate::interop::{dlpack, numpy};
use crate::session::runtime;

/// The most axes that an array of a kernel has.
const MAX_RANK: usize = 12;

/// How a kernel reaches the elements of an array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Where they lie, in this order and spacing.
    InPlace(Order, Spacing),
    /// Through a row-major copy: they are not aligned, or the entries of one element do not lie side by side.
    Copied,
}

impl Placement {
    const ROW_MAJOR: Self = Self::InPlace(Order::ROW_MAJOR, Spacing::Dense);

    /// The order and spacing that the kernel sees.
    pub fn seen(self) -> (Order, Spacing) {
        match self {
            Self::InPlace(order, spacing) => (order, spacing),
            Self::Copied => (Order::ROW_MAJOR, Spacing::Dense),
        }
    }
}

/// Whose memory an array lies in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    Host,
    /// The host does not look there. With the stream of the library that uses it, where that is not the device's default one, and the device's number,
    /// where the library tells it.
    Device {
        stream: Option<u64>,
        number: Option<u32>,
    },
}

/// Why an array may not be written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unwritable {
    ReadOnly,
    /// Several of its elements are one number in memory: iterations that write different ones would race, and the last one would win.
    Repeats,
    /// As [`Unwritable::Repeats`], and no stride is 0: windows that slide over an array.
    Overlaps,
}

/// Where the elements of an array lie; valid while its object lives and is not resized.
#[derive(Clone, Copy)]
pub struct Elements<'a> {
    pub data: *mut u8,
    pub shape: &'a [isize],
    /// One for each axis, in units of `unit` bytes; none of a row-major array that says none.
    pub strides: &'a [isize],
    pub unit: isize,
    /// Nothing if kernels have no such type.
    pub scalar: Option<Scalar>,
    pub is_writeable: bool,
    pub is_row_major: bool,
    pub is_column_major: bool,
}

impl Elements<'_> {
    /// The bytes between one element and the next along an axis of an array that is not row-major.
    pub fn stride(&self, axis: usize) -> isize {
        self.strides[axis].wrapping_mul(self.unit)
    }

    /// What is wrong with writing the elements, if something is.
    pub fn unwritable(&self) -> Option<Unwritable> {
        if !self.is_writeable {
            Some(Unwritable::ReadOnly)
        } else if self.is_row_major || self.is_column_major {
            None
        } else {
            self.shared_elements()
        }
    }

    /// Whether elements may lie in the same memory. Slices and transpositions of arrays have axes of which each is longer than all shorter ones together; in
    /// others, two elements may lie at one place.
    fn shared_elements(&self) -> Option<Unwritable> {
        let mut axes: SmallVec<[(usize, usize); MAX_RANK]> = SmallVec::new();
        for (axis, &extent) in self.shape.iter().enumerate() {
            match extent {
                0 => return None,
                1 => {}
                _ => axes.push((self.stride(axis).unsigned_abs(), extent as usize)),
            }
        }
        axes.sort_unstable();
        let mut reach = self.scalar.map_or(0, Scalar::bytes) as usize;
        for (stride, extent) in axes {
            if stride < reach {
                return Some(if stride == 0 { Unwritable::Repeats } else { Unwritable::Overlaps });
            }
            reach = stride.saturating_mul(extent - 1).saturating_add(reach);
        }
        None
    }

    pub fn bytes(&self) -> usize {
        let count: usize = self.shape.iter().map(|&n| n as usize).product();
        count * self.scalar.map_or(0, |s| s.bytes() as usize)
    }

    /// The shape of the elements whose entries the last `inner` axes hold; `None` if no element has it.
    pub fn element_shape(&self, inner: usize) -> Option<TensorShape> {
        let extent = |extent: isize| u16::try_from(extent).ok();
        match self.shape[self.shape.len().checked_sub(inner)?..] {
            [n] => Some(TensorShape::Vector(extent(n)?)),
            [n, m] => Some(TensorShape::Matrix(extent(n)?, extent(m)?)),
            _ => None,
        }
    }

    /// How a kernel reaches the elements, if the last `inner` axes are those of the elements' entries.
    #[inline]
    pub fn placement(&self, inner: usize) -> Placement {
        let scalar = self.scalar.map_or(1, Scalar::bytes) as usize;
        if !(self.data as usize).is_multiple_of(scalar) {
            Placement::Copied
        } else if self.is_row_major {
            Placement::ROW_MAJOR
        } else {
            self.spaced(inner, scalar as isize)
        }
    }

    /// Where elements lie that are not row-major, if each axis has a stride that is a multiple of the scalars.
    fn spaced(&self, inner: usize, scalar: isize) -> Placement {
        let rank = self.shape.len() - inner;
        let mut element = scalar;
        for axis in (rank..self.shape.len()).rev() {
            if self.shape[axis] != 1 && self.stride(axis) != element {
                return Placement::Copied;
            }
            element *= self.shape[axis];
        }
        let is_long = |axis: usize| self.shape[axis] != 1;
        if rank > MAX_RANK || (0..rank).any(|axis| is_long(axis) && self.stride(axis) % scalar != 0) {
            return Placement::Copied;
        }
        let mut axes: SmallVec<[usize; MAX_RANK]> = (0..rank).collect();
        if inner == 0 && self.is_column_major {
            axes.reverse();
        } else {
            // Axes of one element have any stride: they come first.
            axes.sort_by_key(|&axis| {
                let stride = if is_long(axis) { self.stride(axis).abs() } else { isize::MAX };
                std::cmp::Reverse(stride)
            });
        }
        let Some(order) = Order::new(&axes) else { return Placement::Copied };
        let mut expected = element;
        let mut is_dense = true;
        for &axis in axes.iter().rev().filter(|&&axis| is_long(axis)) {
            is_dense &= self.stride(axis) == expected;
            expected = expected.wrapping_mul(self.shape[axis]);
        }
        let has_rows = axes.last().is_some_and(|&axis| is_long(axis) && self.stride(axis) == element);
        let spacing = match (is_dense, has_rows) {
            (true, _) => Spacing::Dense,
            (false, true) => Spacing::Rows,
            (false, false) => Spacing::Strided,
        };
        Placement::InPlace(order, spacing)
    }

    /// The address of the lowest byte of the elements, and how many bytes there are up to the end of the highest.
    pub fn range(&self) -> (u64, usize) {
        let begin = self.data as u64;
        if self.is_row_major || self.shape.contains(&0) {
            return (begin, self.bytes());
        }
        let (mut below, mut above) = (0, self.scalar.map_or(0, Scalar::bytes) as usize);
        for axis in 0..self.shape.len() {
            let reach = self.stride(axis).wrapping_mul(self.shape[axis] - 1);
            *(if reach < 0 { &mut below } else { &mut above }) += reach.unsigned_abs();
        }
        (begin - below as u64, below + above)
    }
}

/// An array of another library as numpy sees it.
pub struct ForeignArray<'py> {
    array: Bound<'py, PyAny>,
    pub owner: Owner,
}

impl<'py> ForeignArray<'py> {
    /// The object, which is none of ours, as an array of another library, if it is one: of numpy, of torch, one that tells where it lies on a GPU, or one that DLPack can look at.
    pub fn of(object: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let host = |array| Ok(Some(Self { array, owner: Owner::Host }));
        if numpy::View::of(object).is_some() {
            return host(object.clone());
        }
        let is_tensor = is_torch_tensor(object);
        if is_tensor && !object.getattr("is_cuda")?.extract::<bool>()? {
            // The tensor keeps the memory; the array object is only a look at it.
            return host(object.call_method0("detach")?.call_method0("numpy")?);
        }
        let detached = if is_tensor { object.call_method0("detach")? } else { object.clone() };
        let Ok(interface) = detached.getattr("__cuda_array_interface__") else {
            return dlpack::on_host(object)?.map_or(Ok(None), host);
        };
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
        let number = device_number(object, is_tensor)?;
        Ok(Some(Self { array, owner: Owner::Device { stream: (stream != 0).then_some(stream), number } }))
    }

    /// As [`ForeignArray::of`], of numpy's and torch's own arrays alone: other objects are not asked.
    pub fn of_known_library(object: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        if numpy::View::of(object).is_some() || is_torch_tensor(object) { Self::of(object) } else { Ok(None) }
    }

    pub fn view(&self) -> PyResult<numpy::View<'_, 'py>> {
        numpy::View::of(&self.array).ok_or_else(|| errors::bug("an array is no numpy array"))
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

/// A class of a library, once somebody has imported that. Nothing is imported here.
pub fn class_of_library<'a>(
    py: Python<'a>,
    class: &'a PyOnceLock<Py<PyType>>,
    library: &str,
    name: &str,
) -> Option<&'a Py<PyType>> {
    if let Some(class) = class.get(py) {
        return Some(class);
    }
    let modules = py.import("sys").ok()?.getattr("modules").ok()?.cast_into::<PyDict>().ok()?;
    let found = modules.get_item(library).ok()??.getattr(name).ok()?.cast_into::<PyType>().ok()?;
    let _ = class.set(py, found.unbind());
    class.get(py)
}

/// Whether an object is a tensor of torch's, or of a class made of that.
pub fn is_torch_tensor(object: &Bound<'_, PyAny>) -> bool {
    static TENSOR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = object.py();
    class_of_library(py, &TENSOR, "torch", "Tensor")
        .is_some_and(|class| object.is_instance(class.bind(py)).unwrap_or(false))
}

/// Gives a tensor of torch's that requires gradients some, which are zeros, if it has none: a function of torch's own that calls kernels clears and reads them.
pub fn give_gradients(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = object.py();
    if !is_torch_tensor(object) || !object.getattr(intern!(py, "requires_grad"))?.is_truthy()? {
        return Ok(());
    }
    // Of what torch has computed, asking makes it warn.
    let is_leaf = object.getattr(intern!(py, "is_leaf"))?.is_truthy()?;
    if is_leaf && !object.getattr(intern!(py, "grad"))?.is_none() {
        return Ok(());
    }
    py.import(intern!(py, "octants._arrays.torch_tensors"))?
        .call_method1(intern!(py, "give_gradients"), (object,))?;
    Ok(())
}

/// Which GPU an array of another library lies on, if the library tells.
fn device_number(object: &Bound<'_, PyAny>, is_tensor: bool) -> PyResult<Option<u32>> {
    if is_tensor {
        return object.getattr("device")?.getattr("index")?.extract();
    }
    // Beside `__cuda_array_interface__`, which does not tell.
    let Some(device) = object.getattr_opt("__dlpack_device__")? else { return Ok(None) };
    let told = device.call0().and_then(|device| device.extract::<(i32, u32)>());
    Ok(told.ok().filter(|device| device.0 == dlpack::Device::CUDA).map(|device| device.1))
}

/// A stream uses an array of another library: its memory is not to serve another one before the launch is over. torch is told; of any other library the
/// object is kept.
pub fn keep_for_stream(
    object: &Bound<'_, PyAny>,
    compiled: &CompiledKernel,
    on: &LiveStream,
) -> PyResult<()> {
    let py = object.py();
    if is_torch_tensor(object) {
        let cuda = py.import("torch")?.getattr("cuda")?;
        let stream = cuda.call_method1("ExternalStream", (on.stream().0,))?;
        object.call_method1("record_stream", (stream,))?;
    } else if let Some(runtime) = runtime::current(py) {
        let behind = compiled.event_behind(on).map_err(|error| errors::from_error(py, &error))?;
        runtime.get().keep_until(behind, object.clone().unbind());
    }
    Ok(())
}
