//! Whether an `if` lets one iteration alone run an op: `if i == 0:`.

use octants_ir::ops::{BitOp, CompareOp};
use octants_ir::{Const, Op, OpKind, Value, ValueDef};

use super::facts::Facts;
use crate::analysis::Affine;
use crate::slots::yielded;

/// Whether the conditions around the op fix every index of the parallel loop.
pub(super) fn runs_once(facts: &Facts<'_>, parallel: Op, op: Op) -> bool {
    let Some(parallel) = facts.kernel.parallel_loop(parallel) else { return false };
    let mut fixed = Vec::new();
    let mut region = facts.region(op);
    while let Some(guard) = region.and_then(|region| facts.owner(region)) {
        let data = &facts.kernel.ops[guard];
        if data.kind == OpKind::If && region == data.regions.first().copied() {
            fix(facts, data.operands[0], parallel.indices(), &mut fixed);
        }
        region = facts.region(guard);
    }
    let known = |value: Value| facts.kernel.as_const(value).and_then(Const::as_i128);
    parallel.indices().iter().zip(parallel.bounds()).all(|(index, (lo, hi))| {
        fixed.contains(index) || known(lo).zip(known(hi)).is_some_and(|(lo, hi)| hi - lo <= 1)
    })
}

/// Adds the indices that have one value where the condition holds.
fn fix(facts: &Facts<'_>, condition: Value, indices: &[Value], fixed: &mut Vec<Value>) {
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

/// The indices that one value of a sum tells: one index, or the digits of one, which have different weights.
fn distinguished_indices(facts: &Facts<'_>, sum: Value, indices: &[Value]) -> Vec<Value> {
    let Some(form) = Affine::of(facts.kernel, sum) else { return Vec::new() };
    let (counted, others): (Vec<_>, Vec<_>) = form.terms.iter().partition(|(term, _)| indices.contains(term));
    let apart = match &counted[..] {
        [(_, weight)] => weight.abs() == 1,
        several => several.iter().enumerate().all(|(at, (_, weight))| {
            *weight > 0 && several[..at].iter().all(|(_, earlier)| earlier != weight)
        }),
    };
    if apart && others.iter().all(|&(term, _)| !facts.varies(term)) {
        counted.iter().map(|(term, _)| *term).collect()
    } else {
        Vec::new()
    }
}
