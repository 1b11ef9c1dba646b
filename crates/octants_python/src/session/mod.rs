//! What a session has: the runtime that holds the current one, streams, the profiler, the cache on disk.

pub mod device_process;
pub mod disk_cache;
pub mod dump;
pub mod profiler;
pub mod runtime;
pub mod stream;
