//! The host's processor: LLVM's code on a pool of threads.

use octants_codegen::{NativeOptions, compile_native, native_identity, native_text};
use octants_cpu::CpuDevice;
use octants_hal::Cancel;
use octants_runtime::{Assumptions, Code};

use super::{Backend, Compiler, generated};
use crate::error::Error;
use crate::kernel_source::{KernelSource, VersionInfo};
use crate::kernel_store::KernelStore;
use crate::options::SessionOptions;
use crate::report::Dump;

struct Native;

pub(super) fn open(options: &SessionOptions) -> Backend {
    Backend::new(CpuDevice::new(options.threads), Native)
}

impl Compiler for Native {
    fn make(
        &self,
        source: &KernelSource,
        assume: Assumptions,
        cancel: &Cancel,
    ) -> Result<Code<VersionInfo>, Error> {
        generated::make(source, assume, cancel, |kernel, plan| {
            let store = source.store.as_deref().map(KernelStore::tasks);
            compile_native(kernel, plan, native_options(source, assume), store, cancel)
        })
    }

    fn dump(&self, source: &KernelSource, what: Dump, assume: Assumptions) -> Result<Option<String>, Error> {
        generated::dump(source, what, assume, |kernel, plan, text| {
            native_text(kernel, plan, native_options(source, assume), text)
        })
    }

    fn identity(&self) -> Option<String> {
        Some(native_identity())
    }

    fn has_tapes(&self) -> bool {
        true
    }

    fn reports_accesses(&self) -> bool {
        false
    }
}

fn native_options(source: &KernelSource, assume: Assumptions) -> NativeOptions {
    let threads = generated::compile_threads(source);
    let optimise = source.options.opt_level > 0;
    NativeOptions { noalias: assume.noalias, exclusive: assume.exclusive, optimise, threads }
}
