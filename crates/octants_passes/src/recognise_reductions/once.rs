//! Whether an `if` lets one iteration alone run an op: `if i == 0:`.

use octants_ir::ops::{BitOp, CompareOp};
use octants_ir::{Const, Op, OpKind, Value, ValueDef};

use super::facts::Facts;
use crate::analysis::Affine;
use crate::edit::slots::yielded;

/// Whether the conditions around the op fix every index of the parallel loop.
pub(super) fn runs_once(facts: &Facts<'_>, parallel: Op, op: Op) -> bool {
    let Some(parallel) = facts.kernel.parallel_loop(parallel) else { return false };
    let known = |value: Value| facts.kernel.as_const(value).and_then(Const::as_i128);
    let count = |(lo, hi)| known(lo).zip(known(hi)).map(|(lo, hi)| (hi - lo).max(0));
    let indices: Vec<_> = parallel.indices().iter().copied().zip(parallel.bounds().map(count)).collect();
    let mut fixed = Vec::new();
    let mut region = facts.region(op);
    while let Some(guard) = region.and_then(|region| facts.owner(region)) {
        let data = &facts.kernel.ops[guard];
        if data.kind == OpKind::If && region == data.regions.first().copied() {
            fix(facts, data.operands[0], &indices, &mut fixed);
        }
        region = facts.region(guard);
    }
    indices.iter().all(|(index, count)| fixed.contains(index) || count.is_some_and(|count| count <= 1))
}

/// An index of the loop, and how many values it has, where that is known.
type Counted = (Value, Option<i128>);

/// Adds the indices that have one value where the condition holds.
fn fix(facts: &Facts<'_>, condition: Value, indices: &[Counted], fixed: &mut Vec<Value>) {
    let ValueDef::Result(op, result) = facts.kernel.values[condition].def else { return };
    let data = &facts.kernel.ops[op];
    match (&data.kind, &data.operands[..]) {
        (OpKind::Bit(BitOp::And), &[a, b]) => {
            fix(facts, a, indices, fixed);
            fix(facts, b, indices, fixed);
        }
        // `a and b`, lazily.
        (OpKind::If, &[first]) => {
            let otherwise = yielded(facts.kernel, data.regions[1])[result as usize];
            if facts.kernel.as_const(otherwise).is_some_and(Const::is_zero) {
                fix(facts, first, indices, fixed);
                fix(facts, yielded(facts.kernel, data.regions[0])[result as usize], indices, fixed);
            }
        }
        (OpKind::Compare(CompareOp::Eq), &[a, b]) => {
            for (side, other) in [(a, b), (b, a)] {
                if !facts.varies(other) {
                    fixed.extend(distinguished_indices(facts, side, indices));
                }
            }
        }
        _ => {}
    }
}

/// The indices that one value of a sum tells: one index, or digits, whose weights say which is which.
fn distinguished_indices(facts: &Facts<'_>, sum: Value, indices: &[Counted]) -> Vec<Value> {
    let Some(form) = Affine::of(facts.kernel, sum) else { return Vec::new() };
    let mut digits = Vec::new();
    for &(term, weight) in &form.terms {
        match indices.iter().find(|&&(index, _)| index == term) {
            Some(&(_, count)) => digits.push((i128::from(weight), count)),
            None if facts.varies(term) => return Vec::new(),
            None => {}
        }
    }
    let is_told = match &digits[..] {
        // An odd weight tells all integers of a type apart.
        [(weight, _)] if weight % 2 != 0 => true,
        _ => are_digits(digits, form.ty.bits()),
    };
    let told = form.terms.iter().map(|&(term, _)| term);
    if is_told {
        told.filter(|term| indices.iter().any(|(index, _)| index == term)).collect()
    } else {
        Vec::new()
    }
}

/// Whether no two choices of digits, each with its weight and how many values it has, have the same sum in integers of so many bits: all that lesser digits can
/// add is less than the weight of the next one, and nothing wraps around.
fn are_digits(mut digits: Vec<(i128, Option<i128>)>, bits: u32) -> bool {
    digits.sort_unstable_by_key(|&(weight, _)| weight.abs());
    let mut most = 0_i128;
    for (weight, count) in digits {
        let Some(count) = count else { return false };
        if weight.abs() <= most && count > 1 {
            return false;
        }
        // Weights and counts have at most 64 bits.
        most = most.saturating_add(weight.abs().saturating_mul((count - 1).max(0)));
    }
    most < 1 << bits.min(126)
}

#[cfg(test)]
mod tests {
    use super::are_digits;

    #[test]
    fn sums_of_bounded_digits_are_told_apart() {
        let digits = |of: &[(i128, i128)]| {
            are_digits(of.iter().map(|&(weight, count)| (weight, Some(count))).collect(), 32)
        };
        assert!(digits(&[(5, 3), (1, 5)]) && digits(&[(1, 5), (-5, 3)]) && digits(&[(1, 4), (4, 1 << 30)]));
        assert!(!digits(&[(2, 3), (1, 5)]), "2 · 0 + 4 and 2 · 1 + 2");
        assert!(!digits(&[(4, 3), (1, 6)]) && !digits(&[(1, 2), (1, 2)]));
        assert!(!digits(&[(1, 4), (4, (1 << 30) + 1)]), "the last one is the first one again");
        assert!(!are_digits(vec![(1, Some(4)), (4, None)], 32));
        // What has one value adds nothing that could be mistaken.
        assert!(digits(&[(1, 1), (1, 7)]));
    }
}
