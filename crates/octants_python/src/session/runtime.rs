//! The current session. The Python package makes one `Runtime` and gives it to everything that needs a session.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use octants::forked::ComingFork;
use octants::front::{LowerOptions, Sources};
use octants::ir::{KernelOptions, Scalar};
use octants::{Arch, DeviceProperties, Error, Event, Profiler, Session, SessionOptions, Trace, chrome_trace};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::gateway::under_way::Outside;
use crate::gateway::{errors, interrupt};
use crate::session::profiler::{self, SessionProfiler};
use crate::session::{device_process, disk_cache, package_folder};
use crate::values::dtype::{self, DataType, TypeLike};
use crate::values::host_only;

/// How often a thread that needs a session starts one, if others reset it meanwhile. Chosen, not measured: it bounds what would be an endless
/// loop.
const MAX_START_ATTEMPTS: usize = 100;

#[pyclass(frozen, module = "octants")]
pub struct Runtime {
    sources: Sources,
    current: RwLock<Option<Arc<ActiveSession>>>,
    /// Counts sessions: what was specialised in another one is not looked at again.
    epoch: AtomicU64,
    /// What holds on to things of the current session.
    holders: Mutex<Vec<Weak<dyn SessionHolder>>>,
    /// The builder behind `oc.root`, which fields of the current session are placed in.
    root: Mutex<Option<Py<PyAny>>>,
    /// Counts trees of fields.
    trees: AtomicU64,
    /// What was said of files that cannot be used: it is the same for all sessions.
    told: Mutex<HashSet<String>>,
    /// What sessions that ended have recorded, if they are to be kept.
    ended: Mutex<Option<Vec<Trace>>>,
    /// What calls of kernels go to instead of the device, if something watches them, and whether there is something.
    call_hook: Mutex<Option<Py<PyAny>>>,
    has_call_hook: AtomicBool,
    /// Arrays of other libraries that launches in streams use, each with an event behind its launch, of whatever session that is.
    kept_for_streams: Mutex<Vec<(Event, Py<PyAny>)>>,
}

/// A session that is not the current one yet.
#[pyclass(frozen, module = "octants._octants")]
pub struct OpenSession(Mutex<Option<ActiveSession>>);

/// Something that holds on to things of a session, and lets go of them when it ends: a session's threads and memory go with the
/// last handle.
pub trait SessionHolder: Send + Sync {
    fn release(&self);
}

/// A session with what the front end needs to know of its options.
pub struct ActiveSession {
    pub session: Session,
    pub lower: LowerOptions,
    pub epoch: u64,
    pub raise_on_templated_floats: bool,
    /// Some text of each compilation is to be shown.
    pub dumps: bool,
    /// The times of each compilation are to be shown.
    pub times: bool,
    /// What is said of kernels with and without `fastcache=True`.
    pub fastcache: Fastcache,
}

/// Options about `fastcache=True`.
#[derive(Clone, Copy)]
pub struct Fastcache {
    /// `src_ll_cache`: what such kernels are given is checked.
    pub checked: bool,
    /// `print_non_pure`: the others are named when they are compiled.
    pub names_others: bool,
}

/// The runtime of this process.
pub fn current(py: Python<'_>) -> Option<Bound<'_, Runtime>> {
    let runtime = py.import("octants._session").and_then(|session| session.getattr("runtime")).ok();
    runtime.and_then(|runtime| runtime.cast_into::<Runtime>().ok())
}

/// What exceptions say of sessions.
pub const SESSIONS: errors::Sessions = errors::Sessions {
    is_cut_off: |py| {
        let current = current(py).and_then(|runtime| runtime.get().get());
        current.is_some_and(|current| current.session.is_cut_off())
    },
    with_sources: |py, tell| {
        if let Some(runtime) = current(py) {
            tell(runtime.get().sources().map());
        }
    },
};

impl Runtime {
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Whether something was not said before in this process. It is from now on.
    pub fn is_news(&self, text: &str) -> bool {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned())
    }

    /// A number for a new tree of fields.
    pub fn next_tree(&self) -> u64 {
        self.trees.fetch_add(1, Ordering::Relaxed)
    }

    /// What calls of kernels go to, if something watches them.
    #[inline]
    pub fn call_hook(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        if !self.has_call_hook.load(Ordering::Acquire) {
            return None;
        }
        self.call_hook.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|hook| hook.clone_ref(py))
    }

    /// Tells the holder when a session ends.
    pub fn release_at_end(&self, holder: Weak<dyn SessionHolder>) {
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        // Holders come and go: look for those that went whenever the list would have to grow.
        if holders.len() == holders.capacity() {
            holders.retain(|holder| holder.strong_count() > 0);
        }
        holders.push(holder);
    }

    /// Keeps an object until its event is passed. Those whose events are passed by now are let go of.
    pub fn keep_until(&self, event: Event, object: Py<PyAny>) {
        self.release_passed();
        self.kept_for_streams.lock().unwrap_or_else(PoisonError::into_inner).push((event, object));
    }

    /// Lets go of objects that streams have used.
    pub fn release_passed(&self) {
        self.release_kept(Event::is_over);
    }

    /// Lets go of kept objects by their events.
    fn release_kept(&self, is_over: impl Fn(&Event) -> bool) {
        let mut kept = self.kept_for_streams.lock().unwrap_or_else(PoisonError::into_inner);
        let over: Vec<_> = kept.extract_if(.., |(event, _)| is_over(event)).collect();
        drop(kept);
        // Without the lock: the end of an object may run any code.
        drop(over);
    }

    /// The current session, started with default options if there is none.
    pub fn current(&self, py: Python<'_>) -> PyResult<Arc<ActiveSession>> {
        for _ in 0..MAX_START_ATTEMPTS {
            if let Some(current) = self.get() {
                if current.session.is_cut_off() {
                    return Err(errors::forked(py));
                }
                return Ok(current);
            }
            // Another thread may reset the new session before this one looks.
            py.import("octants")?.call_method0("init")?;
        }
        self.get().ok_or_else(|| {
            let message =
                "there is no session: another thread resets it again and again while this one starts it";
            errors::exception(py, "OctantsRuntimeError", message)
        })
    }

    /// Makes a session the current one, or none. The one before it ends.
    fn replace(&self, py: Python<'_>, new: Option<ActiveSession>) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        // With the lock held, so that no other thread's session gets a newer epoch and is replaced by this one.
        let epoch = self.epoch.fetch_add(1, Ordering::AcqRel) + 1;
        let old = std::mem::replace(&mut *current, new.map(|new| Arc::new(ActiveSession { epoch, ..new })));
        drop(current);
        let Some(old) = old else { return };
        self.set_root(None);
        if old.session.is_cut_off() {
            // Its device is the parent's, or locks of it may be held for ever.
            std::mem::forget(old);
            return;
        }
        let holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner).clone();
        holders.iter().filter_map(Weak::upgrade).for_each(|holder| holder.release());
        self.keep_trace(py, &old.session);
        py.outside(|| old.session.reset());
        // Its streams are over; those of other sessions may not be.
        self.release_kept(|event| event.is_of(&old.session));
        py.outside(|| drop(old));
    }

    /// Of the current session, if it records launches.
    pub fn profiler_if_recording(&self) -> Option<Arc<Profiler>> {
        let profiler = self.get().map(|current| Arc::clone(current.session.profiler()));
        profiler.filter(|profiler| profiler.is_recording())
    }

    /// A session ends: what it recorded is kept, if somebody asked for that.
    fn keep_trace(&self, py: Python<'_>, session: &Session) {
        let wanted = self.ended.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if wanted && session.profiler().is_recording() {
            // The session ends also if this is interrupted.
            let trace = py.outside(|| session.profiler().trace(interrupt::never()));
            if let Some(list) = &mut *self.ended.lock().unwrap_or_else(PoisonError::into_inner) {
                list.extend(trace);
            }
        }
    }

    pub fn get(&self) -> Option<Arc<ActiveSession>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The scalar type that an object means in the current session.
    pub fn scalar_of(&self, object: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
        Ok(match dtype::type_like(object) {
            None => None,
            Some(TypeLike::Is(scalar)) => Some(scalar),
            Some(TypeLike::DefaultInt) => Some(self.current(object.py())?.lower.default_ip),
            Some(TypeLike::DefaultFloat) => Some(self.current(object.py())?.lower.default_fp),
        })
    }
}

/// How many processors this process may use: the default of `cpu_max_num_threads`.
#[pyfunction]
pub fn processors() -> usize {
    octants::processors()
}

/// An option by its name.
pub fn option<'py, T: FromPyObjectOwned<'py>>(options: &Bound<'py, PyDict>, name: &str) -> PyResult<T> {
    let value = options.get_item(name)?.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
    value.extract().map_err(Into::into)
}

/// Whether some text of each compilation is to be shown.
fn dumps(options: &Bound<'_, PyDict>) -> PyResult<bool> {
    let names = ["print_ir", "print_kernel_llvm_ir", "print_kernel_llvm_ir_optimized", "print_kernel_asm"];
    let asked = names.iter().map(|name| option::<bool>(options, name)).collect::<PyResult<Vec<_>>>()?;
    Ok(asked.contains(&true))
}

#[pymethods]
impl Runtime {
    #[new]
    fn new() -> Self {
        Self {
            sources: Sources::new(),
            current: RwLock::new(None),
            epoch: AtomicU64::new(0),
            holders: Mutex::default(),
            root: Mutex::default(),
            trees: AtomicU64::new(0),
            told: Mutex::default(),
            ended: Mutex::default(),
            call_hook: Mutex::default(),
            has_call_hook: AtomicBool::new(false),
            kept_for_streams: Mutex::default(),
        }
    }

    /// Opens a session, which is not the current one yet: what is wrong with the options, or the device, is found before another one ends.
    fn open(
        &self,
        py: Python<'_>,
        arch: &str,
        default_fp: &Bound<'_, DataType>,
        default_ip: &Bound<'_, DataType>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<OpenSession> {
        host_only::guard(py, "init")?;
        if octants::forked::is_cut_off() {
            return Err(errors::forked(py));
        }
        let arch =
            Arch::from_name(arch).ok_or_else(|| PyValueError::new_err(format!("no arch is named {arch}")))?;
        let threads: Option<usize> = option(options, "cpu_max_num_threads")?;
        let session_options = SessionOptions {
            arch,
            device: option::<Option<u32>>(options, "device_id")?.unwrap_or(0),
            threads: threads.unwrap_or(0),
            num_compile_threads: option(options, "num_compile_threads")?,
            kernel: KernelOptions {
                fast_math: option(options, "fast_math")?,
                debug: option(options, "debug")?,
                ..KernelOptions::default()
            },
            opt_level: option::<u8>(options, "opt_level")?.min(3),
            random_seed: option::<i64>(options, "random_seed")? as u64,
            kernel_profiler: option(options, "kernel_profiler")?,
            tape_memory_limit: option(options, "tape_memory_limit")?,
            sparse_memory_limit: option(options, "sparse_memory_limit")?,
        };
        let lower = LowerOptions {
            default_fp: default_fp.get().scalar,
            default_ip: default_ip.get().scalar,
            kernel: session_options.kernel,
            check_bounds: session_options.kernel.debug || option(options, "check_out_of_bound")?,
            short_circuit: option(options, "short_circuit_operators")?,
            unrolling_limit: option(options, "unrolling_limit")?,
            pure: false,
            graph: false,
            has_run: false,
            names_elements: false,
            has_blocks: arch != Arch::Cpu || option(options, "simt_on_cpu")?,
            max_shared_bytes: LowerOptions::default().max_shared_bytes,
            library: Some(package_folder(py)?.into()),
        };
        let raise_on_templated_floats = option(options, "raise_on_templated_floats")?;
        let cache = disk_cache::options(options)?;
        let dumps = dumps(options)?;
        let times = option(options, "print_compile_times")?;
        let fastcache = Fastcache {
            checked: option(options, "src_ll_cache")?,
            names_others: option(options, "print_non_pure")?,
        };
        let session = if option(options, "device_process")? {
            device_process::start(py, session_options)?
        } else {
            match py.outside(|| Session::new(session_options)) {
                // For this process; another one is served.
                Err(Error::Refused { .. }) => device_process::start(py, session_options)?,
                session => session.map_err(|error| errors::from_error(py, &error))?,
            }
        };
        if let Some(cache) = cache {
            session.use_cache(cache);
        }
        let properties = session.device_properties().map_err(|error| errors::from_error(py, &error))?;
        let lower = LowerOptions { max_shared_bytes: properties.max_shared_bytes_per_block as u32, ..lower };
        let epoch = 0;
        let active =
            ActiveSession { session, lower, epoch, raise_on_templated_floats, dumps, times, fastcache };
        Ok(OpenSession(Mutex::new(Some(active))))
    }

    /// Makes a session that was opened the current one; the one before it ends.
    fn begin(&self, py: Python<'_>, opened: &Bound<'_, OpenSession>) {
        let opened = opened.get().0.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.replace(py, opened);
        interrupt::install();
    }

    /// To be called before the process forks: waits, for a while, for what other threads are at.
    fn before_fork(&self, py: Python<'_>) {
        let coming = ComingFork::announce(self.get().map(|current| current.session.clone()));
        // Other threads cannot begin anything once this one has the interpreter's lock again.
        while !coming.is_due() {
            #[expect(clippy::disallowed_methods)]
            py.detach(|| coming.wait());
        }
    }

    /// To be called after a fork, in the process that forked.
    #[staticmethod]
    fn after_fork() {
        octants::forked::end_fork();
    }

    /// To be called first in a forked child: what it may not use refuses from now on.
    fn after_fork_in_child(&self) {
        octants::forked::in_child();
        interrupt::after_fork_in_child();
        if let Some(current) = self.get().filter(|current| current.session.is_cut_off()) {
            current.session.cut_off();
            // Code of that session fits nothing any more.
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Changes options that only the compilations to come look at. Kernels compile again when called.
    fn configure(&self, options: &Bound<'_, PyDict>) -> PyResult<()> {
        host_only::guard(options.py(), "cfg")?;
        let Some(current) = self.get() else { return Ok(()) };
        let lower = LowerOptions {
            check_bounds: current.lower.kernel.debug || option(options, "check_out_of_bound")?,
            short_circuit: option(options, "short_circuit_operators")?,
            unrolling_limit: option(options, "unrolling_limit")?,
            ..current.lower.clone()
        };
        let raise_on_templated_floats = option(options, "raise_on_templated_floats")?;
        let (dumps, times) = (dumps(options)?, option(options, "print_compile_times")?);
        let session = current.session.clone();
        let mut place = self.current.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have ended the session by now.
        if place.as_ref().is_some_and(|now| Arc::ptr_eq(now, &current)) {
            let epoch = self.epoch.fetch_add(1, Ordering::AcqRel) + 1;
            *place = Some(Arc::new(ActiveSession {
                session,
                lower,
                epoch,
                raise_on_templated_floats,
                dumps,
                times,
                fastcache: current.fastcache,
            }));
        }
        Ok(())
    }

    /// Ends the current session: its arrays refuse from now on, kernels compile again when called.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        host_only::guard(py, "reset")?;
        self.replace(py, None);
        Ok(())
    }

    /// Waits until everything launched so far in the default stream is done, or in all streams.
    fn sync(&self, py: Python<'_>, all: bool) -> PyResult<()> {
        host_only::guard(py, "sync")?;
        let Some(current) = self.get() else { return Ok(()) };
        interrupt::waiting(py, |cancel| {
            if all { current.session.sync_all(cancel) } else { current.session.sync(cancel) }
        })?;
        self.release_passed();
        Ok(())
    }

    /// Runs when the interpreter ends: work in streams that nobody waited for ends early, where the device can end it.
    fn finish(&self, py: Python<'_>) {
        if let Some(current) = self.get().filter(|current| !current.session.is_cut_off()) {
            py.outside(|| current.session.abandon_work());
        }
    }

    /// The profiler of the current session.
    #[getter]
    fn profiler(&self) -> Option<SessionProfiler> {
        self.get().map(|current| SessionProfiler::new(current.session.clone()))
    }

    /// From now on, what sessions record is kept when they end.
    fn keep_traces(&self) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
    }

    /// What the sessions that were kept and the current one have recorded: as JSON for viewers, and a summary of each.
    fn all_traces(&self, py: Python<'_>) -> PyResult<(String, Vec<String>)> {
        let mut traces =
            self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
        if let Some(current) = self.get().filter(|current| current.session.profiler().is_recording()) {
            traces.push(profiler::trace(py, &current.session)?);
        }
        Ok(py.outside(|| (chrome_trace(&traces), traces.iter().map(Trace::summary).collect())))
    }

    #[getter]
    pub fn root(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.root.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|root| root.clone_ref(py))
    }

    #[setter]
    fn set_root(&self, root: Option<Py<PyAny>>) {
        let before = std::mem::replace(&mut *self.root.lock().unwrap_or_else(PoisonError::into_inner), root);
        drop(before);
    }

    /// A callable that takes a kernel, its positional arguments and its keywords instead of each launch, or nothing.
    #[getter(call_hook)]
    fn python_call_hook(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.call_hook(py)
    }

    #[setter(call_hook)]
    fn set_call_hook(&self, hook: Option<Py<PyAny>>) {
        let mut place = self.call_hook.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_call_hook.store(hook.is_some(), Ordering::Release);
        let before = std::mem::replace(&mut *place, hook);
        drop(place);
        drop(before);
    }

    /// The names of the kinds of devices that this build has code for.
    #[getter]
    fn arches(&self) -> Vec<&'static str> {
        Arch::ALL.iter().map(|arch| arch.name()).collect()
    }

    #[getter]
    fn arch(&self) -> Option<&'static str> {
        self.get().map(|current| current.session.options().arch.name())
    }

    /// How often in a second the device's clock counts; `None` if it does not say, or there is no session.
    #[getter]
    fn clock_rate(&self) -> Option<u64> {
        self.get()?.session.clock_rate()
    }

    /// The name of the device's kind, what it calls itself, and its numbers by their names. Starts a session if there is none.
    fn device_properties<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(&'static str, String, Bound<'py, PyDict>)> {
        let current = self.current(py)?;
        let properties = py.outside(|| current.session.device_properties());
        let properties = properties.map_err(|error| errors::from_error(py, &error))?;
        let numbers = PyDict::new(py);
        for (name, number) in DeviceProperties::NUMBERS.iter().zip(properties.numbers()) {
            numbers.set_item(name, number)?;
        }
        Ok((current.session.options().arch.name(), properties.name, numbers))
    }

    #[getter]
    fn live_arrays(&self) -> usize {
        self.get().map_or(0, |current| current.session.live_arrays())
    }

    #[getter]
    fn live_bytes(&self) -> u64 {
        self.get().map_or(0, |current| current.session.live_bytes())
    }

    /// The most that was held at once.
    #[getter]
    fn peak_bytes(&self) -> u64 {
        self.get().map_or(0, |current| current.session.peak_bytes())
    }
}
