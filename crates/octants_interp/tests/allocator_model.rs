//! The allocator of sparse trees under every interleaving of a few threads, as `loom` runs them, with the weakest order of memory that C++ has:
//! cells are made once, no slot is given out twice, none is lost, and nobody waits for ever.
//!
//! The allocator is written in the kernel language's IR. What runs here is the text of kernels as the compiler makes them
//! (`tests/sparse/test_allocator_text.py` compares it), by the interpreter, a thread for each launch. All accesses are relaxed, as a device's are.

use std::collections::BTreeMap;
use std::sync::Arc;

use loom::sync::atomic::{AtomicU32, Ordering};
use octants_interp::{AddressSpace, Arg, Datum, Limits, MemoryFault, RunContext, Trap, run_in};
use octants_ir::sparse::{GIVEN_UP, STATE_WORDS, list, state};
use octants_ir::{Const, Kernel, Type};

/// Views lie this far apart.
const VIEW_BYTES: u64 = 1 << 20;

/// Bytes of a thread's stack: the interpreter nests as deep as regions do.
const STACK_BYTES: usize = 1 << 20;

const POOL: usize = 1;

/// What an entry holds while its cell is being made.
const LOCKED: u32 = u32::MAX;

/// The views of a tree, by the names that kernels have for them, and how many words of each the model has: no launch uses more slots than fit.
const VIEWS: [(&str, usize); 6] = [
    ("tree0_state", 116),
    ("tree0_pool0", 5),
    ("tree0_headers1", 45),
    ("tree0_free1", 33),
    ("tree0_leaf0", 9),
    ("tree0_signal1", 1),
];
const STATE: usize = 0;
const ENTRIES: usize = 1;
const HEADERS: usize = 2;
const FREE: usize = 3;
const LEAF: usize = 4;

/// Words of a header: state, entry and coordinate; of a chunk also class and list.
const CELL_HEADER_WORDS: usize = 3;
const LIST_HEADER_WORDS: usize = 5;

struct Program {
    kernel: Kernel,
}

impl Program {
    fn new(text: &str) -> Arc<Self> {
        Arc::new(Self { kernel: octants_ir::text::parse(text).unwrap_or_else(|error| panic!("{error:?}")) })
    }

    /// Runs the iterations of a range.
    fn launch(
        &self,
        key: u64,
        range: std::ops::Range<i32>,
        memory: &mut dyn AddressSpace,
    ) -> Result<(), Trap> {
        let params = &self.kernel.regions[self.kernel.body].params;
        let mut args = Vec::new();
        for (param, &value) in self.kernel.params.iter().zip(params) {
            args.push(match (self.kernel.ty(value), &*param.name) {
                (Type::Array(_), name) => {
                    let name = if name == "x" { "tree0_leaf0" } else { name };
                    let view = VIEWS.iter().position(|&(view, _)| view == name).expect("a view of the tree");
                    Arg::Field { address: (view as u64 + 1) * VIEW_BYTES }
                }
                (_, "begin") => Arg::Data(Datum::Scalar(Const::i32(range.start))),
                _ => Arg::Data(Datum::Scalar(Const::i32(range.end))),
            });
        }
        let context = RunContext { key, ..RunContext::default() };
        run_in(&self.kernel, &args, memory, &Limits::default(), context).map(drop)
    }
}

/// Which word of which view.
fn word(address: u64, bytes: usize) -> Result<(usize, usize), MemoryFault> {
    let at = ((address / VIEW_BYTES) as usize, (address % VIEW_BYTES / 4) as usize);
    match at {
        (view @ 1.., number)
            if bytes == 4 && VIEWS.get(view - 1).is_some_and(|&(_, words)| number < words) =>
        {
            Ok((view - 1, number))
        }
        _ => Err(MemoryFault { address, bytes }),
    }
}

/// What lies in the memory of a tree, for one thread alone.
#[derive(Clone)]
struct Image(Vec<Vec<u32>>);

impl Image {
    /// A tree with room for so many slots.
    fn new(capacity: u32) -> Self {
        let mut image = Self(VIEWS.map(|(_, words)| vec![0; words]).to_vec());
        let words =
            [(state::CAPACITY, capacity), (state::WARNING, i32::MAX as u32), (state::LIMIT, capacity)];
        for (word, value) in words {
            image.0[STATE][POOL * STATE_WORDS as usize + word as usize] = value;
        }
        image
    }

    fn after(mut self, program: &Program, range: std::ops::Range<i32>) -> Self {
        program.launch(0, range, &mut self).unwrap_or_else(|trap| panic!("{trap:?}"));
        self
    }

    /// Gives up the cell of an entry as the host leaves it after an interrupted kernel.
    fn orphan(&mut self, slot: usize, entry: std::ops::Range<usize>) {
        self.0[ENTRIES][entry].fill(0);
        self.0[HEADERS][CELL_HEADER_WORDS * slot] = GIVEN_UP.cast_unsigned();
        self.0[STATE][POOL * STATE_WORDS as usize + state::RETIRED as usize] += 1;
    }

    fn state(&self, word: u32) -> i32 {
        self.0[STATE][POOL * STATE_WORDS as usize + word as usize].cast_signed()
    }

    /// No slot is at two places, behind an entry or on a stack of free ones, and each that was given out is at one.
    fn check(&self, of: PoolKind) {
        let mut places = BTreeMap::new();
        let mut note = |slot: u32, count: u32| {
            (slot..slot + count).for_each(|slot| *places.entry(slot).or_insert(0) += 1);
        };
        for (number, entry) in of.entries().enumerate() {
            let slot = self.0[ENTRIES][entry];
            assert!(slot.cast_signed() >= 0, "entry {entry} is locked");
            if slot > 0 {
                note(slot, of.slots(number));
            }
        }
        for class in 0..of.classes() {
            let count = self.state(state::FREE + class as u32);
            assert!(count >= 0, "{count} free slots");
            for position in 0..count.cast_unsigned() as usize {
                let slot = self.0[FREE][of.stack(class, position)];
                assert!(slot > 0, "position {position} of the stack is empty");
                note(slot, of.slots(class));
            }
        }
        let used = self.state(state::USED).cast_unsigned();
        assert_eq!(places, (1..=used).map(|slot| (slot, 1)).collect());
    }
}

/// What a pool is of: four cells, or a list of seven elements.
#[derive(Clone, Copy)]
enum PoolKind {
    Cells,
    List,
}

impl PoolKind {
    fn entries(self) -> std::ops::Range<usize> {
        match self {
            Self::Cells => 0..4,
            Self::List => list::RUNS as usize..list::RUNS as usize + 3,
        }
    }

    fn classes(self) -> usize {
        match self {
            Self::Cells => 1,
            Self::List => 3,
        }
    }

    /// How many slots lie side by side behind an entry, or at a position of a class's stack.
    fn slots(self, class: usize) -> u32 {
        match self {
            Self::Cells => 1,
            Self::List => 1 << class,
        }
    }

    /// The word that a position of a class's stack is.
    fn stack(self, class: usize, position: usize) -> usize {
        match self {
            Self::Cells => position,
            Self::List => (2 * position + 1) << class,
        }
    }
}

impl AddressSpace for Image {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        let (view, number) = word(address, bytes.len())?;
        bytes.copy_from_slice(&self.0[view][number].to_le_bytes());
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let (view, number) = word(address, bytes.len())?;
        self.0[view][number] = u32::from_le_bytes(bytes.try_into().expect("a word"));
        Ok(())
    }
}

/// The same for threads that `loom` interleaves.
#[derive(Clone)]
struct Shared(Arc<Vec<Vec<AtomicU32>>>);

impl Shared {
    fn new(image: &Image) -> Self {
        let views = image.0.iter().map(|view| view.iter().map(|&word| AtomicU32::new(word)).collect());
        Self(Arc::new(views.collect()))
    }

    fn image(&self) -> Image {
        let load = |word: &AtomicU32| word.load(Ordering::Relaxed);
        Image(self.0.iter().map(|view| view.iter().map(load).collect()).collect())
    }
}

impl AddressSpace for Shared {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        let (view, number) = word(address, bytes.len())?;
        let found = self.0[view][number].load(Ordering::Relaxed);
        if view == ENTRIES && found == LOCKED {
            // Whoever sees that waits for another thread.
            loom::thread::yield_now();
        }
        bytes.copy_from_slice(&found.to_le_bytes());
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let (view, number) = word(address, bytes.len())?;
        let value = u32::from_le_bytes(bytes.try_into().expect("a word"));
        self.0[view][number].store(value, Ordering::Relaxed);
        Ok(())
    }

    fn update(
        &mut self,
        address: u64,
        bytes: &mut [u8],
        change: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), MemoryFault> {
        let (view, number) = word(address, bytes.len())?;
        let mut changed = |old: u32| {
            bytes.copy_from_slice(&old.to_le_bytes());
            change(bytes);
            u32::from_le_bytes(bytes.try_into().expect("a word"))
        };
        let cell = &self.0[view][number];
        let mut old = cell.load(Ordering::Relaxed);
        loop {
            let new = changed(old);
            if new == old {
                break;
            }
            match cell.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(found) => old = found,
            }
        }
        // Whoever changes nothing waits for another thread.
        loom::thread::yield_now();
        Ok(())
    }
}

/// Runs launches at the same time under every interleaving, and hands what they leave to a check.
fn explore(
    begin: &Image,
    launches: &[(&Arc<Program>, std::ops::Range<i32>)],
    check: impl Fn(&Image, Vec<Result<(), Trap>>) + Sync + Send + 'static,
) {
    // All interleavings of three threads are too many; nearly all defects need few preemptions.
    explore_within(2, begin, launches, check);
}

/// Likewise, with at most so many preemptions.
fn explore_within(
    preemptions: usize,
    begin: &Image,
    launches: &[(&Arc<Program>, std::ops::Range<i32>)],
    check: impl Fn(&Image, Vec<Result<(), Trap>>) + Sync + Send + 'static,
) {
    let (begin, launches) = (begin.clone(), launches.iter().map(|(p, range)| (Arc::clone(p), range.clone())));
    let launches: Vec<_> = launches.collect();
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 20_000;
    model.check(move || {
        let shared = Shared::new(&begin);
        let threads: Vec<_> = launches
            .iter()
            .zip(1..)
            .map(|((program, range), key)| {
                let (program, range, mut shared) = (Arc::clone(program), range.clone(), shared.clone());
                let body = move || program.launch(key, range, &mut shared);
                loom::thread::Builder::new().stack_size(STACK_BYTES).spawn(body).expect("a thread")
            })
            .collect();
        let results = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        check(&shared.image(), results);
    });
}

fn all_well(results: &[Result<(), Trap>]) {
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

#[test]
fn a_cell_that_threads_make_at_once_is_made_once() {
    let make = Program::new(include_str!("allocator/make.oir"));
    // Cell 0, cell 0 and cell 1.
    explore(&Image::new(8), &[(&make, 0..1), (&make, 1..2), (&make, 2..3)], |image, results| {
        all_well(&results);
        image.check(PoolKind::Cells);
        assert_eq!(image.state(state::USED), 2);
        let [first, second] = [0, 1].map(|entry| image.0[ENTRIES][entry] as usize);
        assert_eq!((image.0[LEAF][first], image.0[LEAF][second]), (2, 1));
        assert_eq!([first, second].map(|slot| image.0[HEADERS][3 * slot + 2]), [0, 1]);
    });
}

#[test]
fn slots_that_are_free_again_are_taken_once() {
    let (make, give_up) = (
        Program::new(include_str!("allocator/make.oir")),
        Program::new(include_str!("allocator/give_up.oir")),
    );
    // One slot is free, and two cells are made.
    let begin = Image::new(8).after(&make, 0..1).after(&give_up, 0..1);
    explore(&begin, &[(&make, 2..3), (&make, 4..5)], |image, results| {
        all_well(&results);
        image.check(PoolKind::Cells);
        assert_eq!(image.state(state::USED), 2);
    });
}

#[test]
fn cells_come_and_go_at_once() {
    let (make, give_up) = (
        Program::new(include_str!("allocator/make.oir")),
        Program::new(include_str!("allocator/give_up.oir")),
    );
    let begin = Image::new(8).after(&make, 0..4);
    // Branches of a kernel may do so: one gives up cell 0, the other makes cell 2.
    explore(&begin, &[(&give_up, 0..1), (&make, 4..5)], |image, results| {
        all_well(&results);
        image.check(PoolKind::Cells);
        assert_eq!(image.0[ENTRIES][0], 0);
        assert_eq!([1, 2].map(|entry| image.0[LEAF][image.0[ENTRIES][entry] as usize]), [2, 1]);
        assert_eq!(image.state(state::RETIRED), 0);
    });
}

/// Kernels on two streams, or in two threads.
#[test]
fn launches_that_give_up_cells_at_once_clear_their_own() {
    let (make, give_up) = (
        Program::new(include_str!("allocator/make.oir")),
        Program::new(include_str!("allocator/give_up.oir")),
    );
    let begin = Image::new(8).after(&make, 0..4);
    explore(&begin, &[(&give_up, 0..1), (&give_up, 1..2)], |image, results| {
        all_well(&results);
        image.check(PoolKind::Cells);
        assert_eq!(image.0[ENTRIES][..2], [0, 0]);
        assert_eq!(image.state(state::RETIRED), 0);
    });
}

/// An interrupted kernel has left a cell that nobody clears, or a list.
#[test]
fn what_nobody_clears_is_cleared_by_one_of_the_launches() {
    let read = |text: &str| Program::new(text);
    let (make, give_up) =
        (read(include_str!("allocator/make.oir")), read(include_str!("allocator/give_up.oir")));
    let mut begin = Image::new(8).after(&make, 0..4);
    begin.orphan(1, 0..1);
    explore(&begin, &[(&give_up, 0..0), (&give_up, 0..0)], |image, results| {
        all_well(&results);
        image.check(PoolKind::Cells);
        assert_eq!((image.0[LEAF][1], image.state(state::RETIRED)), (0, 0));
    });
    let (append, empty) =
        (read(include_str!("allocator/append.oir")), read(include_str!("allocator/empty.oir")));
    let mut begin = Image::new(8).after(&append, 0..3);
    let entries = [list::LENGTH, list::RUNS, list::RUNS + 1].map(|word| word as usize);
    for &entry in &entries {
        begin.0[ENTRIES][entry] = 0;
    }
    for slot in 1..=3 {
        begin.0[HEADERS][LIST_HEADER_WORDS * slot] = GIVEN_UP.cast_unsigned();
    }
    begin.0[STATE][POOL * STATE_WORDS as usize + state::RETIRED as usize] = 3;
    // Long kernels.
    explore_within(1, &begin, &[(&empty, 0..0), (&empty, 0..0)], |image, results| {
        all_well(&results);
        image.check(PoolKind::List);
        assert_eq!(image.state(state::RETIRED), 0);
        assert_eq!(image.0[LEAF][1..4], [0, 0, 0]);
    });
}

#[test]
fn launches_that_give_up_all_cells_at_once_give_up_each_once() {
    let (make, give_up, give_up_all) = (
        Program::new(include_str!("allocator/make.oir")),
        Program::new(include_str!("allocator/give_up.oir")),
        Program::new(include_str!("allocator/give_up_all.oir")),
    );
    let begin = Image::new(8).after(&make, 0..4);
    for other in [&give_up_all, &give_up] {
        explore_within(1, &begin, &[(&give_up_all, 0..0), (other, 0..1)], |image, results| {
            all_well(&results);
            image.check(PoolKind::Cells);
            assert_eq!(image.0[ENTRIES][..2], [0, 0]);
            assert_eq!(image.state(state::RETIRED), 0);
        });
    }
}

#[test]
fn a_pool_that_ends_is_told_and_stays_whole() {
    let make = Program::new(include_str!("allocator/make.oir"));
    explore(&Image::new(1), &[(&make, 0..1), (&make, 2..3)], |image, results| {
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
        image.check(PoolKind::Cells);
        assert_eq!(image.state(state::USED), 1);
    });
}

/// What a list holds, in order.
fn elements(image: &Image) -> Vec<u32> {
    let length = image.0[ENTRIES][list::LENGTH as usize];
    let element = |number: u32| {
        let run = (number + 1).ilog2();
        let first = image.0[ENTRIES][(list::RUNS + run) as usize];
        image.0[LEAF][(first + number + 1 - (1 << run)) as usize]
    };
    let mut found: Vec<_> = (0..length).map(element).collect();
    found.sort_unstable();
    found
}

#[test]
fn elements_that_threads_append_at_once_all_have_a_place() {
    let append = Program::new(include_str!("allocator/append.oir"));
    explore(&Image::new(8), &[(&append, 0..2), (&append, 2..3)], |image, results| {
        all_well(&results);
        image.check(PoolKind::List);
        assert_eq!(elements(image), [1, 2, 3]);
    });
}

#[test]
fn runs_that_are_free_again_are_taken_once() {
    let (append, empty) = (
        Program::new(include_str!("allocator/append.oir")),
        Program::new(include_str!("allocator/empty.oir")),
    );
    let begin = Image::new(8).after(&append, 0..3).after(&empty, 0..0);
    begin.check(PoolKind::List);
    assert_eq!(begin.state(state::RETIRED), 0);
    explore(&begin, &[(&append, 4..6), (&append, 7..8)], |image, results| {
        all_well(&results);
        image.check(PoolKind::List);
        assert_eq!((elements(image), image.state(state::USED)), (vec![5, 6, 8], 3));
    });
}

#[test]
fn a_list_that_is_full_is_told_and_keeps_its_length() {
    let append = Program::new(include_str!("allocator/append.oir"));
    let begin = Image::new(8).after(&append, 0..6);
    explore(&begin, &[(&append, 6..7), (&append, 7..8)], |image, results| {
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
        assert_eq!(elements(image).len(), 7);
        image.check(PoolKind::List);
    });
}
