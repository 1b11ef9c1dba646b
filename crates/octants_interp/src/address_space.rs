//! Memory as the interpreter sees it: bytes at addresses. The runtime puts real memory behind it, tests put buffers.

use std::fmt;

/// Bytes at addresses. The interpreter has checked indices against shapes before it asks; an implementation decides only
/// whether the address is backed.
pub trait AddressSpace {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryFault>;
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryFault>;

    /// Replaces what lies there by what `change` makes of it, as one step. A space that several threads share has to say how.
    fn update(
        &mut self,
        address: u64,
        bytes: &mut [u8],
        change: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), MemoryFault> {
        self.read(address, bytes)?;
        change(bytes);
        self.write(address, bytes)
    }
}

/// An address with nothing behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryFault {
    pub address: u64,
    pub bytes: usize,
}

impl fmt::Display for MemoryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no memory behind {} bytes at {:#x}", self.bytes, self.address)
    }
}

/// An address space of byte buffers, each at an address of its own.
#[derive(Clone, Debug, Default)]
pub struct Buffers {
    buffers: Vec<Vec<u8>>,
}

/// Buffers lie this far apart: no buffer is that large, and an index that leaves one hits none.
const BUFFER_STRIDE_BYTES: u64 = 1 << 40;

impl Buffers {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a buffer in; where it begins.
    pub fn add(&mut self, bytes: Vec<u8>) -> u64 {
        self.buffers.push(bytes);
        self.buffers.len() as u64 * BUFFER_STRIDE_BYTES
    }

    /// The buffer that begins at the address.
    ///
    /// # Panics
    /// If none does.
    pub fn bytes(&self, address: u64) -> &[u8] {
        &self.buffers[(address / BUFFER_STRIDE_BYTES) as usize - 1]
    }

    fn locate(&self, address: u64, bytes: usize) -> Result<(usize, std::ops::Range<usize>), MemoryFault> {
        let fault = MemoryFault { address, bytes };
        let number = usize::try_from(address / BUFFER_STRIDE_BYTES)
            .ok()
            .and_then(|n| n.checked_sub(1))
            .ok_or(fault)?;
        let start = (address % BUFFER_STRIDE_BYTES) as usize;
        let range = start..start + bytes;
        match self.buffers.get(number) {
            Some(buffer) if range.end <= buffer.len() => Ok((number, range)),
            _ => Err(fault),
        }
    }
}

impl AddressSpace for Buffers {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        let (number, range) = self.locate(address, bytes.len())?;
        bytes.copy_from_slice(&self.buffers[number][range]);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let (number, range) = self.locate(address, bytes.len())?;
        self.buffers[number][range].copy_from_slice(bytes);
        Ok(())
    }
}
