//! A kernel's derivative as text, and derivatives against each other: forward mode against differences, reverse mode against forward mode.

use octants_interp::{AddressSpace, Arg, Buffers, Limits, run};
use octants_ir::text::print;
use octants_ir::{Const, Kernel, Scalar, Type};
use octants_passes::{
    Assumptions, Derivative, Mode, PipelineOptions, Refusal, Storage, differentiate, run_pass, run_pipeline,
};

use super::{CaseOutput, verified};
use crate::file::Case;
use crate::values;

/// What a check may run at most.
const MAX_STEPS: u64 = 10_000_000;
/// Directions that each check tries.
const DIRECTIONS: u64 = 3;
/// Of inputs, for differences.
const DIFFERENCE: f64 = 1e-6;

/// The text of the derivative, its variables made values.
pub fn run_text(mode: Mode, case: &Case, kernel: &Kernel) -> Result<CaseOutput, String> {
    verified(kernel, "before it is differentiated")?;
    let output = match differentiate(kernel, mode, &storage(kernel, case)) {
        Ok(Derivative { mut kernel, .. }) => {
            verified(&kernel, "differentiated")?;
            for pass in ["promote_locals", "simplify"] {
                run_pass(pass, &mut kernel, Assumptions { noalias: true, copies: false });
            }
            print(&kernel)
        }
        Err(refusals) => refusals.iter().map(|refusal| said(kernel, refusal)).collect(),
    };
    Ok(CaseOutput { input: case.input.clone(), notes: case.notes.clone(), output: Some(output) })
}

/// The result of each `; check: arguments` line: `agrees`, or why there is no derivative.
pub fn run_checks(case: &Case, kernel: &Kernel) -> Result<CaseOutput, String> {
    verified(kernel, "before it is differentiated")?;
    let storage = storage(kernel, case);
    let mut notes = Vec::new();
    let mut checked = false;
    for note in &case.notes {
        let Some(line) = note.strip_prefix("; check:") else {
            notes.push(note.clone());
            continue;
        };
        checked = true;
        let arguments = line.split_once("=>").map_or(line, |(arguments, _)| arguments).trim();
        let result = check(kernel, &storage, arguments)?;
        notes.push(format!("; check: {arguments} => {result}"));
    }
    if !checked {
        return Err("no `; check:` line stands below it".into());
    }
    Ok(CaseOutput { input: case.input.clone(), notes, output: None })
}

/// Every real array has storage for its derivative, but for those that `; constant: x, y` and `; missing: z` name.
fn storage(kernel: &Kernel, case: &Case) -> Vec<Storage> {
    let named = |word: &str, name: &str| {
        let lists = case.notes.iter().filter_map(|note| note.strip_prefix(word));
        lists.flat_map(|list| list.split(',')).any(|other| other.trim() == name)
    };
    let params = &kernel.regions[kernel.body].params;
    let of = |(index, &param): (usize, _)| {
        let name = &kernel.params[index].name;
        let real =
            matches!(kernel.ty(param), Type::Array(array) if array.elem.elem().is_some_and(Scalar::is_real));
        if !real || named("; constant:", name) {
            Storage::Constant
        } else if named("; missing:", name) {
            Storage::Missing
        } else {
            Storage::Companion(None)
        }
    };
    params.iter().enumerate().map(of).collect()
}

fn said(kernel: &Kernel, refusal: &Refusal) -> String {
    let about = refusal.param.map(|param| format!(" {}", kernel.params[param].name)).unwrap_or_default();
    format!("refused: {:?}{about}\n", refusal.kind)
}

/// One run: the arrays whose derivative is asked for, by parameter.
struct Setting<'k> {
    kernel: &'k Kernel,
    args: Vec<Arg>,
    memory: Buffers,
    /// Address and scalar type of each.
    arrays: Vec<(usize, u64, Scalar)>,
}

fn check(kernel: &Kernel, storage: &[Storage], arguments: &str) -> Result<String, String> {
    let derivative = |mode| differentiate(kernel, mode, storage);
    let forward = match derivative(Mode::Forward) {
        Ok(forward) => Some(forward),
        Err(refusals) => return Ok(refused("forward", kernel, &refusals)),
    };
    let reverse = match derivative(Mode::Reverse) {
        Ok(reverse) => reverse,
        Err(refusals) => return Ok(refused("reverse", kernel, &refusals)),
    };
    let forward = forward.expect("it was just made");
    let mut memory = Buffers::new();
    let args = values::arguments(kernel, arguments, &mut memory)?;
    let params = &kernel.regions[kernel.body].params;
    let arrays = reverse.companions.iter().filter_map(|&(param, _)| {
        let address = match args[param] {
            Arg::Array { address, .. } | Arg::Field { address } => address,
            Arg::Data(_) => return None,
        };
        let Type::Array(array) = kernel.ty(params[param]) else { return None };
        Some((param, address, array.elem.elem()?))
    });
    let setting = Setting { kernel, arrays: arrays.collect(), args: args.clone(), memory };
    for (name, made) in [("forward", &forward), ("reverse", &reverse)] {
        verified(&made.kernel, name)?;
    }
    for seed in 0..DIRECTIONS {
        let split = seed > 0;
        if let Some(difference) = setting.compare(&forward, &reverse, seed, split)? {
            return Err(format!(
                "{arguments}: {difference}\n{}\n{}",
                print(&forward.kernel),
                print(&reverse.kernel)
            ));
        }
    }
    Ok("agrees".into())
}

fn refused(mode: &str, kernel: &Kernel, refusals: &[Refusal]) -> String {
    let all: Vec<_> = refusals.iter().map(|refusal| said(kernel, refusal).trim().to_owned()).collect();
    format!("{mode} {}", all.join(", "))
}

impl Setting<'_> {
    /// What differs, if something does. `split` says that derivatives go through all passes first.
    fn compare(
        &self,
        forward: &Derivative,
        reverse: &Derivative,
        seed: u64,
        split: bool,
    ) -> Result<Option<String>, String> {
        let single = self.arrays.iter().any(|&(_, _, scalar)| scalar != Scalar::F64);
        let (direction, weights) = (self.random(2 * seed + 1), self.random(2 * seed + 2));
        let after = self.run(self.kernel, self.args.clone(), self.memory.clone())?;
        let (memory, tangents) = self.run_derivative(forward, &self.memory, &direction, split)?;
        if self.differs(&memory, &after) {
            return Ok(Some("forward mode does not do what the kernel does".into()));
        }
        let (memory, gradient) = self.run_derivative(reverse, &after, &weights, split)?;
        if self.differs(&memory, &after) {
            return Ok(Some("reverse mode writes the kernel's arrays".into()));
        }
        let (along, back) = (dot(&weights, &tangents), dot(&gradient, &direction));
        let bound = if single { 1e-4 } else { 1e-9 };
        if !close(along, back, bound) {
            return Ok(Some(format!("forward mode gives {along}, reverse mode {back}")));
        }
        if single {
            return Ok(None);
        }
        let at = |step: f64| -> Result<Vec<Vec<f64>>, String> {
            let mut memory = self.memory.clone();
            for (number, &(_, address, scalar)) in self.arrays.iter().enumerate() {
                let mut reals = reals(memory.bytes(address), scalar);
                for (real, direction) in reals.iter_mut().zip(&direction[number]) {
                    *real += step * direction;
                }
                write(&mut memory, address, scalar, &reals);
            }
            let memory = self.run(self.kernel, self.args.clone(), memory)?;
            Ok(self.reals(&memory))
        };
        let (up, down) = (at(DIFFERENCE)?, at(-DIFFERENCE)?);
        for (number, tangents) in tangents.iter().enumerate() {
            for (index, &tangent) in tangents.iter().enumerate() {
                let quotient = (up[number][index] - down[number][index]) / (2.0 * DIFFERENCE);
                if !close(tangent, quotient, 1e-5) {
                    let name = &self.kernel.params[self.arrays[number].0].name;
                    return Ok(Some(format!(
                        "{name}[{index}]: forward mode {tangent}, differences {quotient}"
                    )));
                }
            }
        }
        Ok(None)
    }

    fn run_derivative(
        &self,
        derivative: &Derivative,
        memory: &Buffers,
        seeds: &[Vec<f64>],
        split: bool,
    ) -> Result<(Buffers, Vec<Vec<f64>>), String> {
        let mut memory = memory.clone();
        let mut args = self.args.clone();
        let mut addresses = Vec::new();
        for (&(param, address, scalar), seeds) in self.arrays.iter().zip(seeds) {
            let companion = memory.add(memory.bytes(address).to_vec());
            write(&mut memory, companion, scalar, seeds);
            addresses.push((companion, scalar));
            args.push(match &self.args[param] {
                Arg::Array { shape, .. } => Arg::Array { address: companion, shape: shape.clone() },
                _ => Arg::Field { address: companion },
            });
        }
        let kernel = if split {
            let assumptions = Assumptions { noalias: true, copies: false };
            let options = PipelineOptions { assumptions, verify: true, ..PipelineOptions::default() };
            run_pipeline(derivative.kernel.clone(), options).kernel
        } else {
            derivative.kernel.clone()
        };
        let memory = self.run(&kernel, args, memory)?;
        let found = addresses.iter().map(|&(address, scalar)| reals(memory.bytes(address), scalar)).collect();
        Ok((memory, found))
    }

    fn run(&self, kernel: &Kernel, args: Vec<Arg>, mut memory: Buffers) -> Result<Buffers, String> {
        let limits = Limits { steps: Some(MAX_STEPS), cancel: None };
        run(kernel, &args, &mut memory, &limits)
            .map_err(|trap| format!("trap: {trap}\n{}", print(kernel)))?;
        Ok(memory)
    }

    fn reals(&self, memory: &Buffers) -> Vec<Vec<f64>> {
        self.arrays.iter().map(|&(_, address, scalar)| reals(memory.bytes(address), scalar)).collect()
    }

    /// Whether the arguments' arrays hold different bytes.
    fn differs(&self, memory: &Buffers, other: &Buffers) -> bool {
        self.args.iter().any(|arg| match *arg {
            Arg::Array { address, .. } | Arg::Field { address } => {
                memory.bytes(address) != other.bytes(address)
            }
            Arg::Data(_) => false,
        })
    }

    /// Numbers between −1 and 1, as many as the arrays hold.
    fn random(&self, seed: u64) -> Vec<Vec<f64>> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // Few digits, so that a single holds them.
            f64::from((state >> 52) as u32) / 2048.0 - 1.0
        };
        let count = |address, scalar: Scalar| self.memory.bytes(address).len() / scalar.bytes() as usize;
        let arrays = self.arrays.iter();
        arrays.map(|&(_, address, scalar)| (0..count(address, scalar)).map(|_| next()).collect()).collect()
    }
}

fn reals(bytes: &[u8], scalar: Scalar) -> Vec<f64> {
    bytes.chunks_exact(scalar.bytes() as usize).map(|b| Const::from_bytes(scalar, b).as_f64()).collect()
}

fn write(memory: &mut Buffers, address: u64, scalar: Scalar, reals: &[f64]) {
    let width = scalar.bytes() as usize;
    for (index, &real) in reals.iter().enumerate() {
        let bytes = Const::from_f64(scalar, real).bits().to_le_bytes();
        let at = address + (index * width) as u64;
        memory.write(at, &bytes[..width]).expect("the buffer has as many");
    }
}

fn dot(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| a * b).sum()
}

fn close(a: f64, b: f64, bound: f64) -> bool {
    (a - b).abs() <= bound * (1.0 + a.abs().max(b.abs())) || a.is_nan() && b.is_nan() || a == b
}
