//! Whether iterations of a parallel loop meet at a cell that derivatives flow through, found by running the kernel once more.
//!
//! The interpreter runs it on a copy of its arrays and watches the accesses of which nothing was proved. That takes long, and is for who asks.

use std::collections::HashMap;

use octants_hal::Cancel;
use octants_interp::{AddressSpace, Arg, Limits, MemoryAccess, MemoryFault, RunContext, run_in};
use octants_ir::plan::ArgLayout;
use octants_ir::{LocData, Op};
use octants_passes::RaceCheck;

use crate::write_log::{ArrayMemory, Region};

/// What is watched of a kernel's runs.
pub struct RaceSearch {
    watched: RaceCheck,
    layout: ArgLayout,
}

/// Two iterations at one cell.
#[derive(Clone, Debug)]
pub struct FoundRace {
    /// The parameter whose memory it is.
    pub name: String,
    /// What is read, or written by one of the two, and what is written by the other: the op, then the calls that led to it.
    pub one: Vec<LocData>,
    pub write: Vec<LocData>,
    /// Whether one of the two only reads it.
    pub is_read: bool,
    /// The numbers of the iterations.
    pub iterations: [u64; 2],
}

impl RaceSearch {
    pub(crate) fn new(watched: RaceCheck) -> Self {
        let layout = ArgLayout::of(&watched.kernel);
        Self { watched, layout }
    }

    /// The first meeting of a run with this block of arguments, whose memory `read` gives: so many bytes from an address on, if the host can see them. A run
    /// that fails meets nobody: it is about to fail where it is launched.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn find<E>(
        &self,
        block: &[u8],
        cancel: &Cancel,
        read: impl FnMut(u64, usize) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<Option<FoundRace>, E> {
        let kernel = &self.watched.kernel;
        let mut memory = self.copy(block, read)?;
        let args: Vec<_> = self.layout.slots.iter().map(|slot| Arg::in_block(kernel, slot, block)).collect();
        let mut watch = Watch { watched: &self.watched, cells: HashMap::new(), found: None };
        let mut on_access = |access| watch.see(access);
        let context = RunContext { on_access: Some(&mut on_access), ..RunContext::default() };
        let is_wanted = || cancel.is_wanted();
        let limits = Limits { steps: None, cancel: Some(&is_wanted) };
        // What it computes is nobody's.
        let _ = run_in(kernel, &args, &mut memory, &limits, context);
        Ok(watch.found)
    }

    fn copy<E>(
        &self,
        block: &[u8],
        mut read: impl FnMut(u64, usize) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<Copies, E> {
        let kernel = &self.watched.kernel;
        let arrays = self.layout.slots.iter().filter_map(|slot| Some((slot, slot.array()?)));
        let mut ranges: Vec<_> = arrays
            .map(|(slot, array)| Region::all(ArrayMemory::of(kernel, slot, array, block)).range())
            .filter(|(begin, end)| begin < end)
            .collect();
        ranges.sort_unstable();
        // Elements of fields lie between each other's.
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (begin, end) in ranges {
            match joined.last_mut() {
                Some((_, last)) if begin < *last => *last = end.max(*last),
                _ => joined.push((begin, end)),
            }
        }
        let mut copies = Copies::default();
        for (begin, end) in joined {
            if let Some(bytes) = read(begin, (end - begin) as usize)? {
                copies.parts.push((begin, bytes));
            }
        }
        Ok(copies)
    }
}

/// Copies of arrays, at their addresses, in ascending order.
#[derive(Default)]
struct Copies {
    parts: Vec<(u64, Vec<u8>)>,
}

impl Copies {
    fn locate(&self, address: u64, bytes: usize) -> Result<(usize, std::ops::Range<usize>), MemoryFault> {
        let fault = MemoryFault { address, bytes };
        let after = self.parts.partition_point(|(begin, _)| *begin <= address);
        let number = after.checked_sub(1).ok_or(fault)?;
        let (begin, held) = &self.parts[number];
        let start = (address - begin) as usize;
        if start + bytes <= held.len() { Ok((number, start..start + bytes)) } else { Err(fault) }
    }
}

impl AddressSpace for Copies {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        let (number, range) = self.locate(address, bytes.len())?;
        bytes.copy_from_slice(&self.parts[number].1[range]);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let (number, range) = self.locate(address, bytes.len())?;
        self.parts[number].1[range].copy_from_slice(bytes);
        Ok(())
    }
}

/// An access of a cell: which op, in which iteration.
type Seen = (Op, u64);

/// Who was at a cell in one run of a loop. Two iterations of each op are enough: any other one meets one of them.
#[derive(Default)]
struct Accessors {
    run: u64,
    readers: Vec<Seen>,
    writers: Vec<Seen>,
}

struct Watch<'m> {
    watched: &'m RaceCheck,
    cells: HashMap<u64, Accessors>,
    found: Option<FoundRace>,
}

impl Watch<'_> {
    fn see(&mut self, MemoryAccess { op, address, writes, iteration }: MemoryAccess) {
        let Some((run, iteration)) = iteration.filter(|_| self.found.is_none()) else { return };
        let watched = self.watched;
        let is_seen = if writes { watched.writes.contains(&op) } else { watched.reads.contains(&op) };
        if !is_seen {
            return;
        }
        let cell = self.cells.entry(address).or_default();
        if cell.run != run {
            *cell = Accessors { run, ..Accessors::default() };
        }
        let other = |seen: &&Seen| seen.1 != iteration;
        let assigns = |op: &Op| watched.stores.contains(op);
        let met = if writes {
            let reader = cell.readers.iter().find(other).map(|&seen| (seen, true));
            let writer = cell.writers.iter().filter(other).find(|(by, _)| assigns(by) || assigns(&op));
            reader.or(writer.map(|&seen| (seen, false)))
        } else {
            cell.writers.iter().find(other).map(|&seen| (seen, true))
        };
        if let Some((seen, is_read)) = met {
            let (one, write) = if writes { (seen, (op, iteration)) } else { ((op, iteration), seen) };
            self.found = Some(self.meeting(one, write, is_read));
            return;
        }
        let visitors = if writes { &mut cell.writers } else { &mut cell.readers };
        let of_op = visitors.iter().filter(|(by, _)| *by == op).count();
        if of_op < 2 && !visitors.contains(&(op, iteration)) {
            visitors.push((op, iteration));
        }
    }

    fn meeting(&self, one: Seen, write: Seen, is_read: bool) -> FoundRace {
        let kernel = &self.watched.kernel;
        let places = |op: Op| {
            let calls = std::iter::successors(Some(kernel.ops[op].loc), |&loc| kernel.locs[loc].caller);
            calls.map(|loc| kernel.locs[loc].clone()).collect()
        };
        let param = kernel.as_param(kernel.ops[write.0].operands[0]).unwrap_or_default();
        FoundRace {
            name: kernel.params[param].name.clone(),
            one: places(one.0),
            write: places(write.0),
            is_read,
            iterations: [one.1, write.1],
        }
    }
}
