//! Statements: assignments, branches, loops, returns.

pub(crate) mod assert;
pub(crate) mod assign;
pub(crate) mod branch;
pub(crate) mod exits;
pub(crate) mod groups;
pub(crate) mod loops;
pub(crate) mod returns;
pub(crate) mod stmt;
pub(crate) mod stream_blocks;
pub(crate) mod tiles;
pub(crate) mod unroll;
