//! Where a function's text is.

use std::sync::Arc;

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
    let (text, line) = match std::fs::read_to_string(&file_name) {
        Ok(text) => (text, line),
        Err(_) => elsewhere(function)?,
    };
    let is_method = is_method(&qualname);
    Ok(FunctionSource { file_name, text: Arc::from(text), line, name, qualname, is_method })
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
