//! What a thread that polls sees to: that what it waits for comes to run.
//!
//! A thread that waits and must hear signals meanwhile (Ctrl-C) looks now and then whether the wait is over, and cannot run a kernel itself: it would be
//! inside it, perhaps for long. Where every worker is busy with other streams, a *deputy* runs what the thread waits for: a thread that takes the place of
//! the one that sleeps, and ends with what was to be waited for.
//!
//! Law: what a thread waits for begins within some milliseconds of the wait, however busy other streams keep the workers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use octants_hal::DeviceError;

use super::queue::Obstacle;
use super::{StreamQueue, inside, this_thread};
use crate::core::Core;
use crate::pool::STACK_BYTES;

/// How long a thread waits before it looks whether somebody runs what it waits for. Chosen, not measured: much longer than a worker that is free takes to
/// come, and less than a person notices.
const PATIENCE: Duration = Duration::from_millis(1);

/// A thread that waits looks again within this time; where none did, the wait was given up (Ctrl-C), and the next look begins another. Chosen, not
/// measured: much longer than the time between two looks.
const GIVEN_UP: Duration = Duration::from_millis(50);

impl Core {
    /// Called again and again by a thread that waits for the queue.
    pub fn see_to(self: &Arc<Self>, queue: &Arc<StreamQueue>) -> Result<(), DeviceError> {
        if !self.pool.serves_sources() {
            self.assist(queue);
            return Ok(());
        }
        let (since, now) = (&queue.label.waited_since, self.nanoseconds());
        match since.load(Ordering::Relaxed) {
            0 => since.store(now, Ordering::Relaxed),
            begin if now.saturating_sub(begin) > GIVEN_UP.as_nanos() as u64 => {
                since.store(now, Ordering::Relaxed);
            }
            begin if now.saturating_sub(begin) < PATIENCE.as_nanos() as u64 => {}
            begin => {
                // Of several threads that wait, one looks.
                if since.compare_exchange(begin, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                    return self.look_after(queue);
                }
            }
        }
        Ok(())
    }

    /// The wait for the queue is over.
    pub fn end_wait(queue: &StreamQueue) {
        if queue.label.waited_since.load(Ordering::Relaxed) != 0 {
            queue.label.waited_since.store(0, Ordering::Relaxed);
        }
    }

    /// Sends a deputy, if nobody runs what the queue needs next.
    #[cold]
    fn look_after(self: &Arc<Self>, queue: &Arc<StreamQueue>) -> Result<(), DeviceError> {
        let mut first = Arc::clone(queue);
        loop {
            match first.obstacle() {
                Obstacle::Ready => break,
                Obstacle::RunBy(thread) if thread == this_thread() => return Err(inside()),
                Obstacle::RunBy(_) | Obstacle::Nothing | Obstacle::Claimed => return Ok(()),
                // What the recording stands behind comes first.
                Obstacle::Recording(recording) => match recording.queue() {
                    Some(before) => first = before,
                    None => return Ok(()),
                },
            }
        }
        let (core, recording) = (Arc::clone(self), queue.record(self));
        let deputy = thread::Builder::new().name("octants-deputy".to_owned()).stack_size(STACK_BYTES);
        // What failed is for whoever waits, which the deputy only serves.
        if deputy.spawn(move || drop(core.run_until(&recording))).is_err() {
            self.assist(queue);
        }
        Ok(())
    }
}
