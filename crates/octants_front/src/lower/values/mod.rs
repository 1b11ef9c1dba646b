//! Expressions, and what is calculated with values: operators, conversions, vectors, structs, compile-time objects.

pub(crate) mod comprehension;
pub(crate) mod convert;
pub(crate) mod expr;
pub(crate) mod fold;
pub(crate) mod formulas;
pub(crate) mod logical;
pub(crate) mod objects;
pub(crate) mod operators;
pub(crate) mod promote;
mod sequences;
pub(crate) mod structs;
pub(crate) mod tensor;
