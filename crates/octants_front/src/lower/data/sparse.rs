//! Places, loops and lists of trees with sparse nodes, as terms hold them.

use octants_ir::Value;

/// An element of a sparse field: where it is looked for when it is accessed.
#[derive(Clone, Debug)]
pub(crate) struct SparsePlace {
    pub tree: usize,
    /// The node whose cell it lies in.
    pub node: usize,
    /// The index as the program says it, and the index of the field's first element.
    pub indices: Vec<Value>,
    pub origin: Vec<i32>,
}

/// A list of a dynamic node, `x[i]` of a field with an axis more.
#[derive(Clone, Debug)]
pub(crate) struct Sublist {
    pub tree: usize,
    pub node: usize,
    pub indices: Vec<Value>,
}

/// A loop over the active cells of a node.
#[derive(Clone, Debug)]
pub(crate) struct SparseLoop {
    pub tree: usize,
    pub node: usize,
    pub origin: Vec<i32>,
    /// How many elements a cell has along each axis that are visited one by one; none if each cell is visited once.
    pub elements: Vec<u32>,
    /// The epoch when it began.
    pub epoch: Value,
    /// How many places of the code made cells before its body.
    pub activations: usize,
    /// Bitmasked nodes on the way that have but one cell, and whether that was marked when it began: all iterations share the mark, and
    /// one may set it.
    pub shared_marks: Vec<(usize, Value)>,
}
