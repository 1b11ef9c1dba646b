//! What a session has: the runtime that holds the current one, streams, the profiler, the cache on disk.

pub mod device_process;
pub mod disk_cache;
pub mod dump;
pub mod profiler;
pub mod runtime;
pub mod stream;

use std::path::PathBuf;

use pyo3::prelude::*;

/// The folder of the package.
fn package_folder(py: Python<'_>) -> PyResult<PathBuf> {
    let mut file: PathBuf = py.import("octants")?.getattr("__file__")?.extract()?;
    file.pop();
    Ok(file)
}
