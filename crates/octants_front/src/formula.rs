//! Numbers that a launch calculates: what an expression of a kernel gives that is made of compile-time numbers, some of which change.
//!
//! A number behind an object is part of the code at first. One that was seen to change is an operand of formulas instead, and a formula's
//! result is a parameter. The arithmetic is that of folding, so that a kernel sees the same bits either way.

use octants_ir::{Const, Scalar};

use crate::arithmetic;
use crate::host::{BinaryOp, CompareOp, Number, UnaryOp};
use crate::intrinsics::Intrinsic;
use crate::math_functions::at_compile_time;

/// An expression in postfix order.
#[derive(Clone, PartialEq, Debug)]
pub struct Formula {
    steps: Vec<FormulaStep>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum FormulaStep {
    /// A dependency whose role is to be an operand, by its number.
    Operand(usize),
    Constant(Number),
    Unary(UnaryOp),
    Binary(BinaryOp),
    Compare(CompareOp),
    /// A function of one real.
    Function(Intrinsic),
    Absolute,
    /// The smaller of two, or the greater.
    Extremum {
        is_max: bool,
    },
    Convert(NumberKind),
}

/// The types of Python's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumberKind {
    Bool,
    Int,
    Float,
}

/// A parameter that is the result of a formula.
#[derive(Clone, Debug)]
pub struct FormulaParam {
    pub formula: Formula,
    pub param: usize,
    pub scalar: Scalar,
    /// What integers the code is for; of others it would not have the type, or the sign, that was seen.
    pub range: Option<(i128, i128)>,
}

/// Longer expressions are calculated by the kernel, from formulas of their parts. A usual one has fewer than 10 steps.
const MAX_STEPS: usize = 32;

impl Formula {
    pub(crate) fn operand(dependency: usize) -> Self {
        Self { steps: vec![FormulaStep::Operand(dependency)] }
    }

    pub(crate) fn constant(number: Number) -> Self {
        Self { steps: vec![FormulaStep::Constant(number)] }
    }

    fn then(&self, step: FormulaStep) -> Self {
        let mut steps = self.steps.clone();
        steps.push(step);
        Self { steps }
    }

    fn with(&self, other: &Self, step: FormulaStep) -> Option<Self> {
        if self.steps.len() + other.steps.len() >= MAX_STEPS {
            return None;
        }
        let mut steps = self.steps.clone();
        steps.extend(&other.steps);
        steps.push(step);
        Some(Self { steps })
    }

    pub(crate) fn unary(&self, op: UnaryOp) -> Self {
        self.then(FormulaStep::Unary(op))
    }

    pub(crate) fn binary(&self, op: BinaryOp, other: &Self) -> Option<Self> {
        self.with(other, FormulaStep::Binary(op))
    }

    pub(crate) fn compare(&self, op: CompareOp, other: &Self) -> Option<Self> {
        self.with(other, FormulaStep::Compare(op))
    }

    pub(crate) fn function(&self, intrinsic: Intrinsic) -> Self {
        self.then(FormulaStep::Function(intrinsic))
    }

    pub(crate) fn absolute(&self) -> Self {
        self.then(FormulaStep::Absolute)
    }

    pub(crate) fn extremum(&self, is_max: bool, other: &Self) -> Option<Self> {
        self.with(other, FormulaStep::Extremum { is_max })
    }

    pub(crate) fn convert(&self, kind: NumberKind) -> Self {
        self.then(FormulaStep::Convert(kind))
    }

    /// The dependencies that it is calculated with.
    pub(crate) fn operands(&self) -> impl Iterator<Item = usize> {
        self.steps.iter().filter_map(|step| match step {
            FormulaStep::Operand(dependency) => Some(*dependency),
            _ => None,
        })
    }

    /// The dependency that it is, if nothing is calculated.
    pub fn as_operand(&self) -> Option<usize> {
        match *self.steps {
            [FormulaStep::Operand(dependency)] => Some(dependency),
            _ => None,
        }
    }

    /// The same formula with other numbers for its operands.
    #[must_use]
    pub fn renumbered(&self, number: impl Fn(usize) -> usize) -> Self {
        let steps = self.steps.iter().map(|step| match *step {
            FormulaStep::Operand(dependency) => FormulaStep::Operand(number(dependency)),
            other => other,
        });
        Self { steps: steps.collect() }
    }

    /// Its value; `None` where only Python could say, or where there is none.
    pub fn value(&self, read: impl Fn(usize) -> Option<Number>) -> Option<Number> {
        let mut stack = [Number::Bool(false); MAX_STEPS];
        let mut depth = 0;
        for step in &self.steps {
            let (taken, result) = match *step {
                FormulaStep::Operand(dependency) => (0, read(dependency)?),
                FormulaStep::Constant(number) => (0, number),
                FormulaStep::Unary(op) => (1, arithmetic::unary(op, stack[depth - 1])?),
                FormulaStep::Binary(op) => (2, arithmetic::binary(op, stack[depth - 2], stack[depth - 1])?),
                FormulaStep::Compare(op) => {
                    (2, Number::Bool(arithmetic::compare(op, stack[depth - 2], stack[depth - 1])?))
                }
                FormulaStep::Function(intrinsic) => (1, at_compile_time(intrinsic, stack[depth - 1].real())?),
                FormulaStep::Absolute => (1, arithmetic::absolute(stack[depth - 1])?),
                FormulaStep::Extremum { is_max } => {
                    (2, arithmetic::extremum(is_max, stack[depth - 2], stack[depth - 1]))
                }
                FormulaStep::Convert(NumberKind::Bool) => (1, Number::Bool(stack[depth - 1].truth())),
                FormulaStep::Convert(NumberKind::Int) => (1, Number::Int(stack[depth - 1].truncated()?)),
                FormulaStep::Convert(NumberKind::Float) => (1, Number::Float(stack[depth - 1].real())),
            };
            depth -= taken;
            *stack.get_mut(depth)? = result;
            depth += 1;
        }
        Some(stack[0])
    }
}

impl FormulaParam {
    /// The parameter for a value; `None` if the code is not for it.
    pub fn constant(&self, value: Number) -> Option<Const> {
        match value {
            Number::Bool(value) => Some(Const::from_i128(self.scalar, value.into())),
            Number::Int(value) => {
                let fits = self.range.is_none_or(|(least, most)| (least..=most).contains(&value));
                fits.then(|| Const::from_i128(self.scalar, value))
            }
            Number::Float(value) => Some(Const::from_f64(self.scalar, value)),
        }
    }
}
