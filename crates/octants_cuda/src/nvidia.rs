//! NVIDIA's driver: its symbols, and its numbers.

use octants_gpu::Symbols;
use octants_gpu::vendor::{Attributes, Flags, ResetCounts, Statuses, Vendor};

pub static NVIDIA: Vendor = Vendor {
    name: "NVIDIA",
    platform: "CUDA",
    library: "libcuda.so.1",
    // 11.8, whose compiler reads PTX ISA 7.8. 12.4 is 12040.
    oldest_driver: 11_080,
    version: |version| (version / 1000, version % 1000 / 10),
    oldest_capability: (7, 0),
    symbols: Symbols {
        init: "cuInit",
        driver_version: "cuDriverGetVersion",
        error_name: "cuGetErrorName",
        error_text: "cuGetErrorString",
        device_count: "cuDeviceGetCount",
        device_get: "cuDeviceGet",
        device_name: "cuDeviceGetName",
        device_attribute: "cuDeviceGetAttribute",
        context_retain: "cuDevicePrimaryCtxRetain",
        context_release: "cuDevicePrimaryCtxRelease_v2",
        context_reset: "cuDevicePrimaryCtxReset_v2",
        context_get_current: "cuCtxGetCurrent",
        context_set_current: "cuCtxSetCurrent",
        context_synchronise: "cuCtxSynchronize",
        context_limit: "cuCtxGetLimit",
        context_priorities: "cuCtxGetStreamPriorityRange",
        context_set_limit: "cuCtxSetLimit",
        pool_create: "cuMemPoolCreate",
        pool_destroy: "cuMemPoolDestroy",
        pool_set_attribute: "cuMemPoolSetAttribute",
        allocate_async: "cuMemAllocFromPoolAsync",
        free_async: "cuMemFreeAsync",
        pool_trim: "cuMemPoolTrimTo",
        memory_info: "cuMemGetInfo_v2",
        host_allocate: "cuMemHostAlloc",
        host_free: "cuMemFreeHost",
        host_address: "cuMemHostGetDevicePointer_v2",
        copy_to_device: "cuMemcpyHtoDAsync_v2",
        copy_to_host: "cuMemcpyDtoHAsync_v2",
        copy: "cuMemcpyDtoDAsync_v2",
        copy_2d: "cuMemcpy2DAsync_v2",
        fill_8: "cuMemsetD8Async",
        fill_16: "cuMemsetD16Async",
        fill_32: "cuMemsetD32Async",
        stream_create: "cuStreamCreateWithPriority",
        stream_destroy: "cuStreamDestroy_v2",
        stream_synchronise: "cuStreamSynchronize",
        stream_query: "cuStreamQuery",
        stream_wait: "cuStreamWaitEvent",
        event_create: "cuEventCreate",
        event_destroy: "cuEventDestroy_v2",
        event_synchronise: "cuEventSynchronize",
        event_query: "cuEventQuery",
        event_record: "cuEventRecord",
        event_elapsed: "cuEventElapsedTime",
        module_load: "cuModuleLoadDataEx",
        module_unload: "cuModuleUnload",
        module_function: "cuModuleGetFunction",
        function_attribute: "cuFuncGetAttribute",
        function_set_attribute: "cuFuncSetAttribute",
        resident_blocks: "cuOccupancyMaxActiveBlocksPerMultiprocessor",
        launch: "cuLaunchKernel",
        function_load: Some("cuFuncLoad"),
        range_reserve: Some("cuMemAddressReserve"),
        range_free: Some("cuMemAddressFree"),
        memory_create: Some("cuMemCreate"),
        memory_release: Some("cuMemRelease"),
        memory_map: Some("cuMemMap"),
        memory_unmap: Some("cuMemUnmap"),
        memory_set_access: Some("cuMemSetAccess"),
        copy_3d: Some("cuMemcpy3DAsync_v2"),
        linker_create: Some("cuLinkCreate_v2"),
        linker_add: Some("cuLinkAddData_v2"),
        linker_complete: Some("cuLinkComplete"),
        linker_destroy: Some("cuLinkDestroy"),
        launch_with_attributes: Some("cuLaunchKernelEx"),
    },
    statuses: Statuses {
        no_device: 100,
        not_ready: 600,
        invalid_handle: 400,
        out_of_memory: 2,
        // Invalid image, no code for this device, invalid PTX, PTX of an unknown version, a failed link, a missing symbol.
        is_bad_image: |status| matches!(status, 200 | 209 | 218 | 220..=223 | 302 | 303),
        // Illegal address, timeout, assertion, stack, instruction, alignment, address space, program counter, launch failure.
        is_lost: |status| matches!(status, 700 | 702 | 709 | 710 | 714..=719 | 721 | 226 | 214),
    },
    attributes: Attributes {
        // `CU_DEVICE_ATTRIBUTE_`: `CLOCK_RATE`, `MULTIPROCESSOR_COUNT`, `MAX_THREADS_PER_MULTIPROCESSOR`, `MAX_BLOCKS_PER_MULTIPROCESSOR`,
        // `COMPUTE_CAPABILITY_*`, `WARP_SIZE`, `MAX_THREADS_PER_BLOCK`.
        clock_rate: 13,
        multiprocessors: 16,
        threads_per_multiprocessor: 39,
        blocks_per_multiprocessor: 106,
        capability_major: 75,
        capability_minor: 76,
        lanes: 10,
        threads_per_block: 1,
        // `MAX_SHARED_MEMORY_PER_BLOCK`, the same with `_OPTIN`, `MAX_SHARED_MEMORY_PER_MULTIPROCESSOR`.
        block_shared_bytes: 8,
        most_block_shared_bytes: 97,
        multiprocessor_shared_bytes: 81,
        // `MAX_REGISTERS_PER_BLOCK`, `MAX_REGISTERS_PER_MULTIPROCESSOR`, `L2_CACHE_SIZE`.
        registers_per_block: 12,
        registers_per_multiprocessor: 82,
        cache_bytes: 38,
        // `CU_FUNC_ATTRIBUTE_`: `SHARED_SIZE_BYTES`, `MAX_DYNAMIC_SHARED_SIZE_BYTES`, `LOCAL_SIZE_BYTES`, `NUM_REGS`.
        shared_bytes: 1,
        most_launch_shared_bytes: 8,
        local_bytes: 3,
        registers: 4,
    },
    flags: Flags {
        // `CU_STREAM_NON_BLOCKING`
        non_blocking: 1,
        // `CU_EVENT_DEFAULT`
        with_timing: 0,
        // `CU_EVENT_DISABLE_TIMING`
        without_timing: 2,
        // `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`
        pinned: 1 | 2,
        // `CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES`
        reuse_by_waiting: 3,
        // `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`
        release_threshold: 4,
        // `CU_LIMIT_STACK_SIZE`
        stack_size: 0,
        // `CU_JIT_ERROR_LOG_BUFFER`, `CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES`
        error_log: 5,
        error_log_bytes: 6,
        // `CU_JIT_INPUT_PTX`
        linker_text: 1,
        // `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`
        dependent_launch: 6,
        // `CU_MEMORYTYPE_DEVICE`
        device_memory: 2,
        // `CU_MEM_ALLOCATION_TYPE_PINNED`
        plain_allocation: 1,
        // `CU_MEM_LOCATION_TYPE_DEVICE`
        on_device: 1,
        // `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`
        read_and_write: 3,
    },
    resets: ResetCounts::new(),
};
