//! The scalars that an aggregate is made of, in the order of memory: tensors row by row, structs member by member.

use octants_ir::{Builder, Data, Kernel, Scalar, TensorShape, Value};

pub(super) fn leaf_types(kernel: &Kernel, data: Data) -> Vec<Scalar> {
    match data {
        Data::Scalar(scalar) => vec![scalar],
        Data::Tensor(tensor) => vec![tensor.elem; tensor.shape.count() as usize],
        Data::Struct(id) => {
            kernel.structs[id].members.iter().flat_map(|&(_, member)| leaf_types(kernel, member)).collect()
        }
    }
}

/// The components of a tensor's entry by its position.
pub(super) fn components(shape: TensorShape, position: u32) -> Vec<u32> {
    match shape {
        TensorShape::Vector(_) => vec![position],
        TensorShape::Matrix(_, columns) => vec![position / u32::from(columns), position % u32::from(columns)],
    }
}

/// Ops that take each scalar out of a value that stays whole.
pub(super) fn split_into_leaves(b: &mut Builder<'_>, value: Value, data: Data) -> Vec<Value> {
    match data {
        Data::Scalar(_) => vec![value],
        Data::Tensor(tensor) => (0..tensor.shape.count())
            .map(|position| {
                let components: Vec<_> =
                    components(tensor.shape, position).into_iter().map(|c| b.i32(c as i32)).collect();
                b.tensor_get(value, &components)
            })
            .collect(),
        Data::Struct(id) => {
            let members = b.kernel.structs[id].members.clone();
            let each = members.into_iter().zip(0..);
            each.flat_map(|((_, data), member)| {
                let part = b.struct_get(value, member);
                split_into_leaves(b, part, data)
            })
            .collect()
        }
    }
}

/// Ops that make a whole value of its scalars.
pub(super) fn join_leaves(
    b: &mut Builder<'_>,
    data: Data,
    leaves: &mut impl Iterator<Item = Value>,
) -> Value {
    match data {
        Data::Scalar(_) => leaves.next().expect("a leaf for each scalar"),
        Data::Tensor(tensor) => {
            let entries: Vec<_> = leaves.take(tensor.shape.count() as usize).collect();
            b.tensor(data, entries)
        }
        Data::Struct(id) => {
            let members = b.kernel.structs[id].members.clone();
            let parts: Vec<_> =
                members.into_iter().map(|(_, member)| join_leaves(b, member, leaves)).collect();
            b.struct_new(data, parts)
        }
    }
}
