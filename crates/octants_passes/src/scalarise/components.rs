//! One entry of a tensor value, read or replaced. Fixed components choose now; others choose when the kernel runs.

use octants_ir::ops::{BitOp, CompareOp};
use octants_ir::{Builder, Op, Region, Scalar, TensorShape, TensorType, Value};

use super::Scalarise;
use super::access::fixed;
use super::locals::fixed_position;

/// An entry at a run-time position is found by `select`s in a tensor of up to so many entries, else by a load from a local. Chosen, not
/// measured: a 4×4 matrix stays in registers.
const MAX_SELECT_ENTRIES: usize = 16;

impl Scalarise<'_> {
    fn tensor_type(&self, value: Value) -> TensorType {
        match self.aggregate(value) {
            Some(octants_ir::Data::Tensor(tensor)) => tensor,
            _ => unreachable!("{value} is no tensor"),
        }
    }

    pub(super) fn get_entry(&mut self, region: Region, op: Op, tensor: Value, components: &[Value]) -> Value {
        let ty = self.tensor_type(tensor);
        let entries = self.leaves_of(tensor);
        if let Some(position) = fixed_position(self.kernel, ty.shape, components) {
            return entries[position];
        }
        let mut b = self.builder(region, op);
        if entries.len() > MAX_SELECT_ENTRIES {
            let local = spill(&mut b, ty, &entries);
            let inside = clamped(&mut b, ty.shape, components);
            return b.load(local, &inside);
        }
        let mut chosen = entries[0];
        for (position, &entry) in (0..).zip(&entries).skip(1) {
            let here = is_at(&mut b, ty.shape, components, position);
            chosen = b.select(here, entry, chosen);
        }
        chosen
    }

    pub(super) fn set_entry(
        &mut self,
        region: Region,
        op: Op,
        tensor: Value,
        components: &[Value],
        value: Value,
    ) -> Vec<Value> {
        let ty = self.tensor_type(tensor);
        let mut entries = self.leaves_of(tensor);
        if let Some(position) = fixed_position(self.kernel, ty.shape, components) {
            entries[position] = value;
            return entries;
        }
        let mut b = self.builder(region, op);
        if entries.len() <= MAX_SELECT_ENTRIES {
            for (position, entry) in (0..).zip(&mut entries) {
                let here = is_at(&mut b, ty.shape, components, position);
                *entry = b.select(here, value, *entry);
            }
            return entries;
        }
        let local = spill(&mut b, ty, &entries);
        let inside = clamped(&mut b, ty.shape, components);
        // Where clamping changed a component the entry addressed is another one, which must keep its value.
        let mut same = None;
        for (&component, &clamped) in components.iter().zip(&inside) {
            let equal = b.compare(CompareOp::Eq, component, clamped);
            same = Some(same.map_or(equal, |same| b.bit(BitOp::And, same, equal)));
        }
        let old = b.load(local, &inside);
        let new = same.map_or(value, |same| b.select(same, value, old));
        b.store(local, &inside, new);
        let count = ty.shape.count();
        (0..count)
            .map(|position| {
                let path = fixed(&mut b, ty.shape, position);
                b.load(local, &path)
            })
            .collect()
    }
}

/// A local with these entries.
fn spill(b: &mut Builder<'_>, ty: TensorType, entries: &[Value]) -> Value {
    let local = b.local(octants_ir::Data::Tensor(ty));
    for (position, &entry) in (0..).zip(entries) {
        let path = fixed(b, ty.shape, position);
        b.store(local, &path, entry);
    }
    local
}

/// A constant of the component's own type.
fn like(b: &mut Builder<'_>, component: Value, value: u32) -> Value {
    let ty = b.kernel.ty(component).scalar().unwrap_or(Scalar::I32);
    b.constant(octants_ir::Const::from_i128(ty, value.into()))
}

/// Whether the components address this entry.
fn is_at(b: &mut Builder<'_>, shape: TensorShape, components: &[Value], position: u32) -> Value {
    let mut here = None;
    for (&component, wanted) in components.iter().zip(super::leaves::components(shape, position)) {
        let wanted = like(b, component, wanted);
        let equal = b.compare(CompareOp::Eq, component, wanted);
        here = Some(here.map_or(equal, |here| b.bit(BitOp::And, here, equal)));
    }
    here.expect("a tensor has components")
}

/// The components, brought into the shape.
fn clamped(b: &mut Builder<'_>, shape: TensorShape, components: &[Value]) -> Vec<Value> {
    use octants_ir::ops::ArithOp::{Max, Min};
    components
        .iter()
        .zip(shape.dims())
        .map(|(&component, extent)| {
            let zero = like(b, component, 0);
            let last = like(b, component, extent - 1);
            let at_least = b.arith(Max, component, zero);
            b.arith(Min, at_least, last)
        })
        .collect()
}
