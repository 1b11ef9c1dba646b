//! Kernels of a session under every interleaving of a few threads, as `loom` runs them: what a launch does that finds no code. Equal code is made once,
//! a failure is tried again, and nobody who waits is forgotten: the model's waits never end by themselves.

mod sync {
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

    pub(crate) mod thread {
        pub(crate) use loom::thread::{ThreadId, current};
    }
}

mod error {
    #[derive(Debug)]
    pub(crate) enum Error {
        Cancelled,
        Failed,
    }
}

#[path = "../src/cache.rs"]
#[allow(dead_code, reason = "the facade uses more of it")]
mod cache;

use std::sync::Arc;

use cache::Cache;
use error::Error;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use octants_hal::Cancel;

type Shared = Arc<(Cache<usize>, AtomicUsize)>;

fn shared() -> Shared {
    Arc::new((Cache::new(), AtomicUsize::new(0)))
}

/// Asks for a key; what is made is the number of what was made before.
fn get(shared: &Shared, key: &str) -> Result<Arc<usize>, Error> {
    let (cache, made) = &**shared;
    cache.get_or_make(key, &Cancel::new(), || Ok(made.fetch_add(1, Ordering::SeqCst)))
}

#[test]
fn threads_that_want_the_same_kernel_get_one() {
    loom::model(|| {
        let shared = shared();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || get(&shared, "k").unwrap())
            })
            .collect();
        let mine = get(&shared, "k").unwrap();
        for other in others {
            assert!(Arc::ptr_eq(&mine, &other.join().unwrap()));
        }
        assert_eq!(shared.1.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_failure_is_one_threads_own_and_wakes_the_others() {
    loom::model(|| {
        let shared = shared();
        let attempt = |shared: &Shared| {
            let (cache, made) = &**shared;
            cache.get_or_make("k", &Cancel::new(), || match made.fetch_add(1, Ordering::SeqCst) {
                0 => Err(Error::Failed),
                number => Ok(number),
            })
        };
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || attempt(&shared))
        };
        let both = [attempt(&shared), other.join().unwrap()];
        assert_eq!(both.iter().filter(|one| matches!(one, Err(Error::Failed))).count(), 1);
        assert!(both.iter().flatten().all(|number| **number == 1));
    });
}

#[test]
fn a_session_that_ends_meanwhile_leaves_nobody_waiting() {
    loom::model(|| {
        let shared = shared();
        let others: Vec<_> = ["k", "k"]
            .into_iter()
            .map(|key| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || *get(&shared, key).unwrap())
            })
            .collect();
        shared.0.clear();
        let numbers: Vec<_> = others.into_iter().map(|other| other.join().unwrap()).collect();
        let made = shared.1.load(Ordering::SeqCst);
        assert!(numbers.iter().all(|&number| number < made) && made <= 2);
    });
}

#[test]
fn a_thread_that_makes_a_kernel_may_ask_for_it() {
    loom::model(|| {
        let shared = shared();
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || *get(&shared, "k").unwrap())
        };
        let (cache, made) = &*shared;
        let mine = cache.get_or_make("k", &Cancel::new(), || {
            let inner = get(&shared, "k")?;
            Ok(100 + *inner)
        });
        let (mine, other) = (*mine.unwrap(), other.join().unwrap());
        assert!((mine, other) == (100, 100) || mine == 0 && other == 0, "{mine} {other}");
        assert!(made.load(Ordering::SeqCst) <= 2);
    });
}
