//! What threads of a session meet at. A model puts its own in their place.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

pub(crate) mod thread {
    pub(crate) use std::thread::{ThreadId, current};
}
