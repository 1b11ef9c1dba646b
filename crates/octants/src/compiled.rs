//! A kernel's native code, ready to be launched.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use octants_ir::Kernel;
use octants_ir::plan::{Access, ArgLayout, ResultLayout};
use octants_runtime::Arguments;

use crate::error::{Error, LaunchError};
use crate::session::Session;

/// A kernel compiled in a session.
pub struct CompiledKernel {
    session: Session,
    kernel: Kernel,
    args: ArgLayout,
    results: ResultLayout,
    access: Vec<Access>,
    statistics: CompileStatistics,
}

/// Where the time of a compilation went. Of tasks that compile at the same time, the longest counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompileStatistics {
    /// From the source to IR, as the front end told.
    pub lower: Duration,
    /// Rewrites of the IR, and the plan.
    pub passes: Duration,
    /// From IR to LLVM text.
    pub emit: Duration,
    /// LLVM: parse, optimise, and emit an object.
    pub llvm: Duration,
    /// From an object to callable code.
    pub load: Duration,
    pub tasks: usize,
    /// Bytes of native code and its constants.
    pub code_bytes: usize,
}

/// A text that shows a kernel at some point of its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dump {
    /// What the front end made.
    Ir,
    /// What the passes made of it: tasks.
    IrAfterPasses,
    Llvm,
    OptimisedLlvm,
    Assembly,
}

impl CompiledKernel {
    pub fn name(&self) -> &str {
        &self.kernel.name
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    /// How a launch's block of arguments is laid out.
    pub fn args(&self) -> &ArgLayout {
        &self.args
    }

    /// How the block of results is laid out.
    pub fn results(&self) -> &ResultLayout {
        &self.results
    }

    /// What the kernel does with the memory of each parameter.
    pub fn access(&self) -> &[Access] {
        &self.access
    }

    pub fn statistics(&self) -> CompileStatistics {
        self.statistics
    }

    /// A text that shows the kernel at some point of its way. `None` where the device has no such thing.
    pub fn dump(&self, what: Dump) -> Result<Option<String>, Error> {
        let _ = what;
        Ok(None)
    }

    /// Runs the kernel. `args` is laid out as [`CompiledKernel::args`] says, `results` has [`CompiledKernel::results`]`.bytes`.
    ///
    /// Neither allocates nor locks nor counts references when the kernel's temporaries are small. Which version of the code runs is
    /// chosen here, by comparing the arrays' addresses in the block: arrays may overlap, and may be the same one twice.
    pub fn launch(
        &self,
        args: Arguments<'_>,
        results: &mut [u8],
        cancel: &AtomicBool,
    ) -> Result<(), LaunchError> {
        let _ = (args, results, cancel);
        Err(LaunchError::Refused(Error::internal("launch", "no device runs yet")))
    }
}
