//! One loop while it is running: who has taken which part of it.

use std::any::Any;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use smallvec::SmallVec;

use octants_hal::Cancel;

use super::Body;
use super::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, Thread};

/// A chunk is what is left of a span divided by this: big enough to stream, small enough to leave something to steal. Chosen, not measured:
/// 8 leaves the last thread at most an eighth of a span behind the others.
const CHUNK_DIVISOR: u64 = 8;
/// Iterations; chunks begin at multiples of this, so that vectorised loops have no odd iterations but at the very end: four vectors of
/// sixteen lanes.
const CHUNK_ALIGNMENT: u64 = 64;

/// A contiguous part of the loop, on a cache line of its own. Its owner takes from it first, then anyone.
#[repr(align(128))]
struct Span {
    /// The next iteration that nobody has taken; `end` when there is none.
    next: AtomicU64,
    end: u64,
    /// Whether a thread owns it.
    owned: AtomicBool,
}

pub(super) struct Job<'a> {
    body: Body<'a>,
    grain: u64,
    max_chunk: u64,
    /// One for each thread. Those of the usual numbers of threads lie on the caller's stack.
    spans: SmallVec<[Span; 16]>,
    cancel: Option<&'a Cancel>,
    /// Set by the cancellation flag of the caller, or by a panic: begin no further chunk.
    stop: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// The next worker to wake.
    waking: AtomicUsize,
    /// The caller, once it sleeps until the last worker has left.
    caller: OnceLock<Thread>,
}

impl<'a> Job<'a> {
    /// A loop over `0..total` for at most `threads` threads, in chunks of such sizes. The caller owns the first span.
    pub(super) fn new(
        total: u64,
        chunk: RangeInclusive<u64>,
        threads: usize,
        cancel: Option<&'a Cancel>,
        body: Body<'a>,
    ) -> Job<'a> {
        let (grain, max_chunk) = chunk.into_inner();
        let count = threads as u64;
        // Without overflow for any total: the quotient for each, and one more for the first few.
        let (each, extra) = (total / count, total % count);
        let boundary = |index: u64| {
            let exact = each * index + index.min(extra);
            if index < count && each >= grain.max(CHUNK_ALIGNMENT) * 2 {
                exact - exact % CHUNK_ALIGNMENT
            } else {
                exact
            }
        };
        let spans = (0..count)
            .map(|index| Span {
                next: AtomicU64::new(boundary(index)),
                end: boundary(index + 1),
                owned: AtomicBool::new(index == 0),
            })
            .collect();
        Job {
            body,
            grain,
            max_chunk,
            spans,
            cancel,
            stop: AtomicBool::new(false),
            panic: Mutex::new(None),
            waking: AtomicUsize::new(1),
            caller: OnceLock::new(),
        }
    }

    /// How many threads can take part, the caller included.
    pub(super) fn threads(&self) -> usize {
        self.spans.len()
    }

    /// The number of a worker that nobody has tried to wake for this loop yet.
    pub(super) fn next_to_wake(&self) -> Option<usize> {
        let number = self.waking.fetch_add(1, Ordering::Relaxed);
        (number < self.spans.len()).then_some(number)
    }

    /// Gives a worker a span of its own, preferably the one that it had in the last loop of this shape. Returns its number within
    /// the loop; `None` if there is nothing left to do.
    pub(super) fn join(&self, preferred: usize) -> Option<usize> {
        if self.is_exhausted() {
            return None;
        }
        let take = |index: &usize| {
            let owned = &self.spans[*index].owned;
            !owned.load(Ordering::Relaxed) && !owned.swap(true, Ordering::Relaxed)
        };
        let first = Some(preferred).filter(|preferred| *preferred < self.spans.len());
        first.filter(take).or_else(|| (0..self.spans.len()).find(take))
    }

    /// Whether nothing is left to take.
    fn is_exhausted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || self.spans.iter().all(|span| span.next.load(Ordering::Relaxed) >= span.end)
    }

    /// Runs chunks until none is left or `until`, first those of the own span. Panics of the body end up in the job.
    pub(super) fn work(&self, number: usize, until: &dyn Fn() -> bool) {
        let result = catch_unwind(AssertUnwindSafe(|| {
            for step in 0..self.spans.len() {
                let span = &self.spans[(number + step) % self.spans.len()];
                while let Some((begin, end)) = self.take(span) {
                    (self.body)(number, begin, end);
                    if until() {
                        return;
                    }
                }
            }
        }));
        if let Err(panic) = result {
            self.stop.store(true, Ordering::Relaxed);
            self.panic.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(panic);
        }
    }

    fn take(&self, span: &Span) -> Option<(u64, u64)> {
        let mut begin = span.next.load(Ordering::Relaxed);
        loop {
            if begin >= span.end || self.should_stop() {
                return None;
            }
            let left = span.end - begin;
            let mut end = begin + (left / CHUNK_DIVISOR).min(self.max_chunk).max(self.grain).min(left);
            if end - begin >= CHUNK_ALIGNMENT {
                end = end.checked_next_multiple_of(CHUNK_ALIGNMENT).map_or(span.end, |end| end.min(span.end));
            }
            // A rest that is not worth a chunk goes with this one.
            if span.end - end < self.grain {
                end = span.end;
            }
            match span.next.compare_exchange_weak(begin, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some((begin, end)),
                Err(now) => begin = now,
            }
        }
    }

    /// Whether no further chunk is to be begun.
    pub(super) fn should_stop(&self) -> bool {
        if self.stop.load(Ordering::Relaxed) {
            return true;
        }
        let cancelled = self.cancel.is_some_and(Cancel::is_wanted);
        if cancelled {
            self.stop.store(true, Ordering::Relaxed);
        }
        cancelled
    }

    /// The caller sleeps from now on; the last worker wakes it.
    pub(super) fn set_caller(&self, caller: Thread) {
        // Called once: a job has one caller.
        drop(self.caller.set(caller));
    }

    pub(super) fn caller(&self) -> Option<Thread> {
        self.caller.get().cloned()
    }

    pub(super) fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        self.panic.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }

    /// Whether the loop was stopped before its end.
    pub(super) fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
