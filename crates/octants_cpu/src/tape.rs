//! A thread's memory for tapes: a stack of bytes that grows by whole chunks and is given back in the opposite order.
//!
//! Chunks stay for the next loop, up to a limit; several become one as soon as none is in use.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

/// Of everything that is taken: wide enough for any vector register.
const ALIGN_BYTES: usize = 64;
/// Of the first chunk. Chosen: a loop of a thousand steps that keeps two singles in eight lanes; it stays in a second-level cache.
const FIRST_CHUNK_BYTES: usize = 64 << 10;
/// What a thread keeps when nothing is in use. Chosen, not measured.
const KEPT_BYTES: usize = 64 << 20;

#[derive(Debug, Default)]
struct TapeMemory {
    chunks: Vec<Chunk>,
    /// The chunk that is taken from, and how many of its bytes are taken. Chunks behind it are free.
    current: usize,
    used: usize,
    /// How large the next chunk is at least.
    wanted: usize,
}

#[derive(Debug)]
struct Chunk {
    start: NonNull<u8>,
    bytes: usize,
}

impl Chunk {
    fn new(bytes: usize) -> Option<Self> {
        let layout = Layout::from_size_align(bytes, ALIGN_BYTES).ok().filter(|layout| layout.size() > 0)?;
        // SAFETY: the size is not zero.
        let start = unsafe { alloc(layout) };
        Some(Self { start: NonNull::new(start)?, bytes })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this size and alignment.
        unsafe { dealloc(self.start.as_ptr(), Layout::from_size_align_unchecked(self.bytes, ALIGN_BYTES)) };
    }
}

impl TapeMemory {
    /// Null if there is no memory for so many bytes.
    fn take(&mut self, bytes: u64) -> *mut u8 {
        let Some(bytes) = usize::try_from(bytes).ok().and_then(|b| b.checked_next_multiple_of(ALIGN_BYTES))
        else {
            return null_mut();
        };
        loop {
            match self.chunks.get(self.current) {
                Some(chunk) if chunk.bytes - self.used >= bytes => {
                    // SAFETY: that many bytes of the chunk are left.
                    let start = unsafe { chunk.start.as_ptr().add(self.used) };
                    self.used += bytes;
                    return start;
                }
                None if bytes == 0 => return nothing(),
                Some(_) if self.chunks.get(self.current + 1).is_some_and(|next| next.bytes >= bytes) => {
                    (self.current, self.used) = (self.current + 1, 0);
                }
                found => {
                    let next = self.current + usize::from(found.is_some());
                    let last = found.map_or(0, |chunk| chunk.bytes);
                    let ample = FIRST_CHUNK_BYTES.max(self.wanted).max(last.saturating_mul(2)).max(bytes);
                    self.chunks.truncate(next);
                    let Some(chunk) = Chunk::new(ample).or_else(|| Chunk::new(bytes)) else {
                        return null_mut();
                    };
                    self.chunks.push(chunk);
                    (self.current, self.used) = (next, 0);
                }
            }
        }
    }

    /// Gives back all that was taken since this was.
    fn release(&mut self, first: *mut u8) {
        if first == nothing() {
            (self.current, self.used) = (0, 0);
            return;
        }
        for number in (0..self.chunks.len().min(self.current + 1)).rev() {
            let offset = first.addr().wrapping_sub(self.chunks[number].start.addr().get());
            if offset <= self.chunks[number].bytes {
                (self.current, self.used) = (number, offset);
                return;
            }
        }
    }

    /// Back to what was in use then, whether or not the code gave everything back.
    fn leave(&mut self, (current, used): (usize, usize)) {
        (self.current, self.used) = (current, used);
        if (current, used) != (0, 0) || self.chunks.is_empty() {
            return;
        }
        let total: usize = self.chunks.iter().map(|chunk| chunk.bytes).sum();
        if self.chunks.len() > 1 || total > KEPT_BYTES {
            self.chunks.clear();
            self.wanted = if total > KEPT_BYTES { 0 } else { total };
        }
    }
}

/// What stands for no bytes where there is no chunk.
fn nothing() -> *mut u8 {
    std::ptr::without_provenance_mut(ALIGN_BYTES)
}

thread_local! {
    static MEMORY: UnsafeCell<TapeMemory> = UnsafeCell::default();
}

/// Runs code that may take tapes, and sees to it that all are given back.
pub(crate) fn with_tapes<R>(run: impl FnOnce(*mut c_void) -> R) -> R {
    let memory = MEMORY.with(UnsafeCell::get);
    // SAFETY: it is this thread's own, and nothing refers into it between calls of the functions here.
    let before = unsafe { ((*memory).current, (*memory).used) };
    let result = run(memory.cast());
    // SAFETY: likewise.
    unsafe { (*memory).leave(before) };
    result
}

/// # Safety
/// The tape is what [`with_tapes`] gave on this thread.
pub(crate) unsafe extern "C" fn take(tape: *mut c_void, bytes: u64) -> *mut u8 {
    // SAFETY: the caller vouches for it.
    unsafe { (*tape.cast::<TapeMemory>()).take(bytes) }
}

/// # Safety
/// Likewise, and `first` was taken from it and not given back.
pub(crate) unsafe extern "C" fn release(tape: *mut c_void, first: *mut u8) {
    // SAFETY: the caller vouches for it.
    unsafe { (*tape.cast::<TapeMemory>()).release(first) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_is_taken_again() {
        let mut memory = TapeMemory::default();
        let empty = memory.take(0);
        assert!(memory.chunks.is_empty() && !empty.is_null());
        let first = memory.take(100);
        let second = memory.take(FIRST_CHUNK_BYTES as u64);
        assert_eq!((memory.chunks.len(), first.addr() % ALIGN_BYTES, second.addr() % ALIGN_BYTES), (2, 0, 0));
        for _ in 0..3 {
            memory.release(second);
            assert_eq!(memory.take(FIRST_CHUNK_BYTES as u64), second);
        }
        memory.release(first);
        assert_eq!((memory.take(64), memory.current), (first, 0));
        memory.release(empty);
        assert_eq!((memory.current, memory.used), (0, 0));
        memory.leave((0, 0));
        assert!(memory.chunks.is_empty());
        memory.take(1);
        assert_eq!(memory.chunks[0].bytes, 3 * FIRST_CHUNK_BYTES);
    }

    #[test]
    fn more_than_there_is_gives_null_and_harms_nothing() {
        let mut memory = TapeMemory::default();
        let first = memory.take(64);
        assert!(memory.take(u64::MAX).is_null() && memory.take(1 << 60).is_null());
        assert_eq!(memory.take(64).addr() - first.addr(), 64);
    }
}
