//! Transposes: neighbours where it is read lie far apart where it is written.
//!
//! Whole lines are read into a buffer, and whole lines written from it, so that both sides are streams that a processor fetches ahead of
//! time, however the strides fall into the sets of its caches. Elements of one, two, four and eight bytes change places in registers, 16
//! bytes at a time, or twice 16 where the processor has AVX2.

use std::ops::Range;
use std::ptr;

use super::elements::row;
use super::loops::{Loop, Pointers};

/// Bytes of a tile: it stays in a second-level cache. With 1000 by 1000 elements of 4 bytes tiles of 256 KiB are copied 2.5 times as fast as
/// tiles of 4 KiB, whose lines are too short to be fetched ahead. Less of a copy that is small, and in a cache as a whole: a tile begins with zeros.
const TILE_BYTES: usize = 256 << 10;
const MIN_TILE_BYTES: usize = 8 << 10;
const TILES_OF_SMALL: usize = 16;

/// Bytes between lines of a buffer besides their own, so that lines whose length is a power of two do not share a set of a cache.
const PADDING: usize = 64;

/// Copies of at least so many bytes are written past the caches, which would not hold them.
const STREAMED_BYTES: usize = 8 << 20;
pub(super) const CACHE_LINE: usize = 64;

/// Bytes that are asked for before they are read: as many lines as a processor fetches at a time. Lines of 256 bytes that lie 32 KiB apart (elements of
/// one byte, 256 by 128 by 256, axes reversed) are copied at 6 GB/s with it, and at 3.5 with the next two lines alone.
const AHEAD_BYTES: usize = 2 << 10;

/// Loops that are one on one side: elements lie there at one distance, and on the other side wherever the loops put them.
pub(super) struct Joined {
    count: usize,
    /// Bytes between neighbours on the one side.
    near: usize,
    far: Distances,
}

/// Where elements lie on the side where they are apart, in bytes from the first.
enum Distances {
    Even(usize),
    /// Of several loops.
    Listed(Vec<usize>),
}

/// Longer lists of distances are not made. A tile's side has fewer elements, so nothing is gained by more.
const MAX_LISTED: usize = 1 << 14;

impl Joined {
    /// The loop `first`, and those of the others that go on where it ends, on the side that `near` says. They are taken out.
    pub fn new(
        first: Loop,
        others: &mut Vec<Loop>,
        near: impl Fn(&Loop) -> usize,
        far: impl Fn(&Loop) -> usize,
    ) -> Self {
        let mut joined = Self { count: first.count, near: near(&first), far: Distances::Even(far(&first)) };
        while let Some(at) = others.iter().position(|other| near(other) == joined.count * joined.near)
            && joined.count.saturating_mul(others[at].count) <= MAX_LISTED
        {
            let next = others.remove(at);
            let list = (0..next.count)
                .flat_map(|outer| (0..joined.count).map(move |inner| (outer, inner)))
                .map(|(outer, inner)| outer * far(&next) + joined.far.at(inner));
            joined = Self {
                count: joined.count * next.count,
                near: joined.near,
                far: Distances::Listed(list.collect()),
            };
        }
        joined
    }
}

impl Distances {
    fn at(&self, n: usize) -> usize {
        match self {
            Self::Even(stride) => n * stride,
            Self::Listed(list) => list[n],
        }
    }
}

/// A copy by tiles of elements of `N` bytes, for any pointers with the same strides.
pub(super) struct Tiles<const N: usize> {
    /// Side by side where they are read, and where they are written.
    reading: Joined,
    writing: Joined,
    /// Elements of a tile along the one and the other.
    rows: usize,
    columns: usize,
    /// Lines of a tile as they were read.
    tile: Vec<u8>,
    /// Lines that are to be written.
    band: Vec<u8>,
    /// Whether lines are written past the caches.
    streams: bool,
    /// Whether blocks change places two at a time.
    in_pairs: bool,
}

impl<const N: usize> Tiles<N> {
    /// Lines that are transposed at once, for elements that change places in registers: at least as many as elements of a register.
    const BAND: usize = if N == 1 { 32 } else { 16 };

    /// `whole` is how many bytes are copied in all.
    pub fn new(reading: Joined, writing: Joined, whole: usize) -> Self {
        let bytes = (whole / TILES_OF_SMALL).clamp(MIN_TILE_BYTES, TILE_BYTES);
        let side = ((bytes / N).isqrt() / Self::BAND).max(1) * Self::BAND;
        let rows = reading.count.min(side).max(1);
        let columns = writing.count.min((bytes / (rows * N)).max(1)).max(1);
        let rows = reading.count.min((bytes / (columns * N)).max(1)).max(1);
        // A tile that is not whole has bands and blocks that reach beyond it.
        let tile = vec![0; columns.next_multiple_of(Self::BAND) * Self::line(rows)];
        let band =
            if Self::in_registers(&writing) { vec![0; Self::BAND * Self::line(columns)] } else { Vec::new() };
        Self {
            reading,
            writing,
            rows,
            columns,
            tile,
            band,
            streams: whole >= STREAMED_BYTES,
            in_pairs: has_pairs(),
        }
    }

    /// Bytes of a buffer's line of that many elements.
    fn line(elements: usize) -> usize {
        (elements.next_multiple_of(Self::BAND) * N).next_multiple_of(PADDING) + PADDING
    }

    fn in_registers(writing: &Joined) -> bool {
        cfg!(target_arch = "x86_64") && matches!(N, 1 | 2 | 4 | 8) && writing.near == N
    }

    /// # Safety
    /// Both sides have the span of the two loops.
    pub unsafe fn copy(&mut self, pointers: Pointers) {
        for top in (0..self.reading.count).step_by(self.rows) {
            let rows = top..self.reading.count.min(top + self.rows);
            for left in (0..self.writing.count).step_by(self.columns) {
                let columns = left..self.writing.count.min(left + self.columns);
                // SAFETY: rows and columns are below the counts.
                unsafe {
                    self.read(rows.clone(), columns.clone(), pointers.from);
                    if Self::in_registers(&self.writing) {
                        self.write_bands(rows.clone(), columns, pointers.to);
                    } else {
                        self.write(rows.clone(), columns, pointers.to);
                    }
                }
            }
        }
    }

    /// # Safety
    /// The tile's elements are there.
    unsafe fn read(&mut self, rows: Range<usize>, columns: Range<usize>, from: *const u8) {
        let line = Self::line(self.rows);
        let step = self.reading.near;
        let first = from.wrapping_add(rows.start * step);
        let source = |column: usize| first.wrapping_add(self.writing.far.at(column));
        // One element that is read again and again lies no step apart.
        let ahead = (AHEAD_BYTES / (rows.len() * step).max(1)).max(2);
        for (column, to) in columns.clone().zip(self.tile.chunks_exact_mut(line)) {
            // SAFETY: the column is one of the tile's, and the buffer's line has room for the elements of one.
            unsafe {
                let from = source(column);
                if column + ahead < columns.end {
                    prefetch(source(column + ahead), rows.len() * step);
                }
                if step == N {
                    ptr::copy_nonoverlapping(from, to.as_mut_ptr(), rows.len() * N);
                } else {
                    let elements = Loop { count: rows.len(), from: step, to: N };
                    row::<N>(elements, Pointers { from, to: to.as_mut_ptr() });
                }
            }
        }
    }

    /// # Safety
    /// There is room for the tile's elements, which were read.
    unsafe fn write(&self, rows: Range<usize>, columns: Range<usize>, to: *mut u8) {
        let line = Self::line(self.rows);
        let step = self.writing.near;
        let first = to.wrapping_add(columns.start * step);
        let target = |row: usize| first.wrapping_add(self.reading.far.at(row));
        for (n, at) in rows.clone().enumerate() {
            // SAFETY: the row is one of the tile's; the elements of a column lie a line apart in the buffer.
            unsafe {
                if at + 1 < rows.end {
                    prefetch(target(at + 1), columns.len() * step);
                }
                let pointers = Pointers { from: self.tile.as_ptr().add(n * N), to: target(at) };
                if step == N {
                    row::<N>(Loop { count: columns.len(), from: line, to: N }, pointers);
                } else {
                    row::<N>(Loop { count: columns.len(), from: line, to: step }, pointers);
                }
            }
        }
    }

    /// # Safety
    /// See `write`; elements of a line are written side by side.
    unsafe fn write_bands(&mut self, rows: Range<usize>, columns: Range<usize>, to: *mut u8) {
        // SAFETY: the caller's promise, and what the processor says of itself.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if self.in_pairs {
                return self.write_bands_in_pairs(rows, columns, to);
            }
            self.write_blocks::<1>(rows, columns, to);
        }
    }

    /// # Safety
    /// See `write_bands`; the processor has AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn write_bands_in_pairs(&mut self, rows: Range<usize>, columns: Range<usize>, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { self.write_blocks::<2>(rows, columns, to) }
    }

    /// Transposes so many blocks at once.
    ///
    /// # Safety
    /// See `write_bands`; two blocks take AVX2.
    #[allow(clippy::inline_always, reason = "it takes on the instructions that its caller may use")]
    #[inline(always)]
    unsafe fn write_blocks<const BLOCKS: usize>(
        &mut self,
        rows: Range<usize>,
        columns: Range<usize>,
        to: *mut u8,
    ) {
        let (tile_line, band_line) = (Self::line(self.rows), Self::line(self.columns));
        let first = to.wrapping_add(columns.start * N);
        for band in (0..rows.len()).step_by(Self::BAND) {
            let lines = Self::BAND.min(rows.len() - band);
            let target = |n: usize| first.wrapping_add(self.reading.far.at(rows.start + band + n));
            // SAFETY: the band lies in the tile, or reaches beyond it where the buffers have room for that.
            unsafe {
                for n in 0..if self.streams { 0 } else { lines } {
                    prefetch(target(n), columns.len() * N);
                }
                for column in (0..columns.len()).step_by(16 / N) {
                    for n in (0..lines).step_by(BLOCKS * 16 / N) {
                        let from = self.tile.as_ptr().add(column * tile_line + (band + n) * N);
                        let into = self.band.as_mut_ptr().add(n * band_line + column * N);
                        let (from, into) =
                            (|line| from.add(line * tile_line), |line| into.add(line * band_line));
                        if BLOCKS == 2 { two_blocks::<N>(from, into) } else { block::<N>(from, into) }
                    }
                }
                for (n, line) in self.band.chunks_exact(band_line).take(lines).enumerate() {
                    if self.streams {
                        stream(line.as_ptr(), target(n), columns.len() * N);
                    } else {
                        ptr::copy_nonoverlapping(line.as_ptr(), target(n), columns.len() * N);
                    }
                }
            }
        }
    }
}

/// Whether the processor has registers for two blocks.
fn has_pairs() -> bool {
    #[cfg(target_arch = "x86_64")]
    let has = is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    let has = false;
    has
}

/// Copies bytes past the caches, where whole lines of them are written: these are not read first.
///
/// # Safety
/// Both sides have so many bytes, and do not overlap.
#[cfg(target_arch = "x86_64")]
unsafe fn stream(from: *const u8, to: *mut u8, bytes: usize) {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_stream_si128};

    let head = to.align_offset(CACHE_LINE).min(bytes);
    let lines = (bytes - head) / CACHE_LINE;
    let tail = head + lines * CACHE_LINE;
    // SAFETY: the caller's promise; a streaming store begins at a multiple of its 16 bytes.
    unsafe {
        ptr::copy_nonoverlapping(from, to, head);
        for at in (head..tail).step_by(16) {
            _mm_stream_si128(to.add(at).cast(), _mm_loadu_si128(from.add(at).cast()));
        }
        ptr::copy_nonoverlapping(from.add(tail), to.add(tail), bytes - tail);
    }
}

/// # Safety
/// See above.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn stream(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { ptr::copy_nonoverlapping(from, to, bytes) }
}

impl<const N: usize> Drop for Tiles<N> {
    /// What was written past the caches is seen by other threads after a fence only.
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        if self.streams {
            // SAFETY: SSE is part of the architecture.
            unsafe { std::arch::x86_64::_mm_sfence() };
        }
    }
}

/// Asks for lines of the cache that are needed soon. Bytes that do not exist are not an error.
#[inline]
pub(super) fn prefetch(from: *const u8, bytes: usize) {
    /// Further lines are left to what the processor sees of a stream.
    const MAX_BYTES: usize = 4096;
    #[cfg(target_arch = "x86_64")]
    for line in (0..bytes.min(MAX_BYTES)).step_by(CACHE_LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(line).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, bytes, MAX_BYTES);
}

/// Transposes a block of elements of `N` bytes, 16 bytes by as many elements as that are.
///
/// # Safety
/// Both sides have so many lines of 16 bytes, which begin where they are said to. `N` is 1, 2, 4 or 8.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) unsafe fn block<const N: usize>(from: impl Fn(usize) -> *const u8, to: impl Fn(usize) -> *mut u8) {
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

    let side = const { 16 / N };
    // SAFETY: the caller's promise.
    unsafe {
        let mut lines = [_mm_setzero_si128(); 16];
        for (n, words) in lines.iter_mut().take(side).enumerate() {
            *words = _mm_loadu_si128(from(n).cast());
        }
        // Each round interleaves the first half of the lines with the second.
        let mut rounds = side;
        while rounds > 1 {
            let before = lines;
            for n in 0..side / 2 {
                [lines[2 * n], lines[2 * n + 1]] = zip::<N>(before[n], before[n + side / 2]);
            }
            rounds /= 2;
        }
        for (n, &words) in lines.iter().take(side).enumerate() {
            _mm_storeu_si128(to(n).cast(), words);
        }
    }
}

/// Transposes two blocks that lie side by side where they are read, and one below the other where they are written.
///
/// # Safety
/// See [`block`]: lines that are read have 32 bytes, and twice as many lines are written. The processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn two_blocks<const N: usize>(from: impl Fn(usize) -> *const u8, to: impl Fn(usize) -> *mut u8) {
    use std::arch::x86_64::{
        __m256i, _mm_storeu_si128, _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_loadu_si256,
        _mm256_setzero_si256, _mm256_unpackhi_epi8, _mm256_unpackhi_epi16, _mm256_unpackhi_epi32,
        _mm256_unpackhi_epi64, _mm256_unpacklo_epi8, _mm256_unpacklo_epi16, _mm256_unpacklo_epi32,
        _mm256_unpacklo_epi64,
    };

    /// As in [`block`], in each half of the registers.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn zip<const N: usize>(a: __m256i, b: __m256i) -> [__m256i; 2] {
        match N {
            1 => [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)],
            2 => [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)],
            4 => [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)],
            _ => [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)],
        }
    }

    let side = const { 16 / N };
    // SAFETY: the caller's promise.
    unsafe {
        let mut lines = [_mm256_setzero_si256(); 16];
        for (n, words) in lines.iter_mut().take(side).enumerate() {
            *words = _mm256_loadu_si256(from(n).cast());
        }
        let mut rounds = side;
        while rounds > 1 {
            let before = lines;
            for n in 0..side / 2 {
                [lines[2 * n], lines[2 * n + 1]] = zip::<N>(before[n], before[n + side / 2]);
            }
            rounds /= 2;
        }
        for (n, &words) in lines.iter().take(side).enumerate() {
            _mm_storeu_si128(to(n).cast(), _mm256_castsi256_si128(words));
            _mm_storeu_si128(to(n + side).cast(), _mm256_extracti128_si256::<1>(words));
        }
    }
}

/// # Safety
/// Never called: no element changes places in registers.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn block<const N: usize>(_from: impl Fn(usize) -> *const u8, _to: impl Fn(usize) -> *mut u8) {
    unreachable!("no elements change places in registers on this architecture")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes_places<const N: usize>(rows: usize, columns: usize, in_pairs: bool) {
        let from: Vec<u8> = (0..rows * columns * N).map(|n| (n * 37 + n / 251) as u8).collect();
        let mut to = vec![0; from.len()];
        let along = Loop { count: columns, from: N, to: rows * N };
        let across = Loop { count: rows, from: columns * N, to: N };
        let reading = Joined::new(along, &mut Vec::new(), |one| one.from, |one| one.to);
        let writing = Joined::new(across, &mut Vec::new(), |one| one.to, |one| one.from);
        let mut tiles = Tiles::<N>::new(reading, writing, from.len());
        tiles.in_pairs = in_pairs;
        // SAFETY: both sides have all elements.
        unsafe { tiles.copy(Pointers { from: from.as_ptr(), to: to.as_mut_ptr() }) };
        for n in 0..rows * columns {
            let place = (n % columns * rows + n / columns) * N;
            assert_eq!(to[place..place + N], from[n * N..][..N], "{N} bytes, {rows} by {columns}: {n}");
        }
    }

    #[test]
    fn one_block_at_a_time_gives_what_two_do() {
        for (rows, columns) in [(1, 1), (16, 16), (33, 47), (95, 301), (64, 32)] {
            for in_pairs in [false, has_pairs()] {
                changes_places::<1>(rows, columns, in_pairs);
                changes_places::<2>(rows, columns, in_pairs);
                changes_places::<4>(rows, columns, in_pairs);
                changes_places::<8>(rows, columns, in_pairs);
            }
        }
    }
}
