//! Memory through which a launch reports to the host.

use std::sync::atomic::AtomicU64;

use octants_hal::{
    Address, Cancel, DeviceError, Fault, FaultRecord, LaunchMemory, PrintQueue, PrintRing, Stream,
};

use crate::commands::ReportLayout;
use crate::context::Context;
use crate::shared_pool::SharedBlock;
use crate::stop_words::StopGuard;

/// What a launch on a device tells the host: faults, results and prints, laid out as its list of commands says.
pub(super) struct Report<'a> {
    /// Before the block, which goes back after it.
    stop: StopGuard<'a>,
    block: SharedBlock<'a>,
    layout: ReportLayout,
    /// The queue that prints go to through the ring; none if the device writes to the queue.
    queue: Option<&'a PrintQueue>,
}

impl<'a> Report<'a> {
    /// `counters` is where the device counts prints.
    pub fn new(
        owner: &'a Context,
        layout: ReportLayout,
        queue: Option<&'a PrintQueue>,
        counters: Address,
    ) -> Result<Self, DeviceError> {
        let ring_bytes = queue.map_or(0, |queue| size_of_val(queue.memory()));
        let block = owner.shared().take(layout.bytes + ring_bytes)?;
        let cancel = block.host::<Cancel>(layout.cancel_at);
        // SAFETY: the block has room for it there, aligned to eight.
        unsafe { cancel.write(Cancel::new()) };
        // SAFETY: it lies there as long as the report.
        let stop = unsafe { owner.stops().add(cancel) };
        let report = Self { stop, block, layout, queue };
        if let Some(words) = report.ring_words() {
            PrintRing::format_for_device(words, counters);
        }
        Ok(report)
    }

    /// Where the device sees a branch's record.
    pub fn record_on_device(&self, branch: usize) -> Address {
        self.block.device().offset(branch * size_of::<FaultRecord>())
    }

    pub fn cancel(&self) -> &Cancel {
        // SAFETY: it was written when the report was made.
        unsafe { &*self.block.host::<Cancel>(self.layout.cancel_at) }
    }

    /// The launch's memory, but for its temporaries.
    pub fn memory(&self, temps: Address) -> LaunchMemory {
        let at = |offset| self.block.device().offset(offset);
        LaunchMemory {
            temps,
            results: at(self.layout.results_at),
            fault: self.record_on_device(0),
            prints: self.queue.map_or(Address::NULL, |_| at(self.layout.bytes)),
            stop: at(self.layout.cancel_at + Cancel::RAISED_OFFSET),
        }
    }

    /// Copies the results, which are as many bytes as the layout says. No task may run any more.
    pub fn read_results(&self, results: &mut [u8]) {
        debug_assert_eq!(results.len(), self.layout.bytes - self.layout.results_at);
        // SAFETY: the block has as many bytes there, and the device is done with it.
        unsafe {
            let from = self.block.host::<u8>(self.layout.results_at);
            std::ptr::copy_nonoverlapping(from, results.as_mut_ptr(), results.len());
        }
    }

    /// The launch is not to go on, and may be under way: it is told to end and waited for. Where that cannot be, its memory is given up.
    pub fn end_early(self, owner: &Context, stream: Stream, cancel: &Cancel) {
        self.cancel().raise();
        if !matches!(owner.wait(stream, cancel, &mut || {}), Ok(true)) {
            self.abandon();
        }
    }

    /// Gives the memory up: what was begun may still report. It is told to end.
    pub fn abandon(self) {
        self.cancel().raise();
        drop(self.stop);
        self.block.abandon();
    }

    pub fn fault(&self, branch: usize) -> Option<Fault> {
        let at = branch * size_of::<FaultRecord>();
        debug_assert!(at < self.layout.cancel_at);
        // SAFETY: the block begins with as many records, aligned as such; all of it is atomic.
        unsafe { &*self.block.host::<FaultRecord>(at) }.fault()
    }

    fn ring_words(&self) -> Option<&[AtomicU64]> {
        let (words, at) = (self.queue?.memory().len(), self.layout.bytes);
        // SAFETY: the block has as many words there, aligned to eight; the device writes them as atomics, too.
        Some(unsafe { std::slice::from_raw_parts(self.block.host::<AtomicU64>(at), words) })
    }

    /// Moves what was printed so far to the launch's queue.
    pub fn take_prints(&self) {
        if let (Some(queue), Some(ring)) = (self.queue, self.ring()) {
            queue.take_from(ring);
        }
    }

    pub fn ring(&self) -> Option<PrintRing<'_>> {
        self.ring_words().map(PrintRing::formatted)
    }
}
