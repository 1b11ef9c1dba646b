//! Memory, launch plans and guards: everything above the device verbs, written once over any device.
//!
//! A [`Context`] is one device in use, and what handles refer to: it ends when its session is reset, and every later use of a
//! handle is refused. [`Memory`] owns an allocation. A [`LaunchPlan`] owns a kernel's code in the versions that its guards choose
//! between, and runs the kernel's schedule of tasks.
//!
//! A [`Profiler`] records what a device did when, if its context was made so.
//!
//! This crate names no vendor and no compiler: how code is made is behind [`MakeVersion`], what a device can do behind its
//! capability bits.

// A boundary crate: it is the caller that keeps the contract of the device verbs.
#![allow(unsafe_code)]

mod arguments;
mod commands;
mod context;
mod copies;
mod deferred_faults;
mod deferred_free;
mod domain;
mod event;
mod external_stream;
mod guard;
mod host_writes;
mod invocation;
mod launch_log;
mod memory;
mod mirror;
mod plan;
mod profiler;
mod release;
mod releases;
mod retired_modules;
mod run;
mod shared_pool;
mod shared_words;
mod stop_words;
mod stream;
mod stream_memory;
mod stream_point;
mod stream_pool;
mod stream_table;
mod stream_uses;
mod strided;
mod sync;
mod version;

pub use arguments::{Arguments, ArrayMemory, DerivedArguments};
pub use context::{Context, Stale};
pub use deferred_faults::DeferredFault;
pub use deferred_free::{DeferredFrees, KeptMemory};
pub use event::EventHandle;
pub use external_stream::ExternalStream;
pub use guard::OverlapGuard;
pub use invocation::{ArgumentError, Invocation};
pub use launch_log::{KernelOrigin, LaunchLog};
pub use memory::{HostQueue, Memory, MemoryError};
pub use mirror::{HostRange, Mirror};
pub use plan::{FaultReport, LaunchEnv, LaunchFailure, LaunchPlan, PrintSink, Printed};
pub use profiler::{Activity, Profiler, RangeMarker, Span, Statistics, Trace, Track, chrome_trace};
pub use shared_words::SharedWords;
pub use stream::{LiveStream, StreamError, StreamHandle};
pub use stream_memory::{StreamMemory, StreamMemoryPart};
pub use strided::{HostSide, Stride, Strided, copy_together};
pub use version::{Assumptions, Code, MakeVersion, TaskCode, Version};
