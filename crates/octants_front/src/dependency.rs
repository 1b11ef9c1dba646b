//! What a lowered kernel depends on: its arguments, and what they led to.
//!
//! A compile-time argument or a dataclass is walked by attribute and item. Each object on the path is a dependency; a launch walks the
//! same path again, so that what was baked into the code is compared anew and what became a parameter is read anew.

use octants_ir::{ArrayType, Data};

/// An object that lowering looked at. Those of the arguments come first, in their order; a member comes after what it belongs to.
#[derive(Clone, Debug)]
pub struct Dependency<O> {
    pub origin: Origin<O>,
    pub object: O,
    pub role: Role,
    /// As the user writes it: `self.grid`.
    pub path: String,
}

/// How to get to it.
#[derive(Clone, Debug)]
pub enum Origin<O> {
    Argument(usize),
    /// A member of an earlier dependency.
    Member {
        of: usize,
        step: Step<O>,
    },
    /// None: an object that the kernel found in a global or a closure. It stays with that object, whose numbers are read anew.
    Held,
    /// None: it is no part of an argument. The kernel found it in a global or a closure when it was compiled, and stays with it.
    Captured,
}

#[derive(Clone, Debug)]
pub enum Step<O> {
    Attribute(String),
    Item(O),
}

/// What it is to the code. Parameters are numbers of the kernel's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Part of the code: the same value, or the same object.
    Constant,
    /// A number that formulas are calculated with: it must be of the same type, and its value is read anew.
    Operand,
    /// An object that code named by itself: nothing of it matters but numbers that are dependencies of their own.
    Holder,
    /// Only its members matter, and that it is of the same type; of a container also the length, of a vector or matrix the shape.
    Walked,
    /// Likewise, of a dict that is looped over: also the keys in their order.
    Keys,
    /// A func that the object has under a name: its class must have the same one, and the object itself nothing else.
    Method,
    /// The same object as an earlier dependency, whose members stand for its own.
    Same(usize),
    /// A parameter by value.
    Data {
        param: usize,
        data: Data,
    },
    /// A vector, matrix or struct by value: as many parameters from the first on as it has scalars.
    Values {
        first: usize,
        count: usize,
    },
    /// A number of an object whose numbers are parameters; its kind was fixed by the first one.
    Lifted {
        param: usize,
        data: Data,
    },
    Array {
        param: usize,
        ty: ArrayType,
    },
    /// A field: any other of the same kind does as well, unless it is pinned to be this one. Its leaves are parameters, as
    /// [`FieldParam`] says.
    Field {
        pinned: bool,
    },
    /// A part of an array along its first axis; `offset` is a parameter that debug mode adds for its messages.
    View {
        param: usize,
        ty: ArrayType,
        offset: Option<usize>,
    },
}

/// A parameter that is a leaf of a field, or a view of its tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldParam {
    /// The number of the dependency that is the field.
    pub field: usize,
    pub leaf: usize,
    /// Of a view of the tree that the leaf lies in. Else the parameter is the leaf.
    pub view: Option<TreeView>,
    pub param: usize,
}

/// A part of the memory of a tree with sparse nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeView {
    /// Bytes from the beginning of the tree's memory.
    pub offset: u64,
    /// The dependency and its leaf whose elements it is, if it is elements.
    pub elements: Option<(usize, usize)>,
    /// The number of the tree in the kernel.
    pub tree: usize,
    /// Whether it is what finds cells, of a kernel that gives none up: those that are there stay where they are, whatever the kernel writes.
    pub is_structure: bool,
    /// Whether it is read only to leave out accesses of elements that are not there.
    pub is_guard: bool,
}
