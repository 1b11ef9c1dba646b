//! How pools of sparse trees get memory while kernels run: the thread that needs some asks the process' budget for it, and goes on.
//!
//! Pages come into being when they are touched, so all that changes is a count. What the pool is like stands in the words around that
//! ([`state`]).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use octants_abi::pool::{GROWTH_DIVISOR, GROWTH_STEP_BYTES, state};
use octants_hal::host::Budget;

/// One pool of the process grows at a time.
static GROWTH: Mutex<()> = Mutex::new(());

/// Raises the count of slots that may be touched to at least `wanted`, if there is memory. Gives the count then, or -1.
///
/// # Safety
/// `count` is the word [`state::CAPACITY`] of a pool's state, in a live reservation.
pub(crate) unsafe extern "C" fn grow(count: *mut u32, wanted: i32) -> i32 {
    let _one = GROWTH.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the words of a pool's state lie side by side; kernels read them by atomic loads.
    let word =
        |which: u32| unsafe { AtomicU32::from_ptr(count.offset(which as isize - state::CAPACITY as isize)) };
    let (capacity, most) = (word(state::CAPACITY), word(state::LIMIT).load(Ordering::Relaxed));
    let (has, wanted) = (capacity.load(Ordering::Relaxed), wanted.max(0).cast_unsigned());
    if wanted <= has {
        return has.cast_signed();
    }
    if wanted > most {
        return -1;
    }
    let [low, high] = [0, 1].map(|part| u64::from(word(state::SLOT_BYTES + part).load(Ordering::Relaxed)));
    let slot_bytes = (high << 32 | low).max(1);
    let step = (GROWTH_STEP_BYTES / slot_bytes).min(u64::from(most)) as u32;
    let ample = has.saturating_add((has / GROWTH_DIVISOR).max(step)).min(most).max(wanted);
    let budget = Budget::of_process();
    let granted =
        |target: u32| budget.grant_of(count as u64, u64::from(target - has).saturating_mul(slot_bytes));
    let Some(target) = [ample, wanted].into_iter().find(|&target| granted(target)) else { return -1 };
    capacity.store(target, Ordering::Relaxed);
    target.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use octants_abi::pool::STATE_WORDS;

    fn pool(capacity: u32, limit: u32, slot_bytes: u64) -> Vec<u32> {
        let mut words = vec![0; STATE_WORDS as usize];
        words[state::CAPACITY as usize] = capacity;
        words[state::LIMIT as usize] = limit;
        words[state::SLOT_BYTES as usize] = slot_bytes as u32;
        words[state::SLOT_BYTES as usize + 1] = (slot_bytes >> 32) as u32;
        words
    }

    fn grown(words: &mut [u32], wanted: i32) -> i32 {
        // SAFETY: the state of a pool.
        let count = unsafe { words.as_mut_ptr().add(state::CAPACITY as usize) };
        // SAFETY: likewise.
        unsafe { grow(count, wanted) }
    }

    #[test]
    fn a_pool_grows_by_a_part_of_itself_up_to_its_limit() {
        let mut words = pool(10, 1 << 20, 1 << 20);
        assert_eq!(grown(&mut words, 10), 10);
        assert_eq!(grown(&mut words, 11), 14, "four megabytes");
        assert_eq!(grown(&mut words, 800), 800, "what is wanted");
        assert_eq!(grown(&mut words, 801), 900, "an eighth");
        assert_eq!(words[state::CAPACITY as usize], 900);
        words[state::LIMIT as usize] = 950;
        assert_eq!(grown(&mut words, 901), 950);
        assert_eq!(grown(&mut words, 951), -1);
        assert_eq!(words[state::CAPACITY as usize], 950);
    }

    #[test]
    fn a_slot_may_have_gigabytes() {
        let mut words = pool(0, 100, 5 << 30);
        assert_eq!(grown(&mut words, 1), 1);
        assert_eq!(grown(&mut words, 2), 2);
    }
}
