//! Adjoints of values.

use octants_ir::ops::{ArithOp, AtomicOp};
use octants_ir::{Const, Data, Op, OpKind, Region, Scalar, Type, Value};

use super::Reverse;
use crate::differentiate::rules::{flows, partial, through};

impl Reverse<'_> {
    /// Adjoints of what the region defines begin as zero, here.
    pub(super) fn declare_adjoints(&mut self, region: Region) {
        let data = &self.kernel.regions[region];
        let (params, ops) = (data.params.clone(), data.ops.clone());
        for value in params {
            self.declare_adjoint(value);
        }
        for op in ops {
            for value in self.kernel.ops[op].results.clone() {
                self.declare_adjoint(value);
            }
        }
    }

    fn declare_adjoint(&mut self, value: Value) {
        self.adjoint.set(value, None);
        if !self.activity.is_active(value) {
            return;
        }
        match self.kernel.ty(value) {
            Type::Local(data) => {
                let companion = self.b().local(data);
                self.companion_of.set(value, Some(companion));
            }
            Type::Data(data) if self.facts.crosses[value] => {
                let variable = self.b().local(data);
                self.adjoint.set(value, Some(variable));
            }
            _ => {}
        }
    }

    pub(super) fn add_adjoint(&mut self, value: Value, share: Value) {
        if !self.activity.is_active(value) {
            return;
        }
        if self.facts.crosses[value] {
            let variable = self.adjoint[value].expect("the adjoint was declared with the value's region");
            self.b().atomic(AtomicOp::Add, variable, &[], share);
        } else {
            let sum = match self.adjoint[value] {
                None => share,
                Some(sum) => self.b().arith(ArithOp::Add, sum, share),
            };
            self.adjoint.set(value, Some(sum));
        }
    }

    /// The adjoint of a value, to which nobody adds any more; `None` if it is zero.
    pub(super) fn adjoint_of(&mut self, value: Value) -> Option<Value> {
        let adjoint = self.adjoint[value].filter(|_| self.activity.is_active(value))?;
        Some(if self.facts.crosses[value] { self.b().load(adjoint, &[]) } else { adjoint })
    }

    pub(super) fn adjoint_or_zero(&mut self, value: Value) -> Value {
        match self.adjoint_of(value) {
            Some(adjoint) => adjoint,
            None => self.zero(value),
        }
    }

    pub(super) fn zero(&mut self, like: Value) -> Value {
        let scalar = self.kernel.ty(like).data().and_then(Data::elem).unwrap_or(Scalar::F32);
        self.b().constant(Const::from_f64(scalar, 0.0))
    }

    /// Hands the adjoint of a computed value on to the operands.
    pub(super) fn backward_computed(&mut self, op: Op) {
        let data = self.kernel.ops[op].clone();
        let result = data.results[0];
        let Some(adjoint) = self.adjoint_of(result) else { return };
        let (operands, mapped) = (self.map(&data.operands), self.names.map(result));
        for (index, &operand) in data.operands.iter().enumerate() {
            if !self.activity.is_active(operand) || !flows(&data.kind, index) {
                continue;
            }
            let Some(to) = self.kernel.ty(operand).scalar() else { continue };
            let b = &mut self.b();
            let partial = partial(b, &data.kind, &operands, mapped, index);
            if let Some(share) = through(b, partial, adjoint, to) {
                self.add_adjoint(operand, share);
            }
        }
        debug_assert!(!matches!(data.kind, OpKind::Load), "memory has rules of its own");
    }
}
