//! What a launch's stream was told to use.
//!
//! Law: **a stream that was told to use memory is noted among that memory's uses, whatever happens afterwards.** Memory goes back behind the
//! streams that are noted, and behind no others. So whoever tells a stream something about arguments has their [`Uses`] before.

use octants::{CompiledKernel, LiveStream, Memory, Mirror, Record};
use pyo3::prelude::*;

use super::staging::{self, StagingCopy};
use super::writer::{LaunchArguments, Tracked};
use crate::gateway::under_way::Outside;
use crate::gateway::{errors, interrupt};
use crate::interop::foreign;

/// The uses of a launch's arguments in a stream; in the default one if there is none. Dropping this notes them, if nobody did.
pub struct Uses<'a, 'py> {
    py: Python<'py>,
    arguments: &'a LaunchArguments<'py>,
    compiled: &'a CompiledKernel,
    on: Option<&'a LiveStream>,
    /// What is used beside the arguments.
    record: Option<&'a Record>,
    noted: bool,
}

impl<'py> LaunchArguments<'py> {
    /// Made before the stream is told to use the arguments, and held until it was told all.
    #[inline]
    pub fn uses<'a>(
        &'a self,
        py: Python<'py>,
        compiled: &'a CompiledKernel,
        on: Option<&'a LiveStream>,
    ) -> Uses<'a, 'py> {
        Uses { py, arguments: self, compiled, on, record: None, noted: false }
    }
}

impl<'a> Uses<'a, '_> {
    /// The launch uses a record, too.
    pub fn add_record(&mut self, record: &'a Record) {
        self.record = Some(record);
    }

    /// Notes the uses, and copies back what the kernel wrote to copies of arguments.
    #[inline]
    pub fn copy_back(mut self, mirror: Option<Mirror>) -> PyResult<()> {
        self.note()?;
        let (py, compiled, on) = (self.py, self.compiled, self.on);
        if let Some(mirror) = mirror.filter(Mirror::is_written) {
            if on.is_some() || !compiled.runs_at_once() {
                interrupt::waiting(py, |cancel| compiled.wait(on, cancel))?;
            }
            let copied = py.outside(|| compiled.copy_back(&mirror));
            copied.map_err(|error| errors::from_error(py, &error))?;
        }
        staging::copy_back(py, &self.arguments.staged, compiled.access())
    }

    #[inline]
    fn note(&mut self) -> PyResult<()> {
        self.noted = true;
        if let Some(on) = self.on {
            return self.note_in(on);
        }
        // Each of the libraries is told, also if another one cannot be.
        let mut told = Ok(());
        for &stream in &self.arguments.streams {
            let now = self.compiled.launch_before(stream, None);
            told = told.and(now.map_err(|error| errors::from_error(self.py, &error)));
        }
        told
    }

    /// Notes a stream, for copies of the host and for other libraries; waits for it if it uses the host's arrays in place.
    #[cold]
    fn note_in(&self, on: &LiveStream) -> PyResult<()> {
        let (py, compiled, staged) = (self.py, self.compiled, &self.arguments.staged);
        let Some(Tracked { arrays, host, foreign, tree_memories }) = &self.arguments.tracked else {
            return Err(errors::bug("a launch in a stream has not kept a list of what it uses"));
        };
        let of_arrays = arrays.iter().map(|array| &**array.get().array.memory());
        let of_trees = tree_memories.iter().map(|memory| &**memory);
        let of_record = self.record.into_iter().flat_map(Record::memories);
        let memories: [&mut dyn Iterator<Item = &Memory>; 3] =
            [&mut { of_arrays }, &mut { of_trees }, &mut { of_record }];
        let noted = compiled.after_launch(on, memories.into_iter().flatten());
        let noted = noted.map_err(|error| errors::from_error(py, &error));
        let mut kept = Ok(());
        for array in foreign {
            kept = interrupt::both(py, kept, foreign::keep_for_stream(array, compiled, on));
        }
        // Nobody else keeps what a library was not told of.
        let not_kept = if kept.is_err() { &foreign[..] } else { &[] };
        if host.is_empty() && staged.is_empty() && not_kept.is_empty() {
            return noted;
        }
        let waited = interrupt::waiting(py, |cancel| compiled.wait(Some(on), cancel));
        if waited.is_err() {
            // The kernel may still be at work on them, and nobody tells when it is over.
            host.iter().chain(not_kept).for_each(|array| std::mem::forget(array.clone()));
            staged.iter().for_each(StagingCopy::leak);
        }
        interrupt::both(py, interrupt::both(py, noted, kept), waited)
    }
}

impl Drop for Uses<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        if !self.noted {
            // Whoever did not come to note them has a failure to tell of; what a handler raises meanwhile is not lost.
            if let Err(error) = self.note() {
                interrupt::raise_later(self.py, error);
            }
        }
    }
}
