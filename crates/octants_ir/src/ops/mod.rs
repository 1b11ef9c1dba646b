//! The ops, declared once: mnemonic, what operands they take, what the result is, effects, cost, and one line that says what they mean.
//!
//! [`OpKind`] lists all ops, a row each (`table`). A *family* is a file here with a table of its own ops, and has a file of the same name in every
//! crate that handles it (interpreter, emitter, adjoints). An op's operands are stored uniformly beside its kind, so walking, cloning and replacing
//! need no knowledge of any op.

mod arith;
mod bits;
mod block;
mod compare;
mod control;
mod convert;
mod effects;
mod info;
mod math;
mod memory;
mod print;
mod table;
mod tensor;

pub use arith::ArithOp;
pub use bits::{BitOp, BitUnary};
pub use block::{DEFAULT_BLOCK, SUBGROUP, Scope, ShuffleOp, whole_number_of};
pub use compare::CompareOp;
pub use control::{ASSERT_ARGUMENTS, AssertKind, Domain, ParallelFor, Reduction};
pub use convert::ConvertOp;
pub use effects::Effects;
pub use info::{CellUse, Derivative, FamilyInfo, Gives, OpInfo, Phases, Regions, Stands, Takes};
pub use math::{MathOp, MathUnary};
pub use memory::AtomicOp;
pub use print::{Conversion, Format, PrintPiece, PrintSpec};
pub use table::OpKind;
pub use tensor::TensorOp;

/// Declares a family: an enum, the list of all its ops, and what the table says of each.
macro_rules! family {
    ($(#[$meta:meta])* $family:ident { $($variant:ident $name:literal $takes:ident $cost:literal $diff:ident $doc:literal;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
        pub enum $family { $(#[doc = $doc] $variant),* }

        impl $family {
            pub const ALL: &'static [$family] = &[$($family::$variant),*];

            pub fn info(self) -> $crate::ops::FamilyInfo {
                match self {
                    $($family::$variant => $crate::ops::FamilyInfo {
                        name: $name,
                        takes: $crate::ops::Takes::$takes,
                        cost: $cost,
                        differentiates: $crate::ops::family!(@$diff),
                        doc: $doc,
                    }),*
                }
            }

            pub fn name(self) -> &'static str {
                self.info().name
            }

            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|op| op.name() == name)
            }
        }
    };
    (@diff) => { true };
    (@flat) => { false };
}
pub(crate) use family;

impl OpKind {
    /// The row of the op in its family's table, if it is in one.
    fn in_family(&self) -> Option<FamilyInfo> {
        Some(match self {
            Self::Arith(op) => op.info(),
            Self::Bit(op) => op.info(),
            Self::BitUnary(op) => op.info(),
            Self::Compare(op) => op.info(),
            Self::Math(op) => op.info(),
            Self::MathUnary(op) => op.info(),
            Self::Convert(op) => op.info(),
            Self::Tensor(op) => op.info(),
            Self::Atomic(op) => op.info(),
            Self::Shuffle(op) => op.info(),
            _ => return None,
        })
    }

    /// The mnemonic in text.
    pub fn name(&self) -> &'static str {
        self.in_family().map_or(self.info().name, |family| family.name)
    }

    /// About how many instructions it is, without its regions and what it calls.
    pub fn cost(&self) -> u32 {
        self.in_family().map_or(self.info().cost, |family| family.cost)
    }

    pub fn effects(&self) -> Effects {
        match self {
            Self::ParallelFor(attributes) if attributes.reductions.is_empty() => Effects::empty(),
            kind => kind.info().effects,
        }
    }

    /// Whether ops of this kind own regions.
    pub fn has_regions(&self) -> bool {
        self.info().regions != Regions::Without
    }

    /// Whether its regions run again and again, for one thread.
    pub fn is_loop(&self) -> bool {
        matches!(self.info().regions, Regions::Repeated(_))
    }

    /// Whether it is a loop from a number up to another one.
    pub fn is_counted_loop(&self) -> bool {
        matches!(self, Self::For | Self::ForLanes)
    }

    /// Whether its regions run, or not, by the thread that comes to it.
    pub fn is_control(&self) -> bool {
        matches!(self.info().regions, Regions::Either | Regions::Repeated(_))
    }

    /// Whether its regions are tasks or hold tasks: what stands in them is run by other threads than what stands around.
    pub fn holds_tasks(&self) -> bool {
        matches!(self.info().regions, Regions::Task | Regions::Branches)
    }

    /// Whether it only gives a value: may be moved, merged, repeated, run where it would not have run, or removed when unused.
    pub fn is_pure(&self) -> bool {
        self.effects().is_pure() && !self.has_regions()
    }

    /// Whether it is seen from outside, so that it runs even if nobody uses its results.
    pub fn writes(&self) -> bool {
        self.effects().contains(Effects::WRITES)
    }

    /// Whether it runs where the program has it, as often, and by the same threads, whether its results are used or not.
    pub fn stays(&self) -> bool {
        self.effects().stays()
    }

    /// Whether it does something other than to memory that is seen from outside or by other threads.
    pub fn acts(&self) -> bool {
        self.stays() && self.info().cell == CellUse::Nothing
    }

    /// Whether the thread may be over after it, though its region is not.
    pub fn may_stop_thread(&self) -> bool {
        self.effects().contains(Effects::ENDS) && !self.is_terminator()
    }

    /// Which threads have to be there, all of them, where it is run; none where each runs it for itself.
    pub fn meets(&self) -> Option<Scope> {
        match self {
            Self::Barrier(scope) => Some(*scope),
            Self::BarrierCount => Some(Scope::Block),
            Self::Shuffle(_) | Self::Ballot => Some(Scope::Subgroup),
            _ => None,
        }
    }

    /// Of which threads it is a barrier: behind it they see what they did to memory before.
    pub fn barrier_of(&self) -> Option<Scope> {
        match self {
            Self::Barrier(_) | Self::BarrierCount => self.meets(),
            _ => None,
        }
    }

    /// Whether it takes a value from another lane.
    pub fn asks_lane(&self) -> bool {
        matches!(self, Self::Shuffle(_))
    }

    /// Whether it makes memory of the block's.
    pub fn makes_shared(&self) -> bool {
        *self == Self::Shared
    }

    pub fn is_terminator(&self) -> bool {
        matches!(self.info().stands, Stands::EndOfBody | Stands::EndOfRegion)
    }

    /// The update of memory that the op is if one of its operands, whichever, is what an element held and the result goes there.
    pub fn as_update(&self) -> Option<AtomicOp> {
        Some(match self {
            Self::Arith(ArithOp::Add) => AtomicOp::Add,
            Self::Arith(ArithOp::Mul) => AtomicOp::Mul,
            Self::Arith(ArithOp::Min) => AtomicOp::Min,
            Self::Arith(ArithOp::Max) => AtomicOp::Max,
            Self::Bit(BitOp::And) => AtomicOp::And,
            Self::Bit(BitOp::Or) => AtomicOp::Or,
            Self::Bit(BitOp::Xor) => AtomicOp::Xor,
            _ => return None,
        })
    }
}
