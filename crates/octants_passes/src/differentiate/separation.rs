//! Whether two accesses never touch one cell, from all that bounds their indices: loops, conditions, quotients and remainders.
//!
//! Law: **accesses that are separate are of different cells in any run of the kernel with these numbers.** All of it is one system of linear equations and
//! inequalities over the iterations of both accesses, which must have no solution: their indices are equal, their loops and conditions let them run, and their
//! iterations are apart as asked. What a launch tells (arguments, extents) is an unknown of the system when a kernel is compiled, and a number
//! when it is launched: one test for both.
//!
//! Sums of a type wrap: two indices are equal if their difference is a multiple of what the type holds. A sum that might wrap says nothing where it is compared or
//! divided.

use std::collections::HashMap;

use octants_ir::ops::{ArithOp, BitOp, BitUnary, CompareOp, ConvertOp};
use octants_ir::{Op, OpKind, Scalar, Value, ValueDef};

use super::dependence::{Dependence, Direction};
use super::told::{Told, told_as};
use crate::analysis::{Linear, System};

/// Ops in a row that are looked through. Chosen, not measured: it bounds the stack.
const DEEPEST: u32 = 48;
/// Conditions of which two cases are tried, at most.
const MOST_SPLITS: usize = 5;

/// Bits that a mask may have. Chosen, not measured.
const MOST_BITS: u32 = 4;

/// Which of the two accesses something belongs to; none where both see one and the same value.
type Side = Option<usize>;

/// Whether `ops`, apart like that, are surely of different cells. `positions` are pairs of indices.
pub(super) fn are_separate(
    dependence: &Dependence<'_>,
    ops: [Op; 2],
    direction: Direction<'_>,
    positions: &[(Value, Value)],
) -> bool {
    let mut made = Separation::new(dependence, ops, direction);
    for &(first, second) in positions {
        made.require_same(first, second);
    }
    if made.is_contradiction {
        return true;
    }
    for (number, op) in ops.into_iter().enumerate() {
        made.require_to_run(op, Some(number));
    }
    let cases: Vec<Vec<(Value, i128)>> = match direction {
        Direction::Same | Direction::While(_) => vec![Vec::new()],
        Direction::Later(_, index) => vec![vec![(index, 1)]],
        // The first axis along which they differ, up or down.
        Direction::Different(_, indices) => (0..indices.len())
            .flat_map(|axis| {
                [1, -1].map(|way| {
                    let same = indices[..axis].iter().map(|&index| (index, 0));
                    same.chain([(indices[axis], way)]).collect()
                })
            })
            .collect(),
    };
    cases.into_iter().all(|case| made.is_empty_where(&case))
}

/// Whether the indices of the two are at some position never between the same bounds, in whatever iterations.
pub(super) fn are_parts_apart(
    dependence: &Dependence<'_>,
    ops: [Op; 2],
    positions: &[(Value, Value)],
) -> bool {
    let mut made = Separation::new(dependence, ops, Direction::Same);
    positions.iter().any(|&(first, second)| {
        let [Some(one), Some(other)] = [first, second].map(|index| made.scalar(index)) else { return false };
        let (first, second) = (made.sum(first, Some(0), DEEPEST), made.sum(second, Some(1), DEEPEST));
        let (a, b) = (made.range(&first), made.range(&second));
        made.fits(&first, one) && made.fits(&second, other) && (a.1 < b.0 || b.1 < a.0)
    })
}

struct Separation<'o, 'k> {
    dependence: &'o Dependence<'k>,
    ops: [Op; 2],
    direction: Direction<'o>,
    system: System,
    /// Of each variable.
    bounds: Vec<(i128, i128)>,
    sums: HashMap<(Value, Side), Linear>,
    extents: HashMap<Told, Linear>,
    /// Quotients and remainders.
    divisions: HashMap<(Linear, i128), [Linear; 2]>,
    /// Of two sums at least one is not negative.
    splits: Vec<[Linear; 2]>,
    is_contradiction: bool,
}

/// Larger than any integer of a program, and small enough to be added up.
const ENDLESS: i128 = 1 << 100;

impl<'o, 'k> Separation<'o, 'k> {
    fn new(dependence: &'o Dependence<'k>, ops: [Op; 2], direction: Direction<'o>) -> Self {
        Self {
            dependence,
            ops,
            direction,
            system: System::default(),
            bounds: Vec::new(),
            sums: HashMap::new(),
            extents: HashMap::new(),
            divisions: HashMap::new(),
            splits: Vec::new(),
            is_contradiction: false,
        }
    }
}

impl Separation<'_, '_> {
    /// With indices of the loop that the accesses are apart in: the second is as the first, or comes before or after it.
    fn is_empty_where(&mut self, case: &[(Value, i128)]) -> bool {
        if self.is_contradiction {
            return true;
        }
        let mut made = Vec::new();
        for &(index, way) in case {
            let (first, second) = (self.sum(index, Some(0), DEEPEST), self.sum(index, Some(1), DEEPEST));
            let Some(mut distance) = second.plus(-1, &first) else { return false };
            if way < 0 {
                let Some(back) = Linear::default().plus(-1, &distance) else { return false };
                distance = back;
            }
            distance.constant -= i128::from(way != 0);
            made.push((way, distance));
        }
        let mut system = self.system.clone();
        for (way, distance) in made {
            if way == 0 { system.require_zero(distance) } else { system.require_not_negative(distance) }
        }
        is_empty(&system, &self.splits)
    }

    /// Where a value is the same for both accesses.
    fn side(&self, value: Value, side: Side) -> Side {
        if self.dependence.is_same(value, self.ops, self.direction) { None } else { side }
    }

    /// A new integer between these. The system is not told: the bounds of types are of no use to it.
    fn variable(&mut self, low: i128, high: i128) -> Linear {
        self.bounds.push((low, high));
        Linear::variable(self.system.variable())
    }

    fn require_at_least(&mut self, least: i128, sum: &Linear) {
        if let Some(sum) = Linear::constant(-least).plus(1, sum) {
            self.system.require_not_negative(sum);
        }
    }

    fn require_at_most(&mut self, most: i128, sum: &Linear) {
        if let Some(sum) = Linear::constant(most).plus(-1, sum) {
            self.system.require_not_negative(sum);
        }
    }

    /// Between which integers a sum lies.
    fn range(&self, sum: &Linear) -> (i128, i128) {
        let mut range = (sum.constant, sum.constant);
        for &(variable, factor) in sum.terms() {
            let (low, high) = self.bounds[variable as usize];
            let (a, b) = (low.saturating_mul(factor), high.saturating_mul(factor));
            range = (range.0.saturating_add(a.min(b)), range.1.saturating_add(a.max(b)));
        }
        (range.0.max(-ENDLESS), range.1.min(ENDLESS))
    }

    /// Whether the sum is never wrapped in a type.
    fn fits(&self, sum: &Linear, ty: Scalar) -> bool {
        let (low, high) = self.range(sum);
        let (least, most) = span(ty);
        least <= low && high <= most
    }

    fn scalar(&self, value: Value) -> Option<Scalar> {
        self.dependence
            .kernel
            .ty(value)
            .scalar()
            .filter(|scalar| scalar.is_integral() && *scalar != Scalar::U1)
    }

    /// The two indices are equal.
    fn require_same(&mut self, first: Value, second: Value) {
        let (first, second) = (self.narrowed(first), self.narrowed(second));
        let (Some(one), Some(other)) = (self.scalar(first), self.scalar(second)) else { return };
        let (first, second) = (self.sum(first, Some(0), DEEPEST), self.sum(second, Some(1), DEEPEST));
        let Some(mut difference) = second.plus(-1, &first) else { return };
        if one != other {
            if self.fits(&first, one) && self.fits(&second, other) {
                self.system.require_zero(difference);
            }
            return;
        }
        let holds = 1_i128 << one.bits();
        let (low, high) = self.range(&difference);
        // Two rows, say: nothing else need be known.
        self.is_contradiction |=
            difference.as_constant().is_some_and(|constant| constant.rem_euclid(holds) != 0);
        if low <= -holds || high >= holds {
            let wraps = self.variable(-ENDLESS, ENDLESS);
            match difference.plus(holds, &wraps) {
                Some(sum) => difference = sum,
                None => return,
            }
        }
        self.system.require_zero(difference);
    }

    /// Without the casts to wider types around it, which keep integers apart.
    fn narrowed(&self, mut value: Value) -> Value {
        while let Some(data) = self.dependence.kernel.def(value)
            && data.kind == OpKind::Convert(ConvertOp::Cast)
            && let (Some(from), Some(to)) = (self.scalar(data.operands[0]), self.scalar(value))
            && span(to).0 <= span(from).0
            && span(from).1 <= span(to).1
        {
            value = data.operands[0];
        }
        value
    }

    /// What stands around the access lets it run.
    fn require_to_run(&mut self, op: Op, side: Side) {
        for (owner, region) in self.dependence.around(op) {
            let data = &self.dependence.kernel.ops[owner];
            match data.kind {
                OpKind::If => self.require(data.operands[0], data.regions[0] == region, side, DEEPEST),
                // Loops in which nobody uses the index run, too.
                OpKind::For => {
                    drop(self.sum(self.dependence.kernel.regions[region].params[0], side, DEEPEST));
                }
                _ => {}
            }
        }
    }

    /// The condition holds, or does not.
    fn require(&mut self, condition: Value, holds: bool, side: Side, depth: u32) {
        let kernel = self.dependence.kernel;
        if depth == 0 {
            return;
        }
        if let Some(known) = self.dependence.numbers.integer(kernel, condition) {
            self.is_contradiction |= (known != 0) != holds;
            return;
        }
        let Some(data) = kernel.def(condition) else { return };
        let operand = |number: usize| data.operands[number];
        let is_truth = |value: Value| kernel.ty(value).scalar() == Some(Scalar::U1);
        match data.kind {
            OpKind::Bit(BitOp::And) if holds => {
                self.require(operand(0), true, side, depth - 1);
                self.require(operand(1), true, side, depth - 1);
            }
            OpKind::Bit(BitOp::Or) if !holds => {
                self.require(operand(0), false, side, depth - 1);
                self.require(operand(1), false, side, depth - 1);
            }
            OpKind::BitUnary(BitUnary::Not) => self.require(operand(0), !holds, side, depth - 1),
            OpKind::Compare(op @ (CompareOp::Eq | CompareOp::Ne)) if is_truth(operand(0)) => {
                if let Some(constant) = self.dependence.numbers.integer(kernel, operand(1)) {
                    let same = (op == CompareOp::Eq) == holds;
                    self.require(operand(0), (constant != 0) == same, side, depth - 1);
                }
            }
            OpKind::Compare(op) => self.require_order(op, [operand(0), operand(1)], holds, side, depth - 1),
            _ => {}
        }
    }

    fn require_order(&mut self, op: CompareOp, values: [Value; 2], holds: bool, side: Side, depth: u32) {
        let [Some(one), Some(other)] = values.map(|value| self.scalar(value)) else { return };
        let [a, b] = values.map(|value| self.sum(value, side, depth));
        if !self.fits(&a, one) || !self.fits(&b, other) {
            return;
        }
        // a − b and b − a, less so much.
        let more = |a: &Linear, b: &Linear, by: i128| {
            let mut sum = a.plus(-1, b)?;
            sum.constant -= by;
            Some(sum)
        };
        let op = if holds { op } else { negated(op) };
        let made = match op {
            CompareOp::Lt => more(&b, &a, 1),
            CompareOp::Le => more(&b, &a, 0),
            CompareOp::Gt => more(&a, &b, 1),
            CompareOp::Ge => more(&a, &b, 0),
            CompareOp::Eq => {
                if let Some(sum) = a.plus(-1, &b) {
                    self.system.require_zero(sum);
                }
                return;
            }
            CompareOp::Ne => {
                if let (Some(above), Some(below)) = (more(&a, &b, 1), more(&b, &a, 1)) {
                    self.splits.push([above, below]);
                }
                return;
            }
        };
        if let Some(sum) = made {
            self.system.require_not_negative(sum);
        }
    }

    /// An integer as a sum; modulo what its type holds, unless the sum [fits](Self::fits).
    fn sum(&mut self, value: Value, side: Side, depth: u32) -> Linear {
        if let Some(known) = self.dependence.numbers.integer(self.dependence.kernel, value) {
            return Linear::constant(known);
        }
        let side = self.side(value, side);
        if let Some(known) = self.sums.get(&(value, side)) {
            return known.clone();
        }
        let found = depth.checked_sub(1).and_then(|depth| self.composed(value, side, depth));
        let found = found.unwrap_or_else(|| self.leaf(value, side, depth));
        self.sums.insert((value, side), found.clone());
        found
    }

    /// As a sum of others.
    fn composed(&mut self, value: Value, side: Side, depth: u32) -> Option<Linear> {
        let kernel = self.dependence.kernel;
        let ty = self.scalar(value)?;
        let data = kernel.def(value)?;
        let number =
            |of: &Self, operand: usize| of.dependence.numbers.integer(kernel, data.operands[operand]);
        let sum = |of: &mut Self, operand: usize| of.sum(data.operands[operand], side, depth);
        match data.kind {
            OpKind::Arith(ArithOp::Add) => sum(self, 0).plus(1, &sum(self, 1)),
            OpKind::Arith(ArithOp::Sub) => sum(self, 0).plus(-1, &sum(self, 1)),
            OpKind::Arith(ArithOp::Neg) => Linear::default().plus(-1, &sum(self, 0)),
            OpKind::Arith(ArithOp::Mul) => {
                let (factor, other) = match (number(self, 0), number(self, 1)) {
                    (Some(factor), _) => (factor, 1),
                    (_, Some(factor)) => (factor, 0),
                    _ => return None,
                };
                Linear::default().plus(factor, &sum(self, other))
            }
            OpKind::Bit(BitOp::Shl) => {
                let amount = number(self, 1)?.rem_euclid(ty.bits().into());
                Linear::default().plus(1 << amount, &sum(self, 0))
            }
            OpKind::Arith(op @ (ArithOp::FloorDiv | ArithOp::Mod)) => {
                let by = number(self, 1).filter(|&by| by > 0)?;
                let of = sum(self, 0);
                self.divided(&of, by, ty, op == ArithOp::Mod)
            }
            OpKind::Arith(op @ (ArithOp::RawDiv | ArithOp::RawMod)) => {
                let by = number(self, 1).filter(|&by| by > 0)?;
                let of = sum(self, 0);
                let is_floor = self.range(&of).0 >= 0 && self.fits(&of, ty);
                if is_floor { self.divided(&of, by, ty, op == ArithOp::RawMod) } else { None }
            }
            OpKind::Bit(op @ (BitOp::Shr | BitOp::LShr)) => {
                let amount = number(self, 1)?.rem_euclid(ty.bits().into());
                let of = sum(self, 0);
                let is_floor = op == BitOp::Shr || self.range(&of).0 >= 0 && self.fits(&of, ty);
                if is_floor { self.divided(&of, 1 << amount, ty, false) } else { None }
            }
            OpKind::Bit(op @ (BitOp::And | BitOp::Or | BitOp::Xor)) => {
                let (mask, other) = match (number(self, 0), number(self, 1)) {
                    (Some(mask), _) => (mask, 1),
                    (_, Some(mask)) => (mask, 0),
                    _ => return None,
                };
                let of = sum(self, other);
                if mask == 0 {
                    return Some(if op == BitOp::And { Linear::default() } else { of });
                }
                if op == BitOp::And && mask > 0 && (mask + 1).count_ones() == 1 {
                    return self.divided(&of, mask + 1, ty, true);
                }
                if mask <= 0 || mask.count_ones() > MOST_BITS {
                    return None;
                }
                // Each bit is a variable of its own.
                let mut found = if op == BitOp::And { Linear::default() } else { of.clone() };
                for place in (0..ty.bits()).map(|number| 1_i128 << number).filter(|place| mask & place != 0) {
                    let above = self.divided(&of, place, ty, false)?;
                    let bit = self.divided(&above, 2, ty, true)?;
                    let (set, factor) = match op {
                        BitOp::And => (0, 1),
                        BitOp::Or => (place, -1),
                        _ => (place, -2),
                    };
                    found = found.plus(1, &Linear::constant(set))?.plus(factor * place, &bit)?;
                }
                Some(found)
            }
            OpKind::Arith(op @ (ArithOp::Min | ArithOp::Max)) => {
                let (a, b) = (sum(self, 0), sum(self, 1));
                if !self.fits(&a, ty) || !self.fits(&b, ty) {
                    return None;
                }
                let way = if op == ArithOp::Min { 1 } else { -1 };
                let (one, two) = (self.range(&a), self.range(&b));
                let found = if way > 0 {
                    self.variable(one.0.min(two.0), one.1.min(two.1))
                } else {
                    self.variable(one.0.max(two.0), one.1.max(two.1))
                };
                for bound in [&a, &b] {
                    let sum = bound.plus(-1, &found).and_then(|sum| Linear::default().plus(way, &sum));
                    self.system.require_not_negative(sum?);
                }
                Some(found)
            }
            OpKind::Convert(ConvertOp::Cast) => {
                let from = self.scalar(data.operands[0])?;
                let inner = sum(self, 0);
                (self.fits(&inner, from) && self.fits(&inner, ty)).then_some(inner)
            }
            _ => None,
        }
    }

    /// The quotient, rounded down, or the remainder.
    fn divided(&mut self, of: &Linear, by: i128, ty: Scalar, remains: bool) -> Option<Linear> {
        if by == 1 {
            return Some(if remains { Linear::default() } else { of.clone() });
        }
        // Powers of two divide what the type holds.
        let wraps = !self.fits(of, ty);
        let key = (of.clone(), by);
        // Where the sum wraps, what is known of it in a wider type is of another number.
        if (!wraps || remains && by.count_ones() == 1)
            && let Some([quotient, remainder]) = self.divisions.get(&key)
        {
            return Some(if remains { remainder } else { quotient }.clone());
        }
        if wraps && !(remains && by.count_ones() == 1) {
            return None;
        }
        let (low, high) = self.range(of);
        let quotient = if wraps {
            self.variable(-ENDLESS, ENDLESS)
        } else {
            self.variable(low.div_euclid(by), high.div_euclid(by))
        };
        let remainder = self.variable(0, by - 1);
        self.require_at_least(0, &remainder);
        self.require_at_most(by - 1, &remainder);
        let back = remainder.plus(by, &quotient)?;
        self.system.require_zero(of.plus(-1, &back)?);
        if !wraps {
            self.divisions.insert(key, [quotient.clone(), remainder.clone()]);
        }
        Some(if remains { remainder } else { quotient })
    }

    /// As a variable of its own.
    fn leaf(&mut self, value: Value, side: Side, depth: u32) -> Linear {
        let kernel = self.dependence.kernel;
        let (mut low, mut high) = self.scalar(value).map_or((-ENDLESS, ENDLESS), span);
        if let Some(told @ Told::Extent(..)) = told_as(kernel, value) {
            if let Some(known) = self.extents.get(&told) {
                return known.clone();
            }
            let made = self.variable(0, high);
            self.require_at_least(0, &made);
            self.extents.insert(told, made.clone());
            return made;
        }
        let bounds = self.loop_bounds(value).filter(|_| depth > 0);
        let Some((begin, end)) = bounds else { return self.variable(low, high) };
        let (Some(of_begin), Some(of_end)) = (self.scalar(begin), self.scalar(end)) else {
            return self.variable(low, high);
        };
        // Where the loop stands, both may see the same.
        let (begin, mut end) = (self.sum(begin, side, depth - 1), self.sum(end, side, depth - 1));
        end.constant -= 1;
        let is_begin = self.fits(&begin, of_begin);
        let is_end = self.fits(&end.plus(1, &Linear::constant(1)).unwrap_or_default(), of_end);
        if is_begin {
            low = low.max(self.range(&begin).0);
        }
        if is_end {
            high = high.min(self.range(&end).1);
        }
        if low > high {
            // The loop does not run.
            self.is_contradiction = true;
        }
        let index = self.variable(low, high.max(low));
        if is_begin && let Some(sum) = index.plus(-1, &begin) {
            self.system.require_not_negative(sum);
        }
        if is_end && let Some(sum) = end.plus(-1, &index) {
            self.system.require_not_negative(sum);
        }
        index
    }

    /// The bounds of the loop whose index the value is.
    fn loop_bounds(&self, value: Value) -> Option<(Value, Value)> {
        let kernel = self.dependence.kernel;
        let ValueDef::Param(region, number) = kernel.values[value].def else { return None };
        let owner = self.dependence.parents.op(region)?;
        match kernel.ops[owner].kind {
            OpKind::For if number == 0 => {
                let operands = &kernel.ops[owner].operands;
                Some((operands[0], operands[1]))
            }
            OpKind::ParallelFor(_) => kernel.parallel_loop(owner)?.bounds().nth(number as usize),
            _ => None,
        }
    }
}

fn negated(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Ge,
        CompareOp::Le => CompareOp::Gt,
        CompareOp::Gt => CompareOp::Le,
        CompareOp::Ge => CompareOp::Lt,
        CompareOp::Eq => CompareOp::Ne,
        CompareOp::Ne => CompareOp::Eq,
    }
}

fn is_empty(system: &System, splits: &[[Linear; 2]]) -> bool {
    if system.is_empty() {
        return true;
    }
    let Some((first, rest)) = splits[..splits.len().min(MOST_SPLITS)].split_first() else { return false };
    first.iter().all(|case| {
        let mut system = system.clone();
        system.require_not_negative(case.clone());
        is_empty(&system, rest)
    })
}

/// The least and the greatest integer of a type.
fn span(ty: Scalar) -> (i128, i128) {
    let bits = ty.bits();
    if ty.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}
