//! Derivatives of kernels: compiled, and launched with the memory that they keep values in.
//!
//! On a device whose threads have memory that grows, and without a limit, a derivative is launched like any kernel. Otherwise the launch first finds out how
//! much is needed: by the host, where that follows from arguments and shapes; else by a kernel, in the launch's own stream. The derivative gets arrays
//! for as many iterations as run at once, which live until it is over. Nothing of it is shared with other launches.
//!
//! The host does not wait for the kernel's answer where the device runs work later: it allocates all that the limit lets a launch have, and the derivative
//! itself computes from the answer how many of its iterations run at once. It waits, to allocate exactly as much, where that would be too large a part of the
//! device's memory, and where nothing is gained because work is over when it was told.

use std::sync::{Arc, OnceLock};

use octants_hal::Cancel;
use octants_ir::{Kernel, Loc, Scalar};
use octants_passes::{
    Derivative, LaunchOrder, Refusal, SizeParams, SizesLayout, TapeParams, declare_sized_tape_arrays,
    declare_tape_arrays,
};
use octants_runtime::{Arguments, DerivedArguments, LiveStream, Memory, OverlapGuard, StreamMemory};

use crate::compiled::CompiledKernel;
use crate::error::{Error, LaunchError};
use crate::host_sizing::HostSizing;
use crate::output::Locate;
use crate::tape_memory::{LoopMemory, divide, full_arrays, in_threads, limit_or_default, most_slots};
use crate::wait::told_late;

/// A loop of which a derivative keeps something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptLoop {
    /// In the kernel that was differentiated.
    pub at: Loc,
    /// What is kept in each of its iterations.
    pub scalars: Vec<Scalar>,
}

/// A kernel's derivative, compiled in a session.
pub struct Gradient {
    kernel: Arc<CompiledKernel>,
    params: usize,
    companions: Vec<(usize, usize)>,
    duals: Option<Vec<(usize, usize)>>,
    written: Vec<bool>,
    kept: Vec<KeptLoop>,
    stops: Vec<Loc>,
    dropped: Vec<Refusal>,
    /// The condition on which it is right.
    order: Option<LaunchOrder>,
    /// Of the kernel's own arrays.
    guard: OverlapGuard,
    tapes: Option<Tapes>,
}

/// Makes code for a kernel of the compiler's own.
pub(crate) type Compile = Box<dyn Fn(Kernel, &Cancel) -> Result<Arc<CompiledKernel>, Error> + Send + Sync>;

/// How much tapes need, and how they get it.
struct Tapes {
    sizing: Kernel,
    /// Made when it is first needed: by a launch that provides the memory, or by who asks.
    compiled_sizing: OnceLock<Arc<CompiledKernel>>,
    compile: Compile,
    /// Where the host can compute what the sizing kernel would.
    host: Option<HostSizing>,
    params: TapeParams,
    scalars: Vec<Scalar>,
    /// How many sizes the sizing kernel gives.
    sizes: usize,
    limit: Option<u64>,
    /// Whether a launch provides the memory. Otherwise threads have it, and the kernel lacks [`Tapes::params`].
    placed: bool,
    /// Cells of arrays that hold whatever a launch may need; none where they would take too much.
    full: OnceLock<Option<Vec<u64>>>,
}

impl Tapes {
    fn sizing(&self, cancel: &Cancel) -> Result<&Arc<CompiledKernel>, Error> {
        if let Some(made) = self.compiled_sizing.get() {
            return Ok(made);
        }
        let made = (self.compile)(self.sizing.clone(), cancel)?;
        Ok(self.compiled_sizing.get_or_init(|| made))
    }
}

impl Gradient {
    /// A second derivative has `duals`, of the kernel's parameters and of their companions. `limit` is the most bytes that values may be kept in. `device_has_tapes` says that threads have memory that grows. `compile_sizing` adds
    /// no checks: what is wrong in it is wrong in the derivative, which tells.
    pub(crate) fn new(
        derivative: Derivative,
        duals: Option<Vec<(usize, usize)>>,
        device_has_tapes: bool,
        limit: Option<u64>,
        compile: impl Fn(Kernel) -> Result<Arc<CompiledKernel>, Error>,
        compile_sizing: Compile,
    ) -> Result<Self, Error> {
        let Derivative { mut kernel, companions, access, tapes, stops, dropped, order, .. } = derivative;
        let params = kernel.params.len();
        let mut kept = Vec::new();
        let mut provided = None;
        if let Some(plan) = tapes {
            let sizes = plan.tasks * plan.stride();
            kept.extend(plan.loops.into_iter().map(|(at, scalars)| KeptLoop { at, scalars }));
            let placed = !device_has_tapes || limit.is_some();
            let host = HostSizing::new(&plan.sizing).filter(|_| placed && duals.is_none());
            let params = if !placed {
                declare_tape_arrays(&mut kernel.clone(), &plan.varies)
            } else if host.is_some() {
                declare_tape_arrays(&mut kernel, &plan.varies)
            } else {
                let (scalars, varies) = (&plan.scalars[..], &plan.varies[..]);
                let (with_duals, limit) = (duals.is_some(), limit_or_default(limit));
                let layout = SizesLayout { scalars, varies, with_duals, limit };
                declare_sized_tape_arrays(&mut kernel, layout)
            };
            provided = Some(Tapes {
                host,
                sizing: plan.sizing,
                compiled_sizing: OnceLock::new(),
                compile: compile_sizing,
                params,
                scalars: plan.scalars,
                sizes,
                limit,
                placed,
                full: OnceLock::new(),
            });
        }
        let kernel = compile(kernel)?;
        let guard = OverlapGuard::new(kernel.args(), &access);
        let written = access.iter().map(|access| access.written).collect();
        Ok(Self {
            kernel,
            params,
            companions,
            duals,
            written,
            kept,
            stops,
            dropped,
            order,
            guard,
            tapes: provided,
        })
    }

    /// The derivative. Its first parameters are those of the kernel that was differentiated.
    pub fn kernel(&self) -> &Arc<CompiledKernel> {
        &self.kernel
    }

    /// How many parameters whoever launches it provides: those of the kernel, their companions, and what was recorded. Others of
    /// [`Gradient::kernel`] stay zero in the block of arguments.
    pub fn params(&self) -> usize {
        self.params
    }

    /// Each parameter that has a companion, and the number of that.
    pub fn companions(&self) -> &[(usize, usize)] {
        &self.companions
    }

    /// Whether it is the derivative in forward mode of that in reverse mode.
    pub fn is_second(&self) -> bool {
        self.duals.is_some()
    }

    /// Each parameter or companion that has a dual, and the number of that.
    pub fn duals(&self) -> &[(usize, usize)] {
        self.duals.as_deref().unwrap_or_default()
    }

    /// Of each parameter of the kernel that was differentiated, whether that writes its memory. Such memory must not overlap that of another
    /// parameter.
    pub fn written(&self) -> &[bool] {
        &self.written
    }

    /// The loops of which it keeps something, in the order of the text.
    pub fn kept(&self) -> &[KeptLoop] {
        &self.kept
    }

    /// Where a derivative stops that could have gone on: conversions to integers, steps.
    pub fn stops(&self) -> &[Loc] {
        &self.stops
    }

    /// What is lost of it by fields without storage for derivatives.
    pub fn dropped(&self) -> &[Refusal] {
        &self.dropped
    }

    /// The condition on which it is right.
    pub fn order(&self) -> Option<&LaunchOrder> {
        self.order.as_ref()
    }

    /// Runs the derivative. `args` is in the layout of [`Gradient::kernel`], with zeros behind [`Gradient::params`]. Gives the bytes of
    /// the arrays that it had for what it keeps; a device that keeps it in its threads' memory needs none. What it prints is lost.
    pub fn launch(
        &self,
        args: Arguments<'_>,
        on: Option<&LiveStream>,
        cancel: &Cancel,
    ) -> Result<u64, LaunchError> {
        told_late(self.kernel.context())?;
        let (ran, bytes) =
            self.with_tapes(args, on, cancel, |args| self.kernel.launch_late(args, on, cancel))?;
        ran.map(|()| bytes)
    }

    /// Likewise, and gives what it printed: in debug mode it tells of integers that overflow.
    pub fn launch_printing(
        &self,
        args: Arguments<'_>,
        on: Option<&LiveStream>,
        cancel: &Cancel,
        locate: Locate<'_>,
    ) -> (String, Result<u64, LaunchError>) {
        let results = &mut vec![0; self.kernel.results().bytes as usize][..];
        let ran = self.with_tapes(args, on, cancel, |args| {
            self.kernel.launch_printing(args, results, on, cancel, locate)
        });
        match ran {
            Ok(((text, ended), bytes)) => (text, ended.map(|()| bytes)),
            Err(error) => (String::new(), Err(error)),
        }
    }

    /// Runs the closure with arguments that have memory for what is kept, and says how many bytes that is.
    fn with_tapes<R>(
        &self,
        args: Arguments<'_>,
        on: Option<&LiveStream>,
        cancel: &Cancel,
        run: impl FnOnce(Arguments<'_>) -> R,
    ) -> Result<(R, u64), LaunchError> {
        if self.guard.is_needed() && self.guard.overlaps(args.bytes()) {
            let message = format!(
                "`{}` cannot run on arrays that overlap: the kernel writes one of them",
                self.kernel.name()
            );
            return Err(Error::invalid(message).into());
        }
        let is_met = |order| self.kernel.refusal(order, args.bytes()).is_some();
        if self.order.as_ref().is_some_and(is_met) {
            let message = format!(
                "`{}` cannot run with these arguments: the kernel overwrites what it needs, or its iterations meet",
                self.kernel.name()
            );
            return Err(Error::invalid(message).into());
        }
        let Some(placed) = self.tapes.as_ref().filter(|tapes| tapes.placed) else {
            return Ok((run(args), 0));
        };
        if let Some(params) = placed.params.sizes {
            return self.with_sized_tapes(placed, params, args, on, cancel, run);
        }
        let loops = self.loop_memory(placed, args, on, cancel)?;
        let mismatch = || Error::internal("launch", "a derivative's arguments are not in its layout");
        let memories = self.tape_arrays(placed, &loops, on, cancel)?;
        let tickets = loops.iter().map(|memory| self.tickets(memory, on, cancel));
        let tickets = tickets.collect::<Result<Vec<_>, _>>()?;
        let mut args = DerivedArguments::same(args, self.kernel.args()).ok_or_else(mismatch)?;
        let slots = placed.params.loops.iter().zip(&loops);
        let mut fits = slots.fold(true, |fits, (taped, memory)| {
            let slots = i32::try_from(memory.at_once).ok().zip(taped.slots);
            slots.is_some_and(|(slots, param)| args.set_i32(param, slots)) && fits
        });
        for (taped, (columns, taken)) in placed.params.loops.iter().zip(&tickets) {
            let Some(claims) = taped.claims else { continue };
            fits &= claims.columns.is_some_and(|param| args.set_i32(param, *columns));
            fits &= args.set_array(claims.tickets, taken, Scalar::I32, &[i32::from(*columns > 0)]);
        }
        for (array, (cells, memory)) in placed.params.arrays.iter().zip(&memories) {
            fits &= args.set_array(array.param, memory, array.scalar, &[*cells]);
        }
        if !fits {
            return Err(mismatch().into());
        }
        let bytes = memories.iter().map(|(_, memory)| memory.bytes() as u64).sum();
        Ok((run(args.arguments()), bytes))
    }

    /// Likewise, where the derivative computes from what the sizing kernel has written how many iterations run at once. The arrays hold whatever the limit
    /// allows, so that the device goes on by itself; iterations for which there is no memory wait for others. Where there are none, the host waits for the
    /// sizes, and allocates exactly as much.
    fn with_sized_tapes<R>(
        &self,
        placed: &Tapes,
        params: SizeParams,
        args: Arguments<'_>,
        on: Option<&LiveStream>,
        cancel: &Cancel,
        run: impl FnOnce(Arguments<'_>) -> R,
    ) -> Result<(R, u64), LaunchError> {
        let sizes = self.run_sizing(placed, args, on, cancel)?;
        let arrays = if let Some(arrays) = self.full_arrays(placed, on, cancel) {
            arrays
        } else {
            let loops = self.divide(placed, &self.read_sizes(placed, &sizes, cancel)?)?;
            self.tape_arrays(placed, &loops, on, cancel)?
        };
        let mismatch = || Error::internal("launch", "a derivative's arguments are not in its layout");
        let mut args = DerivedArguments::same(args, self.kernel.args()).ok_or_else(mismatch)?;
        let most = most_slots(self.threads()).min(i32::MAX as u64) as i32;
        let mut fits = args.set_i32(params.most, most);
        fits &= args.set_array(params.sizes, &sizes, Scalar::I64, &[placed.sizes as i32]);
        let tickets =
            (0..placed.params.loops.len()).map(|number| sizes.part(8 * placed.sizes + 4 * number, 4));
        let tickets = tickets.collect::<Option<Vec<_>>>().ok_or_else(mismatch)?;
        for (taped, tickets) in placed.params.loops.iter().zip(&tickets) {
            fits &=
                taped.claims.is_none_or(|claims| args.set_array(claims.tickets, tickets, Scalar::I32, &[1]));
        }
        for (array, (cells, memory)) in placed.params.arrays.iter().zip(&arrays) {
            fits &= args.set_array(array.param, memory, array.scalar, &[*cells]);
        }
        if !fits {
            return Err(mismatch().into());
        }
        let bytes = arrays.iter().map(|(_, memory)| memory.bytes() as u64).sum();
        Ok((run(args.arguments()), bytes))
    }

    /// Arrays that hold whatever the launch may need; none where nothing is gained because the stream's work is over when it was told, and where there
    /// is not as much memory.
    fn full_arrays<'s>(
        &self,
        placed: &Tapes,
        on: Option<&'s LiveStream>,
        cancel: &Cancel,
    ) -> Option<Vec<(i32, StreamMemory<'s>)>> {
        let context = self.kernel.context();
        let stream = on.map_or(context.default_stream(), LiveStream::stream);
        if context.device().is_immediate(stream) {
            return None;
        }
        let full = || full_arrays(&placed.params, placed.limit, Memory::reservable(context));
        let cells = placed.full.get_or_init(full).as_ref()?;
        let arrays = placed.params.arrays.iter().zip(cells);
        arrays
            .map(|(array, &cells)| {
                let bytes = cells * u64::from(array.scalar.bytes());
                let memory = StreamMemory::allocate(context, on, bytes as usize, cancel).ok()?;
                Some((i32::try_from(cells).ok()?, memory))
            })
            .collect()
    }

    fn threads(&self) -> u64 {
        self.kernel.context().device().fork_costs().threads
    }

    /// What each parallel loop keeps in a launch with these arguments, in the order of the derivative; waits for it.
    pub fn kept_memory(
        &self,
        args: Arguments<'_>,
        on: Option<&LiveStream>,
        cancel: &Cancel,
    ) -> Result<Vec<LoopMemory>, LaunchError> {
        self.tapes.as_ref().map_or(Ok(Vec::new()), |tapes| self.loop_memory(tapes, args, on, cancel))
    }

    /// Whether the memory for what is kept is the threads' own, and grows as they need it.
    pub fn keeps_in_threads(&self) -> bool {
        self.tapes.as_ref().is_some_and(|tapes| !tapes.placed)
    }

    /// Whether the host computes how much is kept with these arguments, so that nothing runs or waits for that.
    pub fn is_sized_by_host(&self, args: Arguments<'_>) -> bool {
        self.tapes.as_ref().is_some_and(|tapes| self.sizes_by_host(tapes, args).is_some())
    }

    /// Whether [`Gradient::kept_memory`] runs a kernel with these arguments.
    pub fn is_sized_by_kernel(&self, args: Arguments<'_>) -> bool {
        self.tapes.as_ref().is_some_and(|tapes| self.sizes_by_host(tapes, args).is_none())
    }

    /// The parameters of the kernel that was differentiated whose memory is read again.
    pub fn read_again(&self) -> Vec<usize> {
        let access = &self.kernel.access()[..self.written.len()];
        (0..access.len()).filter(|&param| access[param].read).collect()
    }

    /// What each loop needs, as the sizing kernel says.
    fn loop_memory(
        &self,
        tapes: &Tapes,
        args: Arguments<'_>,
        on: Option<&LiveStream>,
        cancel: &Cancel,
    ) -> Result<Vec<LoopMemory>, LaunchError> {
        let sizes = match self.sizes_by_host(tapes, args) {
            Some(sizes) => sizes,
            None => self.read_sizes(tapes, &self.run_sizing(tapes, args, on, cancel)?, cancel)?,
        };
        if tapes.placed {
            return Ok(self.divide(tapes, &sizes)?);
        }
        let lanes = u64::from(self.kernel.plan().first().most_lanes());
        Ok(in_threads(&tapes.params, &tapes.scalars, &sizes, self.threads() * lanes))
    }

    fn divide(&self, tapes: &Tapes, sizes: &[i64]) -> Result<Vec<LoopMemory>, Error> {
        divide(&tapes.params, &tapes.scalars, sizes, self.threads(), tapes.limit)
    }

    /// What the sizing kernel would say, where that needs nothing but arguments.
    fn sizes_by_host(&self, tapes: &Tapes, args: Arguments<'_>) -> Option<Vec<i64>> {
        tapes.host.as_ref()?.sizes(self.kernel.args(), args.bytes(), tapes.sizes)
    }

    /// Runs the sizing kernel, in the order of the stream, and gives the memory that it writes: the sizes, and behind them a zero for each loop.
    fn run_sizing<'s>(
        &self,
        tapes: &Tapes,
        args: Arguments<'_>,
        on: Option<&'s LiveStream>,
        cancel: &Cancel,
    ) -> Result<StreamMemory<'s>, LaunchError> {
        let (context, sizing) = (self.kernel.context(), tapes.sizing(cancel)?);
        let of_memory = |error| Error::of_memory(error, "gradient");
        let memory =
            StreamMemory::allocate(context, on, tapes.sizes * 8 + tapes.params.loops.len() * 4, cancel);
        let memory = memory.map_err(of_memory)?;
        memory.fill_with_zeros().map_err(of_memory)?;
        let (layout, access) = (sizing.args(), sizing.access());
        // Behind those of the derivative is the array of sizes; those of a second derivative are more.
        let params = layout.slots.len() - 1;
        let derived = DerivedArguments::for_reader(args, self.kernel.args(), params, layout, access);
        let mismatch =
            || Error::internal("launch", "a derivative's sizes are not computed from its arguments");
        let mut derived = derived.ok_or_else(mismatch)?;
        if !derived.set_array(params, &memory, Scalar::I64, &[tapes.sizes as i32]) {
            return Err(mismatch().into());
        }
        let results = &mut vec![0; sizing.results().bytes as usize][..];
        sizing.launch(derived.arguments(), results, on, cancel)?;
        Ok(memory)
    }

    /// What it has written; waits for it.
    fn read_sizes(
        &self,
        tapes: &Tapes,
        memory: &StreamMemory<'_>,
        cancel: &Cancel,
    ) -> Result<Vec<i64>, LaunchError> {
        let bytes = memory.read(cancel).map_err(|error| Error::of_memory(error, "gradient"))?;
        let words = bytes[..8 * tapes.sizes].chunks_exact(8);
        let mut sizes: Vec<_> =
            words.map(|word| i64::from_le_bytes(word.try_into().expect("eight bytes"))).collect();
        if self.is_second() {
            // A real that is kept has its dual beside it.
            for of_loop in sizes.chunks_exact_mut(2 + tapes.scalars.len()) {
                let reals =
                    tapes.scalars.iter().zip(&mut of_loop[2..]).filter(|(scalar, _)| scalar.is_real());
                reals.for_each(|(_, cells)| *cells = cells.saturating_mul(2));
            }
        }
        Ok(sizes)
    }

    /// How many columns iterations take as they need them, and where they count them; no column if each that runs has its own.
    fn tickets<'s>(
        &self,
        loop_memory: &LoopMemory,
        on: Option<&'s LiveStream>,
        cancel: &Cancel,
    ) -> Result<(i32, StreamMemory<'s>), Error> {
        let of_memory = |error| Error::of_memory(error, "gradient");
        let columns = if loop_memory.slots < loop_memory.at_once { loop_memory.slots } else { 0 };
        let columns =
            i32::try_from(columns).map_err(|_| Error::internal("launch", "an array has too many columns"))?;
        let bytes = if columns > 0 { 4 } else { 0 };
        let memory = StreamMemory::allocate(self.kernel.context(), on, bytes, cancel).map_err(of_memory)?;
        if columns > 0 {
            memory.fill_with_zeros().map_err(of_memory)?;
        }
        Ok((columns, memory))
    }

    /// The memory of each array, with how many cells it has: as many as the most demanding of its loops needs.
    fn tape_arrays<'s>(
        &self,
        placed: &Tapes,
        loops: &[LoopMemory],
        on: Option<&'s LiveStream>,
        cancel: &Cancel,
    ) -> Result<Vec<(i32, StreamMemory<'s>)>, Error> {
        let mut arrays = Vec::with_capacity(placed.params.arrays.len());
        for array in &placed.params.arrays {
            let of_branch = placed.params.loops.iter().zip(loops);
            let of_branch = of_branch.filter(|(taped, _)| taped.branch == array.branch);
            let cells = of_branch.flat_map(|(_, memory)| {
                let own = memory.cells.iter().filter(|(scalar, _)| *scalar == array.scalar);
                own.map(|(_, cells)| cells * memory.slots)
            });
            let cells = cells.max().unwrap_or(0);
            let bytes = cells * u64::from(array.scalar.bytes());
            let memory = StreamMemory::allocate(self.kernel.context(), on, bytes as usize, cancel);
            let memory = memory.map_err(|error| Error::of_memory(error, "gradient"))?;
            let cells =
                i32::try_from(cells).map_err(|_| Error::internal("launch", "an array has too many cells"))?;
            arrays.push((cells, memory));
        }
        Ok(arrays)
    }
}
