//! The driver's functions as one table.
//!
//! [`DriverTable`] is a struct of function pointers with neutral names; [`Symbols`] has the names that a vendor gives them. Some a driver may lack, which the device
//! does without. Tests fill the table with functions that record their calls.

use std::ffi::{c_char, c_int, c_uint, c_void};

use octants_hal::Rows;

use crate::vendor::Flags;

/// What every function returns; zero is success.
pub type Status = c_int;

/// A driver's handle: a context, stream, event, module, function, memory pool or linker.
pub type Handle = *mut c_void;

macro_rules! driver_table {
    (
        optional { $($(#[$optional_doc:meta])* $optional:ident($($optional_arg:ident: $optional_ty:ty),*);)* }
        $($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*);)*
    ) => {
        /// What a vendor calls the functions.
        pub struct Symbols {
            $(pub $name: &'static str,)*
            $(pub $optional: Option<&'static str>,)*
        }

        /// The functions, resolved.
        pub struct DriverTable {
            $($(#[$doc])* pub $name: unsafe extern "C" fn($($arg: $ty),*) -> Status,)*
            $($(#[$optional_doc])* pub $optional: Option<unsafe extern "C" fn($($optional_arg: $optional_ty),*) -> Status>,)*
        }

        impl DriverTable {
            /// Looks every symbol up; the first one that is missing is the error, unless it is optional.
            ///
            /// # Safety
            /// What `find` gives for a symbol has the signature of the table's entry.
            pub unsafe fn resolve(
                symbols: &Symbols,
                find: impl Fn(&str) -> Option<*const c_void>,
            ) -> Result<Self, &'static str> {
                Ok(Self {
                    // SAFETY: the caller vouches for the signature.
                    $($name: unsafe { std::mem::transmute::<*const c_void, unsafe extern "C" fn($($ty),*) -> Status>(
                        find(symbols.$name).ok_or(symbols.$name)?,
                    ) },)*
                    // SAFETY: as above.
                    $($optional: symbols.$optional.and_then(&find).map(|found| unsafe {
                        std::mem::transmute::<*const c_void, unsafe extern "C" fn($($optional_ty),*) -> Status>(found)
                    }),)*
                })
            }
        }

        /// A table whose functions hand their names and arguments to whoever listens on this thread.
        #[cfg(test)]
        pub mod recorded {
            use super::*;
            use crate::driver::recording::{Word, called};

            $(unsafe extern "C" fn $name($($arg: $ty),*) -> Status {
                called(stringify!($name), &[$($arg.word()),*])
            })*
            $(unsafe extern "C" fn $optional($($optional_arg: $optional_ty),*) -> Status {
                called(stringify!($optional), &[$($optional_arg.word()),*])
            })*

            pub const TABLE: DriverTable = DriverTable { $($name,)* $($optional: Some($optional),)* };

            /// Names of a vendor's that has them all.
            pub const SYMBOLS: Symbols = Symbols {
                $($name: concat!("own_", stringify!($name)),)*
                $($optional: Some(concat!("own_", stringify!($optional))),)*
            };

            /// The addresses of the functions, by the vendor's names for them.
            pub fn find(symbols: &Symbols, wanted: &str) -> Option<*const c_void> {
                $(if symbols.$name == wanted {
                    return Some($name as *const c_void);
                })*
                $(if symbols.$optional == Some(wanted) {
                    return Some($optional as *const c_void);
                })*
                None
            }
        }
    };
}

driver_table! {
    optional {
        /// Brings a function's code to the device now, not at its first launch, which would wait for all that runs. CUDA 12.4.
        function_load(function: Handle);
        range_reserve(address: *mut u64, bytes: usize, alignment: usize, wanted: u64, flags: u64);
        range_free(address: u64, bytes: usize);
        memory_create(memory: *mut u64, bytes: usize, properties: *const AllocationProperties, flags: u64);
        /// What is mapped stays until it is unmapped.
        memory_release(memory: u64);
        memory_map(address: u64, bytes: usize, offset: usize, memory: u64, flags: u64);
        memory_unmap(address: u64, bytes: usize);
        memory_set_access(address: u64, bytes: usize, access: *const MemoryAccess, count: usize);
        copy_3d(copy: *const Copy3d, stream: Handle);
        /// Takes the same options as `module_load`.
        linker_create(
            count: c_uint, options: *mut c_int, values: *mut *mut c_void, linker: *mut Handle
        );
        linker_add(
            linker: Handle, kind: c_int, data: *mut c_void, bytes: usize, name: *const c_char, count: c_uint,
            options: *mut c_int, values: *mut *mut c_void
        );
        /// The machine code is the linker's.
        linker_complete(linker: Handle, code: *mut *mut c_void, bytes: *mut usize);
        linker_destroy(linker: Handle);
        launch_with_attributes(
            config: *const LaunchConfig, function: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void
        );
    }

    init(flags: c_uint);
    driver_version(version: *mut c_int);
    error_name(status: Status, text: *mut *const c_char);
    error_text(status: Status, text: *mut *const c_char);

    device_count(count: *mut c_int);
    device_get(device: *mut c_int, ordinal: c_int);
    device_name(name: *mut c_char, length: c_int, device: c_int);
    device_attribute(value: *mut c_int, attribute: c_int, device: c_int);

    /// The context that all libraries of a process share, so that their memory is ours too.
    context_retain(context: *mut Handle, device: c_int);
    context_release(device: c_int);
    /// Ends what the context holds, for every library of the process.
    context_reset(device: c_int);
    context_get_current(context: *mut Handle);
    context_set_current(context: Handle);
    context_synchronise();

    context_limit(value: *mut usize, limit: c_int);
    /// The priorities that streams may have; a smaller number goes first.
    context_priorities(least: *mut c_int, greatest: *mut c_int);
    context_set_limit(limit: c_int, value: usize);

    pool_create(pool: *mut Handle, properties: *const PoolProperties);
    pool_destroy(pool: Handle);
    pool_set_attribute(pool: Handle, attribute: c_int, value: *mut c_void);
    allocate_async(address: *mut u64, bytes: usize, pool: Handle, stream: Handle);
    free_async(address: u64, stream: Handle);
    pool_trim(pool: Handle, bytes: usize);
    memory_info(free: *mut usize, total: *mut usize);
    host_allocate(memory: *mut *mut c_void, bytes: usize, flags: c_uint);
    host_free(memory: *mut c_void);
    host_address(address: *mut u64, memory: *mut c_void, flags: c_uint);

    copy_to_device(to: u64, from: *const c_void, bytes: usize, stream: Handle);
    copy_to_host(to: *mut c_void, from: u64, bytes: usize, stream: Handle);
    copy(to: u64, from: u64, bytes: usize, stream: Handle);
    copy_2d(copy: *const Copy2d, stream: Handle);
    fill_8(to: u64, value: u8, count: usize, stream: Handle);
    fill_16(to: u64, value: u16, count: usize, stream: Handle);
    fill_32(to: u64, value: c_uint, count: usize, stream: Handle);

    stream_create(stream: *mut Handle, flags: c_uint, priority: c_int);
    stream_destroy(stream: Handle);
    stream_synchronise(stream: Handle);
    stream_query(stream: Handle);
    stream_wait(stream: Handle, event: Handle, flags: c_uint);

    event_create(event: *mut Handle, flags: c_uint);
    event_destroy(event: Handle);
    event_synchronise(event: Handle);
    event_query(event: Handle);
    event_record(event: Handle, stream: Handle);
    event_elapsed(milliseconds: *mut f32, start: Handle, end: Handle);
    /// Loads machine code, or compiles text. Options are numbers, each with a value that is a pointer or fits one.
    module_load(
        module: *mut Handle, image: *const c_void, count: c_uint, options: *mut c_int, values: *mut *mut c_void
    );
    module_unload(module: Handle);
    module_function(function: *mut Handle, module: Handle, name: *const c_char);
    function_attribute(value: *mut c_int, attribute: c_int, function: Handle);
    function_set_attribute(function: Handle, attribute: c_int, value: c_int);
    /// How many blocks of a function one multiprocessor runs at once.
    resident_blocks(
        blocks: *mut c_int, function: Handle, threads: c_int, shared_bytes: usize
    );
    launch(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
        block_z: c_uint, shared_bytes: c_uint, stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void
    );
}

/// What a launch takes beside its parameters.
#[repr(C)]
#[derive(Debug)]
pub struct LaunchConfig {
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared_bytes: c_uint,
    pub stream: Handle,
    pub attributes: *const LaunchAttribute,
    pub attribute_count: c_uint,
}

/// One attribute of a launch.
#[repr(C, align(8))]
#[derive(Debug)]
pub struct LaunchAttribute {
    pub kind: c_int,
    pub padding: c_int,
    pub value: [u8; 64],
}

impl LaunchAttribute {
    /// The kernel waits for the one before it.
    pub fn waits(flags: &Flags) -> Self {
        let mut value = [0; 64];
        value[0] = 1;
        Self { kind: flags.dependent_launch, padding: 0, value }
    }
}

/// A copy with rows on both sides.
#[repr(C)]
#[derive(Debug)]
pub struct Copy2d {
    pub from: Side2d,
    pub to: Side2d,
    pub row_bytes: usize,
    pub rows: usize,
}

#[repr(C)]
#[derive(Debug)]
pub struct Side2d {
    pub x_bytes: usize,
    pub y: usize,
    pub kind: c_int,
    pub host: *mut c_void,
    pub device: u64,
    pub array: Handle,
    pub stride: usize,
}

impl Copy2d {
    /// The rows of one slice, which lie side by side where they come from.
    pub fn rows(to: u64, from: u64, rows: &Rows, flags: &Flags) -> Self {
        let side = |device, stride| Side2d {
            x_bytes: 0,
            y: 0,
            kind: flags.device_memory,
            host: std::ptr::null_mut(),
            device,
            array: std::ptr::null_mut(),
            stride,
        };
        Self {
            from: side(from, rows.bytes),
            to: side(to, rows.stride),
            row_bytes: rows.bytes,
            rows: rows.count,
        }
    }
}

/// A copy with slices of rows on both sides.
#[repr(C)]
#[derive(Debug)]
pub struct Copy3d {
    pub from: Side3d,
    pub to: Side3d,
    pub row_bytes: usize,
    pub rows: usize,
    pub slices: usize,
}

#[repr(C)]
#[derive(Debug)]
pub struct Side3d {
    pub x_bytes: usize,
    pub y: usize,
    pub z: usize,
    pub level: usize,
    pub kind: c_int,
    pub host: *mut c_void,
    pub device: u64,
    pub array: Handle,
    pub reserved: *mut c_void,
    pub stride: usize,
    /// Rows from a slice to the next one.
    pub slice_rows: usize,
}

impl Copy3d {
    /// All rows, which lie side by side where they come from; slices are whole rows apart.
    pub fn rows(to: u64, from: u64, rows: &Rows, flags: &Flags) -> Self {
        let side = |device, stride, slice_rows| Side3d {
            x_bytes: 0,
            y: 0,
            z: 0,
            level: 0,
            kind: flags.device_memory,
            host: std::ptr::null_mut(),
            device,
            array: std::ptr::null_mut(),
            reserved: std::ptr::null_mut(),
            stride,
            slice_rows,
        };
        Self {
            from: side(from, rows.bytes, rows.count),
            to: side(to, rows.stride, rows.slice_stride / rows.stride),
            row_bytes: rows.bytes,
            rows: rows.count,
            slices: rows.slices,
        }
    }
}

/// What descriptions of memory begin with.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemoryKind {
    pub allocation_kind: c_int,
    pub handle_kinds: c_int,
    pub location_kind: c_int,
    pub location: c_int,
    pub security: *mut c_void,
}

impl MemoryKind {
    /// Plain memory of one device.
    fn of_device(device: c_int, flags: &Flags) -> Self {
        Self {
            allocation_kind: flags.plain_allocation,
            handle_kinds: 0,
            location_kind: flags.on_device,
            location: device,
            security: std::ptr::null_mut(),
        }
    }
}

/// Which memory a pool is made of.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PoolProperties {
    pub memory: MemoryKind,
    pub max_bytes: usize,
    pub usage: u16,
    pub reserved: [u8; 54],
}

impl PoolProperties {
    /// Plain memory of one device.
    pub fn of_device(device: c_int, flags: &Flags) -> Self {
        Self { memory: MemoryKind::of_device(device, flags), max_bytes: 0, usage: 0, reserved: [0; 54] }
    }
}

/// Which memory is to be mapped.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AllocationProperties {
    pub memory: MemoryKind,
    pub flags: [u8; 8],
}

impl AllocationProperties {
    /// Plain memory of one device.
    pub fn of_device(device: c_int, flags: &Flags) -> Self {
        Self { memory: MemoryKind::of_device(device, flags), flags: [0; 8] }
    }
}

/// Who may touch mapped memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemoryAccess {
    pub location_kind: c_int,
    pub location: c_int,
    pub flags: c_int,
}

impl MemoryAccess {
    /// The device reads and writes it.
    pub fn of_device(device: c_int, flags: &Flags) -> Self {
        Self { location_kind: flags.on_device, location: device, flags: flags.read_and_write }
    }
}

/// The functions that make machine code of text.
#[derive(Clone, Copy)]
pub struct Linker {
    pub create: unsafe extern "C" fn(c_uint, *mut c_int, *mut *mut c_void, *mut Handle) -> Status,
    pub add: unsafe extern "C" fn(
        Handle,
        c_int,
        *mut c_void,
        usize,
        *const c_char,
        c_uint,
        *mut c_int,
        *mut *mut c_void,
    ) -> Status,
    pub complete: unsafe extern "C" fn(Handle, *mut *mut c_void, *mut usize) -> Status,
    pub destroy: unsafe extern "C" fn(Handle) -> Status,
}

/// The functions that give addresses and memory apart from each other.
#[derive(Clone, Copy)]
pub struct VirtualMemory {
    pub reserve: unsafe extern "C" fn(*mut u64, usize, usize, u64, u64) -> Status,
    pub free: unsafe extern "C" fn(u64, usize) -> Status,
    pub create: unsafe extern "C" fn(*mut u64, usize, *const AllocationProperties, u64) -> Status,
    pub release: unsafe extern "C" fn(u64) -> Status,
    pub map: unsafe extern "C" fn(u64, usize, usize, u64, u64) -> Status,
    pub unmap: unsafe extern "C" fn(u64, usize) -> Status,
    pub set_access: unsafe extern "C" fn(u64, usize, *const MemoryAccess, usize) -> Status,
}

impl DriverTable {
    /// None if one of its functions is missing.
    pub fn linker(&self) -> Option<Linker> {
        Some(Linker {
            create: self.linker_create?,
            add: self.linker_add?,
            complete: self.linker_complete?,
            destroy: self.linker_destroy?,
        })
    }

    /// None if one of its functions is missing.
    pub fn virtual_memory(&self) -> Option<VirtualMemory> {
        Some(VirtualMemory {
            reserve: self.range_reserve?,
            free: self.range_free?,
            create: self.memory_create?,
            release: self.memory_release?,
            map: self.memory_map?,
            unmap: self.memory_unmap?,
            set_access: self.memory_set_access?,
        })
    }
}
