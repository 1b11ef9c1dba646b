//! The boundary to Python: conversions, the gateway, exceptions. No compiler logic.
//!
//! Each class of the compiled half has a file. [`host`] is the front end's view of live Python objects; [`errors`] maps every error
//! to an exception; [`interrupt`] is Ctrl-C.

// A boundary crate: it talks to the interpreter, to numpy's memory and to the system's signals.
#![allow(unsafe_code)]
// Signatures that PyO3 asks for.
#![allow(clippy::trivially_copy_pass_by_ref, clippy::unnecessary_wraps, clippy::wrong_self_convention)]

mod aggregate;
mod arguments;
mod bound_kernel;
mod buffer_view;
mod derivative_errors;
mod device_process;
mod disk_cache;
mod dlpack;
mod dtype;
mod dump;
mod element;
mod errors;
mod evaluation;
mod expr;
mod field;
mod field_index;
mod foreign;
mod func;
mod host;
mod host_memory;
mod host_only;
mod interrupt;
mod kernel;
mod launch;
mod ndarray;
mod number;
mod numpy;
mod plain_array;
mod profiler;
mod runtime;
mod shared;
mod source;
mod sparse_factor;
mod stack;
mod step_check;
mod stream;
mod template;
mod tensor;
mod traced;
mod tree;
mod under_way;
mod write_log;

use octants::diag::{Code, Diagnostic, SourceMap};
use pyo3::prelude::*;
use under_way::Outside;

/// What a code of a diagnostic means, or nothing if there is no such code.
#[pyfunction]
fn explain(code: &str) -> Option<String> {
    octants::diag::explain(code)
}

/// The exception of a diagnostic that the Python half of the package raises.
#[pyfunction]
#[pyo3(signature = (code, message, help=None))]
fn refusal(py: Python<'_>, code: &str, message: &str, help: Option<&str>) -> PyErr {
    let Some(code) = Code::from_name(code) else { return errors::bug(&format!("no code {code}")) };
    let mut diagnostic = Diagnostic::new(code, message);
    if let Some(help) = help {
        diagnostic = diagnostic.help(help);
    }
    errors::from_diagnostic(py, diagnostic, &SourceMap::new())
}

/// Runs when the interpreter ends: a compilation that was interrupted may still be under way.
#[pyfunction]
fn finish(py: Python<'_>) {
    py.outside(octants::wait_for_compilations);
}

// Launches write memory that other threads' Python objects hold, and were never tested on a Python without its lock: such a Python takes the lock when it imports this.
#[pymodule(gil_used = true)]
fn _octants(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    source::note_import();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    let (major, minor, patch) = octants::llvm_version();
    module.add("llvm_version", format!("{major}.{minor}.{patch}"))?;
    module.add_class::<dtype::DataType>()?;
    module.add_class::<expr::Expr>()?;
    module.add_class::<field::Field>()?;
    module.add_class::<func::Func>()?;
    module.add_class::<buffer_view::BufferView>()?;
    module.add_class::<kernel::Kernel>()?;
    module.add_class::<kernel::Record>()?;
    module.add_class::<kernel::Sinks>()?;
    module.add_class::<bound_kernel::BoundKernel>()?;
    module.add_class::<ndarray::Ndarray>()?;
    module.add_class::<profiler::Scope>()?;
    module.add_class::<profiler::SessionProfiler>()?;
    module.add_class::<runtime::Runtime>()?;
    module.add_class::<runtime::OpenSession>()?;
    module.add_class::<sparse_factor::SparseAnalysis>()?;
    module.add_class::<sparse_factor::SparseFactor>()?;
    module.add_class::<stream::Event>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<tensor::Tensor>()?;
    shared::add_buffer_protocol(py);
    module.add_class::<tree::Node>()?;
    module.add_class::<tree::Tree>()?;
    module.add_class::<step_check::StepCheck>()?;
    module.add_class::<write_log::WriteLog>()?;
    module.add("MAX_AXES", octants::MAX_AXES)?;
    module.add("dtypes", dtype::table(py)?)?;
    module.add_function(wrap_pyfunction!(device_process::serve, module)?)?;
    module.add_function(wrap_pyfunction!(dtype::dtype_by_name, module)?)?;
    module.add_function(wrap_pyfunction!(expr::is_compiling, module)?)?;
    module.add_function(wrap_pyfunction!(expr::trace_call, module)?)?;
    module.add_function(wrap_pyfunction!(host_only::host_only, module)?)?;
    module.add_function(wrap_pyfunction!(plain_array::plain_array, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::processors, module)?)?;
    module.add_function(wrap_pyfunction!(disk_cache::cache_usage, module)?)?;
    module.add_function(wrap_pyfunction!(disk_cache::cache_clean, module)?)?;
    module.add_function(wrap_pyfunction!(disk_cache::cache_verify, module)?)?;
    module.add_function(wrap_pyfunction!(explain, module)?)?;
    module.add_function(wrap_pyfunction!(refusal, module)?)?;
    module.add_function(wrap_pyfunction!(write_log::tell_of_write, module)?)?;
    module.add_function(wrap_pyfunction!(write_log::tell_of_torch, module)?)?;
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(finish, module)?,))?;
    Ok(())
}
