//! Loads of widened code that give the same in each trip of a `for` run once, before it.
//!
//! LLVM hoists scalar loads, and vectors that lie side by side. A gather it takes for a read of any memory, and leaves it inside of every loop that writes
//! something: the gradient of forces between 1024 bodies (`pairs` of `benches/gradients.py`) gathered each body's own place again for each other body.

use octants_ir::rewrite::{ops_in, regions_in};
use octants_ir::{Kernel, Op, OpKind, Region, SideTable, Type, Value};

use crate::emitter::Emitter;
use crate::value::Val;

/// The loads of a `for` that differ between lanes, but not between trips. `apart` says that arrays of two parameters never share memory.
pub(crate) fn hoisted_loads(
    kernel: &Kernel,
    op: Op,
    varying: &SideTable<Value, bool>,
    apart: bool,
) -> Vec<Op> {
    let data = &kernel.ops[op];
    if data.kind != OpKind::For || data.operands[..2].iter().any(|&bound| varying[bound]) {
        return Vec::new();
    }
    let body = data.regions[0];
    let is_load = |&&op: &&Op| kernel.ops[op].kind == OpKind::Load;
    let loads: Vec<_> = kernel.regions[body].ops.iter().filter(is_load).copied().collect();
    if loads.is_empty() {
        return loads;
    }
    let Some(written) = written_arrays(kernel, body) else { return Vec::new() };
    let inside = values_in(kernel, body);
    let is_hoisted = |&op: &Op| {
        let path = &kernel.ops[op].operands;
        let is_apart = if apart { !written.contains(&path[0]) } else { written.is_empty() };
        matches!(kernel.ty(path[0]), Type::Array(_))
            && kernel.ty(kernel.ops[op].results[0]).scalar().is_some()
            && path.iter().any(|&value| varying[value])
            && !path.iter().any(|&value| inside[value])
            && is_apart
    };
    loads.into_iter().filter(is_hoisted).collect()
}

/// The arrays that a region writes; `None` if it may end, or write what its accesses do not say.
fn written_arrays(kernel: &Kernel, region: Region) -> Option<Vec<Value>> {
    let mut written = Vec::new();
    for op in ops_in(kernel, region) {
        let kind = &kernel.ops[op].kind;
        if kind.may_stop_thread() {
            return None;
        }
        if !kind.stays() {
            continue;
        }
        let base = kernel.cell_access(op)?.place.base();
        if matches!(kernel.ty(base), Type::Array(_)) {
            written.push(base);
        }
    }
    Some(written)
}

fn values_in(kernel: &Kernel, region: Region) -> SideTable<Value, bool> {
    let mut inside = SideTable::new(false);
    for region in regions_in(kernel, region) {
        let data = &kernel.regions[region];
        let results = data.ops.iter().flat_map(|&op| &kernel.ops[op].results);
        data.params.iter().chain(results).for_each(|&value| inside.set(value, true));
    }
    inside
}

impl Emitter<'_> {
    /// Emits the loads that a `for` over `lo..hi` needs once, for no lane if it has no trip. Until [`Self::forget_hoisted`] its body has them.
    pub(crate) fn hoist_loads(&mut self, op: Op, (lo, hi): (Val, Val)) -> Vec<Op> {
        if self.lanes.count == 1 {
            return Vec::new();
        }
        let loads = hoisted_loads(self.kernel, op, &self.lanes.varying, self.options.noalias);
        if loads.is_empty() {
            return loads;
        }
        let running = self.lanes.mask;
        if self.kernel.constant_trips(op).is_none_or(|trips| trips == 0) {
            let some = self.compare(if lo.ty.is_signed() { "slt" } else { "ult" }, lo, hi);
            let some = self.as_mask(some);
            self.lanes.mask = Some(match running {
                Some(running) => self.binary("and", running, some),
                None => some,
            });
        }
        for &load in &loads {
            self.op(load);
            self.lanes.hoisted.set(load, true);
        }
        self.lanes.mask = running;
        loads
    }

    /// The loop is written; where it is written again, so are its loads.
    pub(crate) fn forget_hoisted(&mut self, loads: &[Op]) {
        for &load in loads {
            self.lanes.hoisted.set(load, false);
        }
    }
}
