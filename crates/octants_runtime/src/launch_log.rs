//! Which kernels were launched last on a device that runs them later.
//!
//! A device may tell of a failure long after the launch that caused it. All that can be said then is which kernels it may have been.

use std::sync::{Arc, Mutex, PoisonError};

use octants_ir::LocData;

/// What a kernel is called, and where it begins.
#[derive(Debug)]
pub struct KernelOrigin {
    pub name: String,
    pub place: LocData,
}

/// Kernels that are kept. Chosen, not measured. A queue may be longer; who looks for the culprit turns on checks, which name it.
const MAX_KERNELS: usize = 4;

/// The last launches, the latest last.
#[derive(Default)]
pub struct LaunchLog {
    kernels: Mutex<Vec<Arc<KernelOrigin>>>,
}

impl LaunchLog {
    pub(crate) fn note(&self, kernel: &Arc<KernelOrigin>) {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if kernels.last().is_some_and(|last| Arc::ptr_eq(last, kernel)) {
            return;
        }
        if kernels.len() == MAX_KERNELS {
            kernels.remove(0);
        }
        kernels.push(Arc::clone(kernel));
    }

    /// The latest first.
    pub fn latest(&self) -> Vec<Arc<KernelOrigin>> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner).iter().rev().cloned().collect()
    }
}
