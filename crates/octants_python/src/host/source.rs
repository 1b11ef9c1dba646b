//! Where a function's text is.
//!
//! **The text of a function is the text that Python compiled it from.** It is looked up when the function is decorated, and stays with the function:
//! what becomes of the file later changes nothing. A file that was changed since the process began is compared with the function: its code must be
//! what Python makes of the text. If it is not, an earlier text of the file may be the right one; else the function is refused.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use octants::front::FunctionSource;
use pyo3::prelude::*;
use pyo3::types::{PyFunction, PyTuple};

/// The source of a function: from its file, else from what Python's `linecache` knows (notebook cells, doctests), else from
/// the history of an interactive session.
pub fn of(function: &Bound<'_, PyFunction>) -> PyResult<FunctionSource> {
    let code = function.getattr("__code__")?;
    let file_name: String = code.getattr("co_filename")?.extract()?;
    let name: String = function.getattr("__name__")?.extract()?;
    let qualname: String = function.getattr("__qualname__")?.extract()?;
    let qualname: Arc<str> = qualname.into();
    let (text, line) = text_of(function, &code, &file_name)?;
    let is_method = is_method(&qualname);
    Ok(FunctionSource { file_name, text, line, name, qualname, is_method })
}

/// The text that a function was found in, which stays with it as an attribute.
#[pyclass(frozen, module = "octants")]
struct SourceText {
    /// What it is the text of: attributes of a function are copied to those that wrap it.
    code: Py<PyAny>,
    text: Arc<str>,
    line: u32,
}

#[pymethods]
impl SourceText {
    /// What carries functions to other processes finds nothing here: there the text is looked up anew.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        Ok((py.import("builtins")?.getattr("bool")?, PyTuple::empty(py)))
    }
}

const ATTRIBUTE: &str = "__octants_source__";

fn text_of(
    function: &Bound<'_, PyFunction>,
    code: &Bound<'_, PyAny>,
    path: &str,
) -> PyResult<(Arc<str>, u32)> {
    if let Some(known) = function.getattr_opt(ATTRIBUTE)?
        && let Ok(known) = known.cast::<SourceText>()
        && known.get().code.is(code)
    {
        return Ok((Arc::clone(&known.get().text), known.get().line));
    }
    let line: u32 = code.getattr("co_firstlineno")?.extract()?;
    let (text, line) = match texts(path) {
        Ok(versions) => (choose(function, code, path, versions)?, line),
        Err(_) => elsewhere(function).map(|(text, line)| (Arc::from(text), line))?,
    };
    let kept = SourceText { code: code.clone().unbind(), text: Arc::clone(&text), line };
    // A function that takes no attributes is looked up again.
    let _ = function.setattr(ATTRIBUTE, Bound::new(function.py(), kept)?);
    Ok((text, line))
}

/// The text that Python compiled a function from.
fn choose(
    function: &Bound<'_, PyFunction>,
    code: &Bound<'_, PyAny>,
    path: &str,
    Versions { texts, is_older }: Versions,
) -> PyResult<Arc<str>> {
    if is_older && let [text] = &*texts {
        return Ok(Arc::clone(text));
    }
    let py = function.py();
    let is_text_of = py.import("octants._session.source")?.getattr("is_text_of")?;
    for text in &texts {
        if is_text_of.call1((&**text, function))?.is_truthy()? {
            return Ok(Arc::clone(text));
        }
    }
    let name: String = code.getattr("co_name")?.extract()?;
    let changed = py.import("octants._session.source")?.getattr("SourceChanged")?;
    let message = format!("{path} was changed after Python imported `{name}` from it");
    Err(PyErr::from_value(changed.call1((message,))?))
}

/// A file as it was when it was read.
struct ReadFile {
    /// Device, number, bytes, and when its content and its description changed, in nanoseconds.
    state: (u64, u64, u64, i128, i128),
    text: Arc<str>,
}

/// What a file held, the oldest first.
struct Versions {
    texts: Vec<Arc<str>>,
    /// Whether it was there as it is before the process began.
    is_older: bool,
}

/// Files change times are as exact as this, at worst: what was changed less long before it was read may have changed since without a trace.
const CLOCK_GRAIN: Duration = Duration::from_millis(50);

/// Texts of a file that are remembered besides the first. Chosen, not measured.
const MAX_VERSIONS: usize = 8;

/// The texts of a file. It is read once, and again when the system says that it has changed.
fn texts(path: &str) -> io::Result<Versions> {
    static FILES: Mutex<Option<HashMap<String, Vec<ReadFile>>>> = Mutex::new(None);
    let about = fs::metadata(path)?;
    let time = |seconds: i64, nanoseconds: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    let (modified, changed) =
        (time(about.mtime(), about.mtime_nsec()), time(about.ctime(), about.ctime_nsec()));
    let state = (about.dev(), about.ino(), about.size(), modified, changed);
    let is_older = modified.max(changed) < process_start();
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let versions = files.get_or_insert_default().entry(path.to_owned()).or_default();
    let known = |versions: &[ReadFile]| versions.iter().map(|one| Arc::clone(&one.text)).collect();
    if versions.last().is_some_and(|newest| newest.state == state) {
        return Ok(Versions { texts: known(versions), is_older });
    }
    let text = fs::read_to_string(path)?;
    // The mark that some editors put before a text is no part of it.
    let text: Arc<str> = text.strip_prefix('\u{feff}').unwrap_or(&text).into();
    let settled = now() - modified.max(changed) > CLOCK_GRAIN.as_nanos() as i128;
    match versions.iter_mut().find(|one| one.text == text) {
        Some(same) if settled => same.state = state,
        Some(_) => {}
        None => {
            if versions.len() > MAX_VERSIONS {
                versions.remove(1);
            }
            // Of what may have changed since, the state is asked for again.
            let state = if about.is_file() && settled { state } else { (0, 0, 0, 0, 0) };
            versions.push(ReadFile { state, text });
        }
    }
    Ok(Versions { texts: known(versions), is_older })
}

/// When the process began or earlier, in nanoseconds of the clock that files have. A container may have a clock of its own for how long it is up, and
/// another for when it began: the earliest of all that is known counts, and it is never later than the import of this module.
fn process_start() -> i128 {
    static START: OnceLock<i128> = OnceLock::new();
    *START.get_or_init(|| {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let [own, system, up] = ["/proc/self/stat", "/proc/stat", "/proc/uptime"].map(read);
        started(&own, &system, &up, now()).unwrap_or(0).min(note_import())
    })
}

/// When this module was imported: called first when it is.
pub fn note_import() -> i128 {
    static IMPORT: OnceLock<i128> = OnceLock::new();
    *IMPORT.get_or_init(now)
}

fn now() -> i128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_nanos() as i128)
}

/// The earlier of what the system's start and its time since then make of the process's ticks; none if nothing is known.
fn started(own: &str, system: &str, up: &str, now: i128) -> Option<i128> {
    // The 22nd entry; the name in parentheses, which is the second, may hold spaces.
    let ticks: i128 = own.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    // The system counts ticks of 10 ms, and rounds them down.
    let after = (ticks - 2) * 10_000_000;
    let boot = system.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<i128>().ok());
    // In whole seconds, rounded either way.
    let by_boot = boot.map(|boot| (boot - 1) * 1_000_000_000 + after);
    let up = up.split_whitespace().next().and_then(|up| up.parse::<f64>().ok());
    let by_up = up.map(|up| now - (up * 1e9) as i128 + after);
    by_boot.into_iter().chain(by_up).min()
}

/// Defined directly in the body of a class.
fn is_method(qualname: &str) -> bool {
    match qualname.rsplit_once('.') {
        Some((outer, _)) => !outer.ends_with("<locals>"),
        None => false,
    }
}

fn elsewhere(function: &Bound<'_, PyFunction>) -> PyResult<(String, u32)> {
    function.py().import("octants._session.source")?.getattr("find")?.call1((function,))?.extract()
}

#[cfg(test)]
mod tests {
    use super::started;

    #[test]
    fn the_earliest_start_counts() {
        let second = 1_000_000_000;
        let own = format!("7 (a) b) S {}", "0 ".repeat(18) + "500002 0");
        // Up for 6000 s, and the process came after 5000 s of these.
        let start = |system: &str, up: &str| started(&own, system, up, 10_000 * second);
        assert_eq!(start("cpu 1\nbtime 4000\n", "6000.0 1.0"), Some(8_999 * second));
        assert_eq!(start("", "6000.0 1.0"), Some(9_000 * second));
        // A container that is up for 10 s, on a machine that is up for longer.
        assert_eq!(start("btime 4000\n", "10.0 1.0"), Some(8_999 * second));
        assert_eq!(start("", ""), None);
        assert_eq!(started("", "btime 4000\n", "1.0", 0), None);
    }
}
