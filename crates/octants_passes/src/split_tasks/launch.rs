//! What can be computed when a kernel is launched, from scalar arguments and extents alone: cheap enough to be computed again by
//! every task that needs it, and, where it is integer arithmetic, by the host as a bound.

use octants_ir::ops::{ArithOp, BitOp, ConvertOp};
use octants_ir::plan::part_of_param;
use octants_ir::{Const, Kernel, OpKind, SideTable, Value};

/// A value that takes more than this many ops to compute is passed on rather than computed again.
/// Chosen, not measured: a temporary costs a store, a load and the memory of the launch.
const MAX_RECOMPUTED_COST: u32 = 100;

/// For values of the kernel's top: what computing them again costs; `None` for what only a task can know.
pub(super) struct LaunchTime {
    costs: SideTable<Value, Option<u32>>,
}

impl LaunchTime {
    pub(super) fn find(kernel: &Kernel) -> Self {
        let ops = kernel.top_ops();
        let mut costs = SideTable::new(None);
        for &param in &kernel.regions[kernel.body].params {
            costs.set(param, Some(0));
        }
        let mut bounds = SideTable::new(false);
        for &op in &ops {
            if let Some(parallel) = kernel.parallel_loop(op) {
                for &bound in parallel.bound_operands() {
                    bounds.set(bound, true);
                }
            }
        }
        for &op in &ops {
            let data = &kernel.ops[op];
            let [result] = data.results[..] else { continue };
            // Of values that are no scalars only those are left that lie in the block of arguments.
            let known = kernel.ty(result).scalar().is_some() || matches!(data.kind, OpKind::StructGet(_));
            if data.kind.is_pure() && known {
                let own = match data.kind {
                    OpKind::Math(_) | OpKind::MathUnary(_) => 10,
                    _ => 1,
                };
                let cost =
                    data.operands.iter().try_fold(own, |sum: u32, &v| Some(sum.saturating_add(costs[v]?)));
                let cost = cost.filter(|&cost| cost <= MAX_RECOMPUTED_COST);
                // A bound that the host cannot compute is a task's to compute, as is all that follows from it. What is asked is small:
                // its cost counts every op as often as it is used.
                let for_host = |_: &u32| !bounds[result] || host_computes(kernel, result);
                costs.set(result, cost.filter(for_host));
            }
        }
        Self { costs }
    }

    pub(super) fn knows(&self, value: Value) -> bool {
        self.costs[value].is_some()
    }
}

/// Whether a bound is integer arithmetic on constants, scalar parameters and extents.
pub(crate) fn host_computes(kernel: &Kernel, value: Value) -> bool {
    if !kernel.ty(value).scalar().is_some_and(octants_ir::Scalar::is_integral) {
        return false;
    }
    if part_of_param(kernel, value).is_some() {
        return true;
    }
    let Some(op) = kernel.def(value) else { return false };
    let all = || op.operands.iter().all(|&operand| host_computes(kernel, operand));
    match op.kind {
        OpKind::Const(_) => true,
        OpKind::Extent(_) => kernel.as_param(op.operands[0]).is_some(),
        OpKind::Arith(kind) => kind != ArithOp::Div && all(),
        OpKind::Convert(ConvertOp::Cast) => all(),
        OpKind::Bit(_) => as_division(kernel, value).is_some_and(|(_, a, _)| host_computes(kernel, a)),
        _ => false,
    }
}

/// A shift or mask by a constant as the division it stands for: `(op, dividend, divisor)`.
pub(crate) fn as_division(kernel: &Kernel, value: Value) -> Option<(ArithOp, Value, i64)> {
    let op = kernel.def(value)?;
    let OpKind::Bit(kind) = op.kind else { return None };
    let constant = kernel.as_const(op.operands[1]).and_then(Const::as_i128)?;
    let bits = kernel.ty(value).scalar()?.bits();
    // The highest power of two below the sign.
    let fits = |power: i128| power > 0 && power < 1 << (bits - 1).min(62);
    match kind {
        BitOp::Shr => {
            let power = 1_i128 << constant.rem_euclid(bits.into());
            fits(power).then_some((ArithOp::FloorDiv, op.operands[0], power as i64))
        }
        BitOp::And => {
            let power = constant + 1;
            (fits(power) && power & (power - 1) == 0).then_some((ArithOp::Mod, op.operands[0], power as i64))
        }
        _ => None,
    }
}
