//! The driver's functions as one table.
//!
//! [`DriverTable`] is all that the device knows of a vendor: a struct of function pointers with neutral names, each declared beside the
//! symbol of NVIDIA's library. Another vendor whose functions have the same shapes is another list of symbols. Tests fill the table
//! with functions that record their calls.

use std::ffi::{c_char, c_int, c_uint, c_void};

use octants_hal::Rows;

/// What every function returns; zero is success.
pub type Status = c_int;

/// A driver's handle: a context, stream, event, module, function, memory pool or linker.
pub type Handle = *mut c_void;

macro_rules! driver_table {
    (
        newer { $($(#[$newer_doc:meta])* $newer:ident = $newer_symbol:literal ($($newer_arg:ident: $newer_ty:ty),*);)* }
        $($(#[$doc:meta])* $name:ident = $symbol:literal ($($arg:ident: $ty:ty),*);)*
    ) => {
        /// The functions, resolved. Older drivers have none of those that are optional.
        pub struct DriverTable {
            $($(#[$doc])* pub $name: unsafe extern "C" fn($($arg: $ty),*) -> Status,)*
            $($(#[$newer_doc])* pub $newer: Option<unsafe extern "C" fn($($newer_arg: $newer_ty),*) -> Status>,)*
        }

        impl DriverTable {
            /// Looks every symbol up; the first one that is missing is the error, unless it is one of the newer ones.
            ///
            /// # Safety
            /// A symbol that `find` gives has the signature that the vendor documents for this name.
            pub unsafe fn resolve(
                find: impl Fn(&str) -> Option<*const c_void>,
            ) -> Result<Self, &'static str> {
                Ok(Self {
                    // SAFETY: the caller vouches for the signature.
                    $($name: unsafe { std::mem::transmute::<*const c_void, unsafe extern "C" fn($($ty),*) -> Status>(
                        find($symbol).ok_or($symbol)?,
                    ) },)*
                    // SAFETY: as above.
                    $($newer: find($newer_symbol).map(|found| unsafe {
                        std::mem::transmute::<*const c_void, unsafe extern "C" fn($($newer_ty),*) -> Status>(found)
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
            $(unsafe extern "C" fn $newer($($newer_arg: $newer_ty),*) -> Status {
                called(stringify!($newer), &[$($newer_arg.word()),*])
            })*

            pub const TABLE: DriverTable = DriverTable { $($name,)* $($newer: Some($newer),)* };
        }
    };
}

driver_table! {
    newer {
        /// Brings a function's code to the device now, not at its first launch, which would wait for all that runs. CUDA 12.4.
        function_load = "cuFuncLoad"(function: Handle);
    }

    init = "cuInit"(flags: c_uint);
    driver_version = "cuDriverGetVersion"(version: *mut c_int);
    error_name = "cuGetErrorName"(status: Status, text: *mut *const c_char);
    error_text = "cuGetErrorString"(status: Status, text: *mut *const c_char);

    device_count = "cuDeviceGetCount"(count: *mut c_int);
    device_get = "cuDeviceGet"(device: *mut c_int, ordinal: c_int);
    device_name = "cuDeviceGetName"(name: *mut c_char, length: c_int, device: c_int);
    device_attribute = "cuDeviceGetAttribute"(value: *mut c_int, attribute: c_int, device: c_int);

    /// The context that all libraries of a process share, so that their memory is ours too.
    context_retain = "cuDevicePrimaryCtxRetain"(context: *mut Handle, device: c_int);
    context_release = "cuDevicePrimaryCtxRelease_v2"(device: c_int);
    /// Ends what the context holds, for every library of the process.
    context_reset = "cuDevicePrimaryCtxReset_v2"(device: c_int);
    context_get_current = "cuCtxGetCurrent"(context: *mut Handle);
    context_set_current = "cuCtxSetCurrent"(context: Handle);
    context_synchronise = "cuCtxSynchronize"();

    context_limit = "cuCtxGetLimit"(value: *mut usize, limit: c_int);
    /// The priorities that streams may have; a smaller number goes first.
    context_priorities = "cuCtxGetStreamPriorityRange"(least: *mut c_int, greatest: *mut c_int);
    context_set_limit = "cuCtxSetLimit"(limit: c_int, value: usize);

    pool_create = "cuMemPoolCreate"(pool: *mut Handle, properties: *const PoolProperties);
    pool_destroy = "cuMemPoolDestroy"(pool: Handle);
    pool_set_attribute = "cuMemPoolSetAttribute"(pool: Handle, attribute: c_int, value: *mut c_void);
    allocate_async = "cuMemAllocFromPoolAsync"(address: *mut u64, bytes: usize, pool: Handle, stream: Handle);
    free_async = "cuMemFreeAsync"(address: u64, stream: Handle);
    pool_trim = "cuMemPoolTrimTo"(pool: Handle, bytes: usize);
    range_reserve = "cuMemAddressReserve"(address: *mut u64, bytes: usize, alignment: usize, wanted: u64, flags: u64);
    range_free = "cuMemAddressFree"(address: u64, bytes: usize);
    memory_create = "cuMemCreate"(memory: *mut u64, bytes: usize, properties: *const AllocationProperties, flags: u64);
    /// What is mapped stays until it is unmapped.
    memory_release = "cuMemRelease"(memory: u64);
    memory_map = "cuMemMap"(address: u64, bytes: usize, offset: usize, memory: u64, flags: u64);
    memory_unmap = "cuMemUnmap"(address: u64, bytes: usize);
    memory_set_access = "cuMemSetAccess"(address: u64, bytes: usize, access: *const MemoryAccess, count: usize);
    memory_info = "cuMemGetInfo_v2"(free: *mut usize, total: *mut usize);
    host_allocate = "cuMemHostAlloc"(memory: *mut *mut c_void, bytes: usize, flags: c_uint);
    host_free = "cuMemFreeHost"(memory: *mut c_void);
    host_address = "cuMemHostGetDevicePointer_v2"(address: *mut u64, memory: *mut c_void, flags: c_uint);

    copy_to_device = "cuMemcpyHtoDAsync_v2"(to: u64, from: *const c_void, bytes: usize, stream: Handle);
    copy_to_host = "cuMemcpyDtoHAsync_v2"(to: *mut c_void, from: u64, bytes: usize, stream: Handle);
    copy = "cuMemcpyDtoDAsync_v2"(to: u64, from: u64, bytes: usize, stream: Handle);
    copy_2d = "cuMemcpy2DAsync_v2"(copy: *const Copy2d, stream: Handle);
    copy_3d = "cuMemcpy3DAsync_v2"(copy: *const Copy3d, stream: Handle);
    fill_8 = "cuMemsetD8Async"(to: u64, value: u8, count: usize, stream: Handle);
    fill_16 = "cuMemsetD16Async"(to: u64, value: u16, count: usize, stream: Handle);
    fill_32 = "cuMemsetD32Async"(to: u64, value: c_uint, count: usize, stream: Handle);

    stream_create = "cuStreamCreateWithPriority"(stream: *mut Handle, flags: c_uint, priority: c_int);
    stream_destroy = "cuStreamDestroy_v2"(stream: Handle);
    stream_synchronise = "cuStreamSynchronize"(stream: Handle);
    stream_query = "cuStreamQuery"(stream: Handle);
    stream_wait = "cuStreamWaitEvent"(stream: Handle, event: Handle, flags: c_uint);

    event_create = "cuEventCreate"(event: *mut Handle, flags: c_uint);
    event_destroy = "cuEventDestroy_v2"(event: Handle);
    event_synchronise = "cuEventSynchronize"(event: Handle);
    event_query = "cuEventQuery"(event: Handle);
    event_record = "cuEventRecord"(event: Handle, stream: Handle);
    event_elapsed = "cuEventElapsedTime"(milliseconds: *mut f32, start: Handle, end: Handle);

    /// Takes the same options as `module_load`.
    linker_create = "cuLinkCreate_v2"(
        count: c_uint, options: *mut c_int, values: *mut *mut c_void, linker: *mut Handle
    );
    linker_add = "cuLinkAddData_v2"(
        linker: Handle, kind: c_int, data: *mut c_void, bytes: usize, name: *const c_char, count: c_uint,
        options: *mut c_int, values: *mut *mut c_void
    );
    /// The machine code is the linker's.
    linker_complete = "cuLinkComplete"(linker: Handle, code: *mut *mut c_void, bytes: *mut usize);
    linker_destroy = "cuLinkDestroy"(linker: Handle);
    /// Loads machine code, or compiles PTX. Options are numbers, each with a value that is a pointer or fits one.
    module_load = "cuModuleLoadDataEx"(
        module: *mut Handle, image: *const c_void, count: c_uint, options: *mut c_int, values: *mut *mut c_void
    );
    module_unload = "cuModuleUnload"(module: Handle);
    module_function = "cuModuleGetFunction"(function: *mut Handle, module: Handle, name: *const c_char);
    function_attribute = "cuFuncGetAttribute"(value: *mut c_int, attribute: c_int, function: Handle);
    /// How many blocks of a function one multiprocessor runs at once.
    resident_blocks = "cuOccupancyMaxActiveBlocksPerMultiprocessor"(
        blocks: *mut c_int, function: Handle, threads: c_int, shared_bytes: usize
    );
    launch = "cuLaunchKernel"(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
        block_z: c_uint, shared_bytes: c_uint, stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void
    );
    launch_with_attributes = "cuLaunchKernelEx"(
        config: *const LaunchConfig, function: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void
    );
}

/// `CUlaunchConfig`: what a launch takes beside its parameters.
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

/// `CUlaunchAttribute`
#[repr(C, align(8))]
#[derive(Debug)]
pub struct LaunchAttribute {
    pub kind: c_int,
    pub padding: c_int,
    pub value: [u8; 64],
}

impl LaunchAttribute {
    /// The kernel waits for the one before it: `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
    pub const WAITS: Self = {
        let mut value = [0; 64];
        value[0] = 1;
        Self { kind: 6, padding: 0, value }
    };
}

/// `CUDA_MEMCPY2D`: rows on both sides.
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
    pub fn rows(to: u64, from: u64, rows: &Rows) -> Self {
        let side = |device, stride| Side2d {
            x_bytes: 0,
            y: 0,
            kind: MEMORY_OF_DEVICE,
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

/// `CUDA_MEMCPY3D`: slices of rows on both sides.
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
    pub fn rows(to: u64, from: u64, rows: &Rows) -> Self {
        let side = |device, stride, slice_rows| Side3d {
            x_bytes: 0,
            y: 0,
            z: 0,
            level: 0,
            kind: MEMORY_OF_DEVICE,
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

/// `CU_MEMORYTYPE_DEVICE`
const MEMORY_OF_DEVICE: c_int = 2;

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
    fn of_device(device: c_int) -> Self {
        Self {
            allocation_kind: PINNED,
            handle_kinds: 0,
            location_kind: ON_DEVICE,
            location: device,
            security: std::ptr::null_mut(),
        }
    }
}

/// `CUmemPoolProps`: which memory a pool is made of.
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
    pub fn of_device(device: c_int) -> Self {
        Self { memory: MemoryKind::of_device(device), max_bytes: 0, usage: 0, reserved: [0; 54] }
    }
}

/// `CUmemAllocationProp`: which memory is to be mapped.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AllocationProperties {
    pub memory: MemoryKind,
    pub flags: [u8; 8],
}

impl AllocationProperties {
    /// Plain memory of one device.
    pub fn of_device(device: c_int) -> Self {
        Self { memory: MemoryKind::of_device(device), flags: [0; 8] }
    }
}

/// `CUmemAccessDesc`: who may touch mapped memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemoryAccess {
    pub location_kind: c_int,
    pub location: c_int,
    pub flags: c_int,
}

impl MemoryAccess {
    /// The device reads and writes it.
    pub fn of_device(device: c_int) -> Self {
        const READ_AND_WRITE: c_int = 3;
        Self { location_kind: ON_DEVICE, location: device, flags: READ_AND_WRITE }
    }
}

/// `CU_MEM_ALLOCATION_TYPE_PINNED`
const PINNED: c_int = 1;

/// `CU_MEM_LOCATION_TYPE_DEVICE`
const ON_DEVICE: c_int = 1;
