//! Places: reading again, keeping what variables held, adjoints of stores and loads.

use octants_ir::ops::{ArithOp, AtomicOp, CompareOp};
use octants_ir::{Data, Op, OpKind, TensorShape, Type, Value};

use super::Reverse;
use super::facts::is_mended;
use crate::differentiate::primal::is_real;
use crate::differentiate::stale_reads::Read;
use crate::differentiate::{Refusal, RefusalKind};

/// What the backward sweep of an op needs of its forward sweep.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    /// What the cell of a variable held before the store.
    pub old: Option<Value>,
    /// What variables hold after the op that its iterations take the least, the greatest or the product of; of a tensor a copy.
    pub extremes: Vec<(Value, Value)>,
    /// What variables held before the op.
    pub places: Vec<(Value, Vec<Value>)>,
    /// Of a loop: the tape of each carried value, by slot.
    pub tapes: Vec<Value>,
    /// The tapes of variables that the loop writes.
    pub place_tapes: Vec<(Value, Value)>,
    /// How often the body of a `while` ran.
    pub trips: Option<Value>,
    /// Whether the loop is the outermost one of a nest, whose tapes are made together.
    pub is_nest: bool,
}

impl Reverse<'_> {
    /// Whether this sweep owns what the variable holds: in iterations that run again only their own.
    pub(super) fn owns(&self, local: Value) -> bool {
        self.task.is_none() || self.facts.home[local] == self.task
    }

    /// Gives the op's result the value that was kept when the kernel ran; `false` if none was.
    pub(super) fn read_record(&mut self, op: Op) -> bool {
        let Some(load) = self.recorded[op] else { return false };
        let value = self.names.map(self.kernel.ops[load].results[0]);
        self.names.insert(self.kernel.ops[op].results[0], value);
        true
    }

    /// A read of the primal, which is remembered: it must give what it gave then.
    pub(super) fn read_again(&mut self, op: Op) {
        if self.read_record(op) {
            return;
        }
        let place = self.kernel.addressed(op).map(|place| place.operands().to_vec()).unwrap_or_default();
        let operands = self.map(&place);
        let value = self.b().load(operands[0], &operands[1..]);
        let &read = self.kernel.regions[self.region].ops.last().expect("it was just added");
        self.origin.set(read, Some(Read::Repeated(op)));
        self.names.insert(self.kernel.ops[op].results[0], value);
    }

    /// What a cell holds once all iterations have updated it.
    fn read_total(&mut self, op: Op, place: &[Value]) -> Option<Value> {
        if !matches!(self.kernel.ty(place[0]), Type::Array(_)) {
            let owner = self.updating?;
            let kept = self.kept[owner].extremes.iter();
            let value = kept.clone().find(|(local, _)| *local == place[0]).map(|&(_, value)| value)?;
            if !matches!(self.kernel.ty(value), Type::Local(_)) {
                return Some(value);
            }
            let path = self.map(&place[1..]);
            return Some(self.b().load(value, &path));
        }
        let operands = self.map(place);
        let value = self.b().load(operands[0], &operands[1..]);
        let &read = self.kernel.regions[self.region].ops.last().expect("it was just added");
        self.origin.set(read, Some(Read::Total(op)));
        Some(value)
    }

    /// Keeps what variables hold that iterations took the least, the greatest or the product of.
    pub(super) fn keep_extremes(&mut self, op: Op) {
        if !self.facts.mended[op] {
            return;
        }
        let mut extremes = Vec::new();
        for local in self.written(op) {
            let Some((data, _)) = self.kernel.ty(local).place().filter(|_| self.activity.is_active(local))
            else {
                continue;
            };
            if data.scalar().is_some() {
                let place = self.names.map(local);
                extremes.push((local, self.b().load(place, &[])));
            } else if data.tensor_shape().is_some() {
                // Which component an update is of may be known only when it runs.
                let (copy, values) = (self.b().local(data), self.load_cells(local));
                for (path, value) in self.cells(data).into_iter().zip(values) {
                    self.b().store(copy, &path, value);
                }
                extremes.push((local, copy));
            }
        }
        self.kept.get_mut(op).extremes = extremes;
    }

    pub(super) fn forward_store(&mut self, op: Op, keep: bool) {
        let operands = self.kernel.ops[op].operands.clone();
        let (&value, place) = operands.split_last().expect("a store has a value");
        if !matches!(self.kernel.ty(place[0]), Type::Local(_)) || !self.owns(place[0]) {
            return;
        }
        let (place, value) = (self.map(place), self.names.map(value));
        if keep {
            let old = self.b().load(place[0], &place[1..]);
            self.kept.get_mut(op).old = Some(old);
        }
        self.b().store(place[0], &place[1..], value);
    }

    /// Of arrays, and of variables that iterations share.
    pub(super) fn forward_update(&mut self, op: Op) {
        let data = self.kernel.ops[op].clone();
        let local = matches!(self.kernel.ty(data.operands[0]), Type::Local(_));
        if local && self.owns(data.operands[0]) {
            let operands = self.map(&data.operands);
            let ty = self.kernel.ty(data.results[0]);
            let copy = self.b().op(data.kind, operands, [ty], []);
            self.names.insert(data.results[0], self.kernel.ops[copy].results[0]);
            return;
        }
        if self.mends {
            self.mend(op);
        }
        if self.facts.uses[data.results[0]] > 0 {
            // Nobody knows what it gave; if that is needed, it is refused.
            self.read_again(op);
        }
    }

    /// Paths of the scalars that a variable consists of, and of a struct the whole.
    fn cells(&mut self, data: Data) -> Vec<Vec<Value>> {
        let dims = data.tensor_shape().map(TensorShape::dims).unwrap_or_default();
        let mut paths = vec![Vec::new()];
        for extent in dims {
            let indices: Vec<_> = (0..extent).map(|index| self.b().i32(index as i32)).collect();
            paths = paths
                .iter()
                .flat_map(|path| indices.iter().map(|&index| [&path[..], &[index]].concat()))
                .collect();
        }
        paths
    }

    pub(super) fn load_cells(&mut self, local: Value) -> Vec<Value> {
        let Some((data, _)) = self.kernel.ty(local).place() else { return Vec::new() };
        let place = self.names.map(local);
        self.cells(data).into_iter().map(|path| self.b().load(place, &path)).collect()
    }

    pub(super) fn store_cells(&mut self, local: Value, values: &[Value]) {
        let Some((data, _)) = self.kernel.ty(local).place() else { return };
        let place = self.names.map(local);
        for (path, &value) in self.cells(data).into_iter().zip(values) {
            self.b().store(place, &path, value);
        }
    }

    /// Variables that the op writes and that this sweep owns.
    pub(super) fn written(&self, op: Op) -> Vec<Value> {
        self.facts.written[op].iter().copied().filter(|&local| self.owns(local)).collect()
    }

    /// Keeps what variables hold that the op writes.
    pub(super) fn keep_places(&mut self, op: Op) {
        let written = self.written(op);
        let places = written.into_iter().map(|local| (local, self.load_cells(local))).collect();
        self.kept.get_mut(op).places = places;
    }

    /// Brings variables back to what they held before the op.
    pub(super) fn restore_places(&mut self, op: Op) {
        for (local, values) in self.kept[op].places.clone() {
            self.store_cells(local, &values);
        }
    }

    pub(super) fn backward_load(&mut self, op: Op) {
        let data = self.kernel.ops[op].clone();
        let Some(companion) = self.companion_of[data.operands[0]] else { return };
        if let Some(adjoint) = self.adjoint_of(data.results[0]) {
            let path = self.map(&data.operands[1..]);
            self.b().atomic(AtomicOp::Add, companion, &path, adjoint);
        }
    }

    pub(super) fn backward_store(&mut self, op: Op) {
        let data = self.kernel.ops[op].clone();
        let (&value, place) = data.operands.split_last().expect("a store has a value");
        let path = self.map(&place[1..]);
        if let (true, Some(companion)) = (is_real(self.kernel, value), self.companion_of[place[0]]) {
            let adjoint = self.b().load(companion, &path);
            let zero = self.zero(value);
            self.b().store(companion, &path, zero);
            self.add_adjoint(value, adjoint);
        }
        if let Some(old) = self.kept[op].old {
            let base = self.names.map(place[0]);
            self.b().store(base, &path, old);
        }
    }

    pub(super) fn backward_update(&mut self, op: Op, kind: AtomicOp) {
        let data = self.kernel.ops[op].clone();
        let (&value, place) = data.operands.split_last().expect("an update has a value");
        let (true, Some(companion)) = (is_real(self.kernel, value), self.companion_of[place[0]]) else {
            return;
        };
        if self.adjoint_of(data.results[0]).is_some() {
            self.refusals.push(Refusal::new(RefusalKind::AtomicResult, data.loc));
            return;
        }
        let path = self.map(&place[1..]);
        match kind {
            AtomicOp::Add | AtomicOp::Sub => {
                if !self.activity.is_active(value) {
                    return;
                }
                let b = &mut self.b();
                let mut adjoint = b.load(companion, &path);
                if kind == AtomicOp::Sub {
                    adjoint = b.arith_unary(ArithOp::Neg, adjoint);
                }
                self.add_adjoint(value, adjoint);
            }
            AtomicOp::Min | AtomicOp::Max | AtomicOp::Mul => {
                let Some(total) = self.read_total(op, place) else {
                    self.refusals.push(Refusal::new(RefusalKind::NoRule(kind.name()), data.loc));
                    return;
                };
                if !self.activity.is_active(value) {
                    return;
                }
                let (mapped, zero) = (self.names.map(value), self.zero(value));
                let b = &mut self.b();
                let adjoint = b.load(companion, &path);
                let share = if kind == AtomicOp::Mul {
                    let others = b.arith(ArithOp::Div, total, mapped);
                    b.arith(ArithOp::Mul, adjoint, others)
                } else {
                    // All that are the least, or the greatest, have their share.
                    let chosen = b.compare(CompareOp::Eq, mapped, total);
                    b.select(chosen, adjoint, zero)
                };
                self.add_adjoint(value, share);
            }
            AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Exchange => {
                self.refusals.push(Refusal::new(RefusalKind::NoRule(kind.name()), data.loc));
            }
        }
    }

    /// The adjoint of what a cell held before all iterations updated it: none if one of them was chosen.
    fn mend(&mut self, op: Op) {
        let data = self.kernel.ops[op].clone();
        let (&value, place) = data.operands.split_last().expect("an update has a value");
        let OpKind::Atomic(kind) = data.kind else { return };
        let (true, Some(companion)) = (is_mended(&data.kind), self.companion_of[place[0]]) else { return };
        let (path, mapped) = (self.map(&place[1..]), self.names.map(value));
        if kind == AtomicOp::Mul {
            self.b().atomic(AtomicOp::Mul, companion, &path, mapped);
            return;
        }
        let Some(total) = self.read_total(op, place) else { return };
        let zero = self.zero(value);
        let b = &mut self.b();
        let chosen = b.compare(CompareOp::Eq, mapped, total);
        b.if_else(
            chosen,
            |b| {
                b.store(companion, &path, zero);
                Vec::new()
            },
            |_| Vec::new(),
        );
    }
}
