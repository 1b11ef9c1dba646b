//! From the IR to LLVM text: a pure function of a kernel in its tasks phase and its plan.
//!
//! One module per task, each with one function in the shape that [`abi`] describes, and the kernel's own functions that it calls. An op family's file has the name of its
//! file in `octants_ir::ops`. This crate links nothing: what becomes of the text is not its concern, and it knows of no device
//! but the layout of the memory that a CPU task sees.
//!
//! Laws of the text:
//! * **Nothing is undefined that the IR defines.** Integers wrap, divisors are made safe, shifts are masked, conversions
//!   saturate; there is no `unreachable`, and no loop is assumed to end.
//! * **Index arithmetic is exact** (see [`address`](mod@address)).
//! * **Without fast math no instruction carries a flag**, and a widened loop gives what the scalar one gives.
//! * The same input gives the same text.

mod address;
mod alias;
mod args;
mod cpu;
mod emitter;
mod function;
mod index_range;
mod lanes;
mod module;
mod ops;
mod task;
mod value;

pub use cpu::abi;

use octants_ir::Kernel;
use octants_ir::plan::Plan;

/// What the text may assume, and what it is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EmitOptions {
    /// No two array arguments overlap, unless both are only read.
    pub noalias: bool,
    /// The target's triple; empty if whoever compiles the text says it.
    pub triple: String,
    /// The target's data layout; empty if whoever compiles the text says it.
    pub data_layout: String,
    /// Width of the target's vector registers in bits.
    pub vector_bits: u32,
    /// Exactly that many iterations at once in every parallel loop that can be widened, instead of what seems best.
    pub force_lanes: Option<u32>,
}

impl Default for EmitOptions {
    fn default() -> Self {
        Self {
            noalias: true,
            triple: String::new(),
            data_layout: String::new(),
            vector_bits: 256,
            force_lanes: None,
        }
    }
}

/// The module of one task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskText {
    /// The name of its function.
    pub symbol: String,
    pub text: String,
    /// How many neighbouring iterations its function runs at once: a chunk of fewer takes as long as one of so many.
    pub lanes: u32,
}

/// The modules of a kernel's tasks, in the order of the plan's steps.
///
/// # Panics
/// If the kernel is not in its tasks phase, or the plan is not its own.
pub fn emit_cpu(kernel: &Kernel, plan: &Plan, options: &EmitOptions) -> Vec<TaskText> {
    let facts = emitter::KernelFacts::of(kernel);
    plan.steps.iter().map(|step| task::emit(kernel, &facts, plan, step, options)).collect()
}
