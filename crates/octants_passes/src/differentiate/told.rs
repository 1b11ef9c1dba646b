//! Integers of a kernel that a launch tells: arguments, extents of arrays, and what is computed from these alone.

use std::cell::RefCell;
use std::collections::HashMap;

use octants_ir::{Const, Kernel, OpKind, Scalar, Value, ValueDef};

use crate::simplify::fold;

/// Ops in a row that are looked through. Chosen, not measured: it bounds the stack.
const DEEPEST: u32 = 64;

/// What a launch tells a kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Told {
    /// An argument, by its parameter.
    Param(usize),
    /// How long an array is along an axis.
    Extent(usize, u8),
}

/// What is known of values: constants, and more where it is known what a launch tells.
pub(super) struct Numbers<'t> {
    told: Option<&'t dyn Fn(Told) -> Option<Const>>,
    known: RefCell<HashMap<Value, Option<Const>>>,
}

impl<'t> Numbers<'t> {
    /// Of a kernel of which no launch is known.
    pub fn unknown() -> Self {
        Self { told: None, known: RefCell::default() }
    }

    pub fn of_launch(told: &'t dyn Fn(Told) -> Option<Const>) -> Self {
        Self { told: Some(told), known: RefCell::default() }
    }

    pub fn integer(&self, kernel: &Kernel, value: Value) -> Option<i128> {
        self.constant(kernel, value)?.as_i128()
    }

    pub fn constant(&self, kernel: &Kernel, value: Value) -> Option<Const> {
        if let Some(constant) = kernel.as_const(value) {
            return Some(constant);
        }
        self.told?;
        self.computed(kernel, value, DEEPEST)
    }

    fn computed(&self, kernel: &Kernel, value: Value, depth: u32) -> Option<Const> {
        if let Some(&known) = self.known.borrow().get(&value) {
            return known;
        }
        let found = if depth == 0 { None } else { self.compute(kernel, value, depth - 1) };
        self.known.borrow_mut().insert(value, found);
        found
    }

    fn compute(&self, kernel: &Kernel, value: Value, depth: u32) -> Option<Const> {
        if let Some(told) = told_as(kernel, value) {
            return self.told?(told);
        }
        let data = kernel.def(value)?;
        let operand = |number: usize| self.computed(kernel, data.operands[number], depth);
        match data.kind {
            OpKind::Const(constant) => Some(constant),
            OpKind::Select => operand(if operand(0)?.as_i128()? != 0 { 1 } else { 2 }),
            _ if !data.kind.is_pure() || !data.regions.is_empty() => None,
            _ => {
                let operands: Option<Vec<_>> = (0..data.operands.len()).map(operand).collect();
                fold(&data.kind, &operands?, kernel.ty(value).scalar()?)
            }
        }
    }
}

/// What the value is of what a launch tells, if it is that itself.
pub(super) fn told_as(kernel: &Kernel, value: Value) -> Option<Told> {
    match kernel.values[value].def {
        ValueDef::Param(region, number) if region == kernel.body => {
            let is_integer = kernel.ty(value).scalar().is_some_and(Scalar::is_integral);
            is_integer.then_some(Told::Param(number as usize))
        }
        ValueDef::Param(..) => None,
        ValueDef::Result(op, _) => match kernel.ops[op].kind {
            OpKind::Extent(axis) => Some(Told::Extent(kernel.as_param(kernel.ops[op].operands[0])?, axis)),
            _ => None,
        },
    }
}
