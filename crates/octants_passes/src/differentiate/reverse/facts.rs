//! What the backward sweep asks of the primal.

use octants_ir::ops::AtomicOp;
use octants_ir::rewrite::{Parents, defining_region, ops_in, use_counts};
use octants_ir::{Kernel, Op, OpKind, Region, SideTable, Type, Value};

use crate::differentiate::activity::Activity;

pub(super) struct Facts {
    /// Of a value: whether somebody outside its own region adds to its adjoint.
    pub crosses: SideTable<Value, bool>,
    /// Of a variable: the body of the parallel loop that declares it.
    pub home: SideTable<Value, Option<Region>>,
    /// Of an op with regions: variables that are declared outside and written inside.
    pub written: SideTable<Op, Vec<Value>>,
    /// Of an op with regions: whether cells whose derivative is kept are updated in it by all iterations together, other than by sums.
    pub mended: SideTable<Op, bool>,
    /// Of an op with regions: whether a derivative flows in it.
    pub differentiates: SideTable<Op, bool>,
    pub uses: SideTable<Value, u32>,
}

impl Facts {
    pub fn find(
        kernel: &Kernel,
        activity: &Activity,
        companion_of: &SideTable<Value, Option<Value>>,
    ) -> Self {
        let mut facts = Self {
            crosses: SideTable::new(false),
            home: SideTable::new(None),
            written: SideTable::new(Vec::new()),
            mended: SideTable::new(false),
            differentiates: SideTable::new(false),
            uses: use_counts(kernel),
        };
        facts.find_crossing(kernel);
        for op in ops_in(kernel, kernel.body) {
            if matches!(kernel.ops[op].kind, OpKind::ParallelFor(_)) {
                for inner in ops_in(kernel, kernel.ops[op].regions[0]) {
                    if kernel.ops[inner].kind == OpKind::Local {
                        facts.home.set(kernel.ops[inner].results[0], Some(kernel.ops[op].regions[0]));
                    }
                }
            }
            let inside: Vec<_> =
                kernel.ops[op].regions.iter().flat_map(|&region| ops_in(kernel, region)).collect();
            if !inside.is_empty() {
                facts.written.set(op, written_from_outside(kernel, &inside));
                let flows = inside.iter().any(|&inner| {
                    let active = kernel.ops[inner].results.iter().any(|&result| activity.is_active(result));
                    let writes = kernel.cell_access(inner).is_some_and(|access| {
                        let base = access.place.base();
                        access.writes && (companion_of[base].is_some() || activity.is_active(base))
                    });
                    active || writes
                });
                let mended = inside.iter().any(|&inner| {
                    let base = kernel.ops[inner].operands.first();
                    let kept =
                        base.is_some_and(|&base| companion_of[base].is_some() || activity.is_active(base));
                    kept && is_mended(&kernel.ops[inner].kind)
                });
                facts.mended.set(op, mended);
                let gives = kernel.ops[op].results.iter().any(|&result| activity.is_active(result));
                facts.differentiates.set(op, flows || gives);
            }
        }
        facts
    }

    fn find_crossing(&mut self, kernel: &Kernel) {
        let parents = Parents::new(kernel);
        let tops = kernel.top_regions();
        for op in ops_in(kernel, kernel.body) {
            let Some(region) = parents.region(op) else { continue };
            // The backward sweep of a loop at the top is a task of its own, and so is that of an `if`.
            let is_control = kernel.ops[op].kind.is_control();
            let task = is_control && tops.contains(&region);
            for &operand in &kernel.ops[op].operands {
                if task || defining_region(kernel, &parents, operand) != Some(region) {
                    self.crosses.set(operand, true);
                }
            }
        }
    }
}

/// Whether the adjoint of a cell is another one before such an update by all iterations than after it.
pub(super) fn is_mended(kind: &OpKind) -> bool {
    match kind {
        OpKind::Atomic(AtomicOp::Min | AtomicOp::Max | AtomicOp::Mul) => true,
        OpKind::Atomic(
            AtomicOp::Add | AtomicOp::Sub | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Exchange,
        ) => false,
        _ => false,
    }
}

fn written_from_outside(kernel: &Kernel, inside: &[Op]) -> Vec<Value> {
    let mut declared = SideTable::new(false);
    let mut written = Vec::new();
    for &op in inside {
        if kernel.ops[op].kind == OpKind::Local {
            declared.set(kernel.ops[op].results[0], true);
        }
        let Some(access) = kernel.cell_access(op).filter(|access| access.writes) else { continue };
        let base = access.place.base();
        if matches!(kernel.ty(base), Type::Local(_)) && !declared[base] {
            declared.set(base, true);
            written.push(base);
        }
    }
    written
}
