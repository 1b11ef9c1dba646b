//! A device that notes what it is told on the way to another one.
//!
//! **Every verb is handed on**, in the same order and with the same arguments; all that is added are recordings of events around work.

use std::sync::Arc;
use std::time::Instant;

use octants_hal::{Address, Device, DeviceError, Launch, Rows, Stream, forward_verbs};

use super::Profiler;
use super::log::{Timing, Work};
use super::trace::{Activity, Track};

pub(crate) struct ProfiledDevice {
    inner: Arc<dyn Device>,
    profiler: Arc<Profiler>,
}

impl ProfiledDevice {
    /// The profiler records for this device.
    pub fn new(inner: Arc<dyn Device>, profiler: Arc<Profiler>) -> Self {
        Self { inner, profiler }
    }

    /// # Safety
    /// The stream is live.
    unsafe fn noted(
        &self,
        stream: Stream,
        work: Work,
        run: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let Profiler { log, streams, .. } = &*self.profiler;
        let Some(streams) = streams else { return run() };
        if streams.has_events(stream) {
            // What waits for the device would make other threads wait.
            let alone = matches!(work, Work::Task { .. });
            // SAFETY: the caller says so.
            return unsafe { streams.record(stream, work, alone, log, run) };
        }
        let begin = Instant::now();
        run()?;
        let duration = begin.elapsed().as_nanos() as u64;
        let timing = Timing { start: self.profiler.since_epoch(begin), duration, on_device: false };
        let track = Track::Stream { stream: streams.number(stream), thread: self.profiler.thread() };
        self.profiler.log().add(track, work, timing);
        Ok(())
    }

    /// # Safety
    /// The stream is live.
    unsafe fn noted_copy(
        &self,
        stream: Stream,
        activity: Activity,
        bytes: usize,
        run: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller says so.
        unsafe { self.noted(stream, Work::Other { activity, bytes: bytes as u64 }, run) }
    }
}

// SAFETY: every verb is one of a device that keeps the contract; recordings of events touch no memory.
unsafe impl Device for ProfiledDevice {
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
        allocate,
        reserve,
        commit,
        reservable,
        reserve_range,
        back,
        write_beside,
        read_beside,
        free,
        allocate_scratch,
        free_scratch,
        allocate_shared,
        free_shared,
        create_stream,
        create_event,
        destroy_event,
        record_event,
        wait_event,
        event_passed,
        poll_event,
        synchronise_event,
        elapsed,
        synchronise,
        is_idle,
        poll,
        assist,
        assemble,
        load_module,
        unload_module,
        function,
        function_usage,
    );

    unsafe fn copy_to_device(
        &self,
        stream: Stream,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe {
            self.noted_copy(stream, Activity::CopyToDevice, bytes, || {
                self.inner.copy_to_device(stream, to, from, bytes)
            })
        }
    }

    unsafe fn copy_to_host(
        &self,
        stream: Stream,
        to: *mut u8,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe {
            self.noted_copy(stream, Activity::CopyToHost, bytes, || {
                self.inner.copy_to_host(stream, to, from, bytes)
            })
        }
    }

    unsafe fn copy(
        &self,
        stream: Stream,
        to: Address,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.noted_copy(stream, Activity::Copy, bytes, || self.inner.copy(stream, to, from, bytes)) }
    }

    unsafe fn scatter(
        &self,
        stream: Stream,
        to: Address,
        from: Address,
        rows: &Rows,
    ) -> Result<(), DeviceError> {
        let bytes = rows.bytes * rows.count * rows.slices;
        // SAFETY: the caller keeps the verb's contract.
        unsafe {
            self.noted_copy(stream, Activity::Copy, bytes, || self.inner.scatter(stream, to, from, rows))
        }
    }

    unsafe fn fill(
        &self,
        stream: Stream,
        to: Address,
        pattern: &[u8],
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe {
            self.noted_copy(stream, Activity::Fill, bytes, || self.inner.fill(stream, to, pattern, bytes))
        }
    }

    unsafe fn destroy_stream(&self, stream: Stream) {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.inner.destroy_stream(stream) };
        if let Some(streams) = &self.profiler.streams {
            streams.retire(stream, &self.profiler.log);
        }
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        let name = self.profiler.task_name(launch.function);
        let work = Work::Task { name, launch: launch.context.launch };
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.noted(launch.context.stream, work, || self.inner.launch(launch)) }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_verb_of_a_device_is_handed_on() {
        assert_eq!(octants_hal::forgotten_verbs(include_str!("device.rs")), [""; 0]);
    }
}
