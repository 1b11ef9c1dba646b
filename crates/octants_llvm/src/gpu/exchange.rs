//! Elements of several words that the lanes of a warp load or store together.
//!
//! Where lane `l` has the point `first + l`, its matrix of `n` words lies `n` words behind that of the lane before. A store of one
//! entry then touches a sector of the cache for each lane, and fills an eighth of it. So the lanes exchange their words in a piece of
//! shared memory that the warp has to itself, and global memory sees 32 or 128 neighbouring words at a time:
//!
//! ```text
//! store:  lane l writes its entries k to words l * n + k;  wait;  word r * 32 + l goes to memory, for each round r < n;  wait
//!         (or words r * 128 + 4 l to + 3, where the array begins at a multiple of 16 bytes and n is odd or four words divide it)
//! load:   the same backwards, before the body
//! ```
//!
//! Only what all points do is exchanged: loads at the top of the body that nothing was written before, and stores that are the last
//! thing it does. The body between them stands under the condition that the lane has a point; what is exchanged does not, and words
//! of points outside the range are left out one by one. Stores of one array are done before those of the next begin, so
//! arrays may overlap as they may without an exchange.
//!
//! **Each wait is convergent**: all lanes of a warp come to it. Waits stand in the loop over tiles alone, whose condition is the same for all threads of a block;
//! blocks have whole warps, and exactly as many threads as the code is written for; and no thread has left, as a body whose ops can
//! end the thread is not written this way. Lanes that run the body for different times meet again at the first wait behind it. A
//! wait orders accesses of the warp's lanes to shared and to global memory.
//!
//! Words lie side by side where `n` is odd: the 32 banks then have one word each of every step. Where it is even, one word is
//! left out behind each 32. Where four words divide it, lanes access four of their own words at a time, and 8 lanes are served by one
//! step: 12 words have them in all banks as they are; of 8 and 16, the groups of four inside of elements change places, in a way of their own
//! in each 32 words.

use octants_ir::plan::Task;
use octants_ir::rewrite::ops_in;
use octants_ir::{Const, Kernel, Op, OpKind, Region, Scalar, Type, Value};

use super::choose::Tiling;
use super::instructions::word;
use super::registers::Register;
use super::runs::{entry, run_along};
use super::tile::{Piece, Tiles};
use crate::address::elem_of;
use crate::emitter::Emitter;
use crate::iterations::Group;
use crate::value::{Ptr, Ty, Typed, Val, in_memory};

const BUFFER: &str = "octants.exchange";
/// Bytes of a word.
const BYTES: u32 = 4;
/// Words that shared memory gives at once.
const BANKS: u32 = 32;
/// Words of the widest access.
const QUAD: u32 = 4;
/// Words of an element, at most: the more, the fewer warps have room.
const MOST_WORDS: u32 = 16;
/// Bytes of shared memory that a block has for exchanges, at most: with the totals of reductions less than the 48 KiB of every GPU.
const MOST_BYTES: u32 = 40 << 10;

/// The elements that a body exchanges.
pub(super) struct Exchanges {
    loads: Vec<Exchange>,
    stores: Vec<Exchange>,
    /// Words of a warp's buffer.
    buffer: u32,
    warps: u32,
}

/// All entries of the element of an array at the loop's own index.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Exchange {
    array: Elements,
    /// What loads or stores them, and which entry.
    ops: Vec<(Op, u32)>,
}

/// An array whose elements lie side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Elements {
    param: usize,
    scalar: Scalar,
    /// Words of an element.
    words: u32,
    /// The index of the first one.
    origin: i32,
}

impl Exchanges {
    /// `None` if there are none.
    pub fn of(kernel: &Kernel, task: &Task, op: Op, (tiling, lanes): (Tiling, u32)) -> Option<Self> {
        // Copies of arrays take the shared memory.
        if !matches!(task, Task::Range { copied, .. } if copied.is_empty()) {
            return None;
        }
        let OpKind::ParallelFor(attributes) = &kernel.ops[op].kind else { return None };
        let one_each = attributes.axes == 1 && tiling.columns() == 1;
        if !one_each || attributes.in_order || !tiling.block.is_multiple_of(lanes) {
            return None;
        }
        let body = kernel.ops[op].regions[0];
        let ends = |op: &Op| kernel.ops[*op].kind.may_stop_thread();
        if ops_in(kernel, body).iter().any(ends) {
            return None;
        }
        let axis = kernel.regions[body].params[0];
        let (loads, stores) = (exchanged_loads(kernel, axis, body), exchanged_stores(kernel, axis, body));
        let buffer = loads.iter().chain(&stores).map(|exchange| exchange.array.buffer(lanes)).max()?;
        let warps = tiling.block / lanes;
        (buffer * BYTES * warps <= MOST_BYTES).then_some(Self { loads, stores, buffer, warps })
    }

    fn has(&self, op: Op) -> bool {
        let mut all = self.loads.iter().chain(&self.stores).flat_map(|exchange| &exchange.ops);
        all.any(|&(exchanged, _)| exchanged == op)
    }
}

impl Exchange {
    fn is_whole(&self) -> bool {
        (0..self.array.words).all(|word| self.ops.iter().any(|&(_, entry)| entry == word))
    }
}

impl Elements {
    /// Whether lanes access four of their own words at a time.
    fn is_by_quads(self) -> bool {
        self.words.is_multiple_of(QUAD)
    }

    fn is_padded(self) -> bool {
        self.words.is_multiple_of(2) && !self.is_by_quads()
    }

    /// Whether groups of four words change places.
    fn is_turned(self) -> bool {
        self.is_by_quads() && self.words.is_power_of_two()
    }

    /// Whether four words of a lane go by one access, if the array begins at a multiple of 16 bytes: a warp's first element does, then.
    fn has_quads(self) -> bool {
        !self.is_padded() && (i64::from(self.origin) * i64::from(self.words)) % i64::from(QUAD) == 0
    }

    /// Words of the buffer of a warp of so many lanes.
    fn buffer(self, lanes: u32) -> u32 {
        self.places(self.words * lanes)
    }

    /// Words that so many take in a buffer, which fill all banks equally often.
    fn places(self, words: u32) -> u32 {
        words + if self.is_padded() { words / BANKS } else { 0 }
    }
}

/// The element and the entry that a path names, if the element is one to exchange.
fn element(kernel: &Kernel, axis: Value, path: &[Value]) -> Option<(Elements, u32)> {
    let run = run_along(kernel, axis, path)?;
    let Type::Array(array) = kernel.ty(path[0]) else { return None };
    let scalar = elem_of(array.elem);
    let words = array.elem.tensor_shape()?.count();
    let is_own = array.rank == 1 && path[1] == axis;
    let is_dense = in_memory(scalar).bytes() == BYTES && run.stride == u64::from(words * BYTES);
    // Four words go by one access of each lane, and those of a warp lie side by side.
    if !is_own || !is_dense || !(3..=MOST_WORDS).contains(&words) || words == QUAD {
        return None;
    }
    let origin = kernel.layout(array).map_or(0, |layout| layout.origin[0]);
    let entry = entry(kernel, array.elem, &path[2..])?;
    Some((Elements { param: run.param, scalar, words, origin }, entry))
}

/// Loads that nothing is written before.
fn exchanged_loads(kernel: &Kernel, axis: Value, body: Region) -> Vec<Exchange> {
    let mut loads: Vec<Exchange> = Vec::new();
    for &op in &kernel.regions[body].ops {
        let data = &kernel.ops[op];
        let is_local = data.operands.first().is_some_and(|&place| matches!(kernel.ty(place), Type::Local(_)));
        match data.kind {
            OpKind::Load => {
                let Some((array, entry)) = element(kernel, axis, &data.operands) else { continue };
                match loads.iter_mut().find(|load| load.array == array) {
                    Some(load) => load.ops.push((op, entry)),
                    None => loads.push(Exchange { array, ops: vec![(op, entry)] }),
                }
            }
            OpKind::Local => {}
            OpKind::Store if is_local => {}
            ref kind if kind.is_pure() => {}
            _ => break,
        }
    }
    loads.retain(Exchange::is_whole);
    loads
}

/// The stores that a body ends in, one element behind the other.
fn exchanged_stores(kernel: &Kernel, axis: Value, body: Region) -> Vec<Exchange> {
    let mut stores: Vec<Exchange> = Vec::new();
    let ops = &kernel.regions[body].ops;
    for &op in ops.iter().rev().skip(1) {
        let data = &kernel.ops[op];
        if data.kind.is_pure() {
            continue;
        }
        let OpKind::Store = data.kind else { break };
        let path = &data.operands[..data.operands.len() - 1];
        let Some((array, entry)) = element(kernel, axis, path) else { break };
        match stores.last_mut().filter(|store| !store.is_whole()) {
            None => stores.push(Exchange { array, ops: vec![(op, entry)] }),
            Some(store) if store.array == array && store.ops.iter().all(|&(_, other)| other != entry) => {
                store.ops.push((op, entry));
            }
            Some(_) => break,
        }
    }
    stores.retain(Exchange::is_whole);
    stores.reverse();
    stores
}

/// Where a warp stands.
struct Warp {
    /// The point of its first lane.
    first: Val,
    lane: Val,
    /// The first word of its buffer.
    buffer: Val,
    /// The bounds of the axis.
    bounds: [Val; 2],
    /// Whether all lanes have a point.
    whole: Val,
}

/// Where words go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    /// From global memory to the buffer.
    Load,
    /// From the buffer to global memory.
    Store,
}

impl Emitter<'_> {
    /// The body for a thread's column of a tile, if the axis has it, with these arrays aligned.
    pub(super) fn point_with_exchanges(
        &mut self,
        tiles: &Tiles,
        piece: &Piece,
        (body, exchanges): (Region, &Exchanges),
        aligned: &[usize],
        totals: &[Val],
    ) -> Vec<Val> {
        let axis = tiles.axes[0];
        let (warp, column) = self.warp_of(tiles, piece, exchanges);
        for load in &exchanges.loads {
            let entries = self.load_together(&warp, load.array, exchanges);
            for &(op, entry) in &load.ops {
                self.set(self.kernel.ops[op].results[0], entries[entry as usize]);
            }
        }

        let kernel = self.kernel;
        let (&last, ops) = kernel.regions[body].ops.split_last().expect("a region ends in a terminator");
        let ops: Vec<_> = ops.iter().copied().filter(|&op| !exchanges.has(op)).collect();
        let stored: Vec<_> = exchanges.stores.iter().flat_map(|store| &store.ops).collect();
        let scalars = exchanges.stores.iter().flat_map(|store| store.ops.iter().map(|_| store.array.scalar));
        let nothing = scalars.map(|scalar| Val::constant(Const::from_bits(scalar, 0)));
        let outside: Vec<_> = totals.iter().copied().chain(nothing).collect();
        let position = self.binary("sub", column, axis.lo);
        let extent = self.binary("sub", axis.hi, axis.lo);
        let inside = self.compare("ult", position, extent);
        let mut next = self.if_inside(Some(inside), &outside, |e| {
            e.group = (!aligned.is_empty()).then(|| Group {
                axis: axis.index,
                lane: 0,
                points: 1,
                aligned: aligned.to_vec(),
            });
            e.place_index(&axis, column);
            for (&accumulator, &total) in kernel.regions[body].params[1..].iter().zip(totals) {
                e.set(accumulator, total);
            }
            e.ops(&ops);
            e.group = None;
            let yielded = kernel.ops[last].operands.iter();
            let values = stored.iter().filter_map(|(op, _)| kernel.ops[*op].operands.last());
            yielded.chain(values).map(|&value| e.get(value)).collect()
        });

        let values = next.split_off(totals.len());
        let mut values = values.into_iter();
        for store in &exchanges.stores {
            let entries: Vec<_> = store.ops.iter().map(|&(_, entry)| entry).zip(values.by_ref()).collect();
            self.store_together(&warp, store.array, &entries, exchanges);
        }
        next
    }

    /// Where the thread's warp stands in a tile, and the thread's own column.
    fn warp_of(&mut self, tiles: &Tiles, piece: &Piece, exchanges: &Exchanges) -> (Warp, Val) {
        let axis = tiles.axes[0];
        let thread = self.register(Register::Thread);
        let (lane, number) = (self.lane_of(thread), self.warp_number_of(thread));
        let buffer = self.binary("mul", number, word(exchanges.buffer));
        let column = self.binary("add nsw", piece.column, tiles.x);
        let wide_lane = self.resize(lane, Scalar::I64);
        let first = self.binary("sub nsw", column, wide_lane);
        let bounds = [axis.lo, axis.hi];
        let from = self.compare("sle", axis.lo, first);
        let lanes = self.vendor().lanes;
        let end = self.binary("add nsw", first, Val::i64(lanes.into()));
        let to = self.compare("sle", end, axis.hi);
        let whole = self.binary("and", from, to);
        (Warp { first, lane, buffer, bounds, whole }, column)
    }

    /// The warp's lanes from the first that has a point to behind the last.
    fn lanes_with_points(&mut self, warp: &Warp) -> [Val; 2] {
        let all = self.vendor().lanes;
        warp.bounds.map(|bound| {
            let lanes = self.binary("sub nsw", bound, warp.first);
            let lanes = self.intrinsic("llvm.smax", &[lanes, Val::i64(0)], "");
            let lanes = self.intrinsic("llvm.smin", &[lanes, Val::i64(all.into())], "");
            self.resize(lanes, Scalar::U32)
        })
    }

    /// The entries of each lane's element.
    fn load_together(&mut self, warp: &Warp, array: Elements, exchanges: &Exchanges) -> Vec<Val> {
        self.move_words(warp, array, exchanges, Direction::Load);
        self.wait_for_warp();
        let ty = Ty::new(array.scalar, 1);
        let own = self.own_place(warp, array, exchanges);
        let entries = (0..array.words).map(|entry| {
            let (place, align) = self.entry_place(own, warp, array, entry, exchanges);
            self.f.value(ty, format_args!("load {ty}, ptr addrspace(3) {place}, align {align}"))
        });
        let entries = entries.collect();
        self.wait_for_warp();
        entries
    }

    /// Stores the entries of each lane's element.
    fn store_together(
        &mut self,
        warp: &Warp,
        array: Elements,
        entries: &[(u32, Val)],
        exchanges: &Exchanges,
    ) {
        let own = self.own_place(warp, array, exchanges);
        for &(entry, value) in entries {
            let (place, align) = self.entry_place(own, warp, array, entry, exchanges);
            self.f.line(format_args!("store {}, ptr addrspace(3) {place}, align {align}", Typed(value)));
        }
        self.wait_for_warp();
        self.move_words(warp, array, exchanges, Direction::Store);
        self.wait_for_warp();
    }

    /// Moves all words of the warp's elements between shared and global memory: four of each lane at a time where the array is aligned, or one,
    /// written out where all lanes have a point; else by a loop that leaves words out.
    fn move_words(&mut self, warp: &Warp, array: Elements, exchanges: &Exchanges, direction: Direction) {
        // The warp's first word; not inside the array if its first lane has no point.
        let element = self.binary("sub", warp.first, Val::i64(array.origin.into()));
        let bytes = self.binary("mul", element, Val::i64((array.words * BYTES).into()));
        let base = self.array_base(array.param);
        let memory = self.f.pointer(format_args!("getelementptr i8, ptr {base}, {}", Typed(bytes)));
        let (all, some, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let likely = self.module.cold_node();
        self.f.terminate(format_args!("br i1 {}, label %{all}, label %{some}, !prof {likely}", warp.whole));

        self.f.begin(all);
        if array.has_quads() {
            let (quads, words) = (self.f.new_label(), self.f.new_label());
            let bits = self.f.value(Ty::new(Scalar::I64, 1), format_args!("ptrtoint ptr {base} to i64"));
            let low = self.binary("and", bits, Val::i64((QUAD * BYTES - 1).into()));
            let aligned = self.compare("eq", low, Val::i64(0));
            let likely = self.module.cold_node();
            self.f.terminate(format_args!("br i1 {aligned}, label %{quads}, label %{words}, !prof {likely}"));
            self.f.begin(quads);
            self.move_rounds((warp, array, exchanges), (memory, QUAD), direction);
            self.f.jump(done);
            self.f.begin(words);
        }
        self.move_rounds((warp, array, exchanges), (memory, 1), direction);
        self.f.jump(done);

        self.f.begin(some);
        let lanes = self.lanes_with_points(warp);
        let [from, to] = lanes.map(|lanes| self.binary("mul", lanes, word(array.words)));
        let count = self.binary("sub", to, from);
        let before = self.f.block();
        let (head, inside, moved, next) =
            (self.f.new_label(), self.f.new_label(), self.f.new_label(), self.f.new_label());
        self.f.jump(head);
        self.f.begin(head);
        let number = self.f.phi(Ty::new(Scalar::U32, 1));
        let behind_first = self.binary("sub", number.value, from);
        let has_point = self.compare("ult", behind_first, count);
        self.f.branch(has_point, inside, moved);
        self.f.begin(inside);
        let place = self.place(warp, array, number.value, exchanges);
        let cell = self.word_cell(memory, number.value);
        let value = self.read_words(array, (place, cell), 1, direction);
        self.write_words(array, (place, cell), value, direction);
        self.f.jump(moved);
        self.f.begin(moved);
        let all = self.vendor().lanes;
        let stepped = self.binary("add", number.value, word(all));
        let more = self.compare("ult", stepped, word(array.words * all));
        self.f.branch(more, next, done);
        self.f.begin(next);
        let latch = self.f.block();
        let facts = [self.module.not_unrolled()];
        self.back_edge(head, &facts);
        self.f.fill(number, &[(warp.lane, before), (stepped, latch)]);

        self.f.begin(done);
    }

    /// Moves all words of a warp all of whose lanes have a point, so many of each lane by one access.
    fn move_rounds(
        &mut self,
        (warp, array, exchanges): (&Warp, Elements, &Exchanges),
        (memory, width): (Ptr, u32),
        direction: Direction,
    ) {
        let own = self.binary("mul", warp.lane, word(width));
        let first = self.place(warp, array, own, exchanges);
        let lanes = self.vendor().lanes;
        let (words, round_words) = (array.words * lanes, lanes * width);
        let (rounds, rest) = (words / round_words, words % round_words);
        let place = |e: &mut Self, round: u32| {
            let number = e.binary("add nuw nsw", own, word(round * round_words));
            // Four elements on, words change places as they do here.
            let is_computed = array.is_turned() && width < QUAD;
            let place = if is_computed {
                e.place(warp, array, number, exchanges)
            } else {
                e.place_behind(first, round * array.places(round_words))
            };
            (place, e.word_cell(memory, number))
        };
        let places: Vec<_> = (0..rounds).map(|round| place(self, round)).collect();
        let read: Vec<_> =
            places.iter().map(|&place| self.read_words(array, place, width, direction)).collect();
        // Some lanes have nothing in the last round. What is read waits for nothing that is written.
        let last = (rest > 0).then(|| {
            let last = place(self, rounds);
            let has_words = self.compare("ult", own, word(rest));
            let (with, done) = (self.f.new_label(), self.f.new_label());
            let before = self.f.block();
            self.f.branch(has_words, with, done);
            self.f.begin(with);
            let value = self.read_words(array, last, width, direction);
            self.f.jump(done);
            self.f.begin(done);
            let nothing = Val { lanes: width, ..Val::constant(Const::from_bits(array.scalar, 0)) };
            let value = self.f.join(value.ty(), &[(nothing, before), (value, with)]);
            (last, value, has_words)
        });
        for (&place, value) in places.iter().zip(read) {
            self.write_words(array, place, value, direction);
        }
        if let Some((last, value, has_words)) = last {
            let (with, done) = (self.f.new_label(), self.f.new_label());
            self.f.branch(has_words, with, done);
            self.f.begin(with);
            self.write_words(array, last, value, direction);
            self.f.jump(done);
            self.f.begin(done);
        }
    }

    /// Reads so many words from a cell, or from a place of the buffer.
    fn read_words(
        &mut self,
        array: Elements,
        (place, cell): (Ptr, Ptr),
        width: u32,
        direction: Direction,
    ) -> Val {
        let (ty, align) = (Ty::new(array.scalar, width), width * BYTES);
        match direction {
            Direction::Load => {
                let class = self.array_class(array.param);
                let suffix = self.load_suffix(class);
                self.f.value(ty, format_args!("load {ty}, ptr {cell}, align {align}{suffix}"))
            }
            Direction::Store => {
                self.f.value(ty, format_args!("load {ty}, ptr addrspace(3) {place}, align {align}"))
            }
        }
    }

    /// Writes words to a place of the buffer, or to a cell.
    fn write_words(&mut self, array: Elements, (place, cell): (Ptr, Ptr), value: Val, direction: Direction) {
        let align = value.lanes * BYTES;
        match direction {
            Direction::Load => {
                self.f.line(format_args!("store {}, ptr addrspace(3) {place}, align {align}", Typed(value)));
            }
            Direction::Store => {
                let class = self.array_class(array.param);
                let suffix = self.scopes.suffix(&mut self.module, class);
                self.f.line(format_args!("store {}, ptr {cell}, align {align}{suffix}", Typed(value)));
            }
        }
    }

    /// The cell of a word of the warp's elements, counted from the first.
    fn word_cell(&mut self, memory: Ptr, number: Val) -> Ptr {
        let number = self.resize(number, Scalar::I64);
        self.f.pointer(format_args!("getelementptr i32, ptr {memory}, {}", Typed(number)))
    }

    /// The place in shared memory of the first entry of the lane's own element.
    fn own_place(&mut self, warp: &Warp, array: Elements, exchanges: &Exchanges) -> Ptr {
        let first = self.binary("mul", warp.lane, word(array.words));
        self.place(warp, array, first, exchanges)
    }

    /// The place of another entry of it, and the bytes that it begins at a multiple of.
    fn entry_place(
        &mut self,
        own: Ptr,
        warp: &Warp,
        array: Elements,
        entry: u32,
        exchanges: &Exchanges,
    ) -> (Ptr, u32) {
        let within = if array.is_by_quads() { entry % QUAD } else { 0 };
        let align = if array.is_by_quads() && within == 0 { QUAD * BYTES } else { BYTES };
        if !array.is_padded() && !array.is_turned() {
            return (self.place_behind(own, entry), align);
        }
        let first = self.binary("mul", warp.lane, word(array.words));
        let number = self.binary("add", first, word(entry - within));
        let place = self.place(warp, array, number, exchanges);
        (if within > 0 { self.place_behind(place, within) } else { place }, align)
    }

    fn place_behind(&mut self, place: Ptr, words: u32) -> Ptr {
        self.f.pointer(format_args!("getelementptr inbounds i32, ptr addrspace(3) {place}, i32 {words}"))
    }

    /// The place in shared memory of a word of the warp's elements.
    fn place(&mut self, warp: &Warp, array: Elements, number: Val, exchanges: &Exchanges) -> Ptr {
        let mut number = number;
        if array.is_padded() {
            let left_out = self.binary("lshr", number, word(BANKS.ilog2()));
            number = self.binary("add", number, left_out);
        }
        if array.is_turned() {
            let row = self.binary("lshr", number, word(BANKS.ilog2()));
            let turn = self.binary("and", row, word(array.words / QUAD - 1));
            let turn = self.binary("mul", turn, word(QUAD));
            number = self.binary("xor", number, turn);
        }
        let number = self.binary("add", warp.buffer, number);
        let words = exchanges.buffer * exchanges.warps;
        self.module.declare(BUFFER, || {
            format!("@{BUFFER} = internal addrspace(3) global [{words} x i32] undef, align {}", QUAD * BYTES)
        });
        self.f.pointer(format_args!(
            "getelementptr inbounds i32, ptr addrspace(3) @{BUFFER}, {}",
            Typed(number)
        ))
    }
}
