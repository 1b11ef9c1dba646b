//! From the outline of a tree with sparse nodes to where everything lies in its memory.

use octants_ir::NodeKind;
use octants_ir::sparse::{Pool, SparseTree, TreeChild, TreeLeaf, TreeNode, state, state_offset};

use crate::error::Error;
use crate::tree::{Child, NodeId, Outline, Sizes};

/// What begins in a line of its own.
const LINE_BYTES: u64 = 64;

/// Slots are numbered by positive `i32`, with room for threads that count too far before they see that there are no more.
const MAX_SLOTS: u64 = 1 << 30;

/// How many slots a pool has beyond twice those that its cells need. Slots that a task gives up are free after it: a task that makes the
/// same cells again needs others.
const SPARE_SLOTS: u64 = 1024;

/// Where everything lies, if each pool may have so many bytes, and how many bytes that is in all.
pub(crate) fn lay_out(outline: &Outline, sizes: &Sizes, pool_bytes: u64) -> Result<(SparseTree, u64), Error> {
    let mut tree = SparseTree { nodes: Vec::new(), leaves: Vec::new(), pools: Vec::new() };
    let mut owners = vec![NodeId::ROOT];
    // Parents have lower numbers than their children.
    for (id, node) in outline.nodes() {
        let parent = node.parent.map(|parent| parent.number() as usize);
        let pool = match (node.kind, parent) {
            (NodeKind::Pointer | NodeKind::Dynamic, _) => {
                owners.push(id);
                owners.len() - 1
            }
            (NodeKind::Dense | NodeKind::Bitmasked, Some(parent)) => tree.nodes[parent].pool,
            (NodeKind::Dense | NodeKind::Bitmasked, None) => 0,
        };
        let child = |child: &Child| match *child {
            Child::Node(node) => TreeChild::Node(node.number() as usize),
            Child::Leaf(leaf) => TreeChild::Leaf(leaf.number() as usize),
        };
        tree.nodes.push(TreeNode {
            kind: node.kind,
            parent,
            splits: node.splits.iter().map(|split| (split.axis, split.extent)).collect(),
            children: node.children.iter().map(child).collect(),
            offset: sizes.node_offset(id),
            cells: if node.kind == NodeKind::Bitmasked { sizes.marks(id, node) } else { 0 },
            cell_bytes: sizes.cell(id),
            chunk: node.chunk,
            pool,
        });
    }
    for (id, leaf) in outline.leaves() {
        let (parent, offset) = (leaf.parent.number() as usize, sizes.leaf_offset(id));
        tree.leaves.push(TreeLeaf { parent, element: leaf.element, origin: leaf.origin.clone(), offset });
    }
    let mut end = state_offset(owners.len(), 0) as u64;
    for &owner in &owners {
        let (mut pool, after) = pool_at(&tree, owner, sizes, end, pool_bytes)?;
        pool.signal = state_offset(tree.pools.len(), state::SIGNAL) as u64;
        tree.pools.push(pool);
        end = after;
    }
    Ok((tree, end))
}

/// The pool of a node's cells, if the memory before it ends there, and where it ends itself.
fn pool_at(
    tree: &SparseTree,
    owner: NodeId,
    sizes: &Sizes,
    end: u64,
    pool_bytes: u64,
) -> Result<(Pool, u64), Error> {
    let node = owner.number() as usize;
    let first = end.next_multiple_of(LINE_BYTES);
    // Entries and lists are words.
    let alignment = sizes.alignment(owner).max(4);
    let too_large = || Error::OutOfMemory { bytes: u64::MAX };
    let rounded = |bytes: u64| bytes.checked_next_multiple_of(alignment).ok_or_else(too_large);
    if owner == NodeId::ROOT {
        let slot_bytes = rounded(sizes.cell(owner))?;
        // Words of a cell are counted by `i32`.
        if slot_bytes / 4 > i32::MAX as u64 {
            return Err(Error::OutOfMemory { bytes: slot_bytes });
        }
        let pool = Pool {
            node,
            first,
            slot_bytes,
            headers: 0,
            header_bytes: 0,
            slots: 1,
            free: 0,
            free_words: 0,
            signal: 0,
        };
        return Ok((pool, first + slot_bytes));
    }
    let of = &tree.nodes[node];
    let has_parent = of.parent.is_some_and(|parent| tree.nodes[parent].pool > 0);
    let is_list = of.kind == NodeKind::Dynamic;
    let words = 2 + u64::from(has_parent) + 2 * u64::from(is_list) + tree.axes(node).len() as u64;
    let header_bytes = 4 * words;
    let slot_bytes = rounded(of.cell_bytes.checked_mul(of.chunk.into()).ok_or_else(too_large)?)?;
    if slot_bytes / 4 > i32::MAX as u64 {
        return Err(Error::OutOfMemory { bytes: slot_bytes });
    }
    let above = tree.path(node).into_iter().filter(|&at| at != node);
    let lists = above.map(|at| tree.nodes[at].count()).fold(1, u64::saturating_mul);
    let (each, classes) = match of.kind {
        NodeKind::Dynamic => ((1_u64 << of.runs()) - 1, 2),
        NodeKind::Pointer | NodeKind::Dense | NodeKind::Bitmasked => (of.count(), 1),
    };
    let most = (pool_bytes / (slot_bytes + header_bytes)).max(1);
    let needed = lists.saturating_mul(each);
    let slots = 1 + needed.saturating_mul(2).saturating_add(SPARE_SLOTS).min(most).min(MAX_SLOTS);
    let headers = (first + slots * slot_bytes).next_multiple_of(LINE_BYTES);
    let free = (headers + slots * header_bytes).next_multiple_of(LINE_BYTES);
    let free_words = slots * classes;
    let pool = Pool {
        node,
        first,
        slot_bytes,
        headers,
        header_bytes,
        slots: slots as u32,
        free,
        free_words: free_words as u32,
        signal: 0,
    };
    Ok((pool, free + 4 * free_words))
}
