//! What threads of a block do together.

use super::{Law, Verifier};
use crate::ids::Op;
use crate::ops::{Domain, ParallelFor, Scope};
use crate::types::{ArrayType, Scalar, Type};

/// Whether threads of a block may do something together in this loop.
pub(super) fn has_blocks(attributes: &ParallelFor) -> bool {
    attributes.domain == Domain::Ranges
        && attributes.block_dim.is_some()
        && attributes.reductions.is_empty()
        && attributes.max_threads.is_none()
}

impl Verifier<'_> {
    pub(super) fn shared(&mut self, op: Op) {
        self.takes_operands(op, 0);
        if !self.gives(op, 1) {
            return;
        }
        let ty = self.ty(self.results(op)[0]);
        let layout = match ty {
            Type::Array(ArrayType { layout: Some(layout), .. }) => self.kernel.layouts.get(layout),
            _ => None,
        };
        if layout.is_none_or(|layout| layout.is_sparse() || layout.origin.iter().any(|&first| first != 0)) {
            self.breaks(Law::Shared, op, format!("gives {ty}"));
        }
    }

    pub(super) fn barrier(&mut self, op: Op, scope: Scope) {
        self.acts_alone(op);
        if scope == Scope::Device {
            self.breaks(Law::Exchange, op, "all threads of a device cannot meet");
        }
    }

    pub(super) fn fence(&mut self, op: Op, scope: Scope) {
        self.acts_alone(op);
        if scope == Scope::Subgroup {
            self.breaks(Law::Exchange, op, "a subgroup has barriers");
        }
    }

    fn acts_alone(&mut self, op: Op) {
        self.takes_operands(op, 0);
        self.gives(op, 0);
    }

    /// Takes a condition and gives what came of it.
    pub(super) fn vote(&mut self, op: Op, gives: Scalar) {
        if self.takes_operands(op, 1) {
            self.is_type(Law::Exchange, op, "the condition", self.operands(op)[0], Type::U1);
        }
        self.gives_type(op, gives);
    }

    pub(super) fn shuffle(&mut self, op: Op) {
        if !self.takes_operands(op, 2) {
            return;
        }
        let &[value, lane] = self.operands(op) else { return };
        let ty = self.ty(value);
        if !ty.scalar().is_some_and(|scalar| matches!(scalar.bits(), 32 | 64)) {
            self.breaks(Law::Exchange, op, format!("shuffles {ty}"));
        }
        self.is_type(Law::Exchange, op, "the lane", lane, Type::I32);
        self.gives_type(op, ty);
    }
}
