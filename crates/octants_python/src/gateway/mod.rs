//! The way between Python and Rust: exceptions, signals, the interpreter's lock, the depth of the stack.

pub mod errors;
pub mod interrupt;
pub mod stack;
pub mod under_way;
