//! Arrays that a parallel loop only adds to.

use octants_ir::ops::AtomicOp;
use octants_ir::plan::Copied;
use octants_ir::rewrite::walk;
use octants_ir::{Kernel, Op, OpKind, Region, Scalar, SideTable, Type, Value};

use super::access::array_uses;
use super::trips::{CAUTIOUS_TRIPS, trips};

/// The arrays that each thread of a `parallel_for` may have a copy of: the loop touches them by additions and subtractions alone,
/// and nobody asks for the old value. No other array may be the same memory.
pub fn sums_of(kernel: &Kernel, op: Op) -> Vec<Copied> {
    let body = kernel.ops[op].regions[0];
    // The results of ops in the body are used in the body.
    let mut used = SideTable::new(false);
    walk(kernel, body, &mut |op| {
        for &operand in &kernel.ops[op].operands {
            used.set(operand, true);
        }
    });
    let mut sums: Vec<(Value, Option<Copied>)> = Vec::new();
    for access in array_uses(kernel, body) {
        let data = &kernel.ops[access.op];
        let adds = matches!(data.kind, OpKind::Atomic(AtomicOp::Add | AtomicOp::Sub));
        let sum = if adds && !used[data.results[0]] && !kernel.ops[op].operands.contains(&access.base) {
            copied(kernel, access.base)
        } else {
            None
        };
        match sums.iter_mut().find(|(base, _)| *base == access.base) {
            Some((_, known)) => *known = known.and(sum),
            None => sums.push((access.base, sum)),
        }
    }
    let mut updates = SideTable::new(0);
    count(kernel, body, 1, &mut updates);
    let found = sums.into_iter();
    found.filter_map(|(base, sum)| sum.map(|sum| Copied { updates: updates[base], ..sum })).collect()
}

fn copied(kernel: &Kernel, base: Value) -> Option<Copied> {
    let Type::Array(array) = kernel.ty(base) else { return None };
    let scalar = array.elem.elem()?;
    let summable = match scalar {
        Scalar::I32 | Scalar::U32 | Scalar::F32 | Scalar::I64 | Scalar::U64 | Scalar::F64 => true,
        Scalar::U1 | Scalar::I8 | Scalar::I16 | Scalar::U8 | Scalar::U16 | Scalar::F16 => false,
    };
    // A copy is as long as the array: what lies between elements would be copied, too.
    if array.has_strides() {
        return None;
    }
    let entries = array.elem.tensor_shape().map_or(1, octants_ir::TensorShape::count);
    let span = kernel.layout(array).map(|layout| layout.span(scalar.bytes() * entries));
    Some(Copied { param: kernel.as_param(base)?, scalar, updates: 0, span }).filter(|_| summable)
}

/// Roughly how often each place is updated while the region runs so many times.
fn count(kernel: &Kernel, region: Region, times: u32, updates: &mut SideTable<Value, u32>) {
    for &op in &kernel.regions[region].ops {
        let data = &kernel.ops[op];
        if let OpKind::Atomic(_) = data.kind {
            let base = data.operands[0];
            updates.set(base, updates[base].saturating_add(times));
        }
        let trips = trips(kernel, op, CAUTIOUS_TRIPS);
        for &inner in &data.regions {
            count(kernel, inner, times.saturating_mul(trips), updates);
        }
    }
}
