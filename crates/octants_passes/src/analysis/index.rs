//! Indices as sums: `constant + Σ coefficient · term`, in the wrapping arithmetic of one integer type.

use octants_ir::ops::{ArithOp, BitOp, ConvertOp};
use octants_ir::{Const, Kernel, OpKind, Scalar, Value};

/// Sums of more ops than this are a term of their own. Chosen, not measured: it bounds the time for each index.
const MAX_SUM_OPS: usize = 32;

/// An integer as a sum. Two equal forms are two equal integers wherever the terms are the same.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Affine {
    pub ty: Scalar,
    /// Reduced to the type and extended with its sign.
    pub constant: i64,
    /// Values that are no sums themselves, ascending, each once, with coefficients that are not zero.
    pub terms: Vec<(Value, i64)>,
}

impl Affine {
    /// The form of an integer value; `None` for other values. Looks through one widening cast, since that keeps every integer apart.
    pub fn of(kernel: &Kernel, value: Value) -> Option<Self> {
        let mut value = value;
        let mut ty = kernel.ty(value).scalar().filter(|ty| ty.is_integral())?;
        if let Some(inner) = widened(kernel, value, ty) {
            value = inner;
            ty = kernel.ty(value).scalar()?;
        }
        let mut form = Self { ty, constant: 0, terms: Vec::new() };
        let mut left = MAX_SUM_OPS;
        form.add(kernel, value, 1, &mut left);
        form.terms.sort_unstable_by_key(|&(term, _)| term);
        let mut merged: Vec<(Value, i64)> = Vec::with_capacity(form.terms.len());
        for (term, coefficient) in form.terms {
            match merged.last_mut() {
                Some(last) if last.0 == term => last.1 = last.1.wrapping_add(coefficient),
                _ => merged.push((term, coefficient)),
            }
        }
        form.terms = merged;
        for (_, coefficient) in &mut form.terms {
            *coefficient = reduced(ty, *coefficient);
        }
        form.terms.retain(|&(_, coefficient)| coefficient != 0);
        form.constant = reduced(ty, form.constant);
        Some(form)
    }

    /// The coefficient of a term; 0 where it does not occur.
    pub fn coefficient(&self, term: Value) -> i64 {
        self.terms.iter().find(|&&(value, _)| value == term).map_or(0, |&(_, coefficient)| coefficient)
    }

    fn add(&mut self, kernel: &Kernel, value: Value, factor: i64, left: &mut usize) {
        if let Some(constant) = kernel.as_const(value).and_then(Const::as_i128) {
            self.constant = self.constant.wrapping_add(factor.wrapping_mul(constant as i64));
            return;
        }
        let constant = |value: Value| kernel.as_const(value).and_then(Const::as_i128).map(|c| c as i64);
        let parts = kernel.def(value).filter(|_| *left > 0);
        let Some((kind, operands)) = parts.map(|op| (&op.kind, &op.operands)) else {
            self.terms.push((value, factor));
            return;
        };
        *left -= 1;
        match (kind, &operands[..]) {
            (OpKind::Arith(ArithOp::Add), &[a, b]) => {
                self.add(kernel, a, factor, left);
                self.add(kernel, b, factor, left);
            }
            (OpKind::Arith(ArithOp::Sub), &[a, b]) => {
                self.add(kernel, a, factor, left);
                self.add(kernel, b, factor.wrapping_neg(), left);
            }
            (OpKind::Arith(ArithOp::Neg), &[a]) => self.add(kernel, a, factor.wrapping_neg(), left),
            (OpKind::Arith(ArithOp::Mul), &[a, b]) => match (constant(a), constant(b)) {
                (_, Some(c)) => self.add(kernel, a, factor.wrapping_mul(c), left),
                (Some(c), _) => self.add(kernel, b, factor.wrapping_mul(c), left),
                _ => self.terms.push((value, factor)),
            },
            (OpKind::Bit(BitOp::Shl), &[a, b]) => match constant(b) {
                Some(amount) => {
                    let power = 1_i64 << amount.rem_euclid(self.ty.bits().into());
                    self.add(kernel, a, factor.wrapping_mul(power), left);
                }
                None => self.terms.push((value, factor)),
            },
            _ => self.terms.push((value, factor)),
        }
    }
}

/// What was cast, if the value is an integer cast to a wider one that keeps its value.
fn widened(kernel: &Kernel, value: Value, to: Scalar) -> Option<Value> {
    let op = kernel.def(value).filter(|op| op.kind == OpKind::Convert(ConvertOp::Cast))?;
    let from = kernel.ty(op.operands[0]).scalar().filter(|ty| ty.is_integral() && *ty != Scalar::U1)?;
    let keeps = from.bits() < to.bits() && (to.is_signed() || !from.is_signed());
    keeps.then_some(op.operands[0])
}

fn reduced(ty: Scalar, value: i64) -> i64 {
    Const::from_bits(ty, value as u64).as_i128().map_or(value, |value| value as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use octants_ir::{Builder, Type};

    #[test]
    fn sums_are_found_through_shifts_products_and_a_widening_cast() {
        let mut kernel = Kernel::new("k");
        let i = kernel.add_param("i", Type::I32);
        let n = kernel.add_param("n", Type::I32);
        let mut b = Builder::new(&mut kernel);
        let two = b.i32(2);
        let shifted = b.bit(BitOp::Shl, n, two);
        let difference = b.arith(ArithOp::Sub, i, shifted);
        let doubled = b.arith(ArithOp::Mul, difference, two);
        let moved = b.arith(ArithOp::Add, two, doubled);
        let back = b.arith(ArithOp::Sub, moved, i);
        let wide = b.cast(back, Scalar::I64);
        let form = Affine::of(&kernel, wide).expect("an integer has a form");
        assert_eq!(form, Affine { ty: Scalar::I32, constant: 2, terms: vec![(i, 1), (n, -8)] });
    }
}
