//! One task handed to a device.

use std::sync::atomic::AtomicBool;

use crate::device::{Address, Function};

/// One task: which function, over which points, on which arguments.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    pub function: Function,
    /// The kernel's block of arguments, in the layout that the code was made for.
    pub args: &'a [u8],
    pub memory: LaunchMemory,
    pub domain: Domain<'a>,
    /// Raised by someone else to make the launch end early; read only with
    /// [`Capabilities::CANCEL`](crate::Capabilities::CANCEL).
    pub cancel: &'a AtomicBool,
    /// A number of this launch's own, for code that asks for it.
    pub key: u64,
    /// Is told what code prints; nobody is if it is left out.
    pub listener: Option<Listener<'a>>,
}

/// Is told of one print, from any thread: which of the kernel, and its operands, each in a word as a
/// [`FaultRecord`](crate::FaultRecord) has them.
pub type Listener<'a> = &'a (dyn Fn(u32, &[u64]) + Sync);

/// Memory that the tasks of one launch share, and no other launch.
#[derive(Clone, Copy, Debug)]
pub struct LaunchMemory {
    /// Cells shared by tasks.
    pub temps: Address,
    /// Where the kernel's results go.
    pub results: Address,
    /// A [`FaultRecord`](crate::FaultRecord).
    pub fault: Address,
}

/// The points that a task runs for.
#[derive(Clone, Copy, Debug)]
pub enum Domain<'a> {
    /// Once.
    Once,
    Range(RangeDomain<'a>),
}

/// A box of integer points; the last axis runs fastest.
#[derive(Clone, Copy, Debug)]
pub struct RangeDomain<'a> {
    /// `lo` and `hi` of each axis, outermost first; `lo < hi` on all of them.
    pub bounds: &'a [i64],
    /// How many points: the product of all `hi - lo`, at least 1, at most `i64::MAX`.
    pub points: u64,
    /// At most this many threads; 1 means strictly in order.
    pub max_threads: Option<u32>,
    /// Points that one thread takes at once, or the size of a block, where the user said so.
    pub block: Option<u32>,
    /// Roughly how many instructions a point takes.
    pub cost: u32,
    /// How many points its code runs at once: fewer take as long as so many. At least 1.
    pub lanes: u32,
    /// Arrays that the code adds to as if it ran on one thread. Whatever runs at the same time gets copies of its own, which are
    /// neutral at first and are added to the arrays before the launch is over. Empty, unless the device has
    /// [`copies`](crate::Device::copies).
    pub copied: &'a [Copied],
}

/// An array of which each thread gets a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copied {
    /// Where its address lies in the block of arguments.
    pub address_at: usize,
    /// A multiple of the summand's size.
    pub bytes: usize,
    pub summand: Summand,
}

/// What an array is made of, as far as additions differ.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Summand {
    I32,
    I64,
    F32,
    F64,
}
