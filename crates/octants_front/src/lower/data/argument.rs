//! Arguments: of calls in the kernel, and of the kernel itself with what they lead to.

use octants_diag::Span;

use super::term::Term;
use crate::ast::Name;
use crate::dependency::Dependency;

/// An evaluated argument of a call.
#[derive(Clone, Debug)]
pub(crate) struct Argument<O> {
    /// `None` for a positional one.
    pub name: Option<Name>,
    pub term: Term<O>,
    pub span: Span,
    /// Whether it is written as a number: `1`, `-2.5`.
    pub is_literal: bool,
}

/// How arguments are evaluated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passing {
    /// Places are loaded.
    ByValue,
    /// Places stay places: the callee may write them.
    ByReference,
    /// For code of Python's: places are loaded, numbers of numpy's stay what they are.
    ToPython,
}

/// A dependency while lowering.
#[derive(Debug)]
pub(crate) struct Member<O> {
    pub dependency: Dependency<O>,
    /// A dataclass whose annotations say what its members are.
    pub typed: bool,
    /// Numbers below it are parameters.
    pub lifted: bool,
    /// What reading it again gives.
    pub term: Term<O>,
}
