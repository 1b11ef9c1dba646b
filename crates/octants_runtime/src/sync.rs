//! What records of use and releases are made of. The model check replaces this file by `loom`'s versions.

pub(super) use std::sync::atomic::{AtomicBool, Ordering};
pub(super) use std::sync::{Mutex, MutexGuard, PoisonError};
