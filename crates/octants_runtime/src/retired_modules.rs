//! Code whose kernels are gone, but which may still run in some stream.
//!
//! Whoever drops a kernel does not wait for streams: its code is unloaded when they are past what they were told until then.

use std::sync::{Mutex, PoisonError};

use octants_hal::{Device, DeviceError, Event, Function, Module, Stream};

/// Modules that wait to be unloaded.
#[derive(Default)]
pub(crate) struct RetiredModules {
    list: Mutex<Vec<RetiredModule>>,
}

pub(crate) struct RetiredModule {
    pub module: Module,
    pub functions: Vec<Function>,
    /// Behind what each stream was told when the module was retired.
    passed: Vec<Event>,
}

impl RetiredModules {
    /// Takes a module that may be in use in these streams.
    pub fn add(
        &self,
        device: &dyn Device,
        module: Module,
        functions: Vec<Function>,
        streams: &[Stream],
    ) -> Result<(), DeviceError> {
        let mut passed = Vec::with_capacity(streams.len());
        let recorded = streams.iter().try_for_each(|&stream| {
            let event = device.create_event(false)?;
            passed.push(event);
            // SAFETY: the caller's streams are live, and so is the event.
            unsafe { device.record_event(stream, event) }
        });
        if recorded.is_ok() {
            self.with(|list| list.push(RetiredModule { module, functions, passed }));
        } else {
            destroy(device, &passed);
        }
        recorded
    }

    /// Takes those out that no stream uses any more; all of them, if the caller has waited for all streams.
    pub fn take(&self, device: &dyn Device, all: bool) -> Vec<RetiredModule> {
        self.with(|list| {
            if list.is_empty() {
                return Vec::new();
            }
            // SAFETY: events of the list are live.
            let is_passed = |event: &Event| unsafe { device.event_passed(*event).unwrap_or(true) };
            let retired = std::mem::take(list);
            let (unused, used): (Vec<_>, Vec<_>) =
                retired.into_iter().partition(|one| all || one.passed.iter().all(is_passed));
            *list = used;
            for one in &unused {
                destroy(device, &one.passed);
            }
            unused
        })
    }

    fn with<R>(&self, work: impl FnOnce(&mut Vec<RetiredModule>) -> R) -> R {
        work(&mut self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Events of this file, which are never used again.
fn destroy(device: &dyn Device, events: &[Event]) {
    for &event in events {
        // SAFETY: made by this device, and live.
        unsafe { device.destroy_event(event) };
    }
}
