//! Looks a cell of a sparse tree up once, where it is surely there the second time.
//!
//! Before:
//! ```text
//! %1: i32 = load %words[%w]
//! %2: u1 = gt %1, %zero
//! %3: i32 = if %2 { yield %1 } else { %4: i32 = call func0 %w   yield %4 }
//! store %x[%3], %a
//! %5: i32 = load %words[%w]
//! %6: u1 = gt %5, %zero
//! %7: i32 = if %6 { yield %5 } else { %8: i32 = call func0 %w   yield %8 }
//! store %y[%7], %b
//! ```
//! After:
//! ```text
//! %1: i32 = load %words[%w]
//! %2: u1 = gt %1, %zero
//! %3: i32 = if %2 { yield %1 } else { %4: i32 = call func0 %w   yield %4 }
//! store %x[%3], %a
//! store %y[%3], %b
//! ```
//! Whoever calls a *stable* function, which gives the same for the same arguments for as long as the kernel runs, may take what an earlier call gave; and
//! what stood where the call was not needed is what it would have given. LLVM sees a call that may have changed everything.
//!
//! Acts inside of parallel loops. Expects equal arguments as equal values: it stands behind `simplify`. Structured phase.

use octants_ir::rewrite::ValueMap;
use octants_ir::{Func, Kernel, Op, OpKind, Region, Value};

use crate::eliminate_dead_code::eliminate_dead_code;

/// Cells that are remembered at a time: a bound on compile time. Chosen, not measured.
const MOST_KNOWN: usize = 256;

pub fn reuse_cells(kernel: &mut Kernel) {
    if !kernel.functions.iter().any(|(_, function)| function.is_stable) {
        return;
    }
    let mut names = ValueMap::new();
    for region in kernel.top_regions() {
        for op in kernel.regions[region].ops.clone() {
            if matches!(kernel.ops[op].kind, OpKind::ParallelFor(_)) {
                let body = kernel.ops[op].regions[0];
                reuse_in(kernel, body, &mut Vec::new(), &mut names);
            }
        }
    }
    if !names.is_empty() {
        eliminate_dead_code(kernel);
    }
}

/// A cell that is there.
pub(crate) struct KnownCell {
    maker: Func,
    pub arguments: Vec<Value>,
    /// The base and path of its entry.
    entry: Vec<Value>,
    /// What the entry was when it was looked at.
    pub found: Value,
    pub slot: Value,
}

fn reuse_in(kernel: &mut Kernel, region: Region, known: &mut Vec<KnownCell>, names: &mut ValueMap) {
    let outer = known.len();
    let mut kept = Vec::new();
    for op in std::mem::take(&mut kernel.regions[region].ops) {
        for operand in &mut kernel.ops[op].operands {
            *operand = names.resolve(*operand);
        }
        let data = &kernel.ops[op];
        if data.kind == OpKind::Load
            && let Some(cell) = known.iter().find(|cell| cell.entry[..] == data.operands[..])
        {
            names.insert(data.results[0], cell.slot);
            continue;
        }
        for inner in data.regions.clone() {
            reuse_in(kernel, inner, known, names);
        }
        if let Some(cell) = made_where_missing(kernel, op) {
            let same =
                known.iter().find(|other| other.maker == cell.maker && other.arguments == cell.arguments);
            if let Some(same) = same {
                names.insert(cell.slot, same.slot);
                continue;
            }
            if known.len() < MOST_KNOWN {
                known.push(cell);
            }
        }
        kept.push(op);
    }
    kernel.regions[region].ops = kept;
    known.truncate(outer);
}

/// The cell of an `if` that calls a stable function where an entry is not there.
pub(crate) fn made_where_missing(kernel: &Kernel, op: Op) -> Option<KnownCell> {
    let data = &kernel.ops[op];
    let (&[slot], &[there, missing]) = (&data.results[..], &data.regions[..]) else { return None };
    let (&[there], &[call, after]) = (&kernel.regions[there].ops[..], &kernel.regions[missing].ops[..])
    else {
        return None;
    };
    let (there, call, after) = (&kernel.ops[there], &kernel.ops[call], &kernel.ops[after]);
    let &OpKind::Call(maker) = &call.kind else { return None };
    let is_given = data.kind == OpKind::If && after.operands[..] == call.results[..];
    let &[entry] = &there.operands[..] else { return None };
    // Of a cell that is known it is the slot already.
    let load = kernel.def(entry).filter(|op| op.kind == OpKind::Load);
    (is_given && kernel.functions[maker].is_stable).then(|| KnownCell {
        maker,
        arguments: call.operands.to_vec(),
        entry: load.map_or_else(Vec::new, |load| load.operands.to_vec()),
        found: entry,
        slot,
    })
}
