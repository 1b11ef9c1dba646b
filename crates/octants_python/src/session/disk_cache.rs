//! Compiled kernels on disk, as options of a session and for the command `octants cache`.

use std::path::PathBuf;

use octants::store::{self, CleaningPolicy};
use octants::{CacheOptions, Session, cache_version};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::session::runtime::{Runtime, option};

/// What the options `offline_cache…` say; nothing if kernels are not to be kept.
pub fn options(options: &Bound<'_, PyDict>) -> PyResult<Option<CacheOptions>> {
    let name: String = option(options, "offline_cache_cleaning_policy")?;
    let Some(policy) = CleaningPolicy::from_name(&name) else {
        let message =
            format!("offline_cache_cleaning_policy is one of never, version, lru and fifo, not {name:?}");
        return Err(PyValueError::new_err(message));
    };
    let cleaning_factor: f64 = option(options, "offline_cache_cleaning_factor")?;
    if !(0.0..=1.0).contains(&cleaning_factor) {
        let message = format!("offline_cache_cleaning_factor is a part, from 0 to 1, not {cleaning_factor}");
        return Err(PyValueError::new_err(message));
    }
    let max_bytes: u64 = option(options, "offline_cache_max_size_of_files")?;
    let folder: PathBuf = option(options, "offline_cache_file_path")?;
    let wanted: bool = option(options, "offline_cache")?;
    Ok(wanted.then_some(CacheOptions { folder, policy, max_bytes, cleaning_factor }))
}

/// Says why kernels are not kept, if they are not; once in a process for each reason.
pub fn tell(py: Python<'_>, runtime: &Runtime, session: &Session) -> PyResult<()> {
    for reason in session.cache_notices() {
        if !runtime.is_news(&reason) {
            continue;
        }
        py.import("octants._session")?.getattr("show_cache_notice")?.call1((reason,))?;
    }
    Ok(())
}

/// What is in a folder: a list of versions, each with its name, whether it is this one, the number of entries and their bytes.
#[pyfunction]
pub fn cache_usage(folder: PathBuf) -> PyResult<Vec<(String, bool, u64, u64)>> {
    let versions = store::usage(&folder).map_err(PyOSError::new_err)?;
    let own = cache_version();
    Ok(versions
        .into_iter()
        .map(|one| (one.namespace.clone(), one.namespace == own, one.entries, one.bytes))
        .collect())
}

/// Removes all that is in a folder: how many files, and their bytes.
#[pyfunction]
pub fn cache_clean(folder: PathBuf) -> (u64, u64) {
    let cleaned = store::remove_all(&folder);
    (cleaned.files, cleaned.bytes)
}

/// Reads all that is in a folder: how many entries are whole, and those that are not. These are removed.
#[pyfunction]
pub fn cache_verify(folder: PathBuf) -> PyResult<(u64, Vec<PathBuf>)> {
    let (whole, damaged) = store::verify(&folder).map_err(PyOSError::new_err)?;
    Ok((whole, damaged.into_iter().map(|damage| damage.path).collect()))
}
