//! Which pages of a range of addresses have memory.

use std::ops::Range;

/// The pages of one range, each of which has memory or none.
#[derive(Debug)]
pub struct BackedPages {
    page_bytes: usize,
    backed: Vec<bool>,
}

impl BackedPages {
    /// None of the pages of a range of so many bytes has memory.
    pub fn none(bytes: usize, page_bytes: usize) -> Self {
        Self { page_bytes, backed: vec![false; bytes.div_ceil(page_bytes)] }
    }

    /// Bytes of whole pages that a part touches and that have no memory, as few pieces as possible.
    pub fn missing(&self, offset: usize, bytes: usize) -> Vec<Range<usize>> {
        let page = self.page_bytes;
        let mut pieces: Vec<Range<usize>> = Vec::new();
        for number in offset / page..(offset + bytes).div_ceil(page) {
            if self.backed[number] {
                continue;
            }
            let (start, end) = (number * page, (number + 1) * page);
            match pieces.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => pieces.push(start..end),
            }
        }
        pieces
    }

    /// A piece of [`Self::missing`] has memory now.
    pub fn add(&mut self, piece: &Range<usize>) {
        let page = self.page_bytes;
        self.backed[piece.start / page..piece.end / page].fill(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_backed_once() {
        let mut pages = BackedPages::none(1000, 100);
        assert_eq!(pages.missing(150, 100), vec![100..300; 1]);
        pages.add(&(100..300));
        assert_eq!(pages.missing(0, 1000), [0..100, 300..1000]);
        assert!(pages.missing(120, 180).is_empty());
        assert_eq!(pages.missing(299, 2), vec![300..400; 1]);
        assert!(pages.missing(500, 0).is_empty());
    }

    #[test]
    fn the_last_page_is_whole() {
        assert_eq!(BackedPages::none(1001, 100).missing(1000, 1), vec![1000..1100; 1]);
    }
}
