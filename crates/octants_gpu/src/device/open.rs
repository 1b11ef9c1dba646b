//! Opening a GPU: which one, what it is, and the context that the process shares.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use octants_hal::DeviceError;

use super::entered::PreviousContext;
use super::pace::Paces;
use super::{GpuDevice, Shared};
use crate::driver::table::{PoolProperties, Status};
use crate::driver::{Driver, Reason, Unavailable};
use crate::staging::Staging;
use crate::vendor::Vendor;

/// The part of the device's memory that stacks of recursive functions may take, all threads together: 1/16, which is 32 KiB for each
/// thread of a device with 140 GiB.
const STACKS_DIVISOR: u64 = 16;
/// The part of what other processes leave free that they may take. Chosen: sixteen processes on one device all find some.
const FREE_DIVISOR: u64 = 8;
/// Bytes of such a stack. Chosen, not measured.
const MIN_STACK_BYTES: u64 = 4 << 10;
const MAX_STACK_BYTES: u64 = 256 << 10;

/// Devices whose context the process keeps until it ends, each with its driver's library.
static RETAINED_DEVICES: Mutex<Vec<(&str, c_int)>> = Mutex::new(Vec::new());

impl GpuDevice {
    /// Opens a GPU by its number.
    pub fn open(vendor: &'static Vendor, ordinal: u32) -> Result<Self, Unavailable> {
        let device = Self::over(Driver::load(vendor)?, ordinal)?;
        // To begin and to end a context takes the driver a third of a second; a process does it once.
        let mut retained = RETAINED_DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        let own = (vendor.library, device.ordinal);
        if !retained.contains(&own) {
            let mut context = ptr::null_mut();
            // SAFETY: writes the handle, which is the device's own.
            let status = unsafe { (device.driver.table.context_retain)(&raw mut context, device.ordinal) };
            if status == 0 {
                retained.push(own);
            }
        }
        Ok(device)
    }

    /// Gives every thread as much stack as a small part of the memory allows for all that run at once.
    #[cold]
    pub(super) fn deepen_stack(&self) -> Result<(), DeviceError> {
        let (table, mut threads) = (self.enter()?, 0);
        let (mut free, mut total) = (0, 0);
        // SAFETY: each writes what it is asked for.
        unsafe {
            let status = (table.device_attribute)(
                &raw mut threads,
                self.driver.vendor.attributes.threads_per_multiprocessor,
                self.ordinal,
            );
            self.check("load_module", status)?;
            self.check("load_module", (table.memory_info)(&raw mut free, &raw mut total))?;
            let resident = u64::from(self.multiprocessors) * threads.max(1) as u64;
            let share = (total as u64 / STACKS_DIVISOR).min(free as u64 / FREE_DIVISOR);
            let bytes = (share / resident).clamp(MIN_STACK_BYTES, MAX_STACK_BYTES) & !1023;
            if bytes > self.stack.load(Ordering::Relaxed) {
                self.check(
                    "load_module",
                    (table.context_set_limit)(self.flags().stack_size, bytes as usize),
                )?;
                self.stack.store(bytes, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    pub(crate) fn over(driver: Driver, ordinal: u32) -> Result<Self, Unavailable> {
        let table = &driver.table;
        let Vendor { attributes, flags, .. } = driver.vendor;
        let started = |status: Status| match status {
            0 => Ok(()),
            _ => Err(driver.failed(status)),
        };
        let (mut count, mut device) = (0, 0);
        // SAFETY: writes one integer each.
        unsafe {
            started((table.device_count)(&raw mut count))?;
            let count = count as u32;
            match count {
                0 => return Err(driver.unavailable(Reason::NoDevice)),
                _ if ordinal >= count => {
                    return Err(driver.unavailable(Reason::NoSuchDevice { ordinal, count }));
                }
                _ => started((table.device_get)(&raw mut device, ordinal as c_int))?,
            }
        }
        let ask = |attribute: c_int| {
            let mut value = 0;
            // SAFETY: writes one integer.
            started(unsafe { (table.device_attribute)(&raw mut value, attribute, device) }).map(|()| value)
        };
        let name = device_name(&driver, device);
        let (major, minor) = (ask(attributes.capability_major)?, ask(attributes.capability_minor)?);
        if (major, minor) < driver.vendor.oldest_capability {
            return Err(driver.unavailable(Reason::DeviceTooOld { name, major, minor }));
        }
        let clock_rate = 1000 * ask(attributes.clock_rate)?.max(0) as u64;
        let multiprocessors = ask(attributes.multiprocessors)?.max(1) as u32;
        let (mut context, mut pool) = (ptr::null_mut(), ptr::null_mut());
        let properties = PoolProperties::of_device(device, flags);
        let _left = PreviousContext::of(table).map_err(|status| driver.failed(status))?;
        let (mut keep, mut never, mut stack) = (u64::MAX, 0 as c_int, 0);
        // SAFETY: handles are written where they are asked for; the context is made current before what needs one.
        unsafe {
            let mut begin = || match (table.context_retain)(&raw mut context, device) {
                0 => match (table.context_set_current)(context) {
                    0 => (table.context_synchronise)(),
                    status => status,
                },
                status => status,
            };
            match begin() {
                lost if driver.is_lost(lost) => {
                    // A fault of an earlier session. All that was in the context is gone anyway; the reset may say once more what of. With
                    // driver 580 nothing helps: it refuses the reset context, contexts of our own, also those made before, and a
                    // second copy of its library.
                    driver.vendor.resets.of(device).fetch_add(1, Ordering::AcqRel);
                    (table.context_reset)(device);
                    match begin() {
                        lost if driver.is_lost(lost) => {
                            return Err(driver.unavailable(Reason::Refused { message: driver.text(lost) }));
                        }
                        status => started(status)?,
                    }
                }
                status => started(status)?,
            }
            started((table.pool_create)(&raw mut pool, &raw const properties))?;
            started((table.pool_set_attribute)(pool, flags.release_threshold, (&raw mut keep).cast()))?;
            started((table.pool_set_attribute)(pool, flags.reuse_by_waiting, (&raw mut never).cast()))?;
            started((table.context_limit)(&raw mut stack, flags.stack_size))?;
        }
        let resets = driver.vendor.resets.of(device).load(Ordering::Acquire);
        Ok(Self {
            driver,
            ordinal: device,
            context: Shared(context),
            pool: Shared(pool),
            staging: Staging::default(),
            ranges: Mutex::default(),
            has_ranges: AtomicBool::new(false),
            paces: Paces::default(),
            resets,
            lost: AtomicBool::new(false),
            name,
            capability: (10 * major + minor) as u32,
            clock_rate,
            multiprocessors,
            stack: AtomicU64::new(stack as u64),
        })
    }
}

fn device_name(driver: &Driver, device: c_int) -> String {
    let mut text = [0_u8; 256];
    // SAFETY: writes at most so many bytes, the last of them zero.
    let status = unsafe { (driver.table.device_name)(text.as_mut_ptr().cast(), text.len() as c_int, device) };
    let length = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    if status == 0 { String::from_utf8_lossy(&text[..length]).into_owned() } else { "a GPU".to_owned() }
}
