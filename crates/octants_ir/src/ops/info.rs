//! The columns of the tables of ops.

use super::effects::Effects;
use crate::types::Scalar;

/// Which scalar types (or tensors of which entries) an op takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// Any scalar type.
    Any,
    /// Every type but `u1`.
    Numeric,
    Real,
    /// Integers, `u1` among them.
    Integral,
}

impl Takes {
    pub fn admits(self, scalar: Scalar) -> bool {
        match self {
            Self::Any => true,
            Self::Numeric => scalar != Scalar::U1,
            Self::Real => scalar.is_real(),
            Self::Integral => scalar.is_integral(),
        }
    }

    /// As a message says it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any scalars",
            Self::Numeric => "numbers",
            Self::Real => "reals",
            Self::Integral => "integers",
        }
    }
}

/// A row of a family's table: what holds for one of its ops.
#[derive(Clone, Copy, Debug)]
pub struct FamilyInfo {
    /// The mnemonic in text.
    pub name: &'static str,
    pub takes: Takes,
    /// About how many instructions it is.
    pub cost: u32,
    /// Whether a derivative can flow from its result to its operands.
    pub differentiates: bool,
    pub doc: &'static str,
}

/// A row of the table of all ops.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// The mnemonic in text; of a family, what it is called here.
    pub name: &'static str,
    pub effects: Effects,
    pub cell: CellUse,
    /// About how many instructions it is, without its regions.
    pub cost: u32,
    pub derivative: Derivative,
    pub regions: Regions,
    pub stands: Stands,
    pub phases: Phases,
    pub gives: Gives,
}

/// What an op does with a cell that its first operands name: base, indices and components.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CellUse {
    /// It names none.
    Nothing,
    /// It says where the cell lies, and leaves it alone.
    Addresses,
    Reads,
    /// The value that it writes is its last operand.
    Writes,
    /// It reads and writes; so many values come behind the place.
    Updates(usize),
}

/// How a derivative is made of an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Derivative {
    /// Nothing flows through it.
    Flat,
    /// What flows follows from its operands and its result, by the rule of its family.
    Rule,
    /// Differentiation handles it by its name: memory and control flow. Or it stands in no kernel that is differentiated.
    ByName,
}

/// The regions of an op, and how often they run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Regions {
    Without,
    /// Two, one of which runs.
    Either,
    /// So many, which run one after the other, again and again.
    Repeated(usize),
    /// One, the body of a task.
    Task,
    /// One or more, each a branch of its own.
    Branches,
}

impl Regions {
    /// How many an op has that has `found` of them.
    pub fn expected(self, found: usize) -> usize {
        match self {
            Self::Without => 0,
            Self::Either => 2,
            Self::Repeated(count) => count,
            Self::Task => 1,
            Self::Branches => found.max(1),
        }
    }
}

/// Where an op may stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stands {
    /// In any region, but not as its last op.
    Anywhere,
    /// In the kernel's body.
    Body,
    /// In the kernel's body or a branch of it.
    Top,
    /// Last in the body of a kernel or a function.
    EndOfBody,
    /// Last in any other region.
    EndOfRegion,
}

/// In which phases of a kernel an op may stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phases {
    Any,
    /// Once it is split into tasks.
    Split,
}

/// What an op takes and gives, as far as the table says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    /// The verifier has a rule of its own for it.
    Own,
    /// It takes nothing, and gives this.
    Nullary(Scalar),
}
