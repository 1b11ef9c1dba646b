//! Several neighbouring iterations at once: how many, which of them run, and which values differ between them.
//!
//! An op family does not ask how many lanes there are: the emitter's instructions take scalars and vectors alike. What has no vector
//! form is done lane by lane ([`each`]), what lanes count is computed for the first of them ([`counted`]), what a loop need not load again is loaded before it ([`hoist`]), and where lanes decide differently a mask says which run ([`mask`]).

pub(crate) mod counted;
mod each;
pub(crate) mod hoist;
pub(crate) mod mask;
pub(crate) mod offsets;
pub(crate) mod uniform;

use std::rc::Rc;

use octants_ir::{Op, Scalar, SideTable, Value};

use self::offsets::{LaneValues, Offsets};
use crate::value::{Ptr, Val};

/// The lanes that the code being written runs in.
pub(crate) struct Lanes {
    /// How many lanes a varying value has: 1 while scalar code is written.
    pub count: u32,
    /// Which values differ between lanes; of use only where `count > 1`.
    pub varying: SideTable<Value, bool>,
    /// By how much the values of lanes differ, where that is known; of use only where `count > 1`.
    pub offsets: SideTable<Value, Option<Offsets>>,
    /// What the first lane has of such values.
    firsts: SideTable<Value, Option<Val>>,
    /// Whether they are lanes of a block, which begin at a multiple of how many run at once.
    pub are_of_block: bool,
    /// Offsets from the first lane's index, by the number that indices name.
    tables: Vec<Rc<[i64]>>,
    /// The lanes that run, where not all do, in the form of `mask_scalar`.
    pub mask: Option<Val>,
    /// What masks are held in: `u1` where the target has registers for them, else an integer as wide as the data.
    pub mask_scalar: Scalar,
    /// How many of the lanes ever run, where that is found out only as the code runs: the cells of a tape that lie side by side.
    pub columns: Option<Val>,
    /// Loops that were written so that lanes leave them one by one, last time.
    pub left_one_by_one: SideTable<Op, bool>,
    /// Loads that ran before the loop that they stand in.
    pub hoisted: SideTable<Op, bool>,
    /// Stack slots for vectors that are taken apart in memory.
    scratch: Vec<Ptr>,
    /// Loops over lanes that compute math functions, so far.
    loops: usize,
    /// Updates of memory by one lane after the other, times lanes, so far.
    updates: u32,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            count: 1,
            varying: SideTable::new(false),
            offsets: SideTable::new(None),
            firsts: SideTable::new(None),
            are_of_block: false,
            tables: Vec::new(),
            mask: None,
            mask_scalar: Scalar::U1,
            columns: None,
            left_one_by_one: SideTable::new(false),
            hoisted: SideTable::new(false),
            scratch: Vec::new(),
            loops: 0,
            updates: 0,
        }
    }
}

impl Lanes {
    /// Makes them those of a block; gives what they were.
    pub fn enter_block(&mut self, values: LaneValues, mask_scalar: Scalar) -> Self {
        let LaneValues { lanes, varying, offsets } = values;
        let loops = self.loops;
        let of_block = Self {
            count: lanes,
            varying,
            offsets,
            mask_scalar,
            are_of_block: true,
            loops,
            ..Self::default()
        };
        std::mem::replace(self, of_block)
    }

    pub fn leave_block(&mut self, around: Self) {
        *self = Self { loops: self.loops, ..around };
    }
}
