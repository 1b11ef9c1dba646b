//! Which streams use an allocation, so that the host's copies come after their work, and the memory goes back when they are past it.
//!
//! Laws:
//! * **Who has waited forgets.** A use leaves the list when its stream was waited for, or when a stream was told to come after it, which then
//!   stands in the list in its place: that one may still have to wait. Between being told and having waited there is no moment at which
//!   another thread, or the same one after an interrupt, finds less than what the memory may still be used by.
//! * Who has waited forgets what it has waited for, and nothing that was noted since.
//! * A stream that is destroyed is past everything.
//!
//! * **The default stream uses what a launch in it was given, once and for all, and what it was told to come after others for, until somebody has
//!   waited.** A launch there sets a flag, and pays nothing else. Writes of the host in it are numbered (`host_writes`), and no uses.

use smallvec::SmallVec;

use super::sync::{AtomicBool, Mutex, Ordering, PoisonError};

/// A stream as lists refer to it: it may be destroyed.
pub(crate) trait UsingStream: Clone {
    /// Kept from being destroyed.
    type Live;

    fn is_same(&self, other: &Self) -> bool;

    fn live(&self) -> Option<Self::Live>;
}

/// Streams that were told to use an allocation, and that nobody has waited for since.
pub(crate) struct StreamUses<S> {
    /// Whether a launch in the default stream may have been given the memory.
    launched: AtomicBool,
    /// Whether the list has entries: the only thing that a copy looks at as a rule.
    any: AtomicBool,
    list: Mutex<List<S>>,
}

struct List<S> {
    /// Of streams beside the default one.
    entries: SmallVec<[Entry<S>; 2]>,
    /// Since which use the default one stands for others that it was told to come after.
    default: Option<u64>,
    /// Counts uses.
    count: u64,
}

struct Entry<S> {
    stream: S,
    /// Which use was the stream's latest.
    latest: u64,
}

/// The streams that used an allocation until some point.
pub(crate) struct Snapshot<S: UsingStream> {
    pub streams: SmallVec<[(S, S::Live); 2]>,
    count: u64,
}

/// Uses that somebody may forget as soon as he has waited.
pub(crate) struct Joined {
    /// All until this one.
    count: u64,
    /// And that of the stream that was told to come after them.
    own: Option<u64>,
}

impl<S: UsingStream> List<S> {
    fn note(&mut self, stream: &S) -> u64 {
        self.count += 1;
        let latest = self.count;
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.stream.is_same(stream)) {
            entry.latest = latest;
        } else {
            self.entries.retain(|entry| entry.stream.live().is_some());
            self.entries.push(Entry { stream: stream.clone(), latest });
        }
        latest
    }

    fn note_default(&mut self) -> u64 {
        self.count += 1;
        self.default = Some(self.count);
        self.count
    }
}

impl<S: UsingStream> StreamUses<S> {
    pub fn new() -> Self {
        let list = List { entries: SmallVec::new(), default: None, count: 0 };
        Self { launched: AtomicBool::new(false), any: AtomicBool::new(false), list: Mutex::new(list) }
    }

    fn with<R>(&self, work: impl FnOnce(&mut List<S>) -> R) -> R {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let result = work(&mut list);
        self.any.store(!list.entries.is_empty(), Ordering::Release);
        result
    }

    /// The stream was told to use the allocation.
    pub fn note(&self, stream: &S) {
        self.with(|list| list.note(stream));
    }

    /// A launch in the default stream may be given the memory from now on.
    #[inline]
    pub fn note_default(&self) {
        if !self.launched.load(Ordering::Relaxed) {
            self.launched.store(true, Ordering::Release);
        }
    }

    /// Whether the default stream may be at work on it, but for writes of the host.
    pub fn in_default(&self) -> bool {
        self.launched.load(Ordering::Acquire) || self.with(|list| list.default.is_some())
    }

    /// Whether others than the default one may be.
    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// The streams beside the default one that may still be at work on it.
    pub fn users(&self) -> SmallVec<[S::Live; 2]> {
        if !self.any() {
            return SmallVec::new();
        }
        self.with(|list| list.entries.iter().filter_map(|entry| entry.stream.live()).collect())
    }

    /// The streams to wait for, or to come after. They stay in the list, so that somebody else who looks waits, too.
    pub fn snapshot(&self) -> Snapshot<S> {
        let live = |entry: &Entry<S>| entry.stream.live().map(|live| (entry.stream.clone(), live));
        self.with(|list| Snapshot {
            streams: list.entries.iter().filter_map(live).collect(),
            count: list.count,
        })
    }

    /// A stream was told to come after the uses of a snapshot, and stands for them from now on; `None` is the default one.
    pub fn replace(&self, snapshot: &Snapshot<S>, joining: Option<&S>) -> Joined {
        let count = snapshot.count;
        self.with(|list| {
            list.entries.retain(|entry| entry.latest > count);
            let own = match joining {
                Some(joining) => list.note(joining),
                None => list.note_default(),
            };
            Joined { count, own: Some(own) }
        })
    }

    /// Called by who has waited for the stream that was told to come after others.
    pub fn forget(&self, joined: &Joined) {
        self.with(|list| {
            let is_later = |latest: u64| latest > joined.count && Some(latest) != joined.own;
            list.entries.retain(|entry| is_later(entry.latest));
            list.default = list.default.filter(|&latest| is_later(latest));
        });
    }
}

impl<S: UsingStream> Snapshot<S> {
    /// For who has waited for each of the streams.
    pub fn waited(&self) -> Joined {
        Joined { count: self.count, own: None }
    }
}

impl<S: UsingStream> std::fmt::Debug for StreamUses<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamUses").field("any", &self.any()).finish_non_exhaustive()
    }
}
