//! The ops, declared once: name, what operands they take, what the result is, effects, and one line that says what they mean.
//!
//! A *family* is a file here and has a file of the same name in every crate that handles it (interpreter, emitter, adjoints).
//! [`OpKind`] lists all ops; an op's operands are stored uniformly beside its kind, so walking, cloning and replacing need no
//! knowledge of any op. Matches over the enums are exhaustive everywhere: a new op does not compile until everyone has answered.

mod arith;
mod bits;
mod compare;
mod control;
mod convert;
mod math;
mod memory;
mod print;
mod tensor;

pub use arith::ArithOp;
pub use bits::{BitOp, BitUnary};
pub use compare::CompareOp;
pub use control::{ASSERT_ARGUMENTS, AssertKind, Domain, ParallelFor, Reduction};
pub use convert::ConvertOp;
pub use math::{MathOp, MathUnary};
pub use memory::AtomicOp;
pub use print::{Conversion, Format, PrintPiece, PrintSpec};
pub use tensor::TensorOp;

use crate::constant::Const;
use crate::ids::{Func, LayoutId};
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

/// What the tables say of one op.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// The mnemonic in text.
    pub name: &'static str,
    pub takes: Takes,
    /// Whether a derivative can flow from its result to its operands.
    pub differentiates: bool,
    pub doc: &'static str,
}

/// Declares a family: an enum, the list of all its ops, and what the table says of each.
macro_rules! family {
    ($(#[$meta:meta])* $family:ident { $($variant:ident $name:literal $takes:ident $diff:ident $doc:literal;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
        pub enum $family { $(#[doc = $doc] $variant),* }

        impl $family {
            pub const ALL: &'static [$family] = &[$($family::$variant),*];

            pub fn info(self) -> $crate::ops::OpInfo {
                match self {
                    $($family::$variant => $crate::ops::OpInfo {
                        name: $name,
                        takes: $crate::ops::Takes::$takes,
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

/// What an op is; its operands, results and regions are in [`OpData`](crate::kernel::OpData).
#[derive(Clone, PartialEq, Debug)]
pub enum OpKind {
    /// `→ scalar`
    Const(Const),
    /// `(a, b) → T` or `(a) → T` for `neg` and `abs`; operands and result have one type.
    Arith(ArithOp),
    /// `(a, b) → T`; for shifts the result has the type of `a`.
    Bit(BitOp),
    /// `(a) → T`; counts give `i32`.
    BitUnary(BitUnary),
    /// `(a, b) → u1` (entrywise on tensors).
    Compare(CompareOp),
    /// `(c, a, b) → T`: `a` where `c` holds, else `b`; `c` is `u1`, or a `u1` tensor of the operands' shape.
    Select,
    /// `(a, b) → T`
    Math(MathOp),
    /// `(a) → T`
    MathUnary(MathUnary),
    /// `(a) → T`
    Convert(ConvertOp),
    Tensor(TensorOp),
    /// `(members…) → struct`
    StructNew,
    /// `(s) → member`
    StructGet(u32),
    /// `(s, v) → s` with one member replaced.
    StructSet(u32),

    /// `() → local<T>`: a variable, zero at first. Its lifetime is its region's execution.
    Local,
    /// `(count) → tape<T>`: memory for that many scalars, whose contents are undefined at first; a negative count is none. An index
    /// is below the count. Its lifetime is its region's execution.
    ///
    /// `(count, array, slots)`: likewise, and it is to lie in that array, of one axis, for so many iterations at once.
    Tape,
    /// `() → temp<T>`: a cell shared by the tasks of one launch, zero at first. Only at the top of a kernel.
    Temp,
    /// `(base, indices…, components…) → T`
    Load,
    /// `(base, indices…, components…) → T`, never merged, moved or cached.
    VolatileLoad,
    /// `(base, indices…, components…, value)`
    Store,
    /// `(base, indices…, components…, value) → T`: the old value.
    Atomic(AtomicOp),
    /// `(base, indices…, components…, expected, desired) → T`: the old value; integers only.
    AtomicCas,
    /// `(base, indices…, wanted) → i32`: asks for memory, so that the count in this cell reaches `wanted`; gives the count, which others may raise
    /// at any time, or a negative number where there is no memory.
    GrowPool,
    /// `(array) → i32`: the extent of one axis.
    Extent(u8),
    /// `(array, indices…, components…) → u64`: where the cell lies in memory.
    Address,

    /// `(cond) → T…`; regions `then`, `else`, each yields the results.
    If,
    /// `(lo, hi, carried…) → carried…`; region `body(i, carried…)` yields the next carried values. Runs while `i < hi`, step 1.
    For,
    /// `()` or `(left)`; region `body(i₀, i₁, …)` with an `i32` for each axis of the layout. Runs once for each cell, in storage order, from the
    /// layout's origin on; before a cell for which the variable `left` holds, the loop is over. Only in the structured phase.
    ForCells(LayoutId),
    /// `(carried…) → carried…`; region `cond(carried…)` yields `u1, carried…`; region `body(carried…)` yields `carried…`.
    /// Results are what `cond` yielded when it yielded false.
    While,
    /// `(lo₀, hi₀, lo₁, hi₁, …, reduced places…)`, without bounds over a layout; region `body(i₀, i₁, …, accumulators…)` yields the
    /// accumulators.
    ParallelFor(Box<ParallelFor>),
    /// A serial task: region `body()`. Only at the top of a kernel or of a branch, made by task splitting.
    Serial,
    /// Regions `branch()`, at least one: each runs once, in any order or at the same time; the fork is over when all are. A branch
    /// holds what a kernel's body may hold. Only in the kernel's body.
    Fork,
    /// Terminator of a region: its values.
    Yield,
    /// Terminator of the body of a kernel or a function: its results.
    Return,
    /// `(v)`: writes result number `n` of the kernel. Made by task splitting.
    StoreResult(u32),
    /// `(cond, arguments…)`: where `cond` is false, the launch fails with this message and the op's location; this thread stops.
    /// `{}` in the message stands for the next argument.
    Assert(AssertKind, Box<str>),
    /// `(values…)`: writes text, whole, in the order of the thread that runs it.
    Print(Box<PrintSpec>),

    /// `() → T`: the next random number of this iteration. Reals are uniform in `[0, 1)`, integers over all of their values.
    Random,
    /// `() → u64`: a number that tells this launch from others of its session, and follows from the session's seed.
    LaunchKey,
    /// `() → i64`: a clock of the device, in its own units; each reading is a new one.
    Clock,

    /// `(arguments…) → results…`: runs a function of the kernel. A place is passed as itself: what is written to it is seen by the
    /// caller.
    Call(Func),
}

bitflags::bitflags! {
    /// What an op itself may do besides giving a value; what its regions do comes on top.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Effects: u8 {
        /// Depends on what was written before: may not be moved over a write, nor merged with an equal op.
        const READS = 1;
        /// Writes memory, fails, or is otherwise seen from outside: stays where it is, and runs as often as the program says.
        const WRITES = 1 << 1;
        /// All threads of a group run it together: may not be moved under a condition that threads differ in.
        const CONVERGENT = 1 << 2;
        /// What stands behind it may not run: it ends its region, or the thread.
        const ENDS = 1 << 3;
    }
}

impl OpKind {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Const(_) => "const",
            Self::Arith(op) => op.name(),
            Self::Bit(op) => op.name(),
            Self::BitUnary(op) => op.name(),
            Self::Compare(op) => op.name(),
            Self::Select => "select",
            Self::Math(op) => op.name(),
            Self::MathUnary(op) => op.name(),
            Self::Convert(op) => op.name(),
            Self::Tensor(op) => op.name(),
            Self::StructNew => "struct_new",
            Self::StructGet(_) => "struct_get",
            Self::StructSet(_) => "struct_set",
            Self::Local => "local",
            Self::Tape => "tape",
            Self::Temp => "temp",
            Self::Load => "load",
            Self::VolatileLoad => "volatile_load",
            Self::Store => "store",
            Self::Atomic(op) => op.name(),
            Self::AtomicCas => "atomic_cas",
            Self::GrowPool => "grow_pool",
            Self::Extent(_) => "extent",
            Self::Address => "address",
            Self::If => "if",
            Self::For => "for",
            Self::ForCells(_) => "for_cells",
            Self::While => "while",
            Self::ParallelFor(_) => "parallel_for",
            Self::Serial => "serial",
            Self::Fork => "fork",
            Self::Yield => "yield",
            Self::Return => "return",
            Self::StoreResult(_) => "store_result",
            Self::Assert(..) => "assert",
            Self::Print(_) => "print",
            Self::Random => "random",
            Self::LaunchKey => "launch_key",
            Self::Clock => "clock",
            Self::Call(_) => "call",
        }
    }

    pub fn effects(&self) -> Effects {
        match self {
            Self::Const(_)
            | Self::Arith(_)
            | Self::Bit(_)
            | Self::BitUnary(_)
            | Self::Compare(_)
            | Self::Select
            | Self::Math(_)
            | Self::MathUnary(_)
            | Self::Convert(_)
            | Self::Tensor(_)
            | Self::StructNew
            | Self::StructGet(_)
            | Self::StructSet(_)
            | Self::Extent(_)
            | Self::Address
            | Self::LaunchKey => Effects::empty(),
            // A place has an identity: two `local` ops are two variables, though an unused one may go.
            Self::Local | Self::Tape | Self::Temp | Self::Load => Effects::READS,
            // It may read its variable.
            Self::ForCells(_) => Effects::READS,
            Self::Store | Self::StoreResult(_) | Self::Print(_) => Effects::WRITES,
            Self::VolatileLoad
            | Self::Atomic(_)
            | Self::AtomicCas
            | Self::GrowPool
            | Self::Random
            | Self::Clock => Effects::READS | Effects::WRITES,
            Self::Assert(..) => Effects::WRITES | Effects::ENDS,
            // The function may do anything; it has no groups of threads to wait for.
            Self::Call(_) => Effects::READS | Effects::WRITES | Effects::ENDS,
            Self::If | Self::For | Self::While | Self::Serial | Self::Fork => Effects::empty(),
            Self::ParallelFor(attributes) if attributes.reductions.is_empty() => Effects::empty(),
            Self::ParallelFor(_) => Effects::READS | Effects::WRITES,
            Self::Yield | Self::Return => Effects::ENDS,
        }
    }

    /// Whether ops of this kind own regions.
    pub fn has_regions(&self) -> bool {
        matches!(
            self,
            Self::If
                | Self::For
                | Self::ForCells(_)
                | Self::While
                | Self::ParallelFor(_)
                | Self::Serial
                | Self::Fork
        )
    }

    /// Whether it only gives a value: may be moved, merged, repeated, or removed when unused.
    pub fn is_pure(&self) -> bool {
        self.effects().is_empty() && !self.has_regions()
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

    /// Whether it is seen from outside, so that it runs even if nobody uses its results.
    pub fn writes(&self) -> bool {
        self.effects().contains(Effects::WRITES)
    }

    pub fn is_terminator(&self) -> bool {
        matches!(self, Self::Yield | Self::Return)
    }
}
