//! One-time set-up of LLVM, and its fatal errors turned into values.
//!
//! LLVM reports a few conditions ("cannot select", "unsupported relocation") through a process-wide handler and exits
//! if that handler returns. Unwinding out of it would run through C++ frames that do not expect it. So each
//! compilation runs on a thread of its own; the handler posts the message to whoever waits for that compilation and
//! never returns. The price of such an error, which is always a bug of ours, is one parked thread.

use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::sync::Once;

use llvm_sys::error_handling::LLVMInstallFatalErrorHandler;
use llvm_sys::target;

type Report = Box<dyn FnOnce(String)>;

thread_local! {
    static REPORT: RefCell<Option<Report>> = const { RefCell::new(None) };
}

/// Says where a fatal error of LLVM on this thread goes. The thread does not continue after such an error.
pub(crate) fn report_to(report: Report) {
    REPORT.with(|slot| *slot.borrow_mut() = Some(report));
}

/// Registers the targets and the handler. Does nothing the second time.
pub(crate) fn initialise() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: these only fill LLVM's tables; `Once` keeps them from running twice or at the same time.
        unsafe {
            LLVMInstallFatalErrorHandler(Some(fatal));
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

extern "C" fn fatal(reason: *const c_char) {
    // SAFETY: LLVM passes a C string that lives for the duration of the call.
    let reason = unsafe { CStr::from_ptr(reason) }.to_string_lossy().into_owned();
    let report = REPORT.with(|slot| slot.borrow_mut().take());
    match report {
        Some(report) => report(reason),
        // Not on a compilation's thread: no one waits, and LLVM ends the process with the message on return.
        None => return,
    }
    loop {
        std::thread::park();
    }
}
