//! What code prints, on its way to the host: records in a ring of words that device and host both see.
//!
//! A record is a header word, `site << 32 | length`, and `length - 1` operands, each in a word as a
//! [`FaultRecord`](crate::FaultRecord) has them. A writer reserves as many words by one exchange, writes the operands, and the header
//! last; so records are whole, and those of one thread keep their order. The reader zeroes what it has read, which tells a record that
//! is still being written (its header is zero) from one that is complete.
//!
//! A device with memory of its own counts there: threads by the thousand that exchange a word of the host's memory would wait for the bus
//! one after another.
//!
//! **Memory is bounded, and nobody waits for a reader.** A record that finds no room is dropped and counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::device::Address;

/// Words before the records: see the indices below.
pub const RING_HEADER: usize = 4;
/// Words reserved by writers so far, of which the low bits are a position in the ring. Of a ring that a device writes
/// ([`PrintRing::format_for_device`]) it is the address of the device's own counters: words reserved, and records dropped.
const RESERVED: usize = 0;
/// Words that the reader has zeroed so far.
const CONSUMED: usize = 1;
/// Records that found no room. A device only says here that there are some.
const DROPPED: usize = 2;
/// Words of all records; a power of two.
const CAPACITY: usize = 3;

/// Bytes of a device's own counters, zeroed before a launch.
pub const DEVICE_COUNTER_BYTES: usize = 16;
/// Where among them the records are counted that found no room.
pub const DEVICE_DROPPED_OFFSET: usize = 8;

/// Words of a launch's ring: 64 KiB, about two thousand prints. Chosen, not measured.
const RING_WORDS: usize = 8 << 10;

/// Words that a queue of the host holds beside its ring: 64 MiB, some millions of prints of one launch. Chosen: a bound on
/// memory, beyond what anyone reads.
const SPILLED_WORDS: usize = 8 << 20;

/// A ring in memory that the device can write: a header, then records.
#[derive(Clone, Copy)]
pub struct PrintRing<'a>(&'a [AtomicU64]);

/// Why a record was not written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PushError {
    /// Not before the reader has read something.
    Full,
    /// Not even in an empty ring.
    TooLong,
}

impl<'a> PrintRing<'a> {
    /// A ring in zeroed memory.
    ///
    /// # Panics
    /// If the words behind the header are no power of two.
    pub fn format(memory: &'a [AtomicU64]) -> Self {
        let capacity = memory.len() - RING_HEADER;
        assert!(capacity.is_power_of_two(), "{capacity} words in a ring");
        memory[CAPACITY].store(capacity as u64, Ordering::Relaxed);
        Self(memory)
    }

    /// A ring that a device writes whose counters are at this address of its own memory.
    ///
    /// # Panics
    /// As [`PrintRing::format`].
    pub fn format_for_device(memory: &'a [AtomicU64], counters: Address) -> Self {
        memory[RESERVED].store(counters.0, Ordering::Relaxed);
        Self::format(memory)
    }

    /// A ring that was formatted before.
    pub fn formatted(memory: &'a [AtomicU64]) -> Self {
        debug_assert_eq!(memory[CAPACITY].load(Ordering::Relaxed), (memory.len() - RING_HEADER) as u64);
        Self(memory)
    }

    fn word(self, position: u64) -> &'a AtomicU64 {
        let mask = (self.0.len() - RING_HEADER) as u64 - 1;
        &self.0[RING_HEADER + (position & mask) as usize]
    }

    /// Writes a record, from any thread.
    pub fn write(self, site: u32, operands: &[u64]) -> Result<(), PushError> {
        let length = operands.len() as u64 + 1;
        let capacity = (self.0.len() - RING_HEADER) as u64;
        if length > capacity {
            return Err(PushError::TooLong);
        }
        let mut begin = self.0[RESERVED].load(Ordering::Relaxed);
        loop {
            let consumed = self.0[CONSUMED].load(Ordering::Acquire);
            if consumed > begin {
                // Others have written meanwhile, and the reader has read it.
                begin = self.0[RESERVED].load(Ordering::Relaxed);
                continue;
            }
            if begin + length - consumed > capacity {
                return Err(PushError::Full);
            }
            let order = Ordering::Relaxed;
            match self.0[RESERVED].compare_exchange_weak(begin, begin + length, order, order) {
                Ok(_) => break,
                Err(now) => begin = now,
            }
        }
        for (position, &operand) in (begin + 1..).zip(operands) {
            self.word(position).store(operand, Ordering::Relaxed);
        }
        self.word(begin).store(u64::from(site) << 32 | length, Ordering::Release);
        Ok(())
    }

    /// Notes that a record was dropped.
    pub fn count_dropped(self) {
        self.0[DROPPED].fetch_add(1, Ordering::Relaxed);
    }

    /// Whether records were dropped. Whoever writes may not be writing now.
    pub fn has_dropped(self) -> bool {
        self.0[DROPPED].load(Ordering::Relaxed) != 0
    }

    /// Takes out the records that are complete, up to the first that is not, and how many were. One reader at a time.
    pub fn read(self, sink: &mut dyn FnMut(u32, &[u64])) -> usize {
        let mut position = self.0[CONSUMED].load(Ordering::Relaxed);
        let mut operands = Vec::new();
        let mut count = 0;
        loop {
            let header = self.word(position).load(Ordering::Acquire);
            if header == 0 {
                return count;
            }
            let end = position + (header & u64::from(u32::MAX));
            operands.clear();
            operands.extend((position + 1..end).map(|at| self.word(at).swap(0, Ordering::Relaxed)));
            self.word(position).store(0, Ordering::Relaxed);
            position = end;
            self.0[CONSUMED].store(position, Ordering::Release);
            sink((header >> 32) as u32, &operands);
            count += 1;
        }
    }
}

/// The prints of one launch: a ring, and on the host what overflowed it.
pub struct PrintQueue {
    memory: Box<[AtomicU64]>,
    /// Records that were moved out of the ring to make room. Whoever reads the ring holds it.
    spilled: Mutex<Vec<u64>>,
}

impl Default for PrintQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl PrintQueue {
    pub fn new() -> Self {
        Self::with_words(RING_WORDS)
    }

    /// With a ring of so many words, a power of two.
    fn with_words(words: usize) -> Self {
        let memory: Box<[_]> = (0..RING_HEADER + words).map(|_| AtomicU64::new(0)).collect();
        PrintRing::format(&memory);
        Self { memory, spilled: Mutex::new(Vec::new()) }
    }

    /// The ring's memory, for a device that writes to it.
    pub fn memory(&self) -> &[AtomicU64] {
        &self.memory
    }

    pub fn ring(&self) -> PrintRing<'_> {
        PrintRing(&self.memory)
    }

    /// Writes a record, from any thread of the host. Makes room in the ring where there is none, until the bound is reached.
    pub fn push(&self, site: u32, operands: &[u64]) {
        loop {
            match self.ring().write(site, operands) {
                Ok(()) => return,
                Err(PushError::Full) if self.spill() => {}
                Err(PushError::Full | PushError::TooLong) => return self.ring().count_dropped(),
            }
        }
    }

    /// Moves records out of the ring; whether it may be tried again.
    #[cold]
    fn spill(&self) -> bool {
        let mut spilled = self.spilled.lock().unwrap_or_else(PoisonError::into_inner);
        if spilled.len() >= SPILLED_WORDS {
            return false;
        }
        let moved = self.ring().read(&mut |site, operands| {
            spilled.push(u64::from(site) << 32 | (operands.len() as u64 + 1));
            spilled.extend_from_slice(operands);
        });
        if moved == 0 {
            // Another thread is writing the oldest record.
            drop(spilled);
            std::thread::yield_now();
        }
        true
    }

    /// Takes what was printed so far to a ring that the device writes.
    pub fn take_from(&self, ring: PrintRing<'_>) {
        ring.read(&mut |site, operands| self.push(site, operands));
    }

    /// Likewise, when the launch is over: with how many the device dropped.
    pub fn take_last_from(&self, ring: PrintRing<'_>, dropped: u64) {
        self.take_from(ring);
        self.memory[DROPPED].fetch_add(dropped, Ordering::Relaxed);
    }

    /// Takes out all complete records in order. Those of a launch are complete once it is over.
    pub fn drain(&self, sink: &mut dyn FnMut(u32, &[u64])) {
        let mut spilled = self.spilled.lock().unwrap_or_else(PoisonError::into_inner);
        let mut records = &std::mem::take(&mut *spilled)[..];
        while let Some(&header) = records.first() {
            let (record, rest) = records.split_at((header & u64::from(u32::MAX)) as usize);
            sink((header >> 32) as u32, &record[1..]);
            records = rest;
        }
        self.ring().read(sink);
    }

    /// How many records were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.memory[DROPPED].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(queue: &PrintQueue) -> Vec<(u32, Vec<u64>)> {
        let mut found = Vec::new();
        queue.drain(&mut |site, operands| found.push((site, operands.to_vec())));
        found
    }

    #[test]
    fn records_come_out_whole_and_in_order() {
        let queue = PrintQueue::with_words(8);
        queue.push(3, &[1, 0, u64::MAX]);
        queue.push(0, &[]);
        assert_eq!(all(&queue), [(3, vec![1, 0, u64::MAX]), (0, vec![])]);
        assert_eq!(all(&queue), []);
    }

    #[test]
    fn a_full_ring_spills_and_a_record_longer_than_the_ring_is_counted() {
        let queue = PrintQueue::with_words(8);
        for n in 0..100 {
            queue.push(n, &vec![u64::from(n); n as usize % 5]);
        }
        queue.push(100, &[0; 8]);
        let expected: Vec<_> = (0..100).map(|n| (n, vec![u64::from(n); n as usize % 5])).collect();
        assert_eq!(all(&queue), expected);
        assert_eq!(queue.dropped(), 1);
    }

    #[test]
    fn a_ring_without_a_reader_refuses_what_does_not_fit() {
        let queue = PrintQueue::with_words(4);
        let ring = queue.ring();
        assert_eq!(ring.write(1, &[5, 6]), Ok(()));
        assert_eq!(ring.write(2, &[7]), Err(PushError::Full));
        assert_eq!(ring.write(2, &[7; 4]), Err(PushError::TooLong));
        assert_eq!(ring.write(3, &[]), Ok(()));
        assert_eq!(all(&queue), [(1, vec![5, 6]), (3, vec![])]);
    }

    #[test]
    fn a_device_counts_in_memory_of_its_own() {
        let memory: Vec<_> = (0..RING_HEADER + 8).map(|_| AtomicU64::new(0)).collect();
        let ring = PrintRing::format_for_device(&memory, Address(0x7000));
        assert_eq!(memory[RESERVED].load(Ordering::Relaxed), 0x7000);
        // As the device's code does: operands, then the header; and for what found no room a word that says so.
        memory[RING_HEADER + 1].store(5, Ordering::Relaxed);
        memory[RING_HEADER].store(3 << 32 | 2, Ordering::Release);
        assert!(!ring.has_dropped());
        memory[DROPPED].store(1, Ordering::Relaxed);
        assert!(ring.has_dropped());
        let queue = PrintQueue::with_words(8);
        queue.take_last_from(ring, 41);
        assert_eq!((all(&queue), queue.dropped()), (vec![(3, vec![5])], 41));
    }

    #[test]
    fn threads_keep_their_own_order() {
        let queue = PrintQueue::with_words(64);
        std::thread::scope(|scope| {
            for thread in 0..4_u32 {
                let queue = &queue;
                scope.spawn(move || (0..2000).for_each(|n| queue.push(thread, &[n, n ^ 0xFF])));
            }
        });
        let mut next = [0; 4];
        for (thread, operands) in all(&queue) {
            let expected = &mut next[thread as usize];
            assert_eq!(operands, [*expected, *expected ^ 0xFF]);
            *expected += 1;
        }
        assert_eq!((next, queue.dropped()), ([2000; 4], 0));
    }
}
