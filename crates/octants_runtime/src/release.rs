//! Memory on its way back to the device: it names the streams that use it.
//!
//! Law: **a release waits for the streams that used the memory, and for no other**, the default one included. Where that is immediate it is past
//! everything, and memory that one other stream alone uses goes back in the order of that. What none uses goes back in the order of its zeros. Else memory waits
//! for a point in the queue of each stream, and whoever next allocates, releases or waits for all streams gives it back.

use std::cell::RefCell;
use std::sync::{Arc, PoisonError, TryLockError};

use octants_hal::{Address, Cancel, DeviceError, Stream};
use smallvec::SmallVec;

use crate::context::Context;
use crate::releases::Releases;
use crate::stream::StreamState;
use crate::stream_pool::KeptEvent;

/// Memory that several streams use.
pub(crate) type MemoryReleases = Releases<ReleasedMemory>;

pub(crate) struct ReleasedMemory {
    address: Address,
    bytes: usize,
    /// In the queue of each stream, behind what uses the memory.
    points: SmallVec<[KeptEvent; 3]>,
}

/// What became of a wait for streams.
enum Waited {
    /// None had anything to do.
    Idle,
    Done,
    Cancelled,
}

impl Context {
    /// Gives memory back that nobody has a handle of any more, when these streams, and the default one if it is `in_default`, have come so far.
    pub(crate) fn release(
        &self,
        address: Address,
        bytes: usize,
        users: &[Arc<StreamState>],
        in_default: bool,
    ) {
        let default = self.default_stream();
        let is_immediate = self.device().is_immediate(default);
        match users {
            // SAFETY: allocated by this device with this size; what used it is in the order of the default stream.
            [] if in_default => unsafe { self.device().free(default, address, bytes) },
            [] => {
                let births = self.table().known_births();
                let stream = births.as_ref().map_or(default, |births| births.stream());
                // SAFETY: likewise; its zeros are in the order of this stream, or of the default one, which comes after them.
                unsafe { self.device().free(stream, address, bytes) }
            }
            // SAFETY: likewise of this stream, which is live.
            [one] if is_immediate => unsafe { self.device().free(one.stream(), address, bytes) },
            users => {
                let mut streams: SmallVec<[Stream; 3]> = users.iter().map(|user| user.stream()).collect();
                if in_default && !is_immediate {
                    streams.push(default);
                }
                if let Ok(points) = self.points(&streams) {
                    let released = ReleasedMemory { address, bytes, points };
                    self.releases().add(streams.iter().map(|stream| stream.0).collect(), released);
                } else {
                    // If waiting fails, too, the device is past running anything.
                    streams.iter().for_each(|&stream| drop(self.wait_if_async(stream)));
                    // SAFETY: nothing uses it any more.
                    unsafe { self.device().free(default, address, bytes) };
                }
            }
        }
        self.free_released();
    }

    /// Points at the end of the queues.
    fn points(&self, streams: &[Stream]) -> Result<SmallVec<[KeptEvent; 3]>, DeviceError> {
        let point = |&stream: &Stream| {
            let event = self.keep_event()?;
            // SAFETY: the caller keeps the stream.
            unsafe { self.device().record_event(stream, event.event())? };
            Ok(event)
        };
        streams.iter().map(point).collect()
    }

    /// Gives back what no stream uses any more. Waits for nothing.
    pub(crate) fn free_released(&self) {
        if !self.releases().any() {
            return;
        }
        // Who has it frees more than this would.
        let Ok(_freeing) = self.freeing().try_lock() else { return };
        // SAFETY: the event is kept.
        let is_past = |event: &KeptEvent| unsafe { self.device().event_passed(event.event()) };
        let passed = self.releases().take_passed(|released| released.points.iter().all(is_past));
        self.free_passed(&passed);
    }

    /// Allocates; if there is no room, once more when all that is on its way back has arrived: what was released, then what stands in the queues of streams. Raising
    /// `cancel` ends the waits: then there is nothing, and what was waited for stays on its way.
    pub(crate) fn making_room<R>(
        &self,
        cancel: &Cancel,
        allocate: impl Fn() -> Result<R, DeviceError>,
    ) -> Result<Option<R>, DeviceError> {
        match allocate() {
            Err(DeviceError::OutOfMemory { .. }) => {}
            allocated => return allocated.map(Some),
        }
        if !self.wait_for_released(cancel)? {
            return Ok(None);
        }
        match allocate() {
            Err(error @ DeviceError::OutOfMemory { .. }) => match self.wait_for_busy(cancel)? {
                Waited::Cancelled => Ok(None),
                Waited::Idle => Err(error),
                Waited::Done => allocate().map(Some),
            },
            allocated => allocated.map(Some),
        }
    }

    /// Gives back all that is on its way, after waiting for it, also if another thread is at it. The answer is false if `cancel` was raised first.
    #[cold]
    fn wait_for_released(&self, cancel: &Cancel) -> Result<bool, DeviceError> {
        let held = RefCell::new(None);
        let hold = || {
            *held.borrow_mut() = match self.freeing().try_lock() {
                Ok(freeing) => Some(freeing),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            };
            Ok(held.borrow().is_some())
        };
        if !self.wait_until(hold, cancel, &mut || {})? {
            return Ok(false);
        }
        let mut rest = self.releases().take_all().into_iter();
        while let Some((streams, released)) = rest.next() {
            // SAFETY: the event is kept. If it cannot be asked, the device is past running anything.
            let is_past =
                |event: &KeptEvent| unsafe { self.device().poll_event(event.event()) }.unwrap_or(true);
            if self.wait_until(|| Ok(released.points.iter().all(is_past)), cancel, &mut || {})? {
                self.free_passed(&[released]);
            } else {
                self.releases().add(streams, released);
                rest.for_each(|(streams, released)| self.releases().add(streams, released));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits until all streams are past what they were told before this call.
    #[cold]
    fn wait_for_busy(&self, cancel: &Cancel) -> Result<Waited, DeviceError> {
        let made = self.table().streams();
        let mut waited = Waited::Idle;
        for stream in self.streams_with(&made).filter(|&stream| self.is_busy(stream)) {
            if !self.wait(stream, cancel, &mut || {})? {
                return Ok(Waited::Cancelled);
            }
            waited = Waited::Done;
        }
        Ok(waited)
    }

    /// Gives back all that is on its way when the context ends.
    #[cold]
    pub(crate) fn free_all_released(&self) {
        let _freeing = self.freeing().lock().unwrap_or_else(PoisonError::into_inner);
        let released: Vec<_> = self.releases().take_all().into_iter().map(|(_, released)| released).collect();
        for event in released.iter().flat_map(|released| &released.points) {
            // SAFETY: the event is kept. If waiting fails, the device is past running anything.
            drop(unsafe { self.device().synchronise_event(event.event()) });
        }
        self.free_passed(&released);
    }

    /// All uses of these are over: they go back where nothing holds them up.
    fn free_passed(&self, passed: &[ReleasedMemory]) {
        if passed.is_empty() {
            return;
        }
        let births = self.table().known_births();
        let stream = births.as_ref().map_or(self.default_stream(), |births| births.stream());
        for &ReleasedMemory { address, bytes, .. } in passed {
            // SAFETY: allocated by this device with this size, and nothing uses it any more.
            unsafe { self.device().free(stream, address, bytes) };
        }
    }
}
