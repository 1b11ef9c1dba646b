//! Memory of the host for large arrays of numpy's, kept when an array ends.
//!
//! Arrays that a device's data is copied to are new, and the system maps and zeroes new memory page by page while it is written. That
//! takes longer than the copy: from an H200 28 GB/s arrive in new memory, and 48 in memory that was touched before. So large arrays lie in
//! blocks that the next one of about the same size gets. **What is kept is the system's to take**: it is told that nobody needs the pages
//! (`MADV_FREE`), and of all blocks together only a part of the machine's memory is kept at all.

use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use octants::ir::Scalar;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::interop::numpy;

/// Smaller arrays are numpy's own: the system's allocator keeps memory of such sizes itself.
const MIN_BYTES: usize = 32 << 20;

/// Blocks are multiples of a large page, and begin with one.
const LARGE_PAGE: usize = 2 << 20;

/// A block serves an array of fewer bytes if that leaves no more of it unused than this part.
const UNUSED_DIVISOR: usize = 4;

/// The part of the machine's memory that blocks without an array may hold. Chosen.
const IDLE_DIVISOR: usize = 8;

/// Of the process, as memory is: arrays outlive sessions.
static POOL: HostMemoryPool = HostMemoryPool { idle: Mutex::new(Vec::new()) };

/// Blocks that no array lies in.
struct HostMemoryPool {
    /// The one that was given back first comes first.
    idle: Mutex<Vec<Block>>,
}

/// Memory of the system's own, unmapped when dropped.
struct Block {
    at: *mut u8,
    bytes: usize,
}

// SAFETY: memory is not bound to a thread.
unsafe impl Send for Block {}
// SAFETY: a block is only an address to whoever shares it.
unsafe impl Sync for Block {}

impl Block {
    fn map(bytes: usize) -> Option<Self> {
        let whole = bytes.checked_add(LARGE_PAGE)?;
        let (kinds, protection) =
            (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: new memory, of which the ends that are not aligned go back at once.
        unsafe {
            let mapped = libc::mmap(ptr::null_mut(), whole, protection, kinds, -1, 0);
            if mapped == libc::MAP_FAILED {
                return None;
            }
            let mapped = mapped.cast::<u8>();
            let before = mapped.align_offset(LARGE_PAGE);
            if before > 0 {
                libc::munmap(mapped.cast(), before);
            }
            let at = mapped.add(before);
            libc::munmap(at.add(bytes).cast(), LARGE_PAGE - before);
            // A hint: it is as good without.
            libc::madvise(at.cast(), bytes, libc::MADV_HUGEPAGE);
            Some(Self { at, bytes })
        }
    }

    /// Tells the system that it may take the pages until they are written again.
    fn release_content(&self) {
        // SAFETY: the block's own pages, whose content nobody wants. A hint: it is as good without.
        unsafe { libc::madvise(self.at.cast(), self.bytes, libc::MADV_FREE) };
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and never used again.
        unsafe { libc::munmap(self.at.cast::<c_void>(), self.bytes) };
    }
}

impl HostMemoryPool {
    /// A block of at least so many bytes, of any content; `None` if the system has none.
    fn take(&self, bytes: usize) -> Option<Block> {
        let bytes = bytes.checked_next_multiple_of(LARGE_PAGE)?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = idle
            .iter()
            .enumerate()
            .filter(|(_, block)| block.bytes >= bytes && block.bytes - bytes <= block.bytes / UNUSED_DIVISOR);
        if let Some((at, _)) = fitting.min_by_key(|(_, block)| block.bytes) {
            return Some(idle.remove(at));
        }
        drop(idle);
        Block::map(bytes)
    }

    fn give_back(&self, block: Block) {
        block.release_content();
        let mut unmapped = Vec::new();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(block);
        let mut bytes: usize = idle.iter().map(|block| block.bytes).sum();
        while bytes > max_idle_bytes() {
            let oldest = idle.remove(0);
            bytes -= oldest.bytes;
            unmapped.push(oldest);
        }
        drop(idle);
    }
}

fn max_idle_bytes() -> usize {
    // SAFETY: two questions.
    let (pages, page) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    (pages.max(0) as usize).saturating_mul(page.max(0) as usize) / IDLE_DIVISOR
}

/// What a numpy array in a block refers to.
#[pyclass(frozen, module = "octants._octants")]
struct HostMemory {
    block: Option<Block>,
    shape: Vec<usize>,
    scalar: Scalar,
}

#[pymethods]
impl HostMemory {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let data = self.block.as_ref().map_or(0, |block| block.at as usize);
        numpy::interface(py, &self.shape, self.scalar, data)
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            POOL.give_back(block);
        }
    }
}

/// A new array of numpy's, not initialised.
pub fn empty<'py>(py: Python<'py>, shape: &[usize], scalar: Scalar) -> PyResult<Bound<'py, PyAny>> {
    let bytes = shape.iter().try_fold(scalar.bytes() as usize, |bytes, &extent| bytes.checked_mul(extent));
    let block = bytes.filter(|&bytes| bytes >= MIN_BYTES).and_then(|bytes| POOL.take(bytes));
    let Some(block) = block else { return numpy::empty(py, shape, scalar) };
    let memory = HostMemory { block: Some(block), shape: shape.to_vec(), scalar };
    py.import("numpy")?.call_method1("asarray", (Bound::new(py, memory)?,))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_serves_the_next_array_of_about_its_size() {
        let pool = HostMemoryPool { idle: Mutex::default() };
        let first = pool.take(40 << 20).unwrap();
        let at = first.at as usize;
        assert!(at.is_multiple_of(LARGE_PAGE));
        // SAFETY: the block's own bytes.
        unsafe { first.at.write_bytes(7, first.bytes) };
        pool.give_back(first);
        let other = pool.take(50 << 20).unwrap();
        assert_ne!(other.at as usize, at, "too small");
        let much_smaller = pool.take(20 << 20).unwrap();
        assert_ne!(much_smaller.at as usize, at, "half of it would be unused");
        let again = pool.take((39 << 20) + 5).unwrap();
        assert_eq!((again.at as usize, again.bytes), (at, 40 << 20));
        assert!(pool.take(usize::MAX).is_none());
        assert!(pool.take(usize::MAX / 2).is_none());
    }
}
