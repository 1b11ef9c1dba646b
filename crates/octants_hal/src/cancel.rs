//! A request to end a launch or a compilation early.

use std::sync::atomic::{AtomicBool, Ordering};

/// Raised by somebody else, by a signal for instance, while something runs. Whatever runs looks at it now and then, and where it is
/// raised asks whether it is really to end: a signal's handler may have nothing against going on.
///
/// Generated code reads the fields by their offsets.
#[repr(C)]
#[derive(Debug)]
pub struct Cancel {
    raised: AtomicBool,
    confirm: Confirm,
}

/// Says with 1 that the end is wanted, with 0 that it is not. Called by any thread, again and again while the request is raised.
pub type Confirm = extern "C" fn(*const Cancel) -> u8;

extern "C" fn always(_: *const Cancel) -> u8 {
    1
}

impl Cancel {
    /// Where generated code finds the fields.
    pub const RAISED_OFFSET: usize = std::mem::offset_of!(Self, raised);
    pub const CONFIRM_OFFSET: usize = std::mem::offset_of!(Self, confirm);

    /// Raising it means the end.
    pub const fn new() -> Self {
        Self::confirmed_by(always)
    }

    /// Raising it means to ask.
    pub const fn confirmed_by(confirm: Confirm) -> Self {
        Self { raised: AtomicBool::new(false), confirm }
    }

    /// May be called by a signal's handler.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Relaxed);
    }

    pub fn lower(&self) {
        self.raised.store(false, Ordering::Relaxed);
    }

    /// Whether whoever asks is to end.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.raised.load(Ordering::Relaxed) && (self.confirm)(self) != 0
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}
