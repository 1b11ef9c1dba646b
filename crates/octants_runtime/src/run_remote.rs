//! Runs a version on a device with memory and time of its own: what a launch owns is allocated there, and comes back by copies.

use std::mem::offset_of;
use std::sync::atomic::Ordering;

use octants_hal::{FAULT_ARGUMENTS, FaultRecord, Launch, LaunchMemory, Stream};

use crate::domain::{Room, domain};
use crate::memory::{Memory, MemoryError};
use crate::plan::{Ended, Given};
use crate::version::Version;

/// # Safety
/// Both blocks have their layouts' sizes, and the addresses in the arguments are valid for what the version does with them.
pub(crate) unsafe fn run<I>(
    version: &Version<I>,
    args: &[u8],
    results: &mut [u8],
    given: &Given<'_>,
) -> Result<(), Ended> {
    let &Given { cancel, key, listener } = given;
    let plan = version.plan();
    let temp_bytes = plan.temps.bytes as usize;
    // The fault's record first, for its alignment; the blocks are multiples of eight.
    let temps_at = size_of::<FaultRecord>();
    let results_at = temps_at + temp_bytes;
    let own = Memory::allocate(version.context(), results_at + results.len()).map_err(ended)?;
    let base = own.address().map_err(|_| Ended::Cancelled)?;
    let memory = LaunchMemory { temps: base.offset(temps_at), results: base.offset(results_at), fault: base };
    let mut temps = vec![0; temp_bytes];
    let mut room = Room::default();
    for number in plan.schedule.tasks() {
        let task = &plan.tasks[number];
        if cancel.load(Ordering::Relaxed) {
            return Err(Ended::Cancelled);
        }
        if task.needs_temps() {
            own.read(temps_at, &mut temps).map_err(ended)?;
        }
        let (function, lanes) = version.function(number);
        let Some(domain) = domain(plan, task, args, &temps, lanes, &mut room)? else { continue };
        let launch = Launch { function, args, memory, domain, cancel, key, listener };
        // SAFETY: the caller vouches for the arguments; the launch's memory lives until the end of this function, which waits.
        unsafe { version.context().device().launch(Stream::DEFAULT, &launch)? };
    }
    let mut record = [0; size_of::<FaultRecord>()];
    own.read(0, &mut record).map_err(ended)?;
    if let Some((site, arguments)) = fault_in(&record) {
        return Err(Ended::Fault { site, arguments });
    }
    own.read(results_at, results).map_err(ended)
}

/// A fault from a record's bytes.
fn fault_in(record: &[u8]) -> Option<(u32, [u64; FAULT_ARGUMENTS])> {
    let word = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"));
    if word(offset_of!(FaultRecord, state)) == 0 {
        return None;
    }
    let first = offset_of!(FaultRecord, arguments);
    let argument = |n: usize| {
        let at = first + 8 * n;
        u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"))
    };
    Some((word(offset_of!(FaultRecord, site)), std::array::from_fn(argument)))
}

fn ended(error: MemoryError) -> Ended {
    match error {
        MemoryError::Device(error) => Ended::Device(error),
        // The session was reset while the launch ran.
        MemoryError::Stale(_) | MemoryError::Range => Ended::Cancelled,
    }
}
