//! From the IR to LLVM text: a pure function of a kernel in its tasks phase and its plan.
//!
//! One module per task, each with one function and the kernel's own functions that it calls. A task's body is written by op family
//! ([`ops`]); what differs between targets is a task's [lowering](lowering::TargetLowering), with one folder for each target. This crate links
//! nothing: what becomes of the text is not its concern, and it knows of no device but the layout of the memory that a task sees.
//!
//! Laws of the text:
//! * **Nothing is undefined that the IR defines.** Integers wrap, divisors are made safe, shifts are masked, conversions
//!   saturate; there is no `unreachable`, and no loop is assumed to end.
//! * **Index arithmetic is exact** (see [`address`](mod@address)).
//! * **Without fast math no instruction carries a flag**, and a widened loop gives what the scalar one gives; with it, each carries those that its
//!   [rounding](mod@rounding) allows.
//! * The same input gives the same text.

mod address;
mod alias;
mod args;
mod counter;
mod cpu;
mod emitter;
mod function;
mod gpu;
mod index_range;
mod iterations;
mod lanes;
mod lowering;
mod module;
mod ops;
mod options;
mod report;
mod rounding;
mod softened;
mod task;
mod value;

pub use cpu::{VectorFunction, VectorLibrary};
pub use gpu::{Instruction, LargeAngles, NVIDIA, PrintMeeting, Registers, Vendor};
pub use options::{CpuOptions, EmitOptions, GpuOptions, Target};

use octants_hal::LaunchShape;
use octants_ir::Kernel;
use octants_ir::plan::Plan;

/// The module of one task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskText {
    /// The name of its function.
    pub symbol: String,
    pub text: String,
    /// How many neighbouring iterations its function runs at once: a chunk of fewer takes as long as one of so many.
    pub lanes: u32,
    /// Its loops are over straight code, of whole vectors or such as vectors would not gain: there is nothing in them to unroll or to vectorise.
    pub straight: bool,
    /// It runs few iterations, and vectors of them at once: its code is to be made in little time.
    pub brief: bool,
    /// How its function deals iterations to the threads of a GPU; of no meaning on a CPU.
    pub shape: LaunchShape,
}

/// The modules of a kernel's tasks, in the order of the plan's steps.
///
/// # Panics
/// If the kernel is not in its tasks phase, or the plan is not its own.
pub fn emit(kernel: &Kernel, plan: &Plan, options: &EmitOptions) -> Vec<TaskText> {
    let facts = emitter::KernelFacts::of(kernel);
    (0..plan.tasks.len()).map(|task| task::emit(kernel, &facts, plan, task, options)).collect()
}
