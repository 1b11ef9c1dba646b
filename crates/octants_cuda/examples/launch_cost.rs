//! What the driver takes for a launch, by the ways there are to tell it. Prints microseconds for each; needs a GPU of compute capability
//! 9.0 or newer.
//!
//! Two figures each: of a few launches, which the queue takes at once, so that only the host's part counts; and of many with a wait at
//! the end, where the device's part counts if it is the longer one.
//!
//! `cargo run --release -p octants_cuda --example launch_cost`

#![allow(unsafe_code)]

use std::ffi::{CString, c_void};
use std::ptr;
use std::time::Instant;

use octants_cuda::NVIDIA;
use octants_gpu::driver::Driver;
use octants_gpu::driver::table::{Handle, LaunchAttribute, LaunchConfig};

/// The parameters of a kernel of ours with one array and with four; one waits for the launch before it.
const PTX: &str = "
.version 7.8
.target sm_90
.address_size 64
.visible .entry none() { ret; }
.visible .entry one(.param .align 8 .b8 args[16], .param .align 8 .b8 frame[72]) { ret; }
.visible .entry four(.param .align 8 .b8 args[72], .param .align 8 .b8 frame[72]) { ret; }
.visible .entry waits(.param .align 8 .b8 args[16], .param .align 8 .b8 frame[72]) { griddepcontrol.wait; ret; }
";

/// Threads of the one block.
const THREADS: u32 = 256;

fn main() {
    let driver = match Driver::load(&NVIDIA) {
        Ok(driver) => driver,
        Err(why) => return println!("no GPU: {why}"),
    };
    let table = &driver.table;
    let (mut device, mut context, mut module) = (0, ptr::null_mut(), ptr::null_mut());
    let (mut blocking, mut free) = (ptr::null_mut(), ptr::null_mut());
    let text = CString::new(PTX).unwrap();
    // SAFETY: the driver's own calls, in the order that it asks for.
    unsafe {
        assert_eq!((table.device_get)(&raw mut device, 0), 0);
        assert_eq!((table.context_retain)(&raw mut context, device), 0);
        assert_eq!((table.context_set_current)(context), 0);
        assert_eq!(
            (table.module_load)(&raw mut module, text.as_ptr().cast(), 0, ptr::null_mut(), ptr::null_mut()),
            0
        );
        assert_eq!((table.stream_create)(&raw mut blocking, 0, 0), 0);
        assert_eq!((table.stream_create)(&raw mut free, 1, 0), 0);
    }
    let [none, one, four, waits] = ["none", "one", "four", "waits"].map(|name| {
        let (mut function, name) = (ptr::null_mut(), CString::new(name).unwrap());
        // SAFETY: the module is loaded.
        assert_eq!(unsafe { (table.module_function)(&raw mut function, module, name.as_ptr()) }, 0);
        function
    });
    let (args, frame) = ([0_u64; 9], [0_u64; 9]);
    let parameters =
        || -> [*mut c_void; 2] { [args.as_ptr().cast_mut().cast(), frame.as_ptr().cast_mut().cast()] };
    let launch = |function: Handle, stream: Handle| {
        let mut parameters = parameters();
        // SAFETY: the kernel takes these parameters, or some of them, and does nothing.
        let status = unsafe {
            let (parameters, extra) = (parameters.as_mut_ptr(), ptr::null_mut());
            (table.launch)(function, 1, 1, 1, THREADS, 1, 1, 0, stream, parameters, extra)
        };
        assert_eq!(status, 0);
    };
    let attribute = LaunchAttribute::waits(&NVIDIA.flags);
    let launch_with = |function: Handle, stream: Handle, attribute_count: u32| {
        let (grid, block, attributes) = ([1, 1, 1], [THREADS, 1, 1], &raw const attribute);
        let config = LaunchConfig { grid, block, shared_bytes: 0, stream, attributes, attribute_count };
        let mut parameters = parameters();
        // SAFETY: as above.
        let status = unsafe {
            let (parameters, extra) = (parameters.as_mut_ptr(), ptr::null_mut());
            (table.launch_with_attributes.unwrap())(&raw const config, function, parameters, extra)
        };
        assert_eq!(status, 0);
    };
    let packed = |function: Handle, mut bytes: usize, stream: Handle| {
        let mut buffer = [0_u64; 18];
        let mut extra: [*mut c_void; 5] = [
            ptr::without_provenance_mut(1),
            buffer.as_mut_ptr().cast(),
            ptr::without_provenance_mut(2),
            (&raw mut bytes).cast(),
            ptr::null_mut(),
        ];
        // SAFETY: as above, in one buffer.
        let status = unsafe {
            let (parameters, extra) = (ptr::null_mut(), extra.as_mut_ptr());
            (table.launch)(function, 1, 1, 1, THREADS, 1, 1, 0, stream, parameters, extra)
        };
        assert_eq!(status, 0);
    };
    let time = |what: &str, work: &dyn Fn()| {
        let best = |count: u32, is_over: bool, samples: u32| {
            let sample = |_| {
                let begin = Instant::now();
                for _ in 0..count {
                    work();
                }
                let told = begin.elapsed().as_secs_f64();
                // SAFETY: the context is current.
                unsafe { (table.context_synchronise)() };
                let over = begin.elapsed().as_secs_f64();
                (if is_over { over } else { told }) / f64::from(count) * 1e6
            };
            (0..samples).map(sample).fold(f64::MAX, f64::min)
        };
        println!(
            "{what:55} {:7.3} us of the host, {:7.3} us of many",
            best(200, false, 30),
            best(4000, true, 10)
        );
    };
    let (legacy, named): (Handle, Handle) = (ptr::null_mut(), ptr::without_provenance_mut(1));
    time("set_current", &|| {
        // SAFETY: the context lives.
        unsafe { (table.context_set_current)(context) };
    });
    // Clocks and neighbours make the figures of one way differ by a tenth: all ways, twice.
    for _ in 0..2 {
        time("no parameter, legacy stream", &|| launch(none, legacy));
        time("one array, legacy stream", &|| launch(one, legacy));
        time("one array, legacy stream by its name", &|| launch(one, named));
        time("one array, legacy stream, packed", &|| packed(one, 88, legacy));
        time("one array, blocking stream", &|| launch(one, blocking));
        time("one array, non-blocking stream", &|| launch(one, free));
        time("one array, legacy stream, with no attribute", &|| launch_with(one, legacy, 0));
        time("one array, legacy stream, waits", &|| launch_with(waits, legacy, 1));
        time("one array, non-blocking stream, waits", &|| launch_with(waits, free, 1));
        time("four arrays, legacy stream", &|| launch(four, legacy));
    }
}
