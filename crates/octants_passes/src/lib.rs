//! Analyses, rewrites and task splitting, and the pass manager.
//!
//! A pass is one file (or folder) named by a verb, which begins with a before-and-after in IR text. The manager holds the one ordered
//! list and gives every pass dumps, timing, bisection and verification. Passes change kernels; they know no device, no
//! Python and no text of any target, and they never fail: a program that cannot be compiled was refused before.

pub mod analysis;
mod assumptions;
mod carry_elements;
mod check_arithmetic;
mod check_tapes;
mod demote_atomics;
mod differentiate;
mod edit;
mod eliminate_dead_code;
mod erase_detach;
mod expand_field_loops;
mod gather_updates;
mod keep_rounding;
mod loop_over_lanes;
mod lower_random;
mod make_plan;
mod manager;
mod merge_accesses;
mod partition_by_rows;
mod partition_by_words;
mod place_tapes;
mod privatise_reductions;
mod promote_locals;
mod recognise_reductions;
mod reuse_cells;
mod scalarise;
mod simplify;
mod sink_updates;
mod slice_bits;
mod split_digits;
mod split_tasks;
mod stage_updates;
mod strip_by_cells;
mod tape_arrays;

pub use assumptions::Assumptions;
pub use carry_elements::carry_elements;
pub use check_arithmetic::check_arithmetic;
pub use check_tapes::check_tapes;
pub use demote_atomics::demote_atomics;
pub use differentiate::{
    ArrayCopy, Derivative, LaunchOrder, Left, Mode, RaceCheck, RecordArray, RecordSizes, Recording, Refusal,
    RefusalKind, Storage, TapePlan, Told, differentiate, differentiate_recorded, possible_races,
};
pub use erase_detach::erase_detach;
pub use expand_field_loops::expand_field_loops;
pub use gather_updates::gather_updates;
pub use keep_rounding::{keep_rounding, settle_rounding};
pub use lower_random::lower_random;
pub use make_plan::make_plan;
pub use manager::{
    Dump, Findings, Need, Outcome, PIPELINE, Pass, PassTiming, PipelineOptions, run_pass, run_pipeline,
};
pub use merge_accesses::merge_accesses;
pub use partition_by_rows::partition_by_rows;
pub use partition_by_words::partition_by_words;
pub use place_tapes::place_tapes;
pub use privatise_reductions::privatise_reductions;
pub use promote_locals::promote_locals;
pub use recognise_reductions::{may_have_races, recognise_reductions};
pub use scalarise::scalarise;
pub use simplify::simplify;
pub use sink_updates::sink_updates;
pub use slice_bits::slice_bits;
pub use split_digits::split_digits;
pub use split_tasks::split_tasks;
pub use stage_updates::stage_updates;
pub use tape_arrays::{
    ClaimParams, SizeParams, SizesLayout, TapeArray, TapeParams, TapedLoop, declare_sized_tape_arrays,
    declare_tape_arrays,
};
