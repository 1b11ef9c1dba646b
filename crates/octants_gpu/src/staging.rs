//! Copies between the host's ordinary memory and the device, by way of pinned memory.
//!
//! The bus reaches its speed from memory alone that the system does not move. Pieces go through pinned chunks; while the bus moves one, the
//! processor copies the next. Long copies are shared by several threads: one alone copies memory at a fifth of the bus's speed.
//!
//! **A copy waits for chunks of its own stream alone.** Those of another may be behind a kernel that runs for seconds: where no chunk is free, and the stream
//! has few under way, there is a new one. Chunks are never given back to the system before the end: to do so, the driver waits for all that runs.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::iter::StepBy;
use std::ops::Range;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use octants_hal::DeviceError;

use crate::driver::Driver;
use crate::driver::table::{Handle, Status};

/// Bytes of a chunk: the bus takes 20 µs for it, far longer than it takes to tell it.
const CHUNK_BYTES: usize = 1 << 20;

/// Chunks of one stream that wait for the bus before a copy waits for the oldest of them instead of allocating another: two for each thread.
const MAX_CHUNKS: usize = 2 * MAX_THREADS;

/// Likewise, once the chunks of all streams are many: one on the bus, and one that is filled meanwhile.
const FEW_CHUNKS: usize = 2;

/// Chunks that are many. Chosen: four streams that are all held up copy at full speed when they go on, and 128 MiB are pinned.
const MANY_CHUNKS: usize = 4 * MAX_CHUNKS;

/// Bytes that make another thread worth its beginning, which takes longer than to copy a tenth of them.
const BYTES_FOR_THREAD: usize = 4 << 20;

/// Threads of a long copy. Eight keep the bus busy, from and to memory that was touched before; what is new is mapped and zeroed by the system
/// while it is written, which takes longer than the copy. On an H200's host 8, 12 and 15 threads read 18, 25 and 28 GB/s to new memory.
const MAX_THREADS: usize = 16;

/// Pinned chunks.
#[derive(Default)]
pub struct Staging {
    chunks: Mutex<Chunks>,
}

#[derive(Default)]
struct Chunks {
    /// The bus is done with them.
    free: Vec<Chunk>,
    /// Those that the bus was told of, by the stream: the one that was told first at the front.
    told: Vec<(usize, VecDeque<Chunk>)>,
    /// Those that the bus may have been told of, as far as the driver says.
    unsure: Vec<Chunk>,
    /// How many there are.
    made: usize,
}

impl Chunks {
    /// One that the bus is done with, and what the driver says of it.
    fn take_done(&mut self, driver: &Driver) -> Option<(Chunk, Status)> {
        if let Some(chunk) = self.free.pop() {
            return Some((chunk, 0));
        }
        self.told.iter_mut().find_map(|(_, told)| {
            // SAFETY: an event of this driver.
            let status = unsafe { (driver.table.event_query)(told.front()?.event) };
            if status == driver.vendor.statuses.not_ready {
                None
            } else {
                told.pop_front().map(|chunk| (chunk, status))
            }
        })
    }

    /// The oldest one of a stream that has so many under way that it must wait.
    fn take_to_wait_for(&mut self, stream: Handle) -> Option<Chunk> {
        let most = if self.made < MANY_CHUNKS { MAX_CHUNKS } else { FEW_CHUNKS };
        let (_, told) = self.told.iter_mut().find(|(own, _)| *own == stream as usize)?;
        if told.len() >= most { told.pop_front() } else { None }
    }
}

/// Pinned memory, and an event behind the last copy that used it.
#[derive(Clone, Copy)]
struct Chunk {
    host: *mut u8,
    event: Handle,
}

// SAFETY: memory and an event of the driver, which are not bound to a thread.
unsafe impl Send for Chunk {}

/// One copy's ends on the device.
#[derive(Clone, Copy)]
pub struct Transfer<'a> {
    pub driver: &'a Driver,
    pub context: Handle,
    pub stream: Handle,
    pub device: u64,
    pub bytes: usize,
}

// SAFETY: the driver's functions and handles are for any thread.
unsafe impl Send for Transfer<'_> {}
// SAFETY: as above.
unsafe impl Sync for Transfer<'_> {}

/// An address of the host that threads share the pieces of.
#[derive(Clone, Copy)]
struct Host(*mut u8);

// SAFETY: each thread touches pieces of its own.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

impl Host {
    /// # Safety
    /// Inside the copy's range.
    unsafe fn at(self, offset: usize) -> *mut u8 {
        // SAFETY: the caller says so.
        unsafe { self.0.add(offset) }
    }
}

impl Staging {
    /// Copies to the device. The host's bytes were read when it returns.
    ///
    /// # Safety
    /// Both ranges are valid, and the context is current.
    pub unsafe fn to_device(&self, transfer: Transfer<'_>, from: *const u8) -> Result<(), DeviceError> {
        let from = Host(from.cast_mut());
        by_threads(transfer, |transfer, offsets| {
            let driver = transfer.driver;
            for offset in offsets {
                let bytes = CHUNK_BYTES.min(transfer.bytes - offset);
                let chunk = self.take(driver, transfer.stream)?;
                // SAFETY: the piece lies inside both ranges, and the chunk is no longer in use.
                unsafe {
                    ptr::copy_nonoverlapping(from.at(offset), chunk.host, bytes);
                    let (to, table) = (transfer.device + offset as u64, &driver.table);
                    let sent = (table.copy_to_device)(to, chunk.host.cast(), bytes, transfer.stream);
                    let recorded = (table.event_record)(chunk.event, transfer.stream);
                    if recorded == 0 {
                        self.give_to_bus(chunk, transfer.stream);
                    } else {
                        self.recover(driver, chunk, transfer.stream);
                    }
                    driver.check("copy_to_device", sent)?;
                    driver.check("copy_to_device", recorded)?;
                }
            }
            Ok(())
        })
    }

    /// Copies to the host, and waits.
    ///
    /// # Safety
    /// As for [`Staging::to_device`].
    pub unsafe fn to_host(&self, transfer: Transfer<'_>, to: *mut u8) -> Result<(), DeviceError> {
        let to = Host(to);
        by_threads(transfer, |transfer, offsets| {
            let mut told = VecDeque::with_capacity(2);
            // SAFETY: the caller says so.
            let read = unsafe { self.read_pieces(transfer, offsets, to, &mut told) };
            for (chunk, _) in told {
                self.recover(transfer.driver, chunk, transfer.stream);
            }
            read
        })
    }

    /// Copies pieces to the host. `told` has the chunks that the bus was told of, and their pieces' offsets: after a failure some are left.
    ///
    /// # Safety
    /// As for [`Staging::to_host`].
    unsafe fn read_pieces(
        &self,
        transfer: &Transfer<'_>,
        mut offsets: StepBy<Range<usize>>,
        to: Host,
        told: &mut VecDeque<(Chunk, usize)>,
    ) -> Result<(), DeviceError> {
        let (driver, table) = (transfer.driver, &transfer.driver.table);
        let bytes_at = |offset: usize| CHUNK_BYTES.min(transfer.bytes - offset);
        loop {
            // The next piece is told to the bus before the last one is waited for.
            let next = offsets.next();
            if let Some(offset) = next {
                let chunk = self.take(driver, transfer.stream)?;
                told.push_back((chunk, offset));
                let from = transfer.device + offset as u64;
                // SAFETY: the piece lies inside the range, and the chunk is no longer in use.
                let status = unsafe {
                    match (table.copy_to_host)(chunk.host.cast(), from, bytes_at(offset), transfer.stream) {
                        0 => (table.event_record)(chunk.event, transfer.stream),
                        failed => failed,
                    }
                };
                driver.check("copy_to_host", status)?;
            }
            if told.len() > usize::from(next.is_some())
                && let Some(&(chunk, offset)) = told.front()
            {
                // SAFETY: once the event is passed the piece is in the chunk.
                unsafe {
                    driver.check("copy_to_host", (table.event_synchronise)(chunk.event))?;
                    ptr::copy_nonoverlapping(chunk.host, to.at(offset), bytes_at(offset));
                }
                told.pop_front();
                self.give_back(chunk);
            }
            if next.is_none() {
                return Ok(());
            }
        }
    }

    fn chunks(&self) -> MutexGuard<'_, Chunks> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A chunk that the bus is done with, for a copy in this stream. The lock is not held while the copy waits.
    fn take(&self, driver: &Driver, stream: Handle) -> Result<Chunk, DeviceError> {
        let oldest = {
            let mut chunks = self.chunks();
            if let Some((chunk, status)) = chunks.take_done(driver) {
                drop(chunks);
                return self.taken(driver, chunk, status);
            }
            let oldest = chunks.take_to_wait_for(stream);
            chunks.made += usize::from(oldest.is_none());
            oldest
        };
        if let Some(chunk) = oldest {
            // SAFETY: an event of this driver.
            let status = unsafe { (driver.table.event_synchronise)(chunk.event) };
            return self.taken(driver, chunk, status);
        }
        let made = Self::make(driver);
        if made.is_err() {
            self.chunks().made -= 1;
        }
        made
    }

    /// A new chunk.
    fn make(driver: &Driver) -> Result<Chunk, DeviceError> {
        let (table, mut host, mut event) = (&driver.table, ptr::null_mut::<c_void>(), ptr::null_mut());
        // SAFETY: both write their new handle; the memory is used by nobody if there is no event.
        unsafe {
            driver.check(
                "staging",
                (table.host_allocate)(&raw mut host, CHUNK_BYTES, driver.vendor.flags.pinned),
            )?;
            let status = (table.event_create)(&raw mut event, driver.vendor.flags.without_timing);
            if status != 0 {
                (table.host_free)(host);
            }
            driver.check("staging", status)?;
        }
        Ok(Chunk { host: host.cast(), event })
    }

    /// The bus was told to read a chunk, in the order of a stream.
    fn give_to_bus(&self, chunk: Chunk, stream: Handle) {
        let mut chunks = self.chunks();
        if let Some((_, told)) = chunks.told.iter_mut().find(|(own, _)| *own == stream as usize) {
            told.push_back(chunk);
        } else {
            chunks.told.push((stream as usize, VecDeque::from([chunk])));
        }
    }

    /// The bus is done with a chunk.
    fn give_back(&self, chunk: Chunk) {
        self.chunks().free.push(chunk);
    }

    /// Nothing tells when the bus is done with a chunk that a stream may have been told of.
    #[cold]
    fn recover(&self, driver: &Driver, chunk: Chunk, stream: Handle) {
        // SAFETY: the copy's stream is live.
        let status = unsafe { (driver.table.stream_synchronise)(stream) };
        let mut chunks = self.chunks();
        if status == 0 { chunks.free.push(chunk) } else { chunks.unsure.push(chunk) }
    }

    /// A chunk that is taken, if the driver says that the bus is done with it.
    fn taken(&self, driver: &Driver, chunk: Chunk, status: Status) -> Result<Chunk, DeviceError> {
        let done = driver.check("staging", status);
        if done.is_err() {
            self.chunks().unsure.push(chunk);
        }
        done.map(|()| chunk)
    }

    /// A stream is past all that it was told, and about to be destroyed.
    pub fn forget_stream(&self, stream: u64) {
        let mut chunks = self.chunks();
        if let Some(at) = chunks.told.iter().position(|(own, _)| *own as u64 == stream) {
            let (_, told) = chunks.told.swap_remove(at);
            chunks.free.extend(told);
        }
    }

    /// Frees all chunks; nothing is under way.
    pub fn clear(&self, driver: &Driver) {
        let Chunks { free, told, unsure, .. } = std::mem::take(&mut *self.chunks());
        let told = told.into_iter().flat_map(|(_, told)| told);
        for chunk in free.into_iter().chain(told).chain(unsure) {
            // SAFETY: allocated by this driver, and never used again.
            unsafe {
                (driver.table.event_destroy)(chunk.event);
                (driver.table.host_free)(chunk.host.cast());
            }
        }
    }
}

/// Runs `pieces` over the offsets of all pieces, on several threads if there are many.
fn by_threads(
    transfer: Transfer<'_>,
    pieces: impl Fn(&Transfer<'_>, StepBy<Range<usize>>) -> Result<(), DeviceError> + Sync,
) -> Result<(), DeviceError> {
    let wanted = (transfer.bytes / BYTES_FOR_THREAD).min(MAX_THREADS);
    let threads = match wanted {
        0 | 1 => 1,
        _ => std::thread::available_parallelism().map_or(1, |cores| cores.get().min(wanted)),
    };
    if threads == 1 {
        return pieces(&transfer, (0..transfer.bytes).step_by(CHUNK_BYTES));
    }
    let bytes = transfer.bytes;
    let share = move |number: usize| (number * CHUNK_BYTES..bytes).step_by(threads * CHUNK_BYTES);
    std::thread::scope(|scope| {
        let (pieces, transfer) = (&pieces, &transfer);
        let others: Vec<_> = (1..threads)
            .map(|number| {
                scope.spawn(move || {
                    // SAFETY: the context lives as long as the copy.
                    let status = unsafe { (transfer.driver.table.context_set_current)(transfer.context) };
                    transfer.driver.check("staging", status)?;
                    pieces(transfer, share(number))
                })
            })
            .collect();
        let first = pieces(transfer, share(0));
        others.into_iter().fold(first, |result, other| {
            result.and(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    })
}
