//! What lowering works with: terms, and the functions and scopes being lowered. Data only: nothing here knows how anything is lowered.

pub(crate) mod scope;
pub(crate) mod term;
