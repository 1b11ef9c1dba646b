//! NVIDIA's GPUs: LLVM's PTX, which the driver compiles for the device.

use std::sync::Arc;

use octants_codegen::{Assemble, PtxOptions, PtxTarget, compile_ptx, ptx_text};
use octants_gpu::driver::Reason;
use octants_hal::process::Opened;
use octants_hal::{Cancel, Device};
use octants_ir::plan::Task;
use octants_runtime::{Assumptions, Code};

use super::{Backend, Compiler, generated};
use crate::error::Error;
use crate::kernel_source::{KernelSource, VersionInfo};
use crate::kernel_store::KernelStore;
use crate::options::SessionOptions;
use crate::report::Dump;

struct Cuda {
    target: PtxTarget,
    /// The driver and the device that code is assembled for.
    facts: String,
    /// What assembles it, if it is in this process.
    device: Option<Arc<dyn Device>>,
}

pub(super) fn open(options: &SessionOptions) -> Result<Backend, Error> {
    let Opened { device, facts } = open_device(options)?;
    let device: Arc<dyn Device> = device.into();
    Ok(Backend { device: Arc::clone(&device), compiler: compiler(&facts, Some(device))? })
}

/// The device, with its driver's version and its compute capability.
pub(super) fn open_device(options: &SessionOptions) -> Result<Opened, Error> {
    let device = octants_cuda::open(options.device).map_err(|why| match why.reason {
        Reason::Refused { .. } => Error::Refused { message: why.to_string() },
        _ => Error::Unavailable { message: why.to_string() },
    })?;
    let facts = vec![device.driver_version().into(), device.capability().into()];
    Ok(Opened { device: Box::new(device), facts })
}

/// What makes code for the device that these were told of.
pub(super) fn compiler(facts: &[u64], device: Option<Arc<dyn Device>>) -> Result<Arc<dyn Compiler>, Error> {
    let &[driver, capability] = facts else {
        return Err(Error::internal("device", "its driver's version and its capability are not known"));
    };
    let target = PtxTarget::of_device(driver as u32, capability as u32)
        .map_err(|why| Error::Unavailable { message: format!("the NVIDIA driver is too old: {why}") })?;
    Ok(Arc::new(Cuda { target, facts: format!("{driver} {capability}"), device }))
}

impl Compiler for Cuda {
    fn make(
        &self,
        source: &KernelSource,
        assume: Assumptions,
        cancel: &Cancel,
    ) -> Result<Code<VersionInfo>, Error> {
        if source.kernel.has_tapes() {
            let message = "a gradient that keeps values of its loops cannot run on this device yet";
            return Err(Error::Unsupported { message: message.to_owned() });
        }
        let mut code = generated::make(source, with_copies(assume), cancel, |kernel, plan| {
            let store = source.store.as_deref().map(KernelStore::tasks);
            let assemble = |ptx: &[u8]| self.assemble(ptx);
            // Machine code is worth its own while it is kept; otherwise whoever loads it makes it.
            let assemble = store.is_some().then_some(&assemble as Assemble<'_>);
            compile_ptx(kernel, plan, self.options(source, assume), store, assemble, cancel)
        })?;
        // The code makes its copies itself.
        for task in &mut code.plan.tasks {
            if let Task::Range { copied, .. } = task {
                copied.clear();
            }
        }
        Ok(code)
    }

    fn dump(&self, source: &KernelSource, what: Dump, assume: Assumptions) -> Result<Option<String>, Error> {
        generated::dump(source, what, with_copies(assume), |kernel, plan, text| {
            ptx_text(kernel, plan, self.options(source, assume), text)
        })
    }

    fn identity(&self) -> Option<String> {
        Some(format!("{:?} {}", self.target, self.facts))
    }

    fn ptx_target(&self) -> Option<PtxTarget> {
        Some(self.target)
    }

    fn has_tapes(&self) -> bool {
        false
    }

    fn prefers_few_tasks(&self) -> bool {
        true
    }

    fn has_blocks(&self) -> bool {
        true
    }

    fn reports_accesses(&self) -> bool {
        false
    }
}

/// Whether copies of arrays fit into a block's memory is asked by the code itself.
fn with_copies(assume: Assumptions) -> Assumptions {
    Assumptions { copies: assume.noalias, ..assume }
}

impl Cuda {
    /// Machine code of a task. What cannot be assembled apart is left to whoever loads it, with its words for what is wrong.
    fn assemble(&self, ptx: &[u8]) -> Option<Vec<u8>> {
        self.device.as_ref()?.assemble(ptx).unwrap_or(None)
    }

    fn options(&self, source: &KernelSource, assume: Assumptions) -> PtxOptions {
        PtxOptions {
            target: self.target,
            noalias: assume.noalias,
            optimise: source.options.opt_level > 0,
            threads: generated::compile_threads(source),
        }
    }
}
