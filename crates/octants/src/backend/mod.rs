//! Backends: a device of some architecture, how code for it is made, and which texts of that code can be shown.
//!
//! **This is the one place that tells architectures apart.** A new device is a file here and a row in [`open`].

mod cuda;
mod generated;
mod native;
mod null;
mod ranges;
mod reference;

use std::sync::Arc;

pub(crate) use generated::{codegen_error, compile_threads};
pub(crate) use ranges::range_marker;

use octants_codegen::PtxTarget;
use octants_hal::null::NullDevice;
use octants_hal::{Cancel, Device};
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

    /// Whether an iteration has memory of its own that grows; otherwise a launch provides it as arrays.
    fn has_tapes(&self) -> bool;

    /// Whether every access to an array can be told of, with its location.
    fn reports_accesses(&self) -> bool;
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
