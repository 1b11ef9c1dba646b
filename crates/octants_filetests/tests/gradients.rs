//! Random kernels: reverse mode against forward mode against differences, on the interpreter, before and after all passes.
//!
//! `OCTANTS_GRADIENT_PROGRAMS=20000` runs so many, from `OCTANTS_GRADIENT_FIRST` on, `OCTANTS_GRADIENT_SEED=42` that one alone.

mod gradient_programs;

use gradient_programs::{EXTENT, Xorshift, program, shape};
use octants_filetests::gradients::check;
use octants_filetests::{TestFile, repository, test_files};
use octants_interp::{Arg, Buffers};
use octants_ir::text::{parse, print};
use octants_ir::{Data, Phase, Scalar, Type, verify};
use octants_passes::{Mode, PipelineOptions, Storage, differentiate, run_pipeline};

/// Seeds that once failed, and what they found. They run with the others.
const FOUND: [u64; 2] = [
    20376, // a tape for the derivative of a variable's first value, a constant, which later gets another
    21929, // a tape for all of an array of which one component, at an index that is known after all, is carried
];

fn run_one(seed: u64) -> Result<bool, String> {
    let kernel = program(seed, EXTENT);
    if let Err(broken) = octants_ir::verify(&kernel) {
        return Err(format!("{}\n{}", broken[0], octants_ir::text::print(&kernel)));
    }
    let mut random = Xorshift(seed | 1 << 40);
    let mut memory = Buffers::new();
    let mut args = Vec::new();
    let mut storage = Vec::new();
    for (number, &param) in kernel.regions[kernel.body].params.iter().enumerate() {
        let Type::Array(array) = kernel.ty(param) else { unreachable!("all are arrays") };
        let shape = shape(&kernel.params[number].name, EXTENT);
        let count: i32 = shape.iter().product();
        let real = array.elem == Data::Scalar(Scalar::F64);
        let bytes = (0..count).flat_map(|_| {
            if real {
                // None of the constants that it may be compared with.
                (random.real() + 0.000_417).to_le_bytes().to_vec()
            } else {
                (random.below(EXTENT as usize) as i32).to_le_bytes().to_vec()
            }
        });
        let address = memory.add(bytes.collect());
        args.push(Arg::Array { address, shape });
        storage.push(if real { Storage::Companion(None) } else { Storage::Constant });
    }
    check(&kernel, &storage, args, memory)
        .map(|outcome| outcome.is_ok())
        .map_err(|error| format!("seed {seed}: {error}"))
}

#[test]
fn derivatives_of_random_kernels_agree() {
    let setting = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let one = setting("OCTANTS_GRADIENT_SEED");
    let first = one.or_else(|| setting("OCTANTS_GRADIENT_FIRST")).unwrap_or(0);
    let count = one.map(|_| 1).or_else(|| setting("OCTANTS_GRADIENT_PROGRAMS"));
    let seeds = first..first + count.unwrap_or(300);
    let (mut agree, mut failures) = (0, Vec::new());
    let found = FOUND.into_iter().filter(|seed| one.is_none() && !seeds.contains(seed));
    for seed in seeds.clone().chain(found) {
        match run_one(seed) {
            Ok(agrees) => agree += u64::from(agrees),
            Err(error) => failures.push(error),
        }
    }
    let count = seeds.end - seeds.start;
    println!("{agree} of {count} agree, {} fail", failures.len());
    if let Some(shortest) = failures.iter().min_by_key(|error| error.len()) {
        panic!("{} of {count} fail, {agree} agree:\n{shortest}", failures.len());
    }
    // The others are refused, since they overwrite what they need.
    assert!(count < 100 || agree * 2 > count, "only {agree} of {count} have a derivative");
}

/// Whatever a kernel holds: it has a derivative that keeps the laws, also after all passes, or is refused.
#[test]
fn every_kernel_of_the_test_files_is_differentiated_or_refused() {
    let root = repository().join("filetests");
    let (mut made, mut refused) = (0, 0);
    for path in test_files(&root).unwrap() {
        let source = std::fs::read_to_string(&path).unwrap();
        let cases = TestFile::parse(&source).unwrap().cases;
        // Loops over lanes are made of what was differentiated before.
        let cases = cases.iter().filter(|case| !case.input.contains("for_lanes"));
        let kernels = cases.filter_map(|case| parse(&case.input).ok());
        for kernel in kernels.filter(|kernel| kernel.phase == Phase::Structured && verify(kernel).is_ok()) {
            let storage = vec![Storage::Companion(None); kernel.params.len()];
            for mode in [Mode::Forward, Mode::Reverse] {
                let Ok(derivative) = differentiate(&kernel, mode, &storage) else {
                    refused += 1;
                    continue;
                };
                made += 1;
                let sizing = derivative.tapes.map(|tapes| tapes.sizing);
                for kernel in [derivative.kernel].into_iter().chain(sizing) {
                    if let Err(broken) = verify(&kernel) {
                        panic!("{}: {}\n{}", path.display(), broken[0], print(&kernel));
                    }
                    run_pipeline(kernel, PipelineOptions { verify: true, ..PipelineOptions::default() });
                }
            }
        }
    }
    assert!(made > 500 && refused > 20, "{made} derivatives, {refused} refusals");
}
