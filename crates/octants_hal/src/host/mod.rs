//! What devices have in common whose memory is the host's: how much there is, its allocation, copies and fills.

mod available;
mod budget;
mod memory;

pub use budget::Budget;
pub use memory::HostMemory;

/// How many bytes there may ever be, swap included, for this process and those that it shares a limit with.
pub fn total_memory() -> u64 {
    available::machine()
}

/// How many of them nobody uses now.
pub fn free_memory() -> u64 {
    available::left()
}

/// What the processor calls itself.
pub fn processor_name() -> String {
    available::processor_name().unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Bytes of a core's second-level cache; 0 if the system does not say.
pub fn second_level_cache() -> u64 {
    available::second_level_cache()
}

/// Bytes of a cache line. Fills and copies are cut into pieces that begin at multiples of this, which keeps every piece aligned.
pub const LINE: usize = 64;

/// # Safety
/// Both ranges are valid and do not overlap.
pub unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller says so.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
}

/// Repeats `pattern` over `bytes`.
///
/// # Safety
/// The range is valid for writing, and `pattern` is not empty.
pub unsafe fn fill(to: *mut u8, pattern: &[u8], bytes: usize) {
    // SAFETY: the caller says so, and the filler is asked for a range that begins with the pattern.
    unsafe { Filler::new(pattern, bytes).fill(to, bytes) };
}

/// From this many bytes on a fill bypasses the caches: lines that are overwritten whole need not be read first. Chosen, not measured: more than
/// the share of the last-level cache that one program has; `fill` of `benches/run.py` (256 MiB) runs at C's speed with it.
const MIN_STREAMING_BYTES: usize = 32 << 20;

/// A pattern made ready to be repeated fast.
pub enum Filler {
    /// All bytes are equal.
    Byte(u8),
    /// The pattern's length divides a word.
    Word { word: u64, streaming: bool },
    /// The pattern, repeated to a multiple of a line.
    Block(Vec<u8>),
}

impl Filler {
    /// For `bytes` in all.
    pub fn new(pattern: &[u8], bytes: usize) -> Self {
        if pattern.iter().all(|&byte| byte == pattern[0]) {
            return Self::Byte(pattern[0]);
        }
        if matches!(pattern.len(), 2 | 4 | 8) {
            let mut word = [0; 8];
            for piece in word.chunks_exact_mut(pattern.len()) {
                piece.copy_from_slice(pattern);
            }
            return Self::Word { word: u64::from_ne_bytes(word), streaming: bytes >= MIN_STREAMING_BYTES };
        }
        let mut block = pattern.to_vec();
        while !block.len().is_multiple_of(LINE) {
            block.extend_from_slice(pattern);
        }
        Self::Block(block)
    }

    /// Pieces that begin at a multiple of this begin with the pattern, and on a line if the whole does.
    pub fn period(&self) -> usize {
        match self {
            Self::Byte(_) | Self::Word { .. } => LINE,
            Self::Block(block) => block.len(),
        }
    }

    /// # Safety
    /// The range is valid for writing, and begins where the pattern does.
    pub unsafe fn fill(&self, to: *mut u8, bytes: usize) {
        // SAFETY: every write lies inside the range.
        unsafe {
            match self {
                Self::Byte(byte) => to.write_bytes(*byte, bytes),
                Self::Word { word, streaming } => {
                    let streamed = if *streaming { stream(to, *word, bytes) } else { 0 };
                    let (to, bytes) = (to.add(streamed), bytes - streamed);
                    let words = std::slice::from_raw_parts_mut(to.cast::<[u8; 8]>(), bytes / 8);
                    words.fill(word.to_ne_bytes());
                    let rest = bytes % 8;
                    copy(to.add(bytes - rest), word.to_ne_bytes().as_ptr(), rest);
                }
                Self::Block(block) => repeat(to, block, bytes),
            }
        }
    }
}

/// Writes words past the caches, as many as it can; how many bytes that were.
///
/// # Safety
/// The range is valid for writing.
#[cfg(target_arch = "x86_64")]
#[allow(clippy::cast_ptr_alignment, reason = "the alignment is looked at first")]
unsafe fn stream(to: *mut u8, word: u64, bytes: usize) -> usize {
    use std::arch::x86_64::{__m128i, _mm_set1_epi64x, _mm_sfence, _mm_stream_si128};
    if to.align_offset(size_of::<__m128i>()) != 0 {
        return 0;
    }
    let count = bytes / size_of::<__m128i>();
    let vectors = to.cast::<__m128i>();
    // SAFETY: aligned as just checked, and inside the range; the fence makes the stores visible like others.
    unsafe {
        let value = _mm_set1_epi64x(word as i64);
        for n in 0..count {
            _mm_stream_si128(vectors.add(n), value);
        }
        _mm_sfence();
    }
    count * size_of::<__m128i>()
}

/// Other processors need no such help.
///
/// # Safety
/// Touches nothing.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn stream(_to: *mut u8, _word: u64, _bytes: usize) -> usize {
    0
}

/// # Safety
/// The range is valid for writing.
unsafe fn repeat(to: *mut u8, block: &[u8], bytes: usize) {
    let mut at = 0;
    while at < bytes {
        let piece = block.len().min(bytes - at);
        // SAFETY: inside the range.
        unsafe { copy(to.add(at), block.as_ptr(), piece) };
        at += piece;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_any_length_repeat_from_any_address() {
        for (pattern, bytes) in [
            (&[7_u8][..], 100),
            (&[1, 2], 34),
            (&[1, 2, 3, 4], 1004),
            (&[1, 2, 3, 4, 5, 6, 7, 8], 8 * 9),
            (&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], 12 * 41),
            (&[5, 5, 5, 5], 64),
        ] {
            for shift in [0, 2, 8] {
                let mut memory = vec![0_u8; bytes + 16];
                // SAFETY: the range lies inside the buffer.
                unsafe { fill(memory.as_mut_ptr().add(shift), pattern, bytes) };
                let expected: Vec<_> = pattern.iter().copied().cycle().take(bytes).collect();
                assert_eq!(memory[shift..shift + bytes], expected);
                if let Filler::Word { word, .. } = Filler::new(pattern, bytes) {
                    let streaming = Filler::Word { word, streaming: true };
                    memory.fill(0);
                    // SAFETY: as above.
                    unsafe { streaming.fill(memory.as_mut_ptr().add(shift), bytes) };
                    assert_eq!(memory[shift..shift + bytes], expected);
                }
                assert!(memory[..shift].iter().chain(&memory[shift + bytes..]).all(|&byte| byte == 0));
            }
        }
    }
}
