//! Processes that have a device which the driver refuses to this one.

use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use octants::{Arch, Session, SessionOptions, open_device, serve_device};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::gateway::errors;
use crate::gateway::under_way::Outside;
use crate::session::package_folder;

/// A process of Python that [serves](serve) a device: where the package is, which kind of device, and which of its kind. Ctrl-C is for
/// whoever asks it, not for it.
const PROGRAM: &str = "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path.insert(0, sys.argv[1]); \
                       from octants._octants import serve_device; serve_device(sys.argv[2], int(sys.argv[3]))";

/// A session whose device is a new process'.
pub fn start(py: Python<'_>, options: SessionOptions) -> PyResult<Session> {
    let executable: String = py.import("sys")?.getattr("executable")?.extract()?;
    let package = package_folder(py)?;
    let mut command = Command::new(executable);
    command.arg("-c").arg(PROGRAM).arg(package.parent().unwrap_or(&package));
    command.arg(options.arch.name()).arg(options.device.to_string()).stdout(Stdio::null());
    // Not for the child: what it opens is its own affair, and it asks nobody.
    command.env_remove("OC_ARCH");
    py.outside(|| Session::in_process(options, command)).map_err(|error| errors::from_error(py, &error))
}

/// Serves a device at the standard input, until nobody asks any more. For a process of [`start`].
#[pyfunction]
#[pyo3(name = "serve_device")]
pub fn serve(py: Python<'_>, arch: &str, device: u32) -> PyResult<()> {
    let arch =
        Arch::from_name(arch).ok_or_else(|| PyValueError::new_err(format!("no arch is named {arch}")))?;
    let options = SessionOptions { arch, device, ..SessionOptions::default() };
    // The process has no other thread that forks.
    #[expect(clippy::disallowed_methods)]
    py.detach(|| {
        // SAFETY: the standard input is the connection, and nobody else reads it; the other end is `start` of another process, over
        // which the runtime keeps the verbs' contracts.
        unsafe {
            let channel = UnixStream::from_raw_fd(0);
            serve_device(open_device(&options).map_err(|error| error.to_string()), channel)
        }
    })?;
    Ok(())
}
