//! What a derivative leaves to its launches, which know more numbers.

use octants_ir::Op;

/// What may be left to launches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    Nothing,
    /// Whether iterations of a parallel loop meet. What one iteration overwrites is kept.
    Races,
    /// Whether what is read again lies between other indices than what is overwritten, as if it were another array.
    Parts,
    /// Whether anything that is read again is overwritten, too.
    Everything,
}

/// What must hold of a read and a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    /// The write is surely not to the cell that was read, after it was.
    NotOverwritten,
    /// They are of parts of the array between other indices.
    PartsApart,
    /// Iterations of a parallel loop surely do not meet there.
    NoRace,
    /// It is not certain that they do.
    NoCertainRace,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Question {
    pub read: Op,
    pub write: Op,
    pub wanted: Wanted,
}
