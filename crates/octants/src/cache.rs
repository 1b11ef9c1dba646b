//! Kernels of a session by their IR: equal IR is compiled once, whoever asks.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::Error;

/// How often a thread that waits for another's compilation looks at its caller's flag.
const PATIENCE: Duration = Duration::from_millis(10);

pub(crate) struct Cache<T> {
    entries: Mutex<HashMap<String, Entry<T>>>,
    /// Something that was being made is there, or will not be.
    settled: Condvar,
}

enum Entry<T> {
    BeingMade,
    Ready(Arc<T>),
}

impl<T> Cache<T> {
    pub fn new() -> Self {
        Self { entries: Mutex::new(HashMap::new()), settled: Condvar::new() }
    }

    /// What is kept under the key, made by this call if nobody else does or did. A failure is not kept.
    pub fn get_or_make(
        &self,
        key: &str,
        cancel: &AtomicBool,
        make: impl FnOnce() -> Result<T, Error>,
    ) -> Result<Arc<T>, Error> {
        let mut entries = self.lock();
        loop {
            match entries.get(key) {
                Some(Entry::Ready(found)) => return Ok(Arc::clone(found)),
                Some(Entry::BeingMade) if cancel.load(Ordering::Relaxed) => return Err(Error::Cancelled),
                Some(Entry::BeingMade) => {
                    let waited = self.settled.wait_timeout(entries, PATIENCE);
                    entries = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                None => break,
            }
        }
        entries.insert(key.to_owned(), Entry::BeingMade);
        drop(entries);
        let mut making = Making { cache: self, key, made: None };
        let made = Arc::new(make()?);
        making.made = Some(Arc::clone(&made));
        Ok(made)
    }

    pub fn clear(&self) {
        // What is being made settles by itself.
        let mut gone = std::mem::take(&mut *self.lock());
        gone.retain(|_, entry| matches!(entry, Entry::Ready(_)));
        self.settled.notify_all();
        // Dropped without the lock: dropping code may wait for the device.
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry<T>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Settles an entry however its making ends, a panic included.
struct Making<'a, T> {
    cache: &'a Cache<T>,
    key: &'a str,
    made: Option<Arc<T>>,
}

impl<T> Drop for Making<'_, T> {
    fn drop(&mut self) {
        let mut entries = self.cache.lock();
        match self.made.take() {
            Some(made) => entries.insert(self.key.to_owned(), Entry::Ready(made)),
            None => entries.remove(self.key),
        };
        drop(entries);
        self.cache.settled.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn many_threads_make_one_and_a_failure_is_tried_again() {
        let cache = Cache::new();
        let (made, never) = (AtomicUsize::new(0), AtomicBool::new(false));
        let get = || {
            cache.get_or_make("k", &never, || {
                std::thread::sleep(Duration::from_millis(20));
                match made.fetch_add(1, Ordering::SeqCst) {
                    0 => Err(Error::invalid("the first try fails")),
                    n => Ok(n),
                }
            })
        };
        let got: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(get)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(got.iter().filter(|result| result.is_err()).count(), 1);
        assert!(got.iter().flatten().all(|one| **one == 1));
        assert_eq!(made.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_waiting_thread_can_be_interrupted_and_a_panic_wakes_it() {
        let cache = Cache::new();
        let (never, raised) = (AtomicBool::new(false), AtomicBool::new(true));
        std::thread::scope(|scope| {
            let panics = scope.spawn(|| {
                cache.get_or_make("k", &never, || {
                    std::thread::sleep(Duration::from_millis(100));
                    panic!("a defect")
                })
            });
            std::thread::sleep(Duration::from_millis(30));
            let interrupted = cache.get_or_make("k", &raised, || Ok(1));
            assert!(matches!(interrupted, Err(Error::Cancelled)));
            assert_eq!(*cache.get_or_make("k", &never, || Ok(2)).unwrap(), 2);
            assert!(panics.join().is_err());
        });
    }
}
