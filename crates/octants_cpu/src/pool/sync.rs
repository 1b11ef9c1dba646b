//! What the job table is made of. The model check replaces this file by `loom`'s versions.

pub(super) use std::hint::spin_loop;
pub(super) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
pub(super) use std::thread::{Thread, current, park};
