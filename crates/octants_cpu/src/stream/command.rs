//! What a queue holds: verbs with all that they need, by value.

use std::ptr;
use std::sync::Arc;

use octants_hal::host::Filler;
use octants_hal::{
    Address, Cancel, Copied, DeviceBound, DeviceRangeDomain, Domain, Function, Launch, LaunchContext,
    LaunchMemory, PrintQueue, RangeDomain, Stream,
};
use smallvec::SmallVec;

use crate::core::Core;

/// A verb in a queue.
pub(crate) enum Command {
    /// Boxed, so that the queue's entries are small.
    Launch(Box<QueuedLaunch>),
    Copy {
        to: Address,
        from: Address,
        bytes: usize,
    },
    /// Bytes of the host, which were read when the verb was told.
    Write {
        to: Address,
        from: Box<[u8]>,
    },
    Fill {
        to: Address,
        filler: Filler,
        bytes: usize,
    },
    /// Memory that goes back when the queue has come so far, or is dropped.
    Free(Allocation),
}

/// Memory that is given back when this is dropped.
pub(crate) struct Allocation {
    pub core: Arc<Core>,
    pub address: Address,
    pub bytes: usize,
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: whoever made this says that nobody else frees it, and that all that uses it is over by now.
        unsafe { self.core.memory.free(self.address, self.bytes) };
    }
}

/// One task, owned, but for what the verb's contract keeps alive until the stream has passed it.
pub(crate) struct QueuedLaunch {
    function: Function,
    domain: QueuedDomain,
    /// Words, so that the block is aligned as arguments are.
    args: SmallVec<[u64; 16]>,
    arg_bytes: usize,
    memory: LaunchMemory,
    cancel: *const Cancel,
    key: u64,
    prints: *const PrintQueue,
}

// SAFETY: the contract of `launch` keeps what the pointers refer to, for any thread, until the stream has passed it.
unsafe impl Send for QueuedLaunch {}

enum QueuedDomain {
    Once,
    Range { bounds: SmallVec<[i64; 4]>, points: u64, tuning: Tuning },
    DeviceRange { bounds: SmallVec<[DeviceBound; 4]>, tuning: Tuning },
}

/// What both kinds of ranges have.
struct Tuning {
    max_threads: Option<u32>,
    block: Option<u32>,
    cost: u32,
    lanes: u32,
    copied: SmallVec<[Copied; 1]>,
}

impl QueuedLaunch {
    pub fn new(launch: &Launch<'_>) -> Self {
        let domain = match &launch.domain {
            Domain::Once => QueuedDomain::Once,
            &Domain::Range(RangeDomain { bounds, points, max_threads, block, cost, lanes, copied }) => {
                let tuning = Tuning { max_threads, block, cost, lanes, copied: SmallVec::from_slice(copied) };
                QueuedDomain::Range { bounds: SmallVec::from_slice(bounds), points, tuning }
            }
            &Domain::DeviceRange(DeviceRangeDomain { bounds, max_threads, block, cost, lanes, copied }) => {
                let tuning = Tuning { max_threads, block, cost, lanes, copied: SmallVec::from_slice(copied) };
                QueuedDomain::DeviceRange { bounds: SmallVec::from_slice(bounds), tuning }
            }
        };
        let LaunchContext { stream: _, args, memory, cancel, caller: _, key, launch: _, prints } =
            launch.context;
        let mut words = SmallVec::<[u64; 16]>::from_elem(0, args.len().div_ceil(8));
        // SAFETY: there are at least as many bytes in the words.
        unsafe { ptr::copy_nonoverlapping(args.as_ptr(), words.as_mut_ptr().cast::<u8>(), args.len()) };
        Self {
            function: launch.function,
            domain,
            args: words,
            arg_bytes: args.len(),
            memory,
            cancel,
            key,
            prints: prints.map_or(ptr::null(), ptr::from_ref),
        }
    }

    /// Gives the launch as it was told.
    ///
    /// # Safety
    /// The stream has not passed it yet.
    pub unsafe fn with<R>(&self, run: impl FnOnce(&Launch<'_>) -> R) -> R {
        let domain = match &self.domain {
            QueuedDomain::Once => Domain::Once,
            QueuedDomain::Range { bounds, points, tuning } => Domain::Range(RangeDomain {
                bounds,
                points: *points,
                max_threads: tuning.max_threads,
                block: tuning.block,
                cost: tuning.cost,
                lanes: tuning.lanes,
                copied: &tuning.copied,
            }),
            QueuedDomain::DeviceRange { bounds, tuning } => Domain::DeviceRange(DeviceRangeDomain {
                bounds,
                max_threads: tuning.max_threads,
                block: tuning.block,
                cost: tuning.cost,
                lanes: tuning.lanes,
                copied: &tuning.copied,
            }),
        };
        // SAFETY: there are as many bytes; what is pointed to lives as long as the stream has not passed the launch.
        let (args, cancel, prints) = unsafe {
            let args = std::slice::from_raw_parts(self.args.as_ptr().cast::<u8>(), self.arg_bytes);
            (args, &*self.cancel, self.prints.as_ref())
        };
        // Tasks do not look at their stream, nor at the launch's number.
        let stream = Stream(0);
        let context = LaunchContext {
            stream,
            args,
            memory: self.memory,
            cancel,
            caller: None,
            key: self.key,
            launch: 0,
            prints,
        };
        run(&Launch { function: self.function, domain, context })
    }
}
