//! What is wanted: which derivative, and what lies beside the memory of each parameter.

use octants_ir::Layout;

/// Which derivative.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// Tangents beside the values.
    Forward,
    /// Adjoints, from the results back to the inputs.
    Reverse,
}

/// What lies beside the memory of one parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Storage {
    /// It counts as a constant: integers, arguments by value, what a program says that it is constant. What is stored there is a
    /// constant for those who load it.
    Constant,
    /// A real array without storage for its derivative. Loads give constants. A store of something that depends on an input is refused if
    /// the kernel reads it again, or keeps nothing else: the derivative would be lost. Otherwise the array is a *sink*.
    Missing,
    /// Likewise of a field that a program placed without: what is lost by reading it again is told, unless nothing else is kept.
    Dropped,
    /// Integers that stand for reals, rounded: what depends on an input is refused where it is stored.
    Rounded,
    /// It has storage, laid out so; as the parameter itself if nothing is said.
    Companion(Option<Layout>),
}
