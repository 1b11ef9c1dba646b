//! Gradients of random kernels: native code, with lanes and threads, and memory that a launch provides, against the interpreter.
//!
//! `OCTANTS_GRADIENT_PROGRAMS=2000` runs so many, `OCTANTS_GRADIENT_SEED=42` that one alone.

#[path = "../../octants_filetests/tests/gradient_programs/mod.rs"]
mod gradient_programs;
mod programs;

use gradient_programs::{Xorshift, program, shape};
use octants::ir::text::print;
use octants::ir::{Const, Data, Kernel, Scalar, Type};
use octants::{Arch, HostQueue, Invocation, Mode, NdArray, Session, Storage};
use programs::{NEVER, compile, session, values};

/// Points of parallel loops: more than the lanes of a widened loop, and some more.
const POINTS: i32 = 75;

fn is_real(kernel: &Kernel, param: usize) -> bool {
    let ty = kernel.ty(kernel.regions[kernel.body].params[param]);
    matches!(ty, Type::Array(array) if array.elem == Data::Scalar(Scalar::F64))
}

fn array(session: &Session, name: &str, real: bool, random: &mut Xorshift) -> NdArray {
    let shape = shape(name, POINTS);
    let scalar = if real { Scalar::F64 } else { Scalar::I32 };
    let array = NdArray::new(session, scalar.into(), &shape).unwrap();
    let count = shape.iter().product::<i32>();
    let bytes: Vec<u8> = (0..count)
        .flat_map(|_| {
            let value =
                if real { Const::f64(random.real() + 0.000_417) } else { Const::i32(random.below(3) as i32) };
            value.bits().to_le_bytes().into_iter().take(scalar.bytes() as usize).collect::<Vec<_>>()
        })
        .collect();
    array.write(&bytes, HostQueue::default()).unwrap();
    array
}

/// All adjoints after the kernel and its gradient; `None` where it has none.
fn adjoints(arch: Arch, session: &Session, kernel: &Kernel, seed: u64) -> Option<Vec<f64>> {
    let storage: Vec<_> = (0..kernel.params.len())
        .map(|param| if is_real(kernel, param) { Storage::Companion(None) } else { Storage::Constant })
        .collect();
    let gradient = session.differentiate(kernel, Mode::Reverse, &storage, &NEVER).unwrap().ok()?;
    let mut random = Xorshift(seed | 1 << 40);
    let names = kernel.params.iter().map(|param| param.name.as_str()).enumerate();
    let arrays: Vec<_> =
        names.map(|(param, name)| array(session, name, is_real(kernel, param), &mut random)).collect();
    let weights: Vec<_> = gradient
        .companions()
        .iter()
        .map(|&(param, _)| array(session, &kernel.params[param].name, true, &mut random))
        .collect();
    let primal = compile(session, kernel.clone());
    let launched = arrays.iter().fold(Invocation::new(&primal), |made, array| made.array(array).unwrap());
    launched.launch(&NEVER).unwrap_or_else(|error| panic!("{arch:?}: {error}"));
    let all = arrays.iter().chain(&weights);
    let launched = all.fold(Invocation::new(gradient.kernel()), |made, array| made.array(array).unwrap());
    launched.launch_gradient(&gradient, &NEVER).unwrap_or_else(|error| panic!("{arch:?}: {error}"));
    Some(weights.iter().flat_map(values).collect())
}

#[test]
fn devices_agree_on_gradients_of_random_kernels() {
    let setting = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seeds = match setting("OCTANTS_GRADIENT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..setting("OCTANTS_GRADIENT_PROGRAMS").unwrap_or(40),
    };
    let sessions = [Arch::Reference, Arch::Cpu, Arch::Remote].map(|arch| (arch, session(arch)));
    let (mut tested, count) = (0, seeds.end - seeds.start);
    for seed in seeds {
        let kernel = program(seed, POINTS);
        let found = sessions.each_ref().map(|(arch, session)| adjoints(*arch, session, &kernel, seed));
        let [Some(expected), others @ ..] = &found else { continue };
        tested += 1;
        for ((arch, _), other) in sessions[1..].iter().zip(others) {
            let other = other.as_ref().expect("what has a gradient has it on every device");
            for (number, (a, b)) in expected.iter().zip(other).enumerate() {
                let near = (a - b).abs() <= 1e-7 * (1.0 + a.abs()) || a.is_nan() && b.is_nan();
                assert!(near, "seed {seed}, {arch:?}: adjoint {number} is {b}, not {a}\n{}", print(&kernel));
            }
        }
    }
    assert!(count < 20 || tested * 2 > count, "only {tested} of {count} have a gradient");
}
