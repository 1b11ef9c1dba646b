//! The copies of memory that host and device share.
//!
//! Laws:
//! * **What a launch reports arrives before its block is taken for one that nobody writes**: only a look at its stream that came after the launch says so, since
//!   other threads launch between a look and what follows from it.
//! * **What the host writes to a block is never undone**, whenever it writes it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::device::{Address, SharedMemory, Stream};

/// Words of a run are sent together if no more than so many between them are unchanged.
const GAP_WORDS: usize = 2;

/// A block that both sides see, each its own copy.
struct Block {
    /// What the host sees. Boxed: it stays where it is.
    host: Box<[Line]>,
    /// What the other side has, as far as is known here.
    known: Vec<u64>,
    device: Address,
    /// The last launch that was given an address inside and was not seen to be over.
    under_way: Option<Point>,
}

/// A point in the queue of a stream.
#[derive(Clone, Copy)]
pub(super) struct Point {
    stream: Stream,
    /// How many times blocks had been given to launches, on whatever stream.
    given: u64,
}

/// Shared memory is aligned to 64.
#[repr(align(64))]
struct Line([AtomicU64; 8]);

/// All blocks.
#[derive(Default)]
pub(super) struct Blocks {
    all: Vec<Block>,
    /// How many times one was given to a launch.
    given: u64,
}

/// Words that the host has changed.
pub(super) struct Change {
    /// In bytes, behind the block's beginning.
    pub offset: u64,
    pub words: Vec<u64>,
}

impl Block {
    fn bytes(&self) -> u64 {
        8 * self.known.len() as u64
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.host[at / 8].0[at % 8]
    }

    /// What the host has changed since the other side knew of it.
    fn changes(&mut self) -> Vec<Change> {
        let mut changes: Vec<Change> = Vec::new();
        for at in 0..self.known.len() {
            let word = self.word(at).load(Ordering::Relaxed);
            if word == self.known[at] {
                continue;
            }
            match changes.last_mut() {
                Some(last) if at <= last.offset as usize / 8 + last.words.len() + GAP_WORDS => {
                    let begin = last.offset as usize / 8 + last.words.len();
                    last.words.extend_from_slice(&self.known[begin..at]);
                    last.words.push(word);
                }
                _ => changes.push(Change { offset: 8 * at as u64, words: vec![word] }),
            }
            self.known[at] = word;
        }
        changes
    }

    /// Takes what the other side has, but for words that the host has changed meanwhile.
    fn update(&mut self, words: impl Iterator<Item = u64>) {
        for (at, word) in (0..self.known.len()).zip(words) {
            let (host, known) = (self.word(at), self.known[at]);
            // The host may write the word at this very moment.
            if word != known
                && host.compare_exchange(known, word, Ordering::Release, Ordering::Relaxed).is_ok()
            {
                self.known[at] = word;
            }
        }
    }
}

impl Blocks {
    /// A copy of a block that the other side has just made, zeroed as that is.
    pub fn add(&mut self, device: Address, bytes: usize) -> SharedMemory {
        let words = bytes.div_ceil(8);
        let line = || Line(std::array::from_fn(|_| AtomicU64::new(0)));
        let host: Box<[Line]> = (0..words.div_ceil(8)).map(|_| line()).collect();
        let memory = SharedMemory { host: host.as_ptr() as *mut u8, device, bytes };
        self.all.push(Block { host, known: vec![0; words], device, under_way: None });
        memory
    }

    pub fn remove(&mut self, device: Address) {
        self.all.retain(|block| block.device != device);
    }

    /// What a stream was told so far.
    pub fn end_of(&self, stream: Stream) -> Point {
        Point { stream, given: self.given }
    }

    /// Changes of the block that the address lies in, which a launch on the stream is given; with the block's own address.
    pub fn give(&mut self, address: Address, stream: Stream) -> Option<(Address, Vec<Change>)> {
        let inside = |block: &Block| (block.device.0..block.device.0 + block.bytes()).contains(&address.0);
        let block = self.all.iter_mut().find(|block| inside(block))?;
        self.given += 1;
        block.under_way = Some(Point { stream, given: self.given });
        Some((block.device, block.changes()))
    }

    /// Blocks that launches may have written to, with their bytes.
    pub fn under_way(&self) -> Vec<(Address, u64)> {
        self.all
            .iter()
            .filter(|block| block.under_way.is_some())
            .map(|block| (block.device, block.bytes()))
            .collect()
    }

    /// Takes what the other side has of a block. Launches before a point that a stream was seen to be past write to it no more.
    pub fn update(&mut self, device: Address, bytes: &[u8], passed: Option<Point>) {
        let Some(block) = self.all.iter_mut().find(|block| block.device == device) else { return };
        block.update(bytes.chunks_exact(8).map(|chunk| {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            u64::from_le_bytes(word)
        }));
        let is_over = |last: &mut Point| {
            passed.is_some_and(|passed| passed.stream == last.stream && last.given <= passed.given)
        };
        block.under_way.take_if(is_over);
    }
}
