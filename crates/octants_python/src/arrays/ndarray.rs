//! Arrays in device memory, as Python objects.

use octants::diag::{Code, Diagnostic, SourceMap};
use octants::ir::{Data, Order, TensorShape, TensorType};
use octants::{HostQueue, LiveStream, NdArray};
use pyo3::exceptions::{PyAssertionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer;
use pyo3::types::PyTuple;

use crate::arrays::buffer_view::BufferView;
use crate::arrays::exporter::Exporter;
use crate::arrays::field_index;
use crate::arrays::shared::{self, Shared};
use crate::arrays::write_log::HostAccess;
use crate::arrays::{tensor, write_log};
use crate::gateway::{errors, interrupt};
use crate::interop::{host_memory, numpy};
use crate::session::runtime::Runtime;
use crate::session::stream;
use crate::values::dtype::{self, DataType};
use crate::values::{aggregate, element, host_only, number};

/// An array of scalars in the memory of the current session. Freed when nothing refers to it.
#[pyclass(frozen, subclass, weakref, extends = Exporter, module = "octants")]
pub struct Ndarray {
    pub array: NdArray,
    runtime: Py<Runtime>,
}

/// The extents that a shape argument means: an integer, or a sequence of integers.
fn extents(shape: &Bound<'_, PyAny>) -> PyResult<Vec<i32>> {
    let most = usize::from(octants::MAX_AXES);
    if let Some(rank) = shape.len().ok().filter(|&rank| rank > most) {
        let text = format!("an array has at most {most} axes, and a shape of {rank} extents was given");
        let diagnostic = Diagnostic::new(Code::ArrayMismatch, text)
            .help("let one axis stand for several: `x[i * m + j]`, or use vectors and matrices as elements");
        return Err(errors::from_diagnostic(shape.py(), diagnostic, &SourceMap::new()));
    }
    let invalid = || {
        let text = shape.repr().map_or_else(|_| "it".to_owned(), |repr| repr.to_string());
        errors::exception(
            shape.py(),
            "OctantsRuntimeError",
            &format!("{text} is not a valid shape for ndarray: extents are integers from 1 to 2147483647"),
        )
    };
    let extent = |object: &Bound<'_, PyAny>| -> PyResult<i32> {
        match number::wrapped_integer(object) {
            Some(_) => object.extract::<i32>().ok().filter(|&n| n > 0).ok_or_else(invalid),
            None => Err(invalid()),
        }
    };
    if number::wrapped_integer(shape).is_some() {
        return Ok(vec![extent(shape)?]);
    }
    let Ok(items) = shape.try_iter() else { return Err(invalid()) };
    let extents = items.map(|item| extent(&item?)).collect::<PyResult<Vec<i32>>>()?;
    if extents.len() > 12 { Err(invalid()) } else { Ok(extents) }
}

impl Ndarray {
    fn failed(py: Python<'_>, error: &octants::Error) -> PyErr {
        errors::from_error(py, error)
    }

    /// The extents of an element: none for a scalar.
    fn element_extents(&self) -> Vec<u32> {
        self.array.element().tensor_shape().map_or_else(Vec::new, TensorShape::dims)
    }

    /// Waits for a device that still works on it, if it does; Ctrl-C ends the wait.
    pub fn wait(&self, py: Python<'_>) -> PyResult<()> {
        if self.array.is_at_rest() {
            return Ok(());
        }
        interrupt::waiting(py, |cancel| self.array.wait(HostQueue { stream: None, cancel }))
    }

    /// Waits for streams that still work on it; Ctrl-C ends the wait.
    fn wait_for_streams(&self, py: Python<'_>) -> PyResult<()> {
        if self.array.memory().is_used_by_streams() { self.wait(py) } else { Ok(()) }
    }

    /// The stream that a copy of the host joins.
    pub fn stream(&self, qd_stream: Option<&Bound<'_, PyAny>>) -> PyResult<Option<LiveStream>> {
        stream::live(self.runtime.get(), qd_stream)
    }

    /// Copies all elements, or bytes from this offset on, to a new numpy array of a shape.
    pub fn copied<'py>(
        &self,
        py: Python<'py>,
        extents: &[usize],
        first: usize,
        on: Option<&LiveStream>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let out = host_memory::empty(py, extents, self.array.scalar())?;
        let view = numpy::View::of(&out).ok_or_else(|| errors::bug("numpy.empty made no array"))?;
        let (data, bytes) = (view.data() as usize, view.bytes());
        stream::access(py, self.array.is_at_rest(), on, |queue| {
            self.array.wait(queue)?;
            // SAFETY: the new array has as many bytes, and nobody else knows it yet.
            let to = unsafe { std::slice::from_raw_parts_mut(data as *mut u8, bytes) };
            if bytes == self.array.bytes() {
                self.array.read(to, queue)
            } else {
                self.array.read_at(first, to, queue)
            }
        })?;
        Ok(out)
    }

    /// The element that a host index means, checked.
    fn index(&self, index: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
        let py = index.py();
        let shape = self.array.shape();
        let items = field_index::parts(index);
        if items.len() != shape.len() {
            let message = format!("{}d ndarray indexed with {}d indices", shape.len(), items.len());
            return Err(errors::plain(py, Code::IndexCount, message));
        }
        let mut found = Vec::with_capacity(items.len());
        for (axis, (item, &extent)) in items.iter().zip(shape).enumerate() {
            if number::wrapped_integer(item).is_none() {
                let kind = item.get_type().name()?.to_string();
                return Err(errors::plain(
                    py,
                    Code::IndexType,
                    format!("an index is an integer, not {kind}"),
                ));
            }
            // An integer of more than 64 bits is outside of every array.
            let from_zero = match item.extract::<i64>() {
                Ok(i) if i < 0 => i + i64::from(extent),
                Ok(i) => i,
                Err(_) => i64::MAX,
            };
            if !(0..i64::from(extent)).contains(&from_zero) {
                let message =
                    format!("index {item} is out of bounds for axis {axis} of an ndarray of shape {shape:?}");
                return Err(errors::exception(py, "OctantsIndexError", &message));
            }
            found.push(from_zero);
        }
        Ok(found)
    }

    /// The extents that numpy sees: those of the elements come last.
    fn extents(&self) -> Vec<usize> {
        let outer = self.array.shape().iter().map(|&n| n as usize);
        outer.chain(self.element_extents().into_iter().map(|n| n as usize)).collect()
    }

    fn same_shape(&self, view: &numpy::View<'_, '_>) -> bool {
        let shape = self.extents();
        shape.len() == view.shape().len() && shape.iter().zip(view.shape()).all(|(&a, &b)| a as isize == b)
    }

    /// What other libraries may look at.
    pub fn shared(&self, py: Python<'_>) -> PyResult<Shared> {
        let memory = self.array.memory();
        // Says so if the session has ended.
        let address =
            memory.address().map_err(|_| Self::failed(py, &octants::Error::Stale { what: "array" }))?;
        let current = self.runtime.get().current(py)?;
        let scalar = self.array.scalar();
        let mut strides = self.array.strides();
        let mut inner = scalar.bytes() as usize;
        let first = strides.len();
        for extent in self.element_extents().into_iter().rev() {
            strides.insert(first, inner);
            inner *= extent as usize;
        }
        Ok(Shared {
            memory: memory.clone(),
            address: address.0,
            scalar,
            shape: self.extents(),
            strides,
            device: Shared::device_of(current.session.options()),
        })
    }
}

/// The order that a permutation of so many axes means, from the slowest to the fastest.
fn order(layout: Option<Vec<usize>>, rank: usize) -> PyResult<Order> {
    let Some(axes) = layout else { return Ok(Order::ROW_MAJOR) };
    let order = Order::new(&axes).filter(|_| axes.len() == rank);
    order.ok_or_else(|| PyValueError::new_err(format!("layout={axes:?} is not a permutation of {rank} axes")))
}

/// The number that an array without axes is, by the type of Python's of that name.
fn only_element<'py>(array: &Bound<'py, Ndarray>, number: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let shape = array.get().array.shape();
    if !shape.is_empty() {
        let given = element::shape_text(shape.iter().map(|&extent| extent as usize));
        let text = format!("an array of shape {given} is not one number");
        let help = format!("take an element: `{number}(x[i])`");
        let diagnostic = Diagnostic::new(Code::ArrayAsValue, text).help(help);
        return Err(errors::from_diagnostic(py, diagnostic, &SourceMap::new()));
    }
    py.import("builtins")?.getattr(number)?.call1((array.as_any().get_item(py.None())?,))
}

#[pymethods]
impl Ndarray {
    #[new]
    #[pyo3(signature = (runtime, dtype, shape, layout=None))]
    fn new(
        runtime: &Bound<'_, Runtime>,
        dtype: &Bound<'_, PyAny>,
        shape: &Bound<'_, PyAny>,
        layout: Option<Vec<usize>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        host_only::guard(dtype.py(), "ndarray")?;
        let py = dtype.py();
        let element = match aggregate::tensor_type(dtype) {
            Some((elem, shape)) => Data::Tensor(TensorType { elem, shape }),
            None => runtime.get().scalar_of(dtype)?.map(Data::from).ok_or_else(|| {
                let text = dtype.repr().map_or_else(|_| String::new(), |text| text.to_string());
                errors::exception(py, "OctantsRuntimeTypeError", &format!("{text} is not a data type"))
            })?,
        };
        let extents = extents(shape)?;
        let order = order(layout, extents.len())?;
        let current = runtime.get().current(py)?;
        let array = interrupt::waiting_or(
            py,
            |cancel| NdArray::with_order(&current.session, element, &extents, order, cancel),
            Self::failed,
        )?;
        Ok(Exporter::with(Self { array, runtime: runtime.clone().unbind() }))
    }

    /// How many elements there are along each axis.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array.shape())
    }

    /// The axes of an element: `()` for numbers, `(n,)` for vectors, `(n, m)` for matrices.
    #[getter]
    fn element_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.element_extents())
    }

    /// The axes from the slowest to the fastest in memory, if that is not their own order.
    #[getter]
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let order = self.array.order();
        if order == Order::ROW_MAJOR {
            return Ok(None);
        }
        PyTuple::new(py, order.axes(self.array.shape().len()).collect::<Vec<_>>()).map(Some)
    }

    /// The type of the elements, or of their entries.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, DataType> {
        dtype::object_of(py, self.array.scalar()).clone()
    }

    /// The type of the elements: of a vector or matrix, if they are that.
    #[getter]
    fn element_type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.array.element() {
            Data::Tensor(tensor) => aggregate::type_object(py, tensor),
            _ => Ok(self.dtype(py).into_any()),
        }
    }

    /// Sets every element.
    #[pyo3(signature = (val, *, qd_stream=None))]
    fn fill(
        slf: &Bound<'_, Self>,
        val: &Bound<'_, PyAny>,
        qd_stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        host_only::guard(py, "fill")?;
        let on = this.stream(qd_stream)?;
        let constants = element::constants(this.array.element(), val)?;
        let zeros = write_log::are_zeros(&constants);
        let access = if zeros { HostAccess::WritesZeros } else { HostAccess::Writes };
        write_log::tell_watchers(slf, "fill", access)?;
        write_log::host_writes(py, &this.array, "fill", &[])?;
        stream::access(py, this.array.is_at_rest(), on.as_ref(), |queue| this.array.fill(&constants, queue))
    }

    /// Copies all elements of another array of the same type and shape.
    #[pyo3(signature = (other, *, qd_stream=None))]
    fn copy_from(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        qd_stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        host_only::guard(py, "copy_from")?;
        let on = this.stream(qd_stream)?;
        let other = tensor::unwrapped(other);
        let Ok(other) = other.cast::<Ndarray>() else {
            return Err(PyAssertionError::new_err(format!(
                "copy_from takes an ndarray, not {}",
                other.get_type().name()?
            )));
        };
        let (source, other) = (other, &other.get().array);
        let is_alike = other.element().tensor_shape() == this.array.element().tensor_shape();
        if !is_alike || other.shape() != this.array.shape() {
            let text = |array: &NdArray| format!("{} {:?}", array.element(), array.shape());
            return Err(PyAssertionError::new_err(format!(
                "copy_from needs equal shapes, also of the elements: this is {}, the other {}",
                text(&this.array),
                text(other)
            )));
        }
        if other.scalar() != this.array.scalar() {
            let elements = Self::to_numpy(source, None, Some(true), qd_stream)?;
            return Self::from_numpy(slf, &elements, qd_stream);
        }
        write_log::tell_watchers(slf, "copy_from", HostAccess::Writes)?;
        write_log::host_writes(py, &this.array, "copy_from", &[])?;
        let is_at_rest = this.array.is_at_rest() && other.is_at_rest();
        stream::access(py, is_at_rest, on.as_ref(), |queue| this.array.copy_from(other, queue))
    }

    /// A numpy array with the elements. `copy=True`: its own copy. `copy=None`: shares the memory if possible. `copy=False`: shares
    /// the memory or refuses.
    #[pyo3(signature = (dtype=None, *, copy=Some(true), qd_stream=None))]
    fn to_numpy<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
        qd_stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        host_only::guard(slf.py(), "to_numpy")?;
        let py = slf.py();
        let this = slf.get();
        let on = this.stream(qd_stream)?;
        let convert_to = match dtype {
            None => None,
            Some(dtype) => match dtype::type_for_numpy(dtype) {
                Some(scalar) => Some(scalar).filter(|&s| s != this.array.scalar()),
                None => return Err(dtype::no_data_type(dtype)),
            },
        };
        let in_place = match this.array.host_pointer() {
            Ok(_) => true,
            Err(octants::Error::Unsupported { .. }) => false,
            Err(error) => return Err(Self::failed(py, &error)),
        };
        write_log::tell_watchers(slf, "to_numpy", HostAccess::Reads)?;
        if copy != Some(true) && convert_to.is_none() && in_place {
            this.wait(py)?;
            return this.shared(py)?.into_numpy(py);
        }
        if copy == Some(false) {
            let why =
                if in_place { "the data type is to be converted" } else { "the memory is the device's own" };
            return Err(PyValueError::new_err(format!("Zero-copy not available: {why}")));
        }
        let out = this.copied(py, &this.extents(), 0, on.as_ref())?;
        match convert_to {
            Some(scalar) => out.call_method1("astype", (dtype::numpy_name(scalar),)),
            None => Ok(out),
        }
    }

    /// Sets all elements from a numpy array of the same shape; other types are converted.
    #[pyo3(signature = (arr, *, qd_stream=None))]
    fn from_numpy(
        slf: &Bound<'_, Self>,
        arr: &Bound<'_, PyAny>,
        qd_stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        host_only::guard(py, "from_numpy")?;
        let on = this.stream(qd_stream)?;
        let Some(view) = numpy::View::of(arr) else {
            let found = arr.get_type().name()?.to_string();
            return Err(PyTypeError::new_err(format!("from_numpy takes a numpy array, not {found}")));
        };
        if !this.same_shape(&view) {
            let shape = this.extents();
            return Err(PyValueError::new_err(format!(
                "shapes differ: the ndarray has shape {shape:?}, the numpy array {:?}",
                view.shape()
            )));
        }
        numpy::require_numbers(arr)?;
        let dense = numpy::contiguous(arr, this.array.scalar())?;
        let view = numpy::View::of(&dense).ok_or_else(|| errors::bug("numpy.asarray made no array"))?;
        let (data, bytes) = (view.data() as usize, view.bytes());
        write_log::tell_watchers(slf, "from_numpy", HostAccess::Writes)?;
        write_log::host_writes(py, &this.array, "from_numpy", &[])?;
        stream::access(py, this.array.is_at_rest(), on.as_ref(), |queue| {
            // SAFETY: a contiguous array of that many bytes, kept alive by `dense`.
            let from = unsafe { std::slice::from_raw_parts(data as *const u8, bytes) };
            this.array.write(from, queue)
        })
    }

    /// A capsule by which another library looks at the memory, of DLPack's first form or of the one with versions.
    #[pyo3(signature = (versioned=false))]
    fn to_dlpack<'py>(slf: &Bound<'py, Self>, versioned: bool) -> PyResult<Bound<'py, PyAny>> {
        slf.get().wait(slf.py())?;
        shared::to_dlpack(slf, versioned)
    }

    /// What numpy asks for where it cannot look at the memory itself.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        shared::numpy_array(slf, dtype, copy)
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        host_only::guard(slf.py(), "__getitem__")?;
        let (py, this) = (index.py(), slf.get());
        if let Ok(slice) = index.cast::<pyo3::types::PySlice>() {
            return Ok(Bound::new(py, Exporter::with(BufferView::slice(slf, slice)?))?.into_any());
        }
        let position = this.index(index)?;
        write_log::tell_watchers(slf, "__getitem__", HostAccess::Reads)?;
        this.wait(py)?;
        let found =
            this.array.get(&position, HostQueue::default()).map_err(|error| Self::failed(py, &error))?;
        if let Data::Tensor(_) = this.array.element() {
            let numbers =
                found.into_iter().map(|one| dtype::constant_to(py, one)).collect::<PyResult<Vec<_>>>()?;
            let make = py.import("octants._arrays.elements")?.getattr("element")?;
            return make.call1((slf, index, this.element_type(py)?, numbers));
        }
        dtype::constant_to(py, found[0])
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        host_only::guard(value.py(), "__setitem__")?;
        let (this, place) = (slf.get(), index);
        let index = this.index(index)?;
        let constants = element::constants(this.array.element(), value)?;
        let access = HostAccess::WritesElement(place, None, write_log::are_zeros(&constants));
        write_log::tell_watchers(slf, "__setitem__", access)?;
        write_log::host_writes(value.py(), &this.array, "__setitem__", &index)?;
        this.wait_for_streams(value.py())?;
        let set = this.array.set(&index, &constants, HostQueue::default());
        set.map_err(|error| Self::failed(value.py(), &error))
    }

    fn __float__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        only_element(slf, "float")
    }

    fn __int__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        only_element(slf, "int")
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        let shape = this.shape(slf.py())?;
        let element = match this.array.element() {
            Data::Tensor(_) => this.element_type(slf.py())?.repr()?.to_string(),
            _ => this.array.scalar().name().to_owned(),
        };
        let layout = match this.layout(slf.py())? {
            Some(layout) => format!(" layout={}", layout.repr()?),
            None => String::new(),
        };
        Ok(format!("<octants.ndarray {element} {}{layout}>", shape.repr()?))
    }
}
