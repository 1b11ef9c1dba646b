//! Waiting for a device that runs work later.

use octants_hal::{Cancel, DeviceError, Stream};
use octants_runtime::{Context, HostQueue, Memory, MemoryError};

use crate::error::Error;
use crate::fault::describe_late;

/// Whether work is over when whoever told of it goes on.
pub(crate) fn runs_at_once(context: &Context) -> bool {
    context.runs_at_once()
}

/// Called after the host has waited for something: tells what failed in launches that nobody waited for.
#[inline]
pub(crate) fn told_late(context: &Context) -> Result<(), Error> {
    match context.take_deferred_fault() {
        None => Ok(()),
        Some(late) => Err(describe_late(&late)),
    }
}

/// Waits until a stream is past everything. Raising `cancel` ends the wait, not the work.
pub(crate) fn wait(context: &Context, stream: Stream, cancel: &Cancel) -> Result<(), Error> {
    ended(context.wait(stream, cancel, &mut || {}), context)
}

/// Waits until all streams are past everything.
pub(crate) fn wait_for_all(context: &Context, cancel: &Cancel) -> Result<(), Error> {
    ended(context.wait_all(cancel), context)
}

/// Waits until memory is no longer used; the queue's stream is past everything then, too.
pub(crate) fn wait_for_memory(memory: &Memory, queue: HostQueue<'_>) -> Result<(), Error> {
    match memory.wait(queue) {
        Ok(()) => told_late(memory.context()),
        Err(MemoryError::Device(error)) => Err(Error::after_launches(error, memory.context())),
        Err(error) => Err(Error::of_memory(error, "array")),
    }
}

fn ended(waited: Result<bool, DeviceError>, context: &Context) -> Result<(), Error> {
    match waited {
        Ok(true) => told_late(context),
        Ok(false) => Err(Error::Cancelled),
        Err(error) => Err(Error::after_launches(error, context)),
    }
}
