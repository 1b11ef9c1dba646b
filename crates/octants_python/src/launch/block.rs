//! Small blocks of bytes on the stack, aligned to eight.

use std::mem::MaybeUninit;

/// Zeroed bytes: in place up to `8 * N`, else on the heap. What is not asked for is not zeroed either.
pub struct Words<const N: usize> {
    few: [MaybeUninit<u64>; N],
    many: Vec<u64>,
    bytes: usize,
}

impl<const N: usize> Words<N> {
    #[inline]
    pub fn new() -> Self {
        Self { few: [MaybeUninit::uninit(); N], many: Vec::new(), bytes: 0 }
    }

    /// As many zeroed bytes; those before are gone.
    #[inline]
    pub fn resize(&mut self, bytes: usize) {
        self.bytes = bytes;
        if bytes > 8 * N {
            self.many.clear();
            self.many.resize(bytes.div_ceil(8), 0);
        } else {
            self.few[..bytes.div_ceil(8)].fill(MaybeUninit::new(0));
        }
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let words = if self.bytes > 8 * N { self.many.as_ptr() } else { self.few.as_ptr().cast() };
        // SAFETY: so many bytes were initialised when the size was set, and any bytes are bytes.
        unsafe { std::slice::from_raw_parts(words.cast::<u8>(), self.bytes) }
    }

    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let words = if self.bytes > 8 * N { self.many.as_mut_ptr() } else { self.few.as_mut_ptr().cast() };
        // SAFETY: as above, and any bytes make words.
        unsafe { std::slice::from_raw_parts_mut(words.cast::<u8>(), self.bytes) }
    }
}
