//! The stack of the calling thread: how much of it is left, and work that wants more.
//!
//! Python's threads may have as little as 32 KiB, and compiling walks trees as deep as the program is nested. Python code must run on the
//! thread's own stack, so the front end asks how much is left and refuses what does not fit; what calls no Python runs on a larger one.

use std::mem::MaybeUninit;

/// The stack that compiling gets where the caller's is small. Blocks nest at most 200 deep, which takes 2 MiB without
/// optimisation; memory that is never touched costs nothing.
const COMPILE_STACK_BYTES: usize = 64 << 20;

/// With so much left, compiling stays on the caller's stack: twice what the deepest nesting takes.
const MIN_LEFT_BYTES: usize = 4 << 20;

/// The lowest address of the calling thread's stack; 0 if the system does not say. Asked once for each thread: of the first one the system
/// finds it in the list of all mappings, which grows with every kernel.
pub fn lowest_address() -> usize {
    thread_local! {
        static LOWEST: usize = find_lowest_address();
    }
    LOWEST.with(|lowest| *lowest)
}

fn find_lowest_address() -> usize {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut lowest, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the attributes are written by the first call, read by the second if the first succeeded, and destroyed by the third.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return 0;
        }
        let found = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        if found == 0 { lowest as usize } else { 0 }
    }
}

/// How many bytes lie between the caller's frame and the end of its stack.
#[inline(never)]
pub fn left(lowest: usize) -> usize {
    let here = 0_u8;
    (std::hint::black_box(&raw const here) as usize).saturating_sub(lowest)
}

/// Runs what calls no Python, on a thread of its own if little of the caller's stack is left.
pub fn with_enough<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    if left(lowest_address()) >= MIN_LEFT_BYTES {
        return run();
    }
    let mut run = Some(run);
    let on_own_stack = std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("octants-compile".to_owned()).stack_size(COMPILE_STACK_BYTES);
        let run = &mut run;
        let spawned = thread.spawn_scoped(scope, move || run.take().map(|run| run()));
        spawned.ok().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    match (on_own_stack.flatten(), run) {
        (Some(result), _) => result,
        // No thread could be had.
        (None, Some(run)) => run(),
        (None, None) => unreachable!("what ran has a result"),
    }
}
