//! Work beside loops: sources that workers serve when there is something to do, each by one worker at a time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Something that has work now and then.
pub trait Source: Send + Sync {
    /// Runs some of the work, or none if another thread does already. Where it goes on for a while it asks whether others wait, and
    /// comes to an end soon if so.
    fn run_some(self: Arc<Self>, others_wait: &dyn Fn() -> bool);
}

/// How many there are; 0 is served first.
const PRIORITIES: usize = 3;

/// Of so many sources that are taken, one has the lowest priority that there is, so that none waits for ever. Chosen, not measured.
const FAIR_INTERVAL: usize = 8;

/// Sources that wait for a worker.
#[derive(Default)]
pub(super) struct WaitingSources {
    count: AtomicUsize,
    lists: Mutex<Lists>,
}

#[derive(Default)]
struct Lists {
    /// The most urgent first; each in the order in which they came.
    by_priority: [VecDeque<Arc<dyn Source>>; PRIORITIES],
    taken: usize,
}

impl WaitingSources {
    /// Whether there are any. May be asked without a lock, and may be wrong by one that comes or goes at the same time.
    pub(super) fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    pub(super) fn add(&self, source: Arc<dyn Source>, priority: usize) {
        self.with(|lists| {
            lists.by_priority[priority.min(PRIORITIES - 1)].push_back(source);
            self.count.fetch_add(1, Ordering::Relaxed);
        });
    }

    pub(super) fn take(&self) -> Option<Arc<dyn Source>> {
        if !self.any() {
            return None;
        }
        self.with(|lists| {
            lists.taken = lists.taken.wrapping_add(1);
            let least_first = lists.taken.is_multiple_of(FAIR_INTERVAL);
            let mut order: [usize; PRIORITIES] = std::array::from_fn(|n| n);
            if least_first {
                order.reverse();
            }
            let source = order.into_iter().find_map(|n| lists.by_priority[n].pop_front())?;
            self.count.fetch_sub(1, Ordering::Relaxed);
            Some(source)
        })
    }

    /// Forgets them.
    pub(super) fn clear(&self) {
        while let Some(source) = self.take() {
            drop(source);
        }
    }

    fn with<R>(&self, work: impl FnOnce(&mut Lists) -> R) -> R {
        work(&mut self.lists.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
