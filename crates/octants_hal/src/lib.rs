//! Device verbs and their contract, and two devices for tests: one that only records, and one that fails.
//!
//! A [`Device`] is a table of verbs over one processor and its memory: allocate, copy, fill, streams, events, modules, launch.
//! It holds no policy: pools, lifetimes, plans, guards and deferred errors are the runtime's, written once over this trait. This
//! crate knows neither the IR nor a compiler: code reaches a device as an [`Image`], arguments as bytes.
//!
//! The contract, for both sides:
//!
//! 1. **All validation is above.** A caller passes live handles of this very device, addresses inside live allocations, sizes that
//!    fit, arguments in the layout that the code was made for. A device need not check; a check that fails inside is a bug above,
//!    and says so. That is why the verbs are `unsafe`.
//! 2. **Errors are values.** Running out of memory, a refused image or a failed driver call is a [`DeviceError`]; a verb never
//!    panics, aborts or blocks for ever. After an error the device is as it was before the verb, unless the error says `Lost`.
//! 3. **Streams order.** Verbs on one stream take effect in the order of the calls; verbs on two streams are unordered but for
//!    events. [`Device::default_stream`] always exists. Without [`Capabilities::STREAMS`] it is the only one. Whether a verb has taken
//!    effect when it returns is a property of its stream: [`Device::is_immediate`].
//! 4. **Arguments are by value.** When `launch` returns, the device has read what [`Launch`] borrows, but for the addresses in it:
//!    these, the cancel flag and the queue of prints stay valid until the stream has passed the launch. A copy is done with the host's
//!    bytes when it returns.
//! 5. **A launch that faults is not an error of the verb.** Code writes the first fault into the launch's [`FaultRecord`] and
//!    stops; whoever launched looks there once the stream has passed the launch. What fails otherwise after the verb has returned is the
//!    error of a later verb: on the same stream, or on one that waited for it. Prints are records in a [`PrintRing`], which may be read
//!    at any time.
//! 6. **Every verb may be called from any thread**, also at the same time.

// A boundary crate: the trait is the contract of device memory.
#![allow(unsafe_code)]

mod cancel;
mod capabilities;
mod device;
mod error;
pub mod failing;
mod fault;
pub mod forked;
mod forward_verbs;
pub mod host;
mod image;
mod launch;
pub mod null;
mod pages;
mod prints;
pub mod process;
mod properties;
mod shape;
mod usage;

pub use cancel::{Cancel, Confirm};
pub use capabilities::Capabilities;
pub use device::{
    Address, Device, Event, ForkCosts, Function, Module, Rows, SharedMemory, Stream, StreamPriority,
};
pub use error::DeviceError;
pub use fault::{FAULT_ARGUMENTS, Fault, FaultRecord};
pub use forward_verbs::forgotten_verbs;
pub use image::{Image, ImagePart};
pub use launch::{
    Copied, DeviceBound, DeviceRangeDomain, Domain, Launch, LaunchContext, LaunchMemory, RangeDomain, Summand,
};
pub use pages::BackedPages;
pub use prints::{
    DEVICE_COUNTER_BYTES, DEVICE_DROPPED_OFFSET, PrintQueue, PrintRing, PushError, RING_HEADER,
};
pub use properties::DeviceProperties;
pub use shape::{Grid, LaunchShape, PointMapping};
pub use usage::FunctionUsage;
