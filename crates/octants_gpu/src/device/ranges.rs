//! Ranges of addresses whose parts get memory while kernels run.
//!
//! A kernel that waits for memory may fill the device, so nothing here is a kernel: pages are mapped by the driver, and zeros and words
//! are copied from pinned memory, by the copy engines, in a stream that is ordered with no other.
//!
//! A thread that tells a stream more than fits its queue waits inside the driver, and holds up the copies of all others: with driver 580
//! from 1021 launches on. A kernel that waits for memory would never get it. So launches are counted once there are ranges, and wait
//! outside of the driver for those long before them (`pace`).
//!
//! Unmapping waits for kernels, too, and holds up mapping meanwhile. So a range that is given back keeps its memory until the host makes
//! another one, needs memory, or ends: there it may wait for all that runs.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use octants_hal::{Address, BackedPages, DeviceError};

use super::{DEFAULT_PRIORITY, GpuDevice, Shared};
use crate::driver::table::{AllocationProperties, DriverTable, Handle, MemoryAccess, Status, VirtualMemory};

/// What memory is mapped in: the driver's own pages are as long on all GPUs that we know.
const PAGE_BYTES: usize = 2 << 20;

/// Zeros are copied in pieces of so many bytes.
const ZEROS_BYTES: usize = 4 << 20;

/// What is read and written beside streams is a few words.
const WORDS_BYTES: usize = 4096;

/// The ranges of a device, and what their verbs work with.
#[derive(Default)]
pub(super) struct Ranges {
    live: Vec<LiveRange>,
    /// Given back, and still mapped.
    retired: Vec<LiveRange>,
    tools: Option<Tools>,
}

struct LiveRange {
    address: u64,
    bytes: usize,
    pages: BackedPages,
    mapped: Vec<Range<usize>>,
}

/// A stream of its own, and pinned memory: zeros, and room for words.
#[derive(Clone, Copy)]
struct Tools {
    stream: Shared,
    zeros: Shared,
    words: Shared,
}

impl GpuDevice {
    fn ranges(&self) -> MutexGuard<'_, Ranges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody asks for ranges of a device that does not say that it has them.
    fn virtual_memory(&self) -> VirtualMemory {
        self.driver.table.virtual_memory().expect("the device says that it has ranges")
    }

    pub(super) fn new_range(&self, bytes: usize) -> Result<Address, DeviceError> {
        let whole = bytes.checked_next_multiple_of(PAGE_BYTES).ok_or(DeviceError::OutOfMemory { bytes })?;
        self.unmap_retired();
        let (_entered, mut address) = (self.enter()?, 0);
        let memory = self.virtual_memory();
        // SAFETY: writes the address.
        let status = unsafe { (memory.reserve)(&raw mut address, whole, PAGE_BYTES, 0, 0) };
        match self.check("reserve_range", status) {
            Err(DeviceError::OutOfMemory { .. }) => return Err(DeviceError::OutOfMemory { bytes }),
            other => other?,
        }
        let pages = BackedPages::none(whole, PAGE_BYTES);
        self.has_ranges.store(true, Ordering::Relaxed);
        self.ranges().live.push(LiveRange { address, bytes: whole, pages, mapped: Vec::new() });
        Ok(Address(address))
    }

    /// Takes a range back; `false` if it is none.
    pub(super) fn free_range(&self, address: Address) -> bool {
        let mut ranges = self.ranges();
        let Some(at) = ranges.live.iter().position(|range| range.address == address.0) else { return false };
        let range = ranges.live.swap_remove(at);
        ranges.retired.push(range);
        true
    }

    /// Gives the memory of ranges that were taken back to others, after all that runs; whether there was some.
    pub(super) fn unmap_retired(&self) -> bool {
        if !self.has_ranges.load(Ordering::Relaxed) {
            return false;
        }
        let retired = std::mem::take(&mut self.ranges().retired);
        if let Ok(table) = self.enter()
            && !retired.is_empty()
        {
            let memory = self.virtual_memory();
            // SAFETY: nothing uses the ranges once all is over, and the pieces are those that were mapped.
            unsafe {
                (table.context_synchronise)();
                for range in &retired {
                    for piece in &range.mapped {
                        (memory.unmap)(range.address + piece.start as u64, piece.len());
                    }
                    (memory.free)(range.address, range.bytes);
                }
            }
        }
        !retired.is_empty()
    }

    pub(super) fn back_part(&self, address: Address, offset: usize, bytes: usize) -> Result<(), DeviceError> {
        let _entered = self.enter()?;
        let mut ranges = self.ranges();
        let tools = self.tools(&mut ranges)?;
        let range = ranges.live.iter_mut().find(|range| range.address == address.0);
        let range = range.expect("a live range, which the caller vouches for");
        for piece in range.pages.missing(offset, bytes) {
            let start = range.address + piece.start as u64;
            self.map(start, piece.len())?;
            range.mapped.push(piece.clone());
            self.zero(tools, start, piece.len())?;
            range.pages.add(&piece);
        }
        Ok(())
    }

    /// Maps new memory.
    fn map(&self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        let table = &self.driver.table;
        let virtual_memory = self.virtual_memory();
        let properties = AllocationProperties::of_device(self.ordinal, self.flags());
        let access = MemoryAccess::of_device(self.ordinal, self.flags());
        let mut memory = 0;
        // SAFETY: the addresses are of a range of ours and have no memory yet; a mapping keeps the memory when the handle is gone.
        unsafe {
            let mut create = || {
                let status = (virtual_memory.create)(&raw mut memory, bytes, &raw const properties, 0);
                self.check("back", status)
            };
            if let Err(DeviceError::OutOfMemory { .. }) = create() {
                // What was freed in stream order is kept by the pool.
                self.check("back", (table.pool_trim)(self.pool.0, 0))?;
                create().map_err(|error| match error {
                    DeviceError::OutOfMemory { .. } => DeviceError::OutOfMemory { bytes },
                    other => other,
                })?;
            }
            let mapped = self.check("back", (virtual_memory.map)(address, bytes, 0, memory, 0));
            (virtual_memory.release)(memory);
            mapped?;
            let status = (virtual_memory.set_access)(address, bytes, &raw const access, 1);
            self.check("back", status).inspect_err(|_| {
                (virtual_memory.unmap)(address, bytes);
            })
        }
    }

    fn zero(&self, tools: Tools, address: u64, bytes: usize) -> Result<(), DeviceError> {
        let table = &self.driver.table;
        // SAFETY: as many zeros are there, and the memory was just mapped.
        unsafe {
            for begin in (0..bytes).step_by(ZEROS_BYTES) {
                let (to, length) = (address + begin as u64, ZEROS_BYTES.min(bytes - begin));
                let status = (table.copy_to_device)(to, tools.zeros.0, length, tools.stream.0);
                self.check("back", status)?;
            }
            self.check("back", (table.stream_synchronise)(tools.stream.0))
        }
    }

    pub(super) fn write_words(&self, to: Address, from: &[u8]) -> Result<(), DeviceError> {
        self.with_words("write_beside", from.len(), |table, tools, bytes| {
            // SAFETY: the caller vouches for the address; there is room for so many words.
            unsafe {
                ptr::copy_nonoverlapping(from.as_ptr(), tools.words.0.cast(), bytes);
                (table.copy_to_device)(to.0, tools.words.0, bytes, tools.stream.0)
            }
        })
        .map(drop)
    }

    pub(super) fn read_words(&self, from: Address, to: &mut [u8]) -> Result<(), DeviceError> {
        let words = self.with_words("read_beside", to.len(), |table, tools, bytes| {
            // SAFETY: as above.
            unsafe { (table.copy_to_host)(tools.words.0, from.0, bytes, tools.stream.0) }
        })?;
        // SAFETY: the copy is over, and the lock that came back keeps others from the words.
        unsafe { ptr::copy_nonoverlapping(words.1.0.cast(), to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    /// Does one copy between the device and the pinned words, and waits for it.
    fn with_words(
        &self,
        verb: &'static str,
        bytes: usize,
        copy: impl FnOnce(&DriverTable, Tools, usize) -> Status,
    ) -> Result<(MutexGuard<'_, Ranges>, Shared), DeviceError> {
        assert!(bytes <= WORDS_BYTES, "some words");
        let table = self.enter()?;
        let mut ranges = self.ranges();
        let tools = self.tools(&mut ranges)?;
        self.check(verb, copy(&table, tools, bytes))?;
        // SAFETY: the stream is ours.
        self.check(verb, unsafe { (table.stream_synchronise)(tools.stream.0) })?;
        Ok((ranges, tools.words))
    }

    /// Makes the stream and the pinned memory when they are first needed.
    fn tools(&self, ranges: &mut Ranges) -> Result<Tools, DeviceError> {
        if let Some(tools) = ranges.tools {
            return Ok(tools);
        }
        let table = &self.driver.table;
        let (mut stream, mut pinned): (Handle, *mut c_void) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: handles are written where they are asked for; as much memory is there as is filled.
        unsafe {
            let status =
                (table.host_allocate)(&raw mut pinned, ZEROS_BYTES + WORDS_BYTES, self.flags().pinned);
            self.check("reserve_range", status)?;
            let status = (table.stream_create)(&raw mut stream, self.flags().non_blocking, DEFAULT_PRIORITY);
            self.check("reserve_range", status).inspect_err(|_| {
                (table.host_free)(pinned);
            })?;
            pinned.cast::<u8>().write_bytes(0, ZEROS_BYTES);
            let words = pinned.cast::<u8>().add(ZEROS_BYTES).cast();
            Ok(*ranges.tools.insert(Tools {
                stream: Shared(stream),
                zeros: Shared(pinned),
                words: Shared(words),
            }))
        }
    }

    /// When the device is given up.
    pub(super) fn end_ranges(&self) {
        self.unmap_retired();
        let table = &self.driver.table;
        self.end_paces();
        if let Some(tools) = self.ranges().tools.take() {
            // SAFETY: made above, and never used again.
            unsafe {
                (table.stream_synchronise)(tools.stream.0);
                (table.stream_destroy)(tools.stream.0);
                (table.host_free)(tools.zeros.0);
            }
        }
    }
}
