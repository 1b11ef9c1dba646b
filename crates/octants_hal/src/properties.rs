//! What a device says of itself.

use crate::host;

macro_rules! properties {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A device, in numbers. What it does not have, or does not tell, is 0.
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        pub struct DeviceProperties {
            /// A name for people.
            pub name: String,
            $($(#[$doc])* pub $name: u64,)*
        }

        impl DeviceProperties {
            /// The names of the numbers.
            pub const NUMBERS: &[&str] = &[$(stringify!($name)),*];

            /// The numbers, in the order of their names.
            pub fn numbers(&self) -> Vec<u64> {
                vec![$(self.$name),*]
            }

            /// From numbers in that order; those that are missing are 0.
            pub fn from_numbers(name: String, numbers: &[u64]) -> Self {
                let mut numbers = numbers.iter().copied();
                Self { name, $($name: numbers.next().unwrap_or(0)),* }
            }
        }
    };
}

properties! {
    /// Which instructions the device has.
    capability_major,
    capability_minor,
    /// The newest platform that its driver supports.
    driver_major,
    driver_minor,
    /// Multiprocessors of a GPU; threads that a CPU runs loops on.
    cores,
    /// Lanes that run in step.
    subgroup_size,
    /// Threads that a core runs at once, at most.
    max_threads_per_core,
    max_blocks_per_core,
    max_threads_per_block,
    /// Bytes that the threads of a block can share in any launch.
    shared_bytes_per_block,
    /// The same in a launch that asks for more.
    max_shared_bytes_per_block,
    /// Bytes of a core that its blocks have together.
    shared_bytes_per_core,
    /// Registers of 32 bits.
    registers_per_block,
    registers_per_core,
    /// Bytes of the second-level cache: a GPU's, or one core's of a CPU.
    l2_bytes,
    /// Bytes of memory, and those of them that nobody uses now.
    total_bytes,
    free_bytes,
}

/// Bytes that the threads of a block can share where that is ordinary memory. As many as on an H200: what fits there fits here, and the other way round.
const HOST_SHARED_BYTES: u64 = 227 << 10;

/// Lanes of a subgroup, and threads of a block at most, where a thread of the host runs them in turn: as on every GPU.
const HOST_LANES: u64 = 32;
const HOST_BLOCK: u64 = 1024;

impl DeviceProperties {
    /// Of a device whose threads are the host's, so many of them.
    pub fn of_host(name: String, threads: usize) -> Self {
        let (total_bytes, free_bytes) = (host::total_memory(), host::free_memory());
        Self {
            name,
            cores: threads as u64,
            subgroup_size: HOST_LANES,
            max_threads_per_core: 1,
            max_blocks_per_core: 1,
            max_threads_per_block: HOST_BLOCK,
            shared_bytes_per_block: HOST_SHARED_BYTES,
            max_shared_bytes_per_block: HOST_SHARED_BYTES,
            shared_bytes_per_core: HOST_SHARED_BYTES,
            l2_bytes: host::second_level_cache(),
            total_bytes,
            free_bytes: free_bytes.min(total_bytes),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_travel_in_the_order_of_their_names() {
        let of = DeviceProperties::of_host("some".to_owned(), 3);
        assert_eq!(DeviceProperties::from_numbers("some".to_owned(), &of.numbers()), of);
        let at = DeviceProperties::NUMBERS.iter().position(|&name| name == "cores").unwrap();
        assert_eq!(of.numbers()[at], 3);
        assert_eq!(DeviceProperties::from_numbers(String::new(), &[9]).capability_major, 9);
    }

    #[test]
    fn a_host_has_memory() {
        let of = DeviceProperties::of_host(host::processor_name(), 1);
        assert!(!of.name.is_empty());
        assert!(of.total_bytes > 64 << 20 && of.free_bytes <= of.total_bytes, "{of:?}");
    }
}
