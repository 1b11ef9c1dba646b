//! Memory of a block, and who touched it: two lanes may touch an element, of which one writes it, only with a barrier between them.

use std::collections::{HashMap, HashSet};

use octants_ir::Op;
use octants_ir::ops::SUBGROUP;

use crate::address_space::MemoryFault;

/// Above every address of an array.
const FIRST_ADDRESS: u64 = 1 << 63;
/// Arrays lie this far apart.
const STRIDE: u64 = 1 << 32;

/// How an access touches memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch<'a> {
    Reads,
    /// These bytes.
    Writes(&'a [u8]),
    /// As one step with what others do as one step.
    Updates,
    /// Reads what others may write now.
    Looks,
}

/// When a lane touched something: how many barriers of its subgroup it had passed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct When {
    lane: usize,
    subgroup: u64,
}

impl When {
    /// Whether another lane that touches it now may do so before or after.
    fn is_open(self, now: Self) -> bool {
        let same_subgroup = self.lane / SUBGROUP as usize == now.lane / SUBGROUP as usize;
        self.lane != now.lane && !(same_subgroup && self.subgroup != now.subgroup)
    }
}

/// What is known of an element since the last barrier of the block.
#[derive(Clone, Default, Debug)]
struct Element {
    write: Option<Write>,
    reads: HashSet<When>,
}

#[derive(Clone, Debug)]
struct Write {
    when: When,
    /// What was written; nothing for an update.
    bytes: Option<Vec<u8>>,
}

/// The arrays of a block.
#[derive(Default)]
pub struct SharedMemory {
    arrays: Vec<Vec<u8>>,
    made: HashMap<Op, usize>,
    elements: HashMap<u64, Element>,
    of_subgroups: HashMap<usize, u64>,
    /// The lane that runs, where lanes form blocks.
    pub lane: Option<usize>,
}

impl SharedMemory {
    /// What was in the memory is lost.
    pub fn begin_block(&mut self) {
        self.elements.clear();
        for array in &mut self.arrays {
            array.fill(UNDEFINED);
        }
    }

    /// The array that an op makes: its number. All lanes of a block get the same.
    pub fn array(&mut self, op: Op, bytes: usize) -> usize {
        *self.made.entry(op).or_insert_with(|| {
            self.arrays.push(vec![UNDEFINED; bytes]);
            self.arrays.len() - 1
        })
    }

    /// What was in the array is lost.
    pub fn clear(&mut self, array: usize) {
        self.arrays[array].fill(UNDEFINED);
    }

    pub fn address(&self, array: usize) -> u64 {
        FIRST_ADDRESS + array as u64 * STRIDE
    }

    pub fn holds(&self, address: u64) -> bool {
        address >= FIRST_ADDRESS
    }

    pub fn pass_block(&mut self) {
        self.elements.clear();
    }

    pub fn pass_subgroup(&mut self, number: usize) {
        *self.of_subgroups.entry(number).or_default() += 1;
    }

    fn part(&mut self, address: u64, bytes: usize) -> Result<&mut [u8], MemoryFault> {
        let (number, start) = (((address - FIRST_ADDRESS) / STRIDE) as usize, (address % STRIDE) as usize);
        let array = self.arrays.get_mut(number);
        array.and_then(|array| array.get_mut(start..start + bytes)).ok_or(MemoryFault { address, bytes })
    }

    pub fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        bytes.copy_from_slice(self.part(address, bytes.len())?);
        Ok(())
    }

    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.part(address, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// The running lane touches an element. If another one did so, and there is no barrier between: both.
    pub fn touch(&mut self, address: u64, touch: Touch<'_>) -> Option<(usize, usize)> {
        let lane = self.lane?;
        let subgroup = self.of_subgroups.get(&(lane / SUBGROUP as usize)).copied().unwrap_or(0);
        let now = When { lane, subgroup };
        let element = self.elements.entry(address).or_default();
        let written = element.write.as_ref().filter(|write| write.when.is_open(now));
        let reader = || element.reads.iter().find(|when| when.is_open(now)).map(|when| when.lane);
        let other = match touch {
            Touch::Looks => None,
            Touch::Reads => written.map(|write| write.when.lane),
            // All may write the same.
            Touch::Writes(bytes) => {
                let differs = written.filter(|write| write.bytes.as_deref() != Some(bytes));
                differs.map(|write| write.when.lane).or_else(reader)
            }
            Touch::Updates => {
                let plain = written.filter(|write| write.bytes.is_some());
                plain.map(|write| write.when.lane).or_else(reader)
            }
        };
        match touch {
            Touch::Looks => {}
            Touch::Reads => drop(element.reads.insert(now)),
            Touch::Writes(bytes) => element.write = Some(Write { when: now, bytes: Some(bytes.to_vec()) }),
            Touch::Updates => element.write = Some(Write { when: now, bytes: None }),
        }
        other.map(|other| (lane, other))
    }
}

/// What an array holds that nobody wrote to.
const UNDEFINED: u8 = 0xFF;
