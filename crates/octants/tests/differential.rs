//! The random kernels of the passes' tests as native code, optimised and not, against the interpreter: results, memory and what is
//! printed. Loops run in order, since the kernels depend on it.

#![allow(unsafe_code, dead_code)]

#[path = "../../octants_passes/tests/differential/generate/mod.rs"]
mod generate;
#[path = "../../octants_passes/tests/differential/random.rs"]
mod random;

use std::time::Duration;

use generate::EXTENT;
use octants::ir::ops::{MathUnary, OpKind};
use octants::ir::plan::{ArgKind, leaves_of, size_and_align};
use octants::ir::{Const, Data, Kernel, KernelOptions, LocData, text};
use octants::{Arch, Arguments, Session, SessionOptions};
use random::Random;

static NEVER: octants::Cancel = octants::Cancel::new();

/// Results, arrays, and what was printed.
type Outcome = (Vec<Const>, Vec<Vec<Const>>, String);

/// In order, and without functions of the C library, which round in their own ways.
fn exact(mut kernel: Kernel) -> Kernel {
    for op in kernel.ops.ids() {
        match &mut kernel.ops[op].kind {
            OpKind::ParallelFor(attributes) => attributes.max_threads = Some(1),
            kind @ OpKind::MathUnary(MathUnary::Sin) => *kind = OpKind::MathUnary(MathUnary::Ceil),
            _ => {}
        }
    }
    kernel
}

fn run(session: &Session, kernel: &Kernel, seed: u64) -> Outcome {
    let compiled = session.compile(kernel.clone(), Duration::ZERO, &NEVER).unwrap();
    let mut random = Random::new(seed);
    let mut args = vec![0; compiled.args().bytes as usize];
    let mut arrays = Vec::new();
    for slot in &compiled.args().slots {
        let at = slot.offset as usize;
        match slot.kind {
            ArgKind::Data(data) => put(kernel, data, &mut args[at..], &mut random),
            ArgKind::Array(array) => {
                let size = size_and_align(kernel, array.elem).0 as usize;
                let count = match array.layout {
                    Some(_) => slot.span as usize / size,
                    None => (EXTENT as usize).pow(array.rank.into()),
                };
                // Words, for their alignment.
                let mut memory = vec![0_u64; (size * count).div_ceil(8)];
                let bytes = bytes_of(&mut memory);
                bytes
                    .chunks_exact_mut(size)
                    .take(count)
                    .for_each(|one| put(kernel, array.elem, one, &mut random));
                args[at..at + 8].copy_from_slice(&(memory.as_ptr() as u64).to_le_bytes());
                for axis in 0..array.rank * u8::from(array.layout.is_none()) {
                    let extent = slot.extent_offset(axis) as usize;
                    args[extent..extent + 4].copy_from_slice(&EXTENT.to_le_bytes());
                }
                arrays.push((memory, array.elem, size, count));
            }
        }
    }
    let mut results = vec![0; compiled.results().bytes as usize];
    // SAFETY: the arrays have the extents that stand beside their addresses, and live until the end of this function.
    let arguments = unsafe { Arguments::new(&args) };
    let (printed, ended) =
        compiled.launch_printing(arguments, &mut results, None, &NEVER, &|_: &LocData| String::new());
    ended.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", text::print(kernel)));
    let slots = compiled.results().slots.iter();
    let results = slots.flat_map(|slot| read(kernel, slot.data, &results[slot.offset as usize..])).collect();
    let contents = arrays.iter_mut().map(|(memory, elem, size, count)| {
        let elements = bytes_of(memory).chunks_exact(*size).take(*count);
        elements.flat_map(|element| read(kernel, *elem, element)).collect()
    });
    (results, contents.collect(), printed)
}

fn bytes_of(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: any bytes are words, and the other way round.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len() * 8) }
}

/// Writes numbers into all scalars of a value.
fn put(kernel: &Kernel, data: Data, bytes: &mut [u8], random: &mut Random) {
    for (offset, ty) in leaves_of(kernel, data) {
        let number = random.below(40) as i32 - 20;
        let scalar = if ty.is_real() {
            Const::from_f64(ty, f64::from(number) * 0.75)
        } else {
            Const::from_i128(ty, number.into())
        };
        let width = ty.bytes() as usize;
        bytes[offset as usize..][..width].copy_from_slice(&scalar.bits().to_le_bytes()[..width]);
    }
}

/// All scalars of a value.
fn read(kernel: &Kernel, data: Data, bytes: &[u8]) -> Vec<Const> {
    let leaves = leaves_of(kernel, data).into_iter();
    leaves.map(|(offset, ty)| without_payload(Const::from_bytes(ty, &bytes[offset as usize..]))).collect()
}

/// Which NaN it is says nothing.
fn without_payload(c: Const) -> Const {
    if c.ty().is_real() && c.as_f64().is_nan() { Const::from_f64(c.ty(), f64::NAN) } else { c }
}

/// `OCTANTS_SEEDS=first..end` runs others.
#[test]
fn random_kernels_run_as_the_interpreter_runs_them() {
    let seeds = std::env::var("OCTANTS_SEEDS").unwrap_or_else(|_| "0..24".into());
    let range: Vec<u64> = seeds.split("..").filter_map(|end| end.parse().ok()).collect();
    let &[first, end] = &range[..] else { panic!("OCTANTS_SEEDS is `first..end`") };
    for seed in first..end {
        let kernel = exact(generate::kernel(seed));
        let outcome = |arch, opt_level| {
            let options = SessionOptions {
                arch,
                opt_level,
                kernel: KernelOptions::default(),
                threads: 1,
                random_seed: seed,
                ..SessionOptions::default()
            };
            run(&Session::new(options).unwrap(), &kernel, seed)
        };
        let expected = outcome(Arch::Reference, 1);
        for level in [1, 0] {
            let found = outcome(Arch::Cpu, level);
            assert!(
                found == expected,
                "seed {seed}, level {level}\nfound:    {found:?}\nexpected: {expected:?}\n{}",
                text::print(&kernel)
            );
        }
    }
}
