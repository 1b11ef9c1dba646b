//! What the driver takes for a launch, by the ways there are to tell it. Prints microseconds for each; needs a GPU.
//!
//! `cargo run --release -p octants_cuda --example launch_cost`

#![allow(unsafe_code)]

use std::ffi::{CString, c_void};
use std::ptr;
use std::time::Instant;

use octants_cuda::driver::Driver;
use octants_cuda::driver::table::Handle;

const PTX: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry empty(.param .align 8 .b8 args[32], .param .align 8 .b8 frame[72]) { ret; }
";

fn main() {
    let driver = match Driver::load() {
        Ok(driver) => driver,
        Err(why) => return println!("no GPU: {why}"),
    };
    let table = &driver.table;
    let (mut device, mut context, mut module, mut function) =
        (0, ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    let (mut blocking, mut free) = (ptr::null_mut(), ptr::null_mut());
    let (text, name) = (CString::new(PTX).unwrap(), CString::new("empty").unwrap());
    // SAFETY: the driver's own calls, in the order that it asks for.
    unsafe {
        assert_eq!((table.device_get)(&raw mut device, 0), 0);
        assert_eq!((table.context_retain)(&raw mut context, device), 0);
        assert_eq!((table.context_set_current)(context), 0);
        assert_eq!(
            (table.module_load)(&raw mut module, text.as_ptr().cast(), 0, ptr::null_mut(), ptr::null_mut(),),
            0
        );
        assert_eq!((table.module_function)(&raw mut function, module, name.as_ptr()), 0);
        assert_eq!((table.stream_create)(&raw mut blocking, 0, 0), 0);
        assert_eq!((table.stream_create)(&raw mut free, 1, 0), 0);
    }
    let (args, frame) = ([0_u64; 4], [0_u64; 9]);
    let launch = |stream: Handle| {
        let mut parameters: [*mut c_void; 2] =
            [args.as_ptr().cast_mut().cast(), frame.as_ptr().cast_mut().cast()];
        // SAFETY: the kernel takes these parameters and does nothing.
        let status = unsafe {
            (table.launch)(function, 1, 1, 1, 256, 1, 1, 0, stream, parameters.as_mut_ptr(), ptr::null_mut())
        };
        assert_eq!(status, 0);
    };
    let packed = |stream: Handle| {
        let mut buffer = [0_u64; 13];
        let mut size = 104_usize;
        let mut extra: [*mut c_void; 5] = [
            ptr::dangling_mut::<c_void>(),
            buffer.as_mut_ptr().cast(),
            2 as *mut c_void,
            (&raw mut size).cast(),
            ptr::null_mut(),
        ];
        // SAFETY: as above, in one buffer.
        let status = unsafe {
            (table.launch)(function, 1, 1, 1, 256, 1, 1, 0, stream, ptr::null_mut(), extra.as_mut_ptr())
        };
        assert_eq!(status, 0);
    };
    let time = |what: &str, work: &dyn Fn()| {
        let mut best = f64::MAX;
        for _ in 0..30 {
            let begin = Instant::now();
            for _ in 0..200 {
                work();
            }
            best = best.min(begin.elapsed().as_secs_f64() / 200.0);
            // SAFETY: the context is current.
            unsafe { (table.context_synchronise)() };
        }
        println!("{what:40} {:.3} us", best * 1e6);
    };
    time("set_current", &|| {
        // SAFETY: the context lives.
        unsafe { (table.context_set_current)(context) };
    });
    time("legacy stream", &|| launch(ptr::null_mut()));
    time("per-thread stream", &|| launch(2 as Handle));
    time("blocking stream", &|| launch(blocking));
    time("non-blocking stream", &|| launch(free));
    time("legacy stream, packed", &|| packed(ptr::null_mut()));
    time("non-blocking stream, packed", &|| packed(free));
}
