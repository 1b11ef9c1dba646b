//! Code whose kernels are gone, but which may still run in some stream.
//!
//! Law: code is unloaded when every stream is seen to be past what it was told until then, and whoever drops a kernel waits for none. What fails in a
//! stream says nothing of what still runs there.

use std::sync::{Mutex, PoisonError};

use octants_hal::{Device, Event, Function, Module, Stream};

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
    /// Whether some stream has no such event, since it could not be had: then all streams are to be idle.
    incomplete: bool,
}

impl RetiredModules {
    /// Takes a module that may be in use in these streams.
    pub fn add(&self, device: &dyn Device, module: Module, functions: Vec<Function>, streams: &[Stream]) {
        let mut passed = Vec::with_capacity(streams.len());
        let recorded = streams.iter().try_for_each(|&stream| {
            let event = device.create_event(false)?;
            passed.push(event);
            // SAFETY: the caller's streams are live, and so is the event.
            unsafe { device.record_event(stream, event) }
        });
        let incomplete = recorded.is_err();
        self.with(|list| list.push(RetiredModule { module, functions, passed, incomplete }));
    }

    /// Takes those out that no stream uses any more; all of them, if all streams are idle.
    pub fn take(&self, device: &dyn Device, all_idle: &dyn Fn() -> bool) -> Vec<RetiredModule> {
        self.with(|list| {
            if list.is_empty() {
                return Vec::new();
            }
            // SAFETY: events of the list are live.
            let is_passed = |event: &Event| unsafe { device.event_passed(*event) };
            let retired = std::mem::take(list);
            let (unused, used): (Vec<_>, Vec<_>) = retired
                .into_iter()
                .partition(|one| !one.incomplete && one.passed.iter().all(is_passed) || all_idle());
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
