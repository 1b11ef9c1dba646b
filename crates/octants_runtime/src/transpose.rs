//! Transposes of tiles: what lies in a line where it is read lies in a column where it is written.
//!
//! Elements of one, two, four and eight bytes change places in registers, 16 bytes at a time. It knows nothing of memory but two pointers
//! and the distances of lines.

use std::ptr;

/// Where a tile begins on both sides, and how far apart its lines lie there, in bytes. Elements of a line lie side by side.
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    pub from: *const u8,
    pub to: *mut u8,
    pub from_line: usize,
    pub to_line: usize,
}

/// Whether there is a quick way for elements of so many bytes.
pub(crate) const fn is_quick(n: usize) -> bool {
    cfg!(target_arch = "x86_64") && matches!(n, 1 | 2 | 4 | 8)
}

/// Transposes a whole tile of elements of `N` bytes, `side` by `side`, a multiple of 16 bytes. Its lines are copied first, so that those whose
/// distance is a power of two do not push each other out of the cache.
///
/// # Safety
/// Both sides have a whole tile there, and do not overlap. `N` is one that [`is_quick`].
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn transpose<const N: usize>(tile: Tile, side: usize, copy: &mut [u8]) {
    use std::arch::x86_64::{
        __m128i, _mm_loadu_si128, _mm_setzero_si128, _mm_storeu_si128, _mm_unpackhi_epi8, _mm_unpackhi_epi16,
        _mm_unpackhi_epi32, _mm_unpackhi_epi64, _mm_unpacklo_epi8, _mm_unpacklo_epi16, _mm_unpacklo_epi32,
        _mm_unpacklo_epi64,
    };

    /// Elements of two registers in turn: the low halves, and the high ones.
    ///
    /// # Safety
    /// None: SSE2 is part of the architecture.
    #[inline]
    unsafe fn zip<const N: usize>(a: __m128i, b: __m128i) -> [__m128i; 2] {
        // SAFETY: see above.
        unsafe {
            match N {
                1 => [_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)],
                2 => [_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b)],
                4 => [_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)],
                _ => [_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b)],
            }
        }
    }

    let block = 16 / N;
    let line = side * N;
    assert!(copy.len() >= side * line && side.is_multiple_of(block), "a tile has whole blocks");
    // SAFETY: every line lies inside the tile, and the copy has room for all of them.
    unsafe {
        for n in 0..side {
            ptr::copy_nonoverlapping(
                tile.from.add(n * tile.from_line),
                copy.as_mut_ptr().add(n * line),
                line,
            );
        }
        for row in (0..side).step_by(block) {
            for column in (0..side).step_by(block) {
                let mut lines = [_mm_setzero_si128(); 16];
                for (n, words) in lines.iter_mut().take(block).enumerate() {
                    *words = _mm_loadu_si128(copy.as_ptr().add((column + n) * line + row * N).cast());
                }
                // Each round interleaves the first half of the lines with the second.
                let mut rounds = block;
                while rounds > 1 {
                    let before = lines;
                    for n in 0..block / 2 {
                        [lines[2 * n], lines[2 * n + 1]] = zip::<N>(before[n], before[n + block / 2]);
                    }
                    rounds /= 2;
                }
                for (n, &words) in lines.iter().take(block).enumerate() {
                    _mm_storeu_si128(tile.to.add((row + n) * tile.to_line + column * N).cast(), words);
                }
            }
        }
    }
}

/// # Safety
/// Never called: no element [`is_quick`].
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn transpose<const N: usize>(_tile: Tile, _side: usize, _copy: &mut [u8]) {
    unreachable!("no elements are quick on this architecture")
}
