//! What a compilation tells of itself: where its time went, and texts to look at.

use std::time::{Duration, Instant};

use octants_hal::FunctionUsage;

/// Where the time of a compilation went.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompileStatistics {
    /// From the source to IR, as the front end told.
    pub lower: Duration,
    /// Rewrites of the IR, and the plan.
    pub passes: Duration,
    /// From IR to LLVM text.
    pub emit: Duration,
    /// LLVM: parse, optimise, and emit objects. Tasks compile at the same time; this is what the caller waited.
    pub llvm: Duration,
    /// From objects to callable code.
    pub load: Duration,
    /// Until the store on disk had given the kernel.
    pub find: Duration,
    pub tasks: usize,
    /// Those of which code was on disk.
    pub found_tasks: usize,
    /// Whether the whole kernel was on disk: no pass ran.
    pub found: bool,
    /// Bytes of the objects.
    pub code_bytes: usize,
    /// When the code was loaded.
    pub finished: Option<Instant>,
}

impl CompileStatistics {
    pub fn total(&self) -> Duration {
        self.lower + self.find + self.passes + self.emit + self.llvm + self.load
    }
}

/// What one task takes of a GPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskResources {
    /// The name of its code, as profilers show it.
    pub symbol: String,
    /// Whether it is a parallel loop; otherwise one thread runs it.
    pub parallel: bool,
    pub usage: FunctionUsage,
}

/// A text that shows a kernel at one stage of its compilation.
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
