//! Copies of elements of a width that is known while compiling, and of runs of any length.

use std::ptr;

use super::interleave::FewPlanes;
use super::loops::{Loop, Pointers, nest};
use super::transpose::{Joined, Tiles};

/// Runs that are long, or of an odd length.
///
/// # Safety
/// See [`super::copy`].
pub(super) unsafe fn runs(run: usize, loops: &[Loop], pointers: Pointers) {
    // SAFETY: the caller's promise.
    unsafe { nest(loops, pointers, &mut |Pointers { from, to }| ptr::copy_nonoverlapping(from, to, run)) };
}

/// # Safety
/// See [`super::copy`]; the run is `N` bytes.
pub(super) unsafe fn copy<const N: usize>(mut loops: Vec<Loop>, pointers: Pointers) {
    let along = |stride: fn(&Loop) -> usize| (0..loops.len()).min_by_key(|&n| stride(&loops[n]));
    // SAFETY: the loops are the same in another order.
    unsafe {
        match (along(|one| one.from), along(|one| one.to)) {
            (Some(read), Some(written)) if read != written => {
                let (reading, writing) = (loops[read], loops[written]);
                let whole = loops.iter().fold(N, |bytes, one| bytes.saturating_mul(one.count));
                loops.remove(read.max(written));
                loops.remove(read.min(written));
                if let Some(few) = FewPlanes::of(N, reading, writing) {
                    return few.planes(N, &loops).copy(pointers);
                }
                let reading = Joined::new(reading, &mut loops, |one| one.from, |one| one.to);
                let writing = Joined::new(writing, &mut loops, |one| one.to, |one| one.from);
                let mut tiles = Tiles::<N>::new(reading, writing, whole);
                nest(&loops, pointers, &mut |pointers| tiles.copy(pointers));
            }
            (Some(inner), _) => {
                let inner = loops.remove(inner);
                nest(&loops, pointers, &mut |pointers| row::<N>(inner, pointers));
            }
            (None, _) => ptr::copy_nonoverlapping(pointers.from, pointers.to, N),
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
