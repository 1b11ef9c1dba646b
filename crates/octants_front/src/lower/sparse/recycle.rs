//! How cells are given up, and how what was given up becomes free.
//!
//! A cell that is given up is marked: its entry is gone at once, so that nothing finds it any more, but its slot stays what it is until
//! the task is over, in which others may still be at work on it. Then a task clears the marked cells, gives up what lies in
//! them, and gives their slots back; pools come in order from the root down.
//!
//! Laws, for branches of a kernel and for kernels that run at the same time, on streams or in threads:
//! * **Who takes the entry of a cell away marks its slot**, and nobody else: an entry is taken by a compare-and-swap, also where all cells are given up.
//! * **A mark says which launch and which branch made it, and that one alone clears it**: in the task of another the cell may still be in use.
//! * Marks of nobody, which the host makes of those that an interrupted kernel left, are cleared by who makes them its own first.

use octants_diag::Span;
use octants_ir::ops::{ArithOp, AtomicOp, BitOp, CompareOp, ParallelFor};
use octants_ir::sparse::{
    GIVEN_UP, Header, LAUNCH_MASK, MARKS_OF_A_LAUNCH, SparseTree, TreeChild, list, mark, state,
};
use octants_ir::{Const, Data, NodeKind, OpKind, Scalar, Type, Value};

use super::cells::{Cell, Need};
use super::{View, positive};
use crate::host::Host;
use crate::lower::Lowerer;

impl<H: Host> Lowerer<'_, H> {
    /// The mark of cells that are given up here: keys of launches at the same time differ in their lowest bits.
    fn mark(&mut self, span: Span) -> Value {
        let branch = self.blocks.heads.len() as i32;
        let mut builder = self.at(span);
        let (key, mask) =
            (builder.launch_key(), builder.constant(Const::from_bits(Scalar::U64, LAUNCH_MASK)));
        let launch = builder.bit(BitOp::And, key, mask);
        let launch = builder.cast(launch, Scalar::I32);
        let (branches, of_branch) = (builder.i32(MARKS_OF_A_LAUNCH), builder.i32(GIVEN_UP - 1 - branch));
        let launch = builder.arith(ArithOp::Mul, launch, branches);
        builder.arith(ArithOp::Sub, of_branch, launch)
    }

    /// Gives up the cell of a node, if it is there.
    pub(crate) fn deactivate_cell(&mut self, tree: usize, node: usize, distances: &[Value], span: Span) {
        let shape = self.trees[tree].tree.clone();
        let of = &shape.nodes[node];
        let Some(above) = of.parent else { return };
        self.forget_visits(tree);
        let outer = self.coordinates(&shape, above, node, distances, span);
        let parent = self.descend(tree, above, &outer, Need::Read, span);
        let number = self.cell_number(&shape, node, node, distances, span);
        match of.kind {
            NodeKind::Dense => {}
            NodeKind::Pointer => {
                let word = self.word_of(&parent, of.offset, Some(number), span);
                self.drop_entry(tree, &parent, word, of.pool, None, span);
            }
            NodeKind::Dynamic => self.drop_list(tree, &shape, &parent, node, span),
            NodeKind::Bitmasked => {
                let cell = self.inner_cell(&shape, parent, node, node, distances, span);
                let some = self.is_marked(tree, node, &cell, span);
                self.when(some, span, |lowerer| {
                    lowerer.set_mark(tree, node, &cell, mark::INACTIVE, span);
                    lowerer.clear_cell(tree, &shape, node, &cell, span);
                });
            }
        }
        self.trees[tree].retired = true;
        self.trees[tree].gives_up = true;
    }

    /// Runs code where a condition holds.
    pub(crate) fn when(&mut self, condition: Value, span: Span, build: impl FnOnce(&mut Self)) {
        let then = self.kernel.add_region();
        let outer = std::mem::replace(&mut self.region, then);
        build(self);
        self.at(span).yields(&[]);
        self.region = outer;
        let mut builder = self.at(span);
        let other = builder.region_of(&[], |_, _| Vec::new());
        builder.op(OpKind::If, [condition], [], [then, other]);
    }

    /// Runs code for each number below a count.
    pub(super) fn count_up(&mut self, end: Value, span: Span, build: impl FnOnce(&mut Self, Value)) {
        let each = self.kernel.add_region();
        let number = self.kernel.add_region_param(each, Type::I32);
        let outer = std::mem::replace(&mut self.region, each);
        build(self, number);
        self.at(span).yields(&[]);
        self.region = outer;
        let zero = self.at(span).i32(0);
        self.at(span).op(OpKind::For, [zero, end], [], [each]);
    }

    /// Takes an entry away, and marks its slot; of a run, all slots.
    fn drop_entry(
        &mut self,
        tree: usize,
        parent: &Cell,
        word: Value,
        pool: usize,
        run: Option<Value>,
        span: Span,
    ) {
        let entry = self.load_word(tree, parent, word, span);
        let some = positive(&mut self.at(span), entry);
        let (base, path) = self.word_place(tree, parent, word);
        self.when(some, span, |lowerer| {
            let mut builder = lowerer.at(span);
            let zero = builder.i32(0);
            let old = builder.atomic_cas(base, &path, entry, zero);
            let mine = builder.compare(CompareOp::Eq, old, entry);
            lowerer.when(mine, span, |lowerer| lowerer.retire(tree, pool, entry, run, span));
        });
    }

    /// Marks a slot, or the slots of a run.
    fn retire(&mut self, tree: usize, pool: usize, slot: Value, run: Option<Value>, span: Span) {
        let mark = self.mark(span);
        let one = self.at(span).i32(1);
        let count = match run {
            None => {
                self.store_header(tree, pool, slot, Header::State, mark, span);
                one
            }
            Some(run) => {
                let count = self.at(span).bit(BitOp::Shl, one, run);
                self.count_up(count, span, |lowerer, number| {
                    let each = lowerer.at(span).arith(ArithOp::Add, slot, number);
                    lowerer.store_header(tree, pool, each, Header::State, mark, span);
                });
                count
            }
        };
        let (base, at) = self.state(tree, pool, state::RETIRED, span);
        self.at(span).atomic(AtomicOp::Add, base, &[at], count);
    }

    /// Empties the list in a cell of the parent. One step: a length without its runs, or runs of which some are marked, would be a list that no kernel made.
    fn drop_list(&mut self, tree: usize, shape: &SparseTree, parent: &Cell, node: usize, span: Span) {
        self.whole_step(&format!("tree{tree}_drop"), &parent.path(), span, |lowerer, path| {
            lowerer.drop_runs(tree, shape, &parent.at(path), node, span);
        });
    }

    fn drop_runs(&mut self, tree: usize, shape: &SparseTree, parent: &Cell, node: usize, span: Span) {
        let of = &shape.nodes[node];
        let list_word = self.word_of(parent, of.offset, None, span);
        let zero = self.at(span).i32(0);
        let length = self.load_word(tree, parent, list_word, span);
        let some = positive(&mut self.at(span), length);
        self.when(some, span, |lowerer| {
            let mut builder = lowerer.at(span);
            let one = builder.i32(list::VISITED as i32);
            let visited = builder.arith(ArithOp::Add, list_word, one);
            lowerer.update_word(AtomicOp::Exchange, tree, parent, list_word, zero, span);
            lowerer.store_word(tree, parent, visited, zero, span);
            let runs = lowerer.at(span).i32(of.runs() as i32);
            lowerer.count_up(runs, span, |lowerer, run| {
                let mut builder = lowerer.at(span);
                let first = builder.i32(list::RUNS as i32);
                let word = builder.arith(ArithOp::Add, list_word, first);
                let word = builder.arith(ArithOp::Add, word, run);
                lowerer.drop_entry(tree, parent, word, of.pool, Some(run), span);
            });
        });
    }

    /// Makes a cell zero: elements, bits, and what lies in it in slots of its own.
    fn clear_cell(&mut self, tree: usize, shape: &SparseTree, node: usize, cell: &Cell, span: Span) {
        for &child in &shape.nodes[node].children {
            match child {
                TreeChild::Leaf(leaf) => {
                    let base = self.view(tree, View::Leaf(leaf, None));
                    let element = shape.leaves[leaf].element;
                    let path: Vec<_> =
                        cell.slot.into_iter().chain(cell.digits.iter().map(|&(digit, _)| digit)).collect();
                    let mut builder = self.at(span);
                    let zero = builder.constant(Const::from_bits(element.elem().unwrap_or(Scalar::I32), 0));
                    let zero = match element {
                        Data::Tensor(_) => builder.splat(element, zero),
                        Data::Scalar(_) | Data::Struct(_) => zero,
                    };
                    builder.store(base, &path, zero);
                }
                TreeChild::Node(child) => self.clear_node(tree, shape, child, cell, span),
            }
        }
    }

    fn clear_node(&mut self, tree: usize, shape: &SparseTree, child: usize, cell: &Cell, span: Span) {
        let of = &shape.nodes[child];
        match of.kind {
            NodeKind::Dense | NodeKind::Bitmasked => self.clear_cells(tree, shape, child, cell, span),
            NodeKind::Pointer => {
                let entries = self.at(span).i32(of.count() as i32);
                self.count_up(entries, span, |lowerer, number| {
                    let word = lowerer.word_of(cell, of.offset, Some(number), span);
                    lowerer.drop_entry(tree, cell, word, of.pool, None, span);
                });
            }
            NodeKind::Dynamic => self.drop_list(tree, shape, cell, child, span),
        }
    }

    /// Makes all cells of a node zero that lie in one cell of its parent.
    fn clear_cells(&mut self, tree: usize, shape: &SparseTree, child: usize, cell: &Cell, span: Span) {
        let of = &shape.nodes[child];
        let mut inner = cell.clone();
        inner.offset += of.offset + of.cells;
        let dimensions: Vec<_> = of.strides().into_iter().filter(|&(extent, _)| extent > 1).collect();
        self.clear_along(tree, shape, child, inner, &dimensions, span);
    }

    fn clear_along(
        &mut self,
        tree: usize,
        shape: &SparseTree,
        child: usize,
        cell: Cell,
        dimensions: &[(u32, u64)],
        span: Span,
    ) {
        let Some((&(extent, stride), rest)) = dimensions.split_first() else {
            if shape.nodes[child].kind == NodeKind::Bitmasked {
                self.set_mark(tree, child, &cell, mark::INACTIVE, span);
            }
            return self.clear_cell(tree, shape, child, &cell, span);
        };
        let end = self.at(span).i32(extent as i32);
        self.count_up(end, span, |lowerer, digit| {
            let mut cell = cell;
            cell.digits.push((digit, stride));
            lowerer.clear_along(tree, shape, child, cell, rest, span);
        });
    }

    /// At the top of a kernel or branch, after a statement: clears what it gave up.
    pub(crate) fn clear_retired(&mut self, span: Span) {
        if !self.at_top_level() {
            return;
        }
        for tree in 0..self.trees.len() {
            if std::mem::take(&mut self.trees[tree].retired) {
                let shape = self.trees[tree].tree.clone();
                for pool in 1..shape.pools.len() {
                    self.clear_pool(tree, &shape, pool, span);
                }
            }
        }
    }

    fn clear_pool(&mut self, tree: usize, shape: &SparseTree, pool: usize, span: Span) {
        let node = shape.pools[pool].node;
        let of = &shape.nodes[node];
        let branch = self.blocks.heads.len();
        let adopts = *self.trees[tree].first_clearing.get_or_insert(branch) == branch;
        if of.kind != NodeKind::Dynamic {
            self.for_given_up(tree, pool, span, |lowerer, slot, found| {
                let mut marked = lowerer.is_own(found, span);
                if adopts {
                    let adopted = lowerer.adopt(tree, pool, slot, found, span);
                    marked = lowerer.at(span).bit(BitOp::Or, marked, adopted);
                }
                lowerer.when(marked, span, |lowerer| {
                    let cell = lowerer.slot_cell(shape, node, slot);
                    lowerer.clear_cell(tree, shape, node, &cell, span);
                    lowerer.release(tree, pool, slot, None, span);
                });
            });
            return;
        }
        self.for_given_up(tree, pool, span, |lowerer, slot, found| {
            let own = lowerer.is_own(found, span);
            lowerer.when(own, span, |lowerer| lowerer.clear_chunk(tree, shape, node, slot, span));
            if adopts {
                lowerer.adopt_run(tree, shape, node, slot, found, span);
            }
        });
        // Runs are free once all of their chunks are clear.
        self.for_given_up(tree, pool, span, |lowerer, slot, found| {
            let own = lowerer.is_own(found, span);
            lowerer.when(own, span, |lowerer| {
                let class = lowerer.load_header(tree, pool, slot, Header::Class, span);
                lowerer.release(tree, pool, slot, Some(class), span);
            });
        });
    }

    fn clear_chunk(&mut self, tree: usize, shape: &SparseTree, node: usize, slot: Value, span: Span) {
        let of = &shape.nodes[node];
        let cell = self.slot_cell(shape, node, slot);
        if of.chunk == 1 {
            return self.clear_cell(tree, shape, node, &cell, span);
        }
        let end = self.at(span).i32(of.chunk as i32);
        self.count_up(end, span, |lowerer, number| {
            let mut cell = cell;
            cell.digits.push((number, of.cell_bytes));
            lowerer.clear_cell(tree, shape, node, &cell, span);
        });
    }

    /// Whether this launch and branch has given up the cell of a slot in this state.
    fn is_own(&mut self, found: Value, span: Span) -> Value {
        let mark = self.mark(span);
        self.at(span).compare(CompareOp::Eq, found, mark)
    }

    /// Makes the mark of a slot in this state its own, if it is nobody's; whether it did.
    fn adopt(&mut self, tree: usize, pool: usize, slot: Value, found: Value, span: Span) -> Value {
        let mark = self.mark(span);
        let mut builder = self.at(span);
        let nobodys = builder.i32(GIVEN_UP);
        let is_nobodys = builder.compare(CompareOp::Eq, found, nobodys);
        let Some((base, path)) = self.header((tree, pool), slot, Header::State, span) else {
            return is_nobodys;
        };
        let adopted = self.at(span).if_else(
            is_nobodys,
            |b| {
                let old = b.atomic_cas(base, &path, nobodys, mark);
                vec![b.compare(CompareOp::Eq, old, nobodys)]
            },
            |b| vec![b.constant(Const::bool(false))],
        );
        adopted[0]
    }

    /// Likewise of a run that begins with this slot: all of its chunks are cleared here, and the first one has the mark from now on.
    fn adopt_run(
        &mut self,
        tree: usize,
        shape: &SparseTree,
        node: usize,
        slot: Value,
        found: Value,
        span: Span,
    ) {
        let pool = shape.nodes[node].pool;
        let class = self.load_header(tree, pool, slot, Header::Class, span);
        let begins = positive(&mut self.at(span), class);
        self.when(begins, span, |lowerer| {
            let adopted = lowerer.adopt(tree, pool, slot, found, span);
            lowerer.when(adopted, span, |lowerer| {
                let mut builder = lowerer.at(span);
                let (one, less) = (builder.i32(1), builder.i32(-1));
                let run = builder.arith(ArithOp::Add, class, less);
                let count = builder.bit(BitOp::Shl, one, run);
                lowerer.count_up(count, span, |lowerer, number| {
                    let chunk = lowerer.at(span).arith(ArithOp::Add, slot, number);
                    lowerer.clear_chunk(tree, shape, node, chunk, span);
                    let found = lowerer.load_header(tree, pool, chunk, Header::State, span);
                    let nobodys = lowerer.at(span).i32(GIVEN_UP);
                    let is_nobodys = lowerer.at(span).compare(CompareOp::Eq, found, nobodys);
                    lowerer.when(is_nobodys, span, |lowerer| lowerer.unmark(tree, pool, chunk, span));
                });
            });
        });
    }

    /// A parallel loop over the slots of a pool, with their states, if some cell of it is given up.
    fn for_given_up(
        &mut self,
        tree: usize,
        pool: usize,
        span: Span,
        build: impl FnOnce(&mut Self, Value, Value),
    ) {
        let end = self.slots_end(tree, pool, span);
        let retired = self.load_state(tree, pool, state::RETIRED, span);
        let mut builder = self.at(span);
        let one = builder.i32(1);
        let any = positive(&mut builder, retired);
        let end = builder.select(any, end, one);
        let body = self.kernel.add_region();
        let slot = self.kernel.add_region_param(body, Type::I32);
        let outer = std::mem::replace(&mut self.region, body);
        let found = self.load_header(tree, pool, slot, Header::State, span);
        build(self, slot, found);
        self.at(span).yields(&[]);
        self.region = outer;
        let attributes = ParallelFor { axes: 1, ..ParallelFor::default() };
        self.at(span).op(OpKind::ParallelFor(Box::new(attributes)), [one, end], [], [body]);
    }

    /// A slot that is clear is free; of a list only the first of a run stands for it, which has a class.
    fn release(&mut self, tree: usize, pool: usize, slot: Value, class: Option<Value>, span: Span) {
        self.unmark(tree, pool, slot, span);
        let less = self.at(span).i32(-1);
        let Some(class) = class else { return self.give_slot(tree, pool, slot, None, span) };
        let first = positive(&mut self.at(span), class);
        self.when(first, span, |lowerer| {
            let run = lowerer.at(span).arith(ArithOp::Add, class, less);
            lowerer.give_slot(tree, pool, slot, Some(run), span);
        });
    }

    /// A slot is not given up any more.
    fn unmark(&mut self, tree: usize, pool: usize, slot: Value, span: Span) {
        let zero = self.at(span).i32(0);
        self.store_header(tree, pool, slot, Header::State, zero, span);
        let (base, at) = self.state(tree, pool, state::RETIRED, span);
        let less = self.at(span).i32(-1);
        self.at(span).atomic(AtomicOp::Add, base, &[at], less);
    }

    /// Gives up all cells of a node and below.
    pub(crate) fn deactivate_all(&mut self, tree: usize, node: usize, span: Span) {
        let shape = self.trees[tree].tree.clone();
        self.forget_visits(tree);
        self.trees[tree].retired = true;
        self.trees[tree].gives_up = true;
        self.drop_below(tree, &shape, node, span);
    }

    fn drop_below(&mut self, tree: usize, shape: &SparseTree, node: usize, span: Span) {
        let of = &shape.nodes[node];
        match of.kind {
            NodeKind::Dense => {
                for &child in &of.children {
                    if let TreeChild::Node(child) = child {
                        self.drop_below(tree, shape, child, span);
                    }
                }
            }
            NodeKind::Pointer | NodeKind::Dynamic => self.drop_pool(tree, shape, of.pool, span),
            NodeKind::Bitmasked => {
                self.for_cells_of(tree, shape, node, span, |lowerer, cell| {
                    lowerer.set_mark(tree, node, cell, mark::INACTIVE, span);
                    lowerer.clear_cell(tree, shape, node, cell, span);
                });
            }
        }
    }

    /// Gives up all slots of a pool, and takes their entries away.
    fn drop_pool(&mut self, tree: usize, shape: &SparseTree, pool: usize, span: Span) {
        let of = &shape.nodes[shape.pools[pool].node];
        let parent = of.parent.map_or(0, |parent| shape.nodes[parent].pool);
        let end = self.slots_end(tree, pool, span);
        let one = self.at(span).i32(1);
        self.for_ranges(&[(one, end)], span, |lowerer, slots| {
            let slot = slots[0];
            let found = lowerer.load_header(tree, pool, slot, Header::State, span);
            let mut active = positive(&mut lowerer.at(span), found);
            let is_list = of.kind == NodeKind::Dynamic;
            if is_list {
                // The first chunk stands for its run.
                let class = lowerer.load_header(tree, pool, slot, Header::Class, span);
                let begins = positive(&mut lowerer.at(span), class);
                active = lowerer.at(span).bit(BitOp::And, active, begins);
            }
            lowerer.when(active, span, |lowerer| {
                if is_list {
                    let name = format!("tree{tree}_drop");
                    lowerer.whole_step(&name, &[slot], span, |lowerer, slot| {
                        lowerer.drop_slot(tree, pool, (parent, is_list), slot[0], span);
                    });
                } else {
                    lowerer.drop_slot(tree, pool, (parent, is_list), slot, span);
                }
            });
        });
    }

    /// Gives up a slot, or the run that begins with it, unless somebody else has taken its entry away.
    fn drop_slot(
        &mut self,
        tree: usize,
        pool: usize,
        (parent, is_list): (usize, bool),
        slot: Value,
        span: Span,
    ) {
        let words = self.view(tree, View::Words(parent));
        let of_parent = (parent > 0).then(|| self.load_header(tree, pool, slot, Header::Parent, span));
        let place = |word: Value| -> Vec<_> { of_parent.into_iter().chain([word]).collect() };
        let entry = self.load_header(tree, pool, slot, Header::Entry, span);
        let mut run = None;
        if is_list {
            let length = self.load_header(tree, pool, slot, Header::List, span);
            let class = self.load_header(tree, pool, slot, Header::Class, span);
            let mut builder = self.at(span);
            let (zero, less, next) = (builder.i32(0), builder.i32(-1), builder.i32(list::VISITED as i32));
            let visited = builder.arith(ArithOp::Add, length, next);
            for word in [length, visited] {
                builder.atomic(AtomicOp::Exchange, words, &place(word), zero);
            }
            run = Some(builder.arith(ArithOp::Add, class, less));
        }
        let mut builder = self.at(span);
        let zero = builder.i32(0);
        let old = builder.atomic_cas(words, &place(entry), slot, zero);
        let mine = builder.compare(CompareOp::Eq, old, slot);
        self.when(mine, span, |lowerer| lowerer.retire(tree, pool, slot, run, span));
    }
}
