//! What holds once a kernel is split into tasks.

use super::{Law, Verifier};
use crate::ids::{Op, Region};
use crate::kernel::ValueDef;
use crate::ops::{Domain, OpKind, TensorOp};
use crate::rewrite;
use crate::types::{Data, Type};

pub(super) fn check(verifier: &mut Verifier) {
    let kernel = verifier.kernel;
    let mut stored = vec![false; kernel.results.len()];
    for op in kernel.top_ops() {
        match &kernel.ops[op].kind {
            OpKind::Serial | OpKind::ParallelFor(_) => {
                let body = kernel.ops[op].regions[0];
                if let OpKind::ParallelFor(attributes) = &kernel.ops[op].kind
                    && let Domain::Cells(layout) = attributes.domain
                {
                    verifier.breaks(Law::Digits, op, format!("runs over {layout}"));
                }
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
            OpKind::Temp | OpKind::Return | OpKind::Fork => {}
            OpKind::Yield if kernel.ops[op].operands.is_empty() => {}
            OpKind::StoreResult(_) => verifier.breaks(Law::StoreResult, op, "stands in no task"),
            _ => launch_time(verifier, op),
        }
    }
    for (_, function) in kernel.functions.iter() {
        for inner in rewrite::ops_in(kernel, function.body) {
            scalars(verifier, inner);
            if let OpKind::StoreResult(_) = kernel.ops[inner].kind {
                verifier.breaks(Law::StoreResult, inner, "stands in no task");
            }
        }
    }
    for (id, layout) in kernel.layouts.iter() {
        if (0..layout.rank()).any(|axis| layout.digits_of(axis).count() > 1) {
            verifier.kernel_breaks(Law::Digits, format!("an axis of {id} has several"));
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
        _ => data.kind.is_pure(),
    };
    // Members of a parameter may be what is no scalar.
    let is_member = matches!(data.kind, OpKind::StructGet(_));
    if !pure || !is_member && data.results.iter().any(|&result| kernel.ty(result).scalar().is_none()) {
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

/// Nothing runs over a layout or computes with tensors or structs: they are only taken apart and put together, where memory or the
/// kernel's head has them whole.
fn scalars(verifier: &mut Verifier, op: Op) {
    let kernel = verifier.kernel;
    let data = &kernel.ops[op];
    if let OpKind::ForCells(layout) = data.kind {
        verifier.breaks(Law::Digits, op, format!("runs over {layout}"));
    }
    for &value in data.results.iter().chain(&data.operands) {
        let fits = match kernel.ty(value).data() {
            None | Some(Data::Scalar(_)) => true,
            Some(Data::Tensor(_)) => is_assembly(&data.kind),
            Some(Data::Struct(_)) => {
                is_assembly(&data.kind)
                    || matches!(data.kind, OpKind::Load | OpKind::VolatileLoad | OpKind::Store)
            }
        };
        if !fits {
            verifier.breaks(Law::Scalars, op, format!("has {} whole", kernel.ty(value)));
        }
    }
}

fn is_assembly(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::StructNew
            | OpKind::StructGet(_)
            | OpKind::Tensor(TensorOp::New | TensorOp::Get)
            | OpKind::StoreResult(_)
    )
}
