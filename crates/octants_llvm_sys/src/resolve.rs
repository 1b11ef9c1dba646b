//! Addresses of functions that generated code calls without defining them.
//!
//! Sought in this order: the table that the caller of [`load`](crate::load) gave, functions of the C compiler's
//! runtime that Rust brings along, then the C library, its math library and its vector math library.

use std::ffi::{CStr, CString, c_void};
use std::ptr;
use std::sync::OnceLock;

/// A shared library of the system, by its versioned name.
struct Library(*mut c_void);
// SAFETY: the handle is only passed to `dlsym`, which any thread may call; it is never closed.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    fn open(name: &CStr) -> Library {
        // SAFETY: a C string; the libraries named below run no code of ours when they are loaded.
        Library(unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) })
    }

    fn find(&self, symbol: &CStr) -> Option<*const ()> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: a handle from `dlopen`, and a C string.
        let address = unsafe { libc::dlsym(self.0, symbol.as_ptr()) };
        (!address.is_null()).then_some(address.cast_const().cast())
    }
}

fn math_library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| Library::open(c"libm.so.6"))
}

fn vector_library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| Library::open(c"libmvec.so.1"))
}

/// The version of the C library, and whether its vector math library is there: what code may call depends on both.
pub fn system_libraries() -> String {
    // SAFETY: gives a text that lives as long as the process.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    let vectors = if vector_library().0.is_null() { "without" } else { "with" };
    format!("glibc {} {vectors} vectors", version.to_string_lossy())
}

/// Whether this machine has the vector math function of that name.
pub(crate) fn vector_library_has(symbol: &str) -> bool {
    CString::new(symbol).is_ok_and(|symbol| vector_library().find(&symbol).is_some())
}

/// Finds a function of the system.
pub(crate) fn system_symbol(symbol: &str) -> Option<*const ()> {
    if let Some(address) = compiler_runtime(symbol) {
        return Some(address);
    }
    let name = CString::new(symbol).ok()?;
    if symbol.starts_with("_ZGV") {
        return vector_library().find(&name);
    }
    if let Some(address) = math_library().find(&name) {
        return Some(address);
    }
    // SAFETY: a C string; the default search order is always there.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!ptr::eq(address, ptr::null())).then_some(address.cast_const().cast())
}

macro_rules! runtime {
    ($($name:ident)*) => {
        // What they take and return does not matter here: only their addresses are used.
        unsafe extern "C" {
            $(fn $name();)*
        }

        /// Functions that LLVM calls where the processor has no instruction: conversions of half floats, and wide
        /// integers. Rust links its own; the system's may be too old to have them.
        fn compiler_runtime(symbol: &str) -> Option<*const ()> {
            match symbol {
                $(stringify!($name) => Some($name as *const ()),)*
                _ => None,
            }
        }
    };
}

runtime! {
    __truncsfhf2 __truncdfhf2 __extendhfsf2
    __multi3 __divti3 __udivti3 __modti3 __umodti3 __ashlti3 __ashrti3 __lshrti3
    __floattisf __floattidf __floatuntisf __floatuntidf
    __fixsfti __fixdfti __fixunssfti __fixunsdfti
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_generated_code_may_call() {
        for symbol in ["sinf", "pow", "memset", "__divti3", "__truncdfhf2"] {
            assert!(system_symbol(symbol).is_some(), "{symbol}");
        }
        assert!(system_symbol("no_such_function_anywhere").is_none());
        assert!(system_symbol("zero\0byte").is_none());
    }
}
