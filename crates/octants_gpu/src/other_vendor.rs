//! Two makers of GPUs that are not there. One has all functions; the other lacks what a driver may lack, and has other numbers for everything.

use std::cell::RefCell;
use std::rc::Rc;

use octants_hal::{
    Cancel, Capabilities, Device, DeviceError, Domain, Image, ImagePart, Launch, LaunchContext, LaunchMemory,
    LaunchShape, RangeDomain,
};

use crate::device::GpuDevice;
use crate::driver::Driver;
use crate::driver::recording::with_driver;
use crate::driver::table::recorded::{SYMBOLS, find};
use crate::driver::table::{DriverTable, PoolProperties, Symbols};
use crate::vendor::{Attributes, Flags, ResetCounts, Statuses, Vendor};

pub fn whole_vendor() -> Vendor {
    Vendor {
        name: "Own",
        platform: "Own",
        library: "libown.so",
        oldest_driver: 11_080,
        version: |version| (version / 1000, version % 1000 / 10),
        oldest_capability: (7, 0),
        symbols: SYMBOLS,
        statuses: Statuses {
            no_device: 100,
            not_ready: 600,
            invalid_handle: 400,
            out_of_memory: 2,
            is_bad_image: |status| matches!(status, 209 | 218),
            is_lost: |status| matches!(status, 700 | 709 | 716..=719),
        },
        attributes: Attributes {
            clock_rate: 13,
            multiprocessors: 16,
            threads_per_multiprocessor: 39,
            blocks_per_multiprocessor: 106,
            capability_major: 75,
            capability_minor: 76,
            lanes: 10,
            threads_per_block: 1,
            block_shared_bytes: 8,
            most_block_shared_bytes: 97,
            multiprocessor_shared_bytes: 81,
            registers_per_block: 12,
            registers_per_multiprocessor: 82,
            cache_bytes: 38,
            shared_bytes: 1,
            most_launch_shared_bytes: 8,
            local_bytes: 3,
            registers: 4,
        },
        flags: Flags {
            non_blocking: 1,
            with_timing: 0,
            without_timing: 2,
            pinned: 3,
            reuse_by_waiting: 3,
            release_threshold: 4,
            stack_size: 0,
            error_log: 5,
            error_log_bytes: 6,
            linker_text: 1,
            dependent_launch: 6,
            device_memory: 2,
            plain_allocation: 1,
            on_device: 1,
            read_and_write: 3,
        },
        resets: ResetCounts::new(),
    }
}

fn plain_vendor() -> Vendor {
    Vendor {
        name: "Plain",
        platform: "Plane",
        library: "libplain.so",
        oldest_driver: 5,
        version: |version| (version, 0),
        oldest_capability: (1, 0),
        symbols: Symbols {
            function_load: None,
            range_reserve: None,
            range_free: None,
            memory_create: None,
            memory_release: None,
            memory_map: None,
            memory_unmap: None,
            memory_set_access: None,
            copy_3d: None,
            linker_create: None,
            linker_add: None,
            linker_complete: None,
            linker_destroy: None,
            launch_with_attributes: None,
            ..SYMBOLS
        },
        statuses: Statuses {
            no_device: 1,
            not_ready: 34,
            invalid_handle: 35,
            out_of_memory: 36,
            is_bad_image: |status| status == 37,
            is_lost: |status| status == 38,
        },
        attributes: Attributes {
            clock_rate: 101,
            multiprocessors: 102,
            threads_per_multiprocessor: 103,
            blocks_per_multiprocessor: 110,
            capability_major: 104,
            capability_minor: 105,
            lanes: 111,
            threads_per_block: 112,
            block_shared_bytes: 113,
            most_block_shared_bytes: 114,
            multiprocessor_shared_bytes: 115,
            registers_per_block: 116,
            registers_per_multiprocessor: 117,
            cache_bytes: 118,
            shared_bytes: 106,
            most_launch_shared_bytes: 109,
            local_bytes: 107,
            registers: 108,
        },
        flags: Flags {
            non_blocking: 201,
            with_timing: 202,
            without_timing: 203,
            pinned: 204,
            reuse_by_waiting: 205,
            release_threshold: 206,
            stack_size: 207,
            error_log: 208,
            error_log_bytes: 209,
            linker_text: 210,
            dependent_launch: 211,
            device_memory: 212,
            plain_allocation: 213,
            on_device: 214,
            read_and_write: 215,
        },
        resets: ResetCounts::new(),
    }
}

/// The device of the plain vendor over a driver that answers as the vendor's does, and what the driver was told.
fn with_plain<R>(
    answer: impl Fn(&str) -> Option<i32> + 'static,
    work: impl FnOnce(GpuDevice) -> R,
) -> (R, Vec<String>) {
    let log = Rc::new(RefCell::new(Vec::new()));
    let calls = Rc::clone(&log);
    let result = with_driver(
        move |name, words| {
            // SAFETY: these arguments of these functions are addresses of what the caller wants written.
            let write = |at: u64, value: u64, bytes: usize| unsafe {
                std::ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), at as *mut u8, bytes);
            };
            calls.borrow_mut().push(match name {
                "stream_create" | "event_create" => format!("{name} {}", words[1]),
                "host_allocate" => format!("{name} {}", words[2]),
                "pool_set_attribute" => format!("{name} {}", words[1]),
                // SAFETY: the second argument is the address of a description.
                "pool_create" => unsafe {
                    let memory = (*(words[1] as *const PoolProperties)).memory;
                    format!("{name} {} {}", memory.allocation_kind, memory.location_kind)
                },
                _ => name.to_owned(),
            });
            if let Some(status) = answer(name) {
                return status;
            }
            match (name, words) {
                ("driver_version" | "device_count", _) => write(words[0], 9, 4),
                ("device_attribute", &[at, 102, _]) => write(at, 64, 4),
                ("device_attribute", &[at, 104, _]) => write(at, 3, 4),
                ("device_attribute", &[at, 101, _]) => write(at, 1_000_000, 4),
                ("resident_blocks", _) => write(words[0], 2, 4),
                ("pool_create" | "stream_create" | "event_create", _) => write(words[0], 0x50, 8),
                _ => {}
            }
            0
        },
        || {
            let vendor: &'static Vendor = Box::leak(Box::new(plain_vendor()));
            // SAFETY: the functions are those of the table.
            let table = unsafe { DriverTable::resolve(&vendor.symbols, |name| find(&vendor.symbols, name)) };
            work(GpuDevice::over(Driver::over(table.unwrap(), vendor).unwrap(), 0).unwrap())
        },
    );
    (result, log.take())
}

#[test]
fn a_driver_that_lacks_functions_is_used_without_them() {
    let ((), log) = with_plain(
        |_| None,
        |device| {
            assert!(device.capabilities().has(Capabilities::STREAMS));
            assert!(!device.capabilities().has(Capabilities::GROWING_RANGES));
            assert_eq!(device.assemble(b"text"), Ok(None), "whoever loads it makes the code");
            // A launch that would begin before the last one ends, if it could.
            let shape = LaunchShape { block: 64, waits: true, ..LaunchShape::default() };
            let parts = [ImagePart { symbol: "task", bytes: b"code", shape }];
            let cancel = Cancel::new();
            let context = LaunchContext {
                stream: device.default_stream(),
                args: &[],
                memory: LaunchMemory::NONE,
                cancel: &cancel,
                caller: None,
                key: 0,
                launch: 0,
                prints: None,
            };
            let bounds = [0, 1000];
            let domain = Domain::Range(RangeDomain {
                bounds: &bounds,
                points: 1000,
                max_threads: None,
                block: None,
                cost: 1,
                lanes: 1,
                copied: &[],
            });
            // SAFETY: the driver only records, and loads anything.
            unsafe {
                let module = device.load_module(&Image { name: "k", parts: &parts }).unwrap();
                let function = device.function(module, "task").unwrap();
                device.launch(&Launch { function, domain, context }).unwrap();
            }
        },
    );
    assert!(log.iter().any(|call| call == "launch"), "{log:?}");
    let lacking = ["linker", "range", "memory_map", "launch_with", "function_load"];
    assert!(!log.iter().any(|call| lacking.iter().any(|name| call.starts_with(name))), "{log:?}");
}

#[test]
fn a_driver_is_told_its_own_numbers() {
    let ((), log) = with_plain(
        |_| None,
        |device| {
            assert_eq!((device.capability(), device.clock_rate()), (30, Some(1_000_000_000)));
            device.create_stream(octants_hal::StreamPriority::Normal).unwrap();
            device.create_event(true).unwrap();
            device.create_event(false).unwrap();
            device.allocate_shared(64).unwrap();
        },
    );
    let told = [
        "pool_create 213 214",
        "pool_set_attribute 206",
        "pool_set_attribute 205",
        "stream_create 201",
        "event_create 202",
        "event_create 203",
        "host_allocate 204",
    ];
    for call in told {
        assert!(log.iter().any(|found| found == call), "{call}: {log:?}");
    }
}

#[test]
fn statuses_mean_what_the_vendor_says() {
    let poll = |status: i32| {
        // SAFETY: the driver only records.
        with_plain(
            move |name| (name == "stream_query").then_some(status),
            |device| unsafe { device.poll(device.default_stream()) },
        )
        .0
    };
    assert_eq!((poll(0), poll(34)), (Ok(true), Ok(false)));
    assert!(matches!(poll(38), Err(DeviceError::Lost { .. })));
    // Another vendor's words for what is not done and what is lost.
    assert!(matches!(poll(600), Err(DeviceError::Failed { verb: "poll", .. })));
    assert!(matches!(poll(700), Err(DeviceError::Failed { verb: "poll", .. })));
    let vendor: &'static Vendor = Box::leak(Box::new(plain_vendor()));
    let none = crate::Unavailable::of(vendor, crate::driver::Reason::DriverTooOld { found: 2 }).to_string();
    assert_eq!(none, "the Plain driver is too old: it supports Plane 2.0, and 5.0 is needed");
}
