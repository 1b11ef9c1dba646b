//! Which iterations the code that is being written runs at once, beside the [lanes](crate::lanes) of a vector.

use std::rc::Rc;

use octants_ir::{Op, SideTable, Value};

use crate::value::Val;

/// The axes that the row being written runs over, outermost first, and what counts its iterations.
#[derive(Clone, Debug)]
pub(crate) struct Flat {
    pub axes: Vec<(Value, u64)>,
    pub counter: Val,
}

/// The points of a thread that are written one behind the other.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The index of the last axis.
    pub axis: Value,
    /// Which of the points is written.
    pub lane: u32,
    pub points: u32,
    /// Arrays whose bases and rows are aligned.
    pub aligned: Vec<usize>,
}

/// A body whose points are dealt to whole warps.
#[derive(Clone, Debug)]
pub(crate) struct WholeWarp {
    /// Which lanes share the cells of each update.
    pub sharing: Rc<SideTable<Op, Sharing>>,
    /// Whether all lanes of this warp have all of their points.
    pub whole: Val,
}

/// Which lanes of a whole warp add to the same cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Sharing {
    /// Nobody looks.
    #[default]
    Unknown,
    /// Some of them may.
    Some,
    All,
}
