//! One task handed to a device.

use crate::cancel::Cancel;
use crate::device::{Address, Function, Stream};
use crate::prints::PrintQueue;

/// One task: which function, over which points, for which launch.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    pub function: Function,
    pub domain: Domain<'a>,
    pub context: LaunchContext<'a>,
}

/// What the tasks of one launch share, and no other launch: where they run, what they read, and where they report.
#[derive(Clone, Copy)]
pub struct LaunchContext<'a> {
    /// The queue that tasks join. A branch of a fork has one of its own, in a copy of the context.
    pub stream: Stream,
    /// The kernel's block of arguments, in the layout that the code was made for.
    pub args: &'a [u8],
    pub memory: LaunchMemory,
    /// Raised by someone else to make the launch end early; read only with
    /// [`Capabilities::CANCEL`](crate::Capabilities::CANCEL).
    pub cancel: &'a Cancel,
    /// The request of who launches, for a device that runs the work itself before the verb returns: it may be gone afterwards.
    pub caller: Option<&'a Cancel>,
    /// A number of this launch's own, for code that asks for it.
    pub key: u64,
    /// Which launch it is, for whoever watches the verbs; 0 if nobody counts them.
    pub launch: u64,
    /// Where prints go; they are lost if it is left out.
    pub prints: Option<&'a PrintQueue>,
}

/// Memory of one launch.
#[derive(Clone, Copy, Debug)]
pub struct LaunchMemory {
    /// Cells shared by tasks.
    pub temps: Address,
    /// Where the kernel's results go.
    pub results: Address,
    /// A [`FaultRecord`](crate::FaultRecord).
    pub fault: Address,
    /// A [`PrintRing`](crate::PrintRing), where the device writes prints itself; else null, and they go to the context's queue.
    pub prints: Address,
    /// A byte that is not 0 once nothing of the launch is to wait for the host any more; null where nobody says so. A device that sees the context's
    /// [`Cancel`](crate::Cancel) looks there.
    pub stop: Address,
}

impl LaunchMemory {
    /// Of a launch that needs none.
    pub const NONE: Self = Self {
        temps: Address::NULL,
        results: Address::NULL,
        fault: Address::NULL,
        prints: Address::NULL,
        stop: Address::NULL,
    };
}

/// The points that a task runs for.
#[derive(Clone, Copy, Debug)]
pub enum Domain<'a> {
    /// Once.
    Once,
    Range(RangeDomain<'a>),
    /// A range with bounds that an earlier task of the launch has left in the device's memory. Needs
    /// [`Capabilities::DEVICE_BOUNDS`](crate::Capabilities::DEVICE_BOUNDS).
    DeviceRange(DeviceRangeDomain<'a>),
}

/// A box of points whose bounds the host does not know. An axis with `lo >= hi` makes it empty.
#[derive(Clone, Copy, Debug)]
pub struct DeviceRangeDomain<'a> {
    /// `lo` and `hi` of each axis, outermost first.
    pub bounds: &'a [DeviceBound],
    /// As in [`RangeDomain`].
    pub max_threads: Option<u32>,
    pub block: Option<u32>,
    pub cost: u32,
    pub lanes: u32,
    pub copied: &'a [Copied],
}

/// A bound of one axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceBound {
    Known(i64),
    /// An integer of so many bits at this address, when the task begins.
    InMemory {
        at: Address,
        bits: u32,
        signed: bool,
    },
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
