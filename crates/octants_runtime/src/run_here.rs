//! Runs a version on a device whose memory is the host's and whose verbs are over when they return: everything that a launch owns
//! lies on the caller's stack.

use std::sync::atomic::Ordering;

use octants_hal::{Address, FaultRecord, Launch, LaunchMemory, Stream};

use crate::domain::{Room, domain};
use crate::plan::{Ended, Given};
use crate::version::Version;

/// Temporaries and results of usual kernels fit into this many words of the stack.
const WORDS: usize = 32;

/// # Safety
/// The device has host memory and is immediate; both blocks have their layouts' sizes, and the addresses in the arguments are valid
/// for what the version does with them.
pub(crate) unsafe fn run<I>(
    version: &Version<I>,
    args: &[u8],
    results: &mut [u8],
    given: &Given<'_>,
) -> Result<(), Ended> {
    let &Given { cancel, key, listener } = given;
    let plan = version.plan();
    // Both layouts are multiples of eight, and want that alignment.
    let temp_words = plan.temps.bytes as usize / 8;
    let words = temp_words + results.len() / 8;
    let mut few = [0_u64; WORDS];
    let mut many = Vec::new();
    let scratch = if words <= WORDS {
        few.as_mut_ptr()
    } else {
        many.resize(words, 0_u64);
        many.as_mut_ptr()
    };
    // SAFETY: inside the scratch, or one past its end.
    let results_at = unsafe { scratch.add(temp_words) };
    let fault = FaultRecord::new();
    let memory = LaunchMemory {
        temps: Address::of(scratch),
        results: Address::of(results_at),
        fault: Address::of(&raw const fault),
    };
    let mut room = Room::default();
    for number in plan.schedule.tasks() {
        let task = &plan.tasks[number];
        // SAFETY: the tasks before this one are over, so nobody writes; the words are initialised.
        let temps = unsafe { std::slice::from_raw_parts(scratch.cast::<u8>(), temp_words * 8) };
        let (function, lanes) = version.function(number);
        let Some(domain) = domain(plan, task, args, temps, lanes, &mut room)? else { continue };
        let launch = Launch { function, args, memory, domain, cancel, key, listener };
        // SAFETY: the caller vouches for the arguments; the launch's memory is as large as the layouts say.
        unsafe { version.context().device().launch(Stream::DEFAULT, &launch)? };
        if fault.happened() {
            return Err(fault_of(&fault));
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(Ended::Cancelled);
        }
    }
    // SAFETY: initialised, in bounds, and no task runs any more.
    let written = unsafe { std::slice::from_raw_parts(results_at.cast::<u8>(), results.len()) };
    results.copy_from_slice(written);
    Ok(())
}

#[cold]
fn fault_of(fault: &FaultRecord) -> Ended {
    Ended::Fault { site: fault.site, arguments: fault.arguments }
}
