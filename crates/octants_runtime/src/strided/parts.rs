//! A copy in parts, on as many threads of the host as the device has for it.

use octants_hal::Device;

use super::loops::{Loop, Pointers, innermost};

/// Bytes of a part that is worth a thread: some 30 µs at 4 GB/s, several times what waking a thread takes.
const MIN_PART_BYTES: usize = 128 << 10;
/// Bytes of a part that is long enough: 128 lines of a transpose of 4096 by 4096 elements of 4 bytes.
const MAX_PART_BYTES: usize = 2 << 20;
/// Parts for each thread, of a copy that is neither short nor long: one that finishes early finds another.
const PARTS_OF_THREAD: usize = 4;
/// Bytes that lie side by side on one side in every part, where they do so in the whole. Axes reversed of 256 by 256 by 256 elements of 4 bytes are copied half as fast
/// as by one thread if parts have lines of 32 bytes.
const MIN_LINE_BYTES: usize = 256;
/// Iterations of another loop that is cut. Chosen, not measured: enough for the threads of a small machine.
const MIN_ITERATIONS: usize = 8;

/// Where a copy is cut: into parts of so many iterations of one of its loops.
struct Cut {
    at: usize,
    each: usize,
}

impl Cut {
    /// Along the loop that moves furthest where it is written, so that threads write to pages of their own, if its parts are long enough. `None` if there is no part for
    /// a second thread.
    fn of(threads: usize, run: usize, loops: &[Loop], bytes: usize) -> Option<Self> {
        let part = (bytes / (PARTS_OF_THREAD * threads)).clamp(MIN_PART_BYTES, MAX_PART_BYTES);
        let parts = bytes / part;
        if threads == 1 || parts < 2 {
            return None;
        }
        let (read, written) = innermost(loops)?;
        let cut = |at: usize| Self { at, each: loops[at].count.div_ceil(parts) };
        let is_long = |cut: &Self| match cut.at {
            at if at == read || at == written => cut.each.saturating_mul(run) >= MIN_LINE_BYTES,
            at => loops[at].count >= MIN_ITERATIONS,
        };
        let found = (0..loops.len()).map(cut).filter(is_long).max_by_key(|cut| loops[cut.at].to);
        let longer = if loops[read].count >= loops[written].count { read } else { written };
        let long = || Self { each: cut(longer).each.max(MIN_LINE_BYTES / run.max(1)), ..cut(longer) };
        Some(found.unwrap_or_else(long)).filter(|cut| cut.each < loops[cut.at].count)
    }
}

/// Copies runs of so many bytes, `bytes` in all: `part` is told loops that make up the given ones, and where they begin.
///
/// # Safety
/// Both sides have the span of the loops, and `part` may be called for each part of them by any thread.
pub(super) unsafe fn in_parts(
    device: &dyn Device,
    run: usize,
    loops: &[Loop],
    bytes: usize,
    pointers: Pointers,
    part: &(dyn Fn(&[Loop], Pointers) + Sync),
) {
    let Some(Cut { at, each }) = Cut::of(device.host_threads(), run, loops, bytes) else {
        return part(loops, pointers);
    };
    let whole = loops[at];
    let shared = SharedPointers(pointers);
    device.run_on_host(whole.count.div_ceil(each) as u64, &|begin, end| {
        let (begin, end) = (begin as usize * each, whole.count.min(end as usize * each));
        let mut loops = loops.to_vec();
        loops[at].count = end - begin;
        // SAFETY: the part begins inside the loop.
        part(&loops, unsafe { whole.advanced(shared.get(), begin) });
    });
}

/// Pointers that threads share: each reads and writes parts of its own.
struct SharedPointers(Pointers);

// SAFETY: an address is nobody's; who uses it vouches for that.
unsafe impl Sync for SharedPointers {}

impl SharedPointers {
    fn get(&self) -> Pointers {
        self.0
    }
}
