//! Holds compiled kernels against the interpreter.

use octants_interp::{AddressSpace, Buffers, Datum, Limits};
use octants_ir::plan::Copied;
use octants_ir::{Const, Kernel, Scalar};
use octants_llvm::{CpuOptions, EmitOptions, NVIDIA, VectorLibrary, Vendor};
use octants_llvm_sys::{OptLevel, host_vector_function};

use super::gpu::GpuProgram;
use super::other_vendor::OTHER;
use super::{Arg, Program, argument_block, read};

/// An argument that both sides get.
#[derive(Clone)]
pub enum Input {
    Scalar(Const),
    /// Scalars in row-major order, tensor entries innermost. Without a shape, the memory of a field.
    Array {
        ty: Scalar,
        bytes: Vec<u8>,
        shape: Vec<i32>,
        /// In scalars, of an array whose strides are passed.
        strides: Vec<i64>,
    },
}

impl Input {
    pub fn array(ty: Scalar, values: &[Const], shape: &[i32]) -> Self {
        let mut bytes = vec![0; values.len() * ty.bytes() as usize];
        for (index, &value) in values.iter().enumerate() {
            assert_eq!(value.ty(), ty);
            super::write(&mut bytes, index, value);
        }
        Self::Array { ty, bytes, shape: shape.to_vec(), strides: Vec::new() }
    }

    /// An array of this shape, with these strides, inside of some scalars.
    pub fn strided(ty: Scalar, values: &[Const], shape: &[i32], strides: &[i64]) -> Self {
        let Self::Array { bytes, .. } = Self::array(ty, values, shape) else { unreachable!("an array") };
        Self::Array { ty, bytes, shape: shape.to_vec(), strides: strides.to_vec() }
    }
}

/// How near a real must come, in units of its last place.
pub type Tolerance = fn(&str) -> f64;

/// What one side leaves: the arrays, then the results.
type Memory = (Vec<Vec<u8>>, Vec<Const>);

fn interpret(kernel: &Kernel, inputs: &[Input]) -> Memory {
    let mut memory = Buffers::new();
    let mut addresses = Vec::new();
    let args: Vec<_> = inputs
        .iter()
        .map(|input| match input {
            Input::Scalar(c) => octants_interp::Arg::Data(Datum::Scalar(*c)),
            Input::Array { bytes, shape, strides, .. } => {
                let address = memory.add(bytes.clone());
                addresses.push((address, bytes.len()));
                if shape.is_empty() {
                    octants_interp::Arg::Field { address }
                } else if !strides.is_empty() {
                    let (shape, strides) = (shape.clone(), strides.clone());
                    octants_interp::Arg::Strided { address, shape, strides }
                } else {
                    octants_interp::Arg::Array { address, shape: shape.clone() }
                }
            }
        })
        .collect();
    let results = octants_interp::run(kernel, &args, &mut memory, &Limits::default())
        .unwrap_or_else(|trap| panic!("{trap:?}"));
    let arrays = addresses
        .iter()
        .map(|&(address, length)| {
            let mut bytes = vec![0; length];
            memory.read(address, &mut bytes).unwrap();
            bytes
        })
        .collect();
    (arrays, results.iter().map(Datum::scalar).collect())
}

fn execute(program: &Program, inputs: &[Input], chunk: i64) -> Memory {
    let mut inputs = inputs.to_vec();
    let mut args: Vec<_> = inputs
        .iter_mut()
        .map(|input| match input {
            Input::Scalar(c) => Arg::Scalar(*c),
            Input::Array { bytes, shape, strides, .. } => Arg::Array(bytes, shape, strides),
        })
        .collect();
    let outcome = program.run(&mut args, chunk);
    assert!(outcome.fault.is_none(), "a fault without an assertion");
    let slots = &program.plan.results.slots;
    let results = slots
        .iter()
        .map(|slot| {
            let ty = slot.data.scalar().unwrap();
            read(&outcome.results[slot.offset as usize..], ty, 0)
        })
        .collect();
    let arrays = inputs.into_iter().filter_map(|input| match input {
        Input::Array { bytes, .. } => Some(bytes),
        Input::Scalar(_) => None,
    });
    (arrays.collect(), results)
}

/// Runs the kernel in the interpreter and compiled in several ways, and compares all memory. `tolerance` is asked by the name of
/// the parameter.
pub fn check(kernel: &Kernel, inputs: &[Input], tolerance: Tolerance) {
    check_gpu(kernel, inputs, tolerance);
    let expected = interpret(kernel, inputs);
    // Never widened; widened where that seems best; always, with masks in vectors and with masks of their own. Tasks run one after the other, so
    // that updates need not be atomic, either.
    let forms = [(0, None, true), (512, None, false), (256, Some(4), false), (512, Some(16), true)];
    for (vector_bits, force_lanes, exclusive) in forms {
        let straight = vector_bits == 0 || vector_bits == 512 && force_lanes.is_some();
        for opt in [OptLevel::Default, OptLevel::None].into_iter().take(1 + usize::from(straight)) {
            let options = EmitOptions::for_cpu(CpuOptions {
                force_lanes,
                vector_bits,
                exclusive,
                fused: true,
                vector_library: VectorLibrary(|f| host_vector_function(f.name, f.arguments, f.bits, f.lanes)),
            });
            let program = Program::new(kernel.clone(), &options, opt);
            for chunk in [i64::MAX / 2, 13] {
                let what = format!("{} {vector_bits} {force_lanes:?} {opt:?} chunk {chunk}", kernel.name);
                let found = execute(&program, inputs, chunk);
                compare(kernel, inputs, &expected, &found, tolerance, &what);
            }
        }
    }
}

/// Runs the kernel as a GPU would, with arrays that lie well and with arrays that do not, and with few blocks and as many as it wants.
pub fn check_gpu(kernel: &Kernel, inputs: &[Input], tolerance: Tolerance) {
    check_gpu_sums(kernel, inputs, tolerance, &[]);
}

/// Likewise, for a kernel whose loops only add to these arrays.
pub fn check_gpu_sums(kernel: &Kernel, inputs: &[Input], tolerance: Tolerance, sums: &[Copied]) {
    // A GPU has no tapes yet.
    if kernel.has_tapes() {
        return;
    }
    let expected = interpret(kernel, inputs);
    // Arrays that may overlap are not copied.
    let cases: [(&'static Vendor, bool, &[Copied], &[u64]); 3] =
        [(&NVIDIA, true, sums, &[u64::MAX, 1, 3]), (&NVIDIA, false, &[], &[2]), (&OTHER, true, sums, &[3])];
    for (vendor, noalias, sums, grids) in cases {
        let Some(program) = GpuProgram::new(kernel, vendor, noalias, sums) else { return };
        for (shift, &most_blocks) in
            [0, 1].into_iter().flat_map(|shift| grids.iter().map(move |grid| (shift, grid)))
        {
            let lanes = vendor.lanes;
            let what = format!(
                "{} on a GPU of {lanes} lanes, {shift} past 16 bytes, {most_blocks} blocks",
                kernel.name
            );
            let found = execute_gpu(kernel, &program, inputs, shift, most_blocks);
            compare(kernel, inputs, &expected, &found, tolerance, &what);
        }
    }
}

/// Arrays begin so many elements behind a multiple of 16 bytes.
fn execute_gpu(kernel: &Kernel, program: &GpuProgram, inputs: &[Input], shift: usize, blocks: u64) -> Memory {
    let mut inputs = inputs.to_vec();
    let mut begins = Vec::new();
    for input in &mut inputs {
        if let Input::Array { ty, bytes, .. } = input {
            let mut moved = vec![0; bytes.len() + 64];
            let begin = moved.as_ptr().align_offset(16) + shift * ty.bytes() as usize;
            moved[begin..begin + bytes.len()].copy_from_slice(bytes);
            begins.push((begin, bytes.len()));
            *bytes = moved;
        }
    }
    let mut places = begins.iter();
    let mut args: Vec<_> = inputs
        .iter_mut()
        .map(|input| match input {
            Input::Scalar(c) => Arg::Scalar(*c),
            Input::Array { bytes, shape, strides, .. } => {
                let &(begin, length) = places.next().unwrap();
                Arg::Array(&mut bytes[begin..begin + length], shape, strides)
            }
        })
        .collect();
    let mut block = argument_block(kernel, &program.plan, &mut args);
    let results = program.run(&mut block, blocks);
    let slots = program.plan.results.slots.iter();
    let results = slots.map(|slot| read(&results[slot.offset as usize..], slot.data.scalar().unwrap(), 0));
    let results = results.collect();
    let mut places = begins.iter();
    let arrays = inputs.iter().filter_map(|input| match input {
        Input::Array { bytes, .. } => {
            let &(begin, length) = places.next().unwrap();
            Some(bytes[begin..begin + length].to_vec())
        }
        Input::Scalar(_) => None,
    });
    (arrays.collect(), results)
}

fn compare(
    kernel: &Kernel,
    inputs: &[Input],
    expected: &Memory,
    found: &Memory,
    tolerance: Tolerance,
    what: &str,
) {
    assert_eq!(expected.1.len(), found.1.len());
    for (index, (&a, &b)) in expected.1.iter().zip(&found.1).enumerate() {
        assert!(near(a, b, tolerance("result")), "{what}: result {index} is {b:?}, not {a:?}");
    }
    let arrays = inputs.iter().enumerate().filter_map(|(param, input)| match input {
        Input::Array { ty, .. } => Some((param, *ty)),
        Input::Scalar(_) => None,
    });
    for ((param, ty), (a, b)) in arrays.zip(expected.0.iter().zip(&found.0)) {
        let name = &kernel.params[param].name;
        let ulps = tolerance(name);
        for index in 0..a.len() / ty.bytes() as usize {
            let (x, y) = (read(a, ty, index), read(b, ty, index));
            let given: Vec<_> = inputs
                .iter()
                .filter_map(|input| match input {
                    Input::Array { ty, bytes, .. } if bytes.len() > index * ty.bytes() as usize => {
                        Some(read(bytes, *ty, index))
                    }
                    _ => None,
                })
                .take(3)
                .collect();
            assert!(near(x, y, ulps), "{what}: {name}[{index}] is {y:?}, not {x:?}; inputs {given:?}");
        }
    }
}

/// Equal bits, both NaN, or reals not further apart than so many units in the last place. Zeros are equal.
pub fn near(a: Const, b: Const, ulps: f64) -> bool {
    if a == b {
        return true;
    }
    if !a.ty().is_real() {
        return false;
    }
    let (x, y) = (a.as_f64(), b.as_f64());
    if x.is_nan() && y.is_nan() || x == 0.0 && y == 0.0 {
        return true;
    }
    if ulps == 0.0 || x.is_nan() || y.is_nan() {
        return false;
    }
    // Bits of reals of one sign are ordered as they are.
    let ordered = |c: Const| {
        let sign = 1_i128 << (c.ty().bits() - 1);
        let bits = i128::from(c.bits());
        if bits & sign == 0 { bits } else { sign - bits }
    };
    ((ordered(a) - ordered(b)).abs() as f64) <= ulps
}

/// A small generator of numbers.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A value that something might go wrong with, or any.
    pub fn value(&mut self, ty: Scalar) -> Const {
        let any = self.next() >> 7;
        if !ty.is_real() {
            let edge = match any % 12 {
                0 => 0,
                1 => 1,
                2 => -1,
                3 => i64::MIN >> (64 - ty.bits()),
                4 => i64::MAX >> (64 - ty.bits()),
                5 => i64::from(ty.bits()),
                6 => i64::from(ty.bits()) - 1,
                7 => (any >> 8) as i64 % 20,
                8 => -((any >> 8) as i64 % 20),
                _ => self.next() as i64,
            };
            return Const::from_bits(ty, edge as u64);
        }
        let real = |value: f64| Const::from_f64(ty, value);
        match any % 24 {
            0 => real(0.0),
            1 => real(-0.0),
            2 => real(f64::INFINITY),
            3 => real(f64::NEG_INFINITY),
            4 => real(f64::NAN),
            5 => real(1.0),
            6 => real(-1.0),
            7 => real(0.5),
            8 => real(-2.5),
            9 => real(2_147_483_648.0),
            10 => real(-2_147_483_649.0),
            11 => real(9.3e18),
            12 => real(255.5),
            13 => Const::from_bits(ty, 1),
            14 => Const::from_bits(ty, self.next() & 0x3FF),
            15 => real(((any >> 8) % 41) as f64 - 20.0),
            16..20 => real(((any >> 8) % 200_000) as f64 / 1000.0 - 100.0),
            _ => {
                let bits = self.next();
                // A signalling NaN may come out quiet.
                let c = Const::from_bits(ty, bits);
                if c.as_f64().is_nan() { real(f64::NAN) } else { c }
            }
        }
    }

    pub fn values(&mut self, ty: Scalar, count: usize) -> Vec<Const> {
        (0..count).map(|_| self.value(ty)).collect()
    }
}
