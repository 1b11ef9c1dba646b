//! Which accesses of a loop may meet in one cell, and whether all of those do the same.
//!
//! Cells are kept by what is known of them while compiling: the array, and the constants of their paths. Two cells may be one if their constants agree, so those with
//! constants alone meet their like, and those with other indices; a loop with thousands of accesses has few of the latter.

use std::collections::HashMap;

use octants_ir::ops::AtomicOp;
use octants_ir::{Const, Kernel, Value};

use super::facts::Step;
use super::{Access, Kind};

/// The constants of a path; `None` where an index is no constant.
type Constants = Vec<Option<Const>>;

/// What an access does. Equal ones may be done by all iterations at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Deed {
    Read,
    Update(AtomicOp),
    StoreConst(Const),
    StoreValue(Value),
    /// Whatever else: it agrees with nothing.
    Other,
}

/// What the accesses of some cells do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Deeds {
    All(Deed),
    Different,
}

impl Deeds {
    fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::Different }
    }
}

#[derive(Default)]
pub(super) struct Cells {
    /// By array: the constants of cells, what is done to those, and whether an index is no constant.
    arrays: HashMap<Value, Array>,
}

#[derive(Default)]
struct Array {
    deeds: HashMap<Constants, Deeds>,
    /// Those with other indices, in the order in which they were met.
    open: Vec<Constants>,
    /// What is done to all cells that an open one may be, once it was asked for.
    around: HashMap<Constants, Deeds>,
}

fn constants(access: &Access) -> Constants {
    let constant = |step: &Step| match step {
        Step::Const(constant) => Some(*constant),
        Step::Value(_) => None,
    };
    access.cell.path.iter().map(constant).collect()
}

fn deed(kernel: &Kernel, kind: Kind) -> Deed {
    match kind {
        Kind::Read => Deed::Read,
        Kind::Update(op) => Deed::Update(op),
        Kind::Store(Some(value)) => kernel.as_const(value).map_or(Deed::StoreValue(value), Deed::StoreConst),
        Kind::Store(None) | Kind::Other => Deed::Other,
    }
}

fn agree(a: &Constants, b: &Constants) -> bool {
    a.iter().zip(b).all(|pair| match pair {
        (Some(a), Some(b)) => a == b,
        _ => true,
    })
}

impl Cells {
    pub(super) fn add(&mut self, kernel: &Kernel, access: &Access) {
        let array = self.arrays.entry(access.cell.base).or_default();
        let (path, deed) = (constants(access), Deeds::All(deed(kernel, access.kind)));
        if let Some(deeds) = array.deeds.get_mut(&path) {
            *deeds = deeds.and(deed);
            return;
        }
        if path.contains(&None) {
            array.open.push(path.clone());
        }
        array.deeds.insert(path, deed);
    }

    /// Whether an access of a cell that may be this one's does something else.
    pub(super) fn differ_from(&mut self, kernel: &Kernel, access: &Access) -> bool {
        let Some(array) = self.arrays.get_mut(&access.cell.base) else { return false };
        let path = constants(access);
        let own = Deeds::All(deed(kernel, access.kind));
        let differs = |deeds: &Deeds| *deeds != own;
        if !path.contains(&None) {
            let open = array.open.iter().filter(|open| agree(open, &path)).map(|open| &array.deeds[open]);
            return array.deeds.get(&path).into_iter().chain(open).any(differs);
        }
        if let Some(deeds) = array.around.get(&path) {
            return differs(deeds);
        }
        // Whether they are all alike does not depend on their order.
        let met = array.deeds.iter().filter(|(other, _)| agree(other, &path)).map(|(_, &deeds)| deeds);
        let deeds = met.reduce(Deeds::and).unwrap_or(own);
        array.around.insert(path, deeds);
        deeds != own
    }
}
