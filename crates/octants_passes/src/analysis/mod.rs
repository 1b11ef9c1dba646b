//! Facts about a kernel that passes ask for: forms of indices, who touches which array, what an iteration costs. Analyses change
//! nothing.

mod access;
mod change;
mod cost;
mod course;
mod footprint;
mod index;
mod linear_system;
mod repeated;
mod replacement;
mod siblings;
mod sums;
mod trips;
mod work;

pub use access::{
    ArrayUse, accesses_of, array_access, array_uses, computing_functions, function_access, is_check,
};
pub(crate) use change::{Change, change_of, plain_place};
pub use cost::{cost, own_cost};
pub use course::{Course, Part, Read};
pub use footprint::{Footprint, Index, Interval, Touched};
pub use index::Affine;
pub use linear_system::{Linear, System};
pub use repeated::differs_each_time;
pub(crate) use replacement::{Replacement, may_replace, uncast};
pub use siblings::{arrays_beside, arrays_of_siblings};
pub use sums::sums_of;
pub use work::work_of;
