//! Which pure ops are the same: kind, operands and result type. Scopes follow regions, so that what is found dominates.

use std::collections::HashMap;

use octants_ir::ops::TensorOp;
use octants_ir::{Kernel, Op, OpKind, Type, Value};

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    kind: OpKind,
    operands: Vec<Value>,
    ty: Type,
}

/// Pure ops seen on the way here.
#[derive(Default)]
pub(super) struct Numbering {
    known: HashMap<Key, Value>,
    /// Keys in order of arrival, and how many there were when each open scope began.
    arrivals: Vec<Key>,
    scopes: Vec<usize>,
}

impl Numbering {
    pub(super) fn enter(&mut self) {
        self.scopes.push(self.arrivals.len());
    }

    pub(super) fn leave(&mut self) {
        let begin = self.scopes.pop().unwrap_or(0);
        for key in self.arrivals.drain(begin..) {
            self.known.remove(&key);
        }
    }

    /// The value of an earlier op that is the same as this one; otherwise this one is known from now on.
    pub(super) fn find_or_add(&mut self, kernel: &Kernel, op: Op) -> Option<Value> {
        let data = &kernel.ops[op];
        if !may_be_shared(&data.kind) {
            return None;
        }
        let result = *data.results.first()?;
        let key = Key { kind: data.kind.clone(), operands: data.operands.to_vec(), ty: kernel.ty(result) };
        if let Some(&earlier) = self.known.get(&key) {
            return Some(earlier);
        }
        self.known.insert(key.clone(), result);
        self.arrivals.push(key);
        None
    }
}

/// Whether two ops of the kind with the same operands are one. What is put together is put together where it goes: it must not become shared by
/// tasks.
fn may_be_shared(kind: &OpKind) -> bool {
    let assembles = match kind {
        OpKind::Tensor(op) => *op != TensorOp::Get,
        OpKind::StructNew | OpKind::StructSet(_) => true,
        _ => false,
    };
    kind.is_pure() && !assembles
}
