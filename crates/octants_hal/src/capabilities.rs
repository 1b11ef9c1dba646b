//! What a device can do, as bits: callers ask for a bit, never for a vendor.

use std::fmt;
use std::ops::BitOr;

/// A set of capabilities.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Capabilities(u32);

macro_rules! capabilities {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        impl Capabilities {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*
        }

        const NAMES: &[(Capabilities, &str)] = &[$((Capabilities::$name, stringify!($name))),*];
    };
}

capabilities! {
    /// Addresses of the device are addresses of the host, and the other way round.
    HOST_MEMORY = 0;
    /// Bounds of a parallel loop may lie in the device's memory ([`Domain::DeviceRange`](crate::Domain::DeviceRange)).
    DEVICE_BOUNDS = 1;
    /// More streams than the default one, and events between them.
    STREAMS = 2;
    /// Code reads the flag [`LaunchContext::cancel`](crate::LaunchContext::cancel) while it runs.
    CANCEL = 3;
    /// Streams that another library made on the same device can be used, by their handles.
    EXTERNAL_STREAMS = 4;
    /// A task is not begun once the launch's [`FaultRecord`](crate::FaultRecord) tells of a fault, whatever its stream: whoever launches
    /// need not look between tasks.
    STOPS_AT_FAULT = 5;
    /// Parts of a range of addresses get memory while code runs that waits for it ([`Device::reserve_range`](crate::Device::reserve_range)).
    GROWING_RANGES = 6;
    /// Code asks for memory of reservations where it needs some, and goes on without a wait. What it may use at first is told by
    /// [`Device::commit`](crate::Device::commit).
    COMMITS_ON_DEMAND = 7;
    /// A launch is over when its verb returns, on every stream, and the verb ends early where
    /// [`LaunchContext::caller`](crate::LaunchContext::caller) asks for it.
    RUNS_IN_VERBS = 8;
}

impl Capabilities {
    pub const NONE: Self = Self(0);

    /// Whether all of `needed` are there.
    pub const fn has(self, needed: Self) -> bool {
        self.0 & needed.0 == needed.0
    }
}

impl BitOr for Capabilities {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = NAMES.iter().filter(|(bit, _)| self.has(*bit)).map(|(_, name)| *name).peekable();
        if names.peek().is_none() {
            return f.write_str("none");
        }
        while let Some(name) = names.next() {
            f.write_str(name)?;
            if names.peek().is_some() {
                f.write_str(" | ")?;
            }
        }
        Ok(())
    }
}
