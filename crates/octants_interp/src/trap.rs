//! Why a run ended early.

use std::fmt;

use octants_ir::format::message_text;
use octants_ir::ops::Scope;
use octants_ir::{Const, Kernel, Loc, Op, Violation};

use crate::address_space::MemoryFault;

/// A run that ended early, and at which op.
#[derive(Clone, PartialEq, Debug)]
pub struct Trap {
    pub kind: TrapKind,
    /// `None` where no op was running yet.
    pub op: Option<Op>,
    /// The op's location, in the kernel's table.
    pub loc: Option<Loc>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum TrapKind {
    /// An `assert` did not hold.
    Assert { message: Box<str>, arguments: Vec<Const> },
    /// An index outside its array or field, which has `extent` elements from `origin` on; also any index into an array without elements.
    OutOfBounds { param: usize, axis: u8, index: i128, origin: i32, extent: i32 },
    /// An index outside a tape.
    OffTape { index: i128, count: i128 },
    /// An array's memory is not there.
    Memory(MemoryFault),
    /// Lanes of a block do together what they may not.
    Misuse(Misuse),
    /// More ops than [`Limits::steps`](crate::Limits) allows.
    StepLimit,
    /// Calls are nested deeper than the stack allows.
    TooDeep,
    /// The flag of [`Limits::cancel`](crate::Limits) was raised.
    Cancelled,
    /// The arguments are not what the kernel's parameters say.
    Arguments(String),
    /// The kernel breaks laws of the IR.
    Malformed(Vec<Violation>),
}

/// What lanes of a block may not do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misuse {
    /// This lane is not where all others of its scope are.
    Missing { lane: usize, scope: Scope },
    /// So many iterations do not fill blocks of so many threads.
    Partial { iterations: u64, threads: u32 },
    /// A lane asks for the value of one that does not run.
    Absent { lane: usize, wanted: usize },
    /// Two lanes touch an element of the block's memory, one of them writes it, and there is no barrier between.
    Race { lane: usize, other: usize },
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { lane, scope } => {
                write!(f, "lane {lane} does not come to where others of its {} are", scope.name())
            }
            Self::Partial { iterations, threads } => {
                write!(f, "{iterations} iterations are no whole number of blocks of {threads} threads")
            }
            Self::Absent { lane, wanted } => {
                write!(f, "lane {lane} asks for lane {wanted}, which does not run")
            }
            Self::Race { lane, other } => {
                write!(f, "lanes {other} and {lane} touch the same element without a barrier between")
            }
        }
    }
}

impl Trap {
    pub(crate) fn nowhere(kind: TrapKind) -> Self {
        Self { kind, op: None, loc: None }
    }

    pub(crate) fn at(kernel: &Kernel, op: Op, kind: TrapKind) -> Self {
        Self { kind, op: Some(op), loc: Some(kernel.ops[op].loc) }
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            TrapKind::Assert { message, arguments } => {
                write!(f, "assertion failed: {}", message_text(message, arguments))
            }
            TrapKind::OutOfBounds { param, axis, index, origin, extent } => {
                write!(
                    f,
                    "index {index} is out of bounds for axis {axis} of parameter {param}, which has {extent}"
                )?;
                if *origin == 0 { Ok(()) } else { write!(f, " from {origin} on") }
            }
            TrapKind::OffTape { index, count } => {
                write!(f, "index {index} is outside a tape of {count}")
            }
            TrapKind::Memory(fault) => fault.fmt(f),
            TrapKind::Misuse(misuse) => misuse.fmt(f),
            TrapKind::StepLimit => f.write_str("the limit of steps is reached"),
            TrapKind::TooDeep => f.write_str("calls are nested too deep"),
            TrapKind::Cancelled => f.write_str("cancelled"),
            TrapKind::Arguments(message) => f.write_str(message),
            TrapKind::Malformed(violations) => match violations.first() {
                Some(violation) => write!(f, "the kernel is malformed: {violation}"),
                None => f.write_str("the kernel is malformed"),
            },
        }
    }
}

impl std::error::Error for Trap {}
