//! Ranges for NVIDIA's profilers, through their tools extension library, if the process can find one.

use std::ffi::{CStr, CString, c_char, c_int};

/// Names of the library: of CUDA 12 and older, and of newer ones.
const LIBRARIES: [&CStr; 3] = [c"libnvToolsExt.so.1", c"libnvtx3interop.so.1", c"libnvToolsExt.so"];

/// The library's functions.
pub struct Nvtx {
    push: unsafe extern "C" fn(*const c_char) -> c_int,
    pop: unsafe extern "C" fn() -> c_int,
}

impl Nvtx {
    /// Loads the library. `None` if there is none.
    pub fn load() -> Option<Self> {
        LIBRARIES.iter().find_map(|name| {
            // SAFETY: loading the library runs its constructors, which is what installing it means. It stays loaded.
            let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if library.is_null() {
                return None;
            }
            // SAFETY: the library is loaded for good; the functions have these signatures in every version.
            unsafe {
                let push = libc::dlsym(library, c"nvtxRangePushA".as_ptr());
                let pop = libc::dlsym(library, c"nvtxRangePop".as_ptr());
                (!push.is_null() && !pop.is_null()).then(|| Self {
                    push: std::mem::transmute::<
                        *mut libc::c_void,
                        unsafe extern "C" fn(*const c_char) -> c_int,
                    >(push),
                    pop: std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn() -> c_int>(pop),
                })
            }
        })
    }

    /// Begins a range of this thread, inside those that it has begun before.
    pub fn push(&self, name: &str) {
        let text = CString::new(name.replace('\0', " ")).unwrap_or_default();
        // SAFETY: a C string, which the function copies.
        unsafe { (self.push)(text.as_ptr()) };
    }

    /// Ends the innermost range of this thread.
    pub fn pop(&self) {
        // SAFETY: it may be called at any time.
        unsafe { (self.pop)() };
    }
}
