//! The requests to stop that launches under way look at, so that the end of a session reaches all of them.

use std::sync::{Mutex, PoisonError};

use octants_hal::Cancel;

/// Those of launches that somebody waits for.
#[derive(Default)]
pub(crate) struct StopWords {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Addresses of [`Cancel`]s.
    words: Vec<usize>,
    raised: bool,
}

impl StopWords {
    fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The word is raised with all others as long as the guard lives.
    ///
    /// # Safety
    /// It lies there at least as long as the guard.
    pub unsafe fn add(&self, word: *const Cancel) -> StopGuard<'_> {
        self.with(|state| {
            if state.raised {
                // SAFETY: the caller says so.
                unsafe { (*word).raise() };
            }
            state.words.push(word as usize);
        });
        StopGuard { words: self, word: word as usize }
    }

    /// Launches are to stop, also those that begin later.
    pub fn raise_all(&self) {
        self.with(|state| {
            state.raised = true;
            for &word in &state.words {
                // SAFETY: the guard of each lives: it takes the word out, under this lock, before that goes.
                unsafe { (*(word as *const Cancel)).raise() };
            }
        });
    }
}

/// Takes a word out when it is dropped.
pub(crate) struct StopGuard<'a> {
    words: &'a StopWords,
    word: usize,
}

impl Drop for StopGuard<'_> {
    fn drop(&mut self) {
        self.words.with(|state| {
            if let Some(at) = state.words.iter().position(|&word| word == self.word) {
                state.words.swap_remove(at);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_reaches_launches_under_way_and_those_that_follow() {
        let words = StopWords::default();
        let [over, under_way, later] = [(); 3].map(|()| Cancel::new());
        // SAFETY: the words outlive the guards.
        unsafe {
            drop(words.add(&raw const over));
            let _guard = words.add(&raw const under_way);
            words.raise_all();
            let _later = words.add(&raw const later);
        }
        assert!(!over.is_wanted() && under_way.is_wanted() && later.is_wanted());
    }
}
