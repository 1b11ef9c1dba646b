//! Logs of who writes which arrays, while tapes are open. The log itself is the facade's; here is who tells it: methods by which the host writes, and
//! launches (`launch/tape_checks`).
//!
//! While no log is open, telling costs a look at one flag.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use octants::{ArrayMemory, FieldLeaf, Interval, MemoryKind, NdArray, Region};
use pyo3::intern;
use pyo3::prelude::*;

use crate::arrays::field::Field;
use crate::arrays::ndarray::Ndarray;
use crate::arrays::tensor;
use crate::interop::foreign::is_torch_tensor;

/// The logs that are open, and whether there is one.
static OPEN: Mutex<Vec<Py<WriteLog>>> = Mutex::new(Vec::new());
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Who wrote what, since it was opened.
#[pyclass(frozen, weakref, module = "octants")]
pub struct WriteLog {
    log: Mutex<octants::WriteLog>,
    /// Whether somebody sees to the derivatives of what is written now.
    is_recording: AtomicBool,
    /// Whether launches are no part of it.
    is_of_host: bool,
    /// What is surely written, of one that launches are no part of.
    sure: Mutex<Vec<Region>>,
}

impl WriteLog {
    pub fn log(&self) -> MutexGuard<'_, octants::WriteLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who has written to the region in an entry from `number` on.
    pub fn writer_in(&self, number: usize, region: &Region) -> Option<String> {
        self.log().writer_since(number, region).map(str::to_owned)
    }

    fn sure(&self) -> MutexGuard<'_, Vec<Region>> {
        self.sure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These are surely written.
    pub fn note_sure(&self, regions: impl IntoIterator<Item = Region>) {
        let mut sure = self.sure();
        for region in regions {
            if !sure.contains(&region) {
                sure.push(region);
            }
        }
    }

    /// What of a region is not surely written.
    pub fn not_sure_of(&self, region: Region) -> Vec<Region> {
        region.without(&*self.sure())
    }
}

#[pymethods]
impl WriteLog {
    /// With `of_host`, launches are no part of it.
    #[new]
    #[pyo3(signature = (of_host=false))]
    fn new(of_host: bool) -> Self {
        Self {
            log: Mutex::default(),
            is_recording: AtomicBool::new(false),
            is_of_host: of_host,
            sure: Mutex::default(),
        }
    }

    /// All of an array or field is written.
    fn note(&self, object: &Bound<'_, PyAny>, writer: &str) -> PyResult<()> {
        let regions = regions_of(object)?;
        self.note_sure(regions.iter().cloned());
        self.log().add(writer.to_owned(), true, regions);
        Ok(())
    }

    /// Begins to take notes.
    fn open(slf: &Bound<'_, Self>) {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.push(slf.clone().unbind());
        IS_OPEN.store(true, Ordering::Release);
    }

    /// Ends it. What was noted stays.
    fn close(slf: &Bound<'_, Self>) {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|log| !log.is(slf));
        IS_OPEN.store(!open.is_empty(), Ordering::Release);
    }

    /// Whether a launch whose derivative is taken care of has written to an array or field.
    fn has_recorded(&self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (regions, log) = (regions_of(object)?, self.log());
        Ok(regions.iter().any(|region| log.has_recorded(region)))
    }

    /// Who has written to an array or field in an entry from `number` on whose derivative nobody takes care of.
    fn host_writer_since(&self, object: &Bound<'_, PyAny>, number: usize) -> PyResult<Option<String>> {
        let (regions, log) = (regions_of(object)?, self.log());
        let writer = regions.iter().find_map(|region| log.unrecorded_writer_since(number, region));
        Ok(writer.map(str::to_owned))
    }

    /// Who has written to an array or field in an entry from `number` on.
    fn writer_since(&self, object: &Bound<'_, PyAny>, number: usize) -> PyResult<Option<String>> {
        let (regions, log) = (regions_of(object)?, self.log());
        let writer = regions.iter().find_map(|region| log.writer_since(number, region));
        Ok(writer.map(str::to_owned))
    }

    /// How many entries there are.
    #[getter]
    fn entries(&self) -> usize {
        self.log().entries()
    }

    /// Whether somebody sees to the derivatives of what is written from now on; gives what was said before.
    fn record(&self, is_recording: bool) -> bool {
        self.is_recording.swap(is_recording, Ordering::AcqRel)
    }
}

/// Whether somebody takes notes.
#[inline]
pub fn is_open() -> bool {
    IS_OPEN.load(Ordering::Acquire)
}

#[cold]
fn tell(py: Python<'_>, what: &str, region: Region, is_sure: bool) -> PyResult<()> {
    let regions = [region];
    if is_sure {
        for log in open_logs(py).iter().map(Py::get).filter(|log| log.is_of_host) {
            log.note_sure(regions.iter().cloned());
        }
    }
    tell_of(py, what, "at", &regions, false)
}

fn open_logs(py: Python<'_>) -> Vec<Py<WriteLog>> {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.iter().map(|log| log.clone_ref(py)).collect()
}

/// `where_to` says where it was written, as seen from the line of the program that runs now.
pub fn tell_of(
    py: Python<'_>,
    what: &str,
    where_to: &str,
    regions: &[Region],
    by_launch: bool,
) -> PyResult<()> {
    if regions.is_empty() {
        return Ok(());
    }
    let line = user_line(py)?;
    let writer = if line.is_empty() { what.to_owned() } else { format!("{what} {where_to} {line}") };
    for log in open_logs(py) {
        let log = log.get();
        if by_launch && log.is_of_host {
            continue;
        }
        let is_recording = log.is_recording.load(Ordering::Acquire);
        log.log().add(writer.clone(), is_recording, regions.iter().cloned());
    }
    Ok(())
}

fn element(index: &[i64]) -> Vec<Interval> {
    index.iter().map(|&index| Interval::one(index)).collect()
}

/// The host writes an ndarray, or one element of it, by a method of this name.
#[inline]
pub fn host_writes(py: Python<'_>, array: &NdArray, method: &str, index: &[i64]) -> PyResult<()> {
    if !is_open() {
        return Ok(());
    }
    let Some(region) = array_region(array, index) else { return Ok(()) };
    // One entry of an element may be meant.
    let is_sure = array.entries() == 1 || method != "__setitem__";
    tell(py, &format!("`{method}`"), region, is_sure)
}

/// All of an array or field, or of a tensor of torch's.
pub fn regions_of(object: &Bound<'_, PyAny>) -> PyResult<Vec<Region>> {
    let object = tensor::unwrapped(object);
    if is_torch_tensor(object) {
        return Ok(vec![torch_region(object)?]);
    }
    if let Ok(array) = object.cast::<Ndarray>() {
        return Ok(array_region(&array.get().array, &[]).into_iter().collect());
    }
    match object.cast::<Field>() {
        Ok(field) => {
            let leaves = Field::bound(field)?.leaves.iter();
            Ok(leaves.filter_map(|leaf| leaf_region(leaf, &[])).collect())
        }
        Err(_) => Ok(Vec::new()),
    }
}

fn array_region(array: &NdArray, index: &[i64]) -> Option<Region> {
    let first = array.memory().address().ok()?;
    let bytes = u64::from(array.scalar().bytes()) * array.entries() as u64;
    let extents = array.shape().iter().map(|&extent| extent.into()).collect();
    let strides = array.strides().into_iter().map(|stride| stride as i64).collect();
    let array = ArrayMemory { first: first.0, bytes, kind: MemoryKind::Array { extents, strides } };
    Some(Region { array, indices: element(index) })
}

fn leaf_region(leaf: &FieldLeaf, index: &[i64]) -> Option<Region> {
    let first = leaf.first_address().ok()?;
    let bytes = u64::from(leaf.scalar().bytes()) * leaf.entries() as u64;
    let kind = MemoryKind::Field { span: leaf.layout().span(bytes as u32) };
    // Where an index lies in cells that come and go is known to kernels alone.
    let indices = if leaf.is_sparse() { Vec::new() } else { element(index) };
    Some(Region { array: ArrayMemory { first, bytes, kind }, indices })
}

/// The host writes a field's leaf, or one element of it.
#[inline]
pub fn host_writes_leaf(py: Python<'_>, leaf: &FieldLeaf, method: &str, index: &[i64]) -> PyResult<()> {
    if !is_open() {
        return Ok(());
    }
    let Some(region) = leaf_region(leaf, index) else { return Ok(()) };
    let is_sure = !leaf.is_sparse() && (leaf.entries() == 1 || method != "__setitem__");
    tell(py, &format!("`{method}`"), region, is_sure)
}

/// What the host does with an array or field by a method.
pub enum HostAccess<'a, 'py> {
    /// All of it, or elements.
    Reads,
    Writes,
    /// Likewise zeros, which are of no derivative.
    WritesZeros,
    /// One element, or an entry of it; and whether zeros.
    WritesElement(&'a Bound<'py, PyAny>, Option<usize>, bool),
}

/// The host has looked at an array or field, or writes it or one of its elements by a method: what watches this thread is told, which knows what becomes
/// of derivatives.
#[inline]
pub fn tell_watchers(object: &Bound<'_, PyAny>, method: &str, access: HostAccess<'_, '_>) -> PyResult<()> {
    if is_open() { tell_watchers_now(object, method, access) } else { Ok(()) }
}

#[cold]
fn tell_watchers_now(object: &Bound<'_, PyAny>, method: &str, access: HostAccess<'_, '_>) -> PyResult<()> {
    let py = object.py();
    let module = py.import(intern!(py, "octants.ad.tape"))?;
    match access {
        HostAccess::Reads => module.call_method1(intern!(py, "host_reads"), (object, method)),
        HostAccess::Writes | HostAccess::WritesZeros => {
            let zeros = matches!(access, HostAccess::WritesZeros);
            module.call_method1(intern!(py, "host_writes"), (object, method, zeros))
        }
        HostAccess::WritesElement(index, entry, zeros) => {
            module.call_method1(intern!(py, "host_writes"), (object, method, zeros, index, entry))
        }
    }
    .map(drop)
}

/// Whether all numbers are zeros.
pub fn are_zeros(constants: &[octants::ir::Const]) -> bool {
    constants.iter().all(|constant| constant.bits() == 0)
}

/// Another library writes all of an array or field for us.
#[pyfunction]
pub fn tell_of_write(object: &Bound<'_, PyAny>, method: &str) -> PyResult<()> {
    let (py, object) = (object.py(), tensor::unwrapped(object));
    tell_watchers(object, method, HostAccess::Writes)?;
    if let Ok(array) = object.cast::<Ndarray>() {
        return host_writes(py, &array.get().array, method, &[]);
    }
    if let Ok(field) = object.cast::<Field>() {
        for leaf in &Field::bound(field)?.leaves {
            host_writes_leaf(py, leaf, method, &[])?;
        }
    }
    Ok(())
}

/// Torch has written to a tensor, some time ago.
#[pyfunction]
pub fn tell_of_torch(tensor: &Bound<'_, PyAny>) -> PyResult<()> {
    let region = torch_region(tensor)?;
    tell_of(tensor.py(), "an in-place operation of torch", "before", &[region], false)
}

/// All of a tensor of torch's.
fn torch_region(tensor: &Bound<'_, PyAny>) -> PyResult<Region> {
    let first: u64 = tensor.call_method0("data_ptr")?.extract()?;
    let bytes: u64 = tensor.call_method0("element_size")?.extract()?;
    let extents: Vec<i64> = tensor.getattr("shape")?.extract()?;
    let strides: Vec<i64> = tensor.call_method0("stride")?.extract()?;
    let strides = strides.into_iter().map(|stride| stride.wrapping_mul(bytes.cast_signed())).collect();
    let array = ArrayMemory { first, bytes, kind: MemoryKind::Array { extents, strides } };
    Ok(Region::all(array))
}

/// The file and line of the user's program that runs now.
pub fn user_line(py: Python<'_>) -> PyResult<String> {
    py.import(intern!(py, "octants._fields.field"))?.call_method0(intern!(py, "user_line"))?.extract()
}
