//! Who touches which memory.

use octants_ir::rewrite::walk;
use octants_ir::{Access, Kernel, Op, OpKind, Region, Type, Value};

use super::index::Affine;
use crate::update::address;

/// One access of memory.
#[derive(Clone, Debug)]
pub struct ArrayUse {
    pub op: Op,
    pub base: Value,
    /// Indices, then components.
    pub path: Vec<Value>,
    pub reads: bool,
    pub writes: bool,
}

impl ArrayUse {
    /// The forms of the indices (and components); `None` where one is no integer.
    pub fn forms(&self, kernel: &Kernel) -> Vec<Option<Affine>> {
        self.path.iter().map(|&index| Affine::of(kernel, index)).collect()
    }
}

/// All accesses in a region and inside it, of arrays, locals and temporaries, in order; reductions of a `parallel_for` count
/// as an access of their place by that op.
pub fn accesses_of(kernel: &Kernel, region: Region) -> Vec<ArrayUse> {
    let mut uses = Vec::new();
    walk(kernel, region, &mut |op| {
        let data = &kernel.ops[op];
        if let Some([base, path @ ..]) = address(&data.kind, &data.operands) {
            let (reads, writes) = match data.kind {
                OpKind::Load | OpKind::VolatileLoad => (true, false),
                OpKind::Store => (false, true),
                _ => (true, true),
            };
            uses.push(ArrayUse { op, base: *base, path: path.to_vec(), reads, writes });
        }
        if let OpKind::ParallelFor(attributes) = &data.kind {
            let mut rest = &data.operands[2 * attributes.axes as usize..];
            for reduction in &attributes.reductions {
                let (place, after) = rest.split_at(reduction.operands.into());
                uses.push(ArrayUse {
                    op,
                    base: place[0],
                    path: place[1..].to_vec(),
                    reads: true,
                    writes: true,
                });
                rest = after;
            }
        }
    });
    uses
}

/// Accesses of arrays alone.
pub fn array_uses(kernel: &Kernel, region: Region) -> Vec<ArrayUse> {
    let mut uses = accesses_of(kernel, region);
    uses.retain(|access| matches!(kernel.ty(access.base), Type::Array(_)));
    uses
}

/// What the kernel does with the memory of each parameter.
pub fn array_access(kernel: &Kernel) -> Vec<Access> {
    let mut access = vec![Access::default(); kernel.params.len()];
    for used in array_uses(kernel, kernel.body) {
        if let Some(param) = kernel.as_param(used.base) {
            access[param].read |= used.reads;
            access[param].written |= used.writes;
        }
    }
    access
}
