//! Keys of launches: what random numbers follow from, and by which a launch knows what it has marked in memory that others share.

use std::sync::atomic::{AtomicU64, Ordering};

/// Gives each launch that asks for one a key, by the session's seed and how many came before.
///
/// Law: **keys of one session are distinct, and those of launches in succession differ in their lowest bits**: a key is one more than that before it.
pub(crate) struct LaunchKeys {
    seed: u64,
    launches: AtomicU64,
}

impl LaunchKeys {
    pub fn new(seed: u64) -> Self {
        Self { seed, launches: AtomicU64::new(0) }
    }

    pub fn next(&self) -> u64 {
        let launch = self.launches.fetch_add(1, Ordering::Relaxed);
        mixed(self.seed).wrapping_add(launch)
    }
}

/// A permutation of 64 bits in which each bit of the input matters to each of the output (the finaliser of `SplitMix64`).
fn mixed(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
