//! How long the iterations of a task take, as measured, and how many threads that is worth.
//!
//! What the compiler knows of a body is how many instructions it has, which is off by a factor of ten where it is vectorised or waits for
//! memory. So a few launches of each task are timed: the first ones, then one in [`SAMPLED`].

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Nanoseconds of work that one more thread must save to be worth calling when it is awake: entering the loop, taking chunks and
/// leaving, where all threads do so at once. With `n` threads a loop takes `work / n + n * CALL`, which is least at the root of
/// `work / CALL`. `benches/threads.py` shows times over numbers of threads.
const CALL: u64 = 400;

/// The same where workers sleep: the caller wakes two, which wake others, each in one or two microseconds.
const WAKE: u64 = 1500;

/// Instructions per nanosecond of bodies so plain that they are vectorised, and of others: what is assumed before anything was
/// measured. From `y[i] += a * x[i]`, where two threads begin to pay at thirty thousand iterations.
const PLAIN_RATE: u64 = 32;
const RATE: u64 = 3;

/// A body of fewer instructions than this is plain.
const PLAIN: u64 = 32;

/// A loop over a plain body of fewer instructions than this, in all, is over before anything could be decided about it.
const BRIEF: u64 = 4000;

/// The first launches are all timed; then one in this many.
const FIRST: u32 = 4;
const SAMPLED: u32 = 16;

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
        launches < FIRST || launches.is_multiple_of(SAMPLED)
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
            0 => points.saturating_mul(cost) / if cost < PLAIN { PLAIN_RATE } else { RATE },
            time => points.saturating_mul(time) / 1_024_000,
        }
    }
}

/// Whether a loop is so short that it is not worth asking.
#[inline]
pub(crate) fn is_brief(points: u64, cost: u64) -> bool {
    cost < PLAIN && points < BRIEF / PLAIN
}

/// How many threads a loop of so many nanoseconds is worth.
pub(crate) fn threads_worth(nanoseconds: u64, asleep: bool) -> usize {
    let each = if asleep { WAKE } else { CALL };
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
