//! Which local aggregates can be split: those that are only ever accessed whole or by fixed components.

use octants_ir::rewrite::walk_all;
use octants_ir::{Data, Kernel, Op, OpKind, Region, SideTable, TensorShape, Type, Value};

use super::{Scalarise, leaves};

pub(super) struct LocalUses {
    /// Accessed by a component that is not fixed, or used as something that is not an access.
    pub(super) kept_whole: SideTable<Value, bool>,
}

impl LocalUses {
    pub(super) fn find(kernel: &Kernel) -> Self {
        let mut kept_whole = SideTable::new(false);
        walk_all(kernel, &mut |op| {
            let data = &kernel.ops[op];
            let splits = data.kind != OpKind::VolatileLoad
                && kernel.cell_access(op).is_some_and(|access| {
                    let (base, path) = (access.place.base(), access.place.path());
                    path.is_empty() || position(kernel, base, path).is_some()
                });
            for &operand in &data.operands {
                if !splits && matches!(kernel.ty(operand), Type::Local(_)) {
                    kept_whole.set(operand, true);
                }
            }
        });
        Self { kept_whole }
    }
}

/// Which scalar of a local tensor fixed components address; `None` if they are not fixed or outside.
pub(super) fn position(kernel: &Kernel, local: Value, path: &[Value]) -> Option<usize> {
    let Type::Local(data) = kernel.ty(local) else { return None };
    fixed_position(kernel, data.tensor_shape()?, path)
}

/// Which entry fixed components address; `None` if they are not fixed or outside.
pub(super) fn fixed_position(kernel: &Kernel, shape: TensorShape, path: &[Value]) -> Option<usize> {
    let dims = shape.dims();
    if path.len() != dims.len() {
        return None;
    }
    let mut position = 0;
    for (&component, &extent) in path.iter().zip(&dims) {
        let component = u32::try_from(kernel.as_const(component)?.as_i128()?).ok().filter(|&c| c < extent)?;
        position = position * extent + component;
    }
    Some(position as usize)
}

impl Scalarise<'_> {
    pub(super) fn local(&mut self, region: Region, op: Op) {
        let local = self.kernel.ops[op].results[0];
        let Type::Local(data) = self.kernel.ty(local) else { unreachable!("a local op gives a local") };
        if data.scalar().is_some() || self.uses.kept_whole[local] && matches!(data, Data::Tensor(_)) {
            self.kernel.regions[region].ops.push(op);
            return;
        }
        let types = leaves::leaf_types(self.kernel, data);
        let mut builder = self.builder(region, op);
        let parts = types.into_iter().map(|ty| builder.local(ty.into())).collect();
        self.locals.set(local, Some(parts));
    }
}
