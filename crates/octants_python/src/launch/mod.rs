//! From a call's arguments to the block of a launch.
//!
//! The arguments go one way: [`Specialisation::bind`](specialisation::Specialisation::bind) walks over the inputs of the code, an
//! [`Input`](input::Input) compares one object with what the code was made for, and the [`ArgumentWriter`](writer::ArgumentWriter)
//! writes it into the block. All errors but those of memory are told elsewhere, when the walk says that nothing fits.

mod array;
mod block;
mod class_version;
mod derivative;
mod field;
mod input;
mod instance_dict;
mod member_cache;
mod misfit;
mod pure_property;
mod replay;
mod specialisation;
mod staging;
mod tape_checks;
mod uses;
mod writer;

pub use block::Words;
pub use derivative::{
    CompanionKind, DerivativeKind, DerivativePlan, Sizing, companions, first_bytes, storage,
};
pub use misfit::Misfit;
pub use replay::{KeptArguments, Rebound};
pub use specialisation::{Fit, Objects, Specialisation, input_number};
pub use tape_checks::{LogBounds, TapeChecks, needed_values, read_values, require_unchanged, tell_of_launch};
pub use writer::LaunchArguments;
