//! Places: what addresses them, what they hold, and that they go nowhere else.

use super::{Law, Verifier};
use crate::ids::{Op, Value};
use crate::ops::{AtomicOp, CellUse, OpKind, Takes};
use crate::types::{ArrayType, Data, Scalar, Type};

impl Verifier<'_> {
    /// Places stand only where a base is expected.
    pub(super) fn place_uses(&mut self, op: Op) {
        let data = &self.kernel.ops[op];
        let bases = match &data.kind {
            kind if kind.info().cell != CellUse::Nothing => vec![0],
            OpKind::Extent(_) | OpKind::ForCells(_) => vec![0],
            OpKind::ParallelFor(attributes) => attributes.place_starts(),
            OpKind::Call(_) => (0..data.operands.len()).collect(),
            OpKind::Tape => vec![1, 4],
            _ => Vec::new(),
        };
        for (index, &operand) in data.operands.iter().enumerate() {
            if self.ty(operand).is_place() && !bases.contains(&index) {
                self.breaks(Law::PlaceUse, op, format!("operand {index} is {}", self.ty(operand)));
            }
        }
        let accesses = matches!(data.kind, OpKind::Load | OpKind::VolatileLoad | OpKind::Store);
        if !accesses && data.operands.iter().any(|&operand| matches!(self.ty(operand), Type::Tape(_))) {
            self.breaks(Law::Tape, op, "uses a tape");
        }
        let makes_places = matches!(data.kind, OpKind::Local | OpKind::Tape | OpKind::Temp | OpKind::Shared);
        for &result in &data.results {
            if self.ty(result).is_place() && !makes_places {
                self.breaks(Law::PlaceUse, op, format!("a result is {}", self.ty(result)));
            }
        }
    }

    /// The type of the cell that a base and a path address.
    pub(super) fn cell(&mut self, op: Op, place: &[Value]) -> Option<Type> {
        let (&base, path) = place.split_first()?;
        let Some((data, rank)) = self.ty(base).place() else {
            self.breaks(Law::Path, op, format!("the base is {}, no place", self.ty(base)));
            return None;
        };
        let components = data.component_rank();
        for &index in path {
            if !self.is_integer(index) {
                self.breaks(Law::Path, op, format!("an index is {}", self.ty(index)));
            }
        }
        if path.len() == rank {
            Some(data.into())
        } else if components > 0 && path.len() == rank + components {
            data.elem().map(Type::from)
        } else {
            let found = path.len();
            self.breaks(Law::Path, op, format!("{found} indices into {} of {data}", self.ty(base)));
            None
        }
    }

    pub(super) fn variable(&mut self, op: Op) {
        self.takes_operands(op, 0);
        if !self.gives(op, 1) {
            return;
        }
        let ty = self.ty(self.results(op)[0]);
        let fits = match self.kernel.ops[op].kind {
            OpKind::Temp => matches!(ty, Type::Temp(_)),
            _ => matches!(ty, Type::Local(_)),
        };
        if !fits {
            self.breaks(Law::ResultType, op, format!("the result is {ty}"));
        }
    }

    pub(super) fn tape(&mut self, op: Op) {
        // Its count alone; with it an array and slots; with these, columns and tickets.
        let operands = self.operands(op).len();
        if (!matches!(operands, 1 | 5) && !self.takes_operands(op, 3)) || !self.gives(op, 1) {
            return;
        }
        let count = self.operands(op)[0];
        if !self.is_integer(count) {
            self.breaks(Law::Tape, op, format!("the count is {}", self.ty(count)));
        }
        let ty = self.ty(self.results(op)[0]);
        let Type::Tape(scalar) = ty else {
            self.breaks(Law::ResultType, op, format!("the result is {ty}"));
            return;
        };
        if let [_, _, _, columns, tickets] = *self.operands(op) {
            let counts = matches!(self.ty(tickets), Type::Array(array) if array.rank == 1 && array.elem == Scalar::I32.into());
            if !counts || self.ty(columns) != Type::I32 {
                let (columns, tickets) = (self.ty(columns), self.ty(tickets));
                self.breaks(Law::Tape, op, format!("columns are {columns}, and tickets {tickets}"));
            }
        }
        if let [_, array, slots, ..] = *self.operands(op) {
            let fits = match self.ty(array) {
                Type::Array(array) => array.rank == 1 && array.elem == scalar.into(),
                _ => false,
            };
            if !fits || self.ty(slots) != Type::I32 {
                let (array, slots) = (self.ty(array), self.ty(slots));
                self.breaks(Law::Tape, op, format!("it is to lie in {array}, for {slots} iterations"));
            }
        }
    }

    pub(super) fn load(&mut self, op: Op) {
        if self.takes_at_least(op, 1)
            && let Some(cell) = self.cell(op, self.operands(op))
            && self.gives(op, 1)
        {
            self.is_type(Law::Cell, op, "what is loaded", self.results(op)[0], cell);
        }
    }

    pub(super) fn store(&mut self, op: Op) {
        self.gives(op, 0);
        if !self.takes_at_least(op, 2) {
            return;
        }
        let operands = self.operands(op);
        let (place, value) = operands.split_at(operands.len() - 1);
        if let Some(cell) = self.cell(op, place) {
            self.is_type(Law::Cell, op, "what is stored", value[0], cell);
        }
    }

    pub(super) fn atomic(&mut self, op: Op, atomic: AtomicOp) {
        if !self.takes_at_least(op, 2) {
            return;
        }
        let operands = self.operands(op);
        let (place, value) = operands.split_at(operands.len() - 1);
        let Some(cell) = self.cell(op, place) else { return };
        self.is_type(Law::Cell, op, "the update", value[0], cell);
        self.admits(Law::Atomic, op, value[0], atomic.info().takes);
        self.gives_type(op, cell);
    }

    pub(super) fn atomic_cas(&mut self, op: Op) {
        if !self.takes_at_least(op, 3) {
            return;
        }
        let operands = self.operands(op);
        let (place, values) = operands.split_at(operands.len() - 2);
        let Some(cell) = self.cell(op, place) else { return };
        for &value in values {
            self.is_type(Law::Cell, op, "what is expected or desired", value, cell);
        }
        if cell.scalar().is_none_or(|scalar| !Takes::Integral.admits(scalar)) {
            self.breaks(Law::Atomic, op, format!("the cell is {cell}"));
        }
        self.gives_type(op, cell);
    }

    pub(super) fn grow_pool(&mut self, op: Op) {
        if !self.takes_at_least(op, 2) {
            return;
        }
        let operands = self.operands(op);
        let (place, wanted) = operands.split_at(operands.len() - 1);
        let Some(cell) = self.cell(op, place) else { return };
        self.is_type(Law::Cell, op, "the cell", wanted[0], cell);
        self.is_type(Law::Cell, op, "what is wanted", wanted[0], Scalar::I32);
        self.gives_type(op, Scalar::I32);
    }

    pub(super) fn extent(&mut self, op: Op, axis: u8) {
        if !self.takes_operands(op, 1) {
            return;
        }
        match self.ty(self.operands(op)[0]) {
            Type::Array(array) if axis < array.rank && array.layout.is_none() => {}
            field @ Type::Array(ArrayType { layout: Some(_), .. }) => {
                self.breaks(Law::Extent, op, format!("{field} has a shape that is known"));
            }
            other => self.breaks(Law::Extent, op, format!("{other} has no axis {axis}")),
        }
        if self.gives(op, 1) {
            self.is_type(Law::Extent, op, "the result", self.results(op)[0], Type::I32);
        }
    }

    pub(super) fn address(&mut self, op: Op) {
        if !self.takes_at_least(op, 1) {
            return;
        }
        self.cell(op, self.operands(op));
        let base = self.ty(self.operands(op)[0]);
        if !matches!(base, Type::Array(array) if array.elem.elem().is_some()) {
            self.breaks(Law::Address, op, format!("the base is {base}"));
        }
        if self.gives(op, 1) {
            self.is_type(Law::Address, op, "the result", self.results(op)[0], Scalar::U64);
        }
    }

    pub(super) fn store_result(&mut self, op: Op, number: u32) {
        self.gives(op, 0);
        if !self.takes_operands(op, 1) {
            return;
        }
        let data: Option<&Data> = self.kernel.results.get(number as usize);
        match data {
            Some(&data) => self.is_type(Law::StoreResult, op, "the value", self.operands(op)[0], data),
            None => self.breaks(Law::StoreResult, op, format!("the kernel has no result {number}")),
        }
    }
}
