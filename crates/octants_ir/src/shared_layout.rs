//! Where shared arrays lie in the memory of a block.
//!
//! **Two arrays overlap only if no thread of the block can access one of them while another thread may still access the other, and neither is written while
//! what the other holds is still needed.** What an array holds is needed from the `shared` op, where its contents are undefined, to the last access.
//!
//! Threads are apart by no more than one barrier of the block. So, for an access of `a`, these arrays do not overlap `a`:
//!
//! * those that are live behind it: a path leads from it to an access of theirs and passes no `shared` op of theirs;
//! * those that are pending before it: a path leads to it from an access of theirs and passes no barrier of the block;
//! * those that a branch or a loop without a barrier accesses, if the access stands inside of it, too: its threads may be anywhere in there;
//! * those that one side of a branch accesses, if the access stands in the other one: some threads may be here, while others are there. All threads take the
//!   same side, or the program waits forever, only if a barrier stands on every path through one of the sides.
//!
//! Paths go around loops. Larger arrays are placed first, each at the lowest offset where no array lies that it must not overlap.

use crate::ops::{CellUse, SUBGROUP, Scope};
use crate::plan::size_and_align;
use crate::rewrite::ops_in;
use crate::{Kernel, Op, Region, SideTable, Type, Value};

/// Where arrays begin: a multiple of so many bytes.
const ALIGNMENT: u64 = 16;

/// An array in the memory of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedArray {
    /// The `shared` op.
    pub op: Op,
    /// In bytes, from the beginning of the block's memory.
    pub offset: u64,
    pub bytes: u64,
    /// Whether some other array lies there, too.
    pub overlaps: bool,
}

/// The arrays in the memory of a block.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SharedLayout {
    /// In the order of their ops.
    pub arrays: Vec<SharedArray>,
    /// What all of them take.
    pub bytes: u64,
}

impl SharedLayout {
    /// The arrays of a parallel loop's body that is run by blocks of so many threads, or, without blocks, by one thread at a time.
    pub fn of(kernel: &Kernel, body: Region, threads: Option<u32>) -> Self {
        let ops: Vec<_> =
            ops_in(kernel, body).into_iter().filter(|&op| kernel.ops[op].kind.makes_shared()).collect();
        let mut number = SideTable::new(None);
        for (index, &op) in ops.iter().enumerate() {
            number.set(kernel.ops[op].results[0], Some(index));
        }
        let mut analysis = Analysis {
            kernel,
            threads,
            number,
            live_behind: SideTable::new(None),
            apart: vec![Arrays::none(ops.len()); ops.len()],
        };
        if ops.len() > 1 {
            analysis.live(body, Arrays::none(ops.len()));
            analysis.pending(body, Arrays::none(ops.len()));
        }
        place(kernel, &ops, &analysis.apart)
    }

    pub fn array(&self, op: Op) -> Option<SharedArray> {
        self.arrays.iter().copied().find(|array| array.op == op)
    }

    /// The first of those that were placed beyond so many bytes.
    pub fn first_beyond(&self, most: u64) -> Option<SharedArray> {
        self.arrays.iter().copied().find(|array| array.offset + array.bytes > most)
    }
}

/// A set of arrays, by number.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Arrays(Vec<bool>);

impl Arrays {
    fn none(count: usize) -> Self {
        Self(vec![false; count])
    }

    fn add(&mut self, others: &Self) {
        for (own, other) in self.0.iter_mut().zip(&others.0) {
            *own |= other;
        }
    }

    fn remove(&mut self, others: &Self) {
        for (own, other) in self.0.iter_mut().zip(&others.0) {
            *own &= !other;
        }
    }

    fn numbers(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().filter_map(|(number, &is_in)| is_in.then_some(number))
    }
}

struct Analysis<'k> {
    kernel: &'k Kernel,
    threads: Option<u32>,
    number: SideTable<Value, Option<usize>>,
    /// What is live behind an op that is taken as a whole.
    live_behind: SideTable<Op, Option<Arrays>>,
    /// Those that an array does not overlap.
    apart: Vec<Arrays>,
}

impl Analysis<'_> {
    fn none(&self) -> Arrays {
        Arrays::none(self.apart.len())
    }

    /// Whether all threads of the block have come here, and all that they did to its memory is done.
    fn is_barrier(&self, op: Op) -> bool {
        match self.kernel.ops[op].kind.barrier_of() {
            Some(Scope::Subgroup) => self.threads.is_some_and(|threads| threads <= SUBGROUP),
            scope => scope == Some(Scope::Block),
        }
    }

    /// Whether control flow is followed into the op's regions.
    fn is_followed(&self, op: Op) -> bool {
        let regions = &self.kernel.ops[op].regions;
        let holds_barrier =
            |&region: &Region| ops_in(self.kernel, region).into_iter().any(|op| self.is_barrier(op));
        !regions.is_empty() && (self.threads.is_none() || regions.iter().any(holds_barrier))
    }

    /// The op, and those inside of it.
    fn with_inner(&self, op: Op) -> Vec<Op> {
        let regions = &self.kernel.ops[op].regions;
        let inner = regions.iter().flat_map(|&region| ops_in(self.kernel, region));
        std::iter::once(op).chain(inner).collect()
    }

    /// The arrays that an op makes.
    fn made(&self, op: Op) -> Arrays {
        let mut made = self.none();
        for op in self.with_inner(op) {
            if let [result] = self.kernel.ops[op].results[..]
                && let Some(number) = self.number[result]
            {
                made.0[number] = true;
            }
        }
        made
    }

    /// The arrays that an op accesses. One whose address is taken is accessed by whoever knows it.
    fn accessed(&self, op: Op) -> Arrays {
        self.accessed_by(self.with_inner(op))
    }

    fn accessed_by(&self, ops: Vec<Op>) -> Arrays {
        let mut accessed = self.none();
        for op in ops {
            let data = &self.kernel.ops[op];
            if !data.kind.is_pure() || data.kind.info().cell != CellUse::Nothing {
                for number in data.operands.iter().filter_map(|&operand| self.number[operand]) {
                    accessed.0[number] = true;
                }
            }
        }
        accessed
    }

    /// What is live before a region, from what is live behind it.
    fn live(&mut self, region: Region, behind: Arrays) -> Arrays {
        let kernel = self.kernel;
        let mut live = behind;
        for &op in kernel.regions[region].ops.iter().rev() {
            if !self.is_followed(op) {
                self.live_behind.set(op, Some(live.clone()));
                live.add(&self.accessed(op));
                live.remove(&self.made(op));
                continue;
            }
            live = match (kernel.ops[op].kind.is_loop(), &kernel.ops[op].regions[..]) {
                (true, &[body]) => self.around(live, |this, end| this.live(body, end)),
                (true, &[cond, body]) => {
                    let end = self.around(live, |this, end| {
                        let next = this.live(cond, end);
                        this.live(body, next)
                    });
                    self.live(cond, end)
                }
                (_, sides) => {
                    let mut before = self.none();
                    for &side in sides {
                        before.add(&self.live(side, live.clone()));
                    }
                    before
                }
            };
        }
        live
    }

    /// What holds where the rounds of a loop meet: what comes from outside, and what a round makes of what holds there.
    fn around(&mut self, mut known: Arrays, mut round: impl FnMut(&mut Self, Arrays) -> Arrays) -> Arrays {
        loop {
            let mut after = round(self, known.clone());
            after.add(&known);
            if after == known {
                return known;
            }
            known = after;
        }
    }

    /// What is pending behind a region, from what is pending before it. Notes what does not overlap.
    fn pending(&mut self, region: Region, before: Arrays) -> Arrays {
        let kernel = self.kernel;
        let mut pending = before;
        for &op in &kernel.regions[region].ops {
            if !self.is_followed(op) {
                self.keep_apart(op, &pending);
                pending.add(&self.accessed(op));
                if self.is_barrier(op) || self.threads.is_none() {
                    pending = self.none();
                }
                continue;
            }
            pending = match (kernel.ops[op].kind.is_loop(), &kernel.ops[op].regions[..]) {
                (true, &[body]) => {
                    let begin = self.around(pending, |this, begin| this.pending(body, begin));
                    let runs = kernel.constant_trips(op).is_some_and(|trips| trips > 0);
                    if runs { self.pending(body, begin) } else { begin }
                }
                (true, &[cond, body]) => {
                    let begin = self.around(pending, |this, begin| {
                        let next = this.pending(cond, begin);
                        this.pending(body, next)
                    });
                    self.pending(cond, begin)
                }
                (_, sides) => {
                    self.keep_sides_apart(sides);
                    let mut behind = self.none();
                    for &side in sides {
                        behind.add(&self.pending(side, pending.clone()));
                    }
                    behind
                }
            };
        }
        pending
    }

    /// The arrays that the sides of a branch access overlap none of the other side's, if threads may be in both.
    fn keep_sides_apart(&mut self, sides: &[Region]) {
        let meets = |side| self.kernel.on_every_path(side, &|op| self.is_barrier(op)).is_some();
        if self.threads.is_none() || sides.iter().any(|&side| meets(side)) {
            return;
        }
        let accessed: Vec<_> =
            sides.iter().map(|&side| self.accessed_by(ops_in(self.kernel, side))).collect();
        for (side, own) in accessed.iter().enumerate() {
            for others in accessed.iter().skip(side + 1) {
                for (number, other) in
                    own.numbers().flat_map(|own| others.numbers().map(move |other| (own, other)))
                {
                    self.apart[number].0[other] = true;
                    self.apart[other].0[number] = true;
                }
            }
        }
    }

    /// The arrays that an op accesses overlap none that are pending before it or live behind it.
    fn keep_apart(&mut self, op: Op, pending: &Arrays) {
        let accessed = self.accessed(op);
        let mut others = accessed.clone();
        others.add(pending);
        if let Some(live) = &self.live_behind[op] {
            others.add(live);
        }
        for number in accessed.numbers() {
            self.apart[number].add(&others);
            for other in others.numbers() {
                self.apart[other].0[number] = true;
            }
        }
        if self.kernel.ops[op].kind.info().cell == CellUse::Addresses {
            for number in accessed.numbers() {
                self.apart[number].0.fill(true);
                self.apart.iter_mut().for_each(|others| others.0[number] = true);
            }
        }
    }
}

fn place(kernel: &Kernel, ops: &[Op], apart: &[Arrays]) -> SharedLayout {
    let mut arrays: Vec<_> = ops
        .iter()
        .map(|&op| SharedArray { op, offset: 0, bytes: bytes_of(kernel, op), overlaps: false })
        .collect();
    let mut order: Vec<_> = (0..arrays.len()).collect();
    // Of equal size, in the order of their ops.
    order.sort_by_key(|&number| std::cmp::Reverse(arrays[number].bytes));
    let mut placed: Vec<usize> = Vec::new();
    for number in order {
        let mut taken: Vec<_> = placed
            .iter()
            .filter(|&&other| apart[number].0[other])
            .map(|&other| (arrays[other].offset, arrays[other].offset + arrays[other].bytes))
            .collect();
        taken.sort_unstable();
        let mut offset = 0;
        for (begin, end) in taken {
            if offset + arrays[number].bytes <= begin {
                break;
            }
            offset = offset.max(end.next_multiple_of(ALIGNMENT));
        }
        arrays[number].offset = offset;
        for &other in &placed {
            let [own, theirs] = [arrays[number], arrays[other]];
            if own.offset < theirs.offset + theirs.bytes && theirs.offset < own.offset + own.bytes {
                arrays[number].overlaps = true;
                arrays[other].overlaps = true;
            }
        }
        placed.push(number);
    }
    let bytes = arrays.iter().map(|array| array.offset + array.bytes).max().unwrap_or(0);
    SharedLayout { arrays, bytes }
}

fn bytes_of(kernel: &Kernel, op: Op) -> u64 {
    let field = kernel.ops[op].results[0];
    let Type::Array(array) = kernel.ty(field) else { panic!("{op} makes no field") };
    let layout = kernel.layout(array).unwrap_or_else(|| panic!("{op} makes no field"));
    layout.span(size_and_align(kernel, array.elem).0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    /// The offsets of the arrays `%a`, `%b` and `%c`, of 1024, 512 and 256 bytes, as far as a loop's body has them, and what they take together.
    fn offsets_of(threads: Option<u32>, body: &str) -> (Vec<u64>, u64) {
        let block = threads.map_or_else(String::new, |threads| format!(" block_dim {threads}"));
        let body = ["a", "b", "c"].iter().enumerate().fold(body.to_owned(), |body, (number, name)| {
            let body = body
                .replace(&format!("make {name}"), &format!("%{name}: field<i32, layout{number}> = shared"));
            body.replace(&format!("use {name}"), &format!("store %{name}[%z], %i"))
        });
        let text = format!(
            "layout0 = layout [256] {{ dense (axis 0 below 1 extent 256 stride 4) }}\n\
             layout1 = layout [128] {{ dense (axis 0 below 1 extent 128 stride 4) }}\n\
             layout2 = layout [64] {{ dense (axis 0 below 1 extent 64 stride 4) }}\n\
             kernel @k(%n \"n\": i32, %u \"u\": u1) {{\n\
             %z: i32 = const 0\n%four: i32 = const 4\n\
             parallel_for (%i: i32) in (%z..%n){block} {{\n{body}\n}}\nreturn\n}}\n"
        );
        let kernel = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let op = kernel.top_ops().into_iter().find(|&op| kernel.parallel_loop(op).is_some()).unwrap();
        let parallel = kernel.parallel_loop(op).unwrap();
        let layout = SharedLayout::of(&kernel, parallel.body, parallel.attributes.block_dim);
        (layout.arrays.iter().map(|array| array.offset).collect(), layout.bytes)
    }

    fn offsets(body: &str) -> (Vec<u64>, u64) {
        offsets_of(Some(64), body)
    }

    #[test]
    fn arrays_overlap_behind_a_barrier() {
        assert_eq!(offsets("make a\nuse a\nbarrier block\nmake b\nuse b"), (vec![0, 0], 1024));
        assert_eq!(offsets("make a\nuse a\nmake b\nuse b"), (vec![0, 1024], 1536));
        assert_eq!(offsets("make a\nuse a\nmake b\nbarrier block\nuse b"), (vec![0, 0], 1024));
        // A barrier of a subgroup is none of a block that has two.
        assert_eq!(offsets("make a\nuse a\nbarrier subgroup\nmake b\nuse b"), (vec![0, 1024], 1536));
        let one = offsets_of(Some(32), "make a\nuse a\nbarrier subgroup\nmake b\nuse b");
        assert_eq!(one, (vec![0, 0], 1024));
    }

    #[test]
    fn what_is_still_needed_keeps_its_place() {
        let body = "make a\nuse a\nbarrier block\nmake b\nuse b\nbarrier block\nuse a";
        assert_eq!(offsets(body), (vec![0, 1024], 1536));
        let body = "make a\nuse a\nbarrier block\nmake b\nuse b\nbarrier block\nmake c\nuse c\nuse b";
        assert_eq!(offsets(body), (vec![0, 0, 512], 1024));
    }

    #[test]
    fn the_next_round_of_a_loop_comes_behind_the_last() {
        // Another thread may write `a` of the next round, while one still reads `b` of this one.
        let round = "make a\nuse a\nbarrier block\nmake b\nuse b";
        let looped = |round: &str| offsets(&format!("for %j: i32 in %z..%n {{\n{round}\n}}"));
        assert_eq!(looped(round), (vec![0, 1024], 1536));
        assert_eq!(looped(&format!("{round}\nbarrier block")), (vec![0, 0], 1024));
        // What was made before a loop is needed in its next round.
        let body = "make a\nfor %j: i32 in %z..%n {\nuse a\nbarrier block\nmake b\nuse b\nbarrier block\n}";
        assert_eq!(offsets(body), (vec![0, 1024], 1536));
    }

    #[test]
    fn a_loop_that_may_not_run_is_no_barrier() {
        let body = |end: &str| {
            format!("make a\nuse a\nfor %j: i32 in %z..{end} {{\nbarrier block\n}}\nmake b\nuse b")
        };
        assert_eq!(offsets(&body("%n")), (vec![0, 1024], 1536));
        assert_eq!(offsets(&body("%four")), (vec![0, 0], 1024));
    }

    #[test]
    fn threads_take_both_sides_of_a_branch_without_a_barrier() {
        let sides =
            |end: &str| format!("if %u {{\nmake a\nuse a\n{end}\n}} else {{\nmake b\nuse b\n{end}\n}}");
        assert_eq!(offsets(&sides("")), (vec![0, 1024], 1536));
        assert_eq!(offsets(&sides("barrier block")), (vec![0, 0], 1024));
    }

    #[test]
    fn threads_take_both_sides_of_a_branch_with_a_barrier_that_they_may_miss() {
        let loop_to = |end: &str| format!("for %j: i32 in %z..{end} {{\nbarrier block\n}}");
        let branch = |inner: &str| format!("if %u {{\n{inner}\n}} else {{\n}}");
        let either = "if %u {\nbarrier block\n} else {\nbarrier block\n}";
        // Whether a barrier stands on every path.
        let ends = [
            (loop_to("%n"), false),
            (loop_to("%z"), false),
            (loop_to("%four"), true),
            (branch("barrier block"), false),
            (branch(&loop_to("%four")), false),
            (format!("for %j: i32 in %z..%four {{\n{}\n}}", branch("barrier block")), false),
            (either.to_owned(), true),
            (format!("for %j: i32 in %z..%four {{\n{either}\n}}"), true),
            ("while {\nyield %u\n} do {\nbarrier block\n}".to_owned(), false),
            ("while {\nbarrier block\nyield %u\n} do {\n}".to_owned(), true),
        ];
        let (apart, over) = ((vec![0, 1024], 1536), (vec![0, 0], 1024));
        // The right side has variables of its own.
        let sides = |left: &str, right: &str| {
            let right = right.replace("%j", "%l").replace("%k", "%m");
            offsets(&format!("if %u {{\nmake a\n{left}\n}} else {{\nmake b\n{right}\n}}"))
        };
        for (end, meets) in ends {
            let wanted = if meets { &over } else { &apart };
            assert_eq!(&sides(&format!("use a\n{end}"), &format!("use b\n{end}")), wanted, "{end}");
            // One side is enough.
            assert_eq!(&sides(&format!("use a\n{end}"), "use b"), wanted, "{end}");
            assert_eq!(sides(&format!("use a\n{end}"), "use b\nbarrier block"), over, "{end}");
        }
        // What is accessed lies further in.
        let left = format!("use a\n{}", loop_to("%n"));
        assert_eq!(sides(&branch(&left), &branch("use b")), apart);
        let around = |body: &str| format!("for %k: i32 in %z..%n {{\n{body}\n}}");
        assert_eq!(sides(&around(&left), &around("use b")), apart);
    }

    #[test]
    fn threads_have_other_rounds_of_a_loop_with_a_barrier_that_they_may_miss() {
        let looped = |inner: &str| offsets(&format!("for %j: i32 in %z..%n {{\n{inner}\n}}"));
        let apart = (vec![0, 1024], 1536);
        let met = "if %u {\nbarrier block\n} else {\n}";
        // One thread is in its first round, while another one has left a side, and is in a later round or behind the loop.
        assert_eq!(looped(&format!("make a\nuse a\n{met}\nmake b\nuse b")), apart);
        assert_eq!(looped(&format!("{met}\nmake a\nuse a\nbarrier block\nmake b\nuse b")), apart);
        assert_eq!(looped(&format!("if %u {{\n}} else {{\nmake a\nuse a\n{met}\nmake b\nuse b\n}}")), apart);
        let left = format!("for %j: i32 in %z..%n {{\nmake a\nuse a\n{met}\n}}\nmake b\nuse b");
        assert_eq!(offsets(&left), apart);
        let left =
            "while {\nyield %u\n} do {\nmake a\nuse a\nif %u {\nbarrier block\n} else {\n}\n}\nmake b\nuse b";
        assert_eq!(offsets(left), apart);
        // What follows a `continue` stands in a side.
        let skipped = "if %u {\n} else {\nuse a\nbarrier block\n}";
        assert_eq!(
            offsets(&format!("make a\nfor %j: i32 in %z..%n {{\nmake b\nuse b\n{skipped}\n}}")),
            apart
        );
    }

    #[test]
    fn one_thread_waits_for_nobody() {
        let body = "make a\nuse a\nmake b\nuse b\nif %u {\nmake c\nuse c\nuse b\n}";
        assert_eq!(offsets_of(None, body), (vec![0, 0, 512], 1024));
    }

    #[test]
    fn an_array_whose_address_is_taken_overlaps_none() {
        let body = "make a\n%p: u64 = address %a[%z]\nbarrier block\nmake b\nuse b";
        assert_eq!(offsets(body), (vec![0, 1024], 1536));
    }
}
