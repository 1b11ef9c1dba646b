//! Equal values as one value, so that comparing them is comparing addresses.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Values in use. Those that nobody holds any more are forgotten.
pub(crate) struct Interner<T> {
    known: Mutex<HashMap<u64, Vec<Weak<T>>>>,
    hasher: RandomState,
}

impl<T: Hash + Eq> Interner<T> {
    pub fn new() -> Self {
        Self { known: Mutex::default(), hasher: RandomState::new() }
    }

    /// The one value that is equal to this.
    pub fn intern(&self, value: T) -> Arc<T> {
        let hash = self.hasher.hash_one(&value);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() == known.capacity() {
            known.retain(|_, values| {
                values.retain(|value| value.strong_count() > 0);
                !values.is_empty()
            });
        }
        let values = known.entry(hash).or_default();
        values.retain(|value| value.strong_count() > 0);
        if let Some(found) = values.iter().filter_map(Weak::upgrade).find(|found| **found == value) {
            return found;
        }
        let value = Arc::new(value);
        values.push(Arc::downgrade(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_and_unused_ones_are_forgotten() {
        let interner = Interner::new();
        let (one, same) = (interner.intern("one".to_owned()), interner.intern("one".to_owned()));
        assert!(Arc::ptr_eq(&one, &same));
        assert!(!Arc::ptr_eq(&one, &interner.intern("two".to_owned())));
        for n in 0..10_000 {
            interner.intern(n.to_string());
        }
        assert!(interner.known.lock().unwrap().len() < 5_000);
        assert!(Arc::ptr_eq(&one, &interner.intern("one".to_owned())));
    }
}
