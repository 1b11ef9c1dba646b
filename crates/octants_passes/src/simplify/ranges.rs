//! What integers can be, from the loops and masks that they come from; and divisions by constants that follow from it.
//!
//! A loop over the digits of a nested field computes `%a * 4 + %b` with `%b` from 0 to 3, and an access takes it apart again:
//! `shr` by 2 is `%a`, `and` with 3 is `%b`.

use octants_ir::ops::{ArithOp, BitOp, CompareOp, ConvertOp};
use octants_ir::types::ScalarClass;
use octants_ir::{Const, Op, OpKind, Scalar, Value};

use super::Round;
use super::identities::Site;
use crate::analysis::Affine;

/// From the least to the greatest value that an integer can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    lo: i128,
    hi: i128,
}

impl Span {
    fn new(lo: i128, hi: i128) -> Option<Self> {
        (lo <= hi).then_some(Self { lo, hi })
    }

    fn of(ty: Scalar) -> Option<Self> {
        let bits = ty.bits();
        match ty.class() {
            ScalarClass::Signed => Self::new(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            ScalarClass::Unsigned => Self::new(0, (1 << bits) - 1),
            ScalarClass::Bool | ScalarClass::Real => None,
        }
    }

    fn is_inside(self, other: Self) -> bool {
        other.lo <= self.lo && self.hi <= other.hi
    }

    // What leaves 128 bits is outside every type, and stays there.
    fn plus(self, other: Self) -> Self {
        Self { lo: self.lo.saturating_add(other.lo), hi: self.hi.saturating_add(other.hi) }
    }

    fn times(self, factor: i128) -> Self {
        let (a, b) = (self.lo.saturating_mul(factor), self.hi.saturating_mul(factor));
        Self { lo: a.min(b), hi: a.max(b) }
    }
}

/// Ops that are looked through, one behind the other, for what a value can be. Chosen, not measured: it bounds the time of a walk that
/// doubles at each op; indices have fewer.
const MAX_DEPTH: u32 = 6;

impl Round<'_> {
    /// Notes what the indices of a loop can be, from its bounds.
    pub(super) fn note_indices(&mut self, op: Op) {
        let data = &self.kernel.ops[op];
        let indices: Vec<_> = match (self.kernel.parallel_loop(op), &data.kind) {
            (Some(parallel), _) => parallel.indices().iter().copied().zip(parallel.bounds()).collect(),
            (None, OpKind::For) => {
                let index = self.kernel.regions[data.regions[0]].params[0];
                vec![(index, (data.operands[0], data.operands[1]))]
            }
            _ => return,
        };
        for (index, (lo, hi)) in indices {
            if let (Some(lo), Some(hi)) = (self.span(lo, MAX_DEPTH), self.span(hi, MAX_DEPTH)) {
                self.spans.set(index, Span::new(lo.lo, hi.hi - 1));
            }
        }
    }

    /// What an integer can be, where that is less than its type says, or where the type is all that is known.
    fn span(&self, value: Value, depth: u32) -> Option<Span> {
        let ty = self.kernel.ty(value).scalar()?;
        let any = Span::of(ty)?;
        let known = self.known_span(value, ty, depth).filter(|span| span.is_inside(any));
        Some(known.unwrap_or(any))
    }

    fn known_span(&self, value: Value, ty: Scalar, depth: u32) -> Option<Span> {
        if let Some(constant) = self.kernel.as_const(value).and_then(Const::as_i128) {
            return Span::new(constant, constant);
        }
        if let Some(noted) = self.spans[value] {
            return Some(noted);
        }
        let def = self.kernel.def(value).filter(|_| depth > 0)?;
        let span = |value: Value| self.span(value, depth - 1);
        let constant = |value: Value| self.kernel.as_const(value).and_then(Const::as_i128);
        match (&def.kind, &def.operands[..]) {
            (OpKind::Arith(ArithOp::Add | ArithOp::Sub | ArithOp::Mul), _) => self.sum_span(value, depth),
            (OpKind::Arith(op @ (ArithOp::Min | ArithOp::Max)), &[a, b]) => {
                let (a, b) = (span(a)?, span(b)?);
                let pick = if *op == ArithOp::Min { i128::min } else { i128::max };
                Span::new(pick(a.lo, b.lo), pick(a.hi, b.hi))
            }
            (OpKind::Select, &[_, a, b]) => {
                let (a, b) = (span(a)?, span(b)?);
                Span::new(a.lo.min(b.lo), a.hi.max(b.hi))
            }
            (OpKind::Bit(BitOp::And), &[_, mask]) => Span::new(0, constant(mask).filter(|&mask| mask >= 0)?),
            (OpKind::Arith(ArithOp::Mod), &[_, by]) => Span::new(0, constant(by).filter(|&by| by > 0)? - 1),
            (OpKind::Arith(ArithOp::RawMod), &[a, by]) => {
                let by = constant(by).filter(|&by| by > 0)?;
                Span::new(if span(a)?.lo >= 0 { 0 } else { 1 - by }, by - 1)
            }
            (OpKind::Bit(BitOp::Shr), &[a, by]) => {
                let (a, by) = (span(a)?, constant(by).filter(|by| (0..ty.bits().into()).contains(by))?);
                Span::new(a.lo >> by, a.hi >> by)
            }
            (OpKind::Arith(ArithOp::FloorDiv | ArithOp::RawDiv), &[a, by]) => {
                let (a, by) = (span(a)?, constant(by).filter(|&by| by > 0)?);
                (a.lo >= 0).then(|| Span { lo: a.lo / by, hi: a.hi / by })
            }
            (OpKind::Convert(ConvertOp::Cast), &[a]) => span(a),
            _ => None,
        }
    }

    /// What a sum can be, if it never wraps.
    fn sum_span(&self, value: Value, depth: u32) -> Option<Span> {
        let def = self.kernel.def(value)?;
        let &[a, b] = &def.operands[..] else { return None };
        let (a_span, b_span) = (self.span(a, depth - 1)?, self.span(b, depth - 1)?);
        match def.kind {
            OpKind::Arith(ArithOp::Add) => Some(a_span.plus(b_span)),
            OpKind::Arith(ArithOp::Sub) => Some(a_span.plus(b_span.times(-1))),
            OpKind::Arith(ArithOp::Mul) => {
                let factor = |value: Value| self.kernel.as_const(value).and_then(Const::as_i128);
                match (factor(a), factor(b)) {
                    (_, Some(factor)) => Some(a_span.times(factor)),
                    (Some(factor), _) => Some(b_span.times(factor)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// A comparison of what is never otherwise.
    pub(super) fn known_order(&mut self, site: &Site, op: CompareOp, a: Value, b: Value) -> Option<Value> {
        let (a, b) = (self.span(a, MAX_DEPTH)?, self.span(b, MAX_DEPTH)?);
        let (below, not_above) = (a.hi < b.lo, a.hi <= b.lo);
        let (above, not_below) = (a.lo > b.hi, a.lo >= b.hi);
        let answer = match op {
            CompareOp::Lt if below || not_below => below,
            CompareOp::Le if not_above || above => not_above,
            CompareOp::Gt if above || not_above => above,
            CompareOp::Ge if not_below || below => not_below,
            CompareOp::Eq | CompareOp::Ne if below || above => op == CompareOp::Ne,
            _ => return None,
        };
        Some(self.constant(site.region, Const::bool(answer), site.loc))
    }

    /// The one of two integers that is the lesser, or the greater, whatever they are.
    pub(super) fn known_extreme(&self, op: ArithOp, a: Value, b: Value) -> Option<Value> {
        let (a_span, b_span) = (self.span(a, MAX_DEPTH)?, self.span(b, MAX_DEPTH)?);
        let (lesser, greater) = if a_span.hi <= b_span.lo {
            (a, b)
        } else if b_span.hi <= a_span.lo {
            (b, a)
        } else {
            return None;
        };
        Some(if op == ArithOp::Min { lesser } else { greater })
    }

    /// A quotient or remainder by a positive constant, where the dividend is plainly a multiple and a rest.
    pub(super) fn divided(&mut self, site: &Site, kind: &OpKind, a: Value, b: Value) -> Option<Value> {
        let constant = self.kernel.as_const(b)?.as_i128()?;
        let bits = i128::from(site.ty.bits());
        let (by, quotient) = match kind {
            OpKind::Arith(ArithOp::FloorDiv | ArithOp::RawDiv) => (constant, true),
            OpKind::Arith(ArithOp::Mod | ArithOp::RawMod) => (constant, false),
            OpKind::Bit(BitOp::Shr) if (1..bits - 1).contains(&constant) => (1 << constant, true),
            OpKind::Bit(BitOp::And) if constant > 0 && constant & (constant + 1) == 0 => {
                (constant + 1, false)
            }
            _ => return None,
        };
        if by < 2 {
            return None;
        }
        let ty = Span::of(site.ty)?;
        let form = Affine::of(self.kernel, a).filter(|form| form.ty == site.ty)?;
        // Multiples of the divisor, and the rest.
        let (mut whole, mut rest) = (Vec::new(), Vec::new());
        let (mut total, mut left) = (Span::new(0, 0)?, Span::new(0, 0)?);
        for &(term, coefficient) in &form.terms {
            let (span, coefficient) = (self.span(term, MAX_DEPTH)?, i128::from(coefficient));
            let part = span.times(coefficient);
            total = total.plus(part);
            if coefficient % by == 0 {
                whole.push((term, coefficient / by));
            } else {
                left = left.plus(part);
                rest.push((term, coefficient));
            }
        }
        let constant = i128::from(form.constant);
        let constants = (constant.div_euclid(by), constant.rem_euclid(by));
        total = total.plus(Span::new(constant, constant)?);
        left = left.plus(Span::new(constants.1, constants.1)?);
        // Truncation and rounding down are the same only from zero on.
        let floors = matches!(kind, OpKind::Bit(_) | OpKind::Arith(ArithOp::FloorDiv | ArithOp::Mod));
        let fits = total.is_inside(ty) && (floors || total.lo >= 0) && left.is_inside(Span::new(0, by - 1)?);
        if !fits {
            return None;
        }
        let (terms, constant) = if quotient { (whole, constants.0) } else { (rest, constants.1) };
        if !quotient && terms.len() == form.terms.len() && constant == i128::from(form.constant) {
            return Some(a);
        }
        self.sum(site, &terms, constant)
    }

    fn sum(&mut self, site: &Site, terms: &[(Value, i128)], constant: i128) -> Option<Value> {
        let mut sum = None;
        for &(term, coefficient) in terms {
            let product = if coefficient == 1 {
                term
            } else {
                let coefficient = self.number(site, coefficient)?;
                self.replace_with(site, OpKind::Arith(ArithOp::Mul), &[term, coefficient])?
            };
            sum = Some(match sum {
                None => product,
                Some(sum) => self.replace_with(site, OpKind::Arith(ArithOp::Add), &[sum, product])?,
            });
        }
        let Some(sum) = sum else { return self.number(site, constant) };
        if constant == 0 {
            return Some(sum);
        }
        let constant = self.number(site, constant)?;
        self.replace_with(site, OpKind::Arith(ArithOp::Add), &[sum, constant])
    }
}
