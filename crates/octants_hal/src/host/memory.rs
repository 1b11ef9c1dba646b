//! Memory of the host: zeroed, aligned, and counted against what the machine has.
//!
//! The system hands out address space generously and ends the process when the pages are touched and there are none. So what arrays
//! hold is counted here, and an allocation that could never be backed is an error while that can still be said.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fs;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Address, BackedPages, DeviceError};

/// A cache line, and the widest vector.
const ALIGNMENT: usize = 64;

/// The size of a huge page; allocations from here on are mappings of their own, which begin on such a page.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Parts of ranges get memory in so many bytes: a multiple of the system's pages.
const RANGE_PAGE_BYTES: usize = 64 << 10;

/// Below this an allocation's margins are as long as itself.
const SMALL_BYTES: usize = 64 << 10;

/// The part of the memory that is left which reservations do not count on. Chosen, not measured: a machine of 16 GiB keeps half a gigabyte.
const RESERVE_SHARE: u64 = 32;

/// Margins are at least so long, as on GPUs: loops of some dozen elements are run over arrays of two.
const LEAST_MARGIN: usize = 256;

/// Bytes on either side of an allocation that are ours too. Programs that look one row beyond the edge of a grid, without a check, find
/// zeros there instead of the end of the process, and what they write there is nobody else's. Half is a row of a grid of two rows;
/// what is never touched of a large margin takes address space alone.
fn margin(bytes: usize) -> usize {
    if bytes >= HUGE_PAGE_BYTES {
        (bytes / 2).next_multiple_of(HUGE_PAGE_BYTES)
    } else {
        (bytes / 2).max(bytes.min(SMALL_BYTES)).max(LEAST_MARGIN).next_multiple_of(ALIGNMENT)
    }
}

/// Bytes given out, and how many there may be.
pub struct HostMemory {
    live: AtomicU64,
    limit: u64,
    /// Where reservations begin: they are not counted.
    reserved: Mutex<Vec<u64>>,
    /// Ranges of addresses, and which of their pages have memory.
    ranges: Mutex<Vec<(u64, BackedPages)>>,
}

impl Default for HostMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl HostMemory {
    pub fn new() -> Self {
        Self {
            live: AtomicU64::new(0),
            limit: backed_by_machine(),
            reserved: Mutex::default(),
            ranges: Mutex::default(),
        }
    }

    /// As many bytes as the machine can back now, beside what everybody uses: a system that is asked for more ends processes.
    pub fn available(&self) -> u64 {
        let left = left_in_machine().unwrap_or(u64::MAX).min(left_in_group().unwrap_or(u64::MAX));
        self.limit.min(left - left / RESERVE_SHARE)
    }

    /// Zeroed memory of which only a part will be touched: a range of addresses, whose pages come into being when they are.
    pub fn reserve(&self, bytes: usize) -> Result<Address, DeviceError> {
        if bytes < HUGE_PAGE_BYTES {
            return self.allocate(bytes);
        }
        let address =
            map(bytes).map(|pointer| Address::of(pointer)).ok_or(DeviceError::OutOfMemory { bytes })?;
        self.reservations().push(address.0);
        Ok(address)
    }

    /// A range of addresses whose touch ends the process, but for what [`Self::back`] gave memory to.
    pub fn reserve_range(&self, bytes: usize) -> Result<Address, DeviceError> {
        let whole = bytes.max(HUGE_PAGE_BYTES);
        let address = self.reserve(whole)?;
        // SAFETY: whole pages of a mapping that nobody knows yet.
        unsafe {
            libc::mprotect(address.as_ptr(), whole.next_multiple_of(RANGE_PAGE_BYTES), libc::PROT_NONE)
        };
        let pages = BackedPages::none(whole, RANGE_PAGE_BYTES);
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner).push((address.0, pages));
        Ok(address)
    }

    /// Memory for a part of a range.
    ///
    /// # Safety
    /// The part lies in a live range.
    pub unsafe fn back(&self, range: Address, offset: usize, bytes: usize) -> Result<(), DeviceError> {
        let mut ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, pages)) = ranges.iter_mut().find(|(address, _)| *address == range.0) else {
            return Err(DeviceError::Unsupported { verb: "back" });
        };
        for piece in pages.missing(offset, bytes) {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: whole pages of our mapping, which end where that does at the latest.
            let status = unsafe { libc::mprotect(range.offset(piece.start).as_ptr(), piece.len(), access) };
            if status != 0 {
                return Err(DeviceError::OutOfMemory { bytes });
            }
            pages.add(&piece);
        }
        Ok(())
    }

    fn reservations(&self) -> MutexGuard<'_, Vec<u64>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn was_reserved(&self, address: Address) -> bool {
        let mut reserved = self.reservations();
        let known = reserved.iter().position(|&known| known == address.0);
        known.map(|at| reserved.swap_remove(at)).is_some()
    }

    /// Zeroed memory. Pages of large allocations come into being when they are first touched.
    pub fn allocate(&self, bytes: usize) -> Result<Address, DeviceError> {
        let within = |live: u64| live.checked_add(bytes as u64).filter(|&live| live <= self.limit);
        if self.live.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_err() {
            return Err(DeviceError::OutOfMemory { bytes });
        }
        let pointer = if bytes >= HUGE_PAGE_BYTES { map(bytes) } else { small(bytes) };
        pointer.map(|pointer| Address::of(pointer)).ok_or_else(|| {
            self.live.fetch_sub(bytes as u64, Ordering::Relaxed);
            DeviceError::OutOfMemory { bytes }
        })
    }

    /// # Safety
    /// Allocated here with this size, and not freed yet.
    pub unsafe fn free(&self, address: Address, bytes: usize) {
        let mut ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        let range = ranges.iter().position(|(known, _)| *known == address.0);
        let bytes = if let Some(at) = range {
            ranges.swap_remove(at);
            bytes.max(HUGE_PAGE_BYTES)
        } else {
            bytes
        };
        drop(ranges);
        let counted = bytes < HUGE_PAGE_BYTES || !self.was_reserved(address);
        // SAFETY: the caller says so; the size tells which way it was allocated.
        unsafe {
            let begin = address.as_ptr::<u8>().sub(margin(bytes));
            if bytes >= HUGE_PAGE_BYTES {
                unmap(begin, bytes.next_multiple_of(HUGE_PAGE_BYTES) + 2 * margin(bytes));
            } else if let Some(layout) = layout(bytes) {
                dealloc(begin, layout);
            }
        }
        if counted {
            self.live.fetch_sub(bytes as u64, Ordering::Relaxed);
        }
    }
}

/// Of a small allocation with its margins.
fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes + 2 * margin(bytes), ALIGNMENT).ok()
}

fn small(bytes: usize) -> Option<*mut u8> {
    // SAFETY: the contract of `allocate` excludes zero bytes.
    let pointer = unsafe { alloc_zeroed(layout(bytes)?) };
    // SAFETY: the margin lies in the allocation.
    (!pointer.is_null()).then(|| unsafe { pointer.add(margin(bytes)) })
}

/// Whole huge pages, beginning on one, with margins.
fn map(bytes: usize) -> Option<*mut u8> {
    let inner = bytes.checked_next_multiple_of(HUGE_PAGE_BYTES)?;
    let wanted = inner.checked_add(margin(bytes).checked_mul(2)?)?;
    let length = wanted.checked_add(HUGE_PAGE_BYTES)?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh private mapping disturbs nothing.
    let start = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    let start = start.cast::<u8>();
    let before = start.align_offset(HUGE_PAGE_BYTES);
    // SAFETY: both ends and the middle lie in the mapping just made; nobody knows it yet.
    unsafe {
        let begin = start.add(before);
        unmap(start, before);
        unmap(begin.add(wanted), length - before - wanted);
        let begin = begin.add(margin(bytes));
        // Only advice: a system without huge pages serves small ones.
        libc::madvise(begin.cast(), inner, libc::MADV_HUGEPAGE);
        Some(begin)
    }
}

/// # Safety
/// Whole pages of a mapping of ours that nobody uses.
unsafe fn unmap(start: *mut u8, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the caller says so.
        unsafe { libc::munmap(start.cast(), bytes) };
    }
}

/// How many bytes the machine, or the group of processes that we are in, can back: memory and swap.
fn backed_by_machine() -> u64 {
    // SAFETY: plain questions to the system.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let memory = match (u64::try_from(pages), u64::try_from(size)) {
        (Ok(pages), Ok(size)) => pages.saturating_mul(size),
        _ => u64::MAX,
    };
    let machine = memory.saturating_add(swap().unwrap_or(0));
    match group_limit() {
        Ok(Some(limit)) => machine.min(limit),
        Ok(None) | Err(_) => machine,
    }
}

fn swap() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    kilobytes(&text, "SwapTotal:")
}

/// What a line of `/proc/meminfo` says, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Bytes that nobody uses, or that are only copies of files, and swap that is free.
fn left_in_machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let memory = kilobytes(&text, "MemAvailable:")?;
    Some(memory.saturating_add(kilobytes(&text, "SwapFree:").unwrap_or(0)))
}

/// Likewise of the container's limit, where there is one.
fn left_in_group() -> Option<u64> {
    let limit = group_limit().ok()??;
    let used: u64 = fs::read_to_string("/sys/fs/cgroup/memory.current").ok()?.trim().parse().ok()?;
    let text = fs::read_to_string("/sys/fs/cgroup/memory.stat").unwrap_or_default();
    let files = text.lines().find_map(|line| line.strip_prefix("inactive_file "));
    let files: u64 = files.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(files)))
}

/// The limit of a container, where there is one.
fn group_limit() -> io::Result<Option<u64>> {
    let text = fs::read_to_string("/sys/fs/cgroup/memory.max")?;
    Ok(text.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_available_is_less_than_all() {
        let text = "MemTotal:       16000 kB\nMemAvailable:    4000 kB\nSwapTotal:          0 kB\n";
        assert_eq!(kilobytes(text, "MemAvailable:"), Some(4000 << 10));
        assert_eq!(kilobytes(text, "SwapFree:"), None);
        assert_eq!(kilobytes("MemAvailable: much", "MemAvailable:"), None);
        let memory = HostMemory::new();
        assert!(memory.available() > 0 && memory.available() < memory.limit);
    }

    #[test]
    fn memory_is_zero_and_aligned_and_comes_back() {
        let memory = HostMemory::new();
        for bytes in [1, 63, 4096, HUGE_PAGE_BYTES - 1, HUGE_PAGE_BYTES, 3 * HUGE_PAGE_BYTES + 5] {
            let address = memory.allocate(bytes).unwrap();
            assert_eq!(address.0 % 64, 0);
            assert_eq!(memory.live.load(Ordering::Relaxed), bytes as u64);
            // SAFETY: our own allocation of that size.
            unsafe {
                let all = std::slice::from_raw_parts_mut(address.as_ptr::<u8>(), bytes);
                assert!(all.iter().all(|&byte| byte == 0));
                all.fill(0xaa);
                // What lies beyond the edges may be touched, and is nobody else's.
                let beyond = bytes.div_ceil(2);
                let begin = address.as_ptr::<u8>();
                for edge in [begin.sub(beyond), begin.add(bytes)] {
                    let edge = std::slice::from_raw_parts_mut(edge, beyond);
                    assert!(edge.iter().all(|&byte| byte == 0));
                    edge.fill(0xbb);
                }
                memory.free(address, bytes);
            }
        }
        assert_eq!(memory.live.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn reservations_are_not_counted() {
        let memory = HostMemory::new();
        let bytes = 1 << 33;
        let address = memory.reserve(bytes).unwrap();
        assert_eq!(memory.live.load(Ordering::Relaxed), 0);
        // SAFETY: our own reservation of that size.
        unsafe {
            assert_eq!(address.as_ptr::<u8>().add(bytes - 1).read(), 0);
            memory.free(address, bytes);
        }
        assert!(memory.reservations().is_empty());
        assert_eq!(memory.live.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn parts_of_ranges_get_memory() {
        let memory = HostMemory::new();
        for bytes in [100, 1 << 33] {
            let range = memory.reserve_range(bytes).unwrap();
            // SAFETY: our own range; what is touched has memory.
            unsafe {
                for offset in [0, bytes - 1, bytes / 2] {
                    memory.back(range, offset, 1).unwrap();
                    let byte = range.as_ptr::<u8>().add(offset);
                    assert_eq!(byte.read(), 0);
                    byte.write(1);
                }
                memory.back(range, 0, bytes.min(1 << 20)).unwrap();
                assert_eq!(range.as_ptr::<u8>().read(), 1, "what has memory keeps it");
                memory.free(range, bytes);
            }
        }
        assert!(memory.reservations().is_empty());
    }

    #[test]
    fn more_than_the_machine_has_is_refused_and_costs_nothing() {
        let memory = HostMemory::new();
        for bytes in [10 << 40, isize::MAX as usize, usize::MAX] {
            assert_eq!(memory.allocate(bytes), Err(DeviceError::OutOfMemory { bytes }));
        }
        assert_eq!(memory.live.load(Ordering::Relaxed), 0);
        // One that fits alone is refused beside others.
        let some = HostMemory { limit: 100_000, ..HostMemory::new() };
        let first = some.allocate(60_000).unwrap();
        assert!(some.allocate(60_000).is_err());
        // SAFETY: allocated just now.
        unsafe { some.free(first, 60_000) };
        let again = some.allocate(60_000).unwrap();
        // SAFETY: allocated just now.
        unsafe { some.free(again, 60_000) };
    }
}
