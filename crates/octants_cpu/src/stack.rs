//! How far the stack of the current thread reaches.

use std::cell::Cell;

/// Bytes at the end of a stack that recursive functions leave alone: the frame of the last call, handlers of signals, and whatever the
/// print or the report of a failure needs. A quarter of a small stack. Chosen, not measured.
const RESERVED_BYTES: usize = 1 << 20;

/// Bytes of the stack that calls may use where the system does not say how large it is. Chosen: half of the smallest stack that the tests use.
const ASSUMED_BYTES: usize = 128 << 10;

thread_local! {
    /// Zero until it was asked for: asking takes some microseconds, and on a process' first thread more.
    static LIMIT: Cell<usize> = const { Cell::new(0) };
}

/// The lowest address that a frame of a recursive function may have on this thread.
#[inline]
pub(crate) fn limit() -> usize {
    LIMIT.with(|limit| {
        if limit.get() == 0 {
            limit.set(find_limit());
        }
        limit.get()
    })
}

#[cold]
fn find_limit() -> usize {
    match bounds() {
        Some((lowest, bytes)) => lowest + RESERVED_BYTES.min(bytes / 4),
        None => here().saturating_sub(ASSUMED_BYTES),
    }
}

fn here() -> usize {
    let local = 0_u8;
    (&raw const local).addr()
}

/// The lowest address of the stack, and how many bytes it has.
#[cfg(target_os = "linux")]
fn bounds() -> Option<(usize, usize)> {
    let mut attributes = std::mem::MaybeUninit::uninit();
    // SAFETY: the attributes are initialised by the first call before they are read, and destroyed once.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let (mut lowest, mut bytes) = (std::ptr::null_mut(), 0);
        let found = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut bytes);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        (found == 0 && !lowest.is_null()).then(|| (lowest.addr(), bytes))
    }
}

#[cfg(not(target_os = "linux"))]
fn bounds() -> Option<(usize, usize)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_lies_inside_the_stack_of_each_thread() {
        for bytes in [256 << 10, 2 << 20, 16 << 20] {
            let thread = std::thread::Builder::new().stack_size(bytes);
            let left = thread.spawn(|| here() - limit()).unwrap().join().unwrap();
            assert!(left < bytes && left > bytes / 3, "{left} of {bytes} bytes");
        }
    }
}
