//! Small blocks of bytes on the stack, aligned to eight.

/// Zeroed bytes: in place up to `8 * N`, else on the heap.
pub struct Words<const N: usize> {
    few: [u64; N],
    many: Vec<u64>,
    bytes: usize,
}

impl<const N: usize> Words<N> {
    #[inline]
    pub fn new() -> Self {
        Self { few: [0; N], many: Vec::new(), bytes: 0 }
    }

    #[inline]
    pub fn resize(&mut self, bytes: usize) {
        self.bytes = bytes;
        if bytes > 8 * N {
            self.many.resize(bytes.div_ceil(8), 0);
        }
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let words = if self.bytes > 8 * N { &self.many[..] } else { &self.few[..] };
        // SAFETY: initialised memory, and any bytes are bytes.
        let all = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), 8 * words.len()) };
        &all[..self.bytes]
    }

    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let words = if self.bytes > 8 * N { &mut self.many[..] } else { &mut self.few[..] };
        // SAFETY: as above, and any bytes make words.
        let all = unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), 8 * words.len()) };
        &mut all[..self.bytes]
    }
}
