//! Fields as Python objects: what each is once it is placed, its elements, and its traffic with numpy.

use std::sync::{Arc, OnceLock};

use octants::ir::{Data, TensorShape};
use octants::{FieldKind, FieldLeaf, HostQueue, HostSide, LeafId, LiveStream, Session};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer;
use pyo3::types::{PyDict, PyTuple};

use crate::arrays::exporter::Exporter;
use crate::arrays::field_index::{numbers, place};
use crate::arrays::shared::{self, Shared};
use crate::arrays::tree::Tree;
use crate::arrays::write_log;
use crate::arrays::write_log::HostAccess;
use crate::gateway::{errors, interrupt};
use crate::interop::{dlpack, host_memory, numpy};
use crate::session::stream;
use crate::values::{dtype, element, host_only};

/// A field: scalars, vectors or matrices, or structs of fields. The base of the classes that users see.
#[pyclass(frozen, subclass, weakref, extends = Exporter, module = "octants")]
pub struct Field {
    bound: OnceLock<BoundField>,
    /// Python may run its collector when an object is allocated and not yet written: all of its bytes are zero then.
    is_made: bool,
}

/// What a field is once it is placed.
pub struct BoundField {
    pub session: Session,
    /// Interned by the session.
    pub kind: Arc<FieldKind>,
    /// All leaves: that of a leaf, those of the entries, those of the members one after the other.
    pub leaves: Vec<FieldLeaf>,
    /// The struct type of a struct field, or nothing if it has none.
    pub struct_type: Option<Py<PyAny>>,
}

impl Field {
    /// What the field is. Places it first, if it waits for its tree; raises if it was never placed.
    #[inline]
    pub fn bound<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a BoundField> {
        match slf.get().bound.get() {
            Some(bound) => Ok(bound),
            None => Self::place(slf),
        }
    }

    #[cold]
    fn place<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a BoundField> {
        slf.call_method0("_materialise")?;
        slf.get().bound.get().ok_or_else(|| errors::bug("a field was placed and has no place"))
    }

    fn leaf<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a FieldLeaf> {
        match &*Self::bound(slf)?.leaves {
            [leaf] => Ok(leaf),
            _ => Err(errors::bug("a field of several leaves was taken for one")),
        }
    }

    /// The leaf whose elements a method is about to touch.
    fn data<'a>(slf: &'a Bound<'_, Self>, method: &str) -> PyResult<&'a FieldLeaf> {
        host_only::guard(slf.py(), method)?;
        Self::leaf(slf)
    }

    /// As [`Field::data`], for an element: waits for a device that still works on the field; Ctrl-C ends the wait.
    fn data_at_rest<'a>(slf: &'a Bound<'_, Self>, method: &str) -> PyResult<&'a FieldLeaf> {
        let leaf = Self::data(slf, method)?;
        if !leaf.is_at_rest() {
            interrupt::waiting(slf.py(), |cancel| leaf.wait(HostQueue { stream: None, cancel }))?;
        }
        Ok(leaf)
    }

    /// As [`Field::data_at_rest`], for an element that is written: it has to wait for other streams alone.
    fn data_to_write<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a FieldLeaf> {
        let leaf = Self::data(slf, "__setitem__")?;
        if leaf.is_used_by_streams() { Self::data_at_rest(slf, "__setitem__") } else { Ok(leaf) }
    }

    /// The stream that a copy of the host joins.
    fn stream(slf: &Bound<'_, Self>, qd_stream: Option<&Bound<'_, PyAny>>) -> PyResult<Option<LiveStream>> {
        stream::live_in(qd_stream, |_| Ok(Self::bound(slf)?.session.clone()))
    }

    /// One element is about to be written.
    fn tell_of_element(
        slf: &Bound<'_, Self>,
        leaf: &FieldLeaf,
        index: &Bound<'_, PyAny>,
        entry: Option<usize>,
        constants: &[octants::ir::Const],
    ) -> PyResult<()> {
        if write_log::is_open() {
            let zeros = write_log::are_zeros(constants);
            write_log::tell_watchers(slf, "__setitem__", HostAccess::WritesElement(index, entry, zeros))?;
            write_log::host_writes_leaf(index.py(), leaf, "__setitem__", &numbers(leaf, index)?)?;
        }
        Ok(())
    }

    fn bind(&self, bound: BoundField) -> PyResult<()> {
        self.bound.set(bound).map_err(|_| errors::bug("a field was placed twice"))
    }

    /// Binds what is made of bound parts. Another thread may have come first, with the same.
    fn bind_parts(&self, bound: BoundField) {
        let _ = self.bound.set(bound);
    }

    fn bind_leaf_of(&self, session: &Session, leaf: FieldLeaf) -> PyResult<()> {
        let kind = session.intern_field_kind(leaf.kind());
        self.bind(BoundField { session: session.clone(), kind, leaves: vec![leaf], struct_type: None })
    }
}

/// What the host does with elements that may not be there: kernels of the package do it.
fn by_kernel<'py>(
    field: &Bound<'py, Field>,
    what: &str,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = field.py();
    let arguments = arguments.into_pyobject(py)?;
    let module = py.import("octants._fields.sparse_access")?;
    let all = std::iter::once(field.as_any().clone()).chain(arguments.iter());
    module.getattr(what)?.call1(PyTuple::new(py, all.collect::<Vec<_>>())?)
}

/// A value for each entry of an element.
fn entries_of<'py>(
    py: Python<'py>,
    leaf: &FieldLeaf,
    constants: &[octants::ir::Const],
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let count = if constants.len() == 1 { leaf.entries() } else { constants.len() };
    let each = (0..count).map(|entry| constants[entry.min(constants.len() - 1)]);
    each.map(|constant| dtype::constant_to(py, constant)).collect()
}

fn failed(py: Python<'_>, error: &octants::Error) -> PyErr {
    errors::from_error(py, error)
}

/// The extents that numpy sees: those of the elements come last.
fn extents(leaf: &FieldLeaf) -> Vec<usize> {
    let element = leaf.elem().tensor_shape().map_or_else(Vec::new, TensorShape::dims);
    leaf.layout().shape.iter().chain(&element).map(|&n| n as usize).collect()
}

#[pymethods]
impl Field {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyClassInitializer<Self> {
        Exporter::with(Self { bound: OnceLock::new(), is_made: true })
    }

    // ---- placing ----

    #[getter]
    fn _is_bound(&self) -> bool {
        self.bound.get().is_some()
    }

    /// Whether it has memory in a session that has not ended.
    #[getter]
    fn _is_live(&self) -> bool {
        self.bound.get().is_some_and(|bound| bound.leaves.iter().all(|leaf| leaf.address().is_ok()))
    }

    /// Whether elements may not be there.
    #[getter]
    fn _is_sparse(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Ok(Self::bound(slf)?.leaves.iter().any(FieldLeaf::is_sparse))
    }

    /// The elements of a leaf of a finished tree.
    fn _bind_leaf(&self, py: Python<'_>, tree: &Bound<'_, Tree>, leaf: u32, name: &str) -> PyResult<()> {
        let session = tree.get().session();
        let leaf = tree.get().finished(py)?.leaf(session, LeafId::new(leaf), name.into());
        self.bind_leaf_of(session, leaf)
    }

    /// One entry of the elements of another field.
    fn _bind_entry(&self, whole: &Bound<'_, Field>, entry: usize, name: &str) -> PyResult<()> {
        let leaf =
            Self::leaf(whole)?.entry(entry, name.into()).map_err(|error| failed(whole.py(), &error))?;
        self.bind_leaf_of(&Self::bound(whole)?.session, leaf)
    }

    /// Vectors or matrices whose entries are fields.
    fn _bind_entries(&self, shape: Vec<u16>, entries: Vec<Bound<'_, Field>>) -> PyResult<()> {
        let shape = match *shape {
            [n] => TensorShape::Vector(n),
            [n, m] => TensorShape::Matrix(n, m),
            _ => return Err(PyValueError::new_err("elements are vectors or matrices")),
        };
        let (mut kinds, mut leaves, mut session) = (Vec::new(), Vec::new(), None);
        for entry in &entries {
            let bound = Self::bound(entry)?;
            kinds.push(Arc::clone(&bound.kind));
            leaves.extend_from_slice(&bound.leaves);
            session = Some(bound.session.clone());
        }
        let session = session.ok_or_else(|| errors::bug("a vector without entries"))?;
        let kind = session.intern_field_kind(FieldKind::Entries { shape, entries: kinds });
        self.bind_parts(BoundField { session, kind, leaves, struct_type: None });
        Ok(())
    }

    /// Structs whose members are fields.
    fn _bind_members(
        &self,
        members: Vec<(String, Bound<'_, Field>)>,
        struct_type: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let (mut kinds, mut leaves, mut session) = (Vec::new(), Vec::new(), None);
        for (name, member) in &members {
            let bound = Self::bound(member)?;
            kinds.push((name.clone(), Arc::clone(&bound.kind)));
            leaves.extend_from_slice(&bound.leaves);
            session = Some(bound.session.clone());
        }
        let session = session.ok_or_else(|| errors::bug("a struct without members"))?;
        let kind = session.intern_field_kind(FieldKind::Struct { members: kinds });
        self.bind_parts(BoundField { session, kind, leaves, struct_type });
        Ok(())
    }

    /// A struct type has methods, whose functions may lead back to the field.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if !self.is_made {
            return Ok(());
        }
        self.bound.get().map_or(Ok(()), |bound| visit.call(&bound.struct_type))
    }

    // ---- what it is ----

    /// The extents of the axes, once it is placed.
    fn _extents<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let bound = Self::bound(slf)?;
        let leaf = bound.leaves.first().ok_or_else(|| errors::bug("a field without elements"))?;
        PyTuple::new(slf.py(), &leaf.layout().shape)
    }

    /// The index of the first element.
    fn _origin<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let bound = Self::bound(slf)?;
        let leaf = bound.leaves.first().ok_or_else(|| errors::bug("a field without elements"))?;
        PyTuple::new(slf.py(), &leaf.layout().origin)
    }

    /// Addresses of the leaves' first elements.
    fn _addresses(slf: &Bound<'_, Self>) -> PyResult<Vec<u64>> {
        host_only::guard(slf.py(), "_addresses")?;
        let leaves = Self::bound(slf)?.leaves.iter();
        leaves.map(|leaf| leaf.address().map_err(|error| failed(slf.py(), &error))).collect()
    }

    // ---- elements ----

    /// A host index, checked, as a tuple of integers.
    fn _checked<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        host_only::guard(slf.py(), "__getitem__")?;
        let bound = Self::bound(slf)?;
        let leaf = bound.leaves.first().ok_or_else(|| errors::bug("a field without elements"))?;
        place(leaf, index)?;
        leaf.address().map_err(|error| failed(slf.py(), &error))?;
        PyTuple::new(slf.py(), numbers(leaf, index)?)
    }

    /// The scalars of one element.
    fn _get<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (py, leaf) = (slf.py(), Self::data_at_rest(slf, "__getitem__")?);
        let place = place(leaf, index)?;
        write_log::tell_watchers(slf, "__getitem__", HostAccess::Reads)?;
        if leaf.is_sparse() {
            return by_kernel(slf, "element", (numbers(leaf, index)?,))?.extract();
        }
        let found = leaf.get(place, HostQueue::default()).map_err(|error| failed(py, &error))?;
        found.into_iter().map(|one| dtype::constant_to(py, one)).collect()
    }

    /// Sets one entry of an element.
    fn _set_entry(
        slf: &Bound<'_, Self>,
        index: &Bound<'_, PyAny>,
        entry: usize,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let leaf = Self::data_to_write(slf)?;
        let place = place(leaf, index)?;
        let constant = element::constant(leaf.scalar(), value)?;
        Self::tell_of_element(slf, leaf, index, Some(entry), &[constant])?;
        if leaf.is_sparse() {
            let value = dtype::constant_to(slf.py(), constant)?;
            return by_kernel(slf, "set_entry", (numbers(leaf, index)?, entry, value)).map(drop);
        }
        leaf.set(place, entry, &[constant], HostQueue::default()).map_err(|error| failed(slf.py(), &error))
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, leaf) = (slf.py(), Self::data_at_rest(slf, "__getitem__")?);
        let place = place(leaf, index)?;
        write_log::tell_watchers(slf, "__getitem__", HostAccess::Reads)?;
        if leaf.is_sparse() {
            return by_kernel(slf, "element", (numbers(leaf, index)?,))?.get_item(0);
        }
        let found = leaf.get(place, HostQueue::default()).map_err(|error| failed(py, &error))?;
        dtype::constant_to(py, found[0])
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let leaf = Self::data_to_write(slf)?;
        let place = place(leaf, index)?;
        let constants = element::constants(leaf.elem(), value)?;
        Self::tell_of_element(slf, leaf, index, None, &constants)?;
        if leaf.is_sparse() {
            let values = entries_of(slf.py(), leaf, &constants)?;
            return by_kernel(slf, "set_element", (numbers(leaf, index)?, values)).map(drop);
        }
        leaf.set(place, 0, &constants, HostQueue::default()).map_err(|error| failed(slf.py(), &error))
    }

    // ---- all elements ----

    #[pyo3(signature = (value, qd_stream=None))]
    fn _fill(
        slf: &Bound<'_, Self>,
        value: &Bound<'_, PyAny>,
        qd_stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (leaf, on) = (Self::data(slf, "fill")?, Self::stream(slf, qd_stream)?);
        let constants = element::constants(leaf.elem(), value)?;
        let zeros = write_log::are_zeros(&constants);
        let access = if zeros { HostAccess::WritesZeros } else { HostAccess::Writes };
        write_log::tell_watchers(slf, "fill", access)?;
        write_log::host_writes_leaf(slf.py(), leaf, "fill", &[])?;
        if leaf.is_sparse() {
            let values = entries_of(slf.py(), leaf, &constants)?;
            return by_kernel(slf, "fill", (values, qd_stream)).map(drop);
        }
        stream::access(slf.py(), leaf.is_at_rest(), on.as_ref(), |queue| leaf.fill(&constants, queue))
    }

    /// A new numpy array with all elements.
    #[pyo3(signature = (qd_stream=None))]
    fn _read<'py>(
        slf: &Bound<'py, Self>,
        qd_stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, leaf, on) = (slf.py(), Self::data(slf, "to_numpy")?, Self::stream(slf, qd_stream)?);
        write_log::tell_watchers(slf, "to_numpy", HostAccess::Reads)?;
        if leaf.is_sparse() {
            return by_kernel(slf, "read", (extents(leaf), qd_stream));
        }
        let out = host_memory::empty(py, &extents(leaf), leaf.scalar())?;
        let view = numpy::View::of(&out).ok_or_else(|| errors::bug("numpy.empty made no array"))?;
        let (data, bytes) = (view.data() as usize, leaf.bytes() as usize);
        stream::access(py, leaf.is_at_rest(), on.as_ref(), |queue| {
            leaf.wait(queue)?;
            // SAFETY: the new array has as many bytes, and nobody else knows it yet.
            let to = unsafe { std::slice::from_raw_parts_mut(data as *mut u8, bytes) };
            leaf.read(to, None, queue)
        })?;
        Ok(out)
    }

    /// Sets all elements from a numpy array of as many; other types are converted.
    #[pyo3(signature = (array, qd_stream=None))]
    fn _write(
        slf: &Bound<'_, Self>,
        array: &Bound<'_, PyAny>,
        qd_stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (py, leaf, on) = (slf.py(), Self::data(slf, "from_numpy")?, Self::stream(slf, qd_stream)?);
        write_log::tell_watchers(slf, "from_numpy", HostAccess::Writes)?;
        let dense = numpy::contiguous(array, leaf.scalar())?;
        if leaf.is_sparse() {
            return by_kernel(slf, "write", (dense, qd_stream)).map(drop);
        }
        let view = numpy::View::of(&dense).ok_or_else(|| errors::bug("numpy.asarray made no array"))?;
        let (data, bytes) = (view.data() as usize, view.bytes());
        write_log::host_writes_leaf(py, leaf, "from_numpy", &[])?;
        stream::access(py, leaf.is_at_rest(), on.as_ref(), |queue| {
            // SAFETY: a contiguous array of that many bytes, kept alive by `dense`.
            let from = unsafe { std::slice::from_raw_parts(data as *const u8, bytes) };
            leaf.write(from, None, queue)
        })
    }

    /// Copies all elements of fields of one scalar type from a contiguous array of that type, whose last axis counts the fields; without an
    /// array to a new one, which is returned.
    #[pyo3(signature = (fields, array, qd_stream=None))]
    fn _copy_together<'py>(
        _slf: &Bound<'py, Self>,
        fields: Vec<Bound<'py, Self>>,
        array: Option<Bound<'py, PyAny>>,
        qd_stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(first) = fields.first() else { return Err(errors::bug("no fields to copy")) };
        let (py, on) = (first.py(), Self::stream(first, qd_stream)?);
        let to_array = array.is_none();
        let name = if to_array { "to_numpy" } else { "from_numpy" };
        let leaves = fields.iter().map(|field| Self::data(field, name)).collect::<PyResult<Vec<_>>>()?;
        let scalar = leaves[0].scalar();
        for field in &fields {
            let access = if to_array { HostAccess::Reads } else { HostAccess::Writes };
            write_log::tell_watchers(field, name, access)?;
        }
        let array = if let Some(array) = array {
            array
        } else {
            let mut shape = extents(leaves[0]);
            shape.push(leaves.len());
            host_memory::empty(py, &shape, scalar)?
        };
        if leaves.iter().any(|leaf| leaf.is_sparse()) {
            for (number, field) in fields.iter().enumerate() {
                by_kernel(field, "copy_among", (&array, number, fields.len(), to_array, qd_stream))?;
            }
            return Ok(to_array.then_some(array));
        }
        let view = numpy::View::of(&array).filter(|view| {
            view.is_c_contiguous() && view.scalar() == Some(scalar) && (!to_array || view.is_writeable())
        });
        let view =
            view.ok_or_else(|| errors::bug("elements are copied among those of a contiguous array"))?;
        let (data, bytes) = (view.data() as usize, view.bytes());
        if !to_array {
            for leaf in &leaves {
                write_log::host_writes_leaf(py, leaf, "from_numpy", &[])?;
            }
        }
        let at_rest = leaves.iter().all(|leaf| leaf.is_at_rest());
        stream::access(py, at_rest, on.as_ref(), |queue| {
            leaves.iter().try_for_each(|leaf| leaf.wait(queue))?;
            // SAFETY: a contiguous array of that many bytes, kept alive by the caller; one that is written is new, and nobody else knows it.
            let host = unsafe {
                if to_array {
                    HostSide::Written(std::slice::from_raw_parts_mut(data as *mut u8, bytes))
                } else {
                    HostSide::Read(std::slice::from_raw_parts(data as *const u8, bytes))
                }
            };
            FieldLeaf::copy_together(&leaves, host, queue)
        })?;
        Ok(to_array.then_some(array))
    }

    /// Copies all elements of other fields to these as they lie in memory, if both have the same elements and the host sees them; says whether they are such.
    #[pyo3(signature = (to, from, qd_stream=None))]
    fn _copy_leaves(
        _slf: &Bound<'_, Self>,
        to: Vec<Bound<'_, Self>>,
        from: Vec<Bound<'_, Self>>,
        qd_stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let Some(first) = to.first() else { return Ok(false) };
        let (py, on) = (first.py(), Self::stream(first, qd_stream)?);
        let leaves = |fields: &[Bound<'_, Self>]| -> PyResult<Vec<FieldLeaf>> {
            fields.iter().map(|field| Self::data(field, "copy_from").cloned()).collect()
        };
        let (to, from) = (leaves(&to)?, leaves(&from)?);
        for leaf in &to {
            write_log::host_writes_leaf(py, leaf, "copy_from", &[])?;
        }
        let at_rest = to.iter().chain(&from).all(FieldLeaf::is_at_rest);
        let (to, from): (Vec<_>, Vec<_>) = (to.iter().collect(), from.iter().collect());
        let mut are_copied = false;
        stream::access(py, at_rest, on.as_ref(), |queue| {
            are_copied = FieldLeaf::copy_leaves(&to, &from, queue)?;
            Ok(())
        })?;
        Ok(are_copied)
    }

    /// The elements in place, as a numpy array, if they lie densely in the host's memory and each axis has one stride.
    fn _alias<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match Shared::of(slf)?.filter(Shared::is_on_host) {
            Some(shared) => shared.into_numpy(slf.py()).map(Some),
            None => Ok(None),
        }
    }

    /// A capsule by which another library looks at the memory, of DLPack's first form or of the one with versions.
    #[pyo3(signature = (versioned=false))]
    fn _to_dlpack<'py>(slf: &Bound<'py, Self>, versioned: bool) -> PyResult<Bound<'py, PyAny>> {
        shared::to_dlpack(slf, versioned)
    }
}

impl Field {
    /// Waits for a device that still works on it; Ctrl-C ends the wait.
    pub fn wait(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::data_at_rest(slf, "to_numpy").map(drop)
    }

    /// The device that its memory is on, in DLPack's words.
    pub fn device(slf: &Bound<'_, Self>) -> PyResult<Option<dlpack::Device>> {
        Ok(Shared::device_of(Self::bound(slf)?.session.options()))
    }

    /// What other libraries may look at: the elements of one leaf, if they lie densely and each axis has one stride.
    pub fn shared(slf: &Bound<'_, Self>) -> PyResult<Option<Shared>> {
        let py = slf.py();
        let bound = Self::bound(slf)?;
        let [leaf] = &*bound.leaves else { return Ok(None) };
        let (true, Some(strides)) = (leaf.is_compact(), leaf.strides()) else { return Ok(None) };
        let memory = leaf.tree().memory().map_err(|error| failed(py, &error))?;
        let address = leaf.address().map_err(|error| failed(py, &error))?;
        let scalar = leaf.scalar();
        let mut strides: Vec<_> = strides.into_iter().map(|stride| stride as usize).collect();
        let width = scalar.bytes() as usize;
        match leaf.elem() {
            Data::Tensor(tensor) => match tensor.shape {
                TensorShape::Vector(_) => strides.push(width),
                TensorShape::Matrix(_, m) => strides.extend([usize::from(m) * width, width]),
            },
            Data::Scalar(_) | Data::Struct(_) => {}
        }
        let device = Shared::device_of(bound.session.options());
        Ok(Some(Shared { memory, address, scalar, shape: extents(leaf), strides, device }))
    }
}
