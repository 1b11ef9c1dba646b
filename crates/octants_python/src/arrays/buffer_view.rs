//! `BufferView`: a part of an array along its first axis, without a copy.

use octants::HostQueue;
use octants::ir::{Order, TensorShape};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer;
use pyo3::types::{PySlice, PyTuple};

use crate::arrays::exporter::Exporter;
use crate::arrays::field::Field;
use crate::arrays::ndarray::Ndarray;
use crate::arrays::shared::{self, Shared};
use crate::arrays::tensor;
use crate::arrays::write_log::{self, HostAccess};
use crate::gateway::interrupt;
use crate::values::host_only;

/// What may not be asked while compiling: the code would keep the answer, and other launches have other ranges.
const RANGE: &str = "BufferView.size";

/// A contiguous part of an ndarray along its first axis: ``array[a:b]``. Keeps the array alive.
#[pyclass(frozen, weakref, extends = Exporter, module = "octants")]
pub struct BufferView {
    pub ndarray: Py<Ndarray>,
    /// In elements of the first axis.
    pub offset: i32,
    pub size: i32,
}

impl BufferView {
    /// `array[a:b]`.
    pub fn slice(ndarray: &Bound<'_, Ndarray>, slice: &Bound<'_, PySlice>) -> PyResult<Self> {
        let length = viewed_length(ndarray)?;
        let (offset, size) = bounds(slice, length)?;
        Ok(Self { ndarray: ndarray.clone().unbind(), offset, size })
    }

    /// A part of this view, which lies inside.
    fn part(&self, py: Python<'_>, offset: i32, size: i32) -> PyResult<Py<Self>> {
        let part = Self { ndarray: self.ndarray.clone_ref(py), offset: self.offset + offset, size };
        Py::new(py, Exporter::with(part))
    }

    /// Bytes of one index of the first axis.
    fn stride(&self) -> usize {
        let array = &self.ndarray.get().array;
        let rows: usize = array.shape()[1..].iter().map(|&extent| extent as usize).product();
        rows * array.entries() * array.scalar().bytes() as usize
    }

    /// The extents that numpy sees.
    fn extents(&self) -> Vec<usize> {
        let array = &self.ndarray.get().array;
        let inner = array.element().tensor_shape().map_or_else(Vec::new, TensorShape::dims);
        let outer = std::iter::once(self.size).chain(array.shape()[1..].iter().copied());
        outer.map(|extent| extent as usize).chain(inner.into_iter().map(|extent| extent as usize)).collect()
    }

    pub fn first_byte(&self) -> usize {
        self.offset as usize * self.stride()
    }

    /// What other libraries may look at.
    pub fn shared(&self, py: Python<'_>) -> PyResult<Shared> {
        write_log::tell_watchers(self.ndarray.bind(py), "to_numpy", HostAccess::Reads)?;
        let whole = self.ndarray.get().shared(py)?;
        Ok(Shared { address: whole.address + self.first_byte() as u64, shape: self.extents(), ..whole })
    }
}

/// The extent of an array's first axis, if it has views: that axis must be the slowest.
fn viewed_length(ndarray: &Bound<'_, Ndarray>) -> PyResult<i32> {
    let array = &ndarray.get().array;
    if array.order() != Order::ROW_MAJOR {
        return Err(PyTypeError::new_err(
            "an ndarray with a layout has no views: its rows do not lie side by side",
        ));
    }
    let first = array.shape().first().copied();
    first.ok_or_else(|| PyTypeError::new_err("an ndarray without axes has no views"))
}

/// Where a slice begins and how long it is, clamped to the length as Python does.
fn bounds(slice: &Bound<'_, PySlice>, length: i32) -> PyResult<(i32, i32)> {
    let step = slice.getattr("step")?;
    if !step.is_none() && !step.eq(1)? {
        return Err(PyValueError::new_err(format!("BufferView slice requires step=1, got step={step}")));
    }
    let indices = slice.indices(length as isize)?;
    let size = (indices.stop - indices.start).max(0);
    Ok((indices.start as i32, size as i32))
}

/// A part that lies inside of a length, if it does.
fn part(offset: &Bound<'_, PyAny>, size: &Bound<'_, PyAny>, length: i32) -> PyResult<Option<(i32, i32)>> {
    let (Some(offset), Some(size)) = (small(offset)?, small(size)?) else { return Ok(None) };
    let inside = offset >= 0 && size >= 0 && i64::from(offset) + i64::from(size) <= i64::from(length);
    Ok(inside.then_some((offset, size)))
}

/// An integer, if it fits.
fn small(number: &Bound<'_, PyAny>) -> PyResult<Option<i32>> {
    match number.extract::<i32>() {
        Ok(number) => Ok(Some(number)),
        Err(error) if error.is_instance_of::<PyOverflowError>(number.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

#[pymethods]
impl BufferView {
    /// In a kernel, too: the compiler finds the mark.
    #[classattr]
    fn __octants__() -> &'static str {
        "BufferView"
    }

    #[new]
    fn new(
        arr: &Bound<'_, PyAny>,
        offset: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let ndarray = tensor::unwrapped(arr);
        if ndarray.is_instance_of::<BufferView>() {
            return Err(PyTypeError::new_err(
                "Cannot nest BufferView(view, ...); use view.subview(offset, size) instead",
            ));
        }
        let Ok(ndarray) = ndarray.cast::<Ndarray>() else {
            let found = ndarray.get_type().name()?.to_string();
            let hint = if ndarray.is_instance_of::<Field>() {
                "; a field has no views: keep the data in an oc.ndarray, or pass the field and an offset"
            } else {
                ""
            };
            let message = format!("a BufferView is made of an ndarray, not of {found}{hint}");
            return Err(PyTypeError::new_err(message));
        };
        let length = viewed_length(ndarray)?;
        let Some((offset, size)) = part(offset, size, length)? else {
            return Err(PyValueError::new_err(format!(
                "BufferView construction out of range: offset={offset}, size={size}, ndarray length={length}"
            )));
        };
        Ok(Exporter::with(Self { ndarray: ndarray.clone().unbind(), offset, size }))
    }

    /// ``BufferView[oc.f32]`` or ``BufferView[oc.f32, "clamp"]``, an annotation.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, pyo3::types::PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let annotation = class.py().import("octants.types")?.getattr("BufferViewType")?;
        match item.cast::<PyTuple>() {
            Ok(items) if items.is_empty() || items.len() > 2 => Err(PyTypeError::new_err(format!(
                "BufferView[dtype, boundary] takes one or two arguments, not {}",
                items.len()
            ))),
            Ok(items) => annotation.call1(items.clone()),
            Err(_) => annotation.call1((item,)),
        }
    }

    /// A copy of a view is a view of the same array; a deep copy, and a pickled one, is one of a copy of the whole array.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.get();
        let arguments = (&this.ndarray, this.offset, this.size);
        Ok((slf.get_type(), arguments).into_pyobject(slf.py())?.into_any())
    }

    /// How many elements, or rows, there are.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<i32> {
        host_only::guard(py, RANGE)?;
        Ok(self.size)
    }

    /// Where the view begins in its array.
    #[getter]
    fn offset(&self, py: Python<'_>) -> PyResult<i32> {
        host_only::guard(py, RANGE)?;
        Ok(self.offset)
    }

    /// How many elements there are along each axis.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        host_only::guard(py, RANGE)?;
        let rest = &self.ndarray.get().array.shape()[1..];
        let extents: Vec<_> = std::iter::once(self.size).chain(rest.iter().copied()).collect();
        PyTuple::new(py, extents)
    }

    /// The type of the elements, or of their entries.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.ndarray.bind(py).getattr("dtype")
    }

    /// The array that this is a part of.
    fn get_ndarray(&self, py: Python<'_>) -> Py<Ndarray> {
        self.ndarray.clone_ref(py)
    }

    /// A part of this view: ``size`` elements from ``offset`` on.
    fn subview(
        &self,
        py: Python<'_>,
        offset: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
    ) -> PyResult<Py<Self>> {
        let Some((offset, size)) = part(offset, size, self.size)? else {
            let parent = self.size;
            return Err(PyValueError::new_err(format!(
                "subview out of range: offset={offset}, size={size}, parent size={parent}"
            )));
        };
        self.part(py, offset, size)
    }

    fn __getitem__(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        let Ok(slice) = index.cast::<PySlice>() else {
            let found = index.get_type().name()?.to_string();
            return Err(PyTypeError::new_err(format!(
                "BufferView host-side indexing requires a slice, got {found}; read elements through the ndarray, or to_numpy()"
            )));
        };
        let (offset, size) = bounds(slice, self.size)?;
        self.part(py, offset, size)
    }

    /// A numpy array with the elements; ``copy=False`` or ``None`` shares the memory.
    #[pyo3(signature = (*, copy=Some(true), qd_stream=None))]
    fn to_numpy<'py>(
        slf: &Bound<'py, Self>,
        copy: Option<bool>,
        qd_stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        host_only::guard(py, "to_numpy")?;
        let ndarray = this.ndarray.get();
        let (array, on) = (&ndarray.array, ndarray.stream(qd_stream)?);
        if let Some(on) = &on {
            interrupt::waiting(py, |cancel| array.wait(HostQueue { stream: Some(on), cancel }))?;
        }
        if !matches!(array.host_pointer(), Err(octants::Error::Unsupported { .. })) {
            this.ndarray.get().wait(py)?;
            let shared = this.shared(py)?.into_numpy(py)?;
            return if copy == Some(true) { shared.call_method0("copy") } else { Ok(shared) };
        }
        if copy == Some(false) {
            return Err(PyValueError::new_err("Zero-copy not available: the memory is the device's own"));
        }
        write_log::tell_watchers(this.ndarray.bind(py), "to_numpy", HostAccess::Reads)?;
        ndarray.copied(py, &this.extents(), this.first_byte(), on.as_ref())
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

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        host_only::guard(py, RANGE)?;
        Ok(self.size as usize)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let of = self.ndarray.bind(py).repr()?;
        Ok(format!("<octants.BufferView {}:{} of {of}>", self.offset, self.offset + self.size))
    }
}
