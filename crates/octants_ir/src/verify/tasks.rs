//! What holds once a kernel is split into tasks.

use super::{Law, Verifier};
use crate::ids::{Op, Region, Value};
use crate::kernel::ValueDef;
use crate::ops::{Effect, OpKind, TensorOp};
use crate::rewrite;
use crate::types::{Data, Type};

pub(super) fn check(verifier: &mut Verifier) {
    let kernel = verifier.kernel;
    let mut stored = vec![false; kernel.results.len()];
    for &op in &kernel.regions[kernel.body].ops {
        match &kernel.ops[op].kind {
            OpKind::Serial | OpKind::ParallelFor(_) => {
                let body = kernel.ops[op].regions[0];
                task_values(verifier, op, body);
                for inner in rewrite::ops_in(kernel, body) {
                    scalars(verifier, inner);
                    if let OpKind::StoreResult(number) = kernel.ops[inner].kind
                        && let Some(stored) = stored.get_mut(number as usize)
                    {
                        *stored = true;
                    }
                }
            }
            OpKind::Temp | OpKind::Return => {}
            OpKind::StoreResult(_) => verifier.breaks(Law::StoreResult, op, "stands in no task"),
            _ => launch_time(verifier, op),
        }
    }
    for (number, stored) in stored.iter().enumerate() {
        if !stored {
            verifier.kernel_breaks(Law::AllResults, format!("no task stores result {number}"));
        }
    }
}

/// What the host evaluates: pure scalars, and what an earlier task left in a temp.
fn launch_time(verifier: &mut Verifier, op: Op) {
    let kernel = verifier.kernel;
    let data = &kernel.ops[op];
    let pure = match data.kind {
        OpKind::Load => matches!(data.operands.first().map(|&base| kernel.ty(base)), Some(Type::Temp(_))),
        _ => data.kind.effect() == Effect::Pure,
    };
    if !pure || data.results.iter().any(|&result| kernel.ty(result).scalar().is_none()) {
        verifier.breaks(Law::Split, op, "is neither a task nor evaluated at launch");
    }
}

fn task_values(verifier: &mut Verifier, op: Op, body: Region) {
    let kernel = verifier.kernel;
    for value in rewrite::free_values(kernel, body) {
        if kernel.as_param(value).is_none() && !matches!(kernel.ty(value), Type::Temp(_)) {
            let what = match kernel.values[value].def {
                ValueDef::Result(def, _) => kernel.ops[def].kind.name(),
                ValueDef::Param(..) => "a parameter of another region",
            };
            verifier.breaks(
                Law::TaskValues,
                op,
                format!("uses the {} given by `{what}` outside", kernel.ty(value)),
            );
        }
    }
}

/// Tensors and structs are made only where a whole result is stored, and read only from a parameter.
fn scalars(verifier: &mut Verifier, op: Op) {
    let kernel = verifier.kernel;
    let data = &kernel.ops[op];
    let is_whole = |value: Value| kernel.ty(value).data().is_some_and(|d| !matches!(d, Data::Scalar(_)));
    let makes_whole = matches!(data.kind, OpKind::StructNew | OpKind::Tensor(TensorOp::New));
    if data.results.iter().any(|&result| is_whole(result)) && !makes_whole {
        verifier.breaks(Law::Scalars, op, "gives more than a scalar");
    }
    let stores_whole = matches!(data.kind, OpKind::StoreResult(_) | OpKind::StructNew);
    let reads_part = matches!(data.kind, OpKind::StructGet(_) | OpKind::Tensor(TensorOp::Get));
    for &operand in data.operands.iter().filter(|&&operand| is_whole(operand)) {
        let part_of_param = reads_part && kernel.as_param(operand).is_some();
        if !stores_whole && !part_of_param {
            verifier.breaks(Law::Scalars, op, format!("takes {}", kernel.ty(operand)));
        }
    }
}
