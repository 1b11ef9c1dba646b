//! How long the iterations of a task take, as measured, and how many threads that is worth.
//!
//! What the compiler knows of a body is how many instructions it has, which is off by a factor of ten where it is vectorised or waits for
//! memory. So a few launches of each task are timed: the first ones, then one in [`TIMING_INTERVAL`].

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Nanoseconds of work that one more thread must save to be worth calling when it is awake: entering the loop, taking chunks and
/// leaving, where all threads do so at once. With `n` threads a loop takes `work / n + n * JOIN_NANOSECONDS`, which is least at the root of
/// `work / JOIN_NANOSECONDS`. From `benches/threads.py` on 16 cores: a 512² stencil (60 µs on one thread) takes 18 µs with 8 threads
/// and 19 with 16, where all 16 took 39.
const JOIN_NANOSECONDS: u64 = 400;

/// The same where workers sleep: the caller wakes two, which wake others, each in one or two microseconds. With it `saxpy` of 30,000 elements stays on its
/// thread (4.0 µs; 17 where 16 threads were woken).
const WAKE_NANOSECONDS: u64 = 1500;

/// Of bodies so short that they are vectorised, and of others: what is assumed before anything was measured. From `y[i] += a * x[i]`, where two threads begin to pay at thirty thousand iterations.
const VECTORISED_INSTRUCTIONS_PER_NANOSECOND: u64 = 32;
const INSTRUCTIONS_PER_NANOSECOND: u64 = 3;

/// A body of fewer instructions than this is taken for one that is vectorised. Chosen, not measured: only the first launch depends on it.
const MAX_VECTORISED_INSTRUCTIONS: u64 = 32;

/// A loop of fewer instructions than this, in all, runs at once: estimating its work takes some 40 ns, as long as such a loop.
const MAX_SHORT_LOOP_INSTRUCTIONS: u64 = 4000;

/// The first launches are all timed, then one in [`TIMING_INTERVAL`]: reading the clock twice takes some 50 ns. Chosen, not measured.
const FIRST_TIMED_LAUNCHES: u32 = 4;
const TIMING_INTERVAL: u32 = 16;

/// What is known of one task's iterations.
#[derive(Default)]
pub(crate) struct MeasuredWork {
    /// Picoseconds for 1024 iterations; 0 before any was measured.
    time: AtomicU64,
    launches: AtomicU32,
}

impl MeasuredWork {
    /// Whether this launch is to be timed.
    pub fn is_sampled(&self) -> bool {
        // Lost counts of launches at the same time do no harm.
        let launches = self.launches.load(Ordering::Relaxed);
        self.launches.store(launches.wrapping_add(1), Ordering::Relaxed);
        launches < FIRST_TIMED_LAUNCHES || launches.is_multiple_of(TIMING_INTERVAL)
    }

    /// Iterations took this time, that of all threads together. Soon believes that it is fast, and slowly that it is slow: other
    /// programs, cold caches and first touches of memory only ever make it slower.
    pub fn learn(&self, points: u64, time: Duration) {
        let picoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000);
        let found = (u128::from(picoseconds) * 1024 / u128::from(points.max(1))).max(1);
        let found = u64::try_from(found).unwrap_or(u64::MAX);
        let known = self.time.load(Ordering::Relaxed);
        let next = match known {
            0 => found,
            _ if found < known => known.midpoint(found),
            _ => known + (found - known) / 8,
        };
        self.time.store(next, Ordering::Relaxed);
    }

    /// Nanoseconds that so many iterations would take one thread; `cost` is the compiler's count of instructions.
    pub fn nanoseconds(&self, points: u64, cost: u64) -> u64 {
        match self.time.load(Ordering::Relaxed) {
            0 if cost < MAX_VECTORISED_INSTRUCTIONS => {
                points.saturating_mul(cost) / VECTORISED_INSTRUCTIONS_PER_NANOSECOND
            }
            0 => points.saturating_mul(cost) / INSTRUCTIONS_PER_NANOSECOND,
            time => points.saturating_mul(time) / 1_024_000,
        }
    }
}

/// Whether a loop is so short that it is not worth asking.
#[inline]
pub(crate) fn is_short(points: u64, cost: u64) -> bool {
    cost < MAX_VECTORISED_INSTRUCTIONS && points < MAX_SHORT_LOOP_INSTRUCTIONS / MAX_VECTORISED_INSTRUCTIONS
}

/// How many threads a loop of so many nanoseconds is worth.
pub(crate) fn threads_worth(nanoseconds: u64, asleep: bool) -> usize {
    let each = if asleep { WAKE_NANOSECONDS } else { JOIN_NANOSECONDS };
    usize::try_from((nanoseconds / each).isqrt()).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_loops_get_few_threads_and_sleepers_are_woken_for_longer_ones() {
        let threads = |microseconds: u64| threads_worth(1000 * microseconds, false);
        assert_eq!([0, 1, 2, 7, 26, 81, 1000].map(threads), [1, 1, 2, 4, 8, 14, 50]);
        assert_eq!([1, 6, 100].map(|work: u64| threads_worth(1000 * work, true)), [1, 2, 8]);
    }

    #[test]
    fn measured_times_replace_the_estimate_and_outliers_fade() {
        let work = MeasuredWork::default();
        assert_eq!(work.nanoseconds(32_000, 4), 4000);
        assert_eq!(work.nanoseconds(3000, 100), 100_000);
        work.learn(1000, Duration::from_micros(100));
        assert_eq!(work.nanoseconds(1000, 4), 100_000);
        (0..20).for_each(|_| work.learn(1000, Duration::from_micros(1)));
        assert!((900..1100).contains(&work.nanoseconds(1000, 4)));
        work.learn(1000, Duration::from_micros(9));
        assert!(work.nanoseconds(1000, 4) < 2100);
        work.learn(0, Duration::MAX);
        work.learn(u64::MAX, Duration::ZERO);
        assert!(work.nanoseconds(u64::MAX, u64::MAX) > 0);
    }

    #[test]
    fn the_first_launches_are_timed_then_few() {
        let work = MeasuredWork::default();
        assert_eq!((0..64).filter(|_| work.is_sampled()).count(), 4 + 3);
    }
}
