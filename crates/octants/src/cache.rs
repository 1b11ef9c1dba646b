//! Kernels of a session by their IR: equal IR is compiled once in a session.
//!
//! A kernel lives as long as somebody has a handle. The cache itself keeps the last few that were asked for: a function that defines
//! a kernel and calls it is often called again.
//!
//! `tests/cache_model.rs` runs this file under every interleaving of a few threads.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use octants_hal::Cancel;

use crate::error::Error;
use crate::sync::thread::{self, ThreadId};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// How often a thread that waits for another's compilation looks at its caller's flag. Chosen: Ctrl-C is to be heard within half a second.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Kernels that live without a handle, at most. Chosen, not measured: a kernel's code takes some ten kilobytes.
pub(crate) const MAX_RECENT_KERNELS: usize = 64;

pub(crate) struct Cache<T> {
    entries: Mutex<Entries<T>>,
    /// Something that was being made is there, or will not be.
    finished: Condvar,
}

struct Entries<T> {
    by_key: HashMap<String, Entry<T>>,
    /// What was asked for last, the newest at the back.
    recent: VecDeque<Arc<T>>,
    /// Entries that are looked through for dead ones when there are that many.
    sweep_at: usize,
}

enum Entry<T> {
    /// By this thread.
    BeingMade(ThreadId),
    Ready(Weak<T>),
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self { by_key: HashMap::new(), recent: VecDeque::new(), sweep_at: 2 * MAX_RECENT_KERNELS }
    }
}

impl<T> Entries<T> {
    /// Keeps what was asked for; gives what is no longer kept, to be dropped without the lock.
    #[must_use]
    fn keep(&mut self, found: &Arc<T>) -> Option<Arc<T>> {
        if let Some(place) = self.recent.iter().position(|one| Arc::ptr_eq(one, found)) {
            self.recent.remove(place);
        }
        self.recent.push_back(Arc::clone(found));
        if self.recent.len() > MAX_RECENT_KERNELS { self.recent.pop_front() } else { None }
    }

    /// Forgets the keys of what is gone.
    fn sweep(&mut self) {
        if self.by_key.len() >= self.sweep_at {
            self.by_key.retain(|_, entry| match entry {
                Entry::BeingMade(_) => true,
                Entry::Ready(found) => found.strong_count() > 0,
            });
            self.sweep_at = 2 * self.by_key.len().max(MAX_RECENT_KERNELS);
        }
    }
}

impl<T> Cache<T> {
    pub fn new() -> Self {
        Self { entries: Mutex::default(), finished: Condvar::new() }
    }

    /// What is kept under the key, made by this call if nobody else does or did. A failure is not kept.
    pub fn get_or_make(
        &self,
        key: &str,
        cancel: &Cancel,
        make: impl FnOnce() -> Result<T, Error>,
    ) -> Result<Arc<T>, Error> {
        let this_thread = thread::current().id();
        let mut entries = self.lock();
        loop {
            match entries.by_key.get(key) {
                Some(Entry::Ready(found)) => {
                    let Some(found) = found.upgrade() else { break };
                    let dropped = entries.keep(&found);
                    drop((entries, dropped));
                    return Ok(found);
                }
                // A signal's handler, which runs while this thread makes it, wants it too: waiting would be for ever.
                Some(Entry::BeingMade(maker)) if *maker == this_thread => {
                    drop(entries);
                    return Ok(Arc::new(make()?));
                }
                Some(Entry::BeingMade(_)) => {
                    let waited = self.finished.wait_timeout(entries, POLL_INTERVAL);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                    // Without the lock: the question may run a signal's handler.
                    if cancel.is_wanted() {
                        return Err(Error::Cancelled);
                    }
                    entries = self.lock();
                }
                None => break,
            }
        }
        entries.sweep();
        entries.by_key.insert(key.to_owned(), Entry::BeingMade(this_thread));
        drop(entries);
        let mut making = Making { cache: self, key, made: None };
        let made = Arc::new(make()?);
        making.made = Some(Arc::clone(&made));
        Ok(made)
    }

    /// How many keys it knows.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.lock().by_key.len()
    }

    pub fn clear(&self) {
        let gone = std::mem::take(&mut *self.lock());
        self.finished.notify_all();
        // Dropped without the lock: dropping code may wait for the device.
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, Entries<T>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends an entry's making, also after a panic.
struct Making<'a, T> {
    cache: &'a Cache<T>,
    key: &'a str,
    made: Option<Arc<T>>,
}

impl<T> Drop for Making<'_, T> {
    fn drop(&mut self) {
        let mut entries = self.cache.lock();
        let dropped = if let Some(made) = self.made.take() {
            entries.by_key.insert(self.key.to_owned(), Entry::Ready(Arc::downgrade(&made)));
            entries.keep(&made)
        } else {
            entries.by_key.remove(self.key);
            None
        };
        drop((entries, dropped));
        self.cache.finished.notify_all();
    }
}
