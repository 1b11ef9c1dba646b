//! Which kernels were launched last on a device that runs them later.
//!
//! A device may tell of a failure long after the launch that caused it. All that can be said then is which kernels it may have been.

use std::sync::{Arc, Mutex, PoisonError};

/// Names that are kept. Chosen, not measured. A queue may be longer; who looks for the culprit turns on checks, which name it.
const MAX_NAMES: usize = 4;

/// The last launches, the latest last.
#[derive(Default)]
pub struct LaunchLog {
    names: Mutex<Vec<Arc<str>>>,
}

impl LaunchLog {
    pub(crate) fn note(&self, name: &Arc<str>) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.last().is_some_and(|last| Arc::ptr_eq(last, name)) {
            return;
        }
        if names.len() == MAX_NAMES {
            names.remove(0);
        }
        names.push(Arc::clone(name));
    }

    /// The names, the latest first.
    pub fn latest(&self) -> Vec<Arc<str>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).iter().rev().cloned().collect()
    }
}
