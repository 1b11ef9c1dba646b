//! What queues are made of. The model check replaces this file by `loom`'s versions.

pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(super) use std::sync::{Arc, Mutex, MutexGuard};
pub(super) use std::thread::Thread;
