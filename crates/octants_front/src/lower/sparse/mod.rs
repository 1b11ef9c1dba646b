//! Trees with sparse nodes: how cells are found, made, visited and given up, as ordinary ops.
//!
//! `octants_ir::sparse` says where everything lies. What is done with it is written here, once: loads, stores, atomics and loops
//! that every device runs like any other code of the kernel. From the bottom up: `cells` finds and makes cells, `allocate` is the
//! slow path that takes a slot from a pool, `recycle` gives cells up and clears what was given up, `loops` visits what is active.
//!
//! A tree's parameters are views of its memory: the state of the allocator, the headers and the words (entries, lengths) of each pool's slots,
//! the marks of each bitmasked node's cells, the slots that are free again, and the elements of each leaf. No two views have a byte in common that the kernel touches
//! by both, so that what is known of arrays that do not overlap holds for them.

mod allocate;
mod cells;
mod loops;
mod recycle;
mod reductions;

use std::sync::Arc;

use octants_diag::Span;
use octants_ir::ops::ArithOp;
use octants_ir::sparse::{Dimension, Header, STATE_WORDS, SparseTree, mark, state, state_word};
use octants_ir::{
    ArrayType, Boundary, Builder, Const, Data, Digit, Func, Layout, Level, NodeKind, Scalar, Type, Value,
};

use crate::dependency::{FieldParam, TreeView};
use crate::host::{Host, SparseLeaf};
use crate::lower::Lowerer;
use crate::lower::data::sparse::SparsePlace;
use crate::lower::data::term::{Ndrange, Place};

pub(crate) use cells::{Cell, Need};
pub(crate) use loops::Visit;
pub(crate) use reductions::SharedLoad;

/// A tree that the kernel uses.
#[derive(Debug)]
pub(crate) struct TreeUse {
    serial: u64,
    pub tree: Arc<SparseTree>,
    /// The dependency that leads to the tree, and the leaf of it that lies there.
    field: usize,
    leaf: usize,
    params: Vec<(View, Value)>,
    /// For each node whose cells have slots: the function that makes one.
    makers: Vec<(usize, Func)>,
    /// For each node: how many places of the code make its cells.
    activations: Vec<usize>,
    /// Whether cells were given up since the last time that they were cleared.
    retired: bool,
    /// Whether the kernel gives up cells anywhere.
    gives_up: bool,
    /// The branch, counted from 1, that was the first to clear what it gave up; 0 for what is in no branch.
    first_clearing: Option<usize>,
}

/// What a parameter is of a tree's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum View {
    /// The allocator's state.
    State,
    /// The headers of a pool's slots.
    Headers(usize),
    /// The words of the cells in a pool's slots.
    Words(usize),
    /// The slots of a pool that are free again.
    Free(usize),
    /// The word in which kernels say that a pool needs more memory.
    Signal(usize),
    /// The marks of a bitmasked node's cells.
    Marks(usize),
    /// The same, for accesses that take place only where an element is.
    Guards(usize),
    /// The elements of a leaf, or one entry of them.
    Leaf(usize, Option<u32>),
}

/// Whose elements a view is.
#[derive(Clone, Copy)]
struct Elements<'a> {
    /// The dependency, and its leaf.
    of: (usize, usize),
    /// As the program calls it.
    name: &'a str,
    shape: &'a [u32],
}

impl<H: Host> Lowerer<'_, H> {
    /// The tree in the kernel's table; `field` and `leaf` lead to it if it is new.
    pub(crate) fn tree_use(
        &mut self,
        tree: &Arc<SparseTree>,
        serial: u64,
        field: usize,
        leaf: usize,
    ) -> usize {
        if let Some(known) = self.trees.iter().position(|known| known.serial == serial) {
            return known;
        }
        self.trees.push(TreeUse {
            serial,
            tree: Arc::clone(tree),
            field,
            leaf,
            params: Vec::new(),
            makers: Vec::new(),
            activations: vec![0; tree.nodes.len()],
            retired: false,
            gives_up: false,
            first_clearing: None,
        });
        self.trees.len() - 1
    }

    /// The parameter that a view is, added when it is first used.
    fn view(&mut self, tree: usize, view: View) -> Value {
        self.view_of(tree, view, None)
    }

    fn view_of(&mut self, tree: usize, view: View, elements: Option<Elements<'_>>) -> Value {
        let of = &self.trees[tree];
        if let Some(&(_, known)) = of.params.iter().find(|(known, _)| *known == view) {
            return known;
        }
        let shape = Arc::clone(&of.tree);
        let word: Data = Scalar::I32.into();
        let (name, elem, offset, dimensions): (_, _, _, Vec<Dimension>) = match view {
            View::State => ("state".to_owned(), word, 0, vec![(STATE_WORDS * shape.pools.len() as u32, 4)]),
            View::Headers(pool) => {
                let of = &shape.pools[pool];
                let dimensions = vec![(of.slots, of.header_bytes), ((of.header_bytes / 4) as u32, 4)];
                (format!("headers{pool}"), word, of.headers, dimensions)
            }
            View::Words(pool) => {
                let of = &shape.pools[pool];
                let mut dimensions = vec![((of.slot_bytes / 4) as u32, 4)];
                if pool > 0 {
                    dimensions.insert(0, (of.slots, of.slot_bytes));
                }
                (format!("pool{pool}"), word, of.first, dimensions)
            }
            View::Free(pool) => {
                let of = &shape.pools[pool];
                (format!("free{pool}"), word, of.free, vec![(of.free_words, 4)])
            }
            View::Signal(pool) => (format!("signal{pool}"), word, shape.pools[pool].signal, Vec::new()),
            View::Marks(node) | View::Guards(node) => {
                let (offset, dimensions) = shape.mark_view(node);
                let name = if matches!(view, View::Marks(_)) { "marks" } else { "guards" };
                (format!("{name}{node}"), Scalar::U8.into(), offset, dimensions)
            }
            View::Leaf(leaf, entry) => {
                let element = shape.leaves[leaf].element;
                let scalar = element.elem().map_or(Scalar::I32, |elem| elem);
                let (offset, dimensions) = shape.leaf_view(leaf);
                match entry {
                    None => (format!("leaf{leaf}"), element, offset, dimensions),
                    Some(entry) => {
                        let offset = offset + u64::from(entry) * u64::from(scalar.bytes());
                        (format!("leaf{leaf}_{entry}"), scalar.into(), offset, dimensions)
                    }
                }
            }
        };
        let (mut name, mut dimensions) = (format!("tree{tree}_{name}"), dimensions);
        if let Some(Elements { name: of_field, shape, .. }) = elements {
            of_field.clone_into(&mut name);
            if self.options.names_elements {
                // Whoever compares accesses sees by its index that an element is another one; it is found by the rest.
                dimensions.splice(0..0, shape.iter().map(|&extent| (extent, 0)));
            }
        }
        let (field, leaf) = (self.trees[tree].field, self.trees[tree].leaf);
        let rank = dimensions.len() as u8;
        let layout = Some(self.kernel.intern_layout(plain_layout(&dimensions)));
        let ty = ArrayType { layout, ..ArrayType::array(elem, rank, Boundary::Unsafe) };
        let param = self.kernel.params.len();
        let is_structure = matches!(view, View::State | View::Words(_) | View::Free(_) | View::Signal(_));
        let elements = elements.map(|elements| elements.of);
        let is_guard = matches!(view, View::Guards(_));
        let of_tree = TreeView { offset, elements, tree, is_structure, is_guard };
        self.fields.push(FieldParam { field, leaf, view: Some(of_tree), param });
        let value = self.kernel.add_param(name, Type::Array(ty));
        self.trees[tree].params.push((view, value));
        value
    }

    /// The elements of a leaf, or one entry of them, as a parameter.
    pub(crate) fn leaf_view(&mut self, tree: usize, leaf: usize, entry: Option<u32>) -> Value {
        self.view(tree, View::Leaf(leaf, entry))
    }

    /// Of views that hold what a tree looks like: whether the kernel does nothing but make cells. If so, a cell that was made stays.
    pub(crate) fn finish_trees(&mut self) {
        for tree in self.trees.iter().filter(|tree| !tree.gives_up) {
            for &(_, maker) in &tree.makers {
                self.kernel.functions[maker].is_stable = true;
            }
        }
        for view in self.fields.iter_mut().filter_map(|field| field.view.as_mut()) {
            view.is_structure &= !self.trees[view.tree].gives_up;
        }
    }

    /// An element of a sparse field; `of` is the dependency and its leaf.
    pub(crate) fn sparse_place(
        &mut self,
        leaf: &SparseLeaf,
        layout: &Layout,
        indices: &[Value],
        of: (usize, usize),
        name: &str,
        span: Span,
    ) -> Place {
        let tree = self.tree_use(&leaf.tree, leaf.serial, of.0, of.1);
        let number = leaf.leaf as usize;
        let elements = Elements { of, name, shape: &layout.shape };
        let base = self.view_of(tree, View::Leaf(number, leaf.entry), Some(elements));
        let rank = self.kernel.ty(base).place().map_or(0, |(_, rank)| rank);
        let nowhere = self.at(span).i32(0);
        let node = leaf.tree.leaves[number].parent;
        let sparse = SparsePlace { tree, node, indices: indices.to_vec(), origin: layout.origin.clone() };
        Place { base, path: vec![nowhere; rank], shared: true, guard: None, sparse: Some(Box::new(sparse)) }
    }

    /// What a loop over the active cells of a node runs over.
    pub(crate) fn sparse_range(&mut self, tree: usize, node: usize, origin: Vec<i32>, span: Span) -> Ndrange {
        let (sparse, bounds) = self.sparse_domain(tree, node, origin, span);
        Ndrange { sparse: Some(Box::new(sparse)), ..Ndrange::new(bounds) }
    }

    /// The place of the mark of a bitmasked node's cell.
    fn mark_place(&mut self, tree: usize, node: usize, cell: &Cell) -> (Value, Vec<Value>) {
        (self.view(tree, View::Marks(node)), cell.path())
    }

    /// Whether the cell of a bitmasked node has a mark, for an access that takes place only then.
    fn guard_mark(&mut self, tree: usize, node: usize, cell: &Cell, span: Span) -> Value {
        let base = self.view(tree, View::Guards(node));
        let mut builder = self.at(span);
        let found = builder.load(base, &cell.path());
        let none = mark_constant(&mut builder, mark::INACTIVE);
        builder.compare(octants_ir::ops::CompareOp::Ne, found, none)
    }

    /// Whether the cell of a bitmasked node has a mark.
    pub(crate) fn is_marked(&mut self, tree: usize, node: usize, cell: &Cell, span: Span) -> Value {
        let (base, path) = self.mark_place(tree, node, cell);
        let mut builder = self.at(span);
        let found = builder.load(base, &path);
        let none = mark_constant(&mut builder, mark::INACTIVE);
        builder.compare(octants_ir::ops::CompareOp::Ne, found, none)
    }

    fn set_mark(&mut self, tree: usize, node: usize, cell: &Cell, value: u8, span: Span) {
        let (base, path) = self.mark_place(tree, node, cell);
        let mut builder = self.at(span);
        let value = mark_constant(&mut builder, value);
        builder.store(base, &path, value);
    }

    /// The place of a word of the allocator's state.
    fn state(&mut self, tree: usize, pool: usize, word: u32, span: Span) -> (Value, Value) {
        let base = self.view(tree, View::State);
        let at = self.at(span).i32(state_word(pool, word) as i32);
        (base, at)
    }

    fn load_state(&mut self, tree: usize, pool: usize, word: u32, span: Span) -> Value {
        let (base, at) = self.state(tree, pool, word, span);
        self.at(span).load(base, &[at])
    }

    /// One more than the last slot of a pool that may be in use: none is that has no memory.
    fn slots_end(&mut self, tree: usize, pool: usize, span: Span) -> Value {
        let used = self.load_state(tree, pool, state::USED, span);
        let capacity = self.load_state(tree, pool, state::CAPACITY, span);
        let mut builder = self.at(span);
        let last = builder.arith(ArithOp::Min, used, capacity);
        let one = builder.i32(1);
        builder.arith(ArithOp::Add, last, one)
    }

    /// The place of a word in the header of a slot; `None` if the pool's headers do not have it.
    fn header(
        &mut self,
        (tree, pool): (usize, usize),
        slot: Value,
        part: Header,
        span: Span,
    ) -> Option<(Value, [Value; 2])> {
        let word = self.trees[tree].tree.header_word(pool, part)?;
        let base = self.view(tree, View::Headers(pool));
        let word = self.at(span).i32(word as i32);
        Some((base, [slot, word]))
    }

    /// A word of a slot's header; 0 if headers do not have it.
    fn load_header(&mut self, tree: usize, pool: usize, slot: Value, part: Header, span: Span) -> Value {
        match self.header((tree, pool), slot, part, span) {
            Some((base, path)) => self.at(span).load(base, &path),
            None => self.at(span).i32(0),
        }
    }

    fn store_header(
        &mut self,
        tree: usize,
        pool: usize,
        slot: Value,
        part: Header,
        value: Value,
        span: Span,
    ) {
        if let Some((base, path)) = self.header((tree, pool), slot, part, span) {
            self.at(span).store(base, &path, value);
        }
    }
}

/// A layout with an axis for each dimension.
fn plain_layout(dimensions: &[Dimension]) -> Layout {
    let digit =
        |(axis, &(extent, stride)): (usize, &Dimension)| Digit { axis: axis as u8, below: 1, extent, stride };
    let digits = dimensions.iter().enumerate().map(digit).collect();
    Layout {
        shape: dimensions.iter().map(|&(extent, _)| extent).collect(),
        origin: vec![0; dimensions.len()],
        levels: vec![Level { kind: NodeKind::Dense, digits }],
    }
    .normalised()
}

/// A mark of a bitmasked node's cell.
fn mark_constant(builder: &mut Builder<'_>, mark: u8) -> Value {
    builder.constant(Const::from_i128(Scalar::U8, mark.into()))
}

/// `value > 0`
fn positive(builder: &mut Builder<'_>, value: Value) -> Value {
    let zero = builder.i32(0);
    builder.compare(octants_ir::ops::CompareOp::Gt, value, zero)
}
