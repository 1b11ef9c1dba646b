//! A driver for tests: every call of the table goes, as a name and words, to what the test's thread has put in place.

use std::cell::RefCell;
use std::ffi::c_void;

use super::table::Status;

/// Answers a call: its name, its arguments as words (a pointer as its address). What it returns is the function's status.
pub type Answer = Box<dyn FnMut(&'static str, &[u64]) -> Status>;

thread_local! {
    static ANSWER: RefCell<Option<Answer>> = const { RefCell::new(None) };
}

/// Runs `work` with a driver that answers so.
pub fn with_driver<R>(
    answer: impl FnMut(&'static str, &[u64]) -> Status + 'static,
    work: impl FnOnce() -> R,
) -> R {
    ANSWER.with(|slot| *slot.borrow_mut() = Some(Box::new(answer)));
    let result = work();
    ANSWER.with(|slot| *slot.borrow_mut() = None);
    result
}

pub fn called(name: &'static str, words: &[u64]) -> Status {
    ANSWER.with(|slot| slot.borrow_mut().as_mut().map_or(0, |answer| answer(name, words)))
}

/// An argument as a word.
pub trait Word {
    fn word(self) -> u64;
}

macro_rules! words {
    ($($ty:ty),*) => { $(impl Word for $ty { fn word(self) -> u64 { self as u64 } })* };
}
words!(u8, u16, u32, i32, u64, usize);

impl<T> Word for *const T {
    fn word(self) -> u64 {
        self.cast::<c_void>() as u64
    }
}

impl<T> Word for *mut T {
    fn word(self) -> u64 {
        self.cast::<c_void>() as u64
    }
}
