//! A session: a device, its memory, and the kernels compiled for it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use octants_hal::null::NullDevice;
use octants_ir::Kernel;
use octants_runtime::Context;

use crate::compiled::CompiledKernel;
use crate::error::Error;
use crate::options::SessionOptions;

/// A device in use. Cloning gives another handle of the same session.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    options: SessionOptions,
    context: Arc<Context>,
}

impl Session {
    /// Opens the device.
    pub fn new(options: SessionOptions) -> Result<Self, Error> {
        let context = Context::new(Arc::new(NullDevice::new()));
        Ok(Self { inner: Arc::new(Inner { options, context }) })
    }

    pub fn options(&self) -> &SessionOptions {
        &self.inner.options
    }

    /// Ends the session: arrays and kernels that it gave out refuse from now on, and its kernels' code goes with the last handle.
    pub fn reset(&self) {
        self.inner.context.end();
    }

    pub fn is_live(&self) -> bool {
        self.inner.context.check().is_ok()
    }

    /// Waits until the device has done everything that it was told to.
    pub fn sync(&self) -> Result<(), Error> {
        self.inner.context.check().map_err(|_| Error::Stale { what: "session" })?;
        self.inner.context.synchronise().map_err(|error| Error::internal("device", error))
    }

    /// How many arrays live.
    pub fn live_arrays(&self) -> usize {
        self.inner.context.allocations()
    }

    /// How many bytes they hold.
    pub fn live_bytes(&self) -> u64 {
        self.inner.context.bytes()
    }

    /// Native code for a kernel in its structured phase. Equal IR is compiled once, also if two threads ask at the same time: the
    /// second one waits. `lowering` is how long the front end took, for the statistics. Raising `cancel` ends the wait.
    pub fn compile(
        &self,
        kernel: Kernel,
        lowering: Duration,
        cancel: &AtomicBool,
    ) -> Result<Arc<CompiledKernel>, Error> {
        let _ = (kernel, lowering, cancel);
        Err(Error::internal("compile", "no device compiles yet"))
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.inner.context
    }

    pub(crate) fn owns(&self, context: &Arc<Context>) -> bool {
        Arc::ptr_eq(&self.inner.context, context)
    }
}
