//! Trees of nodes: which fields lie in which cells. Data and its arithmetic; the memory is in [`crate::field`].
//!
//! A node cuts some axes into cells; what is placed in it lies in every cell, in the order in which it was placed, each on a
//! multiple of its own alignment. The root is one cell. A tree grows in any order; sizes and offsets are known once it is whole.

use octants_ir::{Data, Digit, Layout, Level, NodeKind, Scalar, TensorShape, sparse};

use crate::error::Error;

/// Axes have numbers below this.
pub const MAX_AXES: u8 = 12;

/// A node of a tree, by its number there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(u32);

/// Elements placed in a node, by their number in the tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LeafId(u32);

macro_rules! numbers {
    ($($id:ident),*) => { $(impl $id {
        pub fn new(number: u32) -> Self {
            Self(number)
        }

        pub fn number(self) -> u32 {
            self.0
        }

        fn index(self) -> usize {
            self.0 as usize
        }
    })* };
}
numbers!(NodeId, LeafId);

impl NodeId {
    pub const ROOT: Self = Self(0);
}

/// What lies in a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Child {
    Node(NodeId),
    Leaf(LeafId),
}

/// One axis of a node, cut into so many cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AxisSplit {
    pub axis: u8,
    pub extent: u32,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub kind: NodeKind,
    /// The root has none.
    pub parent: Option<NodeId>,
    /// The slowest to vary first.
    pub splits: Vec<AxisSplit>,
    pub children: Vec<Child>,
    /// Of a dynamic node: how many cells a chunk has; else 1.
    pub chunk: u32,
}

#[derive(Clone, Debug)]
pub struct Leaf {
    pub parent: NodeId,
    /// A scalar, or a tensor whose entries lie side by side.
    pub element: Data,
    /// The index of the first element, by axis of the field.
    pub origin: Vec<i32>,
}

/// The nodes and leaves of a tree.
#[derive(Clone, Debug)]
pub struct Outline {
    nodes: Vec<Node>,
    leaves: Vec<Leaf>,
}

impl Default for Outline {
    fn default() -> Self {
        Self::new()
    }
}

impl Outline {
    /// The root, and nothing in it.
    pub fn new() -> Self {
        let root =
            Node { kind: NodeKind::Dense, parent: None, splits: Vec::new(), children: Vec::new(), chunk: 1 };
        Self { nodes: vec![root], leaves: Vec::new() }
    }

    /// Adds a node to a cell.
    pub fn add_node(
        &mut self,
        parent: NodeId,
        kind: NodeKind,
        splits: &[AxisSplit],
    ) -> Result<NodeId, Error> {
        for (dimension, split) in splits.iter().enumerate() {
            if split.axis >= MAX_AXES {
                return Err(Error::invalid(format!(
                    "axis {} is too high: axes are numbered from 0 to {}",
                    split.axis,
                    MAX_AXES - 1
                )));
            }
            if split.extent == 0 {
                return Err(not_positive(0, dimension));
            }
        }
        self.check_nesting(parent, kind, splits)?;
        let id = NodeId(self.nodes.len() as u32);
        let node =
            Node { kind, parent: Some(parent), splits: splits.to_vec(), children: Vec::new(), chunk: 1 };
        self.nodes.push(node);
        let longest = self.extents(id).into_iter().find(|&(_, extent)| extent > i32::MAX as u64);
        if let Some((axis, extent)) = longest {
            self.nodes.pop();
            return Err(too_long(axis, extent.into()));
        }
        self.nodes[parent.index()].children.push(Child::Node(id));
        Ok(id)
    }

    /// Adds a list that grows in chunks of so many cells.
    pub fn add_dynamic(&mut self, parent: NodeId, split: AxisSplit, chunk: u32) -> Result<NodeId, Error> {
        if chunk == 0 {
            return Err(Error::invalid("a chunk of a dynamic node has at least one cell"));
        }
        let id = self.add_node(parent, NodeKind::Dynamic, &[split])?;
        self.nodes[id.index()].chunk = chunk.min(split.extent);
        Ok(id)
    }

    /// A list is one axis of its own, with nothing sparse in its cells.
    fn check_nesting(&self, parent: NodeId, kind: NodeKind, splits: &[AxisSplit]) -> Result<(), Error> {
        let above = self.path(parent);
        let list = above.iter().find(|node| self.nodes[node.index()].kind == NodeKind::Dynamic);
        if let Some(list) = list {
            if kind != NodeKind::Dense {
                return Err(Error::invalid(format!(
                    "a {} node cannot lie below a dynamic one: its cells hold fields and dense nodes",
                    kind.name()
                )));
            }
            let axis = self.nodes[list.index()].splits[0].axis;
            if splits.iter().any(|split| split.axis == axis) {
                return Err(Error::invalid("the axis of a dynamic node cannot be cut again below it"));
            }
        }
        if kind == NodeKind::Dynamic {
            let [split] = splits else {
                return Err(Error::invalid(format!(
                    "a dynamic node has exactly one axis, not {}",
                    splits.len()
                )));
            };
            if self.extents(parent).iter().any(|&(axis, _)| axis == split.axis) {
                return Err(Error::invalid(
                    "a dynamic node must have a standalone dimensionality: its axis cannot be cut above it",
                ));
            }
        }
        Ok(())
    }

    /// Whether some node's cells come and go.
    pub fn is_sparse(&self) -> bool {
        self.nodes.iter().any(|node| node.kind != NodeKind::Dense)
    }

    pub(crate) fn nodes(&self) -> impl ExactSizeIterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(number, node)| (NodeId(number as u32), node))
    }

    pub(crate) fn leaves(&self) -> impl ExactSizeIterator<Item = (LeafId, &Leaf)> {
        self.leaves.iter().enumerate().map(|(number, leaf)| (LeafId(number as u32), leaf))
    }

    /// Places elements in a cell. An empty origin is zero on every axis.
    pub fn add_leaf(&mut self, parent: NodeId, element: Data, origin: &[i32]) -> Result<LeafId, Error> {
        if element.elem().is_none() {
            return Err(Error::invalid("a field holds scalars, vectors or matrices"));
        }
        let shape = self.shape(parent);
        let origin = if origin.is_empty() { vec![0; shape.len()] } else { origin.to_vec() };
        if origin.len() != shape.len() {
            return Err(Error::invalid(format!(
                "the field has {} axes, but the offset has {}",
                shape.len(),
                origin.len()
            )));
        }
        for (&first, &extent) in origin.iter().zip(&shape) {
            if i64::from(first) + i64::from(extent) > i64::from(i32::MAX) {
                return Err(Error::invalid(format!(
                    "{extent} elements from {first} on reach beyond the largest index, {}",
                    i32::MAX
                )));
            }
        }
        let id = LeafId(self.leaves.len() as u32);
        self.leaves.push(Leaf { parent, element, origin });
        self.nodes[parent.index()].children.push(Child::Leaf(id));
        Ok(id)
    }

    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    pub fn leaf(&self, id: LeafId) -> &Leaf {
        &self.leaves[id.index()]
    }

    /// From the root to the node.
    pub fn path(&self, id: NodeId) -> Vec<NodeId> {
        let mut path: Vec<_> =
            std::iter::successors(Some(id), |&node| self.nodes[node.index()].parent).collect();
        path.reverse();
        path
    }

    /// The extent of each axis that is cut on the way to the node's cells, in order of the axes.
    pub fn shape(&self, id: NodeId) -> Vec<u32> {
        self.extents(id).into_iter().map(|(_, extent)| extent as u32).collect()
    }

    fn extents(&self, id: NodeId) -> Vec<(u8, u64)> {
        let mut extents = [0_u64; MAX_AXES as usize];
        for node in self.path(id) {
            for split in &self.nodes[node.index()].splits {
                let extent = &mut extents[usize::from(split.axis)];
                *extent = (*extent).max(1).saturating_mul(split.extent.into());
            }
        }
        (0..).zip(extents).filter(|&(_, extent)| extent != 0).collect()
    }

    /// The cells of a node, in its own resolution, as if they were a byte each: what a loop over them visits.
    pub fn loop_layout(&self, id: NodeId) -> Layout {
        let mut stride = 1;
        let mut bytes = Vec::new();
        for &node in self.path(id).iter().rev() {
            bytes.push(stride);
            for split in &self.nodes[node.index()].splits {
                stride *= u64::from(split.extent);
            }
        }
        bytes.reverse();
        let origin = vec![0; self.shape(id).len()];
        self.layout(id, origin, &bytes)
    }

    /// Where the cells of a node lie, if those of each node of its path have this many bytes.
    fn layout(&self, id: NodeId, origin: Vec<i32>, cell_bytes: &[u64]) -> Layout {
        let extents = self.extents(id);
        let rank_of = |axis: u8| extents.iter().position(|&(known, _)| known == axis).unwrap_or(0) as u8;
        let mut below = [1_u32; MAX_AXES as usize];
        let mut levels = Vec::new();
        for (&node, &bytes) in self.path(id).iter().zip(cell_bytes).rev() {
            let Node { kind, splits, .. } = &self.nodes[node.index()];
            let mut stride = bytes;
            let mut digits = Vec::new();
            for &AxisSplit { axis, extent } in splits.iter().rev() {
                let below = &mut below[usize::from(axis)];
                digits.push(Digit { axis: rank_of(axis), below: *below, extent, stride });
                *below *= extent;
                stride = stride.saturating_mul(extent.into());
            }
            digits.reverse();
            levels.push(Level { kind: *kind, digits });
        }
        levels.reverse();
        let shape = extents.iter().map(|&(_, extent)| extent as u32).collect();
        Layout { shape, origin, levels }.normalised()
    }

    /// Sizes and offsets of everything.
    pub fn sizes(&self) -> Sizes {
        let mut sizes = Sizes {
            cells: vec![0; self.nodes.len()],
            alignments: vec![1; self.nodes.len()],
            nodes: vec![0; self.nodes.len()],
            leaves: vec![0; self.leaves.len()],
        };
        // Children have higher numbers than their parents.
        for (index, node) in self.nodes.iter().enumerate().rev() {
            let (mut end, mut alignment) = (0_u64, 1);
            for &child in &node.children {
                let (bytes, aligned) = match child {
                    Child::Node(child) => self.node_bytes(child, &sizes),
                    Child::Leaf(leaf) => {
                        let element = self.leaves[leaf.index()].element;
                        (element_bytes(element), u64::from(element.elem().map_or(1, Scalar::bytes)))
                    }
                };
                let offset = end.checked_next_multiple_of(aligned).unwrap_or(u64::MAX);
                match child {
                    Child::Node(child) => sizes.nodes[child.index()] = offset,
                    Child::Leaf(leaf) => sizes.leaves[leaf.index()] = offset,
                }
                end = offset.saturating_add(bytes);
                alignment = alignment.max(aligned);
            }
            sizes.cells[index] = end.checked_next_multiple_of(alignment).unwrap_or(u64::MAX);
            sizes.alignments[index] = alignment;
        }
        sizes
    }

    /// Bytes and alignment of what a node has in its parent's cell.
    fn node_bytes(&self, id: NodeId, sizes: &Sizes) -> (u64, u64) {
        let node = &self.nodes[id.index()];
        let count = node.count();
        let (cell, alignment) = (sizes.cells[id.index()], sizes.alignments[id.index()]);
        let word = u64::from(Scalar::I32.bytes());
        match node.kind {
            NodeKind::Dense => (cell.saturating_mul(count), alignment),
            NodeKind::Pointer => (count.saturating_mul(word), word),
            NodeKind::Bitmasked => {
                let cells = cell.saturating_mul(count);
                (sizes.marks(id, node).saturating_add(cells), alignment.max(word))
            }
            NodeKind::Dynamic => {
                let words = sparse::list::RUNS + sparse::runs(count, node.chunk);
                (u64::from(words) * word, word)
            }
        }
    }

    /// Where a leaf's elements lie, and the offset of the first of them in the tree, in bytes.
    pub fn leaf_layout(&self, id: LeafId, sizes: &Sizes) -> (Layout, u64) {
        let Leaf { parent, origin, .. } = &self.leaves[id.index()];
        let path = self.path(*parent);
        let cells: Vec<_> = path.iter().map(|node| sizes.cells[node.index()]).collect();
        let offset =
            path.iter().map(|node| sizes.nodes[node.index()]).sum::<u64>() + sizes.leaves[id.index()];
        (self.layout(*parent, origin.clone(), &cells), offset)
    }
}

/// Sizes, and offsets in the parent's cell, in bytes. Saturated: what has the most that
/// a number can say fits no memory.
#[derive(Clone, Debug)]
pub struct Sizes {
    cells: Vec<u64>,
    alignments: Vec<u64>,
    nodes: Vec<u64>,
    leaves: Vec<u64>,
}

impl Node {
    /// How many cells there are in one of the parent's.
    pub(crate) fn count(&self) -> u64 {
        self.splits.iter().map(|split| u64::from(split.extent)).fold(1, u64::saturating_mul)
    }
}

impl Sizes {
    /// Of a bitmasked node: bytes of its marks, one for each cell, before its cells.
    pub(crate) fn marks(&self, id: NodeId, node: &Node) -> u64 {
        // What may lie in a cell begins at a word.
        let alignment = self.alignments[id.index()].max(u64::from(Scalar::I32.bytes()));
        node.count().checked_next_multiple_of(alignment).unwrap_or(u64::MAX)
    }

    pub(crate) fn alignment(&self, node: NodeId) -> u64 {
        self.alignments[node.index()]
    }

    /// All of the tree.
    pub fn tree(&self) -> u64 {
        self.cells[0]
    }

    pub fn cell(&self, node: NodeId) -> u64 {
        self.cells[node.index()]
    }

    pub fn node_offset(&self, node: NodeId) -> u64 {
        self.nodes[node.index()]
    }

    pub fn leaf_offset(&self, leaf: LeafId) -> u64 {
        self.leaves[leaf.index()]
    }
}

/// An axis with more elements than an index can count.
pub fn too_long(axis: u8, extent: i128) -> Error {
    Error::invalid(format!(
        "axis {axis} would have {extent} elements; an index has 32 bits, so {} is the most",
        i32::MAX
    ))
}

/// What is said of an extent below one.
pub fn not_positive(extent: i128, dimension: usize) -> Error {
    Error::invalid(format!(
        "Every dimension of a field should be positive, got {extent} in dimension {dimension}"
    ))
}

pub(crate) fn element_bytes(element: Data) -> u64 {
    let scalar = element.elem().map_or(0, Scalar::bytes);
    u64::from(scalar) * u64::from(element.tensor_shape().map_or(1, TensorShape::count))
}
