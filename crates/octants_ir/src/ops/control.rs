//! What a parallel loop and an assertion carry besides their operands.

use serde::{Deserialize, Serialize};

use super::AtomicOp;
use crate::ids::LayoutId;

/// How many arguments of an assertion that failed are kept; what is behind them is not told.
pub const ASSERT_ARGUMENTS: usize = octants_abi::cpu::Fault::ARGUMENTS;

/// What an assertion is about: it decides how a failure is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum AssertKind {
    /// A condition of the program itself.
    #[default]
    Condition,
    /// An index inside of its extent.
    Bounds,
    /// An operation of integers that has a result: a divisor other than zero, an exponent that is not negative.
    Arithmetic,
    /// Room for a cell of a sparse node.
    Memory,
    /// Room for what a derivative keeps: as much as was found out before it ran.
    Tape,
    /// Room for what one iteration of a derivative keeps.
    TapeLimit,
}

impl AssertKind {
    pub const ALL: &'static [AssertKind] =
        &[Self::Condition, Self::Bounds, Self::Arithmetic, Self::Memory, Self::Tape, Self::TapeLimit];

    /// The word after `assert` in text; a plain condition has none.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Self::Condition => None,
            Self::Bounds => Some("bounds"),
            Self::Arithmetic => Some("arithmetic"),
            Self::Memory => Some("memory"),
            Self::Tape => Some("tape"),
            Self::TapeLimit => Some("tape_limit"),
        }
    }
}

/// Attributes of a `parallel_for`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ParallelFor {
    pub domain: Domain,
    /// How many indices the body has.
    pub axes: u8,
    /// Reductions: each takes one accumulator parameter and, in order after the bounds, a place among the operands.
    pub reductions: Vec<Reduction>,
    /// Iterations that one thread takes at once, where the user said so; the block size on a GPU.
    pub block_dim: Option<u32>,
    /// At most this many threads; 1 means strictly in order.
    pub max_threads: Option<u32>,
    /// Iterations write what others read or write, as the user asked for: those that one thread runs are run one after the other.
    pub in_order: bool,
    /// Iterations are few beside those of another loop that does the same: code for them is made in little time rather than made fast.
    pub brief: bool,
    /// Parameters of the kernel, by number and ascending: fields whose elements the threads of a block had better share where that pays. A hint, which
    /// changes nothing about what the loop does.
    pub staged: Vec<u32>,
    /// A name for profiles and dumps.
    pub name: Option<String>,
}

/// What a parallel loop runs over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Domain {
    /// Ranges of integers: the first operands are `lo, hi` of each axis, outermost first; the last axis runs fastest.
    #[default]
    Ranges,
    /// The cells of a layout in storage order, with an `i32` index for each of its axes, from its origin on.
    Cells(LayoutId),
}

impl ParallelFor {
    /// Whether iterations that one thread runs must be run one after the other.
    pub fn keeps_order(&self) -> bool {
        self.in_order || self.max_threads == Some(1)
    }

    /// How many operands come before the places.
    pub fn bound_operands(&self) -> usize {
        match self.domain {
            Domain::Ranges => 2 * usize::from(self.axes),
            Domain::Cells(_) => 0,
        }
    }

    /// How many operands there are in all.
    pub fn operand_count(&self) -> usize {
        self.reductions
            .iter()
            .fold(self.bound_operands(), |sum, reduction| sum + usize::from(reduction.operands))
    }

    /// The positions of the operands that are bases of places.
    pub fn place_starts(&self) -> Vec<usize> {
        let mut next = self.bound_operands();
        let mut starts = Vec::with_capacity(self.reductions.len());
        for reduction in &self.reductions {
            starts.push(next);
            next += usize::from(reduction.operands);
        }
        starts
    }
}

/// `place = op(place, all contributions)`: the accumulator starts at the op's identity in each thread and is combined into the
/// place at the end. An accumulator that is still the identity is not combined: a place that no iteration contributes to is never
/// touched, and so may lie outside its array.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reduction {
    pub op: AtomicOp,
    /// How many operands address the place: its base, indices and components.
    pub operands: u8,
}
