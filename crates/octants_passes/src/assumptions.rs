//! What a kernel is compiled for, as far as passes ask.

/// What passes may take for granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Assumptions {
    /// No two array arguments overlap, unless both are only read. A guard at launch has seen to it.
    pub noalias: bool,
    /// Each thread may have copies of arrays that a loop only adds to. The plan says of which; a guard at launch has seen that they
    /// pay.
    pub copies: bool,
    /// The kernel runs on one thread, and nothing else of the device's meanwhile, unless it has branches: updates of fields are as quick as updates
    /// of copies.
    pub exclusive: bool,
    /// Starting a task takes as long as thousands of iterations: what one loop can do as well is not left to a second one.
    pub few_tasks: bool,
    /// Threads form blocks, and wait for each other there.
    pub blocks: bool,
}
