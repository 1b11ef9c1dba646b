//! Compiles kernels given as LLVM text, calls them, and compares with the same loops in Rust.

// Calls generated code through function pointers.
#![allow(unsafe_code)]

use octants_llvm_sys::{Loaded, OptLevel, Options, compile, load};

type Task = unsafe extern "C" fn(arguments: *const u8, begin: i64, end: i64);

const LEVELS: [OptLevel; 4] = [OptLevel::None, OptLevel::Brief, OptLevel::Default, OptLevel::Thorough];

/// A compiled kernel of `tests/kernels`.
struct Kernel {
    code: Loaded,
    name: &'static str,
    assembly: String,
}

impl Kernel {
    fn new(name: &'static str, text: &str, opt: OptLevel) -> Kernel {
        let options = Options { opt, keep_assembly: true, ..Options::default() };
        let compiled = compile(text, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
        let code = load(&compiled.bytes, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
        Kernel { code, name, assembly: compiled.assembly.expect("asked for") }
    }

    fn run<A>(&self, arguments: &A, begin: i64, end: i64) {
        let address = self.code.symbol(self.name).expect("the function in the text");
        // SAFETY: the kernels' texts define functions of this type; each test passes the arguments that its text reads.
        unsafe {
            let task: Task = std::mem::transmute(address);
            task((&raw const *arguments).cast(), begin, end);
        }
    }
}

macro_rules! kernel {
    ($name:literal, $opt:expr) => {
        Kernel::new($name, include_str!(concat!("kernels/", $name, ".ll")), $opt)
    };
}

/// Whether the machine code has vectors wider than the baseline's.
fn is_vectorised(kernel: &Kernel) -> bool {
    ["ymm", "zmm", ".4s"].iter().any(|register| kernel.assembly.contains(register))
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|index| (index * 7 % 31) as f32 * 0.125 - 1.0).collect()
}

#[test]
fn saxpy() {
    for opt in LEVELS {
        let kernel = kernel!("saxpy", opt);
        let (x, mut y) = (numbers(1003), numbers(1003));
        y.reverse();
        let expected: Vec<f32> = x
            .iter()
            .zip(&y)
            .enumerate()
            .map(|(index, (x, y))| if (5..1000).contains(&index) { x.mul_add(2.0, *y) } else { *y })
            .collect();
        kernel.run(&(x.as_ptr(), y.as_mut_ptr(), 2.0_f32), 5, 1000);
        assert_eq!(y, expected, "{opt:?}");
        kernel.run(&(x.as_ptr(), y.as_mut_ptr(), 2.0_f32), 7, 7);
        kernel.run(&(x.as_ptr(), y.as_mut_ptr(), 2.0_f32), 7, 3);
        assert_eq!(y, expected, "an empty range changes nothing");
        assert_eq!(is_vectorised(&kernel), matches!(opt, OptLevel::Default | OptLevel::Thorough));
    }
}

#[test]
fn sum() {
    for opt in LEVELS {
        let kernel = kernel!("sum", opt);
        let x = numbers(4099);
        let mut total = 10.0_f32;
        kernel.run(&(x.as_ptr(), &raw mut total), 0, 4099);
        // Eighths: exact in any order.
        assert_eq!(total, 10.0 + x.iter().sum::<f32>(), "{opt:?}");
    }
}

#[test]
fn stencil() {
    for opt in LEVELS {
        let kernel = kernel!("stencil", opt);
        let n = 45_usize;
        let a = numbers(n * n);
        let mut b = vec![0.0_f32; n * n];
        let mut expected = b.clone();
        for i in 1..n - 1 {
            for j in 1..n - 1 {
                let at = i * n + j;
                expected[at] = (a[at - n] + a[at + n] + a[at - 1] + a[at + 1]) * 0.25;
            }
        }
        let total = ((n - 2) * (n - 2)) as i64;
        let arguments = (a.as_ptr(), b.as_mut_ptr(), n as i64, n as i64 - 2);
        // Chunks that begin and end in the middle of a row.
        for (begin, end) in [(0, 100), (100, 101), (101, total - 3), (total - 3, total)] {
            kernel.run(&arguments, begin, end);
        }
        assert_eq!(b, expected, "{opt:?}");
    }
}

#[test]
fn nbody() {
    let n = 301;
    let (x, y, z) = (numbers(n), numbers(2 * n).split_off(n), numbers(3 * n).split_off(2 * n));
    let mut expected = vec![[0.0_f64; 3]; n];
    for (i, force) in expected.iter_mut().enumerate() {
        for j in 0..n {
            let d = [x[j] - x[i], y[j] - y[i], z[j] - z[i]].map(f64::from);
            let inverse = 1.0 / (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + f64::from(1e-4_f32)).sqrt();
            for (component, d) in force.iter_mut().zip(d) {
                *component += d * inverse * inverse * inverse;
            }
        }
    }
    for opt in LEVELS {
        let kernel = kernel!("nbody", opt);
        let mut force = vec![0.0_f32; 3 * n];
        let (fx, rest) = force.split_at_mut(n);
        let (fy, fz) = rest.split_at_mut(n);
        let arguments =
            (x.as_ptr(), y.as_ptr(), z.as_ptr(), fx.as_mut_ptr(), fy.as_mut_ptr(), fz.as_mut_ptr(), n as i64);
        kernel.run(&arguments, 0, n as i64);
        for i in 0..n {
            for (got, expected) in [fx[i], fy[i], fz[i]].iter().zip(expected[i]) {
                let error = (f64::from(*got) - expected).abs();
                assert!(error <= 1e-4 * (1.0 + expected.abs()), "{opt:?} body {i}: {got} against {expected}");
            }
        }
    }
}

#[test]
fn linear_congruences_wrap() {
    for opt in LEVELS {
        let kernel = kernel!("lcg", opt);
        let mut x: Vec<u32> = (0..100).collect();
        let mut expected = x.clone();
        for value in &mut expected {
            for _ in 0..1000 {
                *value = value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            }
        }
        kernel.run(&(x.as_mut_ptr(), 1000_i32), 0, 100);
        assert_eq!(x, expected, "{opt:?}");
    }
}

#[test]
fn julia_counts_iterations() {
    #[repr(C)]
    struct Arguments {
        out: *mut f32,
        width: i64,
        c: [f32; 2],
        limit: i32,
        scale: f32,
    }
    for opt in LEVELS {
        let kernel = kernel!("julia", opt);
        let mut out = vec![-1.0_f32; 64 * 32];
        let arguments =
            Arguments { out: out.as_mut_ptr(), width: 64, c: [-0.8, 0.156], limit: 50, scale: 4.0 / 64.0 };
        kernel.run(&arguments, 0, 64 * 32);
        // The corner lies outside of the circle from the start; some points of the set never leave it.
        assert_eq!(out[0], 0.0, "{opt:?}");
        assert!(out.iter().all(|value| (0.0..=1.0).contains(value)), "{opt:?}");
        assert!(out.contains(&1.0), "{opt:?}");
    }
}

#[test]
fn compilations_run_at_the_same_time() {
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for round in 0..4 {
                    let kernel = kernel!("fill", LEVELS[(thread + round) % 3]);
                    let mut x = vec![0.0_f32; 77];
                    kernel.run(&(x.as_mut_ptr(), 1.5_f32), 0, 77);
                    assert_eq!(x, vec![1.5; 77]);
                }
            });
        }
    });
}
