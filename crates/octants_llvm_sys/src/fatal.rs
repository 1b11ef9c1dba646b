//! One-time set-up of LLVM, and its ways of ending a process turned into values.
//!
//! LLVM reports a few conditions ("cannot select", "unsupported relocation") through a process-wide handler and exits
//! if that handler returns. Unwinding out of it would run through C++ frames that do not expect it. So each
//! compilation runs on a thread of its own; the handler posts the message to whoever waits for that compilation and
//! never returns. The price of such an error, which is always a bug of ours, is one parked thread.
//!
//! When the process exits while a compilation nobody waits for is still running, LLVM's global objects would be
//! destroyed under it. So the exit waits for those threads for a moment, and then leaves without destroying anything.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use llvm_sys::error_handling::LLVMInstallFatalErrorHandler;
use llvm_sys::support::LLVMParseCommandLineOptions;
use llvm_sys::target;

/// Called with the message of a fatal error.
pub(crate) type Report = Box<dyn FnOnce(String)>;

thread_local! {
    static REPORT: RefCell<Option<Report>> = const { RefCell::new(None) };
}

/// Threads inside LLVM at the moment.
static THREADS_IN_LLVM: AtomicUsize = AtomicUsize::new(0);
/// The process that those threads belong to: a forked child has none of them.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// How long an exit waits for them. Chosen: an exit takes no longer than a second; most compilations are over by then (a substep of MPM-88
/// takes 57 ms in `benches/run.py`).
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// Marks a thread as one inside LLVM, from before it starts: an exit that comes in between waits for it, too.
pub(crate) struct LlvmThreadGuard(());

impl LlvmThreadGuard {
    /// For whoever is about to start the thread.
    pub(crate) fn new() -> LlvmThreadGuard {
        THREADS_IN_LLVM.fetch_add(1, Ordering::SeqCst);
        initialise();
        LlvmThreadGuard(())
    }

    /// On the thread itself: `report` gets the message if LLVM fails fatally there. The thread does not continue after that.
    #[allow(clippy::unused_self)] // only a marked thread may report
    pub(crate) fn report_to(&self, report: Report) {
        REPORT.with(|slot| *slot.borrow_mut() = Some(report));
    }
}

impl Drop for LlvmThreadGuard {
    fn drop(&mut self) {
        THREADS_IN_LLVM.fetch_sub(1, Ordering::SeqCst);
        REPORT.with(|slot| *slot.borrow_mut() = None);
    }
}

/// Settings that LLVM only takes from a command line, behind the program's name. They hold for all targets.
const SETTINGS: &[&CStr] = &[
    c"octants",
    // A vectorised loop leaves up to `width * interleaving` iterations over. By default LLVM vectorises these again, at
    // a smaller width, only in loops of 16 elements or more; rows of a grid are short enough for 8 to matter.
    c"-epilogue-vectorization-minimum-VF=8",
    // A quarter of the compile time of saxpy, for nothing measurable where addresses can be `base + index * size + offset`:
    // stencils of 5 and 27 points, n-body, matrix product and sums are as fast without.
    #[cfg(target_arch = "x86_64")]
    c"-disable-lsr",
    // Looking for sums inside straight code to vectorise takes time that grows fast with its length: nine tenths of the
    // compile time of a singular value decomposition. Sums over loops are vectorised by other passes.
    c"-slp-vectorize-hor=false",
    // Both grow with the square of the stores in a block, of which large matrices in variables have hundreds: merging
    // neighbouring stores, which vectorisation has done before, and the search for stores that are overwritten.
    c"-combiner-store-merging=false",
    c"-dse-memoryssa-walklimit=30",
    c"-dse-memoryssa-defs-per-block-limit=500",
    // The scheduler compares an access with up to this many before it, 1000 by default: 2000 assignments to elements took 1.76 s
    // to emit, and take 0.44 s. What is further away keeps its order.
    c"-dag-maps-huge-region=200",
    c"-dag-maps-reduction-size=100",
    // How many edges of the flow graph the register allocator follows for one value that it splits, 10000 by default: values that live through a
    // function of thousands of blocks took half of its compile time (collision detection in Genesis: 3.5 s to emit, and 1.6 s with this). What
    // has fewer edges is split as before.
    c"-grow-region-complexity-budget=100",
    // Conditional moves of a chain that a loop carries stay what they are: as branches, which are mispredicted where the data decides, a table of edit
    // distances (1500 by 1500, `D[i, j] = min(min(D[i - 1, j] + 1, D[i, j - 1] + 1), D[i - 1, j - 1] + c)`) took 7.3 ms, and takes 2.9 ms.
    #[cfg(target_arch = "x86_64")]
    c"-x86-cmov-converter=0",
    // How many chains of accesses are looked at as one, 2048 by default.
    c"-combiner-tokenfactor-inline-limit=64",
];

/// Registers the targets and the handlers. Does nothing the second time.
pub(crate) fn initialise() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        PROCESS.store(std::process::id(), Ordering::SeqCst);
        #[cfg(target_os = "linux")]
        // SAFETY: registers a function of ours. LLVM's own objects were made when the library was loaded, so it runs before
        // they are destroyed.
        unsafe {
            on_exit(leave, ptr::null_mut());
        }
        // SAFETY: these only fill tables; `Once` keeps them from running twice or at the same time.
        unsafe {
            LLVMInstallFatalErrorHandler(Some(fatal));
            let settings: Vec<*const c_char> = SETTINGS.iter().map(|one| one.as_ptr()).collect();
            LLVMParseCommandLineOptions(settings.len() as c_int, settings.as_ptr(), ptr::null());
            #[cfg(target_arch = "x86_64")]
            {
                target::LLVMInitializeX86TargetInfo();
                target::LLVMInitializeX86Target();
                target::LLVMInitializeX86TargetMC();
                target::LLVMInitializeX86AsmPrinter();
            }
            #[cfg(target_arch = "aarch64")]
            {
                target::LLVMInitializeAArch64TargetInfo();
                target::LLVMInitializeAArch64Target();
                target::LLVMInitializeAArch64TargetMC();
                target::LLVMInitializeAArch64AsmPrinter();
            }
            #[cfg(nvptx)]
            {
                target::LLVMInitializeNVPTXTargetInfo();
                target::LLVMInitializeNVPTXTarget();
                target::LLVMInitializeNVPTXTargetMC();
                target::LLVMInitializeNVPTXAsmPrinter();
            }
        }
    });
}

#[cfg(target_os = "linux")]
unsafe extern "C" {
    /// Of the C library: as `atexit`, and tells the exit's status.
    fn on_exit(function: unsafe extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Runs at the exit of the process, before LLVM's objects are destroyed. If some thread still uses them, the process ends without
/// that: memory goes anyway, and files that the C library writes are flushed.
#[cfg(target_os = "linux")]
unsafe extern "C" fn leave(status: c_int, _: *mut c_void) {
    if PROCESS.load(Ordering::SeqCst) == std::process::id() && THREADS_IN_LLVM.load(Ordering::SeqCst) > 0 {
        // SAFETY: plain calls of the C library.
        unsafe {
            libc::fflush(ptr::null_mut());
            libc::_exit(status);
        }
    }
}

/// How many threads compile.
pub fn compiling_threads() -> usize {
    THREADS_IN_LLVM.load(Ordering::SeqCst)
}

/// This process is a forked child: it has none of the threads that compiled.
pub fn forget_compilations_of_parent() {
    if PROCESS.load(Ordering::SeqCst) != 0 {
        PROCESS.store(std::process::id(), Ordering::SeqCst);
    }
    THREADS_IN_LLVM.store(0, Ordering::SeqCst);
}

/// Waits until no compilation is under way, those among them that nobody waits for any more; half a second at most.
///
/// A process should call it before it exits, while its other threads can still work.
pub fn wait_for_compilations() {
    if PROCESS.load(Ordering::SeqCst) != std::process::id() {
        return;
    }
    let begin = Instant::now();
    while THREADS_IN_LLVM.load(Ordering::SeqCst) > 0 && begin.elapsed() < EXIT_TIMEOUT {
        thread::sleep(Duration::from_millis(1));
    }
}

extern "C" fn fatal(reason: *const c_char) {
    // SAFETY: LLVM passes a C string that lives for the duration of the call.
    let reason = unsafe { CStr::from_ptr(reason) }.to_string_lossy().into_owned();
    // Without a report this is not a compilation's thread: on return LLVM ends the process with the message.
    let Some(report) = REPORT.with(|slot| slot.borrow_mut().take()) else { return };
    THREADS_IN_LLVM.fetch_sub(1, Ordering::SeqCst);
    report(reason);
    loop {
        thread::park();
    }
}
