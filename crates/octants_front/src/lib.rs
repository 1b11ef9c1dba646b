//! From the text of a Python function to IR.
//!
//! A value in a kernel is either an IR value or a host object; what can be evaluated at compile time is, through the trait [`Host`].
//! Only [`parse`] knows the parser; only [`host`] knows that there is a host language.
//!
//! **Nothing here keeps a Python object, a global or a cache of lowered code:** [`Sources`] remembers parsed text, and that is all.

mod arithmetic;
mod ast;
mod dependency;
mod formula;
pub mod host;
mod intrinsics;
mod lower;
mod math_functions;
mod parse;
mod signature;
mod sources;

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use octants_diag::Diagnostic;
use octants_ir::{ArrayType, Kernel, KernelOptions, Scalar};

pub use dependency::{Dependency, FieldParam, Origin, Role, Step, TreeView};
pub use formula::{Formula, FormulaParam};
pub use host::{
    Annotation, ArgumentArray, ArrayAnnotation, ElementAnnotation, ExprId, FieldKind, FunctionSource, Host,
    HostException, HostResult, Meaning, Number, ScalarAnnotation, SparseLeaf, SparseNode, TensorConstant,
    TraceError, Tracer,
};
pub use intrinsics::Intrinsic;
pub use lower::lower_kernel;
pub use signature::{FunctionKind, ParamSpec, Returned, Returns, Signature, check_signature};
pub use sources::Sources;

/// What a call specialises a parameter to.
#[derive(Clone, Debug)]
pub enum ArgSpec<O> {
    /// A kernel parameter of this type.
    Scalar(Scalar),
    /// A vector, matrix or struct of this type: one kernel parameter for each of its scalars.
    Typed(O),
    /// A kernel parameter that is an array, and the argument, which leads to the arrays of its gradients and duals.
    Array(ArrayType, Option<O>),
    /// A kernel parameter that is a part of an array.
    View(ArrayType),
    /// Known at compile time; not a parameter of the lowered kernel, though arrays that it leads to are.
    Template(O),
    /// A dataclass: those of its members that the kernel uses are parameters, as their annotations say.
    Dataclass(O),
}

/// What lowering depends on besides the source, the globals and the arguments.
#[derive(Clone, Debug)]
pub struct LowerOptions {
    pub default_fp: Scalar,
    pub default_ip: Scalar,
    /// What the kernel is to be compiled under. In debug mode `assert` statements are compiled in.
    pub kernel: KernelOptions,
    /// Indices of arrays and views are checked.
    pub check_bounds: bool,
    /// `and`, `or` on scalars evaluate lazily.
    pub short_circuit: bool,
    /// A static loop with more iterations gives a warning; 0 for never.
    pub unrolling_limit: u32,
    /// The kernel promises to depend on its arguments alone: globals that are values are refused.
    pub pure: bool,
    /// The kernel is launched as a graph: it has no branches.
    pub graph: bool,
    /// The kernel has run, and is to be differentiated in reverse: cells of sparse nodes are found, and never made. What gives cells
    /// up, or appends to lists, is refused.
    pub has_run: bool,
    /// Accesses of sparse fields say which element they are of, for those who compare accesses.
    pub names_elements: bool,
    /// Threads form blocks; otherwise what only they do is refused.
    pub has_blocks: bool,
    /// Bytes of memory that the threads of a block can share.
    pub max_shared_bytes: u32,
    /// The folder of the package: functions in its files are not the user's.
    pub library: Option<Arc<Path>>,
}

impl Default for LowerOptions {
    fn default() -> Self {
        Self {
            default_fp: Scalar::F32,
            default_ip: Scalar::I32,
            kernel: KernelOptions { fast_math: true, ..KernelOptions::default() },
            check_bounds: false,
            short_circuit: true,
            unrolling_limit: 32,
            pure: false,
            graph: false,
            has_run: false,
            names_elements: false,
            has_blocks: true,
            max_shared_bytes: 227 << 10,
            library: None,
        }
    }
}

/// A kernel in the structured phase.
#[derive(Debug)]
pub struct Lowered<O> {
    pub kernel: Kernel,
    /// What the kernel depends on, and where its parameters come from.
    pub dependencies: Vec<Dependency<O>>,
    /// The parameters that are fields.
    pub fields: Vec<FieldParam>,
    /// The parameters that a launch calculates.
    pub formulas: Vec<FormulaParam>,
    /// What the kernel returns, in the shape that the caller sees.
    pub returns: Returns,
    pub warnings: Vec<Diagnostic>,
    /// What host code evaluated for the kernel, as far as a launch has to do it again.
    pub evaluations: Option<Arc<dyn Any + Send + Sync>>,
}
