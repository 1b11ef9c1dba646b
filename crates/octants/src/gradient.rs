//! Derivatives of kernels: compiled, and launched with the memory that they keep values in.
//!
//! On a device whose threads have memory that grows, a derivative is launched like any kernel. On others the launch first runs a kernel that says how
//! much is needed, and gives the derivative arrays of exactly that size, which live until it is over. Nothing of it is shared with other
//! launches.

use std::sync::Arc;

use octants_hal::Cancel;
use octants_ir::{Kernel, Loc, Scalar};
use octants_passes::{Derivative, TapeArray, place_tapes};
use octants_runtime::{Arguments, DerivedArguments, HostQueue, LiveStream, Memory, OverlapGuard};

use crate::compiled::CompiledKernel;
use crate::error::{Error, LaunchError};

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
    written: Vec<bool>,
    kept: Vec<KeptLoop>,
    stops: Vec<Loc>,
    /// Of the kernel's own arrays.
    guard: OverlapGuard,
    placed: Option<PlacedTapes>,
}

/// How tapes get their memory from a launch.
struct PlacedTapes {
    sizing: Arc<CompiledKernel>,
    arrays: Vec<TapeArray>,
    scalars: Vec<Scalar>,
    tasks: usize,
    /// Sizes of each task: its points, then cells of each scalar.
    stride: usize,
}

impl Gradient {
    pub(crate) fn new(
        derivative: Derivative,
        device_has_tapes: bool,
        compile: impl Fn(Kernel) -> Result<Arc<CompiledKernel>, Error>,
    ) -> Result<Self, Error> {
        let Derivative { mut kernel, companions, access, tapes, stops, recording: _ } = derivative;
        let params = kernel.params.len();
        let mut kept = Vec::new();
        let mut placed = None;
        if let Some(plan) = tapes {
            let stride = plan.stride();
            kept.extend(plan.loops.into_iter().map(|(at, scalars)| KeptLoop { at, scalars }));
            if !device_has_tapes {
                let arrays = place_tapes(&mut kernel);
                let (scalars, tasks) = (plan.scalars, plan.tasks);
                placed = Some(PlacedTapes { sizing: compile(plan.sizing)?, arrays, scalars, tasks, stride });
            }
        }
        let kernel = compile(kernel)?;
        let guard = OverlapGuard::new(kernel.args(), &access);
        let written = access.iter().map(|access| access.written).collect();
        Ok(Self { kernel, params, companions, written, kept, stops, guard, placed })
    }

    /// The derivative. Its first parameters are those of the kernel that was differentiated.
    pub fn kernel(&self) -> &Arc<CompiledKernel> {
        &self.kernel
    }

    /// How many parameters whoever launches it provides: those of the kernel, their companions, and what was recorded. Others of
    /// [`Gradient::kernel`] are arrays, and stay empty in the block of arguments.
    pub fn params(&self) -> usize {
        self.params
    }

    /// Each parameter that has a companion, and the number of that.
    pub fn companions(&self) -> &[(usize, usize)] {
        &self.companions
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

    /// Runs the derivative. `args` is in the layout of [`Gradient::kernel`], with empty arrays behind [`Gradient::params`]. Gives the bytes of
    /// what it kept in arrays; a device that keeps it in its threads' memory needs none.
    pub fn launch(
        &self,
        args: Arguments<'_>,
        on: Option<&LiveStream>,
        cancel: &Cancel,
    ) -> Result<u64, LaunchError> {
        if self.guard.is_needed() && self.guard.overlaps(args.bytes()) {
            let message = format!(
                "`{}` cannot run on arrays that overlap: the kernel writes one of them",
                self.kernel.name()
            );
            return Err(Error::invalid(message).into());
        }
        let results = &mut vec![0; self.kernel.results().bytes as usize][..];
        let Some(placed) = &self.placed else {
            return self.kernel.launch(args, results, on, cancel).map(|()| 0);
        };
        let sizes = self.sizes(placed, args, on, cancel)?;
        let mut memories = Vec::with_capacity(placed.arrays.len());
        for array in &placed.arrays {
            let shape = placed.shape(array, &sizes)?;
            let bytes = shape.iter().map(|&extent| extent as usize).product::<usize>();
            let bytes = bytes * array.scalar.bytes() as usize;
            memories.push((array, shape, self.allocate(bytes)?));
        }
        let mismatch = || Error::internal("launch", "a derivative's arguments are not in its layout");
        let mut args = DerivedArguments::same(args, self.kernel.args()).ok_or_else(mismatch)?;
        for (array, shape, memory) in &memories {
            if !args.set_array(array.param, memory, array.scalar, shape) {
                return Err(mismatch().into());
            }
        }
        self.run(&self.kernel, args.arguments(), memories.iter().map(|(_, _, memory)| memory), on, cancel)?;
        Ok(memories.iter().map(|(_, _, memory)| memory.bytes() as u64).sum())
    }

    /// What the sizing kernel says.
    fn sizes(
        &self,
        placed: &PlacedTapes,
        args: Arguments<'_>,
        on: Option<&LiveStream>,
        cancel: &Cancel,
    ) -> Result<Vec<i64>, LaunchError> {
        let count = placed.tasks * placed.stride;
        let memory = self.allocate(count * 8)?;
        let sizing = &placed.sizing;
        let (layout, access) = (sizing.args(), sizing.access());
        let derived = DerivedArguments::for_reader(args, self.kernel.args(), self.params, layout, access);
        let mismatch =
            || Error::internal("launch", "a derivative's sizes are not computed from its arguments");
        let mut derived = derived.ok_or_else(mismatch)?;
        if !derived.set_array(self.params, &memory, Scalar::I64, &[count as i32]) {
            return Err(mismatch().into());
        }
        self.run(sizing, derived.arguments(), [&memory], on, cancel)?;
        let mut bytes = vec![0; count * 8];
        let queue = HostQueue { stream: on, cancel };
        memory.read(queue, 0, &mut bytes).map_err(|error| Error::of_memory(error, "gradient"))?;
        let words = bytes.chunks_exact(8);
        Ok(words.map(|word| i64::from_le_bytes(word.try_into().expect("eight bytes"))).collect())
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, Error> {
        let context = self.kernel.context();
        Memory::allocate(context, bytes).map_err(|error| Error::of_memory(error, "gradient"))
    }

    /// Launches in the stream, which uses these memories.
    fn run<'m>(
        &self,
        kernel: &CompiledKernel,
        args: Arguments<'_>,
        memories: impl IntoIterator<Item = &'m Memory>,
        on: Option<&LiveStream>,
        cancel: &Cancel,
    ) -> Result<(), LaunchError> {
        let memories: Vec<_> = memories.into_iter().collect();
        if let Some(stream) = on {
            for memory in &memories {
                kernel.before_launch(stream, memory)?;
            }
        }
        kernel.launch(args, &mut vec![0; kernel.results().bytes as usize], on, cancel)?;
        if let Some(stream) = on {
            for memory in memories {
                memory.after_launch(stream);
            }
            kernel.after_launch(stream)?;
        }
        Ok(())
    }
}

impl PlacedTapes {
    /// Rows and columns of an array.
    fn shape(&self, array: &TapeArray, sizes: &[i64]) -> Result<[i32; 2], Error> {
        let first = array.task * self.stride;
        let kept = self.scalars.iter().position(|&scalar| scalar == array.scalar);
        let Some(kept) = kept else {
            return Err(Error::internal("launch", "a tape is not among the sizes"));
        };
        let [points, cells] = [sizes[first], sizes[first + 1 + kept]];
        if let (Ok(cells), Ok(points)) = (i32::try_from(cells), i32::try_from(points)) {
            return Ok([cells, points]);
        }
        let bytes = i128::from(cells) * i128::from(points) * i128::from(array.scalar.bytes());
        Err(Error::OutOfMemory { bytes: u64::try_from(bytes).unwrap_or(u64::MAX) })
    }
}
