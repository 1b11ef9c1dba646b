//! Derivatives against each other, on the interpreter: forward mode against differences, reverse mode against forward mode.

use octants_interp::{AddressSpace, Arg, Buffers, Datum, Limits, run};
use octants_ir::text::print;
use octants_ir::{Const, Kernel, Scalar, Type, verify};
use octants_passes::{
    Assumptions, Derivative, Left, Mode, PipelineOptions, Recording, Refusal, RefusalKind, SizesLayout,
    Storage, TapeArray, TapePlan, TapedLoop, Told, declare_sized_tape_arrays, declare_tape_arrays,
    differentiate, differentiate_recorded, run_pipeline,
};

/// What a check may run at most.
const MAX_STEPS: u64 = 10_000_000;
/// Directions that each check tries.
const DIRECTIONS: u64 = 3;
/// Of inputs, for differences.
const DIFFERENCE: f64 = 1e-6;

/// Fills tapes.
const UNTOUCHED: u8 = 0xaa;

/// Why a kernel has no derivative in a mode.
pub type Refused = (Mode, Vec<Refusal>);

/// Whether all derivatives of the kernel agree at these arguments; the outer error says how they do not.
pub fn check(
    kernel: &Kernel,
    storage: &[Storage],
    args: Vec<Arg>,
    memory: Buffers,
) -> Result<Result<(), Refused>, String> {
    let made = |mode| {
        let made = match mode {
            Mode::Forward => differentiate(kernel, mode, storage),
            Mode::Reverse => differentiate_recorded(kernel, storage, Left::Races),
        };
        made.map_err(|refusals| (mode, refusals))
    };
    let has_no_rule = |refusal: &Refusal| matches!(refusal.kind, RefusalKind::NoRule(_));
    let (forward, reverse) = match (made(Mode::Forward), made(Mode::Reverse)) {
        (Ok(forward), Ok(reverse)) => (Some(forward), reverse),
        // Then differences alone are what the other mode is held against.
        (Err((_, refusals)), Ok(reverse)) if refusals.iter().all(has_no_rule) => (None, reverse),
        (Err((_, refusals)), Err(refused)) if refusals.iter().all(has_no_rule) => return Ok(Err(refused)),
        (Err(refused), _) | (_, Err(refused)) => return Ok(Err(refused)),
    };
    for derivative in forward.iter().chain([&reverse]) {
        if let Err(broken) = verify(&derivative.kernel) {
            return Err(format!("{}\n{}", broken[0], print(&derivative.kernel)));
        }
    }
    let tell = |told: Told| match told {
        Told::Param(param) => match args.get(param) {
            Some(Arg::Data(Datum::Scalar(constant))) => Some(*constant),
            _ => None,
        },
        Told::Extent(param, axis) => match args.get(param) {
            Some(Arg::Array { shape, .. } | Arg::Strided { shape, .. }) => {
                Some(Const::i32(*shape.get(usize::from(axis))?))
            }
            _ => None,
        },
    };
    if let Some(refusal) = reverse.order.as_ref().and_then(|order| order.refusal(&tell)) {
        return Ok(Err((Mode::Reverse, vec![refusal])));
    }
    let params = &kernel.regions[kernel.body].params;
    let arrays = reverse.companions.iter().filter_map(|&(param, _)| {
        let address = match args[param] {
            Arg::Array { address, .. } | Arg::Strided { address, .. } | Arg::Field { address } => address,
            Arg::Data(_) => return None,
        };
        let Type::Array(array) = kernel.ty(params[param]) else { return None };
        Some((param, address, array.elem.elem()?))
    });
    let arrays = arrays.collect();
    let setting = Setting { kernel, args, memory, arrays };
    for seed in 0..DIRECTIONS {
        if let Some(difference) = setting.compare(forward.as_ref(), &reverse, seed, seed > 0)? {
            let kernels =
                [kernel, &reverse.kernel].into_iter().chain(forward.as_ref().map(|made| &made.kernel));
            let texts: Vec<_> = kernels.map(print).collect();
            return Err(format!("{difference}\n{}", texts.join("\n")));
        }
    }
    Ok(Ok(()))
}

/// One run: the arrays whose derivative is asked for, by parameter.
struct Setting<'k> {
    kernel: &'k Kernel,
    args: Vec<Arg>,
    memory: Buffers,
    /// Address and scalar type of each.
    arrays: Vec<(usize, u64, Scalar)>,
}

impl Setting<'_> {
    /// What differs, if something does. `split` says that derivatives go through all passes first.
    fn compare(
        &self,
        forward: Option<&Derivative>,
        reverse: &Derivative,
        seed: u64,
        split: bool,
    ) -> Result<Option<String>, String> {
        let single = self.arrays.iter().any(|&(_, _, scalar)| scalar != Scalar::F64);
        let (direction, weights) = (self.random(2 * seed + 1), self.random(2 * seed + 2));
        let after = self.run(self.kernel, self.args.clone(), self.memory.clone())?;
        let (after, records) = match &reverse.recording {
            None => (after, Vec::new()),
            Some(recording) => {
                let (recorded, records) = self.run_recording(recording, split)?;
                if !self.are_close(&recorded, &after) {
                    return Ok(Some("the kernel that records does something else".into()));
                }
                (recorded, records)
            }
        };
        let (memory, gradient) = self.run_derivative(reverse, &after, &weights, &records, split)?;
        if self.differs(&memory, &after) {
            return Ok(Some("reverse mode writes the kernel's arrays".into()));
        }
        if let Some(plan) = &reverse.tapes {
            // All iterations at once, and some; told how many, and computing it.
            let some = 1 + seed as i64 % 3;
            for (slots, sized) in
                [(i64::from(i32::MAX), false), (some, false), (i64::from(i32::MAX), true), (some, true)]
            {
                let placed = self.run_placed(reverse, plan, &after, &weights, &records, (slots, sized))?;
                let differs = |(a, b): (&f64, &f64)| !close(*a, *b, if single { 1e-5 } else { 1e-12 });
                if placed.iter().flatten().zip(gradient.iter().flatten()).any(differs) {
                    return Ok(Some(format!("{gradient:?} with tapes, {placed:?} with arrays for them")));
                }
            }
        }
        let back = dot(&gradient, &direction);
        let quotients = self.quotients(&direction)?;
        let Some(forward) = forward else {
            let along = dot(&weights, &quotients);
            let differs = !close(along, back, 1e-5);
            return Ok(differs.then(|| format!("differences give {along}, reverse mode {back}")));
        };
        let (memory, tangents) = self.run_derivative(forward, &self.memory, &direction, &[], split)?;
        if !self.are_close(&memory, &after) {
            return Ok(Some("forward mode does not do what the kernel does".into()));
        }
        let along = dot(&weights, &tangents);
        let bound = if single { 1e-4 } else { 1e-9 };
        if !close(along, back, bound) {
            return Ok(Some(format!("forward mode gives {along}, reverse mode {back}")));
        }
        if single {
            return Ok(None);
        }
        for (number, tangents) in tangents.iter().enumerate() {
            for (index, (&tangent, &quotient)) in tangents.iter().zip(&quotients[number]).enumerate() {
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

    /// How the arrays change along a direction, by differences.
    fn quotients(&self, direction: &[Vec<f64>]) -> Result<Vec<Vec<f64>>, String> {
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
        let quotient = |(up, down): (&f64, &f64)| (up - down) / (2.0 * DIFFERENCE);
        Ok(up.iter().zip(&down).map(|(up, down)| up.iter().zip(down).map(quotient).collect()).collect())
    }

    /// Runs the kernel that records, with arrays as large as it says: one that is too small is a trap, and of one that is too large the
    /// last cells are not touched. Gives the arrays as arguments.
    fn run_recording(&self, recording: &Recording, split: bool) -> Result<(Buffers, Vec<Arg>), String> {
        for kernel in [&recording.kernel, &recording.sizes.kernel] {
            verify(kernel).map_err(|broken| format!("{}\n{}", broken[0], print(kernel)))?;
        }
        let mut memory = self.memory.clone();
        let count = 2 * recording.arrays.len();
        let address = memory.add(vec![0; count * 8]);
        let mut args = self.args.clone();
        args.push(Arg::Array { address, shape: vec![count as i32] });
        for copy in &recording.sizes.copies {
            let shape = match (&copy.shape, &self.args[copy.of]) {
                (None, Arg::Array { shape, .. }) => shape.clone(),
                (shape, _) => shape.iter().flatten().map(|&extent| extent as i32).collect(),
            };
            let inside = copy.components.iter().map(|&extent| extent as i32);
            let shape: Vec<i32> = shape.into_iter().chain(inside).collect();
            let count: i32 = shape.iter().product();
            let address = memory.add(vec![UNTOUCHED; count as usize * copy.scalar.bytes() as usize]);
            args.push(Arg::Array { address, shape });
        }
        let sizing = if split { piped(&recording.sizes.kernel) } else { recording.sizes.kernel.clone() };
        let sized = self.run(&sizing, args, memory)?;
        if self.differs(&sized, &self.memory) {
            return Err(format!("sizing writes the kernel's arrays\n{}", print(&recording.sizes.kernel)));
        }
        let words = sized.bytes(address).chunks_exact(8);
        let sizes: Vec<i64> = words.map(|b| i64::from_le_bytes(b.try_into().expect("eight bytes"))).collect();
        let mut memory = self.memory.clone();
        let mut records = Vec::new();
        for (array, size) in recording.arrays.iter().zip(sizes.chunks_exact(2)) {
            let (rows, columns) = (size[0] as usize, size[1] as usize);
            let address = memory.add(vec![UNTOUCHED; rows * columns * array.scalar.bytes() as usize]);
            records.push(Arg::Array { address, shape: vec![size[0] as i32, size[1] as i32] });
        }
        let args = self.args.iter().chain(&records).cloned().collect();
        let kernel = if split { piped(&recording.kernel) } else { recording.kernel.clone() };
        let memory = self.run(&kernel, args, memory)?;
        for (array, record) in recording.arrays.iter().zip(&records) {
            let Arg::Array { address, shape } = record else { continue };
            let (bytes, row) = (memory.bytes(*address), shape[1] as usize * array.scalar.bytes() as usize);
            if !bytes.is_empty() && bytes[bytes.len() - row..].iter().all(|&byte| byte == UNTOUCHED) {
                return Err(format!("{sizes:?} is more than is kept\n{}", print(&recording.sizes.kernel)));
            }
        }
        Ok((memory, records))
    }

    /// Memory and arguments with companions that hold these numbers and with what was recorded, and where the companions lie.
    fn with_companions(
        &self,
        memory: &Buffers,
        seeds: &[Vec<f64>],
        records: &[Arg],
    ) -> (Buffers, Vec<Arg>, Vec<(u64, Scalar)>) {
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
        args.extend_from_slice(records);
        (memory, args, addresses)
    }

    fn run_derivative(
        &self,
        derivative: &Derivative,
        memory: &Buffers,
        seeds: &[Vec<f64>],
        records: &[Arg],
        split: bool,
    ) -> Result<(Buffers, Vec<Vec<f64>>), String> {
        let (memory, args, addresses) = self.with_companions(memory, seeds, records);
        let kernel = if split { piped(&derivative.kernel) } else { derivative.kernel.clone() };
        let memory = self.run(&kernel, args, memory)?;
        let found = addresses.iter().map(|&(address, scalar)| reals(memory.bytes(address), scalar)).collect();
        Ok((memory, found))
    }

    /// The gradient with tapes in arrays, for so many iterations at once as there are slots, and as large as the plan says: one that is
    /// too small is a trap, and of one that is too large the last cells are not touched. If it is `sized`, the derivative computes itself how many iterations
    /// run at once.
    fn run_placed(
        &self,
        reverse: &Derivative,
        plan: &TapePlan,
        memory: &Buffers,
        weights: &[Vec<f64>],
        records: &[Arg],
        (slots, sized): (i64, bool),
    ) -> Result<Vec<Vec<f64>>, String> {
        let (mut memory, mut args, addresses) = self.with_companions(memory, weights, records);
        let count = plan.tasks * plan.stride();
        let address = memory.add(vec![0; count * 8]);
        let mut sizing = args.clone();
        sizing.push(Arg::Array { address, shape: vec![count as i32] });
        verify(&plan.sizing).map_err(|broken| format!("{}\n{}", broken[0], print(&plan.sizing)))?;
        let after = self.run(&plan.sizing, sizing, memory.clone())?;
        let words = after.bytes(address).chunks_exact(8);
        let sizes: Vec<i64> = words.map(|b| i64::from_le_bytes(b.try_into().expect("eight bytes"))).collect();
        let mut kernel = reverse.kernel.clone();
        let params = if sized {
            let (scalars, varies) = (&plan.scalars[..], &plan.varies[..]);
            let layout = SizesLayout { scalars, varies, with_duals: false, limit: u64::MAX };
            declare_sized_tape_arrays(&mut kernel, layout)
        } else {
            declare_tape_arrays(&mut kernel, &plan.varies)
        };
        let per_loop = |number: usize| {
            let sizes = &sizes[number * plan.stride()..][..plan.stride()];
            let most = if params.loops[number].in_order { 1 } else { slots };
            let running = sizes[0].min(most);
            // Where fewer keep anything than run, each of those has a column.
            let claims = params.loops[number].claims.is_some() && sizes[1] < running;
            (running, if claims { sizes[1] } else { running }, sizes)
        };
        let mut rows = Vec::new();
        for param in args.len()..kernel.params.len() {
            if let Some(own) = params.sizes.filter(|own| [own.sizes, own.most].contains(&param)) {
                args.push(if own.sizes == param {
                    let address = memory.add(after.bytes(address).to_vec());
                    Arg::Array { address, shape: vec![count as i32] }
                } else {
                    Arg::Data(Datum::Scalar(Const::from_i128(Scalar::I32, slots.into())))
                });
                continue;
            }
            if let Some(number) = params.loops.iter().position(|taped| taped.slots == Some(param)) {
                args.push(Arg::Data(Datum::Scalar(Const::from_i128(Scalar::I32, per_loop(number).0.into()))));
                continue;
            }
            let claims = |taped: &TapedLoop| taped.claims.map(|claims| (claims.columns, claims.tickets));
            let of_param = |taped| claims(taped).is_some_and(|(a, b)| [a, Some(b)].contains(&Some(param)));
            if let Some(number) = params.loops.iter().position(of_param) {
                let (running, columns, _) = per_loop(number);
                args.push(if claims(&params.loops[number]).is_some_and(|claims| claims.0 == Some(param)) {
                    let columns = if columns < running { columns } else { 0 };
                    Arg::Data(Datum::Scalar(Const::from_i128(Scalar::I32, columns.into())))
                } else {
                    Arg::Array { address: memory.add(vec![0; 4]), shape: vec![1] }
                });
                continue;
            }
            let array = params.arrays.iter().find(|array| array.param == param);
            let &TapeArray { branch, scalar, .. } = array.ok_or("a parameter is not declared")?;
            let kept = plan.scalars.iter().position(|&kept| kept == scalar).ok_or("a tape is not planned")?;
            let of_branch = (0..params.loops.len()).filter(|&number| params.loops[number].branch == branch);
            let most =
                of_branch.map(per_loop).map(|(_, slots, sizes)| (slots * sizes[2 + kept], slots)).max();
            let (cells, slots) = most.unwrap_or_default();
            let width = scalar.bytes() as usize;
            let address = memory.add(vec![UNTOUCHED; cells as usize * width]);
            rows.push((address, slots as usize * width));
            args.push(Arg::Array { address, shape: vec![cells as i32] });
        }
        verify(&kernel).map_err(|broken| format!("{}\n{}", broken[0], print(&kernel)))?;
        let kernel = piped(&kernel);
        let memory = self.run(&kernel, args, memory).map_err(|e| format!("{e}\n{}", print(&plan.sizing)))?;
        for (address, row) in rows {
            let bytes = memory.bytes(address);
            if !bytes.is_empty() && bytes[bytes.len() - row..].iter().all(|&byte| byte == UNTOUCHED) {
                return Err(format!("{sizes:?} is more than is needed\n{}", print(&plan.sizing)));
            }
        }
        Ok(addresses.iter().map(|&(address, scalar)| reals(memory.bytes(address), scalar)).collect())
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

    /// Whether the arrays hold the same reals, but for the order in which they were summed.
    fn are_close(&self, memory: &Buffers, other: &Buffers) -> bool {
        let single = self.arrays.iter().any(|&(_, _, scalar)| scalar != Scalar::F64);
        let bound = if single { 1e-5 } else { 1e-12 };
        let mut pairs = self.reals(memory).into_iter().flatten().zip(self.reals(other).into_iter().flatten());
        pairs.all(|(a, b)| close(a, b, bound))
    }

    /// Whether the arguments' arrays hold different bytes.
    fn differs(&self, memory: &Buffers, other: &Buffers) -> bool {
        self.args.iter().any(|arg| match *arg {
            Arg::Array { address, .. } | Arg::Strided { address, .. } | Arg::Field { address } => {
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

/// The kernel after all passes.
fn piped(kernel: &Kernel) -> Kernel {
    let assumptions = Assumptions { noalias: true, ..Assumptions::default() };
    let options = PipelineOptions { assumptions, verify: true, ..PipelineOptions::default() };
    run_pipeline(kernel.clone(), options).kernel
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
