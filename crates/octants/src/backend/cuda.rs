//! NVIDIA's GPUs: LLVM's PTX, which the driver compiles for the device.

use octants_codegen::{PtxOptions, PtxTarget, compile_ptx, ptx_text};
use octants_cuda::CudaDevice;
use octants_hal::Cancel;
use octants_ir::plan::Task;
use octants_runtime::{Assumptions, Code};

use super::{Backend, Compiler, generated};
use crate::error::Error;
use crate::kernel_source::{KernelSource, VersionInfo};
use crate::options::SessionOptions;
use crate::report::Dump;

struct Cuda {
    target: PtxTarget,
}

pub(super) fn open(options: &SessionOptions) -> Result<Backend, Error> {
    let unavailable = |message: String| Error::Unavailable { message };
    let device = CudaDevice::open(options.device).map_err(|why| unavailable(why.to_string()))?;
    let target = PtxTarget::of_device(device.driver_version(), device.capability())
        .map_err(|why| unavailable(format!("the NVIDIA driver is too old: {why}")))?;
    Ok(Backend::new(device, Cuda { target }))
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
            compile_ptx(kernel, plan, self.options(source, assume), cancel)
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

    fn ptx_target(&self) -> Option<PtxTarget> {
        Some(self.target)
    }

    fn has_tapes(&self) -> bool {
        false
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
    fn options(&self, source: &KernelSource, assume: Assumptions) -> PtxOptions {
        PtxOptions {
            target: self.target,
            noalias: assume.noalias,
            optimise: source.options.opt_level > 0,
            threads: generated::compile_threads(source),
        }
    }
}
