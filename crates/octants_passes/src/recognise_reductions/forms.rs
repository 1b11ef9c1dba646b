//! The forms that an update of a shared cell may have.

use octants_ir::ops::{ArithOp, AtomicOp, BitOp, BitUnary, CompareOp, ConvertOp};
use octants_ir::{Builder, Const, Op, OpKind, Region, Scalar, Value, ValueDef};

use super::facts::{Cell, Facts};
use crate::analysis::is_check;
use crate::edit::slots::yielded;

/// What a store to a shared cell becomes.
pub(super) struct Update {
    pub store: Op,
    pub op: AtomicOp,
    pub value: Operand,
    /// The comparison that decided whether the store runs, if it is not needed any more: the op and operand that use it, and what stands
    /// there instead.
    pub guard: Option<(Op, usize, bool)>,
    /// Loads of the cell that stay and do no harm: whatever they see, the update does the right thing.
    pub harmless: Vec<Op>,
    /// Whether a value that is no number is stored, too, as it is in order, where an update would pass it over.
    pub stores_nan: bool,
}

/// What a cell is combined with, in terms of values that are there already.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    Value(Value),
    Const(Const),
    Binary(OpKind, Box<Operand>, Value),
    Unary(OpKind, Box<Operand>),
    Negated(Value),
    Cast(Box<Operand>, Scalar),
}

impl Operand {
    pub fn build(&self, b: &mut Builder<'_>) -> Value {
        match self {
            Self::Value(value) => *value,
            Self::Const(constant) => b.constant(*constant),
            Self::Negated(value) => b.arith_unary(ArithOp::Neg, *value),
            Self::Cast(inner, to) => {
                let inner = inner.build(b);
                b.cast(inner, *to)
            }
            Self::Unary(kind, inner) => {
                let inner = inner.build(b);
                let ty = b.kernel.ty(inner);
                let op = b.op(kind.clone(), [inner], [ty], []);
                b.kernel.ops[op].results[0]
            }
            Self::Binary(kind, first, second) => {
                let first = first.build(b);
                let ty = b.kernel.ty(first);
                let op = b.op(kind.clone(), [first, *second], [ty], []);
                b.kernel.ops[op].results[0]
            }
        }
    }
}

/// A value as what the cell held, combined with something.
struct Chain {
    /// `None` for the cell itself.
    op: Option<AtomicOp>,
    rest: Option<Operand>,
    /// Whether the cell's value was cast first.
    cast: bool,
}

/// Sums of more parts than this are not looked into. Chosen, not measured: it bounds the time for each store of a long sum.
const MAX_CHAIN_LENGTH: u32 = 64;

/// The store as an update, if it has one of the forms.
pub(super) fn update_of(facts: &Facts<'_>, store: Op, cell: &Cell) -> Option<Update> {
    let value = *facts.kernel.ops[store].operands.last()?;
    combined(facts, store, cell, value)
        .or_else(|| compared(facts, store, cell, value))
        .or_else(|| decided(facts, store, cell, value))
}

/// `s = s + v`, `s = v + s`, `s = s - v`, `m = max(m, v)`, and longer ones.
fn combined(facts: &Facts<'_>, store: Op, cell: &Cell, value: Value) -> Option<Update> {
    let to = facts.kernel.ty(value).scalar()?;
    let (inner, cast) = match facts.kernel.def(value) {
        Some(def) if def.kind == OpKind::Convert(ConvertOp::Cast) => (def.operands[0], true),
        _ => (value, false),
    };
    let from = facts.kernel.ty(inner).scalar()?;
    let mut left = MAX_CHAIN_LENGTH;
    let chain = chain(facts, store, cell, inner, &mut left)?;
    let (op, rest) = (chain.op?, chain.rest?);
    if cast != chain.cast {
        return None;
    }
    if cast {
        // A wider sum is cut to what the sum of narrow parts is; reals are rounded once more.
        let is_sum = op == AtomicOp::Add && from.is_real() && to.is_real();
        let wraps = from.is_integral() && to.is_integral() && to.bits() <= from.bits() && to != Scalar::U1;
        let is_ring =
            matches!(op, AtomicOp::Add | AtomicOp::Mul | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor);
        if !(is_sum || wraps && is_ring) {
            return None;
        }
    }
    let (op, rest) = match rest {
        Operand::Negated(value) => (AtomicOp::Sub, Operand::Value(value)),
        rest => (op, rest),
    };
    let value = if cast { Operand::Cast(Box::new(rest), to) } else { rest };
    Some(Update { store, op, value, guard: None, harmless: Vec::new(), stores_nan: false })
}

fn chain(facts: &Facts<'_>, store: Op, cell: &Cell, value: Value, left: &mut u32) -> Option<Chain> {
    if facts.fresh_load(value, cell, store).is_some() {
        return Some(Chain { op: None, rest: None, cast: false });
    }
    let ValueDef::Result(..) = facts.kernel.values[value].def else { return None };
    let def = facts.kernel.def(value)?;
    if *left == 0 || !facts.varies(value) {
        return None;
    }
    *left -= 1;
    let (op, commutes) = match &def.kind {
        OpKind::Arith(ArithOp::Sub) => (AtomicOp::Add, false),
        OpKind::Convert(ConvertOp::Cast) => {
            facts.fresh_load(def.operands[0], cell, store)?;
            return Some(Chain { op: None, rest: None, cast: true });
        }
        // `~s` is `s ^ -1`, which `simplify` writes so, and `-s` is `s * -1`.
        OpKind::BitUnary(BitUnary::Not) => return unary(facts, store, cell, value, AtomicOp::Xor, left),
        OpKind::Arith(ArithOp::Neg) => return unary(facts, store, cell, value, AtomicOp::Mul, left),
        kind => (kind.as_update()?, true),
    };
    let &[a, b] = &def.operands[..] else { return None };
    let first = chain(facts, store, cell, a, left);
    let second = if commutes { chain(facts, store, cell, b, left) } else { None };
    let (inner, other) = match (first, second) {
        (Some(inner), None) => (inner, b),
        (None, Some(inner)) => (inner, a),
        _ => return None,
    };
    if inner.op.is_some_and(|inner| inner != op) {
        return None;
    }
    let rest = match inner.rest {
        None if !commutes => Operand::Negated(other),
        None => Operand::Value(other),
        Some(rest) => Operand::Binary(def.kind.clone(), Box::new(rest), other),
    };
    Some(Chain { op: Some(op), rest: Some(rest), cast: inner.cast })
}

/// A unary op as the update with -1: `~(s ^ v)` is `s ^ ~v`, and `-(s * v)` is `s * -v`.
fn unary(
    facts: &Facts<'_>,
    store: Op,
    cell: &Cell,
    value: Value,
    op: AtomicOp,
    left: &mut u32,
) -> Option<Chain> {
    let def = facts.kernel.def(value)?;
    let inner = chain(facts, store, cell, def.operands[0], left)?;
    if inner.op.is_some_and(|inner| inner != op) {
        return None;
    }
    let ty = facts.kernel.ty(value).scalar()?;
    let minus_one = if ty.is_real() { Const::from_f64(ty, -1.0) } else { Const::from_bits(ty, u64::MAX) };
    let rest = match inner.rest {
        None => Operand::Const(minus_one),
        Some(rest) => Operand::Unary(def.kind.clone(), Box::new(rest)),
    };
    Some(Chain { op: Some(op), rest: Some(rest), cast: inner.cast })
}

/// A condition that must hold, and where it is used.
struct Conjunct {
    value: Value,
    user: Op,
    operand: usize,
}

/// The conditions that together are the operand of an op: `a and b`, lazy or not.
fn conjuncts(facts: &Facts<'_>, user: Op, operand: usize, found: &mut Vec<Conjunct>) {
    let value = facts.kernel.ops[user].operands[operand];
    let used_once = facts.users(value).len() == 1;
    if let ValueDef::Result(op, index) = facts.kernel.values[value].def
        && used_once
    {
        let data = &facts.kernel.ops[op];
        match data.kind {
            OpKind::Bit(BitOp::And) => {
                conjuncts(facts, op, 0, found);
                conjuncts(facts, op, 1, found);
                return;
            }
            OpKind::If => {
                let [then, otherwise] = data.regions[..] else { return };
                let other = yielded(facts.kernel, otherwise)[index as usize];
                let is_false = facts.kernel.as_const(other).is_some_and(Const::is_zero);
                let end = facts.kernel.regions[then].ops.last().copied();
                if let Some(end) = end.filter(|_| is_false) {
                    conjuncts(facts, op, 0, found);
                    conjuncts(facts, end, index as usize, found);
                    return;
                }
            }
            _ => {}
        }
    }
    found.push(Conjunct { value, user, operand });
}

/// Whether a region, which only computes apart from one op, may fail as it does: it checks, or calls a function. `None` if it does more
/// than compute.
fn does_nothing_but(facts: &Facts<'_>, region: Region, store: Option<Op>) -> Option<bool> {
    let mut fails = false;
    for &op in &facts.kernel.regions[region].ops {
        let kind = &facts.kernel.ops[op].kind;
        // A function may be one that does not return where the condition does not hold.
        if is_check(kind) || facts.only_computes(op) {
            fails = true;
        } else if kind.stays() && Some(op) != store {
            return None;
        }
        for &inner in &facts.kernel.ops[op].regions {
            fails |= does_nothing_but(facts, inner, store)?;
        }
    }
    Some(fails)
}

/// `if v > m: m = v` and its like, also `if v <= m: pass else: m = v`.
fn compared(facts: &Facts<'_>, store: Op, cell: &Cell, value: Value) -> Option<Update> {
    let mut region = facts.region(store)?;
    while let Some(guard) = facts.owner(region).filter(|&op| facts.kernel.ops[op].kind == OpKind::If) {
        let found = compared_by(facts, guard, region, store, cell, value);
        if found.is_some() {
            return found;
        }
        region = facts.region(guard)?;
    }
    None
}

/// The update under the comparison of one of the `if`s around it, in whose region it stands.
fn compared_by(
    facts: &Facts<'_>,
    guard: Op,
    region: Region,
    store: Op,
    cell: &Cell,
    value: Value,
) -> Option<Update> {
    let data = &facts.kernel.ops[guard];
    let in_then = data.regions[0] == region;
    let mut found = Vec::new();
    conjuncts(facts, guard, 0, &mut found);
    if !in_then && found.len() > 1 {
        return None;
    }
    let (op, load, conjunct) = found.iter().find_map(|conjunct| {
        let def = facts.kernel.def(conjunct.value)?;
        let OpKind::Compare(relation) = def.kind else { return None };
        let &[a, b] = &def.operands[..] else { return None };
        // The relation of what is stored to what the cell holds.
        let (relation, load) = if let Some(load) = facts.fresh_load(b, cell, store)
            && facts.equal(a, value)
        {
            (relation, load)
        } else {
            let load = facts.fresh_load(a, cell, store).filter(|_| facts.equal(b, value))?;
            (mirrored(relation), load)
        };
        let is_greater = match relation {
            CompareOp::Gt | CompareOp::Ge => true,
            CompareOp::Lt | CompareOp::Le => false,
            CompareOp::Eq | CompareOp::Ne => return None,
        };
        Some((if is_greater == in_then { AtomicOp::Max } else { AtomicOp::Min }, load, conjunct))
    })?;
    let elsewhere = data.regions[usize::from(in_then)];
    let unused = data.results.iter().all(|&result| facts.users(result).is_empty());
    let alone = does_nothing_but(facts, region, Some(store)).zip(does_nothing_but(facts, elsewhere, None));
    // The comparison goes if it decides nothing but the store. Checks and calls keep it.
    let guard = match alone {
        Some((false, false)) if unused && facts.users(conjunct.value).len() == 1 => {
            Some((conjunct.user, conjunct.operand, in_then))
        }
        _ => None,
    };
    let harmless = if alone.is_some() && unused { vec![load] } else { Vec::new() };
    // No comparison with it holds, so it goes to the other side.
    let stores_nan = !in_then && facts.kernel.ty(value).scalar().is_some_and(Scalar::is_real);
    Some(Update { store, op, value: Operand::Value(value), guard, harmless, stores_nan })
}

fn mirrored(relation: CompareOp) -> CompareOp {
    match relation {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
        CompareOp::Eq | CompareOp::Ne => relation,
    }
}

/// `all_ok = all_ok and v`, `found = found or v`: the cell decides whether `v` is evaluated, and then is `v`.
fn decided(facts: &Facts<'_>, store: Op, cell: &Cell, value: Value) -> Option<Update> {
    let region = facts.region(store)?;
    let guard = facts.owner(region)?;
    let data = &facts.kernel.ops[guard];
    if data.kind != OpKind::If || facts.kernel.ty(value).scalar() != Some(Scalar::U1) {
        return None;
    }
    let load = facts.fresh_load(data.operands[0], cell, store)?;
    let in_then = data.regions[0] == region;
    does_nothing_but(facts, region, Some(store))?;
    does_nothing_but(facts, data.regions[usize::from(in_then)], None)?;
    let op = if in_then { AtomicOp::And } else { AtomicOp::Or };
    let value = Operand::Value(value);
    Some(Update { store, op, value, guard: None, harmless: vec![load], stores_nan: false })
}
