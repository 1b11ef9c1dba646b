//! Copies of arrays for the threads of a loop that only adds to them.
//!
//! A thread adds to its copy like nobody else was there; when the loop is done the copies are added to the array, atomically, since
//! another launch may be adding to it at the same time. **A copy that is not in use is neutral everywhere**: adding it changes
//! nothing. So copies are kept for the next loop, and only what was touched is ever written again.

use std::alloc::{Layout, alloc, dealloc};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use octants_hal::{Copied, DeviceError, Summand};

use octants_hal::host::LINE;

/// Bytes of copies that are kept for the next loop. As many as the runtime lets one loop have (`MAX_BYTES` in `octants_runtime`).
const MAX_IDLE_BYTES: usize = 64 << 20;

/// A word that changes no sum: for reals that is the negative zero, whose sum with a positive zero is the latter.
fn neutral(summand: Summand) -> u64 {
    match summand {
        Summand::I32 | Summand::I64 => 0,
        Summand::F32 => 0x8000_0000_8000_0000,
        Summand::F64 => 0x8000_0000_0000_0000,
    }
}

/// A copy, neutral everywhere unless a thread has it. Whole lines.
struct PrivateCopy {
    words: *mut u64,
    bytes: usize,
    summand: Summand,
}

// SAFETY: it owns its memory.
unsafe impl Send for PrivateCopy {}

impl PrivateCopy {
    #[allow(clippy::cast_ptr_alignment, reason = "the layout says more than the type")]
    fn new(summand: Summand, bytes: usize) -> Option<PrivateCopy> {
        let layout = Layout::from_size_align(bytes, LINE).ok()?;
        // SAFETY: there is at least one line.
        let words = unsafe { alloc(layout) }.cast::<u64>();
        if words.is_null() {
            return None;
        }
        // SAFETY: just allocated; whole lines are whole words.
        unsafe { (0..bytes / 8).for_each(|n| words.add(n).write(neutral(summand))) };
        Some(PrivateCopy { words, bytes, summand })
    }
}

impl Drop for PrivateCopy {
    fn drop(&mut self) {
        if let Ok(layout) = Layout::from_size_align(self.bytes, LINE) {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(self.words.cast(), layout) };
        }
    }
}

/// Copies that nobody uses at the moment.
#[derive(Default)]
pub(crate) struct IdleCopies {
    copies: Mutex<Vec<PrivateCopy>>,
}

impl IdleCopies {
    fn take(&self, summand: Summand, bytes: usize) -> Result<PrivateCopy, DeviceError> {
        let bytes = bytes.max(1).next_multiple_of(LINE);
        // Never waits: after a fork another thread of the parent may hold the lock for ever.
        if let Ok(mut copies) = self.copies.try_lock() {
            let fits = |copy: &PrivateCopy| copy.summand == summand && copy.bytes >= bytes;
            let best = copies.iter().enumerate().filter(|(_, copy)| fits(copy));
            if let Some((index, _)) = best.min_by_key(|(_, copy)| copy.bytes) {
                return Ok(copies.swap_remove(index));
            }
        }
        PrivateCopy::new(summand, bytes).ok_or(DeviceError::OutOfMemory { bytes })
    }

    fn give_back(&self, copy: PrivateCopy) {
        if let Ok(mut copies) = self.copies.try_lock() {
            // Sizes of arrays change in the course of a program: the oldest make room.
            copies.push(copy);
            while copies.iter().map(|copy| copy.bytes).sum::<usize>() > MAX_IDLE_BYTES {
                drop(copies.remove(0));
            }
        }
    }
}

/// The copies of one loop.
pub(crate) struct LoopCopies<'a> {
    idle: &'a IdleCopies,
    arrays: &'a [Copied],
    /// The arrays themselves.
    targets: Vec<*mut u8>,
    /// For each thread one of each array.
    copies: Vec<Vec<PrivateCopy>>,
    /// Where those of each thread lie.
    addresses: Vec<Vec<*mut u8>>,
    used: Vec<AtomicBool>,
}

// SAFETY: a thread writes its own copies alone; what else it writes is atomic.
unsafe impl Sync for LoopCopies<'_> {}

impl<'a> LoopCopies<'a> {
    /// For so many threads. The addresses in the block are those of the arrays.
    pub fn new(
        idle: &'a IdleCopies,
        arrays: &'a [Copied],
        args: &[u8],
        threads: usize,
    ) -> Result<Self, DeviceError> {
        let address_in = |at: usize| -> *mut u8 {
            let bytes = args[at..at + 8].try_into().expect("an address has eight bytes");
            u64::from_ne_bytes(bytes) as *mut u8
        };
        let mut all = LoopCopies {
            idle,
            arrays,
            targets: arrays.iter().map(|array| address_in(array.address_at)).collect(),
            copies: Vec::with_capacity(threads),
            addresses: Vec::with_capacity(threads),
            used: (0..threads).map(|_| AtomicBool::new(false)).collect(),
        };
        for _ in 0..threads {
            let copies = arrays.iter().map(|array| idle.take(array.summand, array.bytes));
            let copies: Vec<_> = copies.collect::<Result<_, _>>()?;
            all.addresses.push(copies.iter().map(|copy| copy.words.cast()).collect());
            all.copies.push(copies);
        }
        Ok(all)
    }

    /// The addresses of a thread's copies, which it may write to from now on.
    pub fn of_thread(&self, thread: usize) -> *const *mut u8 {
        self.used[thread].store(true, Ordering::Relaxed);
        self.addresses[thread].as_ptr()
    }

    /// How many threads have written to their copies.
    pub fn used(&self) -> usize {
        self.used.iter().filter(|used| used.load(Ordering::Relaxed)).count()
    }

    /// How many lines the n-th array has.
    pub fn lines(&self, array: usize) -> usize {
        self.arrays[array].bytes.div_ceil(LINE)
    }

    /// Adds some lines of all copies of the n-th array to it, and makes the copies neutral.
    ///
    /// # Safety
    /// The array is there, no thread writes to the copies, and nobody else is given these lines.
    pub unsafe fn add_lines(&self, array: usize, begin: usize, end: usize) {
        let Copied { bytes, summand, .. } = self.arrays[array];
        let copies: Vec<*mut u64> = self
            .copies
            .iter()
            .zip(&self.used)
            .filter(|(_, used)| used.load(Ordering::Relaxed))
            .map(|(copies, _)| copies[array].words)
            .collect();
        let neutral = neutral(summand);
        for line in begin..end {
            let first = line * LINE / 8;
            let mut sums = [neutral; LINE / 8];
            let mut touched = false;
            for &copy in &copies {
                // SAFETY: a copy is whole lines, and nobody else looks at this one.
                let words = unsafe { &mut *copy.add(first).cast::<[u64; LINE / 8]>() };
                if words.iter().fold(0, |other, word| other | (word ^ neutral)) != 0 {
                    touched = true;
                    for (sum, word) in sums.iter_mut().zip(words) {
                        *sum = added(summand, *sum, std::mem::replace(word, neutral));
                    }
                }
            }
            if touched {
                for (n, &sum) in sums.iter().enumerate().filter(|&(_, &sum)| sum != neutral) {
                    // SAFETY: what was touched lies inside the array, which ends at `bytes`.
                    unsafe { add_word(summand, self.targets[array], bytes, (first + n) * 8, sum) };
                }
            }
        }
    }
}

impl Drop for LoopCopies<'_> {
    fn drop(&mut self) {
        for copy in self.copies.drain(..).flatten() {
            self.idle.give_back(copy);
        }
    }
}

/// Sums of one word's parts.
fn added(summand: Summand, a: u64, b: u64) -> u64 {
    let halves = |add: fn(u32, u32) -> u32| {
        let low = add(a as u32, b as u32);
        let high = add((a >> 32) as u32, (b >> 32) as u32);
        u64::from(high) << 32 | u64::from(low)
    };
    match summand {
        Summand::I32 => halves(u32::wrapping_add),
        Summand::F32 => halves(|a, b| (f32::from_bits(a) + f32::from_bits(b)).to_bits()),
        Summand::I64 => a.wrapping_add(b),
        Summand::F64 => (f64::from_bits(a) + f64::from_bits(b)).to_bits(),
    }
}

/// Adds a word to an array at this offset. Of a word of two summands only those halves that somebody added to are touched: the other may
/// be a neighbour of another type, or lie behind the array's end.
///
/// # Safety
/// The array has so many bytes, and is aligned like its elements. Others touch it by atomic instructions alone.
#[allow(clippy::cast_ptr_alignment, reason = "elements are aligned, and so is what is looked at first")]
unsafe fn add_word(summand: Summand, array: *mut u8, bytes: usize, offset: usize, sum: u64) {
    let neutral = neutral(summand) as u32;
    let halves = [(sum as u32, offset), ((sum >> 32) as u32, offset + 4)];
    let both = halves.iter().all(|&(half, at)| half != neutral && at < bytes);
    // SAFETY: inside, as the caller says of what was added to.
    unsafe {
        let cell = array.add(offset);
        let wide = matches!(summand, Summand::I64 | Summand::F64);
        if wide || both && cell.align_offset(8) == 0 {
            update(&*cell.cast::<AtomicU64>(), |old| added(summand, old, sum));
            return;
        }
        for (half, at) in halves.into_iter().filter(|&(half, at)| half != neutral && at < bytes) {
            let cell = &*array.add(at).cast::<AtomicU32>();
            let new = |old: u32| added(summand, old.into(), half.into()) as u32;
            let order = Ordering::Relaxed;
            let mut seen = cell.load(order);
            while let Err(other) = cell.compare_exchange_weak(seen, new(seen), order, order) {
                seen = other;
            }
        }
    }
}

fn update(cell: &AtomicU64, new: impl Fn(u64) -> u64) {
    let order = Ordering::Relaxed;
    let mut seen = cell.load(order);
    while let Err(other) = cell.compare_exchange_weak(seen, new(seen), order, order) {
        seen = other;
    }
}

#[cfg(test)]
#[allow(clippy::cast_ptr_alignment, reason = "copies begin at lines")]
mod tests {
    use super::*;

    fn block(target: *mut u8) -> Vec<u8> {
        (target as u64).to_ne_bytes().to_vec()
    }

    /// Adds 1 to elements of two copies of an array of reals that begins at an odd word and ends in the middle of one.
    #[test]
    fn copies_are_added_wherever_the_array_begins_and_ends() {
        for (shift, count) in [(0, 32), (1, 33), (1, 40), (0, 1)] {
            let mut array = vec![0.5_f32; count + 2];
            let target = array[shift..].as_mut_ptr();
            let idle = IdleCopies::default();
            let arrays = [Copied { address_at: 0, bytes: 4 * count, summand: Summand::F32 }];
            for round in 1..3 {
                let copies = LoopCopies::new(&idle, &arrays, &block(target.cast()), 3).unwrap();
                for thread in [0, 2] {
                    // SAFETY: the copy has as many elements.
                    let copy = unsafe {
                        let copy = (*copies.of_thread(thread)).cast::<f32>();
                        std::slice::from_raw_parts_mut(copy, count)
                    };
                    copy.iter_mut().step_by(2).for_each(|element| *element += 1.0);
                }
                // SAFETY: the array is there, and nobody else.
                unsafe { copies.add_lines(0, 0, copies.lines(0)) };
                for (n, &element) in array.iter().enumerate() {
                    let inside = (shift..shift + count).contains(&n) && (n - shift).is_multiple_of(2);
                    let expected = if inside { 0.5 + 2.0 * f32::from(round as u8) } else { 0.5 };
                    assert_eq!(element, expected, "element {n} of {count} from {shift} in round {round}");
                }
            }
            assert_eq!(idle.copies.lock().unwrap().len(), 3, "copies serve again");
        }
    }

    #[test]
    fn what_is_not_added_to_keeps_its_bits() {
        let mut array = [-0.0_f32, 1.0, -0.0, 2.0];
        let idle = IdleCopies::default();
        let arrays = [Copied { address_at: 0, bytes: 16, summand: Summand::F32 }];
        let copies = LoopCopies::new(&idle, &arrays, &block(array.as_mut_ptr().cast()), 1).unwrap();
        // SAFETY: the copy has four elements; the array is there, and nobody else.
        unsafe {
            *(*copies.of_thread(0)).cast::<f32>().add(1) += 3.0;
            copies.add_lines(0, 0, 1);
        }
        let bits = array.map(f32::to_bits);
        assert_eq!(bits, [-0.0_f32, 4.0, -0.0, 2.0].map(f32::to_bits));
    }

    /// Cells `{w: f32, rgba: u32}`, from a leaf that begins at either half of a word, with bits beside it that any addition would change.
    #[test]
    fn neighbours_of_another_type_keep_their_bits() {
        const SIGNALLING: u32 = 0x7FA0_1234;
        const CELLS: usize = 9;
        for first in [0, 1] {
            let mut words = [SIGNALLING; 2 * CELLS + 2];
            (0..CELLS).for_each(|cell| words[first + 2 * cell] = 0.5_f32.to_bits());
            let target = words[first..].as_mut_ptr();
            let idle = IdleCopies::default();
            let arrays = [Copied { address_at: 0, bytes: 8 * CELLS - 4, summand: Summand::F32 }];
            let copies = LoopCopies::new(&idle, &arrays, &block(target.cast()), 2).unwrap();
            for thread in 0..2 {
                // SAFETY: the copy reaches to the last cell's `w`.
                unsafe {
                    let copy = (*copies.of_thread(thread)).cast::<f32>();
                    (0..CELLS).for_each(|cell| *copy.add(2 * cell) += 1.0);
                }
            }
            // SAFETY: the array is there, and nobody else.
            unsafe { copies.add_lines(0, 0, copies.lines(0)) };
            for (n, &word) in words.iter().enumerate() {
                let inside = n >= first && (n - first).is_multiple_of(2) && n - first < 2 * CELLS;
                let expected = if inside { 2.5_f32.to_bits() } else { SIGNALLING };
                assert_eq!(word, expected, "word {n} from {first}");
            }
        }
    }

    #[test]
    fn integers_wrap() {
        let mut array = [u32::MAX, 7];
        let idle = IdleCopies::default();
        let arrays = [Copied { address_at: 0, bytes: 8, summand: Summand::I32 }];
        let copies = LoopCopies::new(&idle, &arrays, &block(array.as_mut_ptr().cast()), 2).unwrap();
        for thread in 0..2 {
            // SAFETY: the copy has two elements.
            unsafe { *(*copies.of_thread(thread)).cast::<u32>() += 1 };
        }
        // SAFETY: the array is there, and nobody else.
        unsafe { copies.add_lines(0, 0, 1) };
        assert_eq!(array, [1, 7]);
    }
}
