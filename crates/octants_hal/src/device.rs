//! The verbs.

use crate::capabilities::Capabilities;
use crate::error::DeviceError;
use crate::image::Image;
use crate::launch::Launch;
use crate::properties::DeviceProperties;
use crate::usage::FunctionUsage;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])* #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)] pub struct $name(pub u64);)*
    };
}

handles! {
    /// A place in the device's memory. On the host it is a pointer's bits.
    Address;
    /// A queue of verbs.
    Stream;
    /// A point in a stream's queue.
    Event;
    /// Loaded code.
    Module;
    /// A task's entry in a loaded module.
    Function;
}

impl Address {
    pub const NULL: Self = Self(0);

    pub fn of<T>(pointer: *const T) -> Self {
        Self(pointer as u64)
    }

    /// The same place as a pointer; meaningful with [`Capabilities::HOST_MEMORY`] alone.
    pub fn as_ptr<T>(self) -> *mut T {
        self.0 as *mut T
    }

    #[must_use]
    pub fn offset(self, bytes: usize) -> Self {
        Self(self.0 + bytes as u64)
    }
}

/// Memory that both sides see.
#[derive(Clone, Copy, Debug)]
pub struct SharedMemory {
    pub host: *mut u8,
    pub device: Address,
    pub bytes: usize,
}

/// Rows of so many bytes at a distance, and slices of so many rows at another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rows {
    pub bytes: usize,
    pub count: usize,
    pub stride: usize,
    pub slices: usize,
    /// At least what a slice's rows span.
    pub slice_stride: usize,
}

/// Which streams a device serves first where it cannot serve all at once. A hint: it changes no order that events make, and a device that
/// knows fewer levels treats two of them alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum StreamPriority {
    Low,
    /// That of the default stream.
    #[default]
    Normal,
    High,
}

/// What a device says of branches on streams of their own, to see which are worth one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForkCosts {
    /// How many points of a loop run at the same time.
    pub threads: u64,
    /// Giving a branch a stream of its own takes about as long as so many instructions of one thread.
    pub branch_instructions: u64,
    /// Whether a loop with as many points leaves nothing for another one beside it.
    pub loops_fill: bool,
}

/// One processor and its memory. See the crate's contract: all validation is above.
///
/// The verbs of streams and events have bodies for a device without [`Capabilities::STREAMS`]; one with it writes all of them.
///
/// # Safety
/// An implementation keeps the contract: allocations do not overlap, verbs on a stream keep their order, and no verb touches
/// memory other than what its caller named.
pub unsafe trait Device: Send + Sync {
    /// A name for people.
    fn name(&self) -> &str;

    fn capabilities(&self) -> Capabilities;

    /// What the device is, in numbers. Asked anew: how much memory is free changes.
    fn properties(&self) -> Result<DeviceProperties, DeviceError> {
        Ok(DeviceProperties::of_host(self.name().to_owned(), self.host_threads()))
    }

    /// How often in a second the counter that code reads as a clock counts, by what the device says of itself; `None` if it says nothing.
    fn clock_rate(&self) -> Option<u64> {
        None
    }

    /// The stream that the device has from the start.
    fn default_stream(&self) -> Stream {
        Stream(0)
    }

    /// Whether every verb on this stream has taken effect when it returns.
    ///
    /// # Panics
    /// It may, if the stream is not live.
    fn is_immediate(&self, stream: Stream) -> bool;

    /// Whether a forked child of this process may use the device as the parent can, if nothing was under way when it was forked.
    fn is_usable_in_child(&self) -> bool {
        false
    }

    /// Whether threads of the device's own have nothing to do.
    fn is_at_rest(&self) -> bool {
        true
    }

    /// How many copies of an array a launch may need ([`RangeDomain::copied`](crate::RangeDomain::copied)); 0 if the device does
    /// not know how to keep any.
    fn copies(&self) -> usize {
        0
    }

    /// Whether the launch that the calling thread now begins on a live stream is *exclusive*: until [`Device::end_exclusive`], which the thread owes
    /// it, its tasks run on that thread alone and no other thread runs any, so that updates of the device's memory need not be atomic.
    fn begin_exclusive(&self, _stream: Stream) -> bool {
        false
    }

    fn end_exclusive(&self) {}

    /// Whether a task of the calling thread may have to wait for an exclusive launch of another.
    fn waits_for_exclusive(&self) -> bool {
        false
    }

    /// What it takes to run branches at the same time. By default they always are.
    fn fork_costs(&self) -> ForkCosts {
        ForkCosts { threads: 1, branch_instructions: 0, loops_fill: false }
    }

    /// At least `bytes` (not 0) of zeroed memory, aligned to 64, for verbs on this stream and on those that come after it: no other stream
    /// waits for the zeros.
    ///
    /// # Safety
    /// `stream` is live.
    unsafe fn allocate(&self, stream: Stream, bytes: usize) -> Result<Address, DeviceError>;

    /// As [`Device::allocate`], for memory of which only a part may ever be touched: a device that can lets the rest cost nothing.
    ///
    /// # Safety
    /// As for [`Device::allocate`].
    unsafe fn reserve(&self, stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        // SAFETY: the caller says so.
        unsafe { self.allocate(stream, bytes) }
    }

    /// So many more bytes of a reservation are about to be used. A device that counts them refuses those that it does not have.
    ///
    /// # Safety
    /// The reservation is live.
    unsafe fn commit(&self, _reserved: Address, _bytes: usize) -> Result<(), DeviceError> {
        Ok(())
    }

    /// How many bytes it is sensible to reserve at once.
    fn reservable(&self) -> u64 {
        1 << 30
    }

    /// A range of addresses without memory, for code that touches what [`Device::back`] gave it. Goes back by [`Device::free`]. This and the
    /// three verbs that follow need [`Capabilities::GROWING_RANGES`].
    fn reserve_range(&self, _bytes: usize) -> Result<Address, DeviceError> {
        Err(DeviceError::Unsupported { verb: "reserve_range" })
    }

    /// Zeroed memory for a part of a range; what has memory keeps it, and what is around the part may get some, too. It is there for code
    /// that is running, whatever its stream: the verb waits for no stream.
    ///
    /// # Safety
    /// The part lies in a live range of this device, and no two calls for one range overlap in time.
    unsafe fn back(&self, _range: Address, _offset: usize, _bytes: usize) -> Result<(), DeviceError> {
        Err(DeviceError::Unsupported { verb: "back" })
    }

    /// Host to device, now, beside what streams do. Code that is running sees it.
    ///
    /// # Safety
    /// As many bytes are valid there, and code that may write them at the same time expects it.
    unsafe fn write_beside(&self, _to: Address, _from: &[u8]) -> Result<(), DeviceError> {
        Err(DeviceError::Unsupported { verb: "write_beside" })
    }

    /// Device to host, now, beside what streams do.
    ///
    /// # Safety
    /// As many bytes are valid there.
    unsafe fn read_beside(&self, _from: Address, _to: &mut [u8]) -> Result<(), DeviceError> {
        Err(DeviceError::Unsupported { verb: "read_beside" })
    }

    /// Gives an allocation or a range back when the stream has come so far. The host does not wait for that, and neither does another stream.
    ///
    /// # Safety
    /// `stream` is live. `address` and `bytes` are those of a live allocation of this device; every verb that uses it is over when the stream
    /// has come so far.
    unsafe fn free(&self, stream: Stream, address: Address, bytes: usize);

    /// At least `bytes` (not 0) of memory for verbs on this stream and what waits for it: of any content, aligned to 64.
    ///
    /// # Safety
    /// `stream` is live.
    unsafe fn allocate_scratch(&self, stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        // SAFETY: the caller says so.
        unsafe { self.allocate(stream, bytes) }
    }

    /// Gives such memory back when the stream has come so far.
    ///
    /// # Safety
    /// `address` and `bytes` are those of live scratch memory of this stream, which no verb uses that is told later.
    unsafe fn free_scratch(&self, stream: Stream, address: Address, bytes: usize) {
        // SAFETY: the caller says so.
        unsafe { self.free(stream, address, bytes) };
    }

    /// At least `bytes` (not 0) of memory that host and device see: results, faults and prints travel through it. Aligned to 64.
    fn allocate_shared(&self, bytes: usize) -> Result<SharedMemory, DeviceError> {
        debug_assert!(
            self.capabilities().has(Capabilities::HOST_MEMORY),
            "each of the two has its own memory"
        );
        // SAFETY: the default stream is always there.
        let device = unsafe { self.allocate(self.default_stream(), bytes)? };
        Ok(SharedMemory { host: device.as_ptr(), device, bytes })
    }

    /// Gives shared memory back.
    ///
    /// # Safety
    /// It is live, and nothing in any stream still uses it.
    unsafe fn free_shared(&self, memory: SharedMemory) {
        // SAFETY: the caller says so; it was allocated as above.
        unsafe { self.free(self.default_stream(), memory.device, memory.bytes) };
    }

    /// Host to device, in the stream's order. The host's bytes were read when it returns.
    ///
    /// # Safety
    /// `bytes` from both addresses on are valid, for reading and writing; they do not overlap.
    unsafe fn copy_to_device(
        &self,
        stream: Stream,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), DeviceError>;

    /// Device to host, in the stream's order. The host's bytes are there when it returns.
    ///
    /// # Safety
    /// As for [`Device::copy_to_device`].
    unsafe fn copy_to_host(
        &self,
        stream: Stream,
        to: *mut u8,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError>;

    /// Inside the device.
    ///
    /// # Safety
    /// As for [`Device::copy_to_device`].
    unsafe fn copy(
        &self,
        stream: Stream,
        to: Address,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError>;

    /// Inside the device: rows that lie side by side go to where they lie at distances. Bytes between those are neither read nor written.
    ///
    /// # Safety
    /// The bytes of all rows are valid on both sides, and no two of them are the same; neither stride is shorter than what it is the distance of.
    unsafe fn scatter(
        &self,
        stream: Stream,
        to: Address,
        from: Address,
        rows: &Rows,
    ) -> Result<(), DeviceError> {
        for slice in 0..rows.slices {
            for row in 0..rows.count {
                let to = to.offset(slice * rows.slice_stride + row * rows.stride);
                let from = from.offset((slice * rows.count + row) * rows.bytes);
                // SAFETY: the caller says so.
                unsafe { self.copy(stream, to, from, rows.bytes)? };
            }
        }
        Ok(())
    }

    /// Repeats `pattern` over `bytes`.
    ///
    /// # Safety
    /// `bytes` from `to` on are valid for writing; `pattern` is not empty, and `bytes` is a multiple of its length.
    unsafe fn fill(
        &self,
        stream: Stream,
        to: Address,
        pattern: &[u8],
        bytes: usize,
    ) -> Result<(), DeviceError>;

    /// How many threads [`Device::run_on_host`] may use, the calling one included.
    fn host_threads(&self) -> usize {
        1
    }

    /// Runs `work` over all of `0..parts`, in ranges, now and beside what streams do; each part is worth a thread. A device whose threads are the host's lets
    /// them take part, others leave it to the calling one.
    fn run_on_host(&self, parts: u64, work: &(dyn Fn(u64, u64) + Sync)) {
        if parts > 0 {
            work(0, parts);
        }
    }

    /// A new stream, ordered with no other, the default one included. Needs [`Capabilities::STREAMS`].
    fn create_stream(&self, _priority: StreamPriority) -> Result<Stream, DeviceError> {
        Err(DeviceError::Unsupported { verb: "create_stream" })
    }

    /// Destroys a stream once its queue is empty; waits for that.
    ///
    /// # Safety
    /// `stream` is live, not the default one, and never used again.
    unsafe fn destroy_stream(&self, _stream: Stream) {}

    /// A new event that was never recorded. Only one with `timing` can be asked for [`Device::elapsed`]; recording one without may be
    /// cheaper. Needs [`Capabilities::STREAMS`].
    fn create_event(&self, _timing: bool) -> Result<Event, DeviceError> {
        Err(DeviceError::Unsupported { verb: "create_event" })
    }

    /// Destroys an event; streams that wait for it still do.
    ///
    /// # Safety
    /// `event` is live and never used again.
    unsafe fn destroy_event(&self, _event: Event) {}

    /// The event now stands at the end of the stream's queue.
    ///
    /// # Safety
    /// Both are live.
    unsafe fn record_event(&self, _stream: Stream, _event: Event) -> Result<(), DeviceError> {
        Err(DeviceError::Unsupported { verb: "record_event" })
    }

    /// What comes later on the stream waits until the event's latest recording, as of this call, is passed. The host does not wait,
    /// and the event may be recorded again at once.
    ///
    /// # Safety
    /// Both are live.
    unsafe fn wait_event(&self, _stream: Stream, _event: Event) -> Result<(), DeviceError> {
        Err(DeviceError::Unsupported { verb: "wait_event" })
    }

    /// Whether the event's latest recording is passed: the stream has done all that it was told before. One that was never recorded
    /// counts as passed. A question, as [`Device::is_idle`].
    ///
    /// # Safety
    /// `event` is live.
    unsafe fn event_passed(&self, _event: Event) -> bool {
        true
    }

    /// One step of a wait for the event's latest recording, as [`Device::poll`].
    ///
    /// # Safety
    /// `event` is live.
    unsafe fn poll_event(&self, _event: Event) -> Result<bool, DeviceError> {
        Err(DeviceError::Unsupported { verb: "poll_event" })
    }

    /// The host waits until the event's latest recording, as of this call, is passed; not at all if there is none.
    ///
    /// # Safety
    /// `event` is live.
    unsafe fn synchronise_event(&self, _event: Event) -> Result<(), DeviceError> {
        Err(DeviceError::Unsupported { verb: "synchronise_event" })
    }

    /// Nanoseconds from the moment when `start` was passed to the moment when `end` was, by the device's own clock; negative if `end` was
    /// first. `None` unless both were recorded and the latest recordings are passed. Does not wait.
    ///
    /// # Safety
    /// Both are live, and were created with timing.
    unsafe fn elapsed(&self, _start: Event, _end: Event) -> Result<Option<f64>, DeviceError> {
        Err(DeviceError::Unsupported { verb: "elapsed" })
    }

    /// The host waits until the stream's queue is empty.
    ///
    /// # Safety
    /// `stream` is live.
    unsafe fn synchronise(&self, stream: Stream) -> Result<(), DeviceError>;

    /// Whether the stream's queue is empty and nothing of it runs. A question: it changes nothing, waits for nothing, and no error that the stream
    /// has yet to tell is told or lost by it. Where the device cannot say, the answer is no; a device that is lost runs nothing.
    ///
    /// # Safety
    /// `stream` is live.
    unsafe fn is_idle(&self, _stream: Stream) -> bool {
        true
    }

    /// One step of a wait: whether the stream's queue is empty. If so, or if that cannot be found out, an error that is to be told is the answer. Does not wait
    /// itself, unless that is over soon, and sees to it that what is waited for comes to run.
    ///
    /// # Safety
    /// `stream` is live.
    unsafe fn poll(&self, stream: Stream) -> Result<bool, DeviceError> {
        // SAFETY: the caller says so.
        unsafe { self.synchronise(stream).map(|()| true) }
    }

    /// The calling thread, which is about to wait for a stream, does a part of what that was told, if the device's threads are the host's and
    /// none of them does it. Whether it did something.
    ///
    /// # Safety
    /// `stream` is live.
    unsafe fn assist(&self, _stream: Stream) -> bool {
        false
    }

    /// What the device's own assembler makes of a part of an image: another form of it, which loads faster and can be kept for the same kind
    /// of device with the same driver. `None` if there is no such thing.
    fn assemble(&self, _code: &[u8]) -> Result<Option<Vec<u8>>, DeviceError> {
        Ok(None)
    }

    /// Makes code callable.
    ///
    /// # Safety
    /// The image comes from a compiler for this device: what its functions do is what [`Launch`] lets them.
    unsafe fn load_module(&self, image: &Image<'_>) -> Result<Module, DeviceError>;

    /// Gives a module's memory back.
    ///
    /// # Safety
    /// `module` is live, nothing in any stream still runs its code, and its functions are never used again.
    unsafe fn unload_module(&self, module: Module);

    /// A function of a module by its symbol.
    ///
    /// # Safety
    /// `module` is live.
    unsafe fn function(&self, module: Module, symbol: &str) -> Option<Function>;

    /// What a function takes of the processor; `None` where there is nothing to count.
    ///
    /// # Safety
    /// The function's module is live.
    unsafe fn function_usage(&self, _function: Function) -> Result<Option<FunctionUsage>, DeviceError> {
        Ok(None)
    }

    /// Runs one task. On a stream that is not immediate it only joins the queue.
    ///
    /// # Safety
    /// The stream and the function's module are live; the arguments are in the function's layout, and every address in them and
    /// in the [`LaunchContext`](crate::LaunchContext) is valid for what the function does with it.
    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<(), DeviceError>;
}
