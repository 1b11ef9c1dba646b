//! The verbs over a driver that records its calls, as words.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use octants_hal::{
    Address, Cancel, Capabilities, Device, DeviceBound, DeviceError, DeviceProperties, DeviceRangeDomain,
    Domain, Event, Function, FunctionUsage, Grid, Image, ImagePart, Launch, LaunchContext, LaunchMemory,
    LaunchShape, PointMapping, RangeDomain, Rows, Stream, StreamPriority,
};

use crate::device::GpuDevice;
use crate::driver::recording::with_driver;
use crate::driver::table::{Copy2d, Copy3d, DriverTable, LaunchConfig, recorded};
use crate::driver::{Driver, Reason, Unavailable};
use crate::other_vendor::whole_vendor;
use crate::vendor::Vendor;

/// The device's own.
const CONTEXT: u64 = 0xC0;

/// What the driver says where the context is not current.
const INVALID_CONTEXT: i32 = 201;

thread_local! {
    /// The context that is current on the thread; 0 for none.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// What an H200 says of itself.
const ATTRIBUTES: [(u64, u64); 14] = [
    (1, 1024),
    (8, 48 << 10),
    (10, 32),
    (12, 1 << 16),
    (13, 1_980_000),
    (16, 132),
    (38, 60 << 20),
    (39, 2048),
    (75, 9),
    (76, 0),
    (81, 228 << 10),
    (82, 1 << 16),
    (97, 227 << 10),
    (106, 32),
];

/// A driver with one device; `answer` may answer a call before the defaults do.
fn with_fake<R>(
    answer: impl Fn(&str, &[u64]) -> Option<i32> + 'static,
    work: impl FnOnce() -> R,
) -> (R, Vec<String>) {
    let log = Rc::new(RefCell::new(Vec::new()));
    let calls = Rc::clone(&log);
    let result = with_driver(
        move |name, words| {
            // SAFETY: these arguments of these functions are addresses of what the caller wants written.
            let write = |at: u64, value: u64, bytes: usize| unsafe {
                std::ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), at as *mut u8, bytes);
            };
            // A thread has a context or none, and few functions do without.
            match name {
                "context_get_current" => {
                    write(words[0], CURRENT.get(), 8);
                    return 0;
                }
                "context_set_current" => {
                    CURRENT.set(words[0]);
                    return 0;
                }
                "init" | "driver_version" | "device_count" | "device_get" | "device_attribute"
                | "device_name" | "context_retain" | "context_release" | "context_reset" | "error_text"
                | "error_name" => {}
                _ if CURRENT.get() != CONTEXT => {
                    calls.borrow_mut().push(format!("{name} without the context"));
                    return INVALID_CONTEXT;
                }
                _ => {}
            }
            calls.borrow_mut().push(match name {
                "launch" => format!("launch {} x {} on {:#x}", words[1], words[4], words[8]),
                // SAFETY: the first argument is the address of a configuration.
                "launch_with_attributes" => unsafe {
                    let config = &*(words[0] as *const LaunchConfig);
                    let kinds =
                        std::slice::from_raw_parts(config.attributes, config.attribute_count as usize);
                    let kinds: Vec<_> =
                        kinds.iter().map(|attribute| (attribute.kind, attribute.value[0])).collect();
                    format!("launch {} x {} with {kinds:?}", config.grid[0], config.block[0])
                },
                "copy_2d" => {
                    // SAFETY: the first argument is the address of a description.
                    let copy = unsafe { &*(words[0] as *const Copy2d) };
                    let (to, bytes, rows) = (&copy.to, copy.row_bytes, copy.rows);
                    format!(
                        "{bytes} x {rows} by {} from {:#x} to {:#x}",
                        to.stride, copy.from.device, to.device
                    )
                }
                "copy_3d" => {
                    // SAFETY: as above.
                    let copy = unsafe { &*(words[0] as *const Copy3d) };
                    let (to, bytes, rows, slices) = (&copy.to, copy.row_bytes, copy.rows, copy.slices);
                    format!("{bytes} x {rows} by {} x {slices} by {} rows", to.stride, to.slice_rows)
                }
                "copy" => format!("copy {} to {:#x}", words[2], words[0]),
                "function_set_attribute" => format!("function_set_attribute {} {}", words[1], words[2]),
                "resident_blocks" => format!("resident_blocks of {} with {}", words[2], words[3]),
                "pool_set_attribute" => format!("pool_set_attribute {}", words[1]),
                "allocate_async" => format!("allocate {} on {:#x}", words[1], words[3]),
                "free_async" => format!("free on {:#x}", words[1]),
                "event_record" => format!("record on {:#x}", words[1]),
                "stream_wait" => format!("wait on {:#x}", words[0]),
                "event_create" if words[1] == 0 => "event_create with timing".to_owned(),
                "stream_create" => match words[2] as i32 {
                    0 => "stream_create".to_owned(),
                    priority => format!("stream_create of priority {priority}"),
                },
                "fill_8" if words[3] != 0 => {
                    format!("fill_8 {:#x} times {} on {:#x}", words[1], words[2], words[3])
                }
                "fill_8" | "fill_16" | "fill_32" => format!("{name} {:#x} times {}", words[1], words[2]),
                other => other.to_owned(),
            });
            if let Some(status) = answer(name, words) {
                return status;
            }
            match name {
                "driver_version" => write(words[0], 13_000, 4),
                "device_count" => write(words[0], 1, 4),
                "device_attribute" => {
                    write(
                        words[0],
                        ATTRIBUTES.iter().find(|(a, _)| *a == words[1]).map_or(0, |(_, v)| *v),
                        4,
                    );
                }
                "memory_info" => {
                    write(words[0], 100 << 30, 8);
                    write(words[1], 140 << 30, 8);
                }
                "context_retain" => write(words[0], CONTEXT, 8),
                "pool_create" => write(words[0], 0xB0, 8),
                "stream_create" => write(words[0], 0x50, 8),
                "context_priorities" => write(words[1], -5_i32 as u32 as u64, 4),
                "resident_blocks" => write(words[0], 8, 4),
                "function_attribute" => write(words[0], 10 * words[1], 4),
                "allocate_async" => write(words[0], 0x7000, 8),
                "host_allocate" => write(
                    words[0],
                    Box::leak(vec![0_u64; words[1] as usize / 8].into_boxed_slice()).as_ptr() as u64,
                    8,
                ),
                _ => {}
            }
            0
        },
        work,
    );
    let log = log.take();
    let lacking: Vec<_> = log.iter().filter(|call| call.ends_with("without the context")).collect();
    assert!(lacking.is_empty(), "{lacking:?}");
    (result, log)
}

/// With a count of resets of its own: other tests run at the same time.
fn driver() -> Result<Driver, Unavailable> {
    Driver::over(recorded::TABLE, Box::leak(Box::new(whole_vendor())))
}

fn open() -> Result<GpuDevice, Unavailable> {
    GpuDevice::over(driver()?, 0)
}

fn nothing(_: &str, _: &[u64]) -> Option<i32> {
    None
}

fn launch_over(device: &GpuDevice, function: Function, points: i64, max_threads: Option<u32>) {
    let bounds = [0, points];
    let domain = Domain::Range(RangeDomain {
        bounds: &bounds,
        points: points as u64,
        max_threads,
        block: None,
        cost: 1,
        lanes: 1,
        copied: &[],
    });
    launch_in(device, function, domain);
}

fn launch_in(device: &GpuDevice, function: Function, domain: Domain<'_>) {
    launch_on(device, function, domain, device.default_stream());
}

fn launch_on(device: &GpuDevice, function: Function, domain: Domain<'_>, stream: Stream) {
    let memory = LaunchMemory::NONE;
    let cancel = Cancel::new();
    let context = LaunchContext {
        stream,
        args: &[],
        memory,
        cancel: &cancel,
        caller: None,
        key: 0,
        launch: 0,
        prints: None,
    };
    // SAFETY: the driver only records.
    unsafe { device.launch(&Launch { function, domain, context }).unwrap() };
}

/// The driver of the tests refuses whatever comes without the context: here only what is left behind is looked at.
#[test]
fn verbs_leave_the_context_of_a_thread_as_it_was() {
    for other in [0, 0xD0, CONTEXT] {
        CURRENT.set(other);
        let ((), _) = with_fake(nothing, || {
            let device = open().unwrap();
            assert_eq!(CURRENT.get(), other, "opening");
            let check = |verb: &str| assert_eq!(CURRENT.get(), other, "{verb}");
            let default = device.default_stream();
            // SAFETY: the driver only records.
            let address = unsafe { device.allocate(default, 64).unwrap() };
            check("allocate");
            let range = device.reserve_range(1 << 20).unwrap();
            check("reserve_range");
            let stream = device.create_stream(StreamPriority::High).unwrap();
            check("create_stream");
            let event = device.create_event(true).unwrap();
            check("create_event");
            let parts = [ImagePart { symbol: "task", bytes: b"ptx", shape: LaunchShape::default() }];
            let (mut word, pinned) = ([0; 4], device.allocate_shared(64).unwrap());
            // SAFETY: the driver only records.
            unsafe {
                device.back(range, 0, 64).unwrap();
                device.write_beside(range, &word).unwrap();
                device.read_beside(range, &mut word).unwrap();
                check("what is done beside streams");
                device.copy_to_device(stream, address, word.as_ptr(), 4).unwrap();
                device.copy_to_host(stream, word.as_mut_ptr(), address, 4).unwrap();
                device.copy(stream, address, address.offset(32), 4).unwrap();
                device.fill(stream, address, &[1, 2, 3], 63).unwrap();
                check("copies and fills");
                device.record_event(stream, event).unwrap();
                device.wait_event(stream, event).unwrap();
                device.synchronise_event(event).unwrap();
                device.synchronise(stream).unwrap();
                assert!(device.is_idle(stream) && device.event_passed(event));
                assert!(device.poll(stream).unwrap() && device.poll_event(event).unwrap());
                check("order");
                let module = device.load_module(&Image { name: "k", parts: &parts }).unwrap();
                let function = device.function(module, "task").unwrap();
                // So often that the host waits for launches of before.
                for _ in 0..600 {
                    launch_in(&device, function, Domain::Once);
                }
                check("launch");
                device.unload_module(module);
                device.free(default, range, 1 << 20);
                device.free(default, address, 64);
                device.free_shared(pinned);
                device.destroy_event(event);
                device.destroy_stream(stream);
                check("giving back");
            }
            drop(device);
            check("the end");
        });
    }
    CURRENT.set(0);
}

#[test]
fn a_device_is_opened_and_closed_with_all_that_it_owns() {
    let (capability, log) = with_fake(nothing, || open().unwrap().capability());
    assert_eq!(capability, 90);
    let made = log.iter().position(|call| call == "context_retain").unwrap();
    assert_eq!(
        log[made..],
        [
            "context_retain",
            "context_synchronise",
            "pool_create",
            "pool_set_attribute 4",
            "pool_set_attribute 3",
            "context_limit",
            "stream_synchronise",
            "pool_destroy",
            "context_release",
        ]
    );
}

#[test]
fn a_device_tells_the_rate_of_its_clock() {
    let (rate, _) = with_fake(nothing, || open().unwrap().clock_rate());
    assert_eq!(rate, Some(1_980_000_000));
}

#[test]
fn a_device_says_what_it_is() {
    let (properties, _) = with_fake(nothing, || open().unwrap().properties().unwrap());
    let expected = DeviceProperties {
        name: String::new(),
        capability_major: 9,
        capability_minor: 0,
        driver_major: 13,
        driver_minor: 0,
        cores: 132,
        subgroup_size: 32,
        max_threads_per_core: 2048,
        max_blocks_per_core: 32,
        max_threads_per_block: 1024,
        shared_bytes_per_block: 49_152,
        max_shared_bytes_per_block: 232_448,
        shared_bytes_per_core: 233_472,
        registers_per_block: 65_536,
        registers_per_core: 65_536,
        l2_bytes: 60 << 20,
        total_bytes: 140 << 30,
        free_bytes: 100 << 30,
    };
    assert_eq!(properties, expected);
}

/// What a function's launches ask for, and what its driver's compiler says that the function declares itself.
fn load_with_shared_bytes(asked: u32, own: u64) -> (Result<(), DeviceError>, Vec<String>) {
    let answer = move |name: &str, words: &[u64]| {
        (name == "function_attribute" && words[1] == 1).then(|| {
            // SAFETY: the first argument is the address of an integer.
            unsafe { *(words[0] as *mut i32) = own as i32 };
            0
        })
    };
    let (loaded, log) = with_fake(answer, || {
        let device = open().unwrap();
        let shape = LaunchShape { block: 128, shared_bytes: asked, ..LaunchShape::default() };
        let part = ImagePart { symbol: "k_t0", bytes: b"code", shape };
        // SAFETY: the driver only records, and loads anything.
        unsafe { device.load_module(&Image { name: "k", parts: &[part] }).map(|_| ()) }
    });
    let told = |call: &String| call.starts_with("function_set") || call.starts_with("resident");
    (loaded, log.into_iter().filter(told).collect())
}

#[test]
fn a_function_is_told_of_shared_memory_beyond_what_any_launch_may_have() {
    assert_eq!(load_with_shared_bytes(48 << 10, 0).1, ["resident_blocks of 128 with 49152"]);
    let (loaded, log) = load_with_shared_bytes(231_360, 0);
    assert_eq!(loaded, Ok(()));
    assert_eq!(log, ["function_set_attribute 8 231360", "resident_blocks of 128 with 231360"]);
    // What the function declares itself counts, too.
    let (loaded, log) = load_with_shared_bytes(47 << 10, 2048);
    assert_eq!(loaded, Ok(()));
    assert_eq!(log, ["function_set_attribute 8 48128", "resident_blocks of 128 with 48128"]);
    assert_eq!(load_with_shared_bytes(232_448, 0).0, Ok(()));
    let Err(DeviceError::TooLarge { message }) = load_with_shared_bytes(232_448, 128).0 else { panic!() };
    assert!(message.contains("takes 232576 bytes of shared memory, 128 of them"), "{message}");
    assert!(message.ends_with("this device has 232448"), "{message}");
}

#[test]
fn a_block_that_no_multiprocessor_has_room_for_is_refused() {
    let answer = |name: &str, words: &[u64]| {
        (name == "resident_blocks").then(|| {
            // SAFETY: the first argument is the address of an integer.
            unsafe { *(words[0] as *mut i32) = 0 };
            0
        })
    };
    let (error, log) = with_fake(answer, || {
        let device = open().unwrap();
        let shape = LaunchShape { block: 1024, ..LaunchShape::default() };
        let part = ImagePart { symbol: "k_t0", bytes: b"code", shape };
        // SAFETY: the driver only records, and loads anything.
        unsafe { device.load_module(&Image { name: "k", parts: &[part] }).unwrap_err() }
    });
    let DeviceError::TooLarge { message } = error else { panic!("{error:?}") };
    assert!(message.contains("no block of 1024 threads fits, with 40 registers of each"), "{message}");
    assert!(log.iter().any(|call| call == "module_unload"), "{log:?}");
}

/// Atomics of one or two bytes read and write the word that they lie in.
#[test]
fn scratch_memory_is_whole_words_with_a_content() {
    let ((), log) = with_fake(nothing, || {
        let device = open().unwrap();
        for bytes in [1, 6, 8, 300] {
            // SAFETY: the driver only records.
            unsafe { device.allocate_scratch(device.default_stream(), bytes).unwrap() };
        }
    });
    let first = log.iter().position(|call| call.starts_with("allocate")).unwrap();
    let calls: Vec<_> = log[first..].iter().filter(|call| !call.starts_with("context")).collect();
    assert_eq!(
        calls[..6],
        [
            "allocate 256 on 0x0",
            "fill_8 0x0 times 4",
            "allocate 256 on 0x0",
            "fill_8 0x0 times 4",
            "allocate 256 on 0x0",
            "allocate 512 on 0x0",
        ]
    );
}

#[test]
fn what_is_missing_is_said() {
    let open_with =
        |answer: fn(&str, &[u64]) -> Option<i32>| with_fake(answer, || open().err().unwrap().to_string()).0;
    assert!(open_with(|name, _| (name == "init").then_some(100)).contains("finds no GPU"));
    assert!(open_with(|name, _| (name == "init").then_some(803)).contains("does not start"));
    let old_driver = open_with(|name, words| {
        // SAFETY: the argument is the address of an integer.
        (name == "driver_version").then(|| unsafe { *(words[0] as *mut i32) = 10_020 }).map(|()| 0)
    });
    assert!(old_driver.contains("it supports Own 10.2, and 11.8 is needed"), "{old_driver}");
    let old_device = open_with(|name, words| {
        // SAFETY: the argument is the address of an integer.
        (name == "device_attribute").then(|| unsafe { *(words[0] as *mut i32) = 6 }).map(|()| 0)
    });
    assert!(old_device.contains("compute capability 6.6, and 7.0 is needed"), "{old_device}");
    let (another, _) = with_fake(nothing, || GpuDevice::over(driver().unwrap(), 3).err().unwrap());
    assert_eq!(another.reason, Reason::NoSuchDevice { ordinal: 3, count: 1 });
}

#[test]
fn grids_follow_the_points_and_what_is_resident() {
    let tiles = PointMapping::Tiles { across: 32, points: 4, rows: 1 };
    let cover = LaunchShape {
        block: 256,
        mapping: PointMapping::Points,
        grid: Grid::Cover,
        shared_bytes: 0,
        deep_stack: false,
        waits: false,
    };
    let resident = LaunchShape { mapping: tiles, grid: Grid::Resident, ..cover };
    let ((), log) = with_fake(nothing, || {
        let device = open().unwrap();
        for (shape, points, max_threads) in [
            (cover, 1, None),
            (cover, 1000, None),
            (cover, 1 << 40, None),
            (cover, 1000, Some(1)),
            (cover, 1000, Some(512)),
            (LaunchShape { block: 64, ..cover }, 1000, None),
            (LaunchShape { mapping: tiles, ..cover }, 4097, None),
            (resident, 4096, None),
            (resident, 1 << 30, None),
            (LaunchShape { grid: Grid::Several, ..cover }, 256 << 4, None),
            (LaunchShape { grid: Grid::Several, ..cover }, 256 << 20, None),
            (LaunchShape { grid: Grid::Several, ..cover }, 1 << 40, None),
            (LaunchShape { grid: Grid::Several, ..cover }, 1 << 60, None),
        ] {
            let part = ImagePart { symbol: "k_t0", bytes: b"code", shape };
            // SAFETY: the driver only records, and loads anything.
            unsafe {
                let module = device.load_module(&Image { name: "k", parts: &[part] }).unwrap();
                let function = device.function(module, "k_t0").unwrap();
                launch_over(&device, function, points, max_threads);
                device.unload_module(module);
            }
        }
    });
    let launches: Vec<_> = log.iter().filter_map(|call| call.strip_prefix("launch ")).collect();
    assert_eq!(
        launches,
        [
            "1 x 256 on 0x0",
            "4 x 256 on 0x0",
            "2147483647 x 256 on 0x0",
            "1 x 1 on 0x0",
            "2 x 256 on 0x0",
            "16 x 64 on 0x0",
            "5 x 256 on 0x0",
            "4 x 256 on 0x0",
            "1056 x 256 on 0x0",
            "16 x 256 on 0x0",
            "87382 x 256 on 0x0",
            "357913942 x 256 on 0x0",
            "2147483647 x 256 on 0x0",
        ]
    );
}

/// Code that waits for the launch before it may begin earlier; the driver is told so.
#[test]
fn code_that_waits_itself_is_launched_with_that_attribute() {
    let ((), log) = with_fake(nothing, || {
        let device = open().unwrap();
        for waits in [true, false] {
            let shape = LaunchShape { waits, ..LaunchShape::default() };
            let part = ImagePart { symbol: "k_t0", bytes: b"code", shape };
            // SAFETY: the driver only records, and loads anything.
            unsafe {
                let module = device.load_module(&Image { name: "k", parts: &[part] }).unwrap();
                launch_over(&device, device.function(module, "k_t0").unwrap(), 1000, None);
                device.unload_module(module);
            }
        }
    });
    let launches: Vec<_> = log.iter().filter(|call| call.starts_with("launch")).collect();
    assert_eq!(launches, ["launch 4 x 256 with [(6, 1)]", "launch 4 x 256 on 0x0"]);
}

#[test]
fn code_that_the_driver_refuses_is_told_of_in_its_words() {
    let refuse = |name: &str, words: &[u64]| {
        (name == "module_load").then(|| {
            // SAFETY: options and values are arrays of two; the first value is the address of the log.
            unsafe {
                assert_eq!((words[2], *(words[3] as *const [i32; 2])), (2, [5, 6]));
                let [log, bytes] = *(words[4] as *const [u64; 2]);
                let text = b"ptxas : too much shared memory\0";
                assert!(bytes as usize > text.len());
                std::ptr::copy_nonoverlapping(text.as_ptr(), log as *mut u8, text.len());
            }
            218
        })
    };
    let (error, _) = with_fake(refuse, || {
        let device = open().unwrap();
        let part = ImagePart { symbol: "k_t0", bytes: b"code", shape: LaunchShape::default() };
        // SAFETY: the driver only records.
        unsafe { device.load_module(&Image { name: "k", parts: &[part] }).unwrap_err() }
    });
    let DeviceError::BadImage { message } = error else { panic!("{error:?}") };
    assert!(message.starts_with("`k_t0`: ") && message.ends_with("too much shared memory"), "{message}");
}

#[test]
fn all_code_is_on_the_device_before_any_is_launched() {
    let parts = ["k_t0", "k_t1"].map(|symbol| ImagePart {
        symbol,
        bytes: b"code",
        shape: LaunchShape { block: 256, ..LaunchShape::default() },
    });
    let work = |table: fn() -> DriverTable| {
        let driver = Driver::over(table(), Box::leak(Box::new(whole_vendor()))).unwrap();
        let device = GpuDevice::over(driver, 0).unwrap();
        // SAFETY: the driver only records, and loads anything.
        unsafe {
            let module = device.load_module(&Image { name: "k", parts: &parts }).unwrap();
            launch_over(&device, device.function(module, "k_t0").unwrap(), 1000, None);
        }
    };
    let kept = |log: Vec<String>| -> Vec<String> {
        log.into_iter().filter(|call| call.starts_with("launch") || call == "function_load").collect()
    };
    let ((), log) = with_fake(nothing, || work(|| recorded::TABLE));
    assert_eq!(kept(log), ["function_load", "function_load", "launch 4 x 256 on 0x0"]);
    // Older drivers have no such function.
    let ((), log) = with_fake(nothing, || work(|| DriverTable { function_load: None, ..recorded::TABLE }));
    assert_eq!(kept(log), ["launch 4 x 256 on 0x0"]);
}

#[test]
fn stacks_leave_room_for_other_processes() {
    let stack_bytes = |free: usize| {
        let limit = Rc::new(RefCell::new(0));
        let seen = Rc::clone(&limit);
        let answer = move |name: &str, words: &[u64]| match name {
            // SAFETY: the arguments are addresses of what the caller wants written.
            "memory_info" => unsafe {
                *(words[0] as *mut usize) = free;
                *(words[1] as *mut usize) = 140 << 30;
                Some(0)
            },
            "context_set_limit" => {
                *seen.borrow_mut() = words[1];
                Some(0)
            }
            _ => None,
        };
        with_fake(answer, || {
            let shape = LaunchShape { deep_stack: true, ..LaunchShape::default() };
            let part = ImagePart { symbol: "k_t0", bytes: b"code", shape };
            // SAFETY: the driver only records, and loads anything.
            unsafe { open().unwrap().load_module(&Image { name: "k", parts: &[part] }).unwrap() };
        });
        limit.take()
    };
    assert_eq!(stack_bytes(139 << 30), 33 << 10);
    assert_eq!(stack_bytes(20 << 30), 9 << 10);
    assert_eq!(stack_bytes(1 << 30), 4 << 10);
}

#[test]
fn what_a_function_takes_is_what_the_driver_says() {
    let shape = LaunchShape { block: 128, shared_bytes: 1000, ..LaunchShape::default() };
    let (usage, _) = with_fake(nothing, || {
        let device = open().unwrap();
        let part = ImagePart { symbol: "k_t0", bytes: b"code", shape };
        // SAFETY: the driver only records, and loads anything.
        unsafe {
            let module = device.load_module(&Image { name: "k", parts: &[part] }).unwrap();
            let function = device.function(module, "k_t0").unwrap();
            let usage = device.function_usage(function).unwrap().unwrap();
            device.unload_module(module);
            usage
        }
    });
    let expected = FunctionUsage {
        registers: 40,
        local_bytes: 30,
        shared_bytes: 1010,
        block: 128,
        resident_threads: 1024,
        max_resident_threads: 2048,
    };
    assert_eq!(usage, expected);
    assert!((usage.occupancy() - 0.5).abs() < 1e-9);
}

#[test]
fn bounds_on_the_device_take_one_wave_of_blocks() {
    let shape = LaunchShape {
        block: 128,
        mapping: PointMapping::Tiles { across: 32, points: 1, rows: 1 },
        grid: Grid::Cover,
        ..LaunchShape::default()
    };
    let ((), log) = with_fake(nothing, || {
        let device = open().unwrap();
        assert!(device.capabilities().has(Capabilities::DEVICE_BOUNDS));
        let part = ImagePart { symbol: "k_t1", bytes: b"code", shape };
        let at = DeviceBound::InMemory { at: Address(0x7000), bits: 32, signed: true };
        let bounds = [DeviceBound::Known(0), at];
        let range = DeviceRangeDomain {
            bounds: &bounds,
            max_threads: None,
            block: None,
            cost: 1,
            lanes: 1,
            copied: &[],
        };
        // SAFETY: the driver only records, and loads anything.
        unsafe {
            let module = device.load_module(&Image { name: "k", parts: &[part] }).unwrap();
            let function = device.function(module, "k_t1").unwrap();
            launch_in(&device, function, Domain::DeviceRange(range));
            device.unload_module(module);
        }
    });
    let launches: Vec<_> = log.iter().filter_map(|call| call.strip_prefix("launch ")).collect();
    assert_eq!(launches, ["1056 x 128 on 0x0"]);
}

#[test]
fn fills_use_the_widest_word_that_repeats() {
    let ((), log) = with_fake(nothing, || {
        let device = open().unwrap();
        let stream = device.default_stream();
        for pattern in [
            &[0_u8, 0, 0, 0][..],
            &[1, 2],
            &[1, 2, 3, 4],
            &[1, 2, 3, 4, 1, 2, 3, 4],
            &[1, 2, 3, 4, 5, 6, 7, 8],
        ] {
            // SAFETY: the driver only records.
            unsafe { device.fill(stream, Address(0x7000), pattern, 32).unwrap() };
        }
    });
    let last = log.iter().rposition(|call| call == "stream_synchronise").unwrap();
    let fills: Vec<_> =
        log[..last].iter().filter(|call| call.starts_with("fill") || call.starts_with("copy")).collect();
    assert_eq!(
        fills,
        [
            "fill_8 0x0 times 32",
            "fill_16 0x201 times 16",
            "fill_32 0x4030201 times 8",
            "fill_32 0x4030201 times 8",
            "copy_to_device",
            "copy 8 to 0x7008",
            "copy 16 to 0x7010"
        ]
    );
}

#[test]
fn errors_say_whether_the_device_can_go_on() {
    let fail = |verb: &'static str, status: i32| {
        let answer = move |name: &str, _: &[u64]| (name == verb).then_some(status);
        with_fake(answer, || {
            let device = open().unwrap();
            // SAFETY: the driver only records.
            unsafe { device.allocate(device.default_stream(), 64).err().unwrap() }
        })
        .0
    };
    assert_eq!(fail("allocate_async", 2), DeviceError::OutOfMemory { bytes: 64 });
    assert!(matches!(fail("allocate_async", 700), DeviceError::Lost { .. }));
    assert!(matches!(fail("fill_8", 1), DeviceError::Failed { verb: "allocate", .. }));
}

/// More registers, threads or shared memory than there are.
#[test]
fn a_launch_that_needs_more_than_there_is_is_refused_and_the_device_goes_on() {
    let answer = |name: &str, _: &[u64]| (name == "launch").then_some(701);
    let (refused, log) = with_fake(answer, || {
        let device = open().unwrap();
        let part = ImagePart { symbol: "k_t0", bytes: b"code", shape: LaunchShape::default() };
        let cancel = Cancel::new();
        // SAFETY: the driver only records, and loads anything.
        unsafe {
            let module = device.load_module(&Image { name: "k", parts: &[part] }).unwrap();
            let function = device.function(module, "k_t0").unwrap();
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
            let refused = device.launch(&Launch { function, domain: Domain::Once, context });
            device.synchronise(device.default_stream()).unwrap();
            device.unload_module(module);
            refused.unwrap_err()
        }
    });
    assert!(matches!(refused, DeviceError::Failed { verb: "launch", .. }), "{refused:?}");
    assert!(log.iter().any(|call| call == "module_unload"), "{log:?}");
}

/// The number is the driver's own, so that its environment decides which devices there are.
#[test]
fn of_several_devices_the_one_that_is_asked_for_is_opened() {
    let several = |name: &str, words: &[u64]| {
        // SAFETY: the arguments are the addresses of integers.
        let write = |value: i32| unsafe { *(words[0] as *mut i32) = value };
        match name {
            "device_count" => write(4),
            "device_get" => write(10 + words[1] as i32),
            "context_retain" => {
                assert_eq!(words[1], 12, "the device that was got");
                return None;
            }
            _ => return None,
        }
        Some(0)
    };
    let (opened, _) = with_fake(several, || GpuDevice::over(driver().unwrap(), 2).map(drop));
    assert!(opened.is_ok());
    let (missing, _) = with_fake(several, || GpuDevice::over(driver().unwrap(), 4).err().unwrap());
    assert_eq!(missing.reason, Reason::NoSuchDevice { ordinal: 4, count: 4 });
}

#[test]
fn a_library_without_a_function_that_is_needed_is_too_old() {
    let vendor: &Vendor = Box::leak(Box::new(whole_vendor()));
    let find = |symbol: &str| (symbol != "own_launch").then(|| symbol.as_ptr().cast());
    // SAFETY: nothing is called.
    let missing = unsafe { DriverTable::resolve(&vendor.symbols, find) };
    assert_eq!(missing.err(), Some("own_launch"));
    let message = Unavailable::of(vendor, Reason::MissingSymbol { symbol: "own_launch" }).to_string();
    assert!(message.contains("Own driver is too old") && message.contains("own_launch"), "{message}");
}

/// Whoever allocates, frees or makes a stream names who waits: no other stream is told anything.
#[test]
fn memory_and_streams_order_no_other_stream() {
    let ((), log) = with_fake(nothing, || {
        let device = open().unwrap();
        let stream = device.create_stream(StreamPriority::Normal).unwrap();
        // SAFETY: the driver only records.
        unsafe {
            let one = device.allocate(device.default_stream(), 64).unwrap();
            let two = device.allocate(stream, 64).unwrap();
            device.free(stream, one, 64);
            device.free(device.default_stream(), two, 64);
            device.destroy_stream(stream);
        }
    });
    let first = log.iter().position(|call| call == "stream_create").unwrap();
    let order: Vec<_> = log[first..].iter().collect();
    assert_eq!(
        order[..9],
        [
            "stream_create",
            "allocate 768 on 0x0",
            "fill_8 0x0 times 768",
            "allocate 768 on 0x50",
            "fill_8 0x0 times 768 on 0x50",
            "free on 0x50",
            "free on 0x0",
            "stream_synchronise",
            "stream_destroy",
        ]
    );
}

#[test]
fn memory_that_cannot_be_zeroed_goes_back() {
    let refused = |name: &str, _: &[u64]| (name == "fill_8").then_some(1);
    let (result, log) = with_fake(refused, || {
        let device = open().unwrap();
        // SAFETY: the driver only records.
        unsafe { device.allocate(device.default_stream(), 64) }
    });
    assert!(matches!(result, Err(DeviceError::Failed { verb: "allocate", .. })));
    assert!(log.iter().any(|call| call == "free on 0x0"), "{log:?}");
}

#[test]
fn scratch_and_shared_memory_that_cannot_be_used_goes_back() {
    let refused = |name: &str, _: &[u64]| matches!(name, "fill_8" | "host_address").then_some(1);
    let ((), log) = with_fake(refused, || {
        let device = open().unwrap();
        // SAFETY: the driver only records.
        let scratch = unsafe { device.allocate_scratch(device.default_stream(), 6) };
        assert!(matches!(scratch, Err(DeviceError::Failed { verb: "allocate_scratch", .. })));
        let shared = device.allocate_shared(64);
        assert!(matches!(shared, Err(DeviceError::Failed { verb: "allocate_shared", .. })));
    });
    for back in ["free on 0x0", "host_free"] {
        assert!(log.iter().any(|call| call == back), "{back} in {log:?}");
    }
}

/// An allocation that the driver makes wait for another stream's free orders two streams that the program did not.
#[test]
fn no_allocation_waits_for_a_free_of_another_stream() {
    let values = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&values);
    let answer = move |name: &str, words: &[u64]| {
        if name == "pool_set_attribute" && words[1] == 3 {
            // SAFETY: this attribute is an `int`, at the address.
            seen.borrow_mut().push(unsafe { *(words[2] as *const i32) });
        }
        None
    };
    with_fake(answer, || drop(open().unwrap()));
    assert_eq!(*values.borrow(), [0]);
}

/// Bytes between rows are in no copy; two loops are one call where whole rows lie between slices.
#[test]
fn rows_are_scattered_by_the_drivers_copies() {
    let rows = Rows { bytes: 4, count: 100, stride: 8, slices: 1, slice_stride: 0 };
    let ((), log) = with_fake(nothing, || {
        let device = open().unwrap();
        for rows in [
            rows,
            Rows { slices: 3, slice_stride: 1024, ..rows },
            Rows { slices: 2, slice_stride: 1001, ..rows },
            Rows { count: 2, stride: 1 << 32, ..rows },
        ] {
            // SAFETY: the driver only records.
            unsafe { device.scatter(Stream(0), Address(0x10_0000), Address(0x7000), &rows).unwrap() };
        }
    });
    let is_copy = |call: &&String| call.contains(" x ") || call.starts_with("copy ");
    let copies: Vec<_> = log.iter().filter(is_copy).collect();
    assert_eq!(
        copies,
        [
            "4 x 100 by 8 from 0x7000 to 0x100000",
            "4 x 100 by 8 x 3 by 128 rows",
            "4 x 100 by 8 from 0x7000 to 0x100000",
            "4 x 100 by 8 from 0x7190 to 0x1003e9",
            "copy 4 to 0x100000",
            "copy 4 to 0x100100000",
        ]
    );
}

/// A stream that is busy holds its own copies up, and those of no other.
#[test]
fn a_copy_waits_for_chunks_of_its_own_stream_alone() {
    let events = std::cell::Cell::new(0x900_u64);
    let on_busy = std::cell::RefCell::new(Vec::new());
    let answer = move |name: &str, words: &[u64]| match name {
        "event_create" => {
            events.set(events.get() + 1);
            // SAFETY: the first argument is the address of a handle.
            unsafe { (words[0] as *mut u64).write(events.get()) };
            Some(0)
        }
        "event_record" => {
            let mut busy = on_busy.borrow_mut();
            busy.retain(|event| *event != words[0]);
            if words[1] == 0xB5 {
                busy.push(words[0]);
            }
            Some(0)
        }
        // Not ready.
        "event_query" => on_busy.borrow().contains(&words[0]).then_some(600),
        // Whoever waits has waited.
        "event_synchronise" => {
            on_busy.borrow_mut().retain(|event| *event != words[0]);
            Some(0)
        }
        _ => None,
    };
    let ((), log) = with_fake(answer, || {
        let device = open().unwrap();
        let (host, mut back) = (vec![1_u8; 1 << 20], vec![0_u8; 8]);
        let copy = |stream: u64, times: usize| {
            for _ in 0..times {
                // SAFETY: the driver only records; as many bytes are there.
                unsafe {
                    device
                        .copy_to_device(Stream(stream), Address(0x7000), host.as_ptr(), host.len())
                        .unwrap();
                }
            }
        };
        // As many as one stream may have under way, and two more, for which it waits.
        copy(0xB5, 34);
        copy(0, 3);
        copy(0xA1, 3);
        // SAFETY: as above.
        unsafe { device.copy_to_host(Stream(0xA1), back.as_mut_ptr(), Address(0x7000), 8).unwrap() };
        copy(0xB5, 1);
    });
    let waits = |part: &[String]| part.iter().filter(|call| *call == "event_synchronise").count();
    let copies: Vec<_> = (0..log.len()).filter(|&at| log[at] == "copy_to_device").collect();
    assert_eq!(copies.len(), 41);
    assert_eq!(waits(&log[..copies[33]]), 2);
    assert_eq!(waits(&log[copies[33]..copies[39]]), 0, "others wait for nothing");
    assert_eq!(
        waits(&log[copies[39]..copies[40]]),
        1,
        "that of the copy to the host, which there is a free chunk after"
    );
    let made = log.iter().filter(|call| *call == "host_allocate").count();
    assert_eq!(made, 33, "chunks that are done with serve any stream");
}

/// Without an event behind its copy a chunk is used again when its stream is past it; one that was not made does not count; a copy to the host that fails keeps
/// none.
#[test]
fn chunks_of_copies_that_fail_are_used_again_when_they_are_free() {
    let failing = Rc::new(Cell::new(""));
    let told = Rc::clone(&failing);
    let answer = move |name: &str, _: &[u64]| {
        let fails = name == told.get();
        if fails {
            told.set("");
        }
        // An invalid value.
        fails.then_some(1)
    };
    let ((), log) = with_fake(answer, || {
        let device = open().unwrap();
        let mut host = vec![1_u8; 3 << 20];
        let mut copies = |verb: &'static str| {
            failing.set(verb);
            // SAFETY: the driver only records; as many bytes are there.
            unsafe {
                let sent = device.copy_to_device(Stream(0), Address(0x7000), host.as_ptr(), 8);
                failing.set(if sent.is_ok() { verb } else { "" });
                let read = device.copy_to_host(Stream(0), host.as_mut_ptr(), Address(0x7000), host.len());
                failing.set("");
                assert!(verb.is_empty() || sent.is_err() || read.is_err(), "{verb}");
            }
        };
        copies("event_create");
        for _ in 0..40 {
            for verb in ["event_record", "copy_to_host", "event_synchronise", ""] {
                copies(verb);
            }
        }
    });
    let count = |call: &str| log.iter().filter(|one| *one == call).count();
    assert!(count("host_allocate") <= 4, "{}", count("host_allocate"));
    assert_eq!(count("host_allocate"), count("host_free"), "all are given back at the end");
    let at = log.iter().position(|call| call.starts_with("record on")).unwrap();
    assert!(log[at..].iter().any(|call| call == "stream_synchronise"));
}

/// As soon as a stream is destroyed another one may have its handle.
#[test]
fn what_is_kept_of_a_stream_is_forgotten_before_its_handle_is_free() {
    let ((), log) = with_fake(nothing, || {
        let device = open().unwrap();
        // SAFETY: the driver only records.
        unsafe {
            let (module, function) = load_task(&device);
            let range = device.reserve_range(1 << 20).unwrap();
            let stream = device.create_stream(StreamPriority::Normal).unwrap();
            launch_on(&device, function, Domain::Once, stream);
            device.destroy_stream(stream);
            device.free(device.default_stream(), range, 1 << 20);
            device.unload_module(module);
        }
    });
    let at = |name: &str| log.iter().position(|call| call == name).unwrap();
    let destroyed = at("stream_destroy");
    assert_eq!(&log[destroyed - 3..destroyed], ["stream_synchronise", "event_destroy", "event_destroy"]);
}

#[test]
fn priorities_are_the_ends_of_the_drivers_range() {
    use StreamPriority::{High, Low, Normal};
    let (made, log) = with_fake(nothing, || {
        let device = open().unwrap();
        [High, Normal, Low].map(|priority| device.create_stream(priority).unwrap())
    });
    assert_eq!(made.len(), 3);
    let calls = ["context_priorities", "stream_create"];
    let found: Vec<_> = log.iter().filter(|call| calls.iter().any(|name| call.starts_with(name))).collect();
    assert_eq!(
        found,
        [
            "context_priorities",
            "stream_create of priority -5",
            "stream_create",
            "context_priorities",
            "stream_create"
        ]
    );
}

/// Only events that are asked for times cost the device a time stamp, and what is not passed yet is no error.
#[test]
fn times_lie_between_events_that_were_made_for_it() {
    let pending = |name: &str, words: &[u64]| match (name, words) {
        ("event_query", [1]) => Some(600),
        ("event_elapsed", [_, 1, _]) => Some(600),
        ("event_elapsed", [_, 2, _]) => Some(400),
        ("event_elapsed", [at, ..]) => {
            // SAFETY: the first argument is the address of the answer.
            unsafe { *(*at as *mut f32) = 0.25 };
            Some(0)
        }
        _ => None,
    };
    let ((), log) = with_fake(pending, || {
        let device = open().unwrap();
        device.create_event(false).unwrap();
        device.create_event(true).unwrap();
        // SAFETY: the driver only records.
        unsafe {
            assert!(!device.event_passed(Event(1)) && device.event_passed(Event(3)));
            assert_eq!(device.poll_event(Event(1)), Ok(false));
            assert_eq!(device.poll_event(Event(3)), Ok(true));
            assert_eq!(device.elapsed(Event(1), Event(3)), Ok(None));
            assert_eq!(device.elapsed(Event(2), Event(3)), Ok(None));
            assert_eq!(device.elapsed(Event(3), Event(3)), Ok(Some(250_000.0)));
            device.synchronise_event(Event(1)).unwrap();
        }
    });
    let flags: Vec<_> = log.iter().filter(|call| call.starts_with("event_create")).collect();
    assert_eq!(flags[flags.len() - 2..], ["event_create", "event_create with timing"]);
    assert!(log.iter().any(|call| call == "event_synchronise"));
}

#[test]
fn a_lost_device_calls_the_driver_no_more_and_a_new_one_begins_with_a_reset() {
    let faults = |name: &str, _: &[u64]| matches!(name, "stream_query").then_some(700);
    let (address, log) = with_fake(faults, || {
        let device = open().unwrap();
        let default = device.default_stream();
        // SAFETY: the driver only records.
        unsafe {
            let address = device.allocate(default, 64).unwrap();
            assert!(device.is_idle(default), "a lost device runs nothing");
            assert!(matches!(device.poll(default), Err(DeviceError::Lost { .. })));
            device.free(default, address, 64);
            assert!(matches!(device.synchronise(default), Err(DeviceError::Lost { .. })));
            address
        }
    });
    assert_ne!(address, Address::NULL);
    assert_eq!(log.last().unwrap(), "error_name", "nothing after the fault: {log:?}");
    let (_, log) = with_fake(|name, _| (name == "context_synchronise").then_some(700), || open().map(drop));
    assert!(log.iter().any(|call| call == "context_reset"), "{log:?}");
}

#[test]
fn a_device_that_is_lost_leaves_the_others_as_they_are() {
    let vendor: &'static Vendor = Box::leak(Box::new(whole_vendor()));
    let faulty = Rc::new(std::cell::Cell::new(false));
    let is_faulty = Rc::clone(&faulty);
    let answer = move |name: &str, words: &[u64]| match name {
        "device_count" | "device_get" => {
            let value = if name == "device_count" { 2 } else { words[1] as i32 };
            // SAFETY: the first argument is the address of an integer.
            unsafe { (words[0] as *mut i32).write(value) };
            Some(0)
        }
        "context_synchronise" if is_faulty.replace(false) => Some(700),
        _ => None,
    };
    let ((), log) = with_fake(answer, || {
        let open = |number| GpuDevice::over(Driver::over(recorded::TABLE, vendor).unwrap(), number).unwrap();
        let (first, second) = (open(0), open(1));
        faulty.set(true);
        let third = open(1);
        // SAFETY: the default stream.
        let allocate = |device: &GpuDevice| unsafe { device.allocate(Stream(0), 64) };
        assert!(matches!(allocate(&second), Err(DeviceError::Lost { .. })), "its context was reset");
        assert!(allocate(&third).is_ok() && allocate(&first).is_ok());
    });
    assert!(log.iter().any(|call| call == "context_reset"), "{log:?}");
}

#[test]
fn more_arguments_than_parameters_hold_go_through_memory() {
    let many = vec![0; 5000];
    let ((), log) = with_fake(nothing, move || {
        let device = open().unwrap();
        let part = ImagePart { symbol: "k_t0", bytes: b"code", shape: LaunchShape::default() };
        let cancel = Cancel::new();
        // SAFETY: the driver only records, and loads anything.
        unsafe {
            let module = device.load_module(&Image { name: "k", parts: &[part] }).unwrap();
            let function = device.function(module, "k_t0").unwrap();
            let context = LaunchContext {
                stream: device.default_stream(),
                args: &many,
                memory: LaunchMemory::NONE,
                cancel: &cancel,
                caller: None,
                key: 0,
                launch: 0,
                prints: None,
            };
            device.launch(&Launch { function, domain: Domain::Once, context }).unwrap();
            device.unload_module(module);
        }
    });
    let from = log.iter().position(|call| call == "allocate 5120 on 0x0").unwrap();
    let wanted = ["copy_to_device", "launch 1 x 1 on 0x0", "free on 0x0"];
    let found: Vec<_> = log[from..].iter().filter(|call| wanted.contains(&call.as_str())).collect();
    assert_eq!(found, wanted);
}

#[test]
fn a_range_gets_memory_beside_what_runs() {
    let fails_once = std::cell::Cell::new(true);
    let answer = move |name: &str, words: &[u64]| match name {
        "range_reserve" => {
            // SAFETY: the first argument is the address of an address.
            unsafe { (words[0] as *mut u64).write(0x4000_0000) };
            Some(0)
        }
        // Out of memory.
        "memory_create" => Some(if fails_once.replace(false) { 2 } else { 0 }),
        _ => None,
    };
    let ((), log) = with_fake(answer, || {
        let device = open().unwrap();
        assert!(device.capabilities().has(Capabilities::GROWING_RANGES));
        let range = device.reserve_range(100 << 20).unwrap();
        // SAFETY: the driver only records.
        unsafe {
            device.back(range, 1 << 20, 8 << 20).unwrap();
            device.back(range, 0, 4 << 20).unwrap();
            device.write_beside(range, &[1, 2, 3, 4]).unwrap();
            device.read_beside(range, &mut [0; 4]).unwrap();
            device.free(device.default_stream(), range, 100 << 20);
        }
    });
    let begin = log.iter().position(|call| call == "range_reserve").unwrap();
    let ignored = ["error_text", "error_name"];
    let calls: Vec<_> = log[begin..].iter().filter(|call| !ignored.contains(&call.as_str())).collect();
    assert_eq!(
        calls[..24],
        [
            "range_reserve",
            "host_allocate",
            "stream_create",
            // Memory that the pool of allocations keeps is asked for, too.
            "memory_create",
            "pool_trim",
            "memory_create",
            "memory_map",
            "memory_release",
            "memory_set_access",
            // Five pages, the zeros of two at a time; nothing waits for the default stream.
            "copy_to_device",
            "copy_to_device",
            "copy_to_device",
            "stream_synchronise",
            // All that lies below has memory, and nothing is done; words are copied.
            "copy_to_device",
            "stream_synchronise",
            "copy_to_host",
            "stream_synchronise",
            // Given back, it keeps its memory until something else may wait: here the end of the device.
            "stream_synchronise",
            "context_synchronise",
            "memory_unmap",
            "range_free",
            "stream_synchronise",
            "stream_destroy",
            "host_free",
        ]
    );
}

/// A module of one task. The driver only records.
unsafe fn load_task(device: &GpuDevice) -> (octants_hal::Module, Function) {
    let part = ImagePart { symbol: "t", bytes: b"", shape: LaunchShape::default() };
    // SAFETY: the caller gives a device of the fake driver's.
    unsafe {
        let module = device.load_module(&Image { name: "t", parts: &[part] }).unwrap();
        (module, device.function(module, "t").unwrap())
    }
}

#[test]
fn launches_never_fill_a_queue_once_there_are_ranges() {
    let waits = std::cell::Cell::new(0);
    let answer = move |name: &str, _: &[u64]| match name {
        // Not ready, twice.
        "event_query" => {
            waits.set(waits.get() + 1);
            Some(if waits.get() < 3 { 600 } else { 0 })
        }
        _ => None,
    };
    let ((), log) = with_fake(answer, || {
        let device = open().unwrap();
        // SAFETY: the driver only records.
        unsafe {
            let (module, function) = load_task(&device);
            let launch = |times: usize| (0..times).for_each(|_| launch_in(&device, function, Domain::Once));
            launch(300);
            let range = device.reserve_range(1 << 20).unwrap();
            launch(600);
            device.free(device.default_stream(), range, 1 << 20);
            device.unload_module(module);
        }
    });
    let count = |name: &str| log.iter().filter(|call| call.starts_with(name)).count();
    assert_eq!((count("launch"), count("event_query"), count("record")), (900, 5, 3));
}

/// Another library makes streams and destroys them without a word.
#[test]
fn what_is_kept_of_other_libraries_streams_does_not_grow() {
    let (handles, is_busy) = (Cell::new(0x9000), Cell::new(false));
    let answer = move |name: &str, words: &[u64]| match name {
        "event_create" => {
            handles.set(handles.get() + 1);
            // SAFETY: the first argument is the address of what the caller wants written.
            unsafe { *(words[0] as *mut u64) = handles.get() };
            Some(0)
        }
        // What the first stream was told is never over.
        "event_record" if words[0] == 0x9001 => {
            is_busy.set(true);
            None
        }
        "event_query" if words[0] == 0x9001 && is_busy.get() => Some(600),
        "event_destroy" if words[0] == 0x9001 => {
            assert!(handles.get() > 0x9000 + 1990, "it was forgotten with the last ones");
            None
        }
        _ => None,
    };
    let ((), log) = with_fake(answer, || {
        let device = open().unwrap();
        // SAFETY: the driver only records.
        unsafe {
            let (module, function) = load_task(&device);
            let range = device.reserve_range(1 << 20).unwrap();
            for stream in 0..1000 {
                launch_on(&device, function, Domain::Once, Stream(0xA000 + stream));
            }
            device.free(device.default_stream(), range, 1 << 20);
            device.unload_module(module);
        }
    });
    let (mut live, mut most) = (0_usize, 0);
    for call in &log {
        match &**call {
            "event_create" => live += 1,
            "event_destroy" => live -= 1,
            _ => {}
        }
        most = most.max(live);
    }
    assert!(most <= 140, "{most}");
}

/// A launch that waits for room in its stream's queue holds up no launch of another stream.
#[test]
fn a_full_queue_holds_up_its_own_stream_alone() {
    use std::sync::atomic::{AtomicBool, Ordering};
    static OTHER_LAUNCHED: AtomicBool = AtomicBool::new(false);
    // While one thread waits for a mark, another must get its launch through: it is asked to in the middle of the wait.
    let answer = |name: &str, _: &[u64]| match name {
        "event_query" => Some(if OTHER_LAUNCHED.load(Ordering::Acquire) { 0 } else { 600 }),
        _ => None,
    };
    let ((), _) = with_fake(answer, || {
        let device = open().unwrap();
        // SAFETY: the driver only records.
        unsafe {
            let (module, function) = load_task(&device);
            let range = device.reserve_range(1 << 20).unwrap();
            let launch = |stream: u64| launch_on(&device, function, Domain::Once, Stream(stream));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    // Calls of this thread are answered by success.
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    launch(0xA1);
                    OTHER_LAUNCHED.store(true, Ordering::Release);
                });
                (0..600).for_each(|_| launch(0));
            });
            device.free(device.default_stream(), range, 1 << 20);
            device.unload_module(module);
        }
    });
    assert!(OTHER_LAUNCHED.load(Ordering::Acquire));
}
