//! Copies of elements of a width that is known while compiling, and of runs of any length.

use std::ptr;

use super::interleave::FewPlanes;
use super::loops::{Loop, Pointers, innermost, nest};
use super::transpose::{CACHE_LINE, Joined, Tiles, prefetch};

/// Code of its own for each of these lengths of a run: of scalars, and of usual vectors and matrices.
macro_rules! by_width {
    ($run:ident, $loops:ident, $whole:ident, $pointers:ident: $($width:literal)*) => {
        match $run {
            $($width => elements::<$width>($loops.to_vec(), $whole, $pointers),)*
            run => runs(run, $loops, $pointers),
        }
    };
}

/// Copies runs of so many bytes; `whole` is how many bytes are copied in all, of which this may be a part.
///
/// # Safety
/// See [`super::copy`].
pub(super) unsafe fn copy(run: usize, loops: &[Loop], whole: usize, pointers: Pointers) {
    // SAFETY: the caller's promise; the run is the one that the elements are copied by.
    unsafe { by_width!(run, loops, whole, pointers: 1 2 3 4 6 8 9 12 16 18 24 32 36 48 64 72 128) }
}

/// Runs that are long, or of an odd length.
///
/// # Safety
/// See [`super::copy`].
unsafe fn runs(run: usize, loops: &[Loop], pointers: Pointers) {
    // SAFETY: the caller's promise.
    unsafe { nest(loops, pointers, &mut |Pointers { from, to }| ptr::copy_nonoverlapping(from, to, run)) };
}

/// # Safety
/// See [`super::copy`]; the run is `N` bytes.
unsafe fn elements<const N: usize>(mut loops: Vec<Loop>, whole: usize, pointers: Pointers) {
    let Some((read, written)) = innermost(&loops) else {
        // SAFETY: one element.
        return unsafe { ptr::copy_nonoverlapping(pointers.from, pointers.to, N) };
    };
    // SAFETY: the loops are the same in another order.
    unsafe {
        if read == written {
            let inner = loops.remove(read);
            return nest(&loops, pointers, &mut |pointers| far_row::<N>(inner, pointers));
        }
        let (reading, writing) = (loops[read], loops[written]);
        loops.remove(read.max(written));
        loops.remove(read.min(written));
        if let Some(few) = FewPlanes::of(N, reading, writing) {
            loops.push(few.row);
            return few.planes(N).copy(&loops, pointers);
        }
        let reading = Joined::new(reading, &mut loops, |one| one.from, |one| one.to);
        let writing = Joined::new(writing, &mut loops, |one| one.to, |one| one.from);
        let mut tiles = Tiles::<N>::new(reading, writing, whole);
        nest(&loops, pointers, &mut |pointers| tiles.copy(pointers));
    }
}

/// Bytes from an element to those that are asked for: 2 KiB are copied to every other word of a row at 7.5 GB/s, where a processor that sees the stores alone gets to 4.5.
const AHEAD_BYTES: usize = 2 << 10;
/// Bytes of a row that are asked for at once.
const BLOCK_BYTES: usize = 4 * CACHE_LINE;

/// A row in memory that no cache holds: what comes later is asked for on both sides.
///
/// # Safety
/// See [`super::copy`].
unsafe fn far_row<const N: usize>(one: Loop, pointers: Pointers) {
    let block = (BLOCK_BYTES / one.from.max(one.to).max(1)).max(1);
    for first in (0..one.count).step_by(block) {
        let some = Loop { count: block.min(one.count - first), ..one };
        // SAFETY: the block lies inside the row.
        unsafe {
            let at = one.advanced(pointers, first);
            prefetch(at.from.wrapping_add(AHEAD_BYTES), block * one.from);
            prefetch(at.to.wrapping_add(AHEAD_BYTES), block * one.to);
            row::<N>(some, at);
        }
    }
}

/// # Safety
/// See [`super::copy`].
pub(super) unsafe fn row<const N: usize>(one: Loop, pointers: Pointers) {
    for n in 0..one.count {
        // SAFETY: `n` is below the count; elements lie anywhere, which arrays of bytes may.
        unsafe {
            let Pointers { from, to } = one.advanced(pointers, n);
            *to.cast::<[u8; N]>() = *from.cast::<[u8; N]>();
        }
    }
}
