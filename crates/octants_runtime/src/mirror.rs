//! Arrays of the host as arguments of a launch on a device that does not see the host's memory.
//!
//! Bytes travel to the device before the launch, and those that the kernel may write travel back after it. Arrays that overlap on the
//! host overlap on the device: ranges that share bytes become one range there.

use std::ops::Range;
use std::sync::Arc;

use octants_hal::{Address, DeviceError, Stream};

use crate::context::Context;

/// Bytes of the host that an argument stands for.
#[derive(Clone, Debug)]
pub struct HostRange {
    addresses: Range<u64>,
    /// Whether the kernel may write them.
    written: bool,
}

impl HostRange {
    /// # Safety
    /// The range is valid for reading, and for writing if that is said, as long as a [`Mirror`] that it was given to lives.
    pub unsafe fn new(address: u64, bytes: usize, written: bool) -> Self {
        Self { addresses: address..address + bytes as u64, written }
    }

    /// Where it begins on the host.
    pub fn address(&self) -> u64 {
        self.addresses.start
    }
}

/// The device's side of host ranges, for one launch.
pub struct Mirror {
    context: Arc<Context>,
    stream: Stream,
    /// Disjoint, in the order of addresses.
    parts: Vec<Part>,
    written: Vec<Range<u64>>,
}

struct Part {
    host: Range<u64>,
    device: Address,
}

impl Mirror {
    /// Copies the ranges to the device.
    pub fn new(context: &Arc<Context>, stream: Stream, ranges: &[HostRange]) -> Result<Self, DeviceError> {
        let mut sorted: Vec<_> = ranges.iter().map(|range| range.addresses.clone()).collect();
        sorted.retain(|range| !range.is_empty());
        sorted.sort_by_key(|range| range.start);
        let mut unions: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
        for range in sorted {
            match unions.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => unions.push(range),
            }
        }
        let written = ranges.iter().filter(|range| range.written && !range.addresses.is_empty());
        let mut mirror = Self {
            context: Arc::clone(context),
            stream,
            parts: Vec::with_capacity(unions.len()),
            written: written.map(|range| range.addresses.clone()).collect(),
        };
        for host in unions {
            let (from, bytes) = (host.start as *const u8, (host.end - host.start) as usize);
            // SAFETY: the stream is a live one of the context; whoever made the ranges vouches for the host's bytes.
            unsafe {
                let device = context.making_room(|| context.device().allocate_scratch(stream, bytes))?;
                mirror.parts.push(Part { host, device });
                context.device().copy_to_device(stream, device, from, bytes)?;
            }
        }
        Ok(mirror)
    }

    /// Where the device has the byte at this address of the host, which one of the ranges begins with. Null for an empty range.
    pub fn address(&self, host: u64) -> Address {
        let part = self.parts.iter().find(|part| part.host.contains(&host));
        part.map_or(Address::NULL, |part| part.device.offset((host - part.host.start) as usize))
    }

    /// Whether there is something to copy back.
    pub fn is_written(&self) -> bool {
        !self.written.is_empty()
    }

    /// Copies back what the kernel may have written, and waits for it.
    pub fn copy_back(&self) -> Result<(), DeviceError> {
        for range in &self.written {
            let (to, bytes) = (range.start as *mut u8, (range.end - range.start) as usize);
            // SAFETY: whoever made the ranges vouches for the host's bytes, which the device has room for.
            unsafe {
                self.context.device().copy_to_host(self.stream, to, self.address(range.start), bytes)?;
            }
        }
        Ok(())
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        for Part { host, device } in &self.parts {
            let bytes = (host.end - host.start) as usize;
            // SAFETY: allocated for this stream, and nobody has the address any more.
            unsafe { self.context.device().free_scratch(self.stream, *device, bytes) };
        }
    }
}
