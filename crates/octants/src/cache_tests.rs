//! Kernels of a session with real threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use octants_hal::Cancel;

use crate::cache::{Cache, MAX_RECENT_KERNELS};
use crate::error::Error;

#[test]
fn many_threads_make_one_and_a_failure_is_tried_again() {
    let cache = Cache::new();
    let (made, never) = (AtomicUsize::new(0), Cancel::new());
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
fn what_nobody_has_lives_while_it_is_recent() {
    let cache = Cache::new();
    let never = Cancel::new();
    let get = |n: usize| cache.get_or_make(&n.to_string(), &never, || Ok(n)).unwrap();
    let held = get(0);
    let weak: Vec<_> = (1..1000).map(|n| Arc::downgrade(&get(n))).collect();
    assert_eq!(weak.iter().filter(|one| one.strong_count() > 0).count(), MAX_RECENT_KERNELS);
    assert!(Arc::ptr_eq(&held, &get(0)));
    assert!(weak.last().unwrap().ptr_eq(&Arc::downgrade(&get(999))));
    assert!(cache.len() <= 2 * MAX_RECENT_KERNELS + 2);
    assert_eq!(*get(1), 1, "made again");
    cache.clear();
    assert_eq!(weak.iter().filter(|one| one.strong_count() > 0).count(), 0);
}

#[test]
fn whoever_makes_a_kernel_can_ask_for_it_meanwhile() {
    let (cache, never) = (Cache::new(), Cancel::new());
    let outer = cache.get_or_make("k", &never, || {
        let inner = cache.get_or_make("k", &never, || Ok(1))?;
        Ok(*inner + 1)
    });
    assert_eq!(*outer.unwrap(), 2);
    assert_eq!(*cache.get_or_make("k", &never, || Ok(9)).unwrap(), 2);
}

#[test]
fn a_waiting_thread_can_be_interrupted_and_a_panic_wakes_it() {
    let cache = Cache::new();
    let (never, raised) = (Cancel::new(), Cancel::new());
    raised.raise();
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
