//! Why there is no derivative.

use octants_ir::ops::{CellUse, Effects};
use octants_ir::{Loc, OpKind};

/// Why there is no derivative that is right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    pub kind: RefusalKind,
    pub at: Loc,
    /// What `at` is at odds with.
    pub other: Option<Loc>,
    /// The parameter whose memory it is about.
    pub param: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusalKind {
    /// The derivative needs what was read at one place, and another overwrites it.
    Overwritten,
    /// Likewise, and keeping what was read would not do: other iterations of a parallel loop may write it at any time, or nothing is kept.
    Unkeepable,
    /// Something that depends on an input is stored in an array without storage for its derivative.
    NoStorage,
    /// Something that depends on an input is stored as a rounded number, which has no derivative.
    Rounded,
    /// The derivative needs a random number, which is another one when it is drawn again.
    Random,
    /// The derivative needs the time.
    Clock,
    /// Which of several iterations an element is left with depends on their order.
    Race,
    /// What one iteration of a parallel loop reads, another one writes: which comes first depends on their order.
    Crossed,
    /// A function calls itself.
    Recursion,
    /// How much must be kept while the kernel runs depends on what is read at one place and was written at another.
    Uncounted,
    /// The derivative needs what a cell held before an atomic update, which other threads changed meanwhile.
    AtomicResult,
    /// An op of this name has no derivative where it stands.
    NoRule(&'static str),
}

impl RefusalKind {
    /// Why a derivative may not run an op again for what it gave when the kernel ran; `None` if that is the same. What is read from memory is asked for
    /// elsewhere.
    pub(super) fn of_repeating(kind: &OpKind) -> Option<Self> {
        let effects = kind.effects();
        if effects.contains(Effects::KEY) {
            Some(Self::Random)
        } else if effects.contains(Effects::NONDETERMINISTIC) && kind.info().cell == CellUse::Nothing {
            Some(Self::Clock)
        } else {
            None
        }
    }
}

impl Refusal {
    pub(super) fn new(kind: RefusalKind, at: Loc) -> Self {
        Self { kind, at, other: None, param: None }
    }

    /// Says so of what would have to be kept.
    pub fn cannot_be_kept(&mut self) {
        if self.kind == RefusalKind::Overwritten {
            self.kind = RefusalKind::Unkeepable;
        }
    }
}
