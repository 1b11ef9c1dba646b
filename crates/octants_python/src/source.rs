//! Where a function's text is.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use octants::front::FunctionSource;
use pyo3::prelude::*;
use pyo3::types::PyFunction;

/// The source of a function: from its file, else from what Python's `linecache` knows (notebook cells, doctests), else from
/// the history of an interactive session.
pub fn of(function: &Bound<'_, PyFunction>) -> PyResult<FunctionSource> {
    let code = function.getattr("__code__")?;
    let file_name: String = code.getattr("co_filename")?.extract()?;
    let line: u32 = code.getattr("co_firstlineno")?.extract()?;
    let name: String = function.getattr("__name__")?.extract()?;
    let qualname: String = function.getattr("__qualname__")?.extract()?;
    let qualname: Arc<str> = qualname.into();
    let (text, line) = match read(&file_name) {
        Ok(text) => (text, line),
        Err(_) => elsewhere(function).map(|(text, line)| (Arc::from(text), line))?,
    };
    let is_method = is_method(&qualname);
    Ok(FunctionSource { file_name, text, line, name, qualname, is_method })
}

/// A file as it was when it was read.
struct ReadFile {
    /// Device, number, bytes, and when its content and its description changed, in nanoseconds.
    state: (u64, u64, u64, i128, i128),
    text: Arc<str>,
}

/// Files change times are as exact as this, at worst: what was changed less long before it was read may have changed since without a trace.
const CLOCK_GRAIN: Duration = Duration::from_millis(50);

/// The text of a file. It is read once, and again when the system says that it has changed.
fn read(path: &str) -> io::Result<Arc<str>> {
    static FILES: Mutex<Option<HashMap<String, ReadFile>>> = Mutex::new(None);
    let files = || FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let about = fs::metadata(path)?;
    let time = |seconds: i64, nanoseconds: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    let (modified, changed) =
        (time(about.mtime(), about.mtime_nsec()), time(about.ctime(), about.ctime_nsec()));
    let state = (about.dev(), about.ino(), about.size(), modified, changed);
    if let Some(known) = files().get_or_insert_default().get(path)
        && known.state == state
    {
        return Ok(Arc::clone(&known.text));
    }
    let text: Arc<str> = fs::read_to_string(path)?.into();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let settled = now.as_nanos() as i128 - modified.max(changed) > CLOCK_GRAIN.as_nanos() as i128;
    if about.is_file() && settled {
        files().get_or_insert_default().insert(path.to_owned(), ReadFile { state, text: Arc::clone(&text) });
    }
    Ok(text)
}

/// Defined directly in the body of a class.
fn is_method(qualname: &str) -> bool {
    match qualname.rsplit_once('.') {
        Some((outer, _)) => !outer.ends_with("<locals>"),
        None => false,
    }
}

fn elsewhere(function: &Bound<'_, PyFunction>) -> PyResult<(String, u32)> {
    function.py().import("octants._source")?.getattr("find")?.call1((function,))?.extract()
}
