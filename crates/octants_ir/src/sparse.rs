//! Trees with sparse nodes: where everything lies in their memory.
//!
//! Data only. The memory of such a tree is one range: words of the allocator, the root's cell, and a *pool* for each node whose
//! cells come and go. A pool is an array of slots; slot 0 is never given out and always zero, so that what is not there reads as
//! zero without a branch: an entry of zero leads to slot 0, whose own entries are zero in turn. A reference is the number of a slot,
//! never an address, so that the memory may move between launches. How cells come and go is the front end's (`lower/sparse`).
//!
//! | node | in its parent's cell | its cells |
//! |---|---|---|
//! | dense | the cells | there |
//! | bitmasked | a byte for each cell, the cells | there |
//! | pointer | the slot of each cell, or 0 | in its pool |
//! | dynamic | the length, the length when a loop began, the first slots of runs of chunks | chunks of cells in its pool |
//!
//! A cell of a bitmasked node has a byte, not a bit, so that making it is a store, which needs no atomic update.
//!
//! Run `j` of a dynamic node is `2ʲ` neighbouring chunks: a list of any length has few entries, and each element is found at once.

use crate::layout::NodeKind;
use crate::types::Data;

/// A dimension of a part of a tree's memory: how many steps, of how many bytes.
pub type Dimension = (u32, u64);

/// The nodes of a tree, its leaves and its pools. Node 0 is the root, pool 0 its only cell.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SparseTree {
    pub nodes: Vec<TreeNode>,
    pub leaves: Vec<TreeLeaf>,
    pub pools: Vec<Pool>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TreeNode {
    pub kind: NodeKind,
    pub parent: Option<usize>,
    /// Axes and how many cells each is cut into, the slowest to vary first.
    pub splits: Vec<(u8, u32)>,
    pub children: Vec<TreeChild>,
    /// Bytes from the beginning of the parent's cell.
    pub offset: u64,
    /// Bytes from there to the first cell, where the cells lie there.
    pub cells: u64,
    pub cell_bytes: u64,
    /// Of a dynamic node: how many cells a chunk has; else 1.
    pub chunk: u32,
    /// The pool that its cells lie in.
    pub pool: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TreeChild {
    Node(usize),
    Leaf(usize),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TreeLeaf {
    pub parent: usize,
    pub element: Data,
    /// The index of the first element, by axis of the field.
    pub origin: Vec<i32>,
    /// Bytes from the beginning of the cell.
    pub offset: u64,
}

/// Slots for the cells of one node. The cells lie side by side, and so do headers apart from them: who reads and writes elements touches
/// nothing else.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pool {
    pub node: usize,
    /// Bytes from the beginning of the tree's memory to slot 0.
    pub first: u64,
    pub slot_bytes: u64,
    /// Bytes from the beginning of the tree's memory to the header of slot 0, and of one header.
    pub headers: u64,
    pub header_bytes: u64,
    /// How many slots there are, slot 0 among them.
    pub slots: u32,
    /// Bytes from the beginning of the tree's memory to the slots that are free again, and how many words that are.
    pub free: u64,
    pub free_words: u32,
    /// Bytes from the beginning of the tree's memory, modulo 2⁶⁴, to the word in which kernels say that they need more memory. It may lie in
    /// memory of the host.
    pub signal: u64,
}

pub use octants_abi::pool::{
    GROWTH_DIVISOR, GROWTH_STEP_BYTES, STATE_WORDS, state, state_offset, state_word,
};

/// What the words of a slot's header say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header {
    /// 0: not in use; above: the epoch in which it was activated, counted from 1; below: given up, by which launch and branch.
    State,
    /// Where its entry is: the word in the cell of the parent's pool.
    Entry,
    /// The slot of the parent's pool, unless that is the root's.
    Parent,
    /// Of a chunk: which run it begins, counted from 1.
    Class,
    /// Of a chunk: the word of its list.
    List,
    /// The cell's index in its node's resolution, by axis of the node.
    Coordinate(u32),
}

/// The state of a slot that was given up, and that nobody is about to clear.
pub const GIVEN_UP: i32 = -1;

/// The states below that of slots that branch `b` of a launch gave up, 0 outside of branches: `GIVEN_UP - 1 - b - MARKS_OF_A_LAUNCH · k`, where `k` is the launch's key
/// under this mask. Of a million launches in succession no two have the same, nor do a thousand branches of one.
pub const LAUNCH_MASK: u64 = (1 << 20) - 1;
pub const MARKS_OF_A_LAUNCH: i32 = 1 << 10;

/// What the byte of a bitmasked node's cell says.
pub mod mark {
    pub const INACTIVE: u8 = 0;
    pub const ACTIVE: u8 = 1;
    /// Active, and made since the last loop began that had to tell cells that are new to it.
    pub const NEW: u8 = 2;
}

/// Words of a dynamic node's list. From `RUNS` on: the first slot of each run.
pub mod list {
    pub const LENGTH: u32 = 0;
    /// The length when a loop began.
    pub const VISITED: u32 = 1;
    pub const RUNS: u32 = 2;
}

impl Pool {
    /// Bytes of a slot with all that belongs to it.
    pub fn bytes_of_slot(&self) -> u64 {
        self.slot_bytes + self.header_bytes + self.free_bytes()
    }

    /// Of those, bytes in the list of slots that are free again.
    pub fn free_bytes(&self) -> u64 {
        4 * u64::from(self.free_words) / u64::from(self.slots)
    }
}

impl SparseTree {
    /// From the root to the node.
    pub fn path(&self, node: usize) -> Vec<usize> {
        let mut path: Vec<_> = std::iter::successors(Some(node), |&node| self.nodes[node].parent).collect();
        path.reverse();
        path
    }

    /// The axes that are cut on the way to the node's cells, in order.
    pub fn axes(&self, node: usize) -> Vec<u8> {
        let mut axes: Vec<u8> = self
            .path(node)
            .iter()
            .flat_map(|&at| self.nodes[at].splits.iter().map(|&(axis, _)| axis))
            .collect();
        axes.sort_unstable();
        axes.dedup();
        axes
    }

    /// How many cells of `node` one cell of `above` has along an axis.
    pub fn below(&self, above: usize, node: usize, axis: u8) -> u32 {
        let path = self.path(node);
        let inner = path.iter().skip_while(|&&at| at != above).skip(1);
        inner
            .flat_map(|&at| &self.nodes[at].splits)
            .filter(|split| split.0 == axis)
            .map(|split| split.1)
            .product()
    }

    /// The extent of each axis in the node's resolution.
    pub fn shape(&self, node: usize) -> Vec<u32> {
        let extent = |&axis: &u8| {
            let path = self.path(node);
            let splits = path.iter().flat_map(|&at| &self.nodes[at].splits);
            splits.filter(|split| split.0 == axis).map(|split| split.1).product()
        };
        self.axes(node).iter().map(extent).collect()
    }

    /// Bytes from the beginning of the tree's memory to a leaf's first element in slot 0 of its pool, and the dimensions in which its elements
    /// lie: the slot, and the digits of the nodes below the pool's. Leaves of one cell differ in the first alone.
    pub fn leaf_view(&self, leaf: usize) -> (u64, Vec<Dimension>) {
        let of = &self.leaves[leaf];
        let (offset, dimensions) = self.cell_view(of.parent);
        (offset + of.offset, dimensions)
    }

    /// As [`Self::leaf_view`], of the marks of a bitmasked node's cells.
    pub fn mark_view(&self, node: usize) -> (u64, Vec<Dimension>) {
        let of = &self.nodes[node];
        let (offset, mut dimensions) = self.cell_view(of.parent.unwrap_or(0));
        let marks = TreeNode { cell_bytes: 1, ..of.clone() };
        dimensions.extend(marks.strides().into_iter().filter(|&(extent, _)| extent > 1));
        (offset + of.offset, dimensions)
    }

    /// Where the cells of a node lie.
    fn cell_view(&self, node: usize) -> (u64, Vec<Dimension>) {
        let pool = self.nodes[node].pool;
        let at = &self.pools[pool];
        let mut offset = at.first;
        let mut dimensions = Vec::new();
        if pool > 0 {
            dimensions.push((at.slots, at.slot_bytes));
            let owner = &self.nodes[at.node];
            if owner.kind == NodeKind::Dynamic && owner.chunk > 1 {
                dimensions.push((owner.chunk, owner.cell_bytes));
            }
        }
        for node in self.path(node).into_iter().skip_while(|&node| node != at.node).skip(1) {
            let of = &self.nodes[node];
            offset += of.offset + of.cells;
            dimensions.extend(of.strides().into_iter().filter(|&(extent, _)| extent > 1));
        }
        (offset, dimensions)
    }

    /// Which word of a header of the pool says something; `None` if that is not said.
    pub fn header_word(&self, pool: usize, part: Header) -> Option<u32> {
        let node = &self.nodes[self.pools[pool].node];
        let has_parent = node.parent.is_some_and(|parent| self.nodes[parent].pool > 0);
        let is_list = node.kind == NodeKind::Dynamic;
        let list = 2 + u32::from(has_parent);
        match part {
            Header::State => Some(0),
            Header::Entry => Some(1),
            Header::Parent => has_parent.then_some(2),
            Header::Class => is_list.then_some(list),
            Header::List => is_list.then_some(list + 1),
            Header::Coordinate(axis) => Some(list + 2 * u32::from(is_list) + axis),
        }
    }

    /// Whether some cell on the way to the node's may not be there.
    pub fn is_sparse(&self, node: usize) -> bool {
        self.path(node).iter().any(|&at| self.nodes[at].kind != NodeKind::Dense)
    }
}

impl TreeNode {
    /// How many cells there are in one of the parent's.
    pub fn count(&self) -> u64 {
        self.splits.iter().map(|&(_, extent)| u64::from(extent)).product()
    }

    /// Extent and bytes of a step for each axis, where cells lie side by side.
    pub fn strides(&self) -> Vec<Dimension> {
        let mut stride = self.cell_bytes;
        let mut strides: Vec<_> = self
            .splits
            .iter()
            .rev()
            .map(|&(_, extent)| {
                let this = (extent, stride);
                stride *= u64::from(extent);
                this
            })
            .collect();
        strides.reverse();
        strides
    }

    /// Of a dynamic node: how many runs a full list has.
    pub fn runs(&self) -> u32 {
        runs(self.count(), self.chunk)
    }
}

/// How many runs of chunks hold so many cells.
pub fn runs(cells: u64, chunk: u32) -> u32 {
    let chunks = cells.div_ceil(chunk.into());
    64 - chunks.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn runs_double() {
        // 1, 1 + 2, 1 + 2 + 4 chunks.
        assert_eq!([1, 2, 3, 4, 7, 8].map(|cells| runs(cells, 1)), [1, 2, 2, 3, 3, 4]);
        assert_eq!((runs(32, 32), runs(33, 32), runs(97, 32)), (1, 2, 3));
    }
}
