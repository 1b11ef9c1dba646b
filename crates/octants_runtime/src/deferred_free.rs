//! Memory that is given back while there are handles to it: launches under way keep it until they are over.
//!
//! A launch takes a [`KeptMemory`] and then sees that what it uses was not released. Either it finds that it was, or the release comes later and waits
//! for the launch: no launch has to hold each memory that it uses.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use octants_hal::forked;

use crate::memory::Memory;

/// The half of a word that counts launches.
const COUNT: u64 = u32::MAX as u64;

/// What was released early on one device.
#[derive(Default)]
pub struct DeferredFrees {
    count: AtomicU64,
    /// How many launches are under way, in the lower half; in the upper one the process that they are of, as [`forked::generation`] counts.
    launches: AtomicU64,
    /// Released, but not given back yet.
    waiting: Mutex<Vec<Arc<Memory>>>,
    /// Whether there may be any: a launch that is over takes the lock then alone.
    any_waits: AtomicBool,
}

impl DeferredFrees {
    /// Counts a release that is about to come: called before anybody finds the memory gone.
    pub fn announce(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// How many releases were announced. As long as this is the same, so is what addresses stand for.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Gives memory back once no launch is under way. Whoever looks for it finds it gone already.
    pub fn give_back(&self, memory: Arc<Memory>) {
        let mut waiting = self.waiting();
        waiting.push(memory);
        // Before the look at the launches: either the last of them sees this, or it is seen to be over.
        self.any_waits.store(true, Ordering::SeqCst);
        self.clear(waiting);
    }

    /// Whether a launch is under way that has said so.
    pub fn any_launch(&self) -> bool {
        self.under_way() > 0
    }

    /// A launch begins.
    #[inline]
    pub fn keep_memory(&self) -> KeptMemory<'_> {
        let generation = self.settle();
        self.launches.fetch_add(1, Ordering::SeqCst);
        KeptMemory { releases: self, generation }
    }

    /// Launches of this process: those of a parent's other threads do not go on here.
    fn under_way(&self) -> u64 {
        self.settle();
        self.launches.load(Ordering::SeqCst) & COUNT
    }

    /// Forgets launches of the process that this one was forked from; gives the process' own number.
    #[inline]
    fn settle(&self) -> u64 {
        let generation = u64::from(forked::generation()) << COUNT.count_ones();
        let mut known = self.launches.load(Ordering::SeqCst);
        while known & !COUNT != generation {
            match self.launches.compare_exchange(known, generation, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => break,
                Err(changed) => known = changed,
            }
        }
        generation
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Arc<Memory>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back what waits, unless a launch is under way. One that begins now finds all of it released: it was announced before it came here.
    fn clear(&self, mut waiting: MutexGuard<'_, Vec<Arc<Memory>>>) {
        let idle = self.under_way() == 0;
        let released = if idle { std::mem::take(&mut *waiting) } else { Vec::new() };
        if idle {
            self.any_waits.store(false, Ordering::SeqCst);
        }
        drop(waiting);
        drop(released);
    }
}

/// While this lives, memory that was not released before is there.
pub struct KeptMemory<'a> {
    releases: &'a DeferredFrees,
    generation: u64,
}

impl Drop for KeptMemory<'_> {
    #[inline]
    fn drop(&mut self) {
        // One that a fork happened in is not counted any more.
        if self.generation != self.releases.settle() {
            return;
        }
        let was_last = self.releases.launches.fetch_sub(1, Ordering::SeqCst) & COUNT == 1;
        if was_last && self.releases.any_waits.load(Ordering::SeqCst) {
            self.releases.clear(self.releases.waiting());
        }
    }
}

#[cfg(test)]
mod tests {
    use octants_hal::null::NullDevice;

    use super::*;
    use crate::context::Context;

    #[test]
    fn memory_is_given_back_when_the_last_launch_is_over() {
        let context = Context::new(Arc::new(NullDevice::new()));
        let releases = context.deferred_frees();
        let memory = || Arc::new(Memory::allocate(&context, 64).unwrap());
        let (first, second) = (memory(), memory());
        let one = releases.keep_memory();
        let other = releases.keep_memory();
        releases.announce();
        releases.give_back(first);
        drop(one);
        assert_eq!((context.bytes(), releases.count()), (128, 1));
        drop(other);
        assert_eq!(context.bytes(), 64);
        releases.announce();
        releases.give_back(second);
        assert_eq!((context.bytes(), releases.count()), (0, 2));
    }
}
