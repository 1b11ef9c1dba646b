//! Stores of a value that an `if` or a `select` chose, to a cell that all iterations share: each side stores for itself, and a side
//! that chose what the cell holds stores nothing.
//!
//! Before, with a shared cell `%m`:
//! ```text
//! %2: f32 = select %c, %v, %1      ; %1 is what %m holds
//! store %m, %2
//! ```
//! After:
//! ```text
//! if %c {
//!   store %m, %v
//! }
//! ```

use octants_ir::rewrite::{ValueMap, clone_op};
use octants_ir::{Const, Kernel, Op, OpKind, Region, SideTable, Value, ValueDef};

use super::facts::{Cell, Facts};
use crate::edit::slots::yielded;

/// A store and what each side is to store; nothing where the cell keeps what it holds.
struct BranchedStore {
    store: Op,
    /// The `if` that chose, or the `select`.
    choice: Op,
    values: [Option<Value>; 2],
    /// Ops that each side runs to have the path.
    again: Vec<Op>,
}

/// Rewrites the stores of a parallel loop's body. Returns whether there were some.
pub(super) fn store_in_branches(kernel: &mut Kernel, body: Region, overlap: bool) -> bool {
    let facts = Facts::new(kernel, body, overlap);
    let stores = facts.shared_stores();
    let found: Vec<_> = stores.into_iter().filter_map(|(store, cell)| sides(&facts, store, &cell)).collect();
    if found.is_empty() {
        return false;
    }
    let mut number = SideTable::new(None);
    for (index, sides) in found.iter().enumerate() {
        number.set(sides.store, Some(index));
    }
    rewrite(kernel, body, &found, &number);
    true
}

fn sides(facts: &Facts<'_>, store: Op, cell: &Cell) -> Option<BranchedStore> {
    let value = *facts.kernel.ops[store].operands.last()?;
    let ValueDef::Result(choice, index) = facts.kernel.values[value].def else { return None };
    if facts.users(value).len() != 1 || facts.region(choice) != facts.region(store) {
        return None;
    }
    let data = &facts.kernel.ops[choice];
    let values = match data.kind {
        OpKind::Select => [data.operands[1], data.operands[2]],
        OpKind::If => {
            let [then, otherwise] = data.regions[..] else { return None };
            let index = index as usize;
            [yielded(facts.kernel, then)[index], yielded(facts.kernel, otherwise)[index]]
        }
        _ => return None,
    };
    // The sides of an `if` come before the ops that compute the path.
    let place = facts.kernel.cell_access(store)?.place;
    let mut again = Vec::new();
    if data.kind == OpKind::If && !place.path().iter().all(|&index| facts.missing(index, choice, &mut again))
    {
        return None;
    }
    if facts.accessed_between(cell.base, choice, store) {
        return None;
    }
    let condition = data.operands[0];
    // `false` where the cell is known to be false, `true` where it is known to be true.
    let is_cell = |side: usize| {
        let constant = facts.kernel.as_const(values[side]).filter(|c| c.ty() == octants_ir::Scalar::U1);
        let known = constant.is_some_and(|c: Const| c.is_zero() == (side == 1));
        known && facts.fresh_load(condition, cell, store).is_some()
            || facts.fresh_load(values[side], cell, store).is_some()
    };
    let keeps = [is_cell(0), is_cell(1)];
    let stored = |side: usize| (!keeps[side]).then_some(values[side]);
    keeps.contains(&true).then(|| BranchedStore { store, choice, values: [stored(0), stored(1)], again })
}

fn rewrite(
    kernel: &mut Kernel,
    region: Region,
    found: &[BranchedStore],
    number: &SideTable<Op, Option<usize>>,
) {
    for op in std::mem::take(&mut kernel.regions[region].ops) {
        let Some(sides) = number[op].map(|index| &found[index]) else {
            kernel.regions[region].ops.push(op);
            for inner in kernel.ops[op].regions.clone() {
                rewrite(kernel, inner, found, number);
            }
            continue;
        };
        let loc = kernel.ops[op].loc;
        let regions = if kernel.ops[sides.choice].kind == OpKind::If {
            kernel.ops[sides.choice].regions.to_vec()
        } else {
            let condition = kernel.ops[sides.choice].operands[0];
            let regions: Vec<_> = (0..2).map(|_| kernel.add_region()).collect();
            for &side in &regions {
                let end = kernel.make_op(OpKind::Yield, [], [], [], loc);
                kernel.regions[side].ops.push(end);
            }
            let choice = kernel.make_op(OpKind::If, [condition], [], regions.clone(), loc);
            kernel.regions[region].ops.push(choice);
            regions
        };
        for (&side, &value) in regions.iter().zip(&sides.values) {
            let Some(value) = value else { continue };
            let end = kernel.regions[side].ops.pop().expect("a region ends in a terminator");
            let mut copies = ValueMap::new();
            for &op in &sides.again {
                let copy = clone_op(kernel, op, &mut copies);
                kernel.regions[side].ops.push(copy);
            }
            let place = kernel.cell_access(op).expect("a store accesses a cell").place;
            let mut operands: Vec<_> = place.operands().iter().map(|&operand| copies.map(operand)).collect();
            operands.push(value);
            let store = kernel.make_op(OpKind::Store, operands, [], [], loc);
            kernel.regions[side].ops.extend([store, end]);
        }
    }
}
