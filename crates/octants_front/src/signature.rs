//! A function's signature, checked where it is decorated.

use octants_diag::Span;
use octants_ir::Data;

use crate::host::Annotation;

/// Kernels and funcs have different rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FunctionKind {
    Kernel,
    Func,
}

#[derive(Clone, Debug)]
pub struct ParamSpec {
    pub name: String,
    pub span: Span,
    /// `None` for a receiver, and for a func's parameter that has none.
    pub annotation: Option<Annotation>,
    /// Whether it is the `self` of a method.
    pub is_receiver: bool,
    pub has_default: bool,
}

/// A checked signature.
#[derive(Clone, Debug)]
pub struct Signature {
    pub name: String,
    pub qualname: String,
    /// The function's name in its `def`.
    pub span: Span,
    pub params: Vec<ParamSpec>,
    /// `Annotation::None` where there is none.
    pub returns: Annotation,
}

/// What a kernel returns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Returns {
    Nothing,
    One(Data),
    Tuple(Vec<Data>),
}
