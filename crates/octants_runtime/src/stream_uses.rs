//! Which streams use an allocation, so that the host's copies can come after their work.
//!
//! Work in the default stream is not recorded: the host's copies are in its order anyway, and a launch there pays nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use smallvec::SmallVec;

use crate::stream::StreamState;

/// Streams beside the default one that were told to use an allocation, and that nothing has waited for since.
#[derive(Default)]
pub(crate) struct StreamUses {
    /// Whether the list has entries: the only thing that a copy looks at as a rule.
    any: AtomicBool,
    list: Mutex<List>,
    /// The number of the host's latest write in the default stream; 0 if there was none.
    host_write: AtomicU64,
}

#[derive(Default)]
struct List {
    entries: SmallVec<[Entry; 2]>,
    /// Counts uses.
    count: u64,
}

#[derive(Clone)]
struct Entry {
    /// Once a stream is destroyed, its work is over.
    stream: Weak<StreamState>,
    /// Which use was the stream's latest.
    latest: u64,
}

/// The streams that used an allocation until some point.
pub(crate) struct Snapshot {
    pub streams: SmallVec<[Arc<StreamState>; 2]>,
    count: u64,
}

impl StreamUses {
    fn with<R>(&self, work: impl FnOnce(&mut List) -> R) -> R {
        work(&mut self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The stream was told to use the allocation.
    pub fn note(&self, stream: &Arc<StreamState>) {
        self.with(|list| {
            list.count += 1;
            let latest = list.count;
            let known = list.entries.iter_mut().find(|entry| entry.stream.as_ptr() == Arc::as_ptr(stream));
            if let Some(entry) = known {
                entry.latest = latest;
            } else {
                list.entries.retain(|entry| entry.stream.strong_count() > 0);
                list.entries.push(Entry { stream: Arc::downgrade(stream), latest });
            }
            self.any.store(true, Ordering::Release);
        });
    }

    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// The streams to wait for. They stay in the list until [`StreamUses::forget`], so that somebody else who looks waits, too.
    pub fn snapshot(&self) -> Snapshot {
        self.with(|list| Snapshot {
            streams: list.entries.iter().filter_map(|entry| entry.stream.upgrade()).collect(),
            count: list.count,
        })
    }

    /// The uses of a snapshot come before all that is told from now on.
    pub fn forget(&self, snapshot: &Snapshot) {
        self.with(|list| {
            list.entries.retain(|entry| entry.latest > snapshot.count);
            self.any.store(!list.entries.is_empty(), Ordering::Release);
        });
    }

    /// Notes a write of the host in the default stream.
    pub fn note_host_write(&self, number: u64) {
        self.host_write.fetch_max(number, Ordering::AcqRel);
    }

    /// The number of the host's latest write in the default stream.
    pub fn host_write(&self) -> u64 {
        self.host_write.load(Ordering::Acquire)
    }
}

impl std::fmt::Debug for StreamUses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamUses").field("any", &self.any()).finish_non_exhaustive()
    }
}
