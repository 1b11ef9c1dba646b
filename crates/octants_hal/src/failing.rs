//! A device that fails when it is told to: a wrapper around another one, for tests of what comes after a failure.
//!
//! Verbs that may fail are counted, and one of them fails without reaching the device. What is made and given back is counted, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::device::{Address, Device, Event, Module, Rows, SharedMemory, Stream, StreamPriority};
use crate::error::DeviceError;
use crate::forward_verbs;
use crate::image::Image;
use crate::launch::Launch;

/// A device with a verb that is to fail.
pub struct FailingDevice {
    inner: Arc<dyn Device>,
    /// Verbs that succeed before one fails; negative if none is to.
    left: AtomicI64,
    streams: AtomicI64,
    events: AtomicI64,
    allocations: AtomicI64,
}

/// What was made and not given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LiveObjects {
    pub streams: i64,
    pub events: i64,
    /// Of all kinds of memory.
    pub allocations: i64,
}

impl FailingDevice {
    /// Fails nothing at first.
    pub fn new(inner: Arc<dyn Device>) -> Self {
        Self {
            inner,
            left: AtomicI64::new(-1),
            streams: AtomicI64::new(0),
            events: AtomicI64::new(0),
            allocations: AtomicI64::new(0),
        }
    }

    /// The verb after so many more fails, and no other.
    pub fn fail_after(&self, verbs: u32) {
        self.left.store(verbs.into(), Ordering::SeqCst);
    }

    /// Nothing fails from now on. Whether something did since it was told to.
    pub fn stop_failing(&self) -> bool {
        self.left.swap(-1, Ordering::SeqCst) < 0
    }

    pub fn live(&self) -> LiveObjects {
        LiveObjects {
            streams: self.streams.load(Ordering::SeqCst),
            events: self.events.load(Ordering::SeqCst),
            allocations: self.allocations.load(Ordering::SeqCst),
        }
    }

    /// Lets a verb through, or fails it.
    fn pass(&self, verb: &'static str) -> Result<(), DeviceError> {
        let fewer = |left: i64| (left >= 0).then_some(left - 1);
        match self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer) {
            Ok(0) => Err(DeviceError::Failed { verb, message: "told to fail".to_owned() }),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Counts what a verb has made.
    fn made<T>(count: &AtomicI64, result: Result<T, DeviceError>) -> Result<T, DeviceError> {
        if result.is_ok() {
            count.fetch_add(1, Ordering::SeqCst);
        }
        result
    }

    fn gave_back(count: &AtomicI64) {
        count.fetch_sub(1, Ordering::SeqCst);
    }
}

// SAFETY: the device behind it keeps the contract, and a verb that fails does nothing.
unsafe impl Device for FailingDevice {
    forward_verbs!(
        name,
        capabilities,
        properties,
        clock_rate,
        default_stream,
        is_immediate,
        is_usable_in_child,
        is_at_rest,
        copies,
        begin_exclusive,
        end_exclusive,
        waits_for_exclusive,
        fork_costs,
        host_threads,
        run_on_host,
        reservable,
        write_beside,
        read_beside,
        event_passed,
        poll_event,
        synchronise_event,
        elapsed,
        is_idle,
        poll,
        assist,
        assemble,
        unload_module,
        function,
        function_usage,
    );

    unsafe fn allocate(&self, stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        self.pass("allocate")?;
        // SAFETY: the caller says so.
        Self::made(&self.allocations, unsafe { self.inner.allocate(stream, bytes) })
    }

    unsafe fn reserve(&self, stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        self.pass("reserve")?;
        // SAFETY: the caller says so.
        Self::made(&self.allocations, unsafe { self.inner.reserve(stream, bytes) })
    }

    unsafe fn commit(&self, reserved: Address, bytes: usize) -> Result<(), DeviceError> {
        self.pass("commit")?;
        // SAFETY: the caller says so.
        unsafe { self.inner.commit(reserved, bytes) }
    }

    fn reserve_range(&self, bytes: usize) -> Result<Address, DeviceError> {
        self.pass("reserve_range")?;
        Self::made(&self.allocations, self.inner.reserve_range(bytes))
    }

    unsafe fn back(&self, range: Address, offset: usize, bytes: usize) -> Result<(), DeviceError> {
        self.pass("back")?;
        // SAFETY: the caller says so.
        unsafe { self.inner.back(range, offset, bytes) }
    }

    unsafe fn free(&self, stream: Stream, address: Address, bytes: usize) {
        Self::gave_back(&self.allocations);
        // SAFETY: the caller says so.
        unsafe { self.inner.free(stream, address, bytes) };
    }

    unsafe fn allocate_scratch(&self, stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        self.pass("allocate_scratch")?;
        // SAFETY: the caller says so.
        Self::made(&self.allocations, unsafe { self.inner.allocate_scratch(stream, bytes) })
    }

    unsafe fn free_scratch(&self, stream: Stream, address: Address, bytes: usize) {
        Self::gave_back(&self.allocations);
        // SAFETY: the caller says so.
        unsafe { self.inner.free_scratch(stream, address, bytes) };
    }

    fn allocate_shared(&self, bytes: usize) -> Result<SharedMemory, DeviceError> {
        self.pass("allocate_shared")?;
        Self::made(&self.allocations, self.inner.allocate_shared(bytes))
    }

    unsafe fn free_shared(&self, memory: SharedMemory) {
        Self::gave_back(&self.allocations);
        // SAFETY: the caller says so.
        unsafe { self.inner.free_shared(memory) };
    }

    unsafe fn copy_to_device(
        &self,
        stream: Stream,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        self.pass("copy_to_device")?;
        // SAFETY: the caller says so.
        unsafe { self.inner.copy_to_device(stream, to, from, bytes) }
    }

    unsafe fn copy_to_host(
        &self,
        stream: Stream,
        to: *mut u8,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        self.pass("copy_to_host")?;
        // SAFETY: the caller says so.
        unsafe { self.inner.copy_to_host(stream, to, from, bytes) }
    }

    unsafe fn copy(
        &self,
        stream: Stream,
        to: Address,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        self.pass("copy")?;
        // SAFETY: the caller says so.
        unsafe { self.inner.copy(stream, to, from, bytes) }
    }

    unsafe fn scatter(
        &self,
        stream: Stream,
        to: Address,
        from: Address,
        rows: &Rows,
    ) -> Result<(), DeviceError> {
        self.pass("scatter")?;
        // SAFETY: the caller says so.
        unsafe { self.inner.scatter(stream, to, from, rows) }
    }

    unsafe fn fill(
        &self,
        stream: Stream,
        to: Address,
        pattern: &[u8],
        bytes: usize,
    ) -> Result<(), DeviceError> {
        self.pass("fill")?;
        // SAFETY: the caller says so.
        unsafe { self.inner.fill(stream, to, pattern, bytes) }
    }

    fn create_stream(&self, priority: StreamPriority) -> Result<Stream, DeviceError> {
        self.pass("create_stream")?;
        Self::made(&self.streams, self.inner.create_stream(priority))
    }

    unsafe fn destroy_stream(&self, stream: Stream) {
        Self::gave_back(&self.streams);
        // SAFETY: the caller says so.
        unsafe { self.inner.destroy_stream(stream) };
    }

    fn create_event(&self, timing: bool) -> Result<Event, DeviceError> {
        self.pass("create_event")?;
        Self::made(&self.events, self.inner.create_event(timing))
    }

    unsafe fn destroy_event(&self, event: Event) {
        Self::gave_back(&self.events);
        // SAFETY: the caller says so.
        unsafe { self.inner.destroy_event(event) };
    }

    unsafe fn record_event(&self, stream: Stream, event: Event) -> Result<(), DeviceError> {
        self.pass("record_event")?;
        // SAFETY: the caller says so.
        unsafe { self.inner.record_event(stream, event) }
    }

    unsafe fn wait_event(&self, stream: Stream, event: Event) -> Result<(), DeviceError> {
        self.pass("wait_event")?;
        // SAFETY: the caller says so.
        unsafe { self.inner.wait_event(stream, event) }
    }

    /// Never made to fail: whoever cannot wait for work has lost its memory, too.
    unsafe fn synchronise(&self, stream: Stream) -> Result<(), DeviceError> {
        // SAFETY: the caller says so.
        unsafe { self.inner.synchronise(stream) }
    }

    unsafe fn load_module(&self, image: &Image<'_>) -> Result<Module, DeviceError> {
        self.pass("load_module")?;
        // SAFETY: the caller says so.
        unsafe { self.inner.load_module(image) }
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        self.pass("launch")?;
        // SAFETY: the caller says so.
        unsafe { self.inner.launch(launch) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::null::NullDevice;

    #[test]
    fn one_verb_fails_and_what_is_made_is_counted() {
        let inner = Arc::new(NullDevice::new());
        let device = FailingDevice::new(inner.clone());
        device.fail_after(1);
        let stream = device.create_stream(StreamPriority::Normal).unwrap();
        assert!(device.create_event(false).is_err());
        assert!(device.stop_failing());
        device.create_event(false).unwrap();
        assert_eq!(device.live(), LiveObjects { streams: 1, events: 1, allocations: 0 });
        // SAFETY: the null device's handles are numbers.
        unsafe { device.destroy_stream(stream) };
        assert_eq!(device.live().streams, 0);
        device.fail_after(5);
        assert!(!device.stop_failing(), "it did not come to that");
        let trace = inner.take_trace();
        assert_eq!(trace, ["create_stream -> 1", "create_event -> 2", "destroy_stream 1"]);
    }

    /// A verb with a body of its own that is not written here would be the wrapper's, not the device's.
    #[test]
    fn every_verb_of_a_device_is_handed_on() {
        assert_eq!(crate::forgotten_verbs(include_str!("failing.rs")), [""; 0]);
    }
}
