//! What a GPU says of itself.

use std::ffi::c_int;

use octants_hal::{DeviceError, DeviceProperties};

use super::GpuDevice;
use crate::vendor::Attributes;

impl GpuDevice {
    /// A number of the device's description.
    pub(super) fn attribute(&self, verb: &'static str, attribute: c_int) -> Result<u64, DeviceError> {
        let (table, mut value) = (self.enter()?, 0);
        // SAFETY: writes one integer.
        let status = unsafe { (table.device_attribute)(&raw mut value, attribute, self.ordinal) };
        self.check(verb, status).map(|()| value.max(0) as u64)
    }

    /// Bytes of the device's memory that nobody uses, and all of them.
    pub(super) fn free_and_total(&self, verb: &'static str) -> Result<(u64, u64), DeviceError> {
        let (table, mut free, mut total) = (self.enter()?, 0, 0);
        // SAFETY: writes two numbers.
        let status = unsafe { (table.memory_info)(&raw mut free, &raw mut total) };
        self.check(verb, status).map(|()| (free as u64, total as u64))
    }

    pub(super) fn describe(&self) -> Result<DeviceProperties, DeviceError> {
        let _entered = self.enter()?;
        let ask = |attribute: c_int| self.attribute("properties", attribute);
        let of: &Attributes = &self.driver.vendor.attributes;
        let (driver_major, driver_minor) = (self.driver.vendor.version)(self.driver.version as c_int);
        let (free_bytes, total_bytes) = self.free_and_total("properties")?;
        Ok(DeviceProperties {
            name: self.name.clone(),
            capability_major: ask(of.capability_major)?,
            capability_minor: ask(of.capability_minor)?,
            driver_major: driver_major.unsigned_abs().into(),
            driver_minor: driver_minor.unsigned_abs().into(),
            cores: self.multiprocessors.into(),
            subgroup_size: ask(of.lanes)?,
            max_threads_per_core: ask(of.threads_per_multiprocessor)?,
            max_blocks_per_core: ask(of.blocks_per_multiprocessor)?,
            max_threads_per_block: ask(of.threads_per_block)?,
            shared_bytes_per_block: ask(of.block_shared_bytes)?,
            max_shared_bytes_per_block: ask(of.most_block_shared_bytes)?,
            shared_bytes_per_core: ask(of.multiprocessor_shared_bytes)?,
            registers_per_block: ask(of.registers_per_block)?,
            registers_per_core: ask(of.registers_per_multiprocessor)?,
            l2_bytes: ask(of.cache_bytes)?,
            total_bytes,
            free_bytes,
        })
    }
}
