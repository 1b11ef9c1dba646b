//! How a cell is found, and made where it is written.
//!
//! Down the path from the root a dense or bitmasked node adds digits to the place in the slot at hand, and a pointer or dynamic node
//! leads to another slot, by its entry. A read goes through slot 0 where a cell is not there.

use octants_diag::Span;
use octants_ir::ops::{ArithOp, AtomicOp, BitOp, BitUnary, CompareOp};
use octants_ir::sparse::{SparseTree, list, mark};
use octants_ir::{Builder, Const, NodeKind, Scalar, Value};

use super::{View, positive};
use crate::host::Host;
use crate::lower::Lowerer;
use crate::lower::data::sparse::SparsePlace;
use crate::lower::data::term::Place;

/// A cell: its slot, and where it lies there.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub pool: usize,
    /// The root's has none.
    pub slot: Option<Value>,
    /// Digits of nodes inside the slot, and bytes of a step of each.
    pub digits: Vec<(Value, u64)>,
    /// Bytes from the beginning of the slot's cell, without the digits.
    pub offset: u64,
    /// Whether it is there, if that must be known before it is accessed.
    pub there: Option<Value>,
}

impl Cell {
    /// The index of an element that lies in it, in a view of such elements.
    pub fn path(&self) -> Vec<Value> {
        self.slot.into_iter().chain(self.digits.iter().map(|&(digit, _)| digit)).collect()
    }

    /// The same cell by values that stand for those of its path.
    pub fn at(&self, path: &[Value]) -> Self {
        let mut path = path.iter().copied();
        let slot = self.slot.and_then(|_| path.next());
        let digits = path.zip(&self.digits).map(|(digit, &(_, stride))| (digit, stride)).collect();
        Self { slot, digits, there: None, ..*self }
    }
}

/// Why a cell is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// To be read: what is not there is zero.
    Read,
    /// To be written: it is made, and so is what is above it.
    Active,
    /// As `Active`, without saying that a list has grown: who appends has done so.
    Appended,
}

impl<H: Host> Lowerer<'_, H> {
    /// The place with its slot found, for a place of a sparse field.
    pub(crate) fn found(&mut self, place: &Place, need: Need, span: Span) -> Place {
        let Some(sparse) = &place.sparse else { return place.clone() };
        let cell = self.sparse_cell(sparse, need, span);
        let components = place.path[self.leaf_rank(place)..].to_vec();
        // As the view has it.
        let whole = if self.options.names_elements {
            self.distances(&sparse.indices, &sparse.origin, span)
        } else {
            Vec::new()
        };
        let path = whole.into_iter().chain(cell.path()).chain(components);
        Place { path: path.collect(), sparse: None, guard: cell.there, ..place.clone() }
    }

    /// Where the slot stands in the path of an element that was found; elements of the root's cell have none.
    pub(crate) fn slot_position(&self, place: &SparsePlace) -> Option<usize> {
        let in_pool = self.trees[place.tree].tree.nodes[place.node].pool > 0;
        in_pool.then_some(if self.options.names_elements { place.indices.len() } else { 0 })
    }

    /// How many indices a place's base takes.
    fn leaf_rank(&self, place: &Place) -> usize {
        self.kernel.ty(place.base).place().map_or(0, |(_, rank)| rank)
    }

    /// The cell that an element lies in.
    fn sparse_cell(&mut self, place: &SparsePlace, need: Need, span: Span) -> Cell {
        if let Some(cell) = self.visited_cell(place, need, span) {
            return cell;
        }
        let distances = self.distances(&place.indices, &place.origin, span);
        self.descend(place.tree, place.node, &distances, need, span)
    }

    /// Indices counted from a field's first element.
    pub(crate) fn distances(&mut self, indices: &[Value], origin: &[i32], span: Span) -> Vec<Value> {
        let mut distances = Vec::with_capacity(indices.len());
        for (&index, &origin) in indices.iter().zip(origin) {
            let mut builder = self.at(span);
            let index = builder.cast(index, Scalar::I32);
            distances.push(if origin == 0 {
                index
            } else {
                let origin = builder.i32(origin);
                builder.arith(ArithOp::Sub, index, origin)
            });
        }
        distances
    }

    /// The cell of a node by its index in the node's own resolution, an index for each axis of the node.
    pub(crate) fn descend(
        &mut self,
        tree: usize,
        node: usize,
        distances: &[Value],
        need: Need,
        span: Span,
    ) -> Cell {
        let shape = self.trees[tree].tree.clone();
        let root = Cell { pool: 0, slot: None, digits: Vec::new(), offset: 0, there: None };
        self.descend_from(tree, &shape, root, 0, node, distances, need, span)
    }

    /// As [`Self::descend`], from a cell of a node above that is known.
    #[expect(clippy::too_many_arguments, reason = "a walk's state")]
    pub(super) fn descend_from(
        &mut self,
        tree: usize,
        shape: &SparseTree,
        mut cell: Cell,
        above: usize,
        node: usize,
        distances: &[Value],
        need: Need,
        span: Span,
    ) -> Cell {
        let path = shape.path(node);
        let finds = self.options.has_run;
        if finds && need != Need::Read {
            let made = path.iter().filter(|&&at| shape.nodes[at].kind != NodeKind::Dense);
            made.for_each(|&at| self.trees[tree].activations[at] += 1);
        }
        let need = if finds { Need::Read } else { need };
        for &at in path.iter().skip_while(|&&at| at != above).skip(1) {
            let of = &shape.nodes[at];
            match of.kind {
                NodeKind::Dense => cell = self.inner_cell(shape, cell, at, node, distances, span),
                NodeKind::Bitmasked => {
                    cell = self.inner_cell(shape, cell, at, node, distances, span);
                    if finds {
                        let marked = self.guard_mark(tree, at, &cell, span);
                        self.require(&mut cell, marked, span);
                    } else if need != Need::Read {
                        self.activate_cell(tree, at, &cell, span);
                    }
                }
                NodeKind::Pointer => {
                    let number = self.cell_number(shape, at, node, distances, span);
                    let word = self.word_of(&cell, of.offset, Some(number), span);
                    let entry = self.load_word(tree, &cell, word, span);
                    let slot = if need == Need::Read {
                        let mut builder = self.at(span);
                        let zero = builder.i32(0);
                        builder.arith(ArithOp::Max, entry, zero)
                    } else {
                        let coordinates = self.coordinates(shape, at, node, distances, span);
                        self.entry_or_new(tree, at, &cell, entry, &[word], &coordinates, span)
                    };
                    cell = self.slot_cell(shape, at, slot);
                    if finds {
                        // Slots above it lead to slot 0 where they are not there.
                        cell.there = Some(positive(&mut self.at(span), slot));
                    }
                }
                NodeKind::Dynamic => {
                    cell = self.chunk_cell(tree, shape, cell, at, node, distances, need, span);
                    if finds {
                        cell.there = cell.slot.map(|slot| positive(&mut self.at(span), slot));
                    }
                }
            }
        }
        cell
    }

    /// One more condition under which a cell is there.
    fn require(&mut self, cell: &mut Cell, condition: Value, span: Span) {
        cell.there = Some(match cell.there {
            None => condition,
            Some(others) => self.at(span).bit(BitOp::And, others, condition),
        });
    }

    /// The beginning of a slot's cell.
    pub(super) fn slot_cell(&self, shape: &SparseTree, node: usize, slot: Value) -> Cell {
        let pool = shape.nodes[node].pool;
        Cell { pool, slot: Some(slot), digits: Vec::new(), offset: 0, there: None }
    }

    /// The cell of a node inside that of its parent, where it lies in the same slot.
    pub(crate) fn inner_cell(
        &mut self,
        shape: &SparseTree,
        mut cell: Cell,
        at: usize,
        node: usize,
        distances: &[Value],
        span: Span,
    ) -> Cell {
        let of = &shape.nodes[at];
        cell.offset += of.offset + of.cells;
        for ((position, _), (extent, stride)) in of.splits.iter().enumerate().zip(of.strides()) {
            if extent > 1 {
                let digit = self.digit(shape, at, node, position, distances, span);
                cell.digits.push((digit, stride));
            }
        }
        cell
    }

    /// The digit of a node along one of its axes: always one that the node has, so that no index leads out of the memory.
    fn digit(
        &mut self,
        shape: &SparseTree,
        at: usize,
        node: usize,
        position: usize,
        distances: &[Value],
        span: Span,
    ) -> Value {
        let (axis, extent) = shape.nodes[at].splits[position];
        let below = shape.below(at, node, axis);
        let rank = shape.axes(node).iter().position(|&known| known == axis).unwrap_or(0);
        let distance = distances[rank];
        let mut builder = self.at(span);
        let quotient = divided(&mut builder, distance, below);
        remainder(&mut builder, quotient, extent)
    }

    /// The number of a cell among those of one cell of the parent, in storage order.
    pub(crate) fn cell_number(
        &mut self,
        shape: &SparseTree,
        at: usize,
        node: usize,
        distances: &[Value],
        span: Span,
    ) -> Value {
        let mut number = None;
        for position in 0..shape.nodes[at].splits.len() {
            let digit = self.digit(shape, at, node, position, distances, span);
            let mut builder = self.at(span);
            number = Some(match number {
                None => digit,
                Some(number) => {
                    let extent = builder.i32(shape.nodes[at].splits[position].1 as i32);
                    let scaled = builder.arith(ArithOp::Mul, number, extent);
                    builder.arith(ArithOp::Add, scaled, digit)
                }
            });
        }
        number.unwrap_or_else(|| self.at(span).i32(0))
    }

    /// The index of a cell in the resolution of the node `at`, given that of a cell of `node` below it.
    pub(crate) fn coordinates(
        &mut self,
        shape: &SparseTree,
        at: usize,
        node: usize,
        distances: &[Value],
        span: Span,
    ) -> Vec<Value> {
        let axes = shape.axes(node);
        let of_node = |axis: &u8| axes.iter().position(|known| known == axis).map(|rank| distances[rank]);
        let mut coordinates = Vec::new();
        for axis in shape.axes(at) {
            let below = shape.below(at, node, axis);
            let distance = of_node(&axis).unwrap_or_else(|| unreachable!("a node cuts what its parents cut"));
            coordinates.push(divided(&mut self.at(span), distance, below));
        }
        coordinates
    }

    /// The word in a slot that lies so many bytes behind the beginning of a cell, and `number` words further.
    pub(crate) fn word_of(&mut self, cell: &Cell, bytes: u64, number: Option<Value>, span: Span) -> Value {
        let mut builder = self.at(span);
        let mut word = builder.i32(((cell.offset + bytes) / 4) as i32);
        for &(digit, stride) in &cell.digits {
            let stride = builder.i32((stride / 4) as i32);
            let step = builder.arith(ArithOp::Mul, digit, stride);
            word = builder.arith(ArithOp::Add, word, step);
        }
        match number {
            None => word,
            Some(number) => builder.arith(ArithOp::Add, word, number),
        }
    }

    /// The base and path of a word of a slot.
    pub(super) fn word_place(&mut self, tree: usize, cell: &Cell, word: Value) -> (Value, Vec<Value>) {
        let base = self.view(tree, View::Words(cell.pool));
        (base, cell.slot.into_iter().chain([word]).collect())
    }

    pub(crate) fn load_word(&mut self, tree: usize, cell: &Cell, word: Value, span: Span) -> Value {
        let (base, path) = self.word_place(tree, cell, word);
        self.at(span).load(base, &path)
    }

    pub(super) fn store_word(&mut self, tree: usize, cell: &Cell, word: Value, value: Value, span: Span) {
        let (base, path) = self.word_place(tree, cell, word);
        self.at(span).store(base, &path, value);
    }

    pub(crate) fn update_word(
        &mut self,
        op: AtomicOp,
        tree: usize,
        cell: &Cell,
        word: Value,
        value: Value,
        span: Span,
    ) -> Value {
        let (base, path) = self.word_place(tree, cell, word);
        self.at(span).atomic(op, base, &path, value)
    }

    /// Marks the cell of a bitmasked node as active.
    ///
    /// Threads that do so at once store the same.
    fn activate_cell(&mut self, tree: usize, node: usize, cell: &Cell, span: Span) {
        self.trees[tree].activations[node] += 1;
        let marked = self.is_marked(tree, node, cell, span);
        let unmarked = self.at(span).bit_unary(BitUnary::Not, marked);
        self.when(unmarked, span, |lowerer| lowerer.set_mark(tree, node, cell, mark::NEW, span));
    }

    /// The entry, if it is one; else that of a new cell.
    #[expect(clippy::too_many_arguments, reason = "where the entry is, and what its cell needs to know")]
    fn entry_or_new(
        &mut self,
        tree: usize,
        node: usize,
        parent: &Cell,
        entry: Value,
        words: &[Value],
        coordinates: &[Value],
        span: Span,
    ) -> Value {
        self.trees[tree].activations[node] += 1;
        let maker = self.maker(tree, node, span);
        let mut builder = self.at(span);
        let there = positive(&mut builder, entry);
        let slot = parent.slot.unwrap_or_else(|| builder.i32(0));
        let arguments: Vec<_> = [slot].iter().chain(words).chain(coordinates).copied().collect();
        let results = builder.if_else(there, |_| vec![entry], |builder| builder.call(maker, &arguments));
        results[0]
    }

    /// Where an element is written beyond the chunks that a list has: those before its run are made, so that all elements below the
    /// length are there.
    fn make_runs_before(
        &mut self,
        tree: usize,
        node: usize,
        parent: &Cell,
        (entry, list_word, run): (Value, Value, Value),
        coordinates: &[Value],
        span: Span,
    ) {
        let maker = self.maker(tree, node, span);
        let mut builder = self.at(span);
        let zero = builder.i32(0);
        let missing = builder.compare(CompareOp::Le, entry, zero);
        let slot = parent.slot.unwrap_or(zero);
        self.when(missing, span, |lowerer| {
            lowerer.count_up(run, span, |lowerer, before| {
                let words = [slot, list_word, before];
                let arguments: Vec<_> = words.iter().chain(coordinates).copied().collect();
                lowerer.at(span).call(maker, &arguments);
            });
        });
    }

    /// An element of a list: the chunk that it lies in, and which of its cells it is.
    #[expect(clippy::too_many_arguments, reason = "a walk's state")]
    fn chunk_cell(
        &mut self,
        tree: usize,
        shape: &SparseTree,
        parent: Cell,
        at: usize,
        node: usize,
        distances: &[Value],
        need: Need,
        span: Span,
    ) -> Cell {
        let of = &shape.nodes[at];
        let index = self.digit(shape, at, node, 0, distances, span);
        let list_word = self.word_of(&parent, of.offset, None, span);
        let mut builder = self.at(span);
        let chunk = divided(&mut builder, index, of.chunk);
        // Chunk `q` lies in run `⌊log₂(q + 1)⌋`.
        let (one, last) = (builder.i32(1), builder.i32(31));
        let after = builder.arith(ArithOp::Add, chunk, one);
        let zeros = builder.bit_unary(BitUnary::Clz, after);
        let run = builder.arith(ArithOp::Sub, last, zeros);
        let runs = builder.i32(list::RUNS as i32);
        let run_word = builder.arith(ArithOp::Add, list_word, runs);
        let run_word = builder.arith(ArithOp::Add, run_word, run);
        let entry = self.load_word(tree, &parent, run_word, span);
        let first = if need == Need::Read {
            let mut builder = self.at(span);
            let zero = builder.i32(0);
            builder.arith(ArithOp::Max, entry, zero)
        } else {
            let mut coordinates = self.coordinates(shape, at, node, distances, span);
            // That of the axis of the list follows from the run.
            let axis = of.splits[0].0;
            if let Some(rank) = shape.axes(at).iter().position(|&known| known == axis) {
                coordinates.remove(rank);
            }
            if need == Need::Active {
                self.make_runs_before(tree, at, &parent, (entry, list_word, run), &coordinates, span);
                let mut builder = self.at(span);
                let one = builder.i32(1);
                let length = builder.arith(ArithOp::Add, index, one);
                let (base, path) = self.word_place(tree, &parent, list_word);
                let mut builder = self.at(span);
                let known = builder.load(base, &path);
                let longer = builder.compare(CompareOp::Gt, length, known);
                builder.if_else(
                    longer,
                    |builder| {
                        builder.atomic(AtomicOp::Max, base, &path, length);
                        Vec::new()
                    },
                    |_| Vec::new(),
                );
            }
            self.entry_or_new(tree, at, &parent, entry, &[list_word, run], &coordinates, span)
        };
        let mut builder = self.at(span);
        let start = builder.bit(BitOp::Shl, one, run);
        let inside = builder.arith(ArithOp::Sub, after, start);
        let slot = builder.arith(ArithOp::Add, first, inside);
        let slot = if need == Need::Read {
            let there = positive(&mut builder, first);
            let zero = builder.i32(0);
            builder.select(there, slot, zero)
        } else {
            slot
        };
        let mut cell = self.slot_cell(shape, at, slot);
        if of.chunk > 1 {
            let within = remainder(&mut self.at(span), index, of.chunk);
            cell.digits.push((within, of.cell_bytes));
        }
        cell
    }
}

/// The quotient of an index; one that is negative is far outside.
pub(super) fn divided(builder: &mut Builder<'_>, value: Value, by: u32) -> Value {
    if by == 1 {
        return value;
    }
    if by.is_power_of_two() {
        let shift = builder.i32(by.trailing_zeros() as i32);
        return builder.bit(BitOp::Shr, value, shift);
    }
    unsigned(builder, ArithOp::RawDiv, value, by)
}

/// The remainder of an index: in `0..by` whatever it is.
pub(super) fn remainder(builder: &mut Builder<'_>, value: Value, by: u32) -> Value {
    if by == 1 {
        return builder.i32(0);
    }
    if by.is_power_of_two() {
        let mask = builder.i32(by as i32 - 1);
        return builder.bit(BitOp::And, value, mask);
    }
    unsigned(builder, ArithOp::RawMod, value, by)
}

fn unsigned(builder: &mut Builder<'_>, op: ArithOp, value: Value, by: u32) -> Value {
    let value = builder.cast(value, Scalar::U32);
    let by = builder.constant(Const::from_i128(Scalar::U32, by.into()));
    let result = builder.arith(op, value, by);
    builder.cast(result, Scalar::I32)
}
