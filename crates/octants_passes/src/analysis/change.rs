//! What an op may change of memory that an iteration has looked at.

use octants_ir::ops::Effects;
use octants_ir::{Kernel, Op, OpKind, SideTable, Type, Value};

/// What an op does to memory.
pub(crate) enum Change {
    Nothing,
    /// Reads or writes elements of one array.
    Elements {
        base: Value,
        writes: bool,
    },
    /// Another thread may have changed anything, or may look at what this one has done.
    Anything,
}

/// What an op does itself, without the ops in its regions. An iteration may learn of another one by an atomic update whose old value is used, a
/// compare-and-swap or a volatile load. `uses` says how often each value is used.
pub(crate) fn change_of(kernel: &Kernel, uses: &SideTable<Value, u32>, op: Op) -> Change {
    let data = &kernel.ops[op];
    let effects = data.kind.effects();
    if let Some(access) = kernel.cell_access(op) {
        let base = access.place.base();
        let used = data.results.iter().any(|&result| uses[result] > 0);
        return match (kernel.ty(base), &data.kind) {
            (Type::Local(_) | Type::Tape(_), _) => Change::Nothing,
            (Type::Array(_), OpKind::Load | OpKind::Store) => {
                Change::Elements { base, writes: access.writes }
            }
            (Type::Array(_), OpKind::Atomic(_)) if !used => Change::Elements { base, writes: true },
            _ => Change::Anything,
        };
    }
    let quiet = matches!(data.kind, OpKind::Local | OpKind::Tape | OpKind::Random | OpKind::Yield)
        || data.kind.has_regions();
    if quiet || !effects.intersects(Effects::WRITES | Effects::ENDS | Effects::CONVERGENT) {
        Change::Nothing
    } else {
        Change::Anything
    }
}

/// The element that a plain load or store of an array names, if that is all it does: a component outside of its shape is not stored.
pub(crate) fn plain_place(kernel: &Kernel, op: Op) -> Option<&[Value]> {
    if !matches!(kernel.ops[op].kind, OpKind::Load | OpKind::Store) {
        return None;
    }
    let place = kernel.cell_access(op)?.place;
    let constant = |&component: &Value| kernel.as_const(component).is_some();
    let is_element = matches!(kernel.ty(place.base()), Type::Array(_));
    (is_element && place.components().iter().all(constant)).then_some(place.operands())
}
