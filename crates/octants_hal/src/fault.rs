//! The record that generated code writes when a check fails.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How many arguments of a message a record holds.
pub const FAULT_ARGUMENTS: usize = 8;

/// The first fault of a launch. Lies in memory that the device can write; zero means that nothing failed.
///
/// Code that fails exchanges `state` from 0 to 1; who succeeds writes the rest and then sets `state` to 2. All of it may be written
/// while the host holds the record, so every field is atomic.
#[repr(C)]
#[derive(Debug, Default)]
pub struct FaultRecord {
    /// 0: none; 1: being written; 2: complete.
    state: AtomicU32,
    /// Which check of the kernel; the compiler knows what stands there.
    site: AtomicU32,
    /// The arguments' bits, each in the low bits of its word.
    arguments: [AtomicU64; FAULT_ARGUMENTS],
}

/// What a record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    pub site: u32,
    pub arguments: [u64; FAULT_ARGUMENTS],
}

impl FaultRecord {
    pub const STATE_OFFSET: usize = std::mem::offset_of!(FaultRecord, state);
    pub const SITE_OFFSET: usize = std::mem::offset_of!(FaultRecord, site);
    pub const ARGUMENTS_OFFSET: usize = std::mem::offset_of!(FaultRecord, arguments);

    pub const fn new() -> Self {
        Self {
            state: AtomicU32::new(0),
            site: AtomicU32::new(0),
            arguments: [const { AtomicU64::new(0) }; FAULT_ARGUMENTS],
        }
    }

    /// Whether a check failed. Complete once the launch is over.
    pub fn happened(&self) -> bool {
        self.state.load(Ordering::Acquire) != 0
    }

    /// Writes a fault as code does, unless another was first.
    pub fn write(&self, fault: &Fault) {
        if self.state.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.site.store(fault.site, Ordering::Relaxed);
            for (word, &argument) in self.arguments.iter().zip(&fault.arguments) {
                word.store(argument, Ordering::Relaxed);
            }
            self.state.store(2, Ordering::Release);
        }
    }

    /// The fault, if there was one. The launch is over.
    pub fn fault(&self) -> Option<Fault> {
        self.happened().then(|| Fault {
            site: self.site.load(Ordering::Relaxed),
            arguments: std::array::from_fn(|n| self.arguments[n].load(Ordering::Relaxed)),
        })
    }

    /// The fault, if there was one and all of it is written; there is none from now on. Other launches may still write the record.
    pub fn take(&self) -> Option<Fault> {
        let complete = self.state.load(Ordering::Acquire) == 2;
        let fault = complete.then(|| self.fault()).flatten()?;
        self.state.store(0, Ordering::Release);
        Some(fault)
    }

    /// A record from the bytes that a device holds it in.
    ///
    /// # Panics
    /// If there are not as many bytes as a record has.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let argument = |n: usize| {
            let at = Self::ARGUMENTS_OFFSET + 8 * n;
            u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
        };
        Self {
            state: word(Self::STATE_OFFSET).into(),
            site: word(Self::SITE_OFFSET).into(),
            arguments: std::array::from_fn(|n| argument(n).into()),
        }
    }
}
