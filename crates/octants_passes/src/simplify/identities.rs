//! Identities of pure scalar ops. Each is exact for every operand; those that are not ask for `fast_math`.

use octants_ir::ops::{ArithOp, BitOp, BitUnary, CompareOp, ConvertOp};
use octants_ir::types::ScalarClass;
use octants_ir::{Const, Loc, Op, OpKind, Region, Scalar, Value};

use super::Round;
use super::fold::fold;

/// A scalar op being looked at.
pub(super) struct Site {
    pub region: Region,
    pub loc: Loc,
    /// Of the result.
    pub ty: Scalar,
}

impl Round<'_> {
    /// A value that stands for the op's result, where there is a simpler one.
    pub(super) fn better(&mut self, region: Region, op: Op) -> Option<Value> {
        let data = &self.kernel.ops[op];
        if matches!(data.kind, OpKind::Const(_)) {
            return None;
        }
        let ty = self.kernel.ty(data.results[0]).scalar()?;
        let site = Site { region, loc: data.loc, ty };
        let kind = data.kind.clone();
        let operands = data.operands.clone();
        let constants: Option<Vec<_>> = operands.iter().map(|&v| self.kernel.as_const(v)).collect();
        if let Some(value) = constants.and_then(|constants| fold(&kind, &constants, ty)) {
            return Some(self.constant(region, value, site.loc));
        }
        if let &[a, b] = &operands[..]
            && let Some(value) = self.divided(&site, &kind, a, b)
        {
            return Some(value);
        }
        match (kind, &operands[..]) {
            (OpKind::Arith(op), &[a]) => self.arith_unary(op, a, ty),
            (OpKind::Arith(op), &[a, b]) => self.arith(&site, op, a, b),
            (OpKind::Bit(op), &[a, b]) => self.bit(&site, op, a, b),
            (OpKind::BitUnary(BitUnary::Not), &[a]) => self.not(&site, a),
            (OpKind::Compare(op), &[a, b]) => self.compare(&site, op, a, b),
            (OpKind::Select, &[c, a, b]) => self.select(&site, c, a, b),
            (OpKind::Convert(op), &[a]) => self.convert(&site, op, a),
            (OpKind::Math(op), &[a, b]) => self.power(&site, op, a, b),
            _ => None,
        }
    }

    fn as_const(&self, value: Value) -> Option<Const> {
        self.kernel.as_const(value)
    }

    /// The operands of the op that gives the value, if it is of this kind.
    fn operands_of(&self, value: Value, kind: &OpKind) -> Option<&[Value]> {
        self.kernel.def(value).filter(|op| op.kind == *kind).map(|op| &op.operands[..])
    }

    /// The operand of the one-operand op that gives the value, if it is of this kind.
    fn operand_of(&self, value: Value, kind: &OpKind) -> Option<Value> {
        self.operands_of(value, kind)?.first().copied()
    }

    /// `(x, c)` where the value is `op(x, c)` with a constant.
    fn with_constant(&self, value: Value, kind: &OpKind) -> Option<(Value, Const)> {
        let &[x, c] = self.operands_of(value, kind)? else { return None };
        Some((x, self.as_const(c)?))
    }

    /// The op with other operands, or another op, as what stands for the result.
    #[expect(clippy::unnecessary_wraps, reason = "every rule gives an option")]
    pub(super) fn replace_with(&mut self, site: &Site, kind: OpKind, operands: &[Value]) -> Option<Value> {
        Some(self.emit(site.region, kind, operands.iter().copied(), site.ty, site.loc))
    }

    #[expect(clippy::unnecessary_wraps, reason = "every rule gives an option")]
    pub(super) fn number(&mut self, site: &Site, value: i128) -> Option<Value> {
        Some(self.constant(site.region, Const::from_i128(site.ty, value), site.loc))
    }

    fn arith_unary(&mut self, op: ArithOp, a: Value, ty: Scalar) -> Option<Value> {
        match op {
            ArithOp::Neg => self.operand_of(a, &OpKind::Arith(ArithOp::Neg)),
            ArithOp::Abs if matches!(ty.class(), ScalarClass::Bool | ScalarClass::Unsigned) => Some(a),
            ArithOp::Abs => self.operand_of(a, &OpKind::Arith(ArithOp::Abs)).map(|_| a),
            _ => None,
        }
    }

    fn arith(&mut self, site: &Site, op: ArithOp, a: Value, b: Value) -> Option<Value> {
        use ArithOp::{Add, Max, Min, Mul};
        if a == b && matches!(op, Min | Max) {
            return Some(a);
        }
        let constant = self.as_const(b);
        // Of NaNs, and with fast math of two zeros, which one a real `min` or `max` gives may depend on the order.
        let commutes = matches!(op, Add | Mul) || (matches!(op, Min | Max) && !site.ty.is_real());
        if constant.is_none() && self.as_const(a).is_some() && commutes {
            return self.replace_with(site, OpKind::Arith(op), &[b, a]);
        }
        if site.ty.is_real() {
            self.arith_real(site, op, a, b, constant)
        } else {
            self.arith_integer(site, op, a, b, constant)
        }
    }

    fn arith_integer(
        &mut self,
        site: &Site,
        op: ArithOp,
        a: Value,
        b: Value,
        constant: Option<Const>,
    ) -> Option<Value> {
        if op == ArithOp::Sub && a == b {
            return self.number(site, 0);
        }
        if matches!(op, ArithOp::Min | ArithOp::Max) {
            return self.known_extreme(op, a, b);
        }
        let c = constant?.as_i128()?;
        // `c` as a power of two that is also positive in the type.
        let power = (c > 0 && c & (c - 1) == 0).then(|| i128::from(c.trailing_zeros()));
        let unsigned = site.ty.class() == ScalarClass::Unsigned;
        match (op, c) {
            (ArithOp::Add, 0) | (ArithOp::FloorDiv | ArithOp::RawDiv | ArithOp::Mul, 1) => Some(a),
            (ArithOp::Mul, 0) | (ArithOp::Mod | ArithOp::RawMod, 1) => self.number(site, 0),
            (ArithOp::Add, _) => {
                let (x, inner) = self.with_constant(a, &OpKind::Arith(ArithOp::Add))?;
                let sum = fold(&OpKind::Arith(ArithOp::Add), &[inner, constant?], site.ty)?;
                let sum = self.constant(site.region, sum, site.loc);
                self.replace_with(site, OpKind::Arith(ArithOp::Add), &[x, sum])
            }
            // One form for `x - 1` and `x + -1`.
            (ArithOp::Sub, _) => {
                let negated = Const::from_bits(site.ty, (-c) as u64);
                let negated = self.constant(site.region, negated, site.loc);
                self.replace_with(site, OpKind::Arith(ArithOp::Add), &[a, negated])
            }
            (ArithOp::FloorDiv | ArithOp::RawDiv, _) if op == ArithOp::FloorDiv || unsigned => {
                let shift = self.number(site, power?)?;
                self.replace_with(site, OpKind::Bit(BitOp::Shr), &[a, shift])
            }
            (ArithOp::Mod | ArithOp::RawMod, _) if op == ArithOp::Mod || unsigned => {
                power?;
                let mask = self.number(site, c - 1)?;
                self.replace_with(site, OpKind::Bit(BitOp::And), &[a, mask])
            }
            _ => None,
        }
    }

    fn arith_real(
        &mut self,
        site: &Site,
        op: ArithOp,
        a: Value,
        b: Value,
        constant: Option<Const>,
    ) -> Option<Value> {
        let fast = self.kernel.options.rewrites_reals();
        if op == ArithOp::Sub && a == b && fast {
            return self.number(site, 0);
        }
        let constant = constant?;
        let c = constant.as_f64();
        let negative = constant.bits() >> (site.ty.bits() - 1) == 1;
        match op {
            ArithOp::Add if c == 0.0 && (negative || fast) => Some(a),
            ArithOp::Sub if c == 0.0 && (!negative || fast) => Some(a),
            ArithOp::Mul | ArithOp::Div | ArithOp::RawDiv if c == 1.0 => Some(a),
            ArithOp::Mul if c == 0.0 && fast => Some(b),
            ArithOp::Div | ArithOp::RawDiv => {
                // A power of two whose inverse is no subnormal has an exact inverse.
                let inverse = Const::from_f64(site.ty, 1.0 / c);
                let is_power = c.is_normal() && c.to_bits() << 12 == 0;
                let exact = is_power && inverse.as_f64() * c == 1.0;
                let inverse = exact.then(|| self.constant(site.region, inverse, site.loc))?;
                self.replace_with(site, OpKind::Arith(ArithOp::Mul), &[a, inverse])
            }
            _ => None,
        }
    }

    fn bit(&mut self, site: &Site, op: BitOp, a: Value, b: Value) -> Option<Value> {
        let kind = OpKind::Bit(op);
        let zero = |c: Const| c.bits() == 0;
        if op.is_shift() {
            let amount = self.as_const(b)?.as_i128()?;
            return (amount.rem_euclid(site.ty.bits().into()) == 0).then_some(a);
        }
        if a == b {
            return if op == BitOp::Xor { self.number(site, 0) } else { Some(a) };
        }
        let Some(constant) = self.as_const(b) else {
            return self.as_const(a).and_then(|_| self.replace_with(site, kind, &[b, a]));
        };
        let ones = constant == Const::from_bits(site.ty, u64::MAX);
        match op {
            BitOp::And if zero(constant) => Some(b),
            BitOp::And if ones => Some(a),
            BitOp::Or if ones => Some(b),
            BitOp::Or | BitOp::Xor if zero(constant) => Some(a),
            BitOp::Xor if ones => self.replace_with(site, OpKind::BitUnary(BitUnary::Not), &[a]),
            _ => {
                let (x, inner) = self.with_constant(a, &kind)?;
                let merged = fold(&kind, &[inner, constant], site.ty)?;
                let merged = self.constant(site.region, merged, site.loc);
                self.replace_with(site, kind, &[x, merged])
            }
        }
    }

    fn not(&mut self, site: &Site, a: Value) -> Option<Value> {
        if let Some(x) = self.operand_of(a, &OpKind::BitUnary(BitUnary::Not)) {
            return Some(x);
        }
        let def = self.kernel.def(a)?;
        let OpKind::Compare(op) = def.kind else { return None };
        let operands = def.operands.clone();
        let real = self.kernel.ty(operands[0]).scalar()?.is_real();
        let opposite = match op {
            CompareOp::Eq => CompareOp::Ne,
            CompareOp::Ne => CompareOp::Eq,
            // With a NaN both an order and its opposite are false.
            _ if real => return None,
            CompareOp::Lt => CompareOp::Ge,
            CompareOp::Le => CompareOp::Gt,
            CompareOp::Gt => CompareOp::Le,
            CompareOp::Ge => CompareOp::Lt,
        };
        self.replace_with(site, OpKind::Compare(opposite), &operands)
    }

    fn compare(&mut self, site: &Site, op: CompareOp, a: Value, b: Value) -> Option<Value> {
        let ty = self.kernel.ty(a).scalar()?;
        if let Some(known) = self.known_order(site, op, a, b) {
            return Some(known);
        }
        if a == b {
            let known = match op {
                CompareOp::Lt | CompareOp::Gt => Some(false),
                _ if ty.is_real() => None,
                CompareOp::Le | CompareOp::Ge | CompareOp::Eq => Some(true),
                CompareOp::Ne => Some(false),
            };
            return known.map(|known| self.constant(site.region, Const::bool(known), site.loc));
        }
        let Some(constant) = self.as_const(b) else {
            self.as_const(a)?;
            let mirrored = match op {
                CompareOp::Lt => CompareOp::Gt,
                CompareOp::Le => CompareOp::Ge,
                CompareOp::Gt => CompareOp::Lt,
                CompareOp::Ge => CompareOp::Le,
                CompareOp::Eq | CompareOp::Ne => op,
            };
            return self.replace_with(site, OpKind::Compare(mirrored), &[b, a]);
        };
        // A truth value compared with 0 or 1, as itself or widened.
        let truth = if ty == Scalar::U1 {
            a
        } else {
            self.operand_of(a, &OpKind::Convert(ConvertOp::Cast))
                .filter(|&x| self.kernel.ty(x).scalar() == Some(Scalar::U1))?
        };
        let with_zero = constant.is_zero();
        if !with_zero && constant.as_f64() != 1.0 {
            return None;
        }
        match op {
            CompareOp::Eq | CompareOp::Ne if with_zero == (op == CompareOp::Ne) => Some(truth),
            CompareOp::Eq | CompareOp::Ne => {
                self.replace_with(site, OpKind::BitUnary(BitUnary::Not), &[truth])
            }
            _ => None,
        }
    }

    fn select(&mut self, site: &Site, c: Value, a: Value, b: Value) -> Option<Value> {
        if a == b {
            return Some(a);
        }
        if let Some(known) = self.as_const(c) {
            return Some(if known.bits() == 1 { a } else { b });
        }
        if let Some(opposite) = self.operand_of(c, &OpKind::BitUnary(BitUnary::Not)) {
            return self.replace_with(site, OpKind::Select, &[opposite, b, a]);
        }
        if site.ty != Scalar::U1 {
            return None;
        }
        match (self.as_const(a).map(Const::bits), self.as_const(b).map(Const::bits)) {
            (Some(1), Some(0)) => Some(c),
            (Some(0), Some(1)) => self.replace_with(site, OpKind::BitUnary(BitUnary::Not), &[c]),
            (Some(1), _) => self.replace_with(site, OpKind::Bit(BitOp::Or), &[c, b]),
            (_, Some(0)) => self.replace_with(site, OpKind::Bit(BitOp::And), &[c, a]),
            _ => None,
        }
    }

    fn convert(&mut self, site: &Site, op: ConvertOp, a: Value) -> Option<Value> {
        let from = self.kernel.ty(a).scalar()?;
        // What is a constant for derivatives stays one.
        if from == site.ty && op != ConvertOp::Detach {
            return Some(a);
        }
        let inner = self.operand_of(a, &OpKind::Convert(op))?;
        let first = self.kernel.ty(inner).scalar()?;
        let collapses = match op {
            ConvertOp::BitCast | ConvertOp::Detach => true,
            ConvertOp::Cast => {
                // A real saturates where an integer wraps.
                let saturates =
                    from.is_real() && wraps(first) && wraps(site.ty) && !keeps_value(first, site.ty);
                // Nothing was lost on the way, or integers only ever lose high bits that the last type does not keep either.
                (keeps_value(first, from) && !saturates)
                    || (wraps(first) && wraps(from) && wraps(site.ty) && from.bits() >= site.ty.bits())
            }
        };
        if !collapses {
            return None;
        }
        if first == site.ty { Some(inner) } else { self.replace_with(site, OpKind::Convert(op), &[inner]) }
    }
}

/// Integers of several bits, which a cast reduces modulo a power of two.
fn wraps(ty: Scalar) -> bool {
    ty.is_integral() && ty != Scalar::U1
}

/// Whether every value of `from` is one of `to`.
fn keeps_value(from: Scalar, to: Scalar) -> bool {
    let significant = match to {
        Scalar::F16 => 11,
        Scalar::F32 => 24,
        Scalar::F64 => 53,
        _ => to.bits(),
    };
    match (from.class(), to.class()) {
        (ScalarClass::Real, ScalarClass::Real) => from.bits() <= to.bits(),
        (ScalarClass::Real, _) => false,
        (ScalarClass::Bool, _) => true,
        (_, ScalarClass::Bool) => false,
        (ScalarClass::Unsigned, ScalarClass::Unsigned | ScalarClass::Real) => from.bits() <= significant,
        (ScalarClass::Unsigned, ScalarClass::Signed) => from.bits() < significant,
        (ScalarClass::Signed, ScalarClass::Real) => from.bits() <= significant + 1,
        (ScalarClass::Signed, ScalarClass::Signed) => from.bits() <= significant,
        (ScalarClass::Signed, ScalarClass::Unsigned) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule against the thing itself: every pair of types, at the ends of the ranges.
    #[test]
    fn a_kept_value_survives_the_way_there_and_back() {
        for &from in Scalar::ALL {
            for &to in Scalar::ALL {
                let edges =
                    [0, 1, u64::MAX, u64::MAX >> 1, 1 << (from.bits() - 1), (1 << (from.bits() - 1)) + 1];
                let survives = edges.iter().all(|&bits| {
                    let value = Const::from_bits(from, bits);
                    let there = |c, ty| fold(&OpKind::Convert(ConvertOp::Cast), &[c], ty);
                    from.is_real() || there(value, to).and_then(|c| there(c, from)) == Some(value)
                });
                if keeps_value(from, to) && !(from.is_integral() && from.bits() == 64) {
                    assert!(survives, "{} to {}", from.name(), to.name());
                }
            }
        }
        assert!(!keeps_value(Scalar::I32, Scalar::F32) && keeps_value(Scalar::I32, Scalar::F64));
        assert!(!keeps_value(Scalar::U8, Scalar::I8) && keeps_value(Scalar::U8, Scalar::I16));
        assert!(!keeps_value(Scalar::I8, Scalar::U16));
    }
}
