//! How often something ran, and for how long.

use std::fmt;

/// Times in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    pub count: u64,
    pub total: u64,
    /// 0 if there is none.
    pub min: u64,
    pub max: u64,
}

impl Statistics {
    pub(super) fn add(&mut self, time: u64) {
        self.min = if self.count == 0 { time } else { self.min.min(time) };
        self.max = self.max.max(time);
        self.count += 1;
        self.total += time;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.min = match (self.count, other.count) {
            (_, 0) => self.min,
            (0, _) => other.min,
            _ => self.min.min(other.min),
        };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.total += other.total;
    }

    /// 0 if there is none.
    pub fn average(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total as f64 / self.count as f64 }
    }
}

/// Nanoseconds in a unit that suits them.
pub(super) struct Readable(pub f64);

impl fmt::Display for Readable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(time) = *self;
        let (value, unit) = if time >= 1e9 {
            (time / 1e9, "s")
        } else if time >= 1e6 {
            (time / 1e6, "ms")
        } else {
            (time / 1e3, "µs")
        };
        f.pad(&format!("{value:.3} {unit}"))
    }
}
