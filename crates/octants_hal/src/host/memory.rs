//! Memory of the host: zeroed, aligned, and granted by a [`Budget`] before it is used.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use super::available;
use super::budget::Budget;
use crate::{Address, BackedPages, DeviceError};

/// A cache line, and the widest vector.
const ALIGNMENT: usize = 64;

/// The size of a huge page; allocations from here on are mappings of their own, which begin on such a page.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Parts of ranges get memory in so many bytes: a multiple of the system's pages.
const RANGE_PAGE_BYTES: usize = 64 << 10;

/// Below this an allocation's margins are as long as itself.
const SMALL_BYTES: usize = 64 << 10;

/// The part of the addresses that a process may still map which one reservation is to take, where it has a limit: an eighth. Chosen, not measured: a tree has a
/// few pools, and a reservation has margins as long as itself.
const ADDRESS_SHARE: u64 = 8;

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

/// Memory of one device.
pub struct HostMemory {
    budget: Arc<Budget>,
    /// Ranges of addresses, and which of their pages have memory.
    ranges: Mutex<Vec<(u64, BackedPages)>>,
}

impl Default for HostMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl HostMemory {
    /// With the budget that all devices of the process share.
    pub fn new() -> Self {
        Self::with_budget(Budget::of_process())
    }

    fn with_budget(budget: Arc<Budget>) -> Self {
        Self { budget, ranges: Mutex::default() }
    }

    /// How many bytes it is sensible to reserve at once. Addresses cost nothing, unless the process has a limit of them.
    pub fn reservable(&self) -> u64 {
        let addresses = available::addresses_left();
        self.budget.most().min(addresses / ADDRESS_SHARE)
    }

    /// Zeroed memory of which only a part will be touched: a range of addresses, whose pages come into being when they are. It is granted by
    /// [`Self::commit`] before.
    pub fn reserve(&self, bytes: usize) -> Result<Address, DeviceError> {
        if bytes < HUGE_PAGE_BYTES {
            return self.allocate(bytes);
        }
        self.mapped(bytes, 0)
    }

    /// Grants some more bytes of the reservation that an address lies in.
    pub fn commit(&self, reserved: Address, bytes: usize) -> Result<(), DeviceError> {
        let granted = self.budget.grant_of(reserved.0, bytes as u64);
        granted.then_some(()).ok_or(DeviceError::OutOfMemory { bytes })
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
            self.commit(range, piece.len())?;
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

    /// Zeroed memory. Pages of large allocations come into being when they are first touched.
    pub fn allocate(&self, bytes: usize) -> Result<Address, DeviceError> {
        if !self.budget.grant(bytes as u64) {
            return Err(DeviceError::OutOfMemory { bytes });
        }
        let allocated = if bytes >= HUGE_PAGE_BYTES {
            self.mapped(bytes, bytes as u64)
        } else {
            small(bytes).map(|pointer| Address::of(pointer)).ok_or(DeviceError::OutOfMemory { bytes })
        };
        allocated.inspect_err(|_| self.budget.release(bytes as u64))
    }

    /// A mapping of which so many bytes were granted.
    fn mapped(&self, bytes: usize, granted: u64) -> Result<Address, DeviceError> {
        let pointer = map(bytes).ok_or(DeviceError::OutOfMemory { bytes })?;
        let (start, whole) = (pointer as u64 - margin(bytes) as u64, mapped_bytes(bytes));
        self.budget.watch(start..start + whole as u64, granted);
        Ok(Address::of(pointer))
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
        // SAFETY: the caller says so; the size tells which way it was allocated.
        unsafe {
            let begin = address.as_ptr::<u8>().sub(margin(bytes));
            if bytes >= HUGE_PAGE_BYTES {
                // First what is counted: the addresses may be another mapping's as soon as they are free.
                let granted = self.budget.unwatch(begin as u64);
                unmap(begin, mapped_bytes(bytes));
                self.budget.release(granted);
            } else if let Some(layout) = layout(bytes) {
                dealloc(begin, layout);
                self.budget.release(bytes as u64);
            }
        }
    }
}

/// Of a large allocation, with its margins.
fn mapped_bytes(bytes: usize) -> usize {
    bytes.next_multiple_of(HUGE_PAGE_BYTES) + 2 * margin(bytes)
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

#[cfg(test)]
mod tests {
    use super::super::budget::tests::budget_of;
    use super::*;

    fn memory_of(bytes: u64) -> HostMemory {
        HostMemory::with_budget(Arc::new(budget_of(bytes)))
    }

    #[test]
    fn memory_is_zero_and_aligned_and_comes_back() {
        let memory = memory_of(1 << 32);
        for bytes in [1, 63, 4096, HUGE_PAGE_BYTES - 1, HUGE_PAGE_BYTES, 3 * HUGE_PAGE_BYTES + 5] {
            let address = memory.allocate(bytes).unwrap();
            assert_eq!(address.0 % 64, 0);
            assert_eq!(memory.budget.granted(), bytes as u64);
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
        assert_eq!(memory.budget.granted(), 0);
    }

    #[test]
    fn reservations_are_not_counted() {
        let memory = memory_of(1 << 32);
        let bytes = 1 << 33;
        let address = memory.reserve(bytes).unwrap();
        assert_eq!(memory.budget.granted(), 0);
        // SAFETY: our own reservation of that size.
        unsafe {
            assert_eq!(address.as_ptr::<u8>().add(bytes - 1).read(), 0);
            memory.free(address, bytes);
        }
        assert_eq!(memory.budget.granted(), 0);
    }

    #[test]
    fn what_is_used_of_a_reservation_is_granted_first() {
        let memory = memory_of(100 << 20);
        let (first, second) = (memory.reserve(1 << 33).unwrap(), memory.reserve(1 << 33).unwrap());
        memory.commit(first, 60 << 20).unwrap();
        assert_eq!(memory.commit(second, 60 << 20), Err(DeviceError::OutOfMemory { bytes: 60 << 20 }));
        memory.commit(second.offset(4096), 30 << 20).unwrap();
        assert!(memory.allocate(20 << 20).is_err());
        // SAFETY: our own reservations.
        unsafe {
            memory.free(first, 1 << 33);
            memory.commit(second, 60 << 20).unwrap();
            memory.free(second, 1 << 33);
        }
        assert_eq!(memory.budget.granted(), 0);
    }

    #[test]
    fn parts_of_ranges_get_memory() {
        let memory = memory_of(1 << 32);
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
        assert_eq!(memory.budget.granted(), 0);
    }

    #[test]
    fn parts_of_ranges_are_granted() {
        let memory = memory_of(1 << 20);
        let range = memory.reserve_range(1 << 33).unwrap();
        // SAFETY: our own range.
        unsafe {
            memory.back(range, 0, 700_000).unwrap();
            assert!(memory.back(range, 1 << 32, 700_000).is_err());
            memory.back(range, 0, 700_000).unwrap();
            memory.free(range, 1 << 33);
        }
        assert_eq!(memory.budget.granted(), 0);
    }

    #[test]
    fn more_than_the_machine_has_is_refused_and_costs_nothing() {
        let memory = HostMemory::new();
        for bytes in [10 << 40, isize::MAX as usize, usize::MAX] {
            assert_eq!(memory.allocate(bytes), Err(DeviceError::OutOfMemory { bytes }));
        }
        // One that fits alone is refused beside others.
        let some = memory_of(100_000);
        let first = some.allocate(60_000).unwrap();
        assert!(some.allocate(60_000).is_err());
        // SAFETY: allocated just now.
        unsafe { some.free(first, 60_000) };
        let again = some.allocate(60_000).unwrap();
        // SAFETY: allocated just now.
        unsafe { some.free(again, 60_000) };
    }
}
