//! Copies between *planes*, in each of which elements lie side by side, and memory where the elements of one index of all planes do: a
//! vector field whose entries are stored apart, and the host's array of vectors.
//!
//! Bytes change places in registers, 16 at a time, by tables that are made once for each number of planes and width of elements.

use super::Direction;
use super::loops::{Loop, Pointers, nest};

/// More planes than these take turns.
pub(super) const MAX_PLANES: usize = 16;

/// Planes of elements of one width. Distances and pointers are those of the plane that comes first.
pub(super) struct Planes<'a> {
    /// Where planes begin, in bytes from the first; and how far one lies from the next on the host, which is an element's width.
    pub offsets: &'a [isize],
    pub width: usize,
    pub direction: Direction,
}

impl Planes<'_> {
    /// Whether there is code for it.
    pub fn fits(planes: usize, width: usize) -> bool {
        #[cfg(target_arch = "x86_64")]
        let has_shuffles = std::arch::is_x86_feature_detected!("ssse3");
        #[cfg(not(target_arch = "x86_64"))]
        let has_shuffles = false;
        has_shuffles && matches!(width, 1 | 2 | 4 | 8) && (2..=MAX_PLANES).contains(&planes)
    }

    /// The last of the loops goes along the elements of a row.
    ///
    /// # Safety
    /// All planes and the host's side have the span of the loops; the two sides do not overlap. It [`fits`](Self::fits).
    #[cfg(target_arch = "x86_64")]
    pub unsafe fn copy(&self, loops: &[Loop], pointers: Pointers) {
        let Some((row, outer)) = loops.split_last() else { return };
        macro_rules! by_planes {
            ($width:literal: $($planes:literal)*) => {
                match self.offsets.len() {
                    $($planes => self.rows::<$width, $planes>(outer, row.count, pointers),)*
                    _ => {}
                }
            };
        }
        // SAFETY: the caller's promise.
        unsafe {
            match self.width {
                1 => by_planes!(1: 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16),
                2 => by_planes!(2: 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16),
                4 => by_planes!(4: 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16),
                8 => by_planes!(8: 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16),
                _ => {}
            }
        }
    }

    /// # Safety
    /// Never called: nothing fits.
    #[cfg(not(target_arch = "x86_64"))]
    pub unsafe fn copy(&self, _loops: &[Loop], _pointers: Pointers) {
        unreachable!("there are no tables for this architecture")
    }

    /// # Safety
    /// See `copy`; there are `K` planes of elements of `N` bytes.
    #[cfg(target_arch = "x86_64")]
    unsafe fn rows<const N: usize, const K: usize>(&self, outer: &[Loop], count: usize, pointers: Pointers) {
        let table = shuffles::Table::<N, K>::new(self.direction);
        let offsets: [isize; K] = std::array::from_fn(|plane| self.offsets[plane]);
        // SAFETY: the caller's promise.
        unsafe {
            nest(outer, pointers, &mut |Pointers { from, to }| match self.direction {
                Direction::ToHost => {
                    let planes = offsets.map(|offset| from.wrapping_offset(offset));
                    table.to_host(planes, to, count);
                }
                Direction::ToDevice => {
                    let planes = offsets.map(|offset| to.wrapping_offset(offset));
                    table.to_planes(from, planes, count);
                }
            });
        }
    }
}

/// A transpose with few lines on one side: planes that come together, or that are taken apart.
pub(super) struct FewPlanes {
    offsets: Vec<isize>,
    /// The loop over the elements of a plane.
    pub row: Loop,
    direction: Direction,
}

impl FewPlanes {
    /// The loops are those that move least where it is read, and where it is written.
    pub fn of(width: usize, reading: Loop, writing: Loop) -> Option<Self> {
        let come_together = reading.to == writing.count * width;
        let are_taken_apart = writing.from == reading.count * width;
        let (planes, apart, row, direction) = if come_together && Planes::fits(writing.count, width) {
            (writing.count, writing.from, reading, Direction::ToHost)
        } else if are_taken_apart && Planes::fits(reading.count, width) {
            (reading.count, reading.to, writing, Direction::ToDevice)
        } else {
            return None;
        };
        if reading.from != width || writing.to != width {
            return None;
        }
        let offsets = (0..planes).map(|n| (n * apart) as isize).collect();
        Some(Self { offsets, row, direction })
    }

    pub fn planes(&self, width: usize) -> Planes<'_> {
        Planes { offsets: &self.offsets, width, direction: self.direction }
    }
}

#[cfg(target_arch = "x86_64")]
mod shuffles {
    use std::arch::x86_64::{
        __m128i, _mm_loadu_si128, _mm_or_si128, _mm_setzero_si128, _mm_shuffle_epi8, _mm_storeu_si128,
    };

    use super::super::transpose::block;
    use super::Direction;

    /// The bytes of 16 that come from one of the sources: their positions there, or `ELSEWHERE`.
    #[derive(Clone, Copy)]
    struct Step {
        source: usize,
        bytes: [u8; 16],
    }

    const ELSEWHERE: u8 = 0x80;

    /// Of which bytes of `K` registers the same number of registers are made, for `K` planes of elements of `N` bytes.
    pub struct Table<const N: usize, const K: usize> {
        /// For each register that is made; only the first `STEPS` count.
        steps: [[Step; 16]; K],
    }

    impl<const N: usize, const K: usize> Table<N, K> {
        /// Registers that one is made of, at most.
        const STEPS: usize = if K < 16 / N { K } else { 16 / N };

        /// Whether whole registers are transposed, which needs no table: more than a few planes then take fewer steps.
        const WHOLE: bool = K.is_multiple_of(16 / N) && K > 4;

        pub fn new(direction: Direction) -> Self {
            let mut steps = [[Step { source: 0, bytes: [ELSEWHERE; 16] }; 16]; K];
            for (made, steps) in steps.iter_mut().enumerate() {
                let mut used = 0;
                for byte in 0..16 {
                    let (source, position) = Self::origin(direction, made, byte);
                    let known = steps[..used].iter().position(|step| step.source == source);
                    let step = known.unwrap_or_else(|| {
                        steps[used].source = source;
                        used += 1;
                        used - 1
                    });
                    steps[step].bytes[byte] = position as u8;
                }
            }
            Self { steps }
        }

        /// The register that a byte comes from, and its position there.
        fn origin(direction: Direction, made: usize, byte: usize) -> (usize, usize) {
            match direction {
                Direction::ToHost => {
                    let (element, within) = ((16 * made + byte) / (N * K), (16 * made + byte) % (N * K));
                    (within / N, element * N + within % N)
                }
                Direction::ToDevice => {
                    let at = byte / N * N * K + made * N + byte % N;
                    (at / 16, at % 16)
                }
            }
        }

        /// # Safety
        /// The processor has SSSE3. There are so many elements on both sides.
        #[target_feature(enable = "ssse3")]
        pub unsafe fn to_host(&self, planes: [*const u8; K], to: *mut u8, count: usize) {
            let whole = count / (16 / N);
            // SAFETY: the caller's promise.
            unsafe {
                for index in (0..if Self::WHOLE { whole } else { 0 }).map(|block| block * (16 / N)) {
                    for plane in (0..K).step_by(16 / N) {
                        let to = to.add((index * K + plane) * N);
                        block::<N>(|n| planes[plane + n].add(index * N), |n| to.add(n * K * N));
                    }
                }
                for block in if Self::WHOLE { whole } else { 0 }..whole {
                    let sources = planes.map(|plane| _mm_loadu_si128(plane.add(16 * block).cast()));
                    for (made, steps) in self.steps.iter().enumerate() {
                        let to = to.add(16 * (block * K + made));
                        _mm_storeu_si128(to.cast(), Self::made(&sources, steps));
                    }
                }
                for element in whole * (16 / N)..count {
                    for (plane, from) in planes.iter().enumerate() {
                        let to = to.add((element * K + plane) * N);
                        *to.cast::<[u8; N]>() = *from.add(element * N).cast::<[u8; N]>();
                    }
                }
            }
        }

        /// # Safety
        /// See `to_host`.
        #[target_feature(enable = "ssse3")]
        pub unsafe fn to_planes(&self, from: *const u8, planes: [*mut u8; K], count: usize) {
            let whole = count / (16 / N);
            // SAFETY: the caller's promise.
            unsafe {
                for index in (0..if Self::WHOLE { whole } else { 0 }).map(|block| block * (16 / N)) {
                    for plane in (0..K).step_by(16 / N) {
                        let from = from.add((index * K + plane) * N);
                        block::<N>(|n| from.add(n * K * N), |n| planes[plane + n].add(index * N));
                    }
                }
                for block in if Self::WHOLE { whole } else { 0 }..whole {
                    let sources: [__m128i; K] =
                        std::array::from_fn(|n| _mm_loadu_si128(from.add(16 * (block * K + n)).cast()));
                    for (plane, steps) in planes.iter().zip(&self.steps) {
                        _mm_storeu_si128(plane.add(16 * block).cast(), Self::made(&sources, steps));
                    }
                }
                for element in whole * (16 / N)..count {
                    for (plane, to) in planes.iter().enumerate() {
                        let from = from.add((element * K + plane) * N);
                        *to.add(element * N).cast::<[u8; N]>() = *from.cast::<[u8; N]>();
                    }
                }
            }
        }

        #[inline]
        #[target_feature(enable = "ssse3")]
        fn made(sources: &[__m128i; K], steps: &[Step; 16]) -> __m128i {
            let mut made = _mm_setzero_si128();
            for step in steps.iter().take(Self::STEPS) {
                // SAFETY: 16 bytes.
                let bytes = unsafe { _mm_loadu_si128(step.bytes.as_ptr().cast()) };
                made = _mm_or_si128(made, _mm_shuffle_epi8(sources[step.source], bytes));
            }
            made
        }
    }
}
