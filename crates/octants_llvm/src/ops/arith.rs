//! Arithmetic. Integers wrap, so no instruction here carries `nsw` or `nuw`; divisors are made safe before dividing, so that
//! nothing traps and nothing is undefined.

use octants_ir::ops::ArithOp;
use octants_ir::{Const, Scalar, Value};

use crate::emitter::Emitter;
use crate::lowering::LibraryFunction;
use crate::value::Val;

/// How the lesser or the greater of two reals is found.
struct Extreme {
    intrinsic: &'static str,
    precedes: &'static str,
    precedes_or_equals: &'static str,
    /// What makes the sign of the zero that it is of those of two zeros.
    signs: &'static str,
    negative_zero_loses: bool,
}

const LEAST: Extreme = Extreme {
    intrinsic: "llvm.minnum",
    precedes: "olt",
    precedes_or_equals: "ole",
    signs: "or",
    negative_zero_loses: false,
};

const GREATEST: Extreme = Extreme {
    intrinsic: "llvm.maxnum",
    precedes: "ogt",
    precedes_or_equals: "oge",
    signs: "and",
    negative_zero_loses: true,
};

impl Emitter<'_> {
    /// Two operands, or the same one twice for `neg` and `abs`.
    pub(crate) fn arith(&mut self, op: ArithOp, a: Val, b: Val) -> Val {
        if a.ty.is_real() {
            self.real_arith(op, a, b)
        } else if a.ty == Scalar::U1 {
            self.bool_arith(op, a, b)
        } else {
            self.int_arith(op, a, b)
        }
    }

    fn real_arith(&mut self, op: ArithOp, a: Val, b: Val) -> Val {
        match op {
            ArithOp::Add => self.real_binary("fadd", a, b),
            ArithOp::Sub => self.real_binary("fsub", a, b),
            ArithOp::Mul => self.real_binary("fmul", a, b),
            ArithOp::Div | ArithOp::RawDiv => self.real_binary("fdiv", a, b),
            ArithOp::FloorDiv => {
                // No flags: an approximation just below a whole number would be one less.
                let quotient = self.binary("fdiv", a, b);
                self.intrinsic("llvm.floor", &[quotient], "")
            }
            ArithOp::Mod => {
                let quotient = self.real_arith(ArithOp::FloorDiv, a, b);
                let multiple = self.real_binary("fmul", quotient, b);
                self.real_binary("fsub", a, multiple)
            }
            ArithOp::RawMod => self.library(LibraryFunction::Remainder, &[a, b]),
            ArithOp::Min => self.real_extreme(&LEAST, a, b),
            ArithOp::Max => self.real_extreme(&GREATEST, a, b),
            ArithOp::Neg => {
                let flags = self.flags("fneg");
                self.f.value(a.ty(), format_args!("fneg {flags}{} {a}", a.ty()))
            }
            ArithOp::Abs => self.intrinsic("llvm.fabs", &[a], ""),
        }
    }

    /// A NaN loses, and −0.0 is less than 0.0. With fast math the second operand loses if it is a NaN, and a comparison is one instruction with the
    /// selection; what is accumulated is the first.
    fn real_extreme(&mut self, extreme: &Extreme, a: Val, b: Val) -> Val {
        if self.kernel.options.rewrites_reals() && !self.lowering.has_min_max() {
            let second = self.compare(extreme.precedes, b, a);
            return self.select(second, b, a);
        }
        // An instruction compares signs of zeros, and with fast math nobody does.
        if self.is_fast() || self.lowering.has_min_max() {
            return self.intrinsic(extreme.intrinsic, &[a, b], "");
        }
        match (a.as_const(), b.as_const()) {
            (None, Some(c)) if !c.as_f64().is_nan() => self.extreme_beside(extreme, a, b, c),
            (Some(c), None) if !c.as_f64().is_nan() => self.extreme_beside(extreme, b, a, c),
            _ => {
                // The intrinsic gives either of two zeros. Equal numbers differ in the sign of a zero alone.
                let chosen = self.intrinsic(extreme.intrinsic, &[a, b], "");
                let equal = self.compare("oeq", a, b);
                let (x, y) = (self.bits(a), self.bits(b));
                let bits = self.binary(extreme.signs, x, y);
                let either = self.bit_cast(bits, a.ty);
                self.select(equal, either, chosen)
            }
        }
    }

    /// Beside a constant that is no NaN it is one comparison: where a zero equals the constant, the constant's sign says which one it is.
    fn extreme_beside(&mut self, extreme: &Extreme, a: Val, constant: Val, value: Const) -> Val {
        let loses = value.is_zero() && value.as_f64().is_sign_negative() == extreme.negative_zero_loses;
        let predicate = if loses { extreme.precedes_or_equals } else { extreme.precedes };
        let first = self.compare(predicate, a, constant);
        self.select(first, a, constant)
    }

    /// One bit: a sum is an exclusive or, a product an and.
    fn bool_arith(&mut self, op: ArithOp, a: Val, b: Val) -> Val {
        match op {
            ArithOp::Add | ArithOp::Sub => self.binary("xor", a, b),
            ArithOp::Mul | ArithOp::Min => self.binary("and", a, b),
            ArithOp::Max => self.binary("or", a, b),
            ArithOp::Abs | ArithOp::Neg => a,
            // 0 by anything and anything by 0 give 0; 1 by 1 gives 1, and leaves no remainder.
            ArithOp::Div | ArithOp::FloorDiv | ArithOp::RawDiv => self.binary("and", a, b),
            ArithOp::Mod | ArithOp::RawMod => self.binary("xor", a, a),
        }
    }

    fn int_arith(&mut self, op: ArithOp, a: Val, b: Val) -> Val {
        let signed = a.ty.is_signed();
        match op {
            ArithOp::Add => self.binary("add", a, b),
            ArithOp::Sub => self.binary("sub", a, b),
            ArithOp::Mul => self.binary("mul", a, b),
            ArithOp::Div | ArithOp::RawDiv => self.truncating(a, b).quotient,
            ArithOp::RawMod => self.remainder(a, b),
            ArithOp::FloorDiv if signed => self.floor_div(a, b),
            ArithOp::FloorDiv => self.truncating(a, b).quotient,
            ArithOp::Mod if signed => self.floor_mod(a, b),
            ArithOp::Mod => self.remainder(a, b),
            ArithOp::Min => self.intrinsic(if signed { "llvm.smin" } else { "llvm.umin" }, &[a, b], ""),
            ArithOp::Max => self.intrinsic(if signed { "llvm.smax" } else { "llvm.umax" }, &[a, b], ""),
            ArithOp::Neg => self.binary("sub", Val::int(a.ty, 0), a),
            ArithOp::Abs if signed => self.intrinsic("llvm.abs", &[a], ", i1 false"),
            ArithOp::Abs => a,
        }
    }

    /// A divisor that neither traps nor overflows, and what must be put right afterwards.
    fn safe_divisor(&mut self, b: Val) -> Divisor {
        match b.as_int() {
            Some(0) => Divisor { safe: one(b), zero: Condition::Always, minus_one: Condition::Never },
            Some(-1) => Divisor { safe: one(b), zero: Condition::Never, minus_one: Condition::Always },
            Some(_) => Divisor { safe: b, zero: Condition::Never, minus_one: Condition::Never },
            None => {
                let zero = self.compare("eq", b, Val::int(b.ty, 0));
                if !b.ty.is_signed() {
                    let safe = self.select(zero, one(b), b);
                    return Divisor { safe, zero: Condition::If(zero), minus_one: Condition::Never };
                }
                let minus_one = self.compare("eq", b, Val::int(b.ty, -1));
                let either = self.binary("or", zero, minus_one);
                let safe = self.select(either, one(b), b);
                Divisor { safe, zero: Condition::If(zero), minus_one: Condition::If(minus_one) }
            }
        }
    }

    /// Toward zero; by zero gives 0, by −1 the negation.
    fn truncating(&mut self, a: Val, b: Val) -> Truncating {
        let divisor = self.safe_divisor(b);
        let mut quotient = self.quotient(a, divisor.safe);
        if divisor.minus_one != Condition::Never {
            let negated = self.binary("sub", Val::int(a.ty, 0), a);
            quotient = self.when(divisor.minus_one, negated, quotient);
        }
        quotient = self.when(divisor.zero, Val::int(a.ty, 0), quotient);
        Truncating { quotient, safe: divisor.safe }
    }

    /// Whether an op divides a signed number that is never negative by a positive constant, on a target that does so more quickly without signs.
    pub(crate) fn divides_unsigned(&self, op: ArithOp, operands: &[Value]) -> bool {
        let divides = matches!(op, ArithOp::FloorDiv | ArithOp::RawDiv | ArithOp::Mod | ArithOp::RawMod);
        let &[a, b] = operands else { return false };
        let by = self.kernel.as_const(b).and_then(Const::as_i128);
        divides
            && self.lowering.divides_unsigned()
            && by.is_some_and(|by| by > 0)
            && self.scalar(a).is_signed()
            && self.is_never_negative(a)
    }

    /// The quotient or remainder of such numbers, which rounding down and toward zero have in common.
    pub(crate) fn unsigned_quotient(&mut self, op: ArithOp, a: Val, b: Val) -> Val {
        let quotient = matches!(op, ArithOp::FloorDiv | ArithOp::RawDiv);
        self.binary(if quotient { "udiv" } else { "urem" }, a, b)
    }

    /// Of a divisor that is safe.
    fn quotient(&mut self, a: Val, b: Val) -> Val {
        let signed = a.ty.is_signed();
        if a.lanes.max(b.lanes) == 1 || b.as_const().is_some() {
            return self.binary(if signed { "sdiv" } else { "udiv" }, a, b);
        }
        // No vector instruction divides integers. The quotient of reals with more than twice the digits is off by less than what
        // it would take to reach the next integer.
        let real = match a.ty.bits() {
            8 | 16 => Scalar::F32,
            32 => Scalar::F64,
            _ => return self.by_lane(&[a, b], |e, v| e.quotient(v[0], v[1])),
        };
        let (to, from) = if signed { ("sitofp", "fptosi") } else { ("uitofp", "fptoui") };
        let (x, y) = (self.convert(to, a, real), self.convert(to, b, real));
        let (x, y) = self.same_lanes(x, y);
        let divided = self.f.value(x.ty(), format_args!("fdiv {} {x}, {y}", x.ty()));
        self.convert(from, divided, a.ty)
    }

    /// What division by a safe divisor leaves.
    fn rest(&mut self, a: Val, b: Val) -> Val {
        if a.lanes.max(b.lanes) == 1 || b.as_const().is_some() {
            return self.binary(if a.ty.is_signed() { "srem" } else { "urem" }, a, b);
        }
        let quotient = self.quotient(a, b);
        let multiple = self.binary("mul", quotient, b);
        self.binary("sub", a, multiple)
    }

    fn when(&mut self, when: Condition, then: Val, otherwise: Val) -> Val {
        match when {
            Condition::Never => otherwise,
            Condition::Always => then,
            Condition::If(condition) => self.select(condition, then, otherwise),
        }
    }

    /// With the sign of `a`. The safe divisor 1 leaves the 0 that both special cases ask for.
    fn remainder(&mut self, a: Val, b: Val) -> Val {
        let divisor = self.safe_divisor(b);
        self.rest(a, divisor.safe)
    }

    fn floor_div(&mut self, a: Val, b: Val) -> Val {
        if let Some(shift) = power_of_two(b) {
            return self.binary("ashr", a, Val::int(a.ty, shift.into()));
        }
        let Truncating { quotient, safe } = self.truncating(a, b);
        let remainder = self.rest(a, safe);
        let lower = self.signs_differ(remainder, safe);
        let one_less = self.binary("add", quotient, Val::int(a.ty, -1));
        self.select(lower, one_less, quotient)
    }

    fn floor_mod(&mut self, a: Val, b: Val) -> Val {
        if let Some(shift) = power_of_two(b) {
            return self.binary("and", a, Val::int(a.ty, (1_i128 << shift) - 1));
        }
        let divisor = self.safe_divisor(b);
        let remainder = self.rest(a, divisor.safe);
        let lower = self.signs_differ(remainder, divisor.safe);
        let shifted = self.binary("add", remainder, divisor.safe);
        self.select(lower, shifted, remainder)
    }

    /// Whether a remainder is not zero and has another sign than the divisor.
    fn signs_differ(&mut self, remainder: Val, divisor: Val) -> Val {
        if divisor.as_int().is_some_and(|b| b > 0) {
            return self.compare("slt", remainder, Val::int(remainder.ty, 0));
        }
        let inexact = self.compare("ne", remainder, Val::int(remainder.ty, 0));
        let signs = self.binary("xor", remainder, divisor);
        let differ = self.compare("slt", signs, Val::int(signs.ty, 0));
        self.binary("and", inexact, differ)
    }
}

struct Divisor {
    safe: Val,
    zero: Condition,
    minus_one: Condition,
}

struct Truncating {
    quotient: Val,
    safe: Val,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Never,
    Always,
    If(Val),
}

fn one(like: Val) -> Val {
    Val { lanes: 1, ..Val::int(like.ty, 1) }
}

/// The exponent, if the value is a constant positive power of two that the type can hold as such.
fn power_of_two(v: Val) -> Option<u32> {
    let value = v.as_int()?;
    (value > 0 && value.count_ones() == 1).then(|| value.trailing_zeros())
}
