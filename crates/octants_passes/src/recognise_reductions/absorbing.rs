//! Stores of a constant that absorbs every other update of the cell.
//!
//! Before, with a shared cell `%s` (`s = s & v` beside `s = s & 0`, which `simplify` folded):
//! ```text
//! %2: i32 = atomic_and %s, %v
//! %3: i32 = const 0
//! store %s, %3
//! ```
//! After:
//! ```text
//! %2: i32 = atomic_and %s, %v
//! %3: i32 = const 0
//! %4: i32 = atomic_and %s, %3
//! ```
//! In whichever order iterations come, the cell holds the constant in the end: the store is no race.

use octants_ir::ops::AtomicOp;
use octants_ir::{Const, Kernel, Op, OpKind, SideTable};

use super::facts::{Cell, Facts};
use super::forms::{Operand, Update};
use super::reduction_of;

/// What an op does to a shared cell.
#[derive(Clone, Copy)]
enum Write {
    Update(AtomicOp),
    Constant(Const),
    Other,
}

/// The updates that stores of constants are, beside the updates that were found.
pub(super) fn absorbing_updates(facts: &Facts<'_>, stores: &[(Op, Cell)], updates: &[Update]) -> Vec<Update> {
    let mut recognised = SideTable::new(None);
    for update in updates {
        recognised.set(update.store, Some(update.op));
    }
    let constants: Vec<_> = stores
        .iter()
        .filter(|(store, _)| recognised[*store].is_none())
        .filter_map(|(store, cell)| Some((*store, cell, stored_constant(facts.kernel, *store)?)))
        .collect();
    if constants.is_empty() {
        return Vec::new();
    }
    let writes: Vec<_> = facts
        .ops
        .iter()
        .filter(|&&op| facts.kernel.cell_access(op).is_some_and(|access| access.writes))
        .filter_map(|&op| Some((facts.shared(op)?, write_of(facts.kernel, op, recognised[op]))))
        .collect();
    let absorbed_by = |cell: &Cell, constant: Const| {
        let mut reduction = None;
        for (_, write) in writes.iter().filter(|(other, _)| other.may_be(cell)) {
            match *write {
                Write::Constant(other) if other == constant => {}
                Write::Update(op) if reduction.is_none_or(|first| first == op) => reduction = Some(op),
                Write::Update(_) | Write::Constant(_) | Write::Other => return None,
            }
        }
        reduction.filter(|&op| absorbs(facts.kernel, op, constant))
    };
    constants
        .into_iter()
        .filter_map(|(store, cell, constant)| {
            let (op, value) = (absorbed_by(cell, constant)?, Operand::Const(constant));
            Some(Update { store, op, value, guard: None, harmless: Vec::new(), stores_nan: false })
        })
        .collect()
}

fn stored_constant(kernel: &Kernel, store: Op) -> Option<Const> {
    kernel.as_const(*kernel.ops[store].operands.last()?)
}

fn write_of(kernel: &Kernel, op: Op, recognised: Option<AtomicOp>) -> Write {
    match (recognised, &kernel.ops[op].kind) {
        (Some(atomic), _) | (None, &OpKind::Atomic(atomic)) => {
            reduction_of(atomic).map_or(Write::Other, Write::Update)
        }
        (None, OpKind::Store) => stored_constant(kernel, op).map_or(Write::Other, Write::Constant),
        (None, _) => Write::Other,
    }
}

/// Whether a cell that holds the constant holds it after every update of this kind, and the update with it leaves nothing else.
fn absorbs(kernel: &Kernel, op: AtomicOp, constant: Const) -> bool {
    let ty = constant.ty();
    // Infinities and NaNs times zero are NaN, and fast math does not ask.
    if ty.is_real() {
        return op == AtomicOp::Mul && constant.is_zero() && kernel.options.rewrites_reals();
    }
    // All bits, without the sign's bit where there is a sign.
    let greatest = u64::MAX >> (64 - ty.bits() + u32::from(ty.is_signed()));
    match op {
        AtomicOp::Mul | AtomicOp::And => constant.is_zero(),
        AtomicOp::Or => constant == Const::from_bits(ty, u64::MAX),
        AtomicOp::Min => constant == Const::from_bits(ty, if ty.is_signed() { !greatest } else { 0 }),
        AtomicOp::Max => constant == Const::from_bits(ty, greatest),
        AtomicOp::Add | AtomicOp::Sub | AtomicOp::Xor | AtomicOp::Exchange => false,
    }
}
