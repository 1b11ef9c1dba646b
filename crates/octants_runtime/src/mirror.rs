//! Arrays of the host as arguments of a launch on a device that does not see the host's memory.
//!
//! Bytes travel to the device before the launch, and those that the kernel may write travel back after it. Arrays that overlap on the
//! host overlap on the device: ranges that share bytes become one range there.

use std::ops::Range;
use std::sync::Arc;

use octants_hal::{Address, Cancel, DeviceError, Stream};

use crate::context::Context;
use crate::memory::MemoryError;

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
    copies: Staging,
    /// Where the device has each part of the copies.
    parts: Vec<Address>,
}

/// The copies around a launch, by the parts of the host's memory that they are of: the device has them somewhere else each time.
#[derive(PartialEq, Eq, Debug)]
struct Staging {
    /// Disjoint, in the order of addresses. Each is copied to the device, whole.
    parts: Vec<Range<u64>>,
    /// Parts and bytes of them that are copied back.
    back: Vec<(usize, Range<usize>)>,
}

impl Staging {
    fn of(ranges: &[HostRange]) -> Self {
        let mut sorted: Vec<_> = ranges.iter().map(|range| range.addresses.clone()).collect();
        sorted.retain(|range| !range.is_empty());
        sorted.sort_by_key(|range| range.start);
        let mut parts: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
        for range in sorted {
            match parts.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => parts.push(range),
            }
        }
        let mut staging = Self { parts, back: Vec::new() };
        for range in ranges.iter().filter(|range| range.written && !range.addresses.is_empty()) {
            let Range { start, end } = range.addresses;
            if let Some((part, first)) = staging.find(start) {
                staging.back.push((part, first..first + (end - start) as usize));
            }
        }
        staging
    }

    /// The part that an address of the host lies in, and how many bytes of the part lie before it.
    fn find(&self, host: u64) -> Option<(usize, usize)> {
        let part = self.parts.iter().position(|part| part.contains(&host))?;
        Some((part, (host - self.parts[part].start) as usize))
    }
}

impl Mirror {
    /// Copies the ranges to the device. Raising `cancel` ends a wait for room.
    pub fn new(
        context: &Arc<Context>,
        stream: Stream,
        ranges: &[HostRange],
        cancel: &Cancel,
    ) -> Result<Self, MemoryError> {
        let copies = Staging::of(ranges);
        let parts = Vec::with_capacity(copies.parts.len());
        let mut mirror = Self { context: Arc::clone(context), stream, copies, parts };
        for host in &mirror.copies.parts {
            let (from, bytes) = (host.start as *const u8, (host.end - host.start) as usize);
            // SAFETY: the stream is a live one of the context; whoever made the ranges vouches for the host's bytes.
            unsafe {
                let allocate = || context.device().allocate_scratch(stream, bytes);
                let device = context.making_room(cancel, allocate)?.ok_or(MemoryError::Cancelled)?;
                mirror.parts.push(device);
                context.device().copy_to_device(stream, device, from, bytes)?;
            }
        }
        Ok(mirror)
    }

    /// Where the device has the byte at this address of the host, which one of the ranges begins with. Null for an empty range.
    pub fn address(&self, host: u64) -> Address {
        self.copies.find(host).map_or(Address::NULL, |(part, offset)| self.parts[part].offset(offset))
    }

    /// Whether there is something to copy back.
    pub fn is_written(&self) -> bool {
        !self.copies.back.is_empty()
    }

    /// Copies back what the kernel may have written, and waits for it.
    pub fn copy_back(&self) -> Result<(), DeviceError> {
        for (part, bytes) in &self.copies.back {
            let to = (self.copies.parts[*part].start as *mut u8).wrapping_add(bytes.start);
            let from = self.parts[*part].offset(bytes.start);
            // SAFETY: whoever made the ranges vouches for the host's bytes, which the device has room for.
            unsafe { self.context.device().copy_to_host(self.stream, to, from, bytes.len())? };
        }
        Ok(())
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        for (host, &device) in self.copies.parts.iter().zip(&self.parts) {
            let bytes = (host.end - host.start) as usize;
            // SAFETY: allocated for this stream, and nobody has the address any more.
            unsafe { self.context.device().free_scratch(self.stream, device, bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octants_hal::null::NullDevice;

    fn range(first: u64, bytes: usize, written: bool) -> HostRange {
        // SAFETY: nothing reads there: the null device copies nothing.
        unsafe { HostRange::new(first, bytes, written) }
    }

    #[test]
    fn ranges_that_overlap_are_one_part_and_come_back_one_by_one() {
        let ranges =
            [range(0x40, 8, true), range(0x10, 16, false), range(0x18, 16, true), range(0x20, 0, true)];
        let copies = Staging::of(&ranges);
        assert_eq!(copies.parts, [0x10..0x28, 0x40..0x48]);
        assert_eq!(copies.back, [(1, 0..8), (0, 8..24)]);
        let device = Arc::new(NullDevice::new());
        let context = Context::new(device.clone());
        let mirror = Mirror::new(&context, Stream(0), &ranges, &Cancel::new()).unwrap();
        assert_eq!(mirror.address(0x18).0, mirror.address(0x10).0 + 8);
        assert_eq!(mirror.address(0x80), Address::NULL);
        mirror.copy_back().unwrap();
        drop(mirror);
        let trace = device.take_trace();
        let copies: Vec<_> = trace.iter().filter(|line| line.starts_with("copy")).collect();
        let [to, back] = ["copy_to_device", "copy_to_host"];
        assert_eq!(
            copies,
            [
                &format!("{to} 24 on 0"),
                &format!("{to} 8 on 0"),
                &format!("{back} 8 on 0"),
                &format!("{back} 16 on 0")
            ]
        );
    }
}
