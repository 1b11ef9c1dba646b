//! Which architecture and which version of PTX to compile for, by what the device is and what its driver reads.

use std::fmt;

/// An architecture and a version of PTX that knows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PtxTarget {
    /// A compute capability: 90 for 9.0.
    pub capability: u32,
    /// 78 for 7.8.
    pub version: u32,
}

/// The driver reads no PTX that LLVM writes for such devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverTooOld {
    /// The oldest one that does, in the driver's numbering: 11080 for CUDA 11.8.
    pub needed: u32,
}

impl fmt::Display for DriverTooOld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a driver for CUDA {}.{} or newer is needed", self.needed / 1000, self.needed % 1000 / 10)
    }
}

impl std::error::Error for DriverTooOld {}

/// Drivers, each with the newest PTX that it reads, as far as LLVM 19 writes it.
const DRIVERS: [(u32, u32); 15] = [
    (11_000, 70),
    (11_010, 71),
    (11_020, 72),
    (11_030, 73),
    (11_040, 74),
    (11_050, 75),
    (11_060, 76),
    (11_070, 77),
    (11_080, 78),
    (12_000, 80),
    (12_010, 81),
    (12_020, 82),
    (12_030, 83),
    (12_040, 84),
    (12_050, 85),
];

/// Architectures that LLVM 19 knows, each with the oldest PTX that does. A driver compiles code for one of them for newer devices, too.
const ARCHITECTURES: [(u32, u32); 8] =
    [(70, 60), (72, 61), (75, 63), (80, 70), (86, 71), (87, 74), (89, 78), (90, 78)];

impl PtxTarget {
    /// What to compile for on a device of this compute capability with a driver of no concern.
    ///
    /// # Panics
    /// If the capability is below 7.0.
    pub fn newest(capability: u32) -> PtxTarget {
        Self::of_device(u32::MAX, capability).expect("the newest driver reads every version")
    }

    /// What to compile for on a device of this compute capability with a driver of this version (12040 for CUDA 12.4): the device's own
    /// architecture, or the newest one before it that LLVM and the driver's PTX know.
    ///
    /// # Panics
    /// If the capability is below 7.0.
    pub fn of_device(driver: u32, capability: u32) -> Result<PtxTarget, DriverTooOld> {
        let reads = DRIVERS.iter().rev().find(|(oldest, _)| *oldest <= driver);
        let &(_, version) = reads.ok_or(DriverTooOld { needed: DRIVERS[0].0 })?;
        let known =
            ARCHITECTURES.iter().rev().find(|(known, needed)| *known <= capability && *needed <= version);
        let &(capability, _) = known.expect("devices have compute capability 7.0 or more");
        Ok(PtxTarget { capability, version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(driver: u32, capability: u32) -> (u32, u32) {
        let target = PtxTarget::of_device(driver, capability).unwrap();
        (target.capability, target.version)
    }

    #[test]
    fn drivers_get_the_newest_ptx_that_they_read() {
        assert_eq!(chosen(11_080, 90), (90, 78));
        assert_eq!(chosen(12_000, 90), (90, 80));
        assert_eq!(chosen(12_030, 75), (75, 83));
        assert_eq!(chosen(12_090, 90), (90, 85));
        assert_eq!(chosen(13_000, 90), (90, 85));
        assert_eq!(PtxTarget::of_device(10_020, 75), Err(DriverTooOld { needed: 11_000 }));
    }

    #[test]
    fn devices_that_llvm_does_not_know_get_code_for_older_ones() {
        assert_eq!(chosen(13_000, 120), (90, 85));
        assert_eq!(chosen(13_000, 88), (87, 85));
        // This driver's PTX does not know 9.0 yet.
        assert_eq!(chosen(11_040, 90), (87, 74));
    }
}
