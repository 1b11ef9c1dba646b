//! A session: a device, its memory, and the kernels compiled for it.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use octants_front::FieldKind;
use octants_hal::null::NullDevice;
use octants_hal::{Cancel, Device, DeviceProperties};
use octants_ir::{Kernel, Layout, verify};
use octants_passes::{
    Derivative, Left, Mode, RecordArray, Refusal, Storage, differentiate, differentiate_recorded,
    possible_races,
};
use octants_runtime::{Context, Profiler};

use crate::backend::{self, Backend, Compiler};
use crate::cache::Cache;
use crate::compile_phases::Compilation;
use crate::compiled::CompiledKernel;
use crate::error::Error;
use crate::gradient::{Compile, Gradient};
use crate::intern::Interner;
use crate::kernel_source::KernelSource;
use crate::kernel_store::{CacheOptions, KernelIr, KernelStore};
use crate::launch_keys::LaunchKeys;
use crate::options::{Arch, SessionOptions};
use crate::pool_growth::{GrowthHandle, GrowthKeeper, PoolGrowth};
use crate::race_check::RaceSearch;
use crate::recording::{DualRecording, Recorder, RunPlan};
use crate::wait::{wait, wait_for_all};

/// A device in use. Cloning gives another handle of the same session.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    options: SessionOptions,
    compiler: Arc<dyn Compiler>,
    context: Arc<Context>,
    kernels: Cache<CompiledKernel>,
    /// Where compiled kernels are kept beyond the process, if they are.
    store: OnceLock<Arc<KernelStore>>,
    keys: Arc<LaunchKeys>,
    layouts: Interner<Layout>,
    field_kinds: Interner<FieldKind>,
    /// How many trees with sparse nodes were made: code for one is never taken for that of another.
    trees: AtomicU64,
    growth: Arc<GrowthKeeper>,
}

impl Session {
    /// Opens the device.
    pub fn new(options: SessionOptions) -> Result<Self, Error> {
        Ok(Self::over(backend::open(&options)?, options))
    }

    /// Has a process open the device: after a fault, a driver may refuse it to this one. The command's standard input is the connection, at
    /// which it is to [serve](crate::serve_device) what it [opens](crate::open_device) by these options.
    pub fn in_process(options: SessionOptions, command: Command) -> Result<Self, Error> {
        Ok(Self::over(backend::open_in_process(&options, command)?, options))
    }

    /// A session over a null device that the caller keeps, to look at its trace. `options.arch` is taken as [`Arch::Null`].
    pub fn over_null(device: Arc<NullDevice>, options: SessionOptions) -> Self {
        Self::over(Backend::over_null(device), SessionOptions { arch: Arch::Null, ..options })
    }

    /// A session over a device that somebody stands before: a test that watches its verbs, or fails them.
    pub fn wrapped(
        options: SessionOptions,
        wrap: impl FnOnce(Arc<dyn Device>) -> Arc<dyn Device>,
    ) -> Result<Self, Error> {
        let Backend { device, compiler } = backend::open(&options)?;
        Ok(Self::over(Backend { device: wrap(device), compiler }, options))
    }

    fn over(backend: Backend, options: SessionOptions) -> Self {
        let Backend { device, compiler } = backend;
        let context = if options.kernel_profiler {
            Context::profiled(device, backend::range_marker())
        } else {
            Context::new(device)
        };
        let keys = Arc::new(LaunchKeys::new(options.random_seed));
        let (layouts, field_kinds) = (Interner::new(), Interner::new());
        let inner = Inner {
            options,
            compiler,
            context,
            kernels: Cache::new(),
            store: OnceLock::new(),
            keys,
            layouts,
            field_kinds,
            trees: AtomicU64::new(0),
            growth: Arc::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    pub fn options(&self) -> &SessionOptions {
        &self.inner.options
    }

    /// Compiled kernels are kept on disk from now on, where the device's code is worth it. Called once.
    pub fn use_cache(&self, options: CacheOptions) {
        if let Some(maker) = self.inner.compiler.identity() {
            self.inner.store.get_or_init(|| Arc::new(KernelStore::new(options, &maker)));
        }
    }

    /// Why compiled kernels are not kept, if they are not; each reason is given once.
    pub fn cache_notices(&self) -> Vec<String> {
        self.inner.store.get().map(|store| store.notices()).unwrap_or_default()
    }

    /// Ends the session: arrays, fields and kernels that it gave out refuse from now on, and their memory goes with the last handle.
    pub fn reset(&self) {
        self.inner.context.end();
        self.inner.kernels.clear();
    }

    /// Whether threads of the device's own have nothing to do.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.inner.context.device().is_at_rest()
    }

    /// Whether this process is a forked child that must not touch the session: its device is the parent's alone, or something was under way.
    pub fn is_cut_off(&self) -> bool {
        self.inner.context.is_cut_off() || self.inner.growth.is_of_parent()
    }

    /// In a child that is cut off: whatever the session gave out refuses from now on. Nothing is given back.
    pub fn cut_off(&self) {
        self.inner.context.cut_off();
        std::mem::forget(self.clone());
    }

    pub fn is_live(&self) -> bool {
        self.inner.context.check().is_ok()
    }

    /// Waits until the default stream has done everything that it was told to. Raising `cancel` ends the wait, not the work.
    pub fn sync(&self, cancel: &Cancel) -> Result<(), Error> {
        self.inner.context.check().map_err(|_| Error::SessionEnded)?;
        wait(&self.inner.context, self.inner.context.default_stream(), cancel)
    }

    /// Waits until all streams have.
    pub fn sync_all(&self, cancel: &Cancel) -> Result<(), Error> {
        self.inner.context.check().map_err(|_| Error::SessionEnded)?;
        wait_for_all(&self.inner.context, cancel)
    }

    /// Destroys all streams, and ends their work early where the device can. For the end of a process.
    pub fn abandon_work(&self) {
        self.inner.context.abandon_work();
    }

    /// What the session records of itself.
    pub fn profiler(&self) -> &Arc<Profiler> {
        self.inner.context.profiler()
    }

    /// The name of the device, for people.
    pub fn device_name(&self) -> &str {
        self.inner.context.device().name()
    }

    /// The device in numbers, as it is now.
    pub fn device_properties(&self) -> Result<DeviceProperties, Error> {
        self.inner.context.check().map_err(|_| Error::SessionEnded)?;
        self.inner.context.device().properties().map_err(Error::of_device)
    }

    /// How often in a second the clock that kernels read counts, if the device says so.
    pub fn clock_rate(&self) -> Option<u64> {
        self.inner.context.device().clock_rate()
    }

    /// Whether arrays of the host are arguments in place.
    pub fn sees_host_memory(&self) -> bool {
        self.inner.context.sees_host_memory()
    }

    /// Whether arrays that other libraries have on the device are arguments in place.
    pub fn shares_device(&self) -> bool {
        self.inner.context.shares_device()
    }

    /// How many arrays live.
    pub fn live_arrays(&self) -> usize {
        self.inner.context.allocations()
    }

    /// How many bytes they hold.
    pub fn live_bytes(&self) -> u64 {
        self.inner.context.bytes()
    }

    /// The most bytes that they held at once.
    pub fn peak_bytes(&self) -> u64 {
        self.inner.context.peak_bytes()
    }

    /// Native code for a kernel in its structured phase. Equal IR is compiled once while somebody has the kernel, also if two threads ask at the same time: the
    /// second one waits. `lowering` is how long the front end took, for the statistics. Raising `cancel` ends the wait.
    ///
    /// A kernel is relaxed in its reals if both it and the session allow that, and in debug mode if either is.
    pub fn compile(
        &self,
        kernel: Kernel,
        lowering: Duration,
        cancel: &Cancel,
    ) -> Result<Arc<CompiledKernel>, Error> {
        let debug = kernel.options.debug || self.inner.options.kernel.debug;
        self.compile_in_mode(kernel, debug, lowering, cancel)
    }

    /// Likewise, in debug mode or not, whatever the session says.
    fn compile_in_mode(
        &self,
        mut kernel: Kernel,
        debug: bool,
        lowering: Duration,
        cancel: &Cancel,
    ) -> Result<Arc<CompiledKernel>, Error> {
        let Inner { options, compiler, context, kernels, store, keys, .. } = &*self.inner;
        context.check().map_err(|_| Error::SessionEnded)?;
        if let Err(violations) = verify(&kernel) {
            let all: Vec<_> = violations.iter().map(ToString::to_string).collect();
            return Err(Error::internal("verify", all.join("; ")));
        }
        kernel.options.fast_math &= options.kernel.fast_math;
        kernel.options.debug = debug;
        let ir = Arc::new(KernelIr::of(&kernel, &**compiler));
        kernels.get_or_make(&ir.key_in_process(), cancel, || {
            let profiler = context.profiler();
            let compilation = Compilation::begin(profiler, &kernel.name, lowering);
            let source = KernelSource {
                kernel: Arc::new(kernel),
                options: *options,
                compiler: Arc::clone(compiler),
                lowering,
                profiler: Arc::clone(profiler),
                ir,
                store: store.get().cloned(),
            };
            let made = CompiledKernel::new(context, keys, source, cancel);
            compilation.end();
            made
        })
    }

    /// The derivative of a kernel in its structured phase, with what lies beside each of its parameters; the inner error says why there is none
    /// that is right.
    pub fn differentiate(
        &self,
        kernel: &Kernel,
        mode: Mode,
        storage: &[Storage],
        cancel: &Cancel,
    ) -> Result<Result<Gradient, Vec<Refusal>>, Error> {
        let begin = Instant::now();
        let derivative = match differentiate(kernel, mode, storage) {
            Ok(derivative) => derivative,
            Err(refusals) => return Ok(Err(refusals)),
        };
        self.gradient(derivative, None, begin, cancel).map(Ok)
    }

    /// Compiles kernels of the compiler's own, without checks: what is wrong in them is wrong in what they were made of, which tells.
    fn compile_unchecked(&self) -> Compile {
        let session = self.clone();
        Box::new(move |kernel, cancel| session.compile_in_mode(kernel, false, Duration::ZERO, cancel))
    }

    /// What a kernel's derivative in reverse mode asks of its run. With [`Left::Parts`] it may ask for nothing, on a condition. The inner error says why there is no derivative that is right.
    pub fn record(
        &self,
        kernel: &Kernel,
        storage: &[Storage],
        left: Left,
        cancel: &Cancel,
    ) -> Result<Result<RunPlan, Vec<Refusal>>, Error> {
        let begin = Instant::now();
        let mut derivative = match differentiate_recorded(kernel, storage, left) {
            Ok(derivative) => derivative,
            Err(refusals) => return Ok(Err(refusals)),
        };
        let (sinks, constants) = (derivative.sinks.clone(), derivative.constants.clone());
        let condition = derivative.order.clone().filter(|_| derivative.is_conditional).map(Box::new);
        let watched =
            if kernel.options.debug { possible_races(kernel, storage).ok().flatten() } else { None };
        let races = watched.map(RaceSearch::new);
        let mut recorder = None;
        if let Some(recording) = derivative.recording.take() {
            let compile = |kernel: Kernel| self.compile(kernel, begin.elapsed(), cancel);
            let Inner { options, compiler, .. } = &*self.inner;
            let limit = options.tape_memory_limit;
            let (has_tapes, unchecked) = (compiler.has_tapes(), || self.compile_unchecked());
            let made = Recorder::new(derivative, recording, has_tapes, limit, compile, unchecked)?;
            recorder = Some(made);
        }
        Ok(Ok(RunPlan { recorder, sinks, constants, races, condition }))
    }

    /// The derivative in forward mode of that in reverse mode: products of second derivatives with a direction. `gradients` and `duals` say what lies beside the
    /// kernel's parameters, `gradient_duals` what lies beside their gradients.
    pub fn differentiate_twice(
        &self,
        kernel: &Kernel,
        gradients: &[Storage],
        duals: &[Storage],
        gradient_duals: &[Storage],
        cancel: &Cancel,
    ) -> Result<Result<Gradient, Vec<Refusal>>, Error> {
        let begin = Instant::now();
        let reverse = match differentiate(kernel, Mode::Reverse, gradients) {
            Ok(derivative) => derivative,
            Err(refusals) => return Ok(Err(refusals)),
        };
        let beside = reverse.companions.iter().map(|&(param, _)| gradient_duals[param].clone());
        let storage: Vec<_> = duals.iter().cloned().chain(beside).collect();
        let second = match differentiate(&reverse.kernel, Mode::Forward, &storage) {
            Ok(derivative) => derivative,
            Err(refusals) => return Ok(Err(refusals)),
        };
        let derivative = Derivative { kernel: second.kernel, ..reverse };
        self.gradient(derivative, Some(second.companions), begin, cancel).map(Ok)
    }

    /// What such products ask of a run of the kernel: `None` if it overwrites nothing that they need, so that [`Session::differentiate_twice`] is right.
    pub fn record_with_duals(
        &self,
        kernel: &Kernel,
        gradients: &[Storage],
        duals: &[Storage],
        gradient_duals: &[Storage],
        cancel: &Cancel,
    ) -> Result<Result<Option<DualRecording>, Vec<Refusal>>, Error> {
        let begin = Instant::now();
        let mut reverse = match differentiate_recorded(kernel, gradients, Left::Races) {
            Ok(derivative) => derivative,
            Err(refusals) => return Ok(Err(refusals)),
        };
        let Some(recording) = reverse.recording.take() else { return Ok(Ok(None)) };
        // Duals of what is kept are kept beside it.
        let kept = recording
            .arrays
            .iter()
            .map(|array| if array.scalar.is_real() { Storage::Companion(None) } else { Storage::Constant });
        let beside = reverse.companions.iter().map(|&(param, _)| gradient_duals[param].clone());
        let of_run: Vec<_> = duals.iter().cloned().chain(kept.clone()).collect();
        let of_reverse: Vec<_> = duals.iter().cloned().chain(beside).chain(kept).collect();
        let derive = |kernel, storage: &[Storage]| differentiate(kernel, Mode::Forward, storage);
        let made = derive(&recording.kernel, &of_run)
            .and_then(|forward| Ok((forward, derive(&reverse.kernel, &of_reverse)?)));
        let (mut forward, mut second) = match made {
            Ok(both) => both,
            Err(refusals) => return Ok(Err(refusals)),
        };
        let beside = |pairs: &[(usize, usize)], of: usize| {
            pairs.iter().find(|&&(param, _)| param == of).map(|&(_, dual)| dual)
        };
        let of_arrays = recording.arrays.iter().enumerate().filter_map(|(number, array)| {
            let param = beside(&forward.companions, array.param)?;
            let derivative_param = beside(&second.companions, array.derivative_param)?;
            Some((number, RecordArray { param, derivative_param, ..*array }))
        });
        let of_arrays: Vec<_> = of_arrays.collect();
        // A launch provides the others.
        let is_kept = |param: fn(&RecordArray) -> usize, of: usize| {
            recording.arrays.iter().any(|array| param(array) == of)
        };
        forward.companions.retain(|&(of, _)| !is_kept(|array| array.param, of));
        second.companions.retain(|&(of, _)| !is_kept(|array| array.derivative_param, of));
        let forward = self.gradient(forward, None, begin, cancel)?;
        let (code, unchecked) = (Arc::clone(forward.kernel()), self.compile_unchecked());
        let recorder = Recorder::of(code, recording, of_arrays, &reverse, unchecked);
        let derivative = Derivative { kernel: second.kernel, ..reverse };
        let second = self.gradient(derivative, Some(second.companions), begin, cancel)?;
        Ok(Ok(Some(DualRecording { recorder, forward, second })))
    }

    /// Compiles a derivative; a second one has duals.
    fn gradient(
        &self,
        derivative: Derivative,
        duals: Option<Vec<(usize, usize)>>,
        begin: Instant,
        cancel: &Cancel,
    ) -> Result<Gradient, Error> {
        let compile = |kernel: Kernel| self.compile(kernel, begin.elapsed(), cancel);
        let Inner { options, compiler, .. } = &*self.inner;
        let limit = options.tape_memory_limit;
        Gradient::new(derivative, duals, compiler.has_tapes(), limit, compile, self.compile_unchecked())
    }

    /// The one layout that is equal to this.
    pub fn intern_layout(&self, layout: Layout) -> Arc<Layout> {
        self.inner.layouts.intern(layout)
    }

    /// The one kind of fields that is equal to this; the kinds and layouts inside are interned, too.
    pub fn intern_field_kind(&self, kind: FieldKind) -> Arc<FieldKind> {
        self.inner.field_kinds.intern(kind)
    }

    pub(crate) fn next_tree(&self) -> u64 {
        self.inner.trees.fetch_add(1, Ordering::Relaxed)
    }

    /// Gives memory to a tree's pools whenever they need more.
    pub(crate) fn keep_growing(&self, growth: PoolGrowth) -> Result<GrowthHandle, Error> {
        let refused =
            |error: std::io::Error| Error::Unsupported { message: format!("no thread for pools: {error}") };
        self.inner.growth.keep(growth).map_err(refused)
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.inner.context
    }
}
