//! From the text of a Python function to IR.
//!
//! A value in a kernel is either an IR value or a host object; what can be evaluated at compile time is, through the trait [`Host`].
//! Only [`parse`] knows the parser; only [`host`] knows that there is a host language.
//!
//! **Nothing here keeps a Python object, a global or a cache of lowered code:** [`Sources`] remembers parsed text, and that is all.

mod ast;
pub mod host;
mod intrinsics;
mod lower;
mod parse;
mod signature;
mod sources;

use octants_diag::Diagnostic;
use octants_ir::{ArrayType, Kernel, Scalar};

pub use host::{
    Annotation, ArrayAnnotation, ExprId, FunctionSource, Host, HostException, HostResult, Meaning,
    ScalarAnnotation, TraceError, Tracer,
};
pub use intrinsics::Intrinsic;
pub use lower::lower_kernel;
pub use signature::{FunctionKind, ParamSpec, Returns, Signature, check_signature};
pub use sources::Sources;

/// What a call specialises a parameter to.
#[derive(Clone, Debug)]
pub enum ArgSpec<O> {
    /// A kernel parameter of this type.
    Scalar(Scalar),
    /// A kernel parameter that is an array.
    Array(ArrayType),
    /// Known at compile time; not a parameter of the lowered kernel.
    Template(O),
}

/// What lowering depends on besides the source, the globals and the arguments.
#[derive(Clone, Debug)]
pub struct LowerOptions {
    pub default_fp: Scalar,
    pub default_ip: Scalar,
    /// `assert` statements and index checks are compiled in.
    pub debug: bool,
    pub fast_math: bool,
    /// `and`, `or` on scalars evaluate lazily.
    pub short_circuit: bool,
    /// A static loop with more iterations gives a warning; 0 for never.
    pub unrolling_limit: u32,
}

impl Default for LowerOptions {
    fn default() -> Self {
        Self {
            default_fp: Scalar::F32,
            default_ip: Scalar::I32,
            debug: false,
            fast_math: true,
            short_circuit: true,
            unrolling_limit: 32,
        }
    }
}

/// A kernel in the structured phase.
#[derive(Debug)]
pub struct Lowered {
    pub kernel: Kernel,
    /// What the kernel returns, in the shape that the caller sees.
    pub returns: Returns,
    pub warnings: Vec<Diagnostic>,
}
