//! Which pure ops are the same: kind, operands and result type. Scopes follow regions, so that what is found dominates.

use std::collections::HashMap;

use octants_ir::ops::TensorOp;
use octants_ir::{Kernel, Op, OpKind, Type, Value};

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    kind: (u8, u64),
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
        let kind = number(&data.kind)?;
        let result = *data.results.first()?;
        let key = Key { kind, operands: data.operands.to_vec(), ty: kernel.ty(result) };
        if let Some(&earlier) = self.known.get(&key) {
            return Some(earlier);
        }
        self.known.insert(key.clone(), result);
        self.arrivals.push(key);
        None
    }
}

/// A number for the op with its attributes; `None` if two of the kind are never taken for one.
fn number(kind: &OpKind) -> Option<(u8, u64)> {
    Some(match kind {
        OpKind::Const(c) => (0, c.bits()),
        OpKind::Arith(op) => (1, *op as u64),
        OpKind::Bit(op) => (2, *op as u64),
        OpKind::BitUnary(op) => (3, *op as u64),
        OpKind::Compare(op) => (4, *op as u64),
        OpKind::Select => (5, 0),
        OpKind::Math(op) => (6, *op as u64),
        OpKind::MathUnary(op) => (7, *op as u64),
        OpKind::Convert(op) => (8, *op as u64),
        OpKind::Tensor(TensorOp::Get) => (9, 0),
        OpKind::StructGet(member) => (11, (*member).into()),
        OpKind::Extent(axis) => (13, (*axis).into()),
        OpKind::LaunchKey => (14, 0),
        OpKind::Address => (15, 0),
        // What is put together is put together where it goes: it must not become shared by tasks.
        OpKind::Tensor(TensorOp::New | TensorOp::Splat | TensorOp::Set)
        | OpKind::StructNew
        | OpKind::StructSet(_)
        | OpKind::Local
        | OpKind::Tape
        | OpKind::Temp
        | OpKind::Load
        | OpKind::VolatileLoad
        | OpKind::Store
        | OpKind::Atomic(_)
        | OpKind::AtomicCas
        | OpKind::GrowPool
        | OpKind::If
        | OpKind::For
        | OpKind::ForCells(_)
        | OpKind::While
        | OpKind::ParallelFor(_)
        | OpKind::Serial
        | OpKind::Fork
        | OpKind::Yield
        | OpKind::Return
        | OpKind::StoreResult(_)
        | OpKind::Assert(..)
        | OpKind::Print(_)
        | OpKind::Random
        | OpKind::Clock
        | OpKind::Call(_) => return None,
    })
}
