//! Launches are kept from filling a stream's queue, once there are ranges: see there.
//!
//! **Who waits for room in one stream's queue holds up nobody else's launches**: the list of streams is locked to find one, and a stream's own counter while a
//! launch waits for its queue.

use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use octants_hal::{DeviceError, Stream};

use super::{CudaDevice, Shared, handle};
use crate::driver::NOT_READY;
use crate::staging::WITHOUT_TIMING;

/// After so many launches in a stream the host waits for those before as many others.
const PACE: u32 = 256;

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

impl CudaDevice {
    /// Before a launch: keeps the stream's queue from being full.
    pub(super) fn pace(&self, stream: Stream) -> Result<(), DeviceError> {
        if !self.has_ranges.load(Ordering::Relaxed) {
            return Ok(());
        }
        let pace = self.pace_of(stream)?;
        let mut pace = pace.lock().unwrap_or_else(PoisonError::into_inner);
        pace.launches = pace.launches.wrapping_add(1);
        if !pace.launches.is_multiple_of(PACE) {
            return Ok(());
        }
        let mark = pace.marks[(pace.launches / PACE % 2) as usize].0;
        let table = &self.driver.table;
        // SAFETY: the event is ours, and the caller vouches for the stream.
        unsafe {
            loop {
                match (table.event_query)(mark) {
                    NOT_READY => thread::sleep(LOOK_AGAIN),
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
        let mut marks = [ptr::null_mut(); 2];
        for mark in &mut marks {
            // SAFETY: writes the new handle.
            let status = unsafe { (self.driver.table.event_create)(mark, WITHOUT_TIMING) };
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
