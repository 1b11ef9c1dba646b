//! Which context a thread has while a verb runs, and afterwards.
//!
//! Law: **every verb enters the device's context before it asks the driver for anything, and leaves the thread as it found it.** A thread may never have
//! called us before, and other libraries take their current device from the context that is current: torch's would be ours else.

use std::ops::Deref;
use std::ptr;

use super::GpuDevice;
use crate::driver::table::{DriverTable, Handle, Status};

/// The driver's functions, while the device's context is current on this thread.
#[must_use = "the context is current as long as this lives"]
pub(super) struct Entered<'d> {
    table: &'d DriverTable,
    /// None if the context was current already.
    _left: Option<PreviousContext>,
}

impl Deref for Entered<'_> {
    type Target = DriverTable;

    fn deref(&self) -> &DriverTable {
        self.table
    }
}

impl<'d> Entered<'d> {
    pub fn new(device: &'d GpuDevice) -> Result<Self, Status> {
        let table = &device.driver.table;
        let previous = PreviousContext::of(table)?;
        if previous.context == device.context.0 {
            std::mem::forget(previous);
            return Ok(Self { table, _left: None });
        }
        // SAFETY: the context lives as long as the device.
        match unsafe { (table.context_set_current)(device.context.0) } {
            0 => Ok(Self { table, _left: Some(previous) }),
            status => Err(status),
        }
    }
}

/// What was current on the thread, and is again when this is dropped.
pub(super) struct PreviousContext {
    set: unsafe extern "C" fn(Handle) -> Status,
    context: Handle,
}

impl PreviousContext {
    pub fn of(table: &DriverTable) -> Result<Self, Status> {
        let mut context = ptr::null_mut();
        // SAFETY: writes the handle.
        match unsafe { (table.context_get_current)(&raw mut context) } {
            0 => Ok(Self { set: table.context_set_current, context }),
            status => Err(status),
        }
    }
}

impl Drop for PreviousContext {
    fn drop(&mut self) {
        // SAFETY: it was current on this thread, or is null. If its owner has destroyed it meanwhile the driver says so, and the thread has ours.
        unsafe { (self.set)(self.context) };
    }
}
