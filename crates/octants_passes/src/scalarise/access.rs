//! Accesses of memory: whole tensors by components, split locals by their parts, structs in memory whole.

use octants_ir::{Builder, Data, Op, OpData, OpKind, Region, TensorShape, Value};

use super::locals::position;
use super::{Scalarise, leaves};

impl Scalarise<'_> {
    pub(super) fn access(&mut self, region: Region, op: Op) {
        let data = self.kernel.ops[op].clone();
        let path = self.kernel.cell_access(op).expect("the caller saw an access").place.operands().to_vec();
        if let Some(parts) = self.locals[path[0]].clone() {
            self.access_parts(region, op, &data, &path, &parts);
            return;
        }
        let Some((held, rank)) = self.kernel.ty(path[0]).place() else {
            unreachable!("{} is a place", path[0])
        };
        match held {
            Data::Tensor(tensor) if path.len() == 1 + rank => {
                self.access_entries(region, op, &data, &path, tensor.shape);
            }
            Data::Struct(_) => self.access_struct(region, op, &data, held),
            Data::Scalar(_) | Data::Tensor(_) => self.kernel.regions[region].ops.push(op),
        }
    }

    /// A tensor lies where its first entry does.
    pub(super) fn address_of(&mut self, region: Region, op: Op) {
        let path = self.kernel.ops[op].operands.clone();
        let place = self.kernel.ty(path[0]).place();
        if let Some((Data::Tensor(tensor), rank)) = place
            && path.len() == 1 + rank
        {
            let components = fixed(&mut self.builder(region, op), tensor.shape, 0);
            self.kernel.ops[op].operands.extend(components);
        }
        self.kernel.regions[region].ops.push(op);
    }

    /// The access repeated for each scalar, at the addresses given; values and results are split alike.
    fn repeat(&mut self, region: Region, op: Op, data: &OpData, addresses: &[Vec<Value>]) {
        let brought = self.kernel.cell_access(op).map(|access| access.values.to_vec()).unwrap_or_default();
        let brought: Vec<_> = brought.into_iter().map(|value| self.leaves_of(value)).collect();
        let types = match data.results.first() {
            None => Vec::new(),
            Some(&result) => match self.kernel.ty(result).data() {
                Some(whole) => leaves::leaf_types(self.kernel, whole),
                None => Vec::new(),
            },
        };
        let mut entries = Vec::with_capacity(types.len());
        for (index, path) in addresses.iter().enumerate() {
            let values = brought.iter().map(|leaves| leaves[index.min(leaves.len() - 1)]);
            let operands: Vec<_> = path.iter().copied().chain(values).collect();
            let types = types.get(index).map(|&ty| ty.into());
            let kind = data.kind.clone();
            let one = self.builder(region, op).op(kind, operands, types, []);
            entries.extend(self.kernel.ops[one].results.first());
        }
        if let Some(&result) = data.results.first() {
            self.define(result, entries);
        }
    }

    fn access_parts(&mut self, region: Region, op: Op, data: &OpData, path: &[Value], parts: &[Value]) {
        let addresses: Vec<_> = match path {
            [_] => parts.iter().map(|&part| vec![part]).collect(),
            [base, components @ ..] => {
                let position =
                    position(self.kernel, *base, components).expect("a split local has fixed components");
                vec![vec![parts[position]]]
            }
            [] => unreachable!("an access has a base"),
        };
        self.repeat(region, op, data, &addresses);
    }

    fn access_entries(&mut self, region: Region, op: Op, data: &OpData, path: &[Value], shape: TensorShape) {
        let addresses: Vec<_> = (0..shape.count())
            .map(|entry| {
                let mut builder = self.builder(region, op);
                let components = fixed(&mut builder, shape, entry);
                path.iter().copied().chain(components).collect()
            })
            .collect();
        self.repeat(region, op, data, &addresses);
    }

    fn access_struct(&mut self, region: Region, op: Op, data: &OpData, held: Data) {
        if data.kind == OpKind::Store {
            let value = *data.operands.last().expect("a store brings a value");
            let entries = self.leaves_of(value);
            let whole = leaves::join_leaves(&mut self.builder(region, op), held, &mut entries.into_iter());
            *self.kernel.ops[op].operands.last_mut().expect("a store brings a value") = whole;
            self.kernel.regions[region].ops.push(op);
            return;
        }
        self.kernel.regions[region].ops.push(op);
        if let Some(&result) = data.results.first() {
            let entries = leaves::split_into_leaves(&mut self.builder(region, op), result, held);
            self.leaves.set(result, Some(entries));
        }
    }
}

/// Constants for the components of an entry.
pub(super) fn fixed(b: &mut Builder<'_>, shape: TensorShape, position: u32) -> Vec<Value> {
    leaves::components(shape, position).into_iter().map(|component| b.i32(component as i32)).collect()
}
