//! What the pool promises, under stress.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use super::{Outcome, Pool, Schedule};

fn grains_of(grain: u64) -> Schedule<'static> {
    Schedule { grain, max_chunk: u64::MAX, max_threads: usize::MAX, cancel: None }
}

/// Runs a loop and checks that it visits each iteration once, with numbers that nobody else has.
fn check(pool: &Pool, total: u64, schedule: &Schedule<'_>) {
    let visits: Vec<AtomicU8> = (0..total).map(|_| AtomicU8::new(0)).collect();
    let busy: Vec<AtomicBool> = (0..pool.threads()).map(|_| AtomicBool::new(false)).collect();
    let outcome = pool.run(total, schedule, &|number, begin, end| {
        assert!(begin < end && end <= total);
        assert!(number < schedule.max_threads.max(1));
        assert!(!busy[number].swap(true, Ordering::SeqCst), "two threads have number {number}");
        for visit in &visits[begin as usize..end as usize] {
            visit.fetch_add(1, Ordering::Relaxed);
        }
        busy[number].store(false, Ordering::SeqCst);
    });
    assert_eq!(outcome, Outcome::Completed);
    assert!(visits.iter().all(|visit| visit.load(Ordering::Relaxed) == 1), "{total} {schedule:?}");
}

#[test]
fn every_iteration_runs_once() {
    for threads in [1, 2, 3, 8] {
        let pool = Pool::with_spin_time(threads, Duration::from_micros(5));
        for total in [0, 1, 2, 63, 64, 65, 1000, 4096, 100_003] {
            for grain in [0, 1, 7, 64, 1000, u64::MAX] {
                for max_threads in [0, 1, 2, 5, usize::MAX] {
                    // A chunk per iteration is slow, and the smaller totals show as much.
                    if total < 5000 || grain >= 64 {
                        for max_chunk in [u64::MAX, 100] {
                            check(&pool, total, &Schedule { grain, max_chunk, max_threads, cancel: None });
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn huge_totals_do_not_overflow() {
    let pool = Pool::new(3);
    let sum = AtomicU64::new(0);
    let outcome = pool.run(u64::MAX, &grains_of(1 << 60), &|_, begin, end| {
        sum.fetch_add(end - begin, Ordering::Relaxed);
    });
    assert_eq!((outcome, sum.into_inner()), (Outcome::Completed, u64::MAX));
}

#[test]
fn a_single_chunk_stays_on_its_thread() {
    let pool = Pool::new(4);
    let here = thread::current().id();
    let calls = AtomicUsize::new(0);
    let outcome = pool.run(100, &grains_of(100), &|number, begin, end| {
        assert_eq!((number, begin, end), (0, 0, 100));
        assert_eq!(thread::current().id(), here);
        calls.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!((outcome, calls.into_inner()), (Outcome::Completed, 1));
}

#[test]
fn all_threads_take_part() {
    // Every thread must be inside the body at once for the barrier to open; asleep or not.
    for spin_time in [Duration::ZERO, Duration::from_millis(20)] {
        let pool = Pool::with_spin_time(4, spin_time);
        for round in 0..20 {
            if round % 4 == 0 {
                thread::sleep(Duration::from_millis(2));
            }
            let barrier = Barrier::new(4);
            let outcome = pool.run(4, &grains_of(1), &|_, begin, end| {
                assert_eq!(end, begin + 1);
                barrier.wait();
            });
            assert_eq!(outcome, Outcome::Completed);
        }
    }
}

#[test]
fn threads_keep_to_their_part_of_the_loop() {
    let pool = Pool::with_spin_time(2, Duration::from_millis(50));
    let chunks = std::sync::Mutex::new(Vec::new());
    let barrier = Barrier::new(2);
    let waited = [AtomicBool::new(false), AtomicBool::new(false)];
    let outcome = pool.run(1 << 20, &grains_of(1 << 10), &|number, begin, end| {
        // Both are there before either goes on, so neither steals a whole span.
        if !waited[number].swap(true, Ordering::SeqCst) {
            barrier.wait();
        }
        chunks.lock().unwrap().push((number, begin, end));
    });
    assert_eq!(outcome, Outcome::Completed);
    let chunks = chunks.into_inner().unwrap();
    for number in 0..2 {
        let first = chunks.iter().find(|chunk| chunk.0 == number).unwrap();
        assert_eq!(first.1, number as u64 * (1 << 19), "each begins at its own span");
    }
    assert!(chunks.iter().all(|chunk| chunk.1 % 64 == 0), "chunks begin at multiples of a vector");
    assert!(chunks.len() < 200, "{} chunks are too many", chunks.len());
}

#[test]
fn idle_threads_take_over_what_a_slow_one_has_left() {
    let pool = Pool::with_spin_time(2, Duration::from_millis(50));
    let others = AtomicU64::new(0);
    let slow = AtomicU32::new(u32::MAX);
    let outcome = pool.run(1 << 16, &grains_of(64), &|number, begin, end| {
        // Whoever comes first stays in its first chunk until the other has done nearly all else.
        if slow.compare_exchange(u32::MAX, number as u32, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            let begin = Instant::now();
            while others.load(Ordering::SeqCst) < (1 << 15) + (1 << 14) && begin.elapsed().as_secs() < 20 {
                thread::yield_now();
            }
        } else if slow.load(Ordering::SeqCst) != number as u32 {
            others.fetch_add(end - begin, Ordering::SeqCst);
        }
    });
    assert_eq!(outcome, Outcome::Completed);
    assert!(others.into_inner() > 1 << 15, "more than the own half");
}

#[test]
fn loops_nest() {
    let pool = Pool::with_spin_time(3, Duration::from_micros(5));
    let count = AtomicU64::new(0);
    let outcome = pool.run(20, &grains_of(1), &|_, begin, end| {
        for _ in begin..end {
            let inner = pool.run(30, &grains_of(1), &|_, begin, end| {
                for _ in begin..end {
                    let innermost = pool.run(10, &grains_of(2), &|_, begin, end| {
                        count.fetch_add(end - begin, Ordering::Relaxed);
                    });
                    assert_eq!(innermost, Outcome::Completed);
                }
            });
            assert_eq!(inner, Outcome::Completed);
        }
    });
    assert_eq!((outcome, count.into_inner()), (Outcome::Completed, 20 * 30 * 10));
}

#[test]
fn many_threads_run_loops_at_once() {
    let pool = Arc::new(Pool::with_spin_time(4, Duration::from_micros(10)));
    thread::scope(|scope| {
        for caller in 0..6_u64 {
            let pool = Arc::clone(&pool);
            scope.spawn(move || {
                let mut random = caller + 1;
                for _ in 0..300 {
                    // A linear congruence is random enough to vary the shapes.
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let total = (random >> 40) % 5000;
                    let schedule = Schedule {
                        grain: random % 97,
                        max_chunk: 1 + (random >> 30) % 500,
                        max_threads: (random >> 20) as usize % 6,
                        cancel: None,
                    };
                    check(&pool, total, &schedule);
                    if random % 64 == 0 {
                        thread::sleep(Duration::from_micros(random % 200));
                    }
                }
            });
        }
    });
}

#[test]
fn a_panic_reaches_the_caller_and_spoils_nothing() {
    let pool = Pool::new(3);
    for culprit in [0_u64, 500, 999] {
        let panic = catch_unwind(AssertUnwindSafe(|| {
            let _ = pool.run(1000, &grains_of(1), &|_, begin, end| {
                assert!(!(begin..end).contains(&culprit), "iteration {culprit}");
            });
        }))
        .unwrap_err();
        assert_eq!(*panic.downcast_ref::<String>().unwrap(), format!("iteration {culprit}"));
        check(&pool, 1000, &grains_of(1));
    }
}

#[test]
fn cancelling_stops_between_chunks() {
    for threads in [1, 3] {
        let pool = Pool::new(threads);
        let cancel = octants_hal::Cancel::new();
        let schedule = Schedule { cancel: Some(&cancel), ..grains_of(1) };
        let done = AtomicU64::new(0);
        let outcome = pool.run(u64::MAX, &schedule, &|_, _, _| {
            if done.fetch_add(1, Ordering::Relaxed) == 100 {
                cancel.raise();
            }
        });
        assert_eq!(outcome, Outcome::Cancelled);
        assert!(done.load(Ordering::Relaxed) < 1000);
        let outcome = pool.run(1, &schedule, &|_, _, _| panic!("begun though cancelled"));
        assert_eq!(outcome, Outcome::Cancelled);
        check(&pool, 1000, &grains_of(1));
    }
}

#[test]
fn dropping_ends_the_threads() {
    fn workers() -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.starts_with("octants-7")).count()
    }
    /// A thread takes its name when it first runs, and may be listed for a moment after it was joined.
    fn wait_until(happened: impl Fn() -> bool) {
        let begin = Instant::now();
        while !happened() {
            assert!(begin.elapsed().as_secs() < 20, "{} workers", workers());
            thread::sleep(Duration::from_millis(1));
        }
    }
    // No other test's pool is large enough for workers 70 to 79.
    let pool = Pool::new(80);
    check(&pool, 10_000, &grains_of(10));
    wait_until(|| workers() >= 10);
    drop(pool);
    wait_until(|| workers() <= 1);
}

#[test]
fn a_forked_child_has_threads_of_its_own_and_exits() {
    let pool = Pool::new(3);
    check(&pool, 1000, &grains_of(1));
    for use_it in [true, false] {
        // SAFETY: the child only uses the pool and leaves, without returning into the test harness.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let worked = !use_it || {
                let barrier = Barrier::new(3);
                let outcome = pool.run(3, &grains_of(1), &|_, _, _| {
                    barrier.wait();
                });
                outcome == Outcome::Completed
            };
            drop(pool);
            // SAFETY: leaves with the exit handlers that a program runs.
            unsafe { libc::exit(if worked { 7 } else { 1 }) };
        }
        let begin = Instant::now();
        let mut status = 0;
        // SAFETY: waits for our own child, without blocking.
        while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
            assert!(begin.elapsed().as_secs() < 20, "the child hangs");
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(libc::WEXITSTATUS(status), 7, "the child's loop went wrong");
    }
    check(&pool, 1000, &grains_of(1));
}
