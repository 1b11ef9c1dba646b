//! The text form. `parse(print(k))` prints to the same bytes again, in every phase of a kernel.
//!
//! ```text
//! struct0 = struct "Ray" { "origin": tensor<f32, 3>, "t": f32 }
//!
//! kernel @relax(%0 "x": array<f32, 1>, %1 "n": i32) -> (f32) fast_math {
//!   %2: i32 = extent 0 %0
//!   %3: i32 = const 0
//!   parallel_for (%4: i32) in (%3..%2) {
//!     %5: f32 = load %0[%4]
//!     %6: f32 = for %7: i32 in %3..%1 carry (%8: f32 = %5) {
//!       %9: f32 = sin %8
//!       yield %9
//!     }
//!     store %0[%4], %6
//!   }
//!   return
//! }
//! ```
//!
//! * Printed values are numbered in order of appearance, so the text without locations is the same for the same kernel however
//!   it was made: it is what caches are keyed by. Text that is read may name values freely (`%len`), each once in a kernel.
//! * A place is its base with indices and components in brackets, where it has any: `load %x[%i, %j]`, `store %v, %a`.
//! * `while carry (%a: i32 = %0) { … yield %cond, %a } do (%b: i32) { … yield %c }`: condition, then body.
//! * `for_cells (%i: i32, %j: i32) over layout0 until %left { … }`, where `until` and a variable stand only if it may end early
//! * `parallel_for (%i: i32, %j: i32) in (%a..%b, %c..%d) reduce (%s: f32 = atomic_add %sum[%k]) block_dim 64 max_threads 1
//!   in_order brief stage (%x, %y) name "label" { … yield %t }`; all but the axes is left out where absent.
//! * A `yield` of nothing at the end of a region is left out, and so is an `else` with nothing in it.
//! * Reals are written with the fewest digits that read back to the same bits; infinities and NaN as `0x` and their bits.
//! * With locations, a table stands first (`loc1 = 0:120..130 in "f" from loc0`: file, byte range, function, the inlined call)
//!   and ops name their line of it at the end of their own.
//! * Functions stand before the kernel: `func0 = function @f(%0 "a": i32, %1 "out": local<f32>) -> (i32) { … return %2 }`, and are
//!   called by number, `%3: i32 = call func0 %1, %2`. One that is called rarely has the word `cold` before its body.
//! * `print "x = {:.2f} at {@}\n", %x`: see [`PrintSpec`](crate::ops::PrintSpec).
//! * Layouts of fields stand before them: `layout0 = layout [6, 8] from [-1, 0] { dense (axis 0 below 1 extent 6 stride 32, axis 1
//!   below 1 extent 8 stride 4) }` (`from` is left out where all are 0), and a field is `field<f32, layout0>`.
//! * `;` begins a comment.

mod lex;
mod parse;
mod parse_op;
mod print;
#[cfg(test)]
mod tests;
mod type_text;

pub use parse::{ParseError, parse};
pub use parse_op::number_of;
pub use print::{OpLines, print, print_with_files, print_with_locations};
