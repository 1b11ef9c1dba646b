//! Loops over what is active.
//!
//! The active cells of a node that has slots are those slots of its pool that are in use: each says its own index, so that nothing has
//! to be listed before a loop, and neighbouring iterations lie side by side. A loop over a tree runs over the slots of the lowest such
//! node on the path, and over the digits of what lies in a cell of it:
//!
//! ```text
//! parallel_for (slot, i, j) in (1..used + 1, 0..4, 0..4):
//!     if state[slot] > 0 [and bit (i, j) is set] [and the element is below the length]:
//!         …
//! ```
//!
//! Cells that the loop itself makes are not visited: where its body makes cells, slots of the loop's own epoch and marks that are new
//! are left out, and lengths are those of when it began, copied before it.

use octants_diag::{Code, Span};
use octants_ir::ops::{ArithOp, AtomicOp, BitOp, BitUnary, CompareOp, ParallelFor};
use octants_ir::sparse::{Header, SparseTree, list, mark, state};
use octants_ir::{NodeKind, OpKind, Type, Value};

use super::cells::{Cell, Need};
use super::{View, mark_constant, positive};
use crate::ast::{Expr, ExprKind, Stmt};
use crate::host::Host;
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::flow::Loop;
use crate::lower::data::sparse::SparseLoop;
use crate::lower::data::sparse::SparsePlace;
use crate::lower::statements::exits::any_statement;

/// Epochs are counted in so many bits; the state of a slot is one more, so that it is above zero.
pub(super) const EPOCH_MASK: i32 = (1 << 30) - 1;

/// The cell that the body of a loop is run for.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    tree: usize,
    node: usize,
    origin: Vec<i32>,
    indices: Vec<Value>,
    /// The cell of the node that has slots, and the one that is visited, in the same slot.
    outer: Cell,
    cell: Cell,
    /// Whether it is still sure to be there.
    is_there: bool,
    /// How many run-time loops are around it.
    loops: usize,
}

/// What an iteration is: the cell, its index, and the conditions under which it is visited.
struct Iteration {
    outer: Cell,
    cell: Cell,
    indices: Vec<Value>,
    slot: Option<Value>,
    /// Bitmasked nodes on the way, and their cells.
    marks: Vec<(usize, Cell)>,
    /// Of an element of a list: its index there.
    element: Option<Value>,
}

impl<H: Host> Lowerer<'_, H> {
    /// A loop over the active cells of a node: what describes it, and the bounds of its ranges.
    pub(crate) fn sparse_domain(
        &mut self,
        tree: usize,
        node: usize,
        origin: Vec<i32>,
        span: Span,
    ) -> (SparseLoop, Vec<(Value, Value)>) {
        let shape = self.trees[tree].tree.clone();
        let bounds = self.ranges(tree, &shape, node, span);
        let epoch = self.load_state(tree, 0, state::EPOCH, span);
        let activations = self.activations(tree, node);
        let only = Cell { pool: 0, slot: None, digits: Vec::new(), offset: 0, there: None };
        let mut shared_marks = Vec::new();
        for at in shape.path(node).into_iter().take_while(|&at| shape.nodes[at].count() == 1) {
            if shape.nodes[at].kind == NodeKind::Bitmasked && shape.nodes[at].pool == 0 {
                shared_marks.push((at, self.is_marked(tree, at, &only, span)));
            }
        }
        (SparseLoop { tree, node, origin, elements: Vec::new(), epoch, activations, shared_marks }, bounds)
    }

    /// The slots of the node's pool, and the digits of what lies in a cell of it.
    fn ranges(&mut self, tree: usize, shape: &SparseTree, node: usize, span: Span) -> Vec<(Value, Value)> {
        let pool = shape.nodes[node].pool;
        let mut bounds = Vec::new();
        if pool > 0 {
            let end = self.slots_end(tree, pool, span);
            bounds.push((self.at(span).i32(1), end));
        }
        for extent in inner_extents(shape, node) {
            let mut builder = self.at(span);
            bounds.push((builder.i32(0), builder.i32(extent as i32)));
        }
        bounds
    }

    /// What the values of the ranges stand for; of cells with `elements` the last ranges say which element.
    fn iteration(
        &mut self,
        (tree, node): (usize, usize),
        origin: &[i32],
        elements: &[u32],
        ranges: &[Value],
        span: Span,
    ) -> Iteration {
        let shape = self.trees[tree].tree.clone();
        let pool = shape.nodes[node].pool;
        let owner = shape.pools[pool].node;
        let mut ranges = ranges.iter().copied();
        let slot = (pool > 0).then(|| ranges.next()).flatten();
        let axes = shape.axes(node);
        let mut parts: Vec<Vec<(Value, u32)>> = vec![Vec::new(); axes.len()];
        let rank_of = |axis: u8| axes.iter().position(|&known| known == axis).unwrap_or(0);
        let mut element = None;
        let mut outer = Cell { pool: 0, slot: None, digits: Vec::new(), offset: 0, there: None };
        if let Some(slot) = slot {
            outer = self.slot_cell(&shape, owner, slot);
            let top = &shape.nodes[owner];
            // Of one cell there is one slot in use: its index is that of the slot, so that slots are not taken to meet in one element.
            let is_only = shape.shape(owner).iter().all(|&extent| extent == 1);
            for (position, axis) in shape.axes(owner).into_iter().enumerate() {
                let word = Header::Coordinate(position as u32);
                let mut coordinate = self.load_header(tree, pool, slot, word, span);
                if top.kind == NodeKind::Dynamic && axis == top.splits[0].0 {
                    // The last run may have chunks beyond the list's greatest length.
                    element = Some(coordinate);
                } else if !is_only {
                    coordinate = self.bounded(coordinate, shape.shape(owner)[position], span);
                }
                parts[rank_of(axis)].push((coordinate, shape.below(owner, node, axis)));
            }
            if top.kind == NodeKind::Dynamic && top.chunk > 1 {
                let within = ranges.next().unwrap_or(slot);
                outer.digits.push((within, top.cell_bytes));
                parts[rank_of(top.splits[0].0)].push((within, 1));
                element = element.map(|start| self.at(span).arith(ArithOp::Add, start, within));
            }
        }
        let mut cell = outer.clone();
        let mut marks = Vec::new();
        for at in shape.path(node).into_iter().skip_while(|&at| at != owner).skip(1) {
            let of = &shape.nodes[at];
            cell.offset += of.offset + of.cells;
            for (&(axis, extent), (_, stride)) in of.splits.iter().zip(of.strides()) {
                if extent == 1 {
                    continue;
                }
                let Some(digit) = ranges.next() else { continue };
                cell.digits.push((digit, stride));
                parts[rank_of(axis)].push((digit, shape.below(at, node, axis)));
            }
            if of.kind == NodeKind::Bitmasked {
                marks.push((at, cell.clone()));
            }
        }
        for (parts, &extent) in parts.iter_mut().zip(elements) {
            for (_, weight) in parts.iter_mut() {
                *weight *= extent;
            }
            if extent > 1 {
                parts.extend(ranges.next().map(|element| (element, 1)));
            }
        }
        let mut indices = Vec::with_capacity(parts.len());
        for (parts, &origin) in parts.into_iter().zip(origin) {
            let mut builder = self.at(span);
            let mut index = None;
            for (value, weight) in parts {
                let weighted = if weight == 1 {
                    value
                } else {
                    let weight = builder.i32(weight as i32);
                    builder.arith(ArithOp::Mul, value, weight)
                };
                index = Some(index.map_or(weighted, |index| builder.arith(ArithOp::Add, index, weighted)));
            }
            let index = index.unwrap_or_else(|| builder.i32(0));
            indices.push(if origin == 0 {
                index
            } else {
                let origin = builder.i32(origin);
                builder.arith(ArithOp::Add, index, origin)
            });
        }
        Iteration { outer, cell, indices, slot, marks, element }
    }

    /// The same number, which is below `extent`: what an index that is made of it can be is known, so that its digits are taken apart again.
    fn bounded(&mut self, value: Value, extent: u32, span: Span) -> Value {
        let mask = extent.checked_next_power_of_two().map_or(u32::MAX >> 1, |above| above - 1);
        let mut builder = self.at(span);
        let mask = builder.i32(mask as i32);
        builder.bit(BitOp::And, value, mask)
    }

    /// Whether an iteration is of a cell that is active; for a loop that makes cells, whether it was when the loop began. Of some marks
    /// it is `known`.
    fn is_visited(
        &mut self,
        tree: usize,
        of: &Iteration,
        since: Option<Value>,
        known: &[(usize, Value)],
        span: Span,
    ) -> Option<Value> {
        let shape = self.trees[tree].tree.clone();
        let mut conditions = Vec::new();
        if let Some(slot) = of.slot {
            let pool = of.outer.pool;
            let found = self.load_header(tree, pool, slot, Header::State, span);
            let mut builder = self.at(span);
            conditions.push(positive(&mut builder, found));
            if let Some(epoch) = since {
                let (one, mask) = (builder.i32(1), builder.i32(EPOCH_MASK));
                let next = builder.arith(ArithOp::Add, epoch, one);
                let next = builder.bit(BitOp::And, next, mask);
                let fresh = builder.arith(ArithOp::Add, next, one);
                let same = builder.compare(CompareOp::Eq, found, fresh);
                conditions.push(builder.bit_unary(BitUnary::Not, same));
            }
            if let Some(element) = of.element {
                let length = self.list_length(tree, &shape, pool, slot, since.is_some(), span);
                conditions.push(self.at(span).compare(CompareOp::Lt, element, length));
            }
        }
        for (node, cell) in &of.marks {
            let known = known.iter().find(|(at, _)| at == node);
            conditions.push(if let Some(&(_, marked)) = known {
                marked
            } else if since.is_some() {
                let (base, path) = self.mark_place(tree, *node, cell);
                let mut builder = self.at(span);
                let found = builder.load(base, &path);
                let old = mark_constant(&mut builder, mark::ACTIVE);
                builder.compare(CompareOp::Eq, found, old)
            } else {
                self.is_marked(tree, *node, cell, span)
            });
        }
        let mut builder = self.at(span);
        conditions.into_iter().reduce(|all, one| builder.bit(BitOp::And, all, one))
    }

    /// The length of the list that a chunk belongs to, now or when a loop began.
    fn list_length(
        &mut self,
        tree: usize,
        shape: &SparseTree,
        pool: usize,
        slot: Value,
        visited: bool,
        span: Span,
    ) -> Value {
        let (base, mut path) = self.list_place(tree, shape, pool, slot, span);
        if visited {
            let mut builder = self.at(span);
            let next = builder.i32(list::VISITED as i32);
            if let Some(word) = path.last_mut() {
                *word = builder.arith(ArithOp::Add, *word, next);
            }
        }
        self.at(span).load(base, &path)
    }

    /// Where the list of a chunk begins.
    fn list_place(
        &mut self,
        tree: usize,
        shape: &SparseTree,
        pool: usize,
        slot: Value,
        span: Span,
    ) -> (Value, Vec<Value>) {
        let parent = shape.nodes[shape.pools[pool].node].parent.map_or(0, |parent| shape.nodes[parent].pool);
        let word = self.load_header(tree, pool, slot, Header::List, span);
        let base = self.view(tree, View::Words(parent));
        if parent == 0 {
            return (base, vec![word]);
        }
        let of = self.load_header(tree, pool, slot, Header::Parent, span);
        (base, vec![of, word])
    }

    /// The body of a loop over what is active, in the region of one iteration of its ranges.
    pub(crate) fn visit(
        &mut self,
        of: &SparseLoop,
        ranges: &[Value],
        span: Span,
        body: impl FnOnce(&mut Self, &[Value]) -> crate::lower::error::Fallible<()>,
    ) -> crate::lower::error::Fallible<()> {
        let iteration = self.iteration((of.tree, of.node), &of.origin, &of.elements, ranges, span);
        let loops = self.run_time_loops().count();
        self.visits.push(Visit {
            tree: of.tree,
            node: of.node,
            origin: of.origin.clone(),
            indices: iteration.indices.clone(),
            outer: iteration.outer.clone(),
            cell: iteration.cell.clone(),
            // An element's index is not that of a cell.
            is_there: of.elements.is_empty(),
            loops,
        });
        let opened = self.open_region(&[], |inner, _| body(inner, &iteration.indices));
        self.visits.pop();
        let (region, ()) = opened?;
        self.end_region(region, span, &[]);
        if self.options.has_run && self.makes_cells(of) {
            return Err(self.error_with_help(
                Code::NotDifferentiable,
                span,
                "the derivative of a loop that makes cells of the node that it visits is not supported",
                "which cells were there when it began is not known any more: write to fields below another node, or to the element that the loop visits",
            ));
        }
        let since = self.makes_cells(of).then_some(of.epoch);
        let Some(condition) = self.is_visited(of.tree, &iteration, since, &of.shared_marks, span) else {
            // Everything is there: the region's ops are the body's.
            let always = self.at(span).constant(octants_ir::Const::bool(true));
            let other = self.at(span).region_of(&[], |_, _| Vec::new());
            self.at(span).op(OpKind::If, [always], [], [region, other]);
            return Ok(());
        };
        let other = self.at(span).region_of(&[], |_, _| Vec::new());
        self.at(span).op(OpKind::If, [condition], [], [region, other]);
        Ok(())
    }

    /// How many places of the code make cells that a loop over the node would visit.
    fn activations(&self, tree: usize, node: usize) -> usize {
        let of = &self.trees[tree];
        let owner = of.tree.pools[of.tree.nodes[node].pool].node;
        let below = of.tree.path(node).into_iter().skip_while(|&at| at != owner);
        below.map(|at| of.activations[at]).sum()
    }

    /// Whether the loop's body, which has been lowered, may make cells that it would visit.
    fn makes_cells(&self, of: &SparseLoop) -> bool {
        let now = self.activations(of.tree, of.node);
        // A function that was lowered before may be called in it.
        now > of.activations || (now > 0 && !self.instances.is_empty())
    }

    /// Before a loop whose body has been lowered: cells that it makes are told from those that were there.
    pub(crate) fn begin_visits(&mut self, of: &SparseLoop, span: Span) {
        if !self.makes_cells(of) {
            return;
        }
        let (tree, node) = (of.tree, of.node);
        let shape = self.trees[tree].tree.clone();
        let (base, at) = self.state(tree, 0, state::EPOCH, span);
        let mut builder = self.at(span);
        let (one, mask) = (builder.i32(1), builder.i32(EPOCH_MASK));
        let next = builder.arith(ArithOp::Add, of.epoch, one);
        let next = builder.bit(BitOp::And, next, mask);
        builder.atomic(AtomicOp::Exchange, base, &[at], next);
        let pool = shape.nodes[node].pool;
        let owner = shape.pools[pool].node;
        if shape.nodes[owner].kind == NodeKind::Dynamic {
            self.keep_lengths(tree, &shape, pool, span);
        }
        let path = shape.path(node);
        for &at in path.iter().skip_while(|&&at| at != owner).skip(1) {
            if shape.nodes[at].kind == NodeKind::Bitmasked {
                self.age_marks(tree, &shape, at, span);
            }
        }
    }

    fn keep_lengths(&mut self, tree: usize, shape: &SparseTree, pool: usize, span: Span) {
        let end = self.slots_end(tree, pool, span);
        let one = self.at(span).i32(1);
        self.for_ranges(&[(one, end)], span, |lowerer, slots| {
            let slot = slots[0];
            let found = lowerer.load_header(tree, pool, slot, Header::State, span);
            let class = lowerer.load_header(tree, pool, slot, Header::Class, span);
            let mut builder = lowerer.at(span);
            let (one, active) = (builder.i32(1), positive(&mut builder, found));
            let first = builder.compare(CompareOp::Eq, class, one);
            let both = builder.bit(BitOp::And, active, first);
            lowerer.when(both, span, |lowerer| {
                let (base, mut path) = lowerer.list_place(tree, shape, pool, slot, span);
                let mut builder = lowerer.at(span);
                let length = builder.load(base, &path);
                let next = builder.i32(list::VISITED as i32);
                if let Some(word) = path.last_mut() {
                    *word = builder.arith(ArithOp::Add, *word, next);
                }
                builder.store(base, &path, length);
            });
        });
    }

    /// Marks that are new are so no more.
    fn age_marks(&mut self, tree: usize, shape: &SparseTree, node: usize, span: Span) {
        self.for_cells_of(tree, shape, node, span, |lowerer, cell| {
            let (base, path) = lowerer.mark_place(tree, node, cell);
            let mut builder = lowerer.at(span);
            let found = builder.load(base, &path);
            let new = mark_constant(&mut builder, mark::NEW);
            let is_new = builder.compare(CompareOp::Eq, found, new);
            lowerer.when(is_new, span, |lowerer| lowerer.set_mark(tree, node, cell, mark::ACTIVE, span));
        });
    }

    /// Runs code for every cell of a node whose slot is in use: parallel at the top of a kernel, else in order.
    pub(super) fn for_cells_of(
        &mut self,
        tree: usize,
        shape: &SparseTree,
        node: usize,
        span: Span,
        build: impl FnOnce(&mut Self, &Cell),
    ) {
        let bounds = self.ranges(tree, shape, node, span);
        let origin = vec![0; shape.axes(node).len()];
        self.for_ranges(&bounds, span, |lowerer, ranges| {
            let mut iteration = lowerer.iteration((tree, node), &origin, &[], ranges, span);
            iteration.marks.clear();
            iteration.element = None;
            match lowerer.is_visited(tree, &iteration, None, &[], span) {
                None => build(lowerer, &iteration.cell),
                Some(there) => lowerer.when(there, span, |lowerer| build(lowerer, &iteration.cell)),
            }
        });
    }

    pub(super) fn for_ranges(
        &mut self,
        bounds: &[(Value, Value)],
        span: Span,
        build: impl FnOnce(&mut Self, &[Value]),
    ) {
        if bounds.is_empty() {
            return build(self, &[]);
        }
        if !self.at_top_level() {
            return self.serial_ranges(bounds, &mut Vec::new(), span, build);
        }
        let body = self.kernel.add_region();
        let values: Vec<_> = bounds.iter().map(|_| self.kernel.add_region_param(body, Type::I32)).collect();
        let outer = std::mem::replace(&mut self.region, body);
        build(self, &values);
        self.at(span).yields(&[]);
        self.region = outer;
        let attributes = ParallelFor { axes: bounds.len() as u8, ..ParallelFor::default() };
        let operands: Vec<_> = bounds.iter().flat_map(|&(lo, hi)| [lo, hi]).collect();
        self.at(span).op(OpKind::ParallelFor(Box::new(attributes)), operands, [], [body]);
    }

    fn serial_ranges(
        &mut self,
        bounds: &[(Value, Value)],
        values: &mut Vec<Value>,
        span: Span,
        build: impl FnOnce(&mut Self, &[Value]),
    ) {
        let Some((&(lo, hi), rest)) = bounds.split_first() else { return build(self, values) };
        let body = self.kernel.add_region();
        values.push(self.kernel.add_region_param(body, Type::I32));
        let outer = std::mem::replace(&mut self.region, body);
        self.serial_ranges(rest, values, span, build);
        self.at(span).yields(&[]);
        self.region = outer;
        self.at(span).op(OpKind::For, [lo, hi], [], [body]);
    }

    /// The cell of an element that the innermost loops are visiting: its slot is at hand.
    pub(super) fn visited_cell(&mut self, place: &SparsePlace, need: Need, span: Span) -> Option<Cell> {
        let shape = self.trees[place.tree].tree.clone();
        let visit = self.visits.iter().rev().find(|visit| {
            visit.tree == place.tree
                && visit.is_there
                && visit.indices == place.indices
                && visit.origin == place.origin
                && shape.nodes[visit.node].pool == shape.nodes[place.node].pool
                && shape.axes(visit.node) == shape.axes(place.node)
        })?;
        // The next round of a loop inside comes after whatever gives cells up further down in its text.
        if self.run_time_loops().skip(visit.loops + 1).any(|inner| inner.gives_up) {
            return None;
        }
        if visit.node == place.node {
            return Some(visit.cell.clone());
        }
        let owner = shape.pools[visit.outer.pool].node;
        let same = |&axis: &u8| shape.below(owner, visit.node, axis) == shape.below(owner, place.node, axis);
        if !shape.axes(place.node).iter().all(same) {
            return None;
        }
        let (outer, tree, node) = (visit.outer.clone(), place.tree, place.node);
        let distances = self.distances(&place.indices, &place.origin, span);
        Some(self.descend_from(tree, &shape, outer, owner, node, &distances, need, span))
    }

    /// The loops around a statement, without those that are unrolled.
    fn run_time_loops(&self) -> impl Iterator<Item = &Loop> {
        self.frames.iter().flat_map(|frame| &frame.loops).filter(|around| !around.is_static())
    }

    /// Whether a loop's body may give up a cell that a loop around it visits, as far as the names of what it calls say.
    pub(crate) fn gives_up_visited(&self, body: &[Stmt]) -> bool {
        let gives_up = |stmt: &Stmt| stmt.expressions().into_iter().any(|expr| expr.any(&may_give_up));
        !self.visits.is_empty() && any_statement(body, &gives_up)
    }

    /// Cells of the tree are given up: those that are being visited may be among them.
    pub(super) fn forget_visits(&mut self, tree: usize) {
        self.visits.iter_mut().filter(|visit| visit.tree == tree).for_each(|visit| visit.is_there = false);
    }
}

/// Functions that give up no cells, beside those of the language.
const HARMLESS: [&str; 12] =
    ["range", "min", "max", "abs", "int", "float", "bool", "len", "print", "round", "pow", "isinstance"];

/// Whether an expression calls what gives up cells, or what may as far as its name says.
fn may_give_up(expr: &Expr) -> bool {
    let ExprKind::Call { callee, .. } = &expr.kind else { return false };
    match &callee.kind {
        ExprKind::Name(name) | ExprKind::Attribute { name, .. } => {
            let harmless = matches!(callee.kind, ExprKind::Name(_)) && HARMLESS.contains(&&**name);
            let known = Intrinsic::from_name(name).is_some() || harmless;
            name.starts_with("deactivate") || !known
        }
        _ => true,
    }
}

/// The digits inside a cell of the pool's node, on the way to the cells of `node`: their extents.
fn inner_extents(shape: &SparseTree, node: usize) -> Vec<u32> {
    let owner = shape.pools[shape.nodes[node].pool].node;
    let top = &shape.nodes[owner];
    let chunk = if top.kind == NodeKind::Dynamic { top.chunk } else { 1 };
    let below = shape.path(node).into_iter().skip_while(|&at| at != owner).skip(1);
    let extents = below.flat_map(|at| shape.nodes[at].splits.iter().map(|split| split.1).collect::<Vec<_>>());
    std::iter::once(chunk).chain(extents).filter(|&extent| extent > 1).collect()
}

#[cfg(test)]
mod tests {
    use octants_diag::FileId;

    use super::may_give_up;
    use crate::host::FunctionSource;
    use crate::parse::ParsedFile;

    /// Of one statement.
    fn gives_up(statement: &str) -> bool {
        let text = format!("def run():\n    {statement}\n");
        let source = FunctionSource {
            file_name: "test".to_owned(),
            text: text.as_str().into(),
            line: 1,
            name: "run".to_owned(),
            qualname: "run".into(),
            is_method: false,
        };
        let function = ParsedFile::new(FileId(0), &text).function(&source).expect("it is one function");
        function.body[0].expressions().into_iter().any(|expr| expr.any(&may_give_up))
    }

    #[test]
    fn what_may_give_up_cells_is_told_by_the_names_of_calls() {
        for text in [
            "oc.deactivate(b, i)",
            "x[i].deactivate ()",
            "kill(i)",
            "self.kill(i)",
            "fs[0](i)",
            "a.b.kill(1)",
            "x = [kill(j) for j in b]",
        ] {
            assert!(gives_up(text), "{text}");
        }
        for text in [
            "x[i] += oc.sqrt(2.0) * (1 + k)",
            "y = (x[i] > 0) and (k < 2)",
            "oc.append(l, [i], 1)",
            "print('kill(i)', f'deactivate({i})')  # kill(i)",
        ] {
            assert!(!gives_up(text), "{text}");
        }
    }
}
