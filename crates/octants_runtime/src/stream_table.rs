//! The streams and events of a context that programs made.
//!
//! Law: **a stream is listed here until it is past everything and nobody can tell it more.** Who looks for the streams that may use something, here or by a
//! weak reference, finds all of them, also while one is waited for to be destroyed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use octants_hal::{DeviceError, Stream, StreamPriority};

use crate::context::Context;
use crate::event::EventState;
use crate::stream::{StreamError, StreamState};

/// Owns them until they are released, or the context ends.
#[derive(Default)]
pub(crate) struct StreamTable {
    /// Whether there ever was a stream, a borrowed one included.
    any: AtomicBool,
    entries: Mutex<Entries>,
}

/// Followers of external streams that are kept although they are idle. Chosen: torch has a pool of 32 streams for each priority.
const MAX_IDLE_FOLLOWERS: usize = 64;

#[derive(Default)]
struct Entries {
    streams: Vec<Arc<StreamState>>,
    /// Streams that nobody has a handle of any more, but whose queues were not empty.
    retired: Vec<Arc<StreamState>>,
    /// The stream that waits for an external one, for each of those that was given work. The handle of one that is gone may be another's by now:
    /// a follower waits for what it was told to, whoever that was.
    followers: Vec<(Stream, Arc<StreamState>)>,
    /// New memory is zeroed in this one.
    births: Option<Arc<StreamState>>,
    events: Vec<Arc<EventState>>,
    /// What failed in streams that were destroyed, and was told to nobody.
    untold: Option<DeviceError>,
    ended: bool,
}

impl StreamTable {
    fn with<R>(&self, work: impl FnOnce(&mut Entries) -> R) -> R {
        work(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// As [`StreamTable::with`], unless the context has ended: nothing that is added then would be destroyed with it.
    fn add<R>(&self, insert: impl FnOnce(&mut Entries) -> R) -> Result<R, StreamError> {
        self.with(|entries| if entries.ended { Err(StreamError::Stale) } else { Ok(insert(entries)) })
    }

    pub fn create_stream(
        &self,
        context: &Context,
        priority: StreamPriority,
    ) -> Result<Arc<StreamState>, StreamError> {
        self.sweep();
        let state = Arc::new(StreamState::create(context, priority)?);
        self.any.store(true, Ordering::Release);
        self.add(|entries| entries.streams.push(Arc::clone(&state)))?;
        Ok(state)
    }

    pub fn create_event(&self, context: &Context) -> Result<Arc<EventState>, StreamError> {
        let state = Arc::new(EventState::create(context)?);
        self.add(|entries| entries.events.push(Arc::clone(&state)))?;
        Ok(state)
    }

    pub fn find(&self, stream: Stream) -> Option<Arc<StreamState>> {
        self.with(|entries| entries.streams.iter().find(|state| state.stream() == stream).cloned())
    }

    /// The stream that stands for an external one; made when first needed.
    pub fn follower(&self, context: &Context, external: Stream) -> Result<Arc<StreamState>, StreamError> {
        let find = |entries: &Entries| {
            if entries.ended {
                return None;
            }
            let mut all = entries.followers.iter();
            all.find(|(followed, _)| *followed == external).map(|(_, state)| Arc::clone(state))
        };
        if let Some(state) = self.with(|entries| find(entries)) {
            return Ok(state);
        }
        let state = Arc::new(StreamState::create(context, StreamPriority::Normal)?);
        self.any.store(true, Ordering::Release);
        let (state, idle) = self.add(|entries| {
            // Another thread may have been first.
            if let Some(state) = find(entries) {
                return (state, Vec::new());
            }
            let mut idle = Vec::new();
            if entries.followers.len() >= MAX_IDLE_FOLLOWERS {
                // Whoever uses one has a reference, which nobody else gets meanwhile.
                idle = entries.followers.extract_if(.., |(_, state)| state.is_over()).collect();
            }
            entries.followers.push((external, Arc::clone(&state)));
            (state, idle)
        })?;
        drop(idle);
        Ok(state)
    }

    /// Whether there ever was a stream beside the default one.
    pub fn has_made_streams(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// The stream that new memory is zeroed in; made when first needed.
    pub fn births(&self, context: &Context) -> Result<Arc<StreamState>, StreamError> {
        if let Some(state) = self.add(|entries| entries.births.clone())? {
            return Ok(state);
        }
        let state = Arc::new(StreamState::create(context, StreamPriority::High)?);
        // Another thread may have been first.
        self.add(|entries| Arc::clone(entries.births.get_or_insert(state)))
    }

    /// Likewise, if there is one.
    pub fn known_births(&self) -> Option<Arc<StreamState>> {
        self.with(|entries| entries.births.clone())
    }

    /// Takes a stream out. It is destroyed at once if its queue is empty, else by a later call.
    pub fn release_stream(&self, stream: Stream) {
        self.with(|entries| {
            if let Some(at) = entries.streams.iter().position(|state| state.stream() == stream) {
                let state = entries.streams.swap_remove(at);
                state.close();
                entries.retired.push(state);
            }
        });
        self.sweep();
    }

    pub fn release_event(&self, event: &EventState) {
        let released = self.with(|entries| {
            let at = entries.events.iter().position(|state| std::ptr::eq(&raw const **state, event))?;
            Some(entries.events.swap_remove(at))
        });
        drop(released);
    }

    /// Destroys streams that were retired and are idle by now. What failed there is kept for who waits for all streams.
    pub fn sweep(&self) {
        let idle: Vec<_> =
            self.with(|entries| entries.retired.extract_if(.., |state| state.is_over()).collect());
        let Some(error) = idle.iter().find_map(|state| state.untold_error()) else { return };
        self.with(|entries| {
            entries.untold.get_or_insert(error);
        });
    }

    /// What failed in a stream that was destroyed; told once.
    pub fn take_untold(&self) -> Result<(), DeviceError> {
        self.with(|entries| entries.untold.take()).map_or(Ok(()), Err)
    }

    /// All streams that may have work in their queues.
    pub fn streams(&self) -> Vec<Arc<StreamState>> {
        self.with(|Entries { streams, retired, followers, births, .. }| {
            let followers = followers.iter().map(|(_, state)| state);
            streams.iter().chain(&*retired).chain(followers).chain(&*births).cloned().collect()
        })
    }

    /// Destroys all of them, which waits for the streams. None is made afterwards. One that a thread still has is destroyed later.
    pub fn end(&self) {
        let events = self.with(|entries| {
            entries.ended = true;
            let Entries { streams, retired, followers, births, events, .. } = entries;
            for state in &*streams {
                state.close();
            }
            retired.append(streams);
            retired.extend(followers.drain(..).map(|(_, state)| state).chain(births.take()));
            std::mem::take(events)
        });
        drop(events);
        self.streams().iter().for_each(|state| state.synchronise());
        self.sweep();
        drop(self.take_untold());
    }
}
