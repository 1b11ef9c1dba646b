//! How a cell that has a slot of its own is made: one function for each such node, called where an entry is not there yet.
//!
//! ```text
//! while entry is no slot:
//!     if cas(entry, 0, LOCKED) == 0:            one thread wins, the others wait for the entry
//!         slot = a free one, else the next that was never given out
//!         header of slot = …
//!         entry = slot
//! ```
//!
//! The cell itself is zero already: memory begins so, and cells are cleared before their slots are free again. Nothing is ordered
//! by fences: what others may read before the next task is the entry, one word, and the cell, which is zero.
//!
//! Law: **nothing ends a thread between the first and the last write of such a step**, from the lock to the entry and from a count to its slot: the next thread
//! would wait for it for ever. So these steps are functions that a request to stop does not end ([`is_whole`](octants_ir::Function::is_whole)); what may wait for
//! long, memory, is given up when the launch is to stop, and the step is undone.
//!
//! Slots that were never given out need memory, which a device may give them while the kernel runs: whoever comes near the last slot that has some
//! says so, and who has passed it asks for more, and waits where somebody else gives it.
//!
//! Free slots of a class are a stack: a count, and an array in which position `k` holds a slot or 0. Whoever lowers the count to
//! `k` takes what is at `k`, and waits if that is not there yet; whoever raises it from `k` puts a slot there, and waits until the one
//! before is taken. A thread that lowers it below zero raises it again. So any number of threads take and give back at once.

use octants_diag::Span;
use octants_ir::ops::{ArithOp, AssertKind, AtomicOp, BitOp, CompareOp};
use octants_ir::sparse::{Header, list, state};
use octants_ir::{Data, Func, NodeKind, Scalar, Type, Value};

use super::{View, positive};
use crate::host::Host;
use crate::lower::Lowerer;

/// What an entry holds while its cell is being made.
const LOCKED: i32 = -1;

/// How often a thread looks whether there is memory: half a minute on a GPU. Mapping takes milliseconds; a host that cannot do it ends the
/// wait by an error, and one that wants the launch to stop by saying so.
const MAX_LOOKS: i32 = 1 << 24;

impl<H: Host> Lowerer<'_, H> {
    /// The function that gives the slot of a node's cell, after making it where it is not there.
    ///
    /// It takes the slot of the parent's pool, the word of the entry there (of a list: the word where it begins, and the run), and the
    /// cell's index (of a list: the list's).
    pub(super) fn maker(&mut self, tree: usize, node: usize, span: Span) -> Func {
        if let Some(&(_, known)) = self.trees[tree].makers.iter().find(|(of, _)| *of == node) {
            return known;
        }
        let word: Data = Scalar::I32.into();
        let function = self.kernel.add_function(format!("tree{tree}_new{node}"), [word]);
        self.kernel.functions[function].is_cold = true;
        self.kernel.functions[function].is_whole = true;
        self.trees[tree].makers.push((node, function));
        let shape = self.trees[tree].tree.clone();
        let is_list = shape.nodes[node].kind == NodeKind::Dynamic;
        let count = shape.axes(node).len() - usize::from(is_list);
        let param =
            |lowerer: &mut Self, name: String| lowerer.kernel.add_function_param(function, name, Type::I32);
        let parent_slot = param(self, "parent".to_owned());
        let word = param(self, "word".to_owned());
        let run = is_list.then(|| param(self, "run".to_owned()));
        let coordinates: Vec<_> = (0..count).map(|axis| param(self, format!("at{axis}"))).collect();
        let body = self.kernel.functions[function].body;
        let outer = std::mem::replace(&mut self.region, body);
        let new = NewCell { tree, node, parent_slot, word, run, coordinates };
        let slot = self.make_cell(&new, span);
        self.at(span).returns(&[slot]);
        self.region = outer;
        function
    }

    fn make_cell(&mut self, new: &NewCell, span: Span) -> Value {
        let shape = self.trees[new.tree].tree.clone();
        let parent = shape.nodes[new.node].parent.map_or(0, |parent| shape.nodes[parent].pool);
        let base = self.view(new.tree, View::Words(parent));
        let mut builder = self.at(span);
        let entry_word = match new.run {
            None => new.word,
            Some(run) => {
                let runs = builder.i32(list::RUNS as i32);
                let word = builder.arith(ArithOp::Add, new.word, runs);
                builder.arith(ArithOp::Add, word, run)
            }
        };
        let path: Vec<_> = (parent > 0).then_some(new.parent_slot).into_iter().chain([entry_word]).collect();
        let none = builder.i32(0);
        let found = builder.local(Scalar::I32.into());
        builder.store(found, &[], none);
        let condition = builder.region_of(&[], |builder, _| {
            let slot = builder.load(found, &[]);
            let zero = builder.i32(0);
            vec![builder.compare(CompareOp::Le, slot, zero)]
        });
        let attempt = self.kernel.add_region();
        let outer = std::mem::replace(&mut self.region, attempt);
        let mut builder = self.at(span);
        let zero = builder.i32(0);
        // Who waits only looks: an update that fails would hold up those that others are waiting for.
        let seen = builder.volatile_load(base, &path);
        builder.store(found, &[], seen);
        let unlocked = builder.compare(CompareOp::Eq, seen, zero);
        self.when(unlocked, span, |lowerer| {
            let mut builder = lowerer.at(span);
            let locked = builder.i32(LOCKED);
            let old = builder.atomic_cas(base, &path, zero, locked);
            builder.store(found, &[], old);
            let won = builder.compare(CompareOp::Eq, old, zero);
            lowerer.when(won, span, |lowerer| {
                let slot = lowerer.fill_entry(new, (base, &path), entry_word, span);
                lowerer.at(span).store(found, &[], slot);
            });
        });
        self.at(span).yields(&[]);
        self.region = outer;
        let mut builder = self.at(span);
        builder.op(octants_ir::OpKind::While, [], [], [condition, attempt]);
        builder.load(found, &[])
    }

    /// Gives an entry that this thread has locked a slot.
    fn fill_entry(
        &mut self,
        new: &NewCell,
        (base, path): (Value, &[Value]),
        entry_word: Value,
        span: Span,
    ) -> Value {
        let shape = self.trees[new.tree].tree.clone();
        let slot = self.take_slot(new, span);
        self.write_headers(new, slot, entry_word, span);
        let mut builder = self.at(span);
        // Nobody else writes an entry that is locked.
        builder.store(base, path, slot);
        let some = positive(&mut builder, slot);
        let of = &shape.nodes[new.node];
        let slots = self.load_state(new.tree, of.pool, state::CAPACITY, span);
        let message = format!(
            "out of memory: the pool of a {} node is full, all {{}} slots that it has room for are in use (those that are given up are free after the task; `oc.init(sparse_memory_limit=…)` bounds a pool)",
            of.kind.name()
        );
        self.at(span).assert(AssertKind::Memory, some, &message, &[slots]);
        slot
    }

    /// A slot, or the first of a run of them, that nobody else has; 0 if there is none.
    fn take_slot(&mut self, new: &NewCell, span: Span) -> Value {
        let (tree, run) = (new.tree, new.run);
        let pool = self.trees[tree].tree.nodes[new.node].pool;
        let (counts, first) = self.state(tree, pool, state::FREE, span);
        let free = self.view(tree, View::Free(pool));
        let (_, used) = self.state(tree, pool, state::USED, span);
        let (_, capacity) = self.state(tree, pool, state::CAPACITY, span);
        let (_, warning) = self.state(tree, pool, state::WARNING, span);
        let (_, limit) = self.state(tree, pool, state::LIMIT, span);
        let signal = self.view(tree, View::Signal(pool));
        let mut builder = self.at(span);
        let class = match run {
            None => first,
            Some(run) => builder.arith(ArithOp::Add, first, run),
        };
        let some = builder.load(counts, &[class]);
        let zero = builder.i32(0);
        let maybe = builder.compare(CompareOp::Gt, some, zero);
        let recycled = builder.if_else(
            maybe,
            |builder| {
                let less = builder.i32(-1);
                let count = builder.atomic(AtomicOp::Add, counts, &[class], less);
                let taken = builder.compare(CompareOp::Gt, count, zero);
                builder.if_else(
                    taken,
                    |builder| {
                        let position = builder.arith(ArithOp::Add, count, less);
                        let at = stack_position(builder, position, run);
                        builder.while_loop(
                            &[zero],
                            |builder, slot| (builder.compare(CompareOp::Eq, slot[0], zero), slot.to_vec()),
                            |builder, _| vec![builder.atomic(AtomicOp::Exchange, free, &[at], zero)],
                        )
                    },
                    |builder| {
                        let one = builder.i32(1);
                        builder.atomic(AtomicOp::Add, counts, &[class], one);
                        vec![zero]
                    },
                )
            },
            |_| vec![zero],
        )[0];
        let none = builder.compare(CompareOp::Eq, recycled, zero);
        builder.if_else(
            none,
            |builder| {
                let one = builder.i32(1);
                let count = match run {
                    None => one,
                    Some(run) => builder.bit(BitOp::Shl, one, run),
                };
                let before = builder.atomic(AtomicOp::Add, counts, &[used], count);
                let after = builder.arith(ArithOp::Add, before, count);
                let warned = builder.load(counts, &[warning]);
                let late = builder.compare(CompareOp::Ge, after, warned);
                let early = builder.compare(CompareOp::Lt, before, warned);
                let crossed = builder.bit(BitOp::And, late, early);
                store_if(builder, crossed, signal, after);
                let most = wait_for_memory(builder, counts, (capacity, limit), after);
                let fits = builder.compare(CompareOp::Le, after, most);
                builder.if_else(
                    fits,
                    |builder| vec![builder.arith(ArithOp::Add, before, one)],
                    |builder| {
                        builder.atomic(AtomicOp::Sub, counts, &[used], count);
                        // There may be memory again for the next one who asks.
                        builder.atomic(AtomicOp::Exchange, signal, &[], after);
                        vec![zero]
                    },
                )
            },
            |_| vec![recycled],
        )[0]
    }

    /// What loops and recycling have to know of the new cell, or of each chunk of a new run. Nothing for slot 0.
    fn write_headers(&mut self, new: &NewCell, slot: Value, entry_word: Value, span: Span) {
        let some = positive(&mut self.at(span), slot);
        let written = self.kernel.add_region();
        let outer = std::mem::replace(&mut self.region, written);
        let epoch = self.load_state(new.tree, 0, state::EPOCH, span);
        let mut builder = self.at(span);
        let (one, mask) = (builder.i32(1), builder.i32(super::loops::EPOCH_MASK));
        let epoch = builder.bit(BitOp::And, epoch, mask);
        let now = builder.arith(ArithOp::Add, epoch, one);
        match new.run {
            None => {
                self.write_header(new, slot, now, entry_word, &new.coordinates, span);
            }
            Some(run) => {
                let count = builder.bit(BitOp::Shl, one, run);
                let zero = builder.i32(0);
                let each = self.kernel.add_region();
                let number = self.kernel.add_region_param(each, Type::I32);
                let around = std::mem::replace(&mut self.region, each);
                self.write_chunk(new, slot, (run, count, number), now, entry_word, span);
                self.at(span).yields(&[]);
                self.region = around;
                self.at(span).op(octants_ir::OpKind::For, [zero, count], [], [each]);
            }
        }
        self.at(span).yields(&[]);
        self.region = outer;
        let mut builder = self.at(span);
        let other = builder.region_of(&[], |_, _| Vec::new());
        builder.op(octants_ir::OpKind::If, [some], [], [written, other]);
    }

    /// The header of one chunk of a run: which run, how many chunks it has, which of them.
    fn write_chunk(
        &mut self,
        new: &NewCell,
        first: Value,
        (run, count, number): (Value, Value, Value),
        now: Value,
        entry_word: Value,
        span: Span,
    ) {
        let shape = self.trees[new.tree].tree.clone();
        let of = &shape.nodes[new.node];
        let mut builder = self.at(span);
        let (zero, one) = (builder.i32(0), builder.i32(1));
        let slot = builder.arith(ArithOp::Add, first, number);
        // The run begins with chunk `2ʲ - 1`.
        let before = builder.arith(ArithOp::Sub, count, one);
        let chunk = builder.arith(ArithOp::Add, before, number);
        let cells = builder.i32(of.chunk as i32);
        let start = builder.arith(ArithOp::Mul, chunk, cells);
        let is_first = builder.compare(CompareOp::Eq, number, zero);
        let class = builder.arith(ArithOp::Add, run, one);
        let class = builder.select(is_first, class, zero);
        let mut coordinates = new.coordinates.clone();
        let rank = shape.axes(new.node).iter().position(|&axis| axis == of.splits[0].0);
        coordinates.insert(rank.unwrap_or(0), start);
        self.write_header(new, slot, now, entry_word, &coordinates, span);
        self.store_header(new.tree, of.pool, slot, Header::Class, class, span);
        self.store_header(new.tree, of.pool, slot, Header::List, new.word, span);
    }

    fn write_header(
        &mut self,
        new: &NewCell,
        slot: Value,
        now: Value,
        entry_word: Value,
        coordinates: &[Value],
        span: Span,
    ) {
        let pool = self.trees[new.tree].tree.nodes[new.node].pool;
        self.store_header(new.tree, pool, slot, Header::State, now, span);
        self.store_header(new.tree, pool, slot, Header::Parent, new.parent_slot, span);
        self.store_header(new.tree, pool, slot, Header::Entry, entry_word, span);
        for (axis, &coordinate) in coordinates.iter().enumerate() {
            self.store_header(new.tree, pool, slot, Header::Coordinate(axis as u32), coordinate, span);
        }
    }

    /// A call of a new function, which a request to stop does not end. It gets these values, and what it uses of the kernel's own; both may stand in a
    /// function.
    pub(super) fn whole_step(
        &mut self,
        name: &str,
        values: &[Value],
        span: Span,
        build: impl FnOnce(&mut Self, &[Value]),
    ) {
        let function = self.kernel.add_function(format!("{name}{}", self.kernel.functions.len()), []);
        self.kernel.functions[function].is_whole = true;
        let params: Vec<_> = values
            .iter()
            .enumerate()
            .map(|(n, &value)| {
                let ty = self.kernel.ty(value);
                self.kernel.add_function_param(function, format!("v{n}"), ty)
            })
            .collect();
        let body = self.kernel.functions[function].body;
        let outer = std::mem::replace(&mut self.region, body);
        build(self, &params);
        self.at(span).returns(&[]);
        self.region = outer;
        self.at(span).call(function, values);
    }

    /// Gives a slot back that has been cleared, or the first of a run of them.
    pub(super) fn give_slot(
        &mut self,
        tree: usize,
        pool: usize,
        slot: Value,
        run: Option<Value>,
        span: Span,
    ) {
        let values: Vec<_> = std::iter::once(slot).chain(run).collect();
        let name = format!("tree{tree}_free");
        self.whole_step(&name, &values, span, |lowerer, values| {
            lowerer.push_slot(tree, pool, values[0], values.get(1).copied(), span);
        });
    }

    fn push_slot(&mut self, tree: usize, pool: usize, slot: Value, run: Option<Value>, span: Span) {
        let (counts, first) = self.state(tree, pool, state::FREE, span);
        let free = self.view(tree, View::Free(pool));
        let mut builder = self.at(span);
        let class = match run {
            None => first,
            Some(run) => builder.arith(ArithOp::Add, first, run),
        };
        let (zero, one, less) = (builder.i32(0), builder.i32(1), builder.i32(-1));
        let position = builder.while_loop(
            &[less],
            |builder, position| (builder.compare(CompareOp::Lt, position[0], zero), position.to_vec()),
            |builder, _| {
                let count = builder.atomic(AtomicOp::Add, counts, &[class], one);
                let too_low = builder.compare(CompareOp::Lt, count, zero);
                builder.if_else(
                    too_low,
                    |builder| {
                        builder.atomic(AtomicOp::Add, counts, &[class], less);
                        Vec::new()
                    },
                    |_| Vec::new(),
                );
                vec![count]
            },
        )[0];
        let at = stack_position(&mut builder, position, run);
        builder.while_loop(
            &[one],
            |builder, old| {
                let zero = builder.i32(0);
                let other = builder.compare(CompareOp::Eq, old[0], zero);
                (builder.bit_unary(octants_ir::ops::BitUnary::Not, other), old.to_vec())
            },
            |builder, _| vec![builder.atomic_cas(free, &[at], zero, slot)],
        );
    }
}

/// Says a number where a condition holds.
fn store_if(builder: &mut octants_ir::Builder<'_>, condition: Value, at: Value, number: Value) {
    builder.if_else(
        condition,
        |builder| {
            builder.atomic(AtomicOp::Exchange, at, &[], number);
            Vec::new()
        },
        |_| Vec::new(),
    );
}

/// How many slots have memory, after asking for so many and a wait until they have; less than zero if there is none.
fn wait_for_memory(
    builder: &mut octants_ir::Builder<'_>,
    counts: Value,
    (capacity, limit): (Value, Value),
    wanted: Value,
) -> Value {
    let (most, looks) = (builder.volatile_load(counts, &[capacity]), builder.i32(MAX_LOOKS));
    builder.while_loop(
        &[most, looks],
        |builder, state| {
            let limit = builder.volatile_load(counts, &[limit]);
            let lacks = builder.compare(CompareOp::Gt, wanted, state[0]);
            let zero = builder.i32(0);
            let given = builder.compare(CompareOp::Ge, state[0], zero);
            let possible = builder.compare(CompareOp::Le, wanted, limit);
            let patient = positive(builder, state[1]);
            let hopes = builder.bit(BitOp::And, possible, patient);
            let hopes = builder.bit(BitOp::And, hopes, given);
            (builder.bit(BitOp::And, lacks, hopes), state.to_vec())
        },
        |builder, state| {
            let less = builder.i32(-1);
            let left = builder.arith(ArithOp::Add, state[1], less);
            vec![builder.grow_pool(counts, &[capacity], wanted), left]
        },
    )[0]
}

/// Where a class' stack has its position `k`: an odd number times the size of its runs, so that no two classes share one.
fn stack_position(builder: &mut octants_ir::Builder<'_>, position: Value, run: Option<Value>) -> Value {
    let Some(run) = run else { return position };
    let one = builder.i32(1);
    let double = builder.bit(BitOp::Shl, position, one);
    let odd = builder.arith(ArithOp::Add, double, one);
    builder.bit(BitOp::Shl, odd, run)
}

/// What a maker is called with.
struct NewCell {
    tree: usize,
    node: usize,
    parent_slot: Value,
    word: Value,
    run: Option<Value>,
    coordinates: Vec<Value>,
}
