//! Direct solvers of sparse linear systems, on the host: orderings, `LDLᵀ` and `LU` factorisations, and solving with them.
//!
//! It is Rust, not kernels: each step depends on the one before, which a GPU has nothing to run in parallel for, lists grow as they
//! are made, and nothing is compiled when a program first solves a system. Numbers are double precision, whatever the matrix has.
//!
//! An *analysis* ([`CholeskyAnalysis`], [`LuAnalysis`]) is made of a [`Pattern`] alone, and used again for other values in the same places. Knows no device and no
//! session.

mod cholesky;
mod elimination_tree;
mod lu;
mod min_degree;
mod pattern;
mod symmetric;
#[cfg(test)]
mod tests;

pub use cholesky::{Cholesky, CholeskyAnalysis, Pivots};
pub use lu::{ColumnOrdering, Lu, LuAnalysis};
pub use pattern::Pattern;
pub use symmetric::{Symmetric, SymmetricAnalysis};
