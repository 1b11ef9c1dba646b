//! What lowering works with: terms, arguments, the functions and scopes being lowered, and how control moves in them. Data only: nothing here knows how anything is lowered.

pub(crate) mod argument;
pub(crate) mod blocks;
pub(crate) mod flow;
pub(crate) mod function;
pub(crate) mod scope;
pub(crate) mod sparse;
pub(crate) mod term;

use octants_diag::Diagnostic;

/// What lowering a part of the text gives, or why it does not.
pub(crate) type Fallible<T> = Result<T, Box<Diagnostic>>;
