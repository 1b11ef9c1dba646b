//! Comparisons, and the choice between two values.

use std::cmp::Ordering;

use octants_ir::Const;
use octants_ir::ops::CompareOp;

use crate::datum::Datum;

pub fn compare(op: CompareOp, a: Const, b: Const) -> Const {
    let order = match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64().partial_cmp(&b.as_f64()),
    };
    // Without an order (a NaN) everything is false but `ne`.
    Const::bool(match op {
        CompareOp::Lt => order == Some(Ordering::Less),
        CompareOp::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        CompareOp::Gt => order == Some(Ordering::Greater),
        CompareOp::Ge => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        CompareOp::Eq => order == Some(Ordering::Equal),
        CompareOp::Ne => order != Some(Ordering::Equal),
    })
}

/// A scalar condition chooses the whole, a tensor of conditions entry by entry.
pub fn select(condition: &Datum, a: &Datum, b: &Datum) -> Datum {
    match (condition, a, b) {
        (Datum::Tensor(_, conditions), Datum::Tensor(ty, a), Datum::Tensor(_, b)) => {
            let choose = |((c, a), b): ((&Const, &Const), &Const)| if c.bits() != 0 { *a } else { *b };
            Datum::Tensor(*ty, conditions.iter().zip(a).zip(b).map(choose).collect())
        }
        _ => if condition.is_true() { a } else { b }.clone(),
    }
}
