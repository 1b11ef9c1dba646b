//! Checks of launches that nobody waits for, told to whoever next waits for the device.
//!
//! A kernel whose launches report late has one record of faults for all of them, in memory that both sides see: it is there until the context ends, as
//! launches of any stream may write it at any time. A record that holds a fault keeps it until it is taken; later faults of the same kernel are dropped
//! until then.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use octants_hal::{Address, Device, DeviceError, Fault, FaultRecord, SharedMemory};
use octants_ir::SiteTable;

use crate::launch_log::KernelOrigin;

/// Records are allocated by the page.
const BLOCK_BYTES: usize = 4096;
const RECORDS_PER_BLOCK: usize = BLOCK_BYTES / size_of::<FaultRecord>();

pub(crate) struct DeferredFaults {
    device: Arc<dyn Device>,
    /// There are records: who waits looks at nothing else where there are none.
    any: AtomicBool,
    records: Mutex<Records>,
}

#[derive(Default)]
struct Records {
    blocks: Vec<SharedMemory>,
    kernels: Vec<Kernel>,
}

// SAFETY: it is memory that is accessed by atomic loads and stores, not bound to a thread.
unsafe impl Send for Records {}

impl Records {
    /// The block that a record lies in, and where it begins there.
    fn place(number: usize) -> (usize, usize) {
        (number / RECORDS_PER_BLOCK, number % RECORDS_PER_BLOCK * size_of::<FaultRecord>())
    }

    fn record(&self, number: usize) -> &FaultRecord {
        let (block, offset) = Self::place(number);
        let record = self.blocks[block].host.wrapping_add(offset).cast::<c_void>();
        // SAFETY: the block has the record there, aligned as such; all of it is atomic, and it is there as long as this.
        unsafe { &*record.cast() }
    }
}

struct Kernel {
    origin: Arc<KernelOrigin>,
    sites: Arc<SiteTable>,
}

/// A check that failed in a launch of before.
#[derive(Clone, Debug)]
pub struct DeferredFault {
    pub kernel: Arc<KernelOrigin>,
    /// The checks of the version that ran.
    pub sites: Arc<SiteTable>,
    pub fault: Fault,
}

impl DeferredFaults {
    pub fn new(device: &Arc<dyn Device>) -> Self {
        Self { device: Arc::clone(device), any: AtomicBool::new(false), records: Mutex::default() }
    }

    /// Where the device sees a new record, for one version of a kernel.
    pub fn add(&self, origin: &Arc<KernelOrigin>, sites: &SiteTable) -> Result<Address, DeviceError> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let number = records.kernels.len();
        if number == records.blocks.len() * RECORDS_PER_BLOCK {
            let block = self.device.allocate_shared(BLOCK_BYTES)?;
            // SAFETY: as many bytes are there, and nobody else knows them yet.
            unsafe { block.host.write_bytes(0, BLOCK_BYTES) };
            records.blocks.push(block);
        }
        records.kernels.push(Kernel { origin: Arc::clone(origin), sites: Arc::new(sites.clone()) });
        self.any.store(true, Ordering::Release);
        let (block, offset) = Records::place(number);
        Ok(records.blocks[block].device.offset(offset))
    }

    /// A fault that was told to nobody yet.
    pub fn take(&self) -> Option<DeferredFault> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.kernels.iter().enumerate().find_map(|(number, kernel)| {
            let fault = records.record(number).take()?;
            Some(DeferredFault {
                kernel: Arc::clone(&kernel.origin),
                sites: Arc::clone(&kernel.sites),
                fault,
            })
        })
    }
}

impl Drop for DeferredFaults {
    fn drop(&mut self) {
        let records = self.records.get_mut().unwrap_or_else(PoisonError::into_inner);
        for block in records.blocks.drain(..) {
            // SAFETY: allocated by this device; the context has waited for all launches.
            unsafe { self.device.free_shared(block) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octants_hal::null::NullDevice;
    use octants_ir::LocData;

    #[test]
    fn a_fault_is_told_once_by_the_kernel_that_it_is_of() {
        let device: Arc<dyn Device> = Arc::new(NullDevice::new());
        let faults = DeferredFaults::new(&device);
        assert!(faults.take().is_none());
        let kernel = |name: usize| Arc::new(KernelOrigin { name: name.to_string(), place: LocData::NOWHERE });
        // More than a block holds.
        let count = RECORDS_PER_BLOCK + 2;
        let added = (0..count).map(|name| faults.add(&kernel(name), &SiteTable::default()).unwrap());
        let mut addresses: Vec<_> = added.map(|address| address.0).collect();
        let fault = |site| Fault { site, arguments: [7; octants_hal::FAULT_ARGUMENTS] };
        let write = |number: usize, site| {
            let records = faults.records.lock().unwrap();
            records.record(number).write(&fault(site));
        };
        for number in [count - 1, 3] {
            write(number, 5);
            // The first one stays.
            write(number, 6);
            let late = faults.take().expect("it was written");
            assert_eq!((late.kernel.name.as_str(), late.fault), (number.to_string().as_str(), fault(5)));
            assert!(faults.take().is_none());
            // And there is room for another.
            write(number, 9);
            assert_eq!(faults.take().map(|late| late.fault), Some(fault(9)));
        }
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), count);
    }
}
