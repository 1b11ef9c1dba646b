//! A number for the values that memory holds, by which a change of them is found out.

/// Of bytes that come one piece after the other. A change of one word of eight bytes always changes it; others do but for one in 2^64.
#[derive(Debug)]
pub struct Checksum {
    lanes: [u64; 4],
    bytes: u64,
}

impl Default for Checksum {
    fn default() -> Self {
        Self { lanes: [1, 2, 3, 4], bytes: 0 }
    }
}

/// Odd, with as many ones as zeros: the golden ratio of 2^64.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// One to one for each word.
#[inline]
fn mixed(lane: u64, word: u64) -> u64 {
    let product = (lane ^ word).wrapping_mul(FACTOR);
    product ^ product >> 32
}

impl Checksum {
    /// The next piece. Where one ends is part of the sum.
    pub fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        let (blocks, rest) = piece.as_chunks::<32>();
        for block in blocks {
            for (lane, word) in self.lanes.iter_mut().zip(block.as_chunks::<8>().0) {
                *lane = mixed(*lane, u64::from_le_bytes(*word));
            }
        }
        for (lane, word) in self.lanes.iter_mut().zip(rest.chunks(8)) {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            *lane = mixed(*lane, u64::from_le_bytes(padded) ^ (word.len() as u64) << 56);
        }
    }

    pub fn finish(&self) -> u64 {
        self.lanes.iter().fold(mixed(FACTOR, self.bytes), |sum, &lane| mixed(sum, lane))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(pieces: &[&[u8]]) -> u64 {
        let mut sum = Checksum::default();
        for piece in pieces {
            sum.add(piece);
        }
        sum.finish()
    }

    #[test]
    fn every_bit_counts() {
        let bytes: Vec<u8> = (0..77).collect();
        let first = sum(&[&bytes]);
        assert_eq!(first, sum(&[&bytes]));
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(first, sum(&[&changed]), "bit {bit}");
        }
        assert_ne!(sum(&[&[0; 8]]), sum(&[&[0; 9]]));
        assert_ne!(sum(&[&[1, 2], &[3, 4]]), sum(&[&[3, 4], &[1, 2]]));
    }
}
