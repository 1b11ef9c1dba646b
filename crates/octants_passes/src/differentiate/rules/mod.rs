//! The derivative of each op: by what its operands' derivatives are multiplied. One table serves both modes: forward, a result's tangent
//! is the sum over the operands; backward, each operand's adjoint gets its share of the result's.
//!
//! Scalars only. The rows of the table of ops say which have a rule here.

mod arith;
mod compare;
mod convert;
mod math;

use octants_ir::ops::{ArithOp, BitOp, Derivative};
use octants_ir::{Builder, Const, Kernel, Op, OpKind, Scalar, Value};

/// The derivative of a result by one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Partial {
    /// Nothing flows.
    Zero,
    One,
    MinusOne,
    Times(Value),
    /// One over the value.
    Over(Value),
    /// One where the condition is this, else zero.
    Where(Value, bool),
}

/// Whether a derivative can flow from the operand of that number to the op's results. Types are looked at elsewhere: only
/// from real to real.
pub(super) fn flows(kind: &OpKind, operand: usize) -> bool {
    match kind {
        OpKind::Arith(op) => arith::flows(*op),
        OpKind::Select => operand > 0,
        OpKind::Math(op) => op.info().differentiates,
        OpKind::MathUnary(op) => math::unary_flows(*op),
        OpKind::Convert(op) => op.info().differentiates,
        // Their rows say that they have no rule here.
        kind => {
            debug_assert!(kind.info().derivative != Derivative::Rule, "`{}` has no rule", kind.name());
            false
        }
    }
}

/// The derivative of an op's result by one of its operands, through which something [`flows`]. `operands` and `result` stand for those of the op,
/// where the builder stands.
pub(super) fn partial(
    b: &mut Builder<'_>,
    kind: &OpKind,
    operands: &[Value],
    result: Value,
    operand: usize,
) -> Partial {
    match kind {
        OpKind::Arith(op) => arith::partial(b, *op, operands, result, operand),
        OpKind::Select => compare::select(operands[0], operand),
        OpKind::Math(op) => math::partial(b, *op, operands, result, operand),
        OpKind::MathUnary(op) => math::unary(b, *op, operands[0], result),
        OpKind::Convert(op) => convert::partial(*op),
        kind => unreachable!("nothing flows through `{}`", kind.name()),
    }
}

/// The derivative that flows through, in the type `to`; `None` if none does.
pub(super) fn through(b: &mut Builder<'_>, partial: Partial, derivative: Value, to: Scalar) -> Option<Value> {
    let value = match partial {
        Partial::Zero => return None,
        Partial::One => derivative,
        Partial::MinusOne => b.arith_unary(ArithOp::Neg, derivative),
        Partial::Times(factor) => b.arith(ArithOp::Mul, derivative, factor),
        Partial::Over(divisor) => b.arith(ArithOp::Div, derivative, divisor),
        Partial::Where(condition, wanted) => {
            let zero = zero(b, derivative);
            let (a, c) = if wanted { (derivative, zero) } else { (zero, derivative) };
            b.select(condition, a, c)
        }
    };
    Some(b.cast(value, to))
}

/// Whether the op stops a derivative that depends on its operand, so that an unexpected zero can be explained.
pub(super) fn stops(kernel: &Kernel, op: Op) -> bool {
    let data = &kernel.ops[op];
    let real = |value: &Value| kernel.ty(*value).scalar().is_some_and(Scalar::is_real);
    match &data.kind {
        OpKind::Convert(_) => data.operands.iter().any(real) && !data.results.iter().any(real),
        OpKind::Arith(op) => !arith::flows(*op) && data.operands.iter().any(real),
        OpKind::MathUnary(op) => !math::unary_flows(*op) && data.results.iter().any(real),
        _ => false,
    }
}

/// A real constant of the value's type.
fn real(b: &mut Builder<'_>, like: Value, constant: f64) -> Value {
    let scalar = b.kernel.ty(like).scalar().unwrap_or(Scalar::F32);
    b.constant(Const::from_f64(scalar, constant))
}

/// Zero of the value's type.
pub(super) fn zero(b: &mut Builder<'_>, like: Value) -> Value {
    real(b, like, 0.0)
}

/// Of two truths.
fn either(b: &mut Builder<'_>, first: Value, second: Value) -> Value {
    b.bit(BitOp::Or, first, second)
}
