//! The boundary to Python: conversions, the gateway, exceptions. No compiler logic.
//!
//! Each class of the compiled half has a file. Folders, from the bottom up: [`gateway`] (exceptions, signals, the interpreter's lock), [`values`],
//! [`session`], [`interop`] (other libraries' arrays), [`arrays`], [`host`] (the front end's view of live Python objects), [`kernel`] and [`launch`].

// A boundary crate: it talks to the interpreter, to numpy's memory and to the system's signals.
#![allow(unsafe_code)]
// Signatures that PyO3 asks for.
#![allow(clippy::trivially_copy_pass_by_ref, clippy::unnecessary_wraps, clippy::wrong_self_convention)]

mod arrays;
mod gateway;
mod host;
mod interop;
mod kernel;
mod launch;
mod session;
mod sparse_factor;
mod values;

use gateway::under_way::Outside;
use octants::diag::{Code, Diagnostic, SourceMap};
use pyo3::prelude::*;

/// What a code of a diagnostic means, or nothing if there is no such code.
#[pyfunction]
fn explain(code: &str) -> Option<String> {
    octants::diag::explain(code)
}

/// The exception of a diagnostic that the Python half of the package raises.
#[pyfunction]
#[pyo3(signature = (code, message, help=None))]
fn refusal(py: Python<'_>, code: &str, message: &str, help: Option<&str>) -> PyErr {
    let Some(code) = Code::from_name(code) else { return gateway::errors::bug(&format!("no code {code}")) };
    let mut diagnostic = Diagnostic::new(code, message);
    if let Some(help) = help {
        diagnostic = diagnostic.help(help);
    }
    gateway::errors::from_diagnostic(py, diagnostic, &SourceMap::new())
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
    host::source::note_import();
    gateway::errors::introduce(session::runtime::SESSIONS);
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    let (major, minor, patch) = octants::llvm_version();
    module.add("llvm_version", format!("{major}.{minor}.{patch}"))?;
    module.add_class::<values::dtype::DataType>()?;
    module.add_class::<values::expr::Expr>()?;
    module.add_class::<arrays::field::Field>()?;
    module.add_class::<host::func::Func>()?;
    module.add_class::<arrays::buffer_view::BufferView>()?;
    module.add_class::<kernel::Kernel>()?;
    module.add_class::<kernel::Record>()?;
    module.add_class::<kernel::Run>()?;
    module.add_class::<kernel::overwrites::Overwrites>()?;
    module.add_class::<kernel::Sinks>()?;
    module.add_class::<kernel::bound_kernel::BoundKernel>()?;
    module.add_class::<arrays::ndarray::Ndarray>()?;
    module.add_class::<session::profiler::Scope>()?;
    module.add_class::<session::profiler::SessionProfiler>()?;
    module.add_class::<session::runtime::Runtime>()?;
    module.add_class::<session::runtime::OpenSession>()?;
    module.add_class::<sparse_factor::SparseAnalysis>()?;
    module.add_class::<sparse_factor::SparseFactor>()?;
    module.add_class::<session::stream::Event>()?;
    module.add_class::<session::stream::Stream>()?;
    module.add_class::<arrays::tensor::Tensor>()?;
    arrays::shared::add_buffer_protocol(py);
    module.add_class::<arrays::tree::Node>()?;
    module.add_class::<arrays::tree::Tree>()?;
    module.add_class::<kernel::step_check::StepCheck>()?;
    module.add_class::<arrays::write_log::WriteLog>()?;
    module.add("MAX_AXES", octants::MAX_AXES)?;
    module.add("dtypes", values::dtype::table(py)?)?;
    module.add_function(wrap_pyfunction!(session::device_process::serve, module)?)?;
    module.add_function(wrap_pyfunction!(values::dtype::dtype_by_name, module)?)?;
    module.add_function(wrap_pyfunction!(values::expr::is_compiling, module)?)?;
    module.add_function(wrap_pyfunction!(values::expr::trace_call, module)?)?;
    module.add_function(wrap_pyfunction!(values::host_only::host_only, module)?)?;
    module.add_function(wrap_pyfunction!(interop::plain_array::plain_array, module)?)?;
    module.add_function(wrap_pyfunction!(session::runtime::processors, module)?)?;
    module.add_function(wrap_pyfunction!(session::disk_cache::cache_usage, module)?)?;
    module.add_function(wrap_pyfunction!(session::disk_cache::cache_clean, module)?)?;
    module.add_function(wrap_pyfunction!(session::disk_cache::cache_verify, module)?)?;
    module.add_function(wrap_pyfunction!(explain, module)?)?;
    module.add_function(wrap_pyfunction!(refusal, module)?)?;
    module.add_function(wrap_pyfunction!(arrays::write_log::tell_of_write, module)?)?;
    module.add_function(wrap_pyfunction!(arrays::write_log::tell_of_torch, module)?)?;
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(finish, module)?,))?;
    Ok(())
}
