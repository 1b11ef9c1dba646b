//! Reductions by assignment: `x[0] = x[0] + a`, of an element that all iterations share.
//!
//! Of other arrays a pass finds them, by comparing places. An element of a sparse field is behind entries, which the same loop may write, so
//! that its place says too little: here its index is at hand. Indices that all iterations share are looked at alone: constants, and arguments.

use octants_ir::ops::{ArithOp, AtomicOp};
use octants_ir::{Const, OpKind, Value, ValueDef};

use crate::host::Host;
use crate::lower::Lowerer;
use crate::lower::data::term::Place;

/// A load of an element at an index that all iterations share.
#[derive(Debug)]
pub(crate) struct SharedLoad {
    value: Value,
    base: Value,
    indices: Vec<SharedIndex>,
    components: Vec<Value>,
}

/// An index that is the same in all iterations.
#[derive(PartialEq, Debug)]
enum SharedIndex {
    Constant(Const),
    /// The kernel's parameter.
    Argument(Value),
}

impl<H: Host> Lowerer<'_, H> {
    fn shared_index(&self, index: Value) -> Option<SharedIndex> {
        let argument = || self.kernel.as_param(index).map(|_| SharedIndex::Argument(index));
        self.kernel.as_const(index).map(SharedIndex::Constant).or_else(argument)
    }

    /// The element that a place is, if all iterations share its index.
    fn shared_element(&self, place: &Place, value: Value) -> Option<SharedLoad> {
        let sparse = place.sparse.as_ref()?;
        let indices = sparse.indices.iter().map(|&index| self.shared_index(index));
        let (_, rank) = self.kernel.ty(place.base).place()?;
        let components = place.path[rank..].to_vec();
        Some(SharedLoad { value, base: place.base, indices: indices.collect::<Option<_>>()?, components })
    }

    pub(crate) fn note_shared_load(&mut self, place: &Place, value: Value) {
        if let Some(load) = self.shared_element(place, value) {
            self.shared_load = Some(load);
        }
    }

    /// The update that a store is, of what the element held just before.
    pub(crate) fn update_of_shared(&mut self, place: &Place, value: Value) -> Option<(AtomicOp, Value)> {
        let stored = self.shared_element(place, value)?;
        let load = self.shared_load.take()?;
        let same = load.base == stored.base
            && load.indices == stored.indices
            && load.components == stored.components;
        if !same || self.options.names_elements {
            return None;
        }
        let ValueDef::Result(op, _) = self.kernel.values[value].def else { return None };
        let data = &self.kernel.ops[op];
        let (kind, operands) = (&data.kind, &data.operands);
        let (update, other) = match (kind, &operands[..]) {
            (OpKind::Arith(ArithOp::Sub), &[a, b]) if a == load.value => (AtomicOp::Sub, b),
            (kind, &[a, b]) if a == load.value || b == load.value => {
                (kind.as_update()?, if a == load.value { b } else { a })
            }
            _ => return None,
        };
        // Nothing that may have written the element lies between, and nothing else was made of what it held.
        let ops = &self.kernel.regions[self.region].ops;
        let between = ops.iter().rev().take_while(|&&op| !self.kernel.ops[op].results.contains(&load.value));
        let mut count = 0;
        for &op in between {
            count += 1;
            let data = &self.kernel.ops[op];
            let uses = data.operands.contains(&load.value) && !data.results.contains(&value);
            if uses || !(data.kind.is_pure() || data.kind == OpKind::Load) {
                return None;
            }
        }
        (other != load.value && count < ops.len()).then_some((update, other))
    }
}
