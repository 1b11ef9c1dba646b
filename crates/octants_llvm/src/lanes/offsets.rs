//! By how much the values of neighbouring lanes differ, where that is known while compiling.
//!
//! The lanes of a block begin at a multiple of how many run at once. So a lane's number divided by 16 is the same for 16 of them, its remainder counts them, and its number
//! with a bit flipped is theirs in another order: what kernels compute of the number of a thread is one number for all lanes and an offset of each.
//!
//! **In the lanes of a vector a value is `base + offsets[lane]`, modulo the type's 2ⁿ**, where `base` is the same for all lanes and a multiple of `multiple`, a power of two. Offsets
//! from 0 up to that multiple carry into no digit of the base: what divides by a power of two, or takes the remainder or bits, does it to base and offsets apart.

use std::rc::Rc;

use octants_ir::ops::{ArithOp, BitOp, CompareOp, ConvertOp};
use octants_ir::rewrite::ops_in;
use octants_ir::{Const, Kernel, Op, OpKind, Region, Scalar, SideTable, Value};

use super::uniform::varying_values_but;
use crate::counter::Range;

/// What only zero is a multiple of, as far as bases are concerned.
pub(crate) const ZERO: i64 = 1 << 62;
/// Offsets are less than this: products of two of them are far from the end of an `i64`.
const MOST: i64 = 1 << 24;
/// Definitions that are followed, one behind the other, to find what a value is a multiple of. Chosen, not measured: indices have fewer.
const MAX_DEFINITIONS: u32 = 6;
/// Rounds in which values turn out to be the same for all lanes. Chosen, not measured: each one follows another load.
const MAX_ROUNDS: u32 = 4;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Offsets {
    multiple: i64,
    /// That the base is not negative, and no lane wraps.
    natural: bool,
    pub of_lanes: Rc<[i64]>,
}

/// What differs between the lanes of a region, and by how much.
#[derive(Clone, Debug)]
pub(crate) struct LaneValues {
    pub lanes: u32,
    pub varying: SideTable<Value, bool>,
    /// Of varying values alone, and of those that turn out to be the same for all lanes, though they are computed from others.
    pub offsets: SideTable<Value, Option<Offsets>>,
}

impl LaneValues {
    /// The values of a region in so many lanes, which its parameter counts, from a multiple of `multiple` on that is not negative. `is_natural` says of an integer that it
    /// is not negative, whatever conditions stand around it, in any lane before the end. Lanes past the end do not run, but the first one is never among them, and that is enough: whatever
    /// asks whether offsets are natural asks whether they are digits, too; so the base is not negative where the first lane's value is not, and digits on top of it neither make
    /// a lane negative nor wrap.
    pub fn of(
        kernel: &Kernel,
        body: Region,
        (lanes, multiple): (u32, i64),
        is_natural: &dyn Fn(Value) -> bool,
    ) -> Self {
        let number = kernel.regions[body].params[0];
        let mut same = SideTable::new(false);
        let mut round = 0;
        loop {
            let varying = varying_values_but(kernel, body, &[number], &same);
            let mut analysis =
                Analysis { kernel, lanes, varying: &varying, is_natural, found: SideTable::new(None) };
            let of_lanes = (0..i64::from(lanes)).collect();
            analysis.found.set(number, Some(Offsets { multiple, natural: true, of_lanes }));
            let mut more = false;
            for op in ops_in(kernel, body) {
                if let [result] = kernel.ops[op].results[..]
                    && let Some(offsets) = analysis.of_op(op)
                {
                    let is_same = offsets.is_same();
                    if is_same && varying[result] && !same[result] {
                        same.set(result, true);
                        more = true;
                    }
                    analysis.found.set(result, Some(offsets));
                }
            }
            round += 1;
            if !more || round == MAX_ROUNDS {
                let offsets = analysis.found;
                let varying = if more { varying_values_but(kernel, body, &[number], &same) } else { varying };
                return Self { lanes, varying, offsets };
            }
        }
    }
}

impl Offsets {
    pub fn is_same(&self) -> bool {
        self.of_lanes.iter().all(|&offset| offset == self.of_lanes[0])
    }

    /// Offsets from the first lane's value.
    pub fn beyond_first(&self) -> Rc<[i64]> {
        self.of_lanes.iter().map(|offset| offset - self.of_lanes[0]).collect()
    }

    /// Whether no offset carries into the base, or borrows from it.
    fn is_digit(&self) -> bool {
        self.of_lanes.iter().all(|offset| (0..self.multiple).contains(offset))
    }

    fn constant(&self) -> Option<i64> {
        (self.multiple == ZERO && self.is_same()).then(|| self.of_lanes[0])
    }

    fn map(&self, multiple: i64, natural: bool, of: impl Fn(i64) -> i64) -> Self {
        Self { multiple, natural, of_lanes: self.of_lanes.iter().map(|&offset| of(offset)).collect() }
    }

    /// With offsets as small as they can be.
    fn reduced(self) -> Option<Self> {
        let least = self.of_lanes.iter().copied().min()?;
        let base = if self.multiple == ZERO { 0 } else { least.div_euclid(self.multiple) * self.multiple };
        let reduced = self.map(self.multiple, self.natural, |offset| offset - base);
        reduced.of_lanes.iter().all(|offset| offset.abs() < MOST).then_some(reduced)
    }
}

struct Analysis<'k> {
    kernel: &'k Kernel,
    lanes: u32,
    varying: &'k SideTable<Value, bool>,
    is_natural: &'k dyn Fn(Value) -> bool,
    found: SideTable<Value, Option<Offsets>>,
}

impl Analysis<'_> {
    fn of(&self, value: Value) -> Option<Offsets> {
        if let Some(offsets) = &self.found[value] {
            return Some(offsets.clone());
        }
        let all = |offset: i64| vec![offset; self.lanes as usize].into();
        if let Some(constant) = self.kernel.as_const(value) {
            let constant = i64::try_from(constant.as_i128()?).ok().filter(|c| c.abs() < MOST);
            return constant.map(|c| Offsets { multiple: ZERO, natural: c >= 0, of_lanes: all(c) });
        }
        let is_same = !self.varying[value] && self.kernel.ty(value).scalar().is_some_and(is_counted);
        is_same.then(|| Offsets {
            multiple: multiple_of(self.kernel, value, MAX_DEFINITIONS),
            natural: false,
            of_lanes: all(0),
        })
    }

    fn of_op(&self, op: Op) -> Option<Offsets> {
        let data = &self.kernel.ops[op];
        let has_rule = match data.kind {
            OpKind::Arith(_) | OpKind::Bit(_) | OpKind::Compare(_) | OpKind::Select => true,
            OpKind::Convert(convert) => convert == ConvertOp::Cast,
            _ => false,
        };
        if !has_rule {
            return None;
        }
        let scalar = self.kernel.ty(data.results[0]).scalar().filter(|scalar| !scalar.is_real())?;
        let operands = data.operands.iter().map(|&operand| self.of(operand)).collect::<Option<Vec<_>>>()?;
        if operands.iter().all(|operand| operand.multiple == ZERO) {
            return self.of_constants(op, &operands, scalar);
        }
        // What is the same in all lanes is computed as it stands.
        if !is_counted(scalar) || !data.operands.iter().any(|&operand| self.varying[operand]) {
            return None;
        }
        let cap = 1 << (scalar.bits() - 1).min(24);
        let found = match (&data.kind, &operands[..]) {
            (OpKind::Arith(arith), [a, b]) => of_arith(*arith, a, b, scalar)?,
            (OpKind::Bit(bit), [a, b]) => of_bits(*bit, a, b, scalar)?,
            (OpKind::Convert(_), [a]) => {
                let from = self.kernel.ty(data.operands[0]).scalar().filter(|&from| is_counted(from))?;
                let (wider, narrower) = (scalar.bits() > from.bits(), scalar.bits() < from.bits());
                if wider && !a.is_digit() {
                    return None;
                }
                a.map(a.multiple, a.natural && !narrower && (wider || from == scalar), |offset| offset)
            }
            _ => return None,
        };
        let found = if found.multiple == ZERO {
            found
        } else {
            found.map(found.multiple.min(cap), found.natural, |offset| offset)
        };
        let natural = found.natural || (self.is_natural)(data.results[0]);
        Offsets { natural, ..found }.reduced()
    }

    /// Of constants, though not the same for all lanes.
    fn of_constants(&self, op: Op, operands: &[Offsets], scalar: Scalar) -> Option<Offsets> {
        let data = &self.kernel.ops[op];
        let range = Range::of_type(scalar)?;
        let of_lane = |lane: usize| {
            let of = |number: usize| operands[number].of_lanes[lane];
            let result = match &data.kind {
                OpKind::Arith(arith) => match (arith, operands.len()) {
                    (ArithOp::Add, 2) => of(0) + of(1),
                    (ArithOp::Sub, 2) => of(0) - of(1),
                    (ArithOp::Mul, 2) => of(0) * of(1),
                    (ArithOp::Min, 2) => of(0).min(of(1)),
                    (ArithOp::Max, 2) => of(0).max(of(1)),
                    (ArithOp::FloorDiv | ArithOp::RawDiv, 2) if of(0) >= 0 && of(1) > 0 => of(0) / of(1),
                    (ArithOp::Mod | ArithOp::RawMod, 2) if of(0) >= 0 && of(1) > 0 => of(0) % of(1),
                    _ => return None,
                },
                OpKind::Bit(bit) => match bit {
                    BitOp::And if of(0) >= 0 || of(1) >= 0 => of(0) & of(1),
                    _ if of(0) < 0 || of(1) < 0 => return None,
                    BitOp::And => return None,
                    BitOp::Or => of(0) | of(1),
                    BitOp::Xor => of(0) ^ of(1),
                    BitOp::Shl if of(1) < 24 => of(0) << of(1),
                    BitOp::Shr | BitOp::LShr if of(1) < i64::from(scalar.bits()) => of(0) >> of(1),
                    BitOp::Shl | BitOp::Shr | BitOp::LShr => return None,
                },
                OpKind::Convert(_) if scalar == Scalar::U1 => i64::from(of(0) != 0),
                OpKind::Convert(_) => of(0),
                OpKind::Compare(compare) => i64::from(match compare {
                    CompareOp::Lt => of(0) < of(1),
                    CompareOp::Le => of(0) <= of(1),
                    CompareOp::Gt => of(0) > of(1),
                    CompareOp::Ge => of(0) >= of(1),
                    CompareOp::Eq => of(0) == of(1),
                    CompareOp::Ne => of(0) != of(1),
                }),
                OpKind::Select => {
                    if of(0) != 0 {
                        of(1)
                    } else {
                        of(2)
                    }
                }
                _ => return None,
            };
            // What wraps is something else.
            let fits = Range::new(result.into(), result.into()).lies_in(range);
            (fits && result.abs() < MOST).then_some(result)
        };
        let of_lanes: Rc<[i64]> = (0..self.lanes as usize).map(of_lane).collect::<Option<_>>()?;
        let natural = of_lanes.iter().all(|&offset| offset >= 0);
        Some(Offsets { multiple: ZERO, natural, of_lanes })
    }
}

fn of_arith(op: ArithOp, a: &Offsets, b: &Offsets, scalar: Scalar) -> Option<Offsets> {
    let both = |of: fn(i64, i64) -> i64| Offsets {
        multiple: a.multiple.min(b.multiple),
        natural: false,
        of_lanes: a.of_lanes.iter().zip(&*b.of_lanes).map(|(&a, &b)| of(a, b)).collect(),
    };
    let floors = |op: ArithOp| match op {
        ArithOp::FloorDiv | ArithOp::Mod => true,
        // Toward zero.
        _ => a.natural || !scalar.is_signed(),
    };
    match op {
        ArithOp::Add => Some(both(|a, b| a + b)),
        ArithOp::Sub => Some(both(|a, b| a - b)),
        ArithOp::Mul => match (a.constant(), b.constant()) {
            (_, Some(factor)) => Some(times(a, factor)),
            (Some(factor), None) => Some(times(b, factor)),
            (None, None) => None,
        },
        ArithOp::FloorDiv | ArithOp::Div | ArithOp::RawDiv if a.is_digit() && floors(op) => {
            divided(a, b.constant().filter(|&by| by > 0)?)
        }
        ArithOp::Mod | ArithOp::RawMod if a.is_digit() && floors(op) => {
            let by = b.constant().filter(|&by| by > 0)?;
            if a.multiple % by == 0 {
                Some(a.map(ZERO, true, |offset| offset % by))
            } else {
                (by % a.multiple == 0).then(|| a.map(a.multiple, true, |offset| offset))
            }
        }
        _ => None,
    }
}

fn of_bits(op: BitOp, a: &Offsets, b: &Offsets, scalar: Scalar) -> Option<Offsets> {
    if !matches!(op, BitOp::And | BitOp::Or | BitOp::Xor) {
        let by = u32::try_from(b.constant()?).ok().filter(|&by| by < scalar.bits().min(24))?;
        return match op {
            BitOp::Shl => Some(times(a, 1 << by)),
            BitOp::LShr if scalar.is_signed() && !a.natural => None,
            _ => a.is_digit().then(|| divided(a, 1 << by))?,
        };
    }
    let (a, bits) = match (a.constant(), b.constant()) {
        (None, Some(bits)) => (a, bits),
        (Some(bits), None) => (b, bits),
        _ => return None,
    };
    if !a.is_digit() {
        return None;
    }
    let low = bits & (a.multiple - 1);
    Some(match op {
        BitOp::And => {
            // Of a digit of the base nothing is left.
            let multiple = if low == bits { ZERO } else { a.multiple };
            a.map(multiple, bits >= 0, |offset| offset & low)
        }
        BitOp::Or => a.map(a.multiple, a.natural && bits >= 0, |offset| offset | low),
        _ => a.map(a.multiple, a.natural && bits >= 0, |offset| offset ^ low),
    })
}

/// Each a multiple of the factor.
fn times(a: &Offsets, factor: i64) -> Offsets {
    if factor == 0 {
        return a.map(ZERO, true, |_| 0);
    }
    let power = 1 << factor.trailing_zeros().min(24);
    a.map(a.multiple.min(MOST) * power, false, |offset| offset * factor)
}

/// Rounded down, by a number above zero.
fn divided(a: &Offsets, by: i64) -> Option<Offsets> {
    if a.multiple % by == 0 {
        return Some(a.map(a.multiple / by, a.natural, |offset| offset / by));
    }
    (by % a.multiple == 0).then(|| a.map(1, a.natural, |_| 0))
}

/// A power of two that an integer is a multiple of.
fn multiple_of(kernel: &Kernel, value: Value, depth: u32) -> i64 {
    if let Some(c) = kernel.as_const(value).and_then(Const::as_i128) {
        return 1 << c.trailing_zeros().min(24);
    }
    let Some(def) = kernel.def(value).filter(|_| depth > 0) else { return 1 };
    let of = |number: usize| multiple_of(kernel, def.operands[number], depth - 1);
    match def.kind {
        OpKind::Arith(ArithOp::Add | ArithOp::Sub) => of(0).min(of(1)),
        OpKind::Arith(ArithOp::Mul) => (of(0) * of(1)).min(MOST),
        OpKind::Convert(ConvertOp::Cast) if kernel.ty(def.operands[0]).scalar().is_some_and(is_counted) => {
            of(0)
        }
        _ => 1,
    }
}

fn is_counted(scalar: Scalar) -> bool {
    scalar.is_integral() && scalar != Scalar::U1
}
