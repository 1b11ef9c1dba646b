//! The form that an assignment to bits of a word has: compare-and-swap until it succeeds.
//!
//! ```text
//! %old = load %words[…]
//! … = while carry (%o = %old, %done = false) {
//!   %going = not %done
//!   yield %going, %o, %done
//! } do (%o, %done) {
//!   %mask = shl %ones, %low
//!   %kept = and %o, (not %mask)
//!   %new = or %kept, (shl %bits, %low)
//!   … = if (ne %new, %o) {
//!     %seen = atomic_cas %words[…], %o, %new
//!     yield %seen, (eq %seen, %o)
//!   } else {
//!     yield %o, (eq %new, %o)
//!   }
//!   yield …
//! }
//! ```

use octants_ir::ops::{BitOp, BitUnary, CompareOp, ConvertOp, Domain};
use octants_ir::rewrite::ops_in;
use octants_ir::{Kernel, Op, OpKind, Region, SideTable, Type, Value};

/// Whether an op is a loop that may have such assignments and can be dealt out by words, with indices that are `i32`; most are not.
pub(crate) fn may_replace(kernel: &Kernel, op: Op) -> bool {
    let Some(parallel) = kernel.parallel_loop(op) else { return false };
    parallel.attributes.domain == Domain::Ranges
        && parallel.attributes.reductions.is_empty()
        && parallel.indices().iter().all(|&index| kernel.ty(index) == Type::I32)
        && ops_in(kernel, parallel.body).iter().any(|&op| kernel.ops[op].kind == OpKind::AtomicCas)
}

/// An assignment to bits of a word, the others staying as they are.
pub(crate) struct Replacement {
    pub(crate) base: Value,
    pub(crate) path: Vec<Value>,
    /// The number of the lowest bit.
    pub(crate) low: Value,
    /// As many ones as there are bits.
    pub(crate) ones: u64,
    pub(crate) bits: Value,
    /// The word before, and after.
    pub(crate) old: Value,
    pub(crate) new: Value,
    /// The ops that the new one is calculated by.
    pub(crate) calculated: Vec<Op>,
}

impl Replacement {
    /// The op as such an assignment, if it is one and nobody asks what was there.
    pub(crate) fn of(kernel: &Kernel, op: Op, uses: &SideTable<Value, u32>) -> Option<Self> {
        let data = &kernel.ops[op];
        let (OpKind::While, &[_, begins_done], &[condition, body]) =
            (&data.kind, &data.operands[..], &data.regions[..])
        else {
            return None;
        };
        let is_unused = data.results.iter().all(|&result| uses[result] == 0);
        let begins = kernel.as_const(begins_done).is_some_and(octants_ir::Const::is_zero);
        if !is_unused || !begins || !goes_on_until_done(kernel, condition) {
            return None;
        }
        let &[old, _] = &kernel.regions[body].params[..] else { return None };
        // All but the last two ops, the choice and the terminator, only calculate.
        let (&[choice, end], calculated) =
            kernel.regions[body].ops.split_last_chunk::<2>().map(|(a, b)| (b, a))?;
        if !calculated.iter().all(|&op| kernel.ops[op].kind.is_pure()) {
            return None;
        }
        let (choice, end) = (&kernel.ops[choice], &kernel.ops[end]);
        let (OpKind::If, &[changes], &[then, otherwise]) =
            (&choice.kind, &choice.operands[..], &choice.regions[..])
        else {
            return None;
        };
        if end.operands != choice.results {
            return None;
        }
        let new = other_of(kernel, changes, CompareOp::Ne, old)?;
        let &[exchange, equal, _] = &kernel.regions[then].ops[..] else { return None };
        let access =
            kernel.cell_access(exchange).filter(|_| kernel.ops[exchange].kind == OpKind::AtomicCas)?;
        let (&[expected, desired], &[seen]) = (access.values, &kernel.ops[exchange].results[..]) else {
            return None;
        };
        let is_same = kernel.ops[equal].results[0];
        let ends_then = kernel.terminator(then)?.operands[..] == [seen, is_same]
            && other_of(kernel, is_same, CompareOp::Eq, old) == Some(seen);
        let [kept, is_done] = kernel.terminator(otherwise)?.operands[..] else { return None };
        let ends_otherwise = kept == old && other_of(kernel, is_done, CompareOp::Eq, old) == Some(new);
        let calculates = kernel.regions[otherwise].ops.len() == 1;
        if expected != old || desired != new || !ends_then || !ends_otherwise || !calculates {
            return None;
        }
        let (base, path) = (access.place.base(), access.place.path().to_vec());
        let (low, ones, bits) = replaced(kernel, new, old)?;
        Some(Self { base, path, low, ones, bits, old, new, calculated: calculated.to_vec() })
    }
}

/// Whether a condition is that the second value it gets does not hold, and it hands on what it gets.
fn goes_on_until_done(kernel: &Kernel, condition: Region) -> bool {
    let (params, ops) = (&kernel.regions[condition].params, &kernel.regions[condition].ops);
    let (&[old, done], &[not, end]) = (&params[..], &ops[..]) else { return false };
    let not = &kernel.ops[not];
    not.kind == OpKind::BitUnary(BitUnary::Not)
        && not.operands[..] == [done]
        && kernel.ops[end].operands[..] == [not.results[0], old, done]
}

/// The operand beside `one` of a comparison.
fn other_of(kernel: &Kernel, value: Value, op: CompareOp, one: Value) -> Option<Value> {
    let data = kernel.def(value).filter(|data| data.kind == OpKind::Compare(op))?;
    match data.operands[..] {
        [a, b] if b == one => Some(a),
        [a, b] if a == one => Some(b),
        _ => None,
    }
}

/// The operands of an op of bits.
fn bit_operands(kernel: &Kernel, value: Value, op: BitOp) -> Option<[Value; 2]> {
    let data = kernel.def(value).filter(|data| data.kind == OpKind::Bit(op))?;
    data.operands[..].try_into().ok()
}

/// A value without casts between words and registers.
pub(crate) fn uncast(kernel: &Kernel, value: Value) -> Value {
    match kernel.def(value) {
        Some(op) if op.kind == OpKind::Convert(ConvertOp::Cast) => op.operands[0],
        _ => value,
    }
}

/// `(old & !(ones << low)) | (bits << low)`: what `low`, `ones` and `bits` are.
fn replaced(kernel: &Kernel, new: Value, old: Value) -> Option<(Value, u64, Value)> {
    let either = bit_operands(kernel, uncast(kernel, new), BitOp::Or)?;
    [either, [either[1], either[0]]].into_iter().find_map(|[kept, given]| {
        let [a, b] = bit_operands(kernel, kept, BitOp::And)?;
        let inverse = if uncast(kernel, a) == old {
            b
        } else if uncast(kernel, b) == old {
            a
        } else {
            return None;
        };
        let not = kernel.def(inverse).filter(|op| op.kind == OpKind::BitUnary(BitUnary::Not))?;
        let [ones, low] = bit_operands(kernel, not.operands[0], BitOp::Shl)?;
        let [bits, place] = bit_operands(kernel, given, BitOp::Shl)?;
        let ones = kernel.as_const(ones)?.bits();
        (place == low).then_some((low, ones, bits))
    })
}
