//! The lowering of a task for a target: all that differs between targets. A task's body ([`ops`](crate::ops)) is the same for all of them.
//!
//! A lowering says how the task's function is entered and reaches the launch's memory, how it runs through its iterations and combines
//! their reductions, which library computes math functions, and how the task reports to the host. A lowering has no state: what
//! it needs while a function is written is in the [`Emitter`].

use octants_hal::LaunchShape;
use octants_ir::ops::{ArithOp, MathOp, MathUnary, Scope, ShuffleOp};
use octants_ir::plan::{Plan, Task};
use octants_ir::{Kernel, Op, OpKind, Region, Scalar, SharedArray, Value};

use crate::emitter::Emitter;
use crate::module::{Module, Node};
use crate::ops::block::no_blocks;
use crate::value::{Ptr, Val};

/// Memory that belongs to a launch, and that a task's body may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ContextField {
    /// The block of temporaries.
    Temps,
    /// The block of results.
    Results,
    /// The launch's key.
    Key,
}

/// A math function that is no instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LibraryFunction {
    Exp,
    Log,
    Log2,
    Sin,
    Cos,
    Tan,
    Tanh,
    Asin,
    Acos,
    Erf,
    Pow,
    Atan2,
    /// The exact remainder of a truncated quotient.
    Remainder,
}

impl LibraryFunction {
    /// The function that an op of the IR calls, if it is one of these.
    pub fn of(kernel: &Kernel, op: Op) -> Option<Self> {
        let data = &kernel.ops[op];
        let is_real = |operand: Value| kernel.ty(operand).elem().is_some_and(Scalar::is_real);
        match &data.kind {
            OpKind::Arith(ArithOp::RawMod) => is_real(data.operands[0]).then_some(Self::Remainder),
            OpKind::Math(MathOp::Pow) => is_real(data.operands[1]).then_some(Self::Pow),
            OpKind::Math(MathOp::Atan2) => Some(Self::Atan2),
            &OpKind::MathUnary(unary) => Self::of_unary(unary),
            _ => None,
        }
    }

    /// Likewise, of one operand.
    pub fn of_unary(unary: MathUnary) -> Option<Self> {
        match unary {
            MathUnary::Exp => Some(Self::Exp),
            MathUnary::Log => Some(Self::Log),
            MathUnary::Log2 => Some(Self::Log2),
            MathUnary::Sin => Some(Self::Sin),
            MathUnary::Cos => Some(Self::Cos),
            MathUnary::Tan => Some(Self::Tan),
            MathUnary::Tanh => Some(Self::Tanh),
            MathUnary::Asin => Some(Self::Asin),
            MathUnary::Acos => Some(Self::Acos),
            MathUnary::Erf => Some(Self::Erf),
            MathUnary::Sqrt
            | MathUnary::Rsqrt
            | MathUnary::Floor
            | MathUnary::Ceil
            | MathUnary::Round
            | MathUnary::IsNan
            | MathUnary::IsInf
            | MathUnary::FrexpMantissa
            | MathUnary::FrexpExponent => None,
        }
    }
}

/// How the iterations of a parallel loop go to the lanes and threads that run them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IterationMapping {
    /// How many run at once on a CPU.
    pub lanes: u32,
    /// Whether they do so in straight code of whole vectors.
    pub straight: bool,
    /// How they go to the threads of a GPU.
    pub shape: LaunchShape,
}

/// Updates of neighbouring cells that are written together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct JoinedSums {
    /// In the order of memory.
    pub ops: Vec<Op>,
    /// The last one to run: the others wait for it.
    pub last: Op,
}

pub(crate) trait TargetLowering {
    /// The head of a task's function, up to its opening brace. It has the block of arguments as `%args` and the launch's context
    /// as `%frame`, both pointers.
    fn head(&self, plan: &Plan, task: &Task, symbol: &str) -> String;

    /// How functions of the kernel's own are passed the context.
    fn context_param(&self) -> &'static str;

    /// Attributes of functions of the kernel's own that are called rarely.
    fn cold_attributes(&self) -> &'static str {
        ""
    }

    /// Where a field lies in the context, in bytes.
    fn context_offset(&self, field: ContextField) -> usize;

    /// Whether the task's function computes the bounds of its range itself.
    fn computes_bounds(&self, _task: &Task) -> bool {
        false
    }

    /// What the module says of the task's function beside its text.
    fn annotate(&self, _module: &mut Module, _symbol: &str, _shape: LaunchShape) {}

    /// A serial task, whole.
    fn serial(&self, e: &mut Emitter<'_>, body: Region);

    /// A parallel loop, whole: its iterations, and the combination of their reductions. Gives how its iterations are mapped.
    fn range(&self, e: &mut Emitter<'_>, op: Op) -> IterationMapping;

    /// The task ends here because of a failure at this site; the first one of a launch is kept. Ends the block.
    fn fail(&self, e: &mut Emitter<'_>, site: u32, arguments: &[Val]);

    /// Hands a print's operands to the host.
    fn print(&self, e: &mut Emitter<'_>, site: u32, operands: &[Val]);

    /// At the back edge of a loop that may run for long: returns if the launch should stop.
    fn poll_cancel(&self, e: &mut Emitter<'_>);

    /// A math function on scalars or vectors.
    fn library(&self, e: &mut Emitter<'_>, function: LibraryFunction, operands: &[Val]) -> Val;

    /// Sine and cosine of one angle, a real of 32 bits, where computing both at once is shorter.
    fn sine_and_cosine(&self, _e: &mut Emitter<'_>, _angle: Val) -> Option<(Val, Val)> {
        None
    }

    /// Where the frame of the function that is written lies, as an `i64`. Frames of calls lie below.
    fn frame_address(&self, e: &mut Emitter<'_>) -> Val;

    /// The lowest address that a frame of a recursive function may have, as an `i64`. Asked in a task's function, not in those it calls.
    fn stack_limit(&self, e: &mut Emitter<'_>) -> Val;

    /// So many bytes of the thread's tape, aligned for any vector; null if there is no memory for them.
    fn take_tape(&self, e: &mut Emitter<'_>, bytes: Val) -> Ptr;

    /// What was taken since then, and what was taken then, may be taken again.
    fn release_tapes(&self, e: &mut Emitter<'_>, first: Ptr);

    /// Asks the host for memory, so that the count in a cell reaches what is wanted; where the host does so by itself, the count as it is. Less than zero if
    /// there is none to be had, or the launch is to stop.
    fn grow_pool(&self, e: &mut Emitter<'_>, path: &[Value], _wanted: Value) -> Val {
        e.volatile_load(path)
    }

    /// The private copy that this thread has of an array, by its position among those of the task.
    fn private_copy(&self, e: &mut Emitter<'_>, position: usize) -> Ptr;

    /// Where an array lies in the memory of the block that runs.
    fn shared_array(&self, e: &mut Emitter<'_>, array: SharedArray) -> Ptr;

    /// Whether one thread runs all of a block.
    fn is_block(&self) -> bool {
        false
    }

    /// What the block's threads wrote before is seen by all of them behind it.
    fn barrier(&self, _e: &mut Emitter<'_>, scope: Scope) {
        no_blocks(scope)
    }

    /// A barrier of the block: of how many threads it holds.
    fn barrier_count(&self, _e: &mut Emitter<'_>, _holds: Val) -> Val {
        no_blocks(Scope::Block)
    }

    /// What this thread wrote before is seen by others before what it writes behind it.
    fn fence(&self, e: &mut Emitter<'_>, scope: Scope);

    /// A word of 32 bits from another lane.
    fn shuffle(&self, _e: &mut Emitter<'_>, _shuffle: ShuffleOp, _word: Val, _by: Val) -> Val {
        no_blocks(Scope::Subgroup)
    }

    /// The lanes of the subgroup on which it holds, as a `u64`.
    fn ballot(&self, _e: &mut Emitter<'_>, _holds: Val) -> Val {
        no_blocks(Scope::Subgroup)
    }

    /// Emits two neighbouring ops as one where that is faster. Otherwise nothing is emitted.
    fn fuse(&self, e: &mut Emitter<'_>, first: Op, second: Op) -> bool;

    /// Which updates among ops that stand one behind the other are written together.
    fn joined_sums(&self, _e: &Emitter<'_>, _ops: &[Op]) -> Vec<JoinedSums> {
        Vec::new()
    }

    /// Emits such updates.
    fn add_joined(&self, _e: &mut Emitter<'_>, _sums: &JoinedSums) {}

    /// Emits a whole `for` that decides alike for all lanes in a way of the target's own. Otherwise nothing is emitted.
    fn for_loop(&self, _e: &mut Emitter<'_>, _op: Op) -> bool {
        false
    }

    /// Whether a launch can be interrupted, so that loops look at the request to stop.
    fn can_stop(&self) -> bool {
        true
    }

    /// Whether loads of memory that no task of the kernel writes are told apart.
    fn marks_read_only_loads(&self) -> bool {
        false
    }

    /// Whether memory is updated with the least or the greatest of integers by one instruction.
    fn has_atomic_extremes(&self) -> bool {
        false
    }

    /// Whether loops of a few iterations are unrolled wholly, whatever LLVM thinks of it.
    fn unrolls_short_loops(&self) -> bool {
        false
    }

    /// What LLVM is told of a `while` loop.
    fn while_facts(&self, _e: &mut Emitter<'_>, _op: Op) -> Vec<Node> {
        Vec::new()
    }

    /// Whether numbers that are never negative are divided by constants as unsigned ones.
    fn divides_unsigned(&self) -> bool {
        false
    }

    /// Whether the lesser and the greater of two reals, of which a NaN loses and −0.0 is less than 0.0, are one instruction.
    fn has_min_max(&self) -> bool;

    /// Whether the kernel runs on one thread, and nothing else of the device's meanwhile, unless it has branches.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// Width of the vector registers in bits, 0 if code is not to use vectors.
    fn vector_bits(&self) -> u32;
}
