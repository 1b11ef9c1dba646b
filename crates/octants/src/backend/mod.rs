//! Backends: a kind of device, how code for it is made, and which texts of that code can be shown.
//!
//! **This is the one place that tells architectures apart.** A new device is a file here and a row in [`backend`].

mod native;
mod null;
mod reference;

use std::sync::Arc;

use octants_hal::{Cancel, Device};
use octants_runtime::{Assumptions, Code};

use crate::error::Error;
use crate::kernel_source::{KernelSource, VersionInfo};
use crate::options::{Arch, SessionOptions};
use crate::report::Dump;

pub(crate) trait Backend: Sync {
    /// Opens the device.
    fn open(&self, options: &SessionOptions) -> Result<Arc<dyn Device>, Error>;

    /// Code for a kernel under these assumptions. Raising `cancel` ends it early.
    fn make(
        &self,
        source: &KernelSource,
        assume: Assumptions,
        cancel: &Cancel,
    ) -> Result<Code<VersionInfo>, Error>;

    /// A text of the code that `make` makes, or of the IR that it makes it from. `None` where there is no such thing.
    fn dump(&self, source: &KernelSource, what: Dump, assume: Assumptions) -> Result<Option<String>, Error>;

    /// Whether every access to an array can be told of, with its location.
    fn reports_accesses(&self) -> bool;
}

pub(crate) fn backend(arch: Arch) -> &'static dyn Backend {
    match arch {
        Arch::Cpu => &native::Native,
        Arch::Reference => &reference::Reference,
        Arch::Null => &null::Null,
    }
}
