//! The facade: all that a host language needs, and nothing of Python.
//!
//! A [`Session`] owns a device, its memory and the kernels compiled for it. An [`NdArray`] owns device memory; so does a [`Tree`],
//! in which the elements of fields lie. A [`CompiledKernel`] is made from IR by [`Session::compile`]; it is launched with a block
//! of argument bytes, laid out as [`CompiledKernel::args`] says, either written by the host language itself
//! ([`CompiledKernel::launch`]) or put together by an [`Invocation`]. There is no global state: sessions live side by side, and
//! everything here may be used by many threads.
//!
//! ```
//! use std::time::Duration;
//! use octants::ir::{Builder, Const, Kernel, Scalar, ArrayType, Boundary, Type, ops::{ArithOp, ParallelFor}};
//! use octants::{Cancel, HostQueue, Invocation, NdArray, Session, SessionOptions};
//!
//! let mut kernel = Kernel::new("double");
//! let x = kernel.add_param("x", Type::Array(ArrayType::array(Scalar::F32, 1, Boundary::Unsafe)));
//! let mut b = Builder::new(&mut kernel);
//! let (zero, n) = (b.i32(0), b.extent(x, 0));
//! b.parallel_for(&[(zero, n)], ParallelFor::default(), |b, i| {
//!     let v = b.load(x, &[i[0]]);
//!     let twice = b.arith(ArithOp::Add, v, v);
//!     b.store(x, &[i[0]], twice);
//! });
//! b.returns(&[]);
//!
//! let cancel = Cancel::new();
//! let session = Session::new(SessionOptions::default())?;
//! let array = NdArray::new(&session, Scalar::F32.into(), &[1000])?;
//! array.fill(&[Const::f32(21.0)], HostQueue::default())?;
//! let double = session.compile(kernel, Duration::ZERO, &cancel)?;
//! Invocation::new(&double).array(&array)?.launch(&cancel)?;
//! assert_eq!(array.get(&[999], HostQueue::default())?, [Const::f32(42.0)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod array;
mod backend;
mod cache;
#[cfg(test)]
mod cache_tests;
mod checksum;
mod compile_phases;
mod compiled;
mod error;
mod fault;
mod field;
pub mod forked;
mod gpu_code;
mod gradient;
mod host_sizing;
mod intern;
mod invocation;
mod kernel_source;
mod kernel_store;
mod launch_keys;
mod options;
mod output;
mod pool_growth;
mod race_check;
mod recording;
mod report;
mod session;
mod short_launch;
mod sparse_repair;
mod sparse_tree;
mod stream;
mod sync;
mod tape_memory;
mod tree;
mod wait;
mod write_log;

pub use array::NdArray;
pub use backend::open_device;
pub use checksum::Checksum;
pub use compiled::CompiledKernel;
pub use error::{Error, Fault, LaunchError};
pub use field::{FieldLeaf, HostStride, Place, Tree};
pub use gpu_code::{NvidiaTools, PtxModule};
pub use gradient::{Gradient, KeptLoop};
pub use invocation::Invocation;
pub use kernel_store::{CacheOptions, cache_version};
pub use octants_cache as store;
pub use octants_codegen::{llvm_version, wait_for_compilations};
pub use octants_cpu::pool::processors;
pub use octants_diag as diag;
pub use octants_direct as direct;
pub use octants_front as front;
pub use octants_front::FieldKind;
pub use octants_hal::process::{Opened, serve as serve_device};
pub use octants_hal::{Cancel, Confirm, DeviceProperties, FunctionUsage, StreamPriority};
pub use octants_ir as ir;
pub use octants_passes::analysis::{Course, Footprint, Interval, Touched};
pub use octants_passes::{LaunchOrder, Left, Mode, Refusal, RefusalKind, Storage};
pub use octants_runtime::{
    Arguments, ExternalStream, HostQueue, HostRange, HostSide, KeptMemory, KernelOrigin, LiveStream, Memory,
    Mirror, Profiler, Statistics, Trace, Track, chrome_trace,
};
pub use options::{Arch, SessionOptions};
pub use output::Locate;
pub use race_check::{FoundRace, RaceSearch};
pub use recording::{DualRecording, Record, Recorder, RunPlan};
pub use report::{CompileStatistics, Dump, TaskResources};
pub use session::Session;
pub use stream::{Event, Stream};
pub use tape_memory::{LoopMemory, total_bytes};
pub use tree::{
    AxisSplit, Child, Leaf, LeafId, MAX_AXES, Node, NodeId, Outline, Sizes, not_positive, too_long,
};
pub use write_log::{ArrayMemory, MemoryKind, ReadBefore, Region, WriteLog};
