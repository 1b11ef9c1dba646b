//! Types of the ops that make values of values.

use super::{Law, Verifier};
use crate::ids::{Op, Value};
use crate::ops::{
    ArithOp, BitOp, BitUnary, CompareOp, ConvertOp, FamilyInfo, MathOp, MathUnary, Takes, TensorOp,
};
use crate::types::{Data, Scalar, ScalarClass, TensorType, Type};

impl Verifier<'_> {
    /// The operand as a scalar or tensor of what the table names.
    fn takes(&mut self, op: Op, value: Value, info: FamilyInfo) -> Option<Data> {
        let ty = self.ty(value);
        let elem = ty.elem();
        if !elem.is_some_and(|elem| info.takes.admits(elem)) {
            self.breaks(Law::Takes, op, format!("takes {}, not {ty}", info.takes.name()));
        }
        elem.and(ty.data())
    }

    /// Operands of one type that the table admits: that type.
    fn uniform(&mut self, op: Op, count: usize, info: FamilyInfo) -> Option<Data> {
        if !self.takes_operands(op, count) {
            return None;
        }
        let operands = self.operands(op);
        let first = self.takes(op, operands[0], info)?;
        for &other in &operands[1..] {
            self.is_type(Law::OneType, op, "another operand", other, first);
        }
        Some(first)
    }

    pub(super) fn arith(&mut self, op: Op, arith: ArithOp) {
        if let Some(data) = self.uniform(op, arith.operands(), arith.info()) {
            self.gives_type(op, data);
        }
    }

    pub(super) fn bit(&mut self, op: Op, bit: BitOp) {
        if !bit.is_shift() {
            if let Some(data) = self.uniform(op, 2, bit.info()) {
                self.gives_type(op, data);
            }
            return;
        }
        if !self.takes_operands(op, 2) {
            return;
        }
        let &[shifted, amount] = self.operands(op) else { return };
        let Some(data) = self.takes(op, shifted, bit.info()) else { return };
        let by = self.ty(amount);
        if !by.elem().is_some_and(|elem| elem.is_integral() && by == Type::Data(data.with_elem(elem))) {
            self.breaks(Law::Shift, op, format!("{data} is shifted by {by}"));
        }
        self.gives_type(op, data);
    }

    pub(super) fn bit_unary(&mut self, op: Op, bit: BitUnary) {
        let Some(data) = self.uniform(op, 1, bit.info()) else { return };
        match bit {
            BitUnary::Not => self.gives_type(op, data),
            BitUnary::Popcnt | BitUnary::Clz | BitUnary::Ffs => {
                self.gives_type(op, data.with_elem(Scalar::I32));
            }
        }
    }

    pub(super) fn compare(&mut self, op: Op, compare: CompareOp) {
        if let Some(data) = self.uniform(op, 2, compare.info()) {
            self.gives_type(op, data.with_elem(Scalar::U1));
        }
    }

    pub(super) fn select(&mut self, op: Op) {
        if !self.takes_operands(op, 3) {
            return;
        }
        let &[condition, a, b] = self.operands(op) else { return };
        let ty = self.ty(a);
        self.is_type(Law::OneType, op, "the other arm", b, ty);
        let found = self.ty(condition);
        let entrywise = ty.data().filter(|d| d.elem().is_some()).map(|d| Type::Data(d.with_elem(Scalar::U1)));
        if found != Type::U1 && Some(found) != entrywise {
            self.breaks(Law::Select, op, format!("the condition is {found} for arms of {ty}"));
        }
        self.gives_type(op, ty);
    }

    pub(super) fn math(&mut self, op: Op, math: MathOp) {
        match math {
            MathOp::Atan2 => {
                if let Some(data) = self.uniform(op, 2, math.info()) {
                    self.gives_type(op, data);
                }
            }
            MathOp::Pow => {
                if !self.takes_operands(op, 2) {
                    return;
                }
                let &[base, exponent] = self.operands(op) else { return };
                let Some(data) = self.takes(op, base, math.info()) else { return };
                let by = self.ty(exponent);
                let integral = by.elem().is_some_and(Scalar::is_integral);
                let fits = match by.elem() {
                    Some(elem) if integral => by == Type::Data(data.with_elem(elem)),
                    _ => by == Type::Data(data) && data.elem().is_some_and(Scalar::is_real),
                };
                if !fits {
                    self.breaks(Law::Power, op, format!("{data} to the power of {by}"));
                }
                self.gives_type(op, data);
            }
        }
    }

    pub(super) fn math_unary(&mut self, op: Op, math: MathUnary) {
        let Some(data) = self.uniform(op, 1, math.info()) else { return };
        match math {
            MathUnary::IsNan | MathUnary::IsInf => self.gives_type(op, data.with_elem(Scalar::U1)),
            MathUnary::FrexpExponent => self.gives_type(op, data.with_elem(Scalar::I32)),
            _ => self.gives_type(op, data),
        }
    }

    pub(super) fn convert(&mut self, op: Op, convert: ConvertOp) {
        let Some(from) = self.uniform(op, 1, convert.info()) else { return };
        if !self.gives(op, 1) {
            return;
        }
        let to = self.ty(self.results(op)[0]);
        let fits = match to.elem() {
            None => false,
            Some(elem) => {
                let same_width = from.elem().is_some_and(|from| from.bits() == elem.bits());
                let may_be = match convert {
                    ConvertOp::Cast => true,
                    ConvertOp::BitCast => same_width,
                    ConvertOp::Detach => from.elem() == Some(elem),
                };
                to == Type::Data(from.with_elem(elem)) && may_be
            }
        };
        if !fits {
            self.breaks(Law::Convert, op, format!("from {from} to {to}"));
        }
    }

    pub(super) fn is_integer(&self, value: Value) -> bool {
        let scalar = self.ty(value).scalar();
        scalar.is_some_and(|s| matches!(s.class(), ScalarClass::Signed | ScalarClass::Unsigned))
    }

    fn as_tensor(&mut self, op: Op, value: Value) -> Option<TensorType> {
        match self.ty(value) {
            Type::Data(Data::Tensor(tensor)) => Some(tensor),
            other => {
                self.breaks(Law::Tensor, op, format!("{other} is no tensor"));
                None
            }
        }
    }

    fn components(&mut self, op: Op, tensor: TensorType, components: &[Value]) {
        let rank = tensor.shape.rank();
        if components.len() != rank {
            self.breaks(Law::Tensor, op, format!("{} components for rank {rank}", components.len()));
        }
        for &component in components {
            if !self.is_integer(component) {
                self.breaks(Law::Tensor, op, format!("a component is {}", self.ty(component)));
            }
        }
    }

    pub(super) fn tensor(&mut self, op: Op, tensor: TensorOp) {
        let operands = self.operands(op);
        match tensor {
            TensorOp::New | TensorOp::Splat => {
                if !self.gives(op, 1) {
                    return;
                }
                let Some(made) = self.as_tensor(op, self.results(op)[0]) else { return };
                let count = if tensor == TensorOp::New { made.shape.count() } else { 1 };
                if operands.len() != count as usize {
                    self.breaks(
                        Law::Tensor,
                        op,
                        format!("{count} entries expected, {} found", operands.len()),
                    );
                }
                for &entry in operands {
                    self.is_type(Law::Tensor, op, "an entry", entry, made.elem);
                }
            }
            TensorOp::Get => {
                if !self.takes_at_least(op, 1) {
                    return;
                }
                let Some(from) = self.as_tensor(op, operands[0]) else { return };
                self.components(op, from, &operands[1..]);
                self.gives_type(op, from.elem);
            }
            TensorOp::Set => {
                if !self.takes_at_least(op, 2) {
                    return;
                }
                let Some(from) = self.as_tensor(op, operands[0]) else { return };
                self.components(op, from, &operands[1..operands.len() - 1]);
                self.is_type(Law::Tensor, op, "the new entry", operands[operands.len() - 1], from.elem);
                self.gives_type(op, Data::Tensor(from));
            }
        }
    }

    /// The member's type, if the value is a struct that has it.
    fn member(&mut self, op: Op, value: Value, member: u32) -> Option<Data> {
        let ty = self.ty(value);
        let Type::Data(Data::Struct(id)) = ty else {
            self.breaks(Law::Struct, op, format!("{ty} is no struct"));
            return None;
        };
        let found = self.kernel.structs[id].members.get(member as usize);
        if found.is_none() {
            self.breaks(Law::Struct, op, format!("{id} has no member {member}"));
        }
        found.map(|&(_, data)| data)
    }

    pub(super) fn struct_new(&mut self, op: Op) {
        if !self.gives(op, 1) {
            return;
        }
        let ty = self.ty(self.results(op)[0]);
        let Type::Data(Data::Struct(id)) = ty else {
            self.breaks(Law::Struct, op, format!("{ty} is no struct"));
            return;
        };
        let members = &self.kernel.structs[id].members;
        if self.takes_operands(op, members.len()) {
            for (&(_, data), &operand) in members.iter().zip(self.operands(op)) {
                self.is_type(Law::Struct, op, "a member", operand, data);
            }
        }
    }

    pub(super) fn struct_get(&mut self, op: Op, member: u32) {
        if self.takes_operands(op, 1)
            && let Some(data) = self.member(op, self.operands(op)[0], member)
        {
            self.gives_type(op, data);
        }
    }

    pub(super) fn struct_set(&mut self, op: Op, member: u32) {
        if self.takes_operands(op, 2)
            && let Some(data) = self.member(op, self.operands(op)[0], member)
        {
            self.is_type(Law::Struct, op, "the new member", self.operands(op)[1], data);
            self.gives_type(op, self.ty(self.operands(op)[0]));
        }
    }

    /// For messages about what only reals or only integers may be.
    pub(super) fn admits(&mut self, law: Law, op: Op, value: Value, takes: Takes) {
        let ty = self.ty(value);
        if !ty.elem().is_some_and(|elem| takes.admits(elem)) {
            self.breaks(law, op, format!("takes {}, not {ty}", takes.name()));
        }
    }
}
