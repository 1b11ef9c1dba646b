//! Launches are kept from filling a stream's queue, once there are ranges: see there.
//!
//! **Who waits for room in one stream's queue holds up nobody else's launches**: the list of streams is locked to find one, and a stream's own counter while a
//! launch waits for its queue.
//!
//! **What is kept of streams does not grow with those that are gone**, also of other libraries' streams, whose end nobody tells: a stream whose marks are passed is forgotten
//! when there are many. The first launch that is counted stands behind a mark, so that a stream that is forgotten has less than [`PACE`] launches in its queue.

use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use octants_hal::{DeviceError, Stream};

use super::{GpuDevice, Shared, handle};

/// After so many launches in a stream the host waits for those before as many others.
const PACE: u32 = 256;

/// Before more streams than this are kept, those whose marks are passed are forgotten. Chosen, not measured: looking for one takes less than a launch.
const MANY_STREAMS: usize = 64;

/// How long the host sleeps between two looks at an event.
const LOOK_AGAIN: Duration = Duration::from_micros(20);

/// The streams that have launches.
#[derive(Default)]
pub(super) struct Paces {
    streams: Mutex<Vec<(u64, Arc<Mutex<Pace>>)>>,
}

/// The launches of one stream.
struct Pace {
    launches: u32,
    /// Recorded in turns.
    marks: [Shared; 2],
}

impl GpuDevice {
    /// Before a launch: keeps the stream's queue from being full.
    pub(super) fn pace(&self, stream: Stream) -> Result<(), DeviceError> {
        if !self.has_ranges.load(Ordering::Relaxed) {
            return Ok(());
        }
        let pace = self.pace_of(stream)?;
        let mut pace = pace.lock().unwrap_or_else(PoisonError::into_inner);
        let before = pace.launches;
        pace.launches = before.wrapping_add(1);
        if !before.is_multiple_of(PACE) {
            return Ok(());
        }
        let mark = pace.marks[(before / PACE % 2) as usize].0;
        let table = &self.driver.table;
        // SAFETY: the event is ours, and the caller vouches for the stream.
        unsafe {
            loop {
                match (table.event_query)(mark) {
                    status if self.is_not_ready(status) => thread::sleep(LOOK_AGAIN),
                    status => break self.check("launch", status)?,
                }
            }
            self.check("launch", (table.event_record)(mark, handle(stream.0)))
        }
    }

    fn pace_of(&self, stream: Stream) -> Result<Arc<Mutex<Pace>>, DeviceError> {
        let mut streams = self.paces.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, pace)) = streams.iter().find(|(known, _)| *known == stream.0) {
            return Ok(Arc::clone(pace));
        }
        if streams.len() >= MANY_STREAMS {
            // Who launches in a stream shares its entry.
            let is_passed = |pace: &mut Arc<Mutex<Pace>>| {
                Arc::get_mut(pace).is_some_and(|pace| {
                    let marks = pace.get_mut().unwrap_or_else(PoisonError::into_inner).marks;
                    // SAFETY: the events are ours.
                    marks.iter().all(|mark| unsafe { (self.driver.table.event_query)(mark.0) } == 0)
                })
            };
            let passed = streams.extract_if(.., |(_, pace)| is_passed(pace));
            self.end_pace(passed.map(|(_, pace)| pace));
        }
        let mut marks = [ptr::null_mut(); 2];
        for mark in &mut marks {
            // SAFETY: writes the new handle.
            let status = unsafe { (self.driver.table.event_create)(mark, self.flags().without_timing) };
            self.check("launch", status)?;
        }
        let pace = Arc::new(Mutex::new(Pace { launches: 0, marks: marks.map(Shared) }));
        streams.push((stream.0, Arc::clone(&pace)));
        Ok(pace)
    }

    /// The stream is past everything, and about to be destroyed.
    pub(super) fn forget_pace(&self, stream: Stream) {
        let forgotten = {
            let mut streams = self.paces.streams.lock().unwrap_or_else(PoisonError::into_inner);
            let at = streams.iter().position(|(known, _)| *known == stream.0);
            at.map(|at| streams.swap_remove(at).1)
        };
        self.end_pace(forgotten);
    }

    /// When the device is given up.
    pub(super) fn end_paces(&self) {
        let all = std::mem::take(&mut *self.paces.streams.lock().unwrap_or_else(PoisonError::into_inner));
        self.end_pace(all.into_iter().map(|(_, pace)| pace));
    }

    /// Nobody launches in their streams any more.
    fn end_pace(&self, paces: impl IntoIterator<Item = Arc<Mutex<Pace>>>) {
        for pace in paces {
            let marks = pace.lock().unwrap_or_else(PoisonError::into_inner).marks;
            if let Ok(table) = self.enter() {
                for mark in marks {
                    // SAFETY: made above, and never used again.
                    unsafe { (table.event_destroy)(mark.0) };
                }
            }
        }
    }
}
