//! What the host writes in the order of one stream, and zeros of new memory, with numbers: launches in other streams come after what they need of it.
//!
//! Laws:
//! * A write has its number when it is in the queue.
//! * **A mark stands behind all writes up to its number, and before the next launch of the stream.** Who needs a write comes after a mark, not after the
//!   stream: a stream that is busy with kernels holds nobody up who needs what was written before them.
//! * What is passed is waited for by nobody, and costs a comparison.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use octants_hal::{DeviceError, Stream};

use crate::context::Context;
use crate::stream_pool::KeptEvent;

/// Marks that are kept. Who needs a write whose mark is gone comes after the next one. Chosen, not measured.
const MAX_MARKS: usize = 32;

/// The writes of one stream.
#[derive(Default)]
pub(crate) struct HostWrites {
    /// The number of the latest one; 0 if there was none.
    latest: AtomicU64,
    /// The largest number of a mark.
    marked: AtomicU64,
    /// Writes up to this number are known to be over.
    passed: AtomicU64,
    /// In the order of their numbers.
    marks: Mutex<VecDeque<Mark>>,
}

#[derive(Clone)]
struct Mark {
    number: u64,
    event: Arc<KeptEvent>,
}

impl HostWrites {
    /// A number for a write that is in the queue by now.
    pub fn next(&self) -> u64 {
        self.latest.fetch_add(1, Ordering::AcqRel) + 1
    }

    fn marks(&self) -> MutexGuard<'_, VecDeque<Mark>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called before `stream`, which the writes are in, is told what may take long.
    #[inline]
    pub fn mark(&self, context: &Context, stream: Stream) -> Result<(), DeviceError> {
        let latest = self.latest.load(Ordering::Acquire);
        if self.marked.load(Ordering::Acquire) >= latest {
            return Ok(());
        }
        self.add_mark(context, stream, latest).map(drop)
    }

    /// Marks all until now, of which `latest` is one.
    #[cold]
    fn add_mark(&self, context: &Context, stream: Stream, latest: u64) -> Result<Mark, DeviceError> {
        let event = Arc::new(context.keep_event()?);
        // SAFETY: the stream is the context's, and the event is kept.
        unsafe { context.device().record_event(stream, event.event())? };
        let mark = Mark { number: latest, event };
        let forgotten = {
            let mut marks = self.marks();
            let at = marks.partition_point(|other| other.number <= latest);
            marks.insert(at, mark.clone());
            if marks.len() > MAX_MARKS { marks.pop_front() } else { None }
        };
        drop(forgotten);
        self.marked.fetch_max(latest, Ordering::AcqRel);
        Ok(mark)
    }

    /// What `then` is told next comes after the write of this number, which is in `stream`; gives the number of the last write that it comes after.
    pub fn come_before(
        &self,
        context: &Context,
        stream: Stream,
        number: u64,
        then: Stream,
    ) -> Result<u64, DeviceError> {
        let passed = self.passed.load(Ordering::Acquire);
        if number <= passed {
            return Ok(passed);
        }
        let device = context.device();
        let known = {
            let marks = self.marks();
            marks.get(marks.partition_point(|mark| mark.number < number)).cloned()
        };
        let mark = match known {
            // SAFETY: the event is kept.
            Some(mark) if unsafe { device.event_passed(mark.event.event()) } => {
                self.pass(mark.number);
                return Ok(mark.number);
            }
            Some(mark) => mark,
            None => self.add_mark(context, stream, self.latest.load(Ordering::Acquire))?,
        };
        // SAFETY: the stream is live, and the event is kept.
        unsafe { device.wait_event(then, mark.event.event())? };
        Ok(mark.number)
    }

    /// Writes up to this number are over.
    fn pass(&self, number: u64) {
        self.passed.fetch_max(number, Ordering::AcqRel);
        let passed: Vec<_> = {
            let mut marks = self.marks();
            let count = marks.partition_point(|mark| mark.number <= number);
            marks.drain(..count).collect()
        };
        drop(passed);
    }
}
