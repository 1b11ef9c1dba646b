//! Conditions that nobody knows before a kernel runs, since they follow from random numbers or the time.
//!
//! How often an op behind such a condition runs cannot be counted beforehand. At most it does so once each time that the `if` does; what an `if` keeps
//! at most is counted as kept.

use octants_ir::rewrite::{ops_in, regions_in};
use octants_ir::{Kernel, Op, OpKind, Region, SideTable, Value};

use super::refusal::RefusalKind;
use crate::edit::slots::yielded;

/// The outermost `if`s of a region whose condition nobody knows, and how many of `ops` run in one of their sides at most. Where some of these stand in a
/// loop inside, the `if` is left out.
pub(super) fn unforeseen(kernel: &Kernel, region: Region, ops: &[Op]) -> Vec<(Op, i32)> {
    if !ops_in(kernel, kernel.body).iter().any(|&op| repeats_otherwise(kernel, op)) {
        return Vec::new();
    }
    let (drawn, mut found) = (drawn_values(kernel), Vec::new());
    find(kernel, region, ops, &drawn, &mut found);
    found
}

fn find(
    kernel: &Kernel,
    region: Region,
    ops: &[Op],
    drawn: &SideTable<Value, bool>,
    found: &mut Vec<(Op, i32)>,
) {
    for &op in &kernel.regions[region].ops {
        let data = &kernel.ops[op];
        if data.kind == OpKind::If
            && drawn[data.operands[0]]
            && let Some(most) = most_in_one_side(kernel, op, ops).filter(|&most| most > 0)
        {
            found.push((op, most));
            continue;
        }
        for &inner in &data.regions {
            find(kernel, inner, ops, drawn, found);
        }
    }
}

/// How many of `ops` run where an `if` does, at most; `None` if a loop in it decides.
fn most_in_one_side(kernel: &Kernel, op: Op, ops: &[Op]) -> Option<i32> {
    let mut most = 0;
    for &region in &kernel.ops[op].regions {
        let mut count = 0;
        for &inner in &kernel.regions[region].ops {
            count += i32::from(ops.contains(&inner));
            let data = &kernel.ops[inner];
            if data.kind == OpKind::If {
                count += most_in_one_side(kernel, inner, ops)?;
            } else if data
                .regions
                .iter()
                .any(|&region| ops_in(kernel, region).iter().any(|op| ops.contains(op)))
            {
                return None;
            }
        }
        most = most.max(count);
    }
    Some(most)
}

fn repeats_otherwise(kernel: &Kernel, op: Op) -> bool {
    RefusalKind::of_repeating(&kernel.ops[op].kind).is_some()
}

/// Values, and places that hold some, which may follow from random numbers or the time.
fn drawn_values(kernel: &Kernel) -> SideTable<Value, bool> {
    let mut drawn = SideTable::new(false);
    loop {
        let mut is_new = false;
        let mut mark = |value: Value, drawn: &mut SideTable<Value, bool>| {
            is_new |= !drawn[value];
            drawn.set(value, true);
        };
        for op in ops_in(kernel, kernel.body) {
            let data = &kernel.ops[op];
            let follows = repeats_otherwise(kernel, op)
                || data.operands.iter().any(|&operand| drawn[operand])
                || data
                    .regions
                    .iter()
                    .any(|&region| yielded(kernel, region).iter().any(|&value| drawn[value]));
            if !follows {
                continue;
            }
            if let Some(access) = kernel.cell_access(op).filter(|access| access.writes) {
                mark(access.place.base(), &mut drawn);
            }
            for &result in &data.results {
                mark(result, &mut drawn);
            }
            for &region in &data.regions {
                for &param in &kernel.regions[region].params {
                    mark(param, &mut drawn);
                }
            }
        }
        if !is_new {
            return drawn;
        }
    }
}

/// The ops of a region, but for those inside of some of its `if`s.
pub(super) fn outside(kernel: &Kernel, ops: &[Op], ifs: &[(Op, i32)]) -> Vec<Op> {
    let mut inside = SideTable::new(false);
    for &(op, _) in ifs {
        for &region in &kernel.ops[op].regions {
            for region in regions_in(kernel, region) {
                for &op in &kernel.regions[region].ops {
                    inside.set(op, true);
                }
            }
        }
    }
    ops.iter().copied().filter(|&op| !inside[op]).collect()
}
