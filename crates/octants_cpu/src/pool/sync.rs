//! What loops and their table are made of. The model checks replace this file by `loom`'s versions.

pub(super) use std::hint::spin_loop;
pub(super) use std::sync::Mutex;
pub(super) use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub(super) use std::thread::{Thread, current, park};
