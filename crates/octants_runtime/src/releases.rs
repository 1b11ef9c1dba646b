//! What was released while several streams may still be at work on it: it goes back when those have come so far.
//!
//! Laws:
//! * **A release names its streams, and waits for no other.** Each entry has points of its streams' queues behind all that uses it.
//! * An entry goes back once, when all of its points are passed.
//! * Nobody waits for a point here, and none is asked for under the lock.
//!
//! Entries of the same streams are passed in the order in which they came, so only the first of them is asked.

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::sync::{AtomicBool, Mutex, MutexGuard, Ordering, PoisonError};

/// The streams of a release, in a fixed order.
pub(crate) type Streams = SmallVec<[u64; 3]>;

/// What waits for its streams.
pub(crate) struct Releases<T> {
    any: AtomicBool,
    groups: Mutex<Vec<Group<T>>>,
}

struct Group<T> {
    streams: Streams,
    waiting: VecDeque<T>,
}

impl<T> Releases<T> {
    pub fn new() -> Self {
        Self { any: AtomicBool::new(false), groups: Mutex::new(Vec::new()) }
    }

    fn groups(&self) -> MutexGuard<'_, Vec<Group<T>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn group(groups: &mut Vec<Group<T>>, streams: &Streams) -> usize {
        let known = groups.iter().position(|group| group.streams == *streams);
        known.unwrap_or_else(|| {
            groups.push(Group { streams: streams.clone(), waiting: VecDeque::new() });
            groups.len() - 1
        })
    }

    /// Takes something that these streams use, and that has points in their queues.
    pub fn add(&self, mut streams: Streams, what: T) {
        streams.sort_unstable();
        let mut groups = self.groups();
        let at = Self::group(&mut groups, &streams);
        groups[at].waiting.push_back(what);
        self.any.store(true, Ordering::Release);
    }

    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Takes those out that are passed.
    pub fn take_passed(&self, is_passed: impl Fn(&T) -> bool) -> Vec<T> {
        let mut passed = Vec::new();
        if !self.any() {
            return passed;
        }
        let streams: Vec<_> = self.groups().iter().map(|group| group.streams.clone()).collect();
        for streams in streams {
            while let Some(first) = self.take_first(&streams) {
                if is_passed(&first) {
                    passed.push(first);
                } else {
                    let mut groups = self.groups();
                    let at = Self::group(&mut groups, &streams);
                    groups[at].waiting.push_front(first);
                    self.any.store(true, Ordering::Release);
                    break;
                }
            }
        }
        passed
    }

    fn take_first(&self, streams: &Streams) -> Option<T> {
        let mut groups = self.groups();
        let at = groups.iter().position(|group| group.streams == *streams)?;
        let first = groups[at].waiting.pop_front();
        if groups[at].waiting.is_empty() {
            groups.swap_remove(at);
        }
        self.any.store(!groups.is_empty(), Ordering::Release);
        first
    }

    /// Takes all out, with their streams: the caller waits for their points.
    pub fn take_all(&self) -> Vec<(Streams, T)> {
        let groups = std::mem::take(&mut *self.groups());
        self.any.store(false, Ordering::Release);
        let with_streams = |group: Group<T>| {
            let Group { streams, waiting } = group;
            waiting.into_iter().map(move |what| (streams.clone(), what))
        };
        groups.into_iter().flat_map(with_streams).collect()
    }
}
