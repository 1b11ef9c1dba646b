//! What a launch and a compilation cost below Python, and how fast arrays are filled.

#![allow(unsafe_code)]

#[path = "../tests/programs/mod.rs"]
mod programs;

use std::hint::black_box;
use std::time::{Duration, Instant};

use octants::ir::{Builder, Const, Kernel, Scalar};
use octants::{Arch, Arguments, CompiledKernel, HostQueue, NdArray, Session, SessionOptions};
use programs::{NEVER, compile};

fn main() {
    let session = Session::new(SessionOptions { arch: Arch::Cpu, ..SessionOptions::default() }).unwrap();
    let (x, y) = (array(&session, 100), array(&session, 100));
    let address = |array: &NdArray| array.address(&session).unwrap();

    let nothing = compile(&session, nothing());
    report("launch, no argument", latency(&nothing, &[]));
    let saxpy = compile(&session, programs::saxpy());
    let block = saxpy_block(&saxpy, address(&x), address(&y), 100);
    report("launch, two arrays of 100 and a scalar", latency(&saxpy, &block));
    let block = saxpy_block(&saxpy, address(&x), address(&x), 100);
    report("launch, one array twice", latency(&saxpy, &block));
    for n in [10_000, 100_000] {
        let (x, y) = (array(&session, n), array(&session, n));
        let block = saxpy_block(&saxpy, address(&x), address(&y), n);
        report(&format!("saxpy of {n}"), latency(&saxpy, &block));
    }

    for kernel in [programs::saxpy(), programs::sum(), programs::stencil()] {
        let fresh = Session::new(*session.options()).unwrap();
        let compiled = compile(&fresh, kernel);
        let s = compiled.statistics();
        let [passes, emit, llvm, load] = [s.passes, s.emit, s.llvm, s.load].map(|t| t.as_secs_f64() * 1e3);
        let name = compiled.name();
        println!("compile {name}: passes {passes:.2}, emit {emit:.2}, llvm {llvm:.2}, load {load:.2} ms");
    }

    for megabytes in [1, 16, 256] {
        let array = array(&session, megabytes << 18);
        let fill = |value: f32| array.fill(&[Const::f32(value)], HostQueue::default()).unwrap();
        fill(1.0);
        let rounds = 1024 / megabytes;
        let best = (0..5).map(|_| time(|| (0..rounds).for_each(|_| fill(black_box(2.5))))).min().unwrap();
        let bytes = f64::from(rounds) * array.bytes() as f64;
        println!("fill of {megabytes} MiB: {:.1} GB/s", bytes / best.as_secs_f64() / 1e9);
    }
    let begin = Instant::now();
    let fresh = array(&session, 64 << 20);
    fresh.fill(&[Const::f32(1.0)], HostQueue::default()).unwrap();
    println!("allocate and first fill of 256 MiB: {:.1} ms", begin.elapsed().as_secs_f64() * 1e3);
}

fn nothing() -> Kernel {
    let mut kernel = Kernel::new("nothing");
    Builder::new(&mut kernel).returns(&[]);
    kernel
}

fn array(session: &Session, n: i32) -> NdArray {
    NdArray::new(session, Scalar::F32.into(), &[n]).unwrap()
}

fn saxpy_block(kernel: &CompiledKernel, x: u64, y: u64, n: i32) -> Vec<u8> {
    let mut block = vec![0; kernel.args().bytes as usize];
    for (slot, address) in kernel.args().slots[1..].iter().zip([x, y]) {
        let at = slot.offset as usize;
        block[at..at + 8].copy_from_slice(&address.to_le_bytes());
        block[at + 8..at + 12].copy_from_slice(&n.to_le_bytes());
    }
    block
}

/// The least time of a launch, in nanoseconds.
fn latency(kernel: &CompiledKernel, block: &[u8]) -> f64 {
    let launch = || {
        // SAFETY: the caller's block holds arrays that live until the end of the program's main function.
        let arguments = unsafe { Arguments::new(black_box(block)) };
        kernel.launch(arguments, &mut [], None, &NEVER).unwrap();
    };
    launch();
    let rounds = 2000;
    let best = (0..50).map(|_| time(|| (0..rounds).for_each(|_| launch()))).min().unwrap();
    best.as_secs_f64() * 1e9 / f64::from(rounds)
}

fn time(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

fn report(what: &str, nanoseconds: f64) {
    println!("{what}: {nanoseconds:.0} ns");
}
