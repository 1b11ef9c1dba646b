//! Small vectors, matrices and structs as values.

use octants_ir::ops::TensorOp;
use octants_ir::{Data, OpKind, TensorShape};

use crate::datum::Datum;

pub fn tensor(op: TensorOp, result: Data, operands: &[Datum]) -> Datum {
    match (op, result) {
        (TensorOp::New, Data::Tensor(ty)) => Datum::Tensor(ty, operands.iter().map(Datum::scalar).collect()),
        (TensorOp::Splat, Data::Tensor(ty)) => {
            Datum::Tensor(ty, vec![operands[0].scalar(); ty.shape.count() as usize])
        }
        (TensorOp::Get, _) => get(&operands[0], &operands[1..]),
        (TensorOp::Set, _) => {
            let (value, components) = operands[1..].split_last().expect("the laws give it a value");
            let mut changed = operands[0].clone();
            set(&mut changed, components, value);
            changed
        }
        (TensorOp::New | TensorOp::Splat, Data::Scalar(_) | Data::Struct(_)) => operands[0].clone(),
    }
}

/// `struct_new`, `struct_get`, `struct_set`.
pub fn structure(kind: &OpKind, result: Data, mut operands: Vec<Datum>) -> Datum {
    match (kind, result) {
        (OpKind::StructGet(number), _) => member(&mut operands[0], *number).clone(),
        (OpKind::StructSet(number), _) => {
            let value = operands.pop().expect("the laws give it a value");
            *member(&mut operands[0], *number) = value;
            operands.swap_remove(0)
        }
        (_, Data::Struct(id)) => Datum::Struct(id, operands),
        (_, Data::Scalar(_) | Data::Tensor(_)) => operands.swap_remove(0),
    }
}

fn member(structure: &mut Datum, number: u32) -> &mut Datum {
    match structure {
        Datum::Struct(_, members) => &mut members[number as usize],
        other => other,
    }
}

/// Where in row-major order the components point, or `None` outside the shape.
pub fn position(shape: TensorShape, components: &[Datum]) -> Option<usize> {
    let mut position = 0;
    for (extent, component) in shape.dims().into_iter().zip(components) {
        let component = usize::try_from(component.integer()).ok().filter(|&c| c < extent as usize)?;
        position = position * extent as usize + component;
    }
    Some(position)
}

/// One entry; outside the shape the first.
pub fn get(tensor: &Datum, components: &[Datum]) -> Datum {
    match tensor {
        Datum::Tensor(ty, entries) => Datum::Scalar(entries[position(ty.shape, components).unwrap_or(0)]),
        other => other.clone(),
    }
}

/// One entry replaced; outside the shape nothing is.
pub fn set(tensor: &mut Datum, components: &[Datum], value: &Datum) {
    if let Datum::Tensor(ty, entries) = tensor
        && let Some(position) = position(ty.shape, components)
    {
        entries[position] = value.scalar();
    }
}
