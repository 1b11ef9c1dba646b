//! Runs of kernels that are recorded: what a derivative needs and the kernel overwrites is kept in arrays of the run's own, which the derivative
//! reads. They live as long as the [`Record`].

use std::sync::{Arc, OnceLock};

use octants_hal::Cancel;
use octants_ir::{Kernel, Loc, Scalar};
use octants_passes::{ArrayCopy, Derivative, LaunchOrder, RecordArray, RecordSizes, Recording};
use octants_runtime::{Arguments, DerivedArguments, HostQueue, LiveStream, Memory, OverlapGuard};

use crate::compiled::CompiledKernel;
use crate::error::{Error, LaunchError};
use crate::gradient::{Compile, Gradient};
use crate::host_sizing::HostSizing;
use crate::race_check::RaceSearch;

/// A kernel that keeps what its derivative needs, compiled in a session.
pub struct Recorder {
    kernel: Arc<CompiledKernel>,
    sizing: Sizing,
    /// Memory that the sizing kernel writes in the place of the kernel's arrays.
    copies: Vec<ArrayCopy>,
    arrays: Vec<RecordArray>,
    /// For second derivatives: where duals of what is kept in one of the arrays lie.
    duals: Vec<(usize, RecordArray)>,
    kept: Vec<(Loc, Scalar)>,
    /// How many parameters the kernel itself has.
    params: usize,
    /// Of the kernel's own arrays.
    guard: OverlapGuard,
}

/// Who computes how much a run keeps.
struct Sizing {
    kernel: Kernel,
    /// The host, where it follows from the values and shapes of arguments: nothing waits then.
    host: Option<HostSizing>,
    /// Made when a launch first needs it.
    compiled: OnceLock<Arc<CompiledKernel>>,
    compile: Compile,
}

impl Sizing {
    fn new(kernel: Kernel, compile: Compile) -> Self {
        Self { host: HostSizing::new(&kernel), kernel, compiled: OnceLock::new(), compile }
    }

    fn compiled(&self, cancel: &Cancel) -> Result<&Arc<CompiledKernel>, Error> {
        if let Some(made) = self.compiled.get() {
            return Ok(made);
        }
        let made = (self.compile)(self.kernel.clone(), cancel)?;
        Ok(self.compiled.get_or_init(|| made))
    }
}

/// What second derivatives ask of a kernel's run that overwrites what they need.
pub struct DualRecording {
    /// Of the kernel in forward mode.
    pub recorder: Recorder,
    pub forward: Gradient,
    /// The derivative in forward mode of that in reverse mode, which reads the record.
    pub second: Gradient,
}

/// What a kernel's derivative asks of its run.
pub struct RunPlan {
    /// What must run in the place of the kernel, if it overwrites what its derivative needs, and that derivative.
    pub recorder: Option<(Recorder, Gradient)>,
    /// Parameters without storage for a derivative in which the kernel stores what has one.
    pub sinks: Vec<usize>,
    /// Parameters without storage for a derivative that what the kernel computes depends on.
    pub constants: Vec<usize>,
    /// In debug mode: what is right about the derivative only if iterations do not meet, which its runs show.
    pub races: Option<RaceSearch>,
    /// It is the plan for launches of which this holds. The others are recorded.
    pub condition: Option<Box<LaunchOrder>>,
}

/// What one run keeps.
pub struct Record {
    arrays: Vec<(RecordArray, [i32; 2], Memory)>,
}

impl Recorder {
    /// Compiles the kernel that records and the derivative.
    pub(crate) fn new(
        derivative: Derivative,
        recording: Recording,
        device_has_tapes: bool,
        tape_limit: Option<u64>,
        compile: impl Fn(Kernel) -> Result<Arc<CompiledKernel>, Error>,
        compile_sizing: impl Fn() -> Compile,
    ) -> Result<(Self, Gradient), Error> {
        let kernel = compile(recording.kernel.clone())?;
        let recorder = Self::of(kernel, recording, Vec::new(), &derivative, compile_sizing());
        let made = Gradient::new(derivative, None, device_has_tapes, tape_limit, compile, compile_sizing());
        Ok((recorder, made?))
    }

    /// Of compiled code that records, and keeps duals beside some of the arrays.
    pub(crate) fn of(
        kernel: Arc<CompiledKernel>,
        recording: Recording,
        duals: Vec<(usize, RecordArray)>,
        derivative: &Derivative,
        compile_sizing: Compile,
    ) -> Self {
        let Recording { kernel: recorded, arrays, kept, sizes } = recording;
        let params = recorded.params.len() - arrays.len();
        let RecordSizes { kernel: sizing, copies } = sizes;
        let sizing = Sizing::new(sizing, compile_sizing);
        let guard = OverlapGuard::new(kernel.args(), &derivative.access);
        Self { kernel, sizing, copies, arrays, duals, kept, params, guard }
    }

    /// The kernel that records. Its first parameters are those of the kernel that it stands for; the others are arrays, and stay empty in the
    /// block of arguments.
    pub fn kernel(&self) -> &Arc<CompiledKernel> {
        &self.kernel
    }

    /// How many parameters the kernel has that it stands for.
    pub fn params(&self) -> usize {
        self.params
    }

    /// The places of what is kept.
    pub fn kept(&self) -> &[(Loc, Scalar)] {
        &self.kept
    }

    /// Makes room for what a run with these arguments keeps. `args` is in the layout of [`Recorder::kernel`].
    pub fn begin(
        &self,
        args: Arguments<'_>,
        on: Option<&LiveStream>,
        cancel: &Cancel,
    ) -> Result<Record, LaunchError> {
        if self.guard.is_needed() && self.guard.overlaps(args.bytes()) {
            let message = format!(
                "`{}` cannot be recorded for its derivative with arrays that overlap: it writes one of them",
                self.kernel.name()
            );
            return Err(Error::invalid(message).into());
        }
        let sizes = self.sizes(args, on, cancel)?;
        let mut arrays = Vec::with_capacity(self.arrays.len());
        for (array, size) in self.arrays.iter().zip(sizes.chunks_exact(2)) {
            let bytes = i128::from(size[0]) * i128::from(size[1]) * i128::from(array.scalar.bytes());
            let too_large = || Error::OutOfMemory { bytes: u64::try_from(bytes).unwrap_or(u64::MAX) };
            let extent = |size: i64| i32::try_from(size).map_err(|_| too_large());
            let shape = [extent(size[0])?, extent(size[1])?];
            let bytes = usize::try_from(bytes).map_err(|_| too_large())?;
            arrays.push((*array, shape, self.allocate(bytes)?));
        }
        for &(beside, dual) in &self.duals {
            let (_, shape, memory) = &arrays[beside];
            let (shape, bytes) = (*shape, memory.bytes());
            arrays.push((dual, shape, self.allocate(bytes)?));
        }
        Ok(Record { arrays })
    }

    /// Rows and columns of each array. Waits for the device where it computes them.
    fn sizes(
        &self,
        args: Arguments<'_>,
        on: Option<&LiveStream>,
        cancel: &Cancel,
    ) -> Result<Vec<i64>, LaunchError> {
        let count = 2 * self.arrays.len();
        let host = self.sizing.host.as_ref().filter(|_| self.copies.is_empty());
        if let Some(sizes) = host.and_then(|host| host.sizes(self.kernel.args(), args.bytes(), count)) {
            return Ok(sizes);
        }
        let sizing = self.sizing.compiled(cancel)?;
        let memory = self.allocate(count * 8)?;
        let (layout, access) = (sizing.args(), sizing.access());
        let derived = DerivedArguments::for_reader(args, self.kernel.args(), self.params, layout, access);
        let mut derived = derived.ok_or_else(mismatch)?;
        let mut copies = Vec::with_capacity(self.copies.len());
        for copy in &self.copies {
            let shape = self.copied_shape(copy, args)?;
            let bytes =
                shape.iter().fold(copy.scalar.bytes() as usize, |bytes, &extent| bytes * extent as usize);
            copies.push((copy, shape, self.allocate(bytes)?));
        }
        let mut fits = derived.set_array(self.params, &memory, Scalar::I64, &[count as i32]);
        for (copy, shape, copied) in &copies {
            fits &= derived.set_array(copy.param, copied, copy.scalar, shape);
        }
        if !fits {
            return Err(mismatch().into());
        }
        let used = || std::iter::once(&memory).chain(copies.iter().map(|(_, _, copied)| copied));
        if let Some(stream) = on {
            for memory in used() {
                sizing.before_launch(stream, memory)?;
            }
        }
        let launched = sizing.launch(derived.arguments(), &mut [], on, cancel);
        let noted = on.map_or(Ok(()), |stream| sizing.after_launch(stream, used()));
        launched?;
        noted?;
        let mut bytes = vec![0; count * 8];
        let queue = HostQueue { stream: on, cancel };
        // A copy to the host waits until it is over, whatever is cancelled.
        let read = memory.wait(queue).and_then(|()| memory.read(queue, 0, &mut bytes));
        read.map_err(|error| Error::of_memory(error, "gradient"))?;
        let words = bytes.chunks_exact(8);
        Ok(words.map(|word| i64::from_le_bytes(word.try_into().expect("eight bytes"))).collect())
    }

    /// The extents of what the sizing kernel writes in the place of an array.
    fn copied_shape(&self, copy: &ArrayCopy, args: Arguments<'_>) -> Result<Vec<i32>, Error> {
        let slot = self.kernel.args().slots.get(copy.of).ok_or_else(mismatch)?;
        let array = slot.array().ok_or_else(mismatch)?;
        let extent = |axis: u8| {
            let at = slot.extent_offset(axis) as usize;
            let word = args.bytes().get(at..at + 4).ok_or_else(mismatch)?;
            Ok(i32::from_le_bytes(word.try_into().expect("four bytes")).max(0))
        };
        let mut shape: Vec<i32> = match &copy.shape {
            Some(shape) => shape.iter().map(|&extent| extent as i32).collect(),
            None => (0..array.rank).map(extent).collect::<Result<_, Error>>()?,
        };
        shape.extend(copy.components.iter().map(|&extent| extent as i32));
        Ok(shape)
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, Error> {
        let context = self.kernel.context();
        Memory::allocate(context, bytes).map_err(|error| Error::of_memory(error, "gradient"))
    }

    /// The block of arguments of the run, with the record's arrays.
    pub fn block(&self, args: Arguments<'_>, record: &Record) -> Result<Vec<u8>, Error> {
        record.block(args, &self.kernel, |array| array.param)
    }
}

impl Record {
    /// How much memory it takes.
    pub fn bytes(&self) -> u64 {
        self.arrays.iter().map(|(_, _, memory)| memory.bytes() as u64).sum()
    }

    /// The block of arguments of a derivative, with the record's arrays.
    pub fn derivative_block(&self, args: Arguments<'_>, gradient: &Gradient) -> Result<Vec<u8>, Error> {
        self.block(args, gradient.kernel(), |array| array.derivative_param)
    }

    fn block(
        &self,
        args: Arguments<'_>,
        kernel: &CompiledKernel,
        param: impl Fn(&RecordArray) -> usize,
    ) -> Result<Vec<u8>, Error> {
        let mut args = DerivedArguments::same(args, kernel.args()).ok_or_else(mismatch)?;
        for (array, shape, memory) in &self.arrays {
            if memory.address().is_err() {
                return Err(Error::Stale { what: "record of a kernel" });
            }
            if !args.set_array(param(array), memory, array.scalar, shape) {
                return Err(mismatch());
            }
        }
        Ok(args.arguments().bytes().to_vec())
    }

    /// Before a launch in the stream that uses it.
    pub fn before_launch(&self, kernel: &CompiledKernel, stream: &LiveStream) -> Result<(), LaunchError> {
        for (_, _, memory) in &self.arrays {
            kernel.before_launch(stream, memory)?;
        }
        Ok(())
    }

    /// What a launch that is given it uses.
    pub fn memories(&self) -> impl Iterator<Item = &Memory> {
        self.arrays.iter().map(|(_, _, memory)| memory)
    }
}

fn mismatch() -> Error {
    Error::internal("launch", "a kernel's record does not fit its arguments")
}
