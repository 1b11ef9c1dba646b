//! Backends: a device of some architecture, how code for it is made, and which texts of that code can be shown.
//!
//! **This is the one place that tells architectures apart.** A new device is a file here and a row in [`open`].

mod cuda;
mod generated;
mod native;
mod null;
mod ranges;
mod reference;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;

pub(crate) use generated::{codegen_error, compile_threads};
pub(crate) use ranges::range_marker;

use octants_codegen::PtxTarget;
use octants_hal::null::NullDevice;
use octants_hal::process::{Opened, ProcessDevice};
use octants_hal::{Cancel, Device};
use octants_reference::ReferenceDevice;
use octants_runtime::{Assumptions, Code};

use crate::error::Error;
use crate::kernel_source::{KernelSource, VersionInfo};
use crate::options::{Arch, SessionOptions};
use crate::report::Dump;

/// An open device, and what makes code for it.
pub(crate) struct Backend {
    pub device: Arc<dyn Device>,
    pub compiler: Arc<dyn Compiler>,
}

impl Backend {
    fn new(device: impl Device + 'static, compiler: impl Compiler + 'static) -> Self {
        Self { device: Arc::new(device), compiler: Arc::new(compiler) }
    }

    /// Over a null device that the caller keeps.
    pub fn over_null(device: Arc<NullDevice>) -> Self {
        Self { device, compiler: Arc::new(null::Null) }
    }
}

/// How code for a device is made.
pub(crate) trait Compiler: Send + Sync {
    /// Code for a kernel under these assumptions. Raising `cancel` ends it early.
    fn make(
        &self,
        source: &KernelSource,
        assume: Assumptions,
        cancel: &Cancel,
    ) -> Result<Code<VersionInfo>, Error>;

    /// A text of the code that `make` makes, or of the IR that it makes it from. `None` where there is no such thing.
    fn dump(&self, source: &KernelSource, what: Dump, assume: Assumptions) -> Result<Option<String>, Error>;

    /// What PTX for the device is compiled for; `None` if it takes none.
    fn ptx_target(&self) -> Option<PtxTarget> {
        None
    }

    /// What its code depends on beside the kernel and the session's options; `None` if code is not worth keeping.
    fn identity(&self) -> Option<String> {
        None
    }

    /// Whether an iteration has memory of its own that grows; otherwise a launch provides it as arrays.
    fn has_tapes(&self) -> bool;

    /// Whether starting a task takes as long as thousands of iterations.
    fn prefers_few_tasks(&self) -> bool {
        false
    }

    /// Whether threads form blocks, and wait for each other there.
    fn has_blocks(&self) -> bool {
        false
    }

    /// Whether every access to an array can be told of, with its location.
    fn reports_accesses(&self) -> bool;
}

/// Opens a device of a kind that can be another process', for [`serve_device`](crate::serve_device).
pub fn open_device(options: &SessionOptions) -> Result<Opened, Error> {
    match options.arch {
        Arch::Cuda => cuda::open_device(options),
        Arch::Remote => Ok(Opened { device: Box::new(ReferenceDevice::remote()), facts: Vec::new() }),
        Arch::Cpu | Arch::Reference | Arch::Null => Err(Error::Unsupported {
            message: format!("`{}` is this process' own device", options.arch.name()),
        }),
    }
}

/// Starts a process that [serves](crate::serve_device) the device at its standard input.
pub(crate) fn open_in_process(options: &SessionOptions, mut command: Command) -> Result<Backend, Error> {
    let failed = |error: io::Error| Error::Unavailable {
        message: format!("no process for the device could be started: {error}"),
    };
    let (channel, other) = UnixStream::pair().map_err(failed)?;
    let child = command.stdin(OwnedFd::from(other)).spawn().map_err(failed)?;
    // The command holds the other end: it is to be closed here, so that its end is noticed.
    drop(command);
    let (device, facts) =
        ProcessDevice::connect(channel, Some(child)).map_err(|message| Error::Unavailable { message })?;
    let compiler: Arc<dyn Compiler> = match options.arch {
        Arch::Cuda => cuda::compiler(&facts, None)?,
        Arch::Cpu | Arch::Reference | Arch::Remote | Arch::Null => {
            Arc::new(reference::Reference { remote: true })
        }
    };
    Ok(Backend { device: Arc::new(device), compiler })
}

/// Opens the device that the options ask for.
pub(crate) fn open(options: &SessionOptions) -> Result<Backend, Error> {
    match options.arch {
        Arch::Cpu => Ok(native::open(options)),
        Arch::Cuda => cuda::open(options),
        Arch::Reference => Ok(reference::open()),
        Arch::Remote => Ok(reference::open_remote()),
        Arch::Null => Ok(Backend::new(NullDevice::new(), null::Null)),
    }
}
