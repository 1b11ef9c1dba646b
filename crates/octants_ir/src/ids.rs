//! Typed ids and the arenas that they index.
//!
//! An id prints as it is named in memory (`%3`, `op7`, `region2`), so a dump, a panic message and a debugger agree.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A `u32` index into the arena of one kind of thing.
pub trait Id: Copy + Eq + fmt::Debug {
    fn from_index(index: usize) -> Self;
    fn index(self) -> usize;
}

macro_rules! typed_id {
    ($(#[$meta:meta])* $name:ident, $prefix:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub struct $name(u32);

        impl Id for $name {
            fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("an arena holds fewer than 2^32 items"))
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

typed_id!(
    /// An SSA value: an op's result or a region's parameter.
    Value,
    "%"
);
typed_id!(
    /// An operation.
    Op,
    "op"
);
typed_id!(
    /// A region: parameters, ops, and a terminator as the last op.
    Region,
    "region"
);
typed_id!(
    /// A struct type of the kernel.
    StructId,
    "struct"
);
typed_id!(
    /// A layout of the kernel's fields.
    LayoutId,
    "layout"
);
typed_id!(
    /// A function of the kernel.
    Func,
    "func"
);
typed_id!(
    /// A source location with the chain of inlined calls above it.
    Loc,
    "loc"
);

/// Items that are only ever added, addressed by a typed id.
#[derive(Clone)]
pub struct Arena<I, T> {
    items: Vec<T>,
    id: PhantomData<fn(I) -> I>,
}

impl<I: Id, T> Arena<I, T> {
    pub fn new() -> Self {
        Self { items: Vec::new(), id: PhantomData }
    }

    pub fn push(&mut self, item: T) -> I {
        let id = I::from_index(self.items.len());
        self.items.push(item);
        id
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }

    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.items.iter().enumerate().map(|(index, item)| (I::from_index(index), item))
    }

    pub fn ids(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::from_index)
    }
}

impl<I: Id, T> Default for Arena<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> Index<I> for Arena<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for Arena<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

impl<I: Id, T: fmt::Debug> fmt::Debug for Arena<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// A dense side table: one `V` for each id of an arena, a default where nothing was set.
#[derive(Clone, Debug)]
pub struct SideTable<I, V> {
    items: Vec<V>,
    default: V,
    id: PhantomData<fn(I) -> I>,
}

impl<I: Id, V: Clone> SideTable<I, V> {
    pub fn new(default: V) -> Self {
        Self { items: Vec::new(), default, id: PhantomData }
    }

    pub fn set(&mut self, id: I, value: V) {
        if id.index() >= self.items.len() {
            self.items.resize(id.index() + 1, self.default.clone());
        }
        self.items[id.index()] = value;
    }

    pub fn get_mut(&mut self, id: I) -> &mut V {
        if id.index() >= self.items.len() {
            self.items.resize(id.index() + 1, self.default.clone());
        }
        &mut self.items[id.index()]
    }
}

impl<I: Id, V: Clone> Index<I> for SideTable<I, V> {
    type Output = V;
    fn index(&self, id: I) -> &V {
        self.items.get(id.index()).unwrap_or(&self.default)
    }
}
