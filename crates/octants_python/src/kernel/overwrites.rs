//! Which launches of a tape overwrite what others have used: a tape in bounded memory runs these again, and keeps copies of what they overwrite.
//!
//! Law: **what no launch that is told here overwrites is right for all of them.** Before the tape begins to run calls again, that is what derivatives need. From then on it is all
//! that was read, updated or assigned since: a launch that runs again finds in memory what it found there first, but for arrays that were told as lost before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use octants::{Region, Touched};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arrays::write_log::regions_of;
use crate::kernel::recording::Record;
use crate::launch::{LaunchArguments, Specialisation};

/// Sees the launches of a tape before they run.
#[pyclass(frozen, module = "octants")]
pub struct Overwrites {
    /// What must not be overwritten without notice.
    used: Mutex<octants::WriteLog>,
    is_running: AtomicBool,
    /// Called before the first launch that overwrites what a derivative needs.
    begin: Py<PyAny>,
    /// Called with what a launch is about to write, from then on: pairs of the parameter's name and its array, or None if no object stands for it; and those whose contents somebody has used.
    write: Py<PyAny>,
}

#[pymethods]
impl Overwrites {
    #[new]
    fn new(begin: Py<PyAny>, write: Py<PyAny>) -> Self {
        Self { used: Mutex::default(), is_running: AtomicBool::new(false), begin, write }
    }

    /// From now on launches are kept to run again.
    fn run(&self) {
        self.is_running.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has used an array or field.
    fn is_used(&self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (regions, used) = (regions_of(object)?, self.used());
        Ok(regions.iter().any(|region| used.writer_since(0, region).is_some()))
    }

    /// Somebody uses all of an array or field.
    fn note(&self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let regions = regions_of(object)?;
        self.used().add(String::new(), true, regions);
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.begin)?;
        visit.call(&self.write)
    }
}

impl Overwrites {
    fn used(&self) -> MutexGuard<'_, octants::WriteLog> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Relaxed)
    }

    /// A launch is about to be.
    pub fn see<'py>(
        &self,
        py: Python<'py>,
        code: &Specialisation,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        launch: &LaunchArguments<'py>,
    ) -> PyResult<()> {
        // What it keeps for its derivative is not the program's.
        let backward = code.backward.as_ref().and_then(|backward| backward.derivative.as_ref());
        let params = match (&code.recorder, backward) {
            (Some(_), Some(gradient)) => gradient.written().len(),
            _ => code.compiled.args().slots.len(),
        };
        let touched = code.compiled.touched_parts(code.footprint(), launch.bytes());
        let touched: Vec<_> =
            touched.filter(|(one, _)| one.param < params && code.is_observed(one.param)).collect();
        let written = || touched.iter().filter(|(one, _)| one.written);
        if !self.is_running() {
            let overwrites = {
                let used = self.used();
                written().any(|(_, region)| used.writer_since(0, region).is_some())
            };
            if !overwrites {
                return Ok(());
            }
            self.begin.call0(py)?;
        }
        let (all, lost) = (PyList::empty(py), PyList::empty(py));
        let mut seen: Vec<(usize, bool)> = Vec::new();
        for (one, region) in written() {
            let is_lost =
                self.used().writer_since(0, region).is_some() || is_used_by_itself(&touched, region);
            match seen.iter_mut().find(|(param, _)| *param == one.param) {
                Some((_, before)) => *before |= is_lost,
                None => seen.push((one.param, is_lost)),
            }
        }
        for (param, is_lost) in seen {
            let name = code.compiled.param_name(param);
            let array = code.array_of(py, arguments, param);
            all.append((name, &array))?;
            if is_lost {
                lost.append((name, &array))?;
            }
        }
        self.write.call1(py, (all, lost))?;
        self.used().add(String::new(), true, touched.into_iter().map(|(_, region)| region));
        Ok(())
    }

    /// What the derivative of a call needs is used.
    pub fn note_needs(&self, record: &Record) {
        let Some(gradient) = &record.backward.derivative else { return };
        let params = gradient.written().len();
        let needed = |param: usize| param < params && record.backward.is_needed(param);
        let block = record.arguments.block();
        let regions = gradient.kernel().touches(record.backward.footprint(), block, needed);
        self.used().add(String::new(), true, regions.into_iter().map(|(_, region)| region));
    }
}

/// Whether what a launch writes there follows from what was there.
fn is_used_by_itself(touched: &[(&Touched, Region)], region: &Region) -> bool {
    touched.iter().any(|(one, other)| (one.read || one.updated) && other.overlaps(region))
}
