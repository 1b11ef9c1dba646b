//! The streams and events of a context that programs made.

use std::sync::{Arc, Mutex, PoisonError};

use octants_hal::{Stream, StreamPriority};

use crate::context::Context;
use crate::event::EventState;
use crate::stream::{StreamError, StreamState};

/// Owns them until they are released, or the context ends.
#[derive(Default)]
pub(crate) struct StreamTable {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    streams: Vec<Arc<StreamState>>,
    /// Streams that nobody has a handle of any more, but whose queues were not empty.
    retired: Vec<Arc<StreamState>>,
    /// Waits for every external stream that was given work.
    external: Option<Arc<StreamState>>,
    events: Vec<Arc<EventState>>,
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

    /// The stream that stands for external ones; made when first needed.
    pub fn external(&self, context: &Context) -> Result<Arc<StreamState>, StreamError> {
        if let Some(state) = self.with(|entries| entries.external.clone()) {
            return Ok(state);
        }
        let state = Arc::new(StreamState::create(context, StreamPriority::Normal)?);
        // Another thread may have been first.
        self.add(|entries| Arc::clone(entries.external.get_or_insert(state)))
    }

    /// Takes a stream out. It is destroyed at once if its queue is empty, else by a later call.
    pub fn release_stream(&self, stream: Stream) {
        self.with(|entries| {
            if let Some(at) = entries.streams.iter().position(|state| state.stream() == stream) {
                let state = entries.streams.swap_remove(at);
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

    /// Destroys streams that were retired and are idle by now.
    pub fn sweep(&self) {
        let idle = self.with(|entries| {
            let retired = std::mem::take(&mut entries.retired);
            let (idle, busy): (Vec<_>, Vec<_>) = retired.into_iter().partition(|state| state.is_idle());
            entries.retired = busy;
            idle
        });
        drop(idle);
    }

    /// All streams that may have work in their queues.
    pub fn streams(&self) -> Vec<Arc<StreamState>> {
        self.with(|Entries { streams, retired, external, .. }| {
            streams.iter().chain(&*retired).chain(&*external).cloned().collect()
        })
    }

    /// Destroys all of them, which waits for the streams. None is made afterwards.
    pub fn end(&self) {
        let entries =
            self.with(|entries| std::mem::replace(entries, Entries { ended: true, ..Entries::default() }));
        drop(entries);
    }
}
