//! Loops that do nothing but store zeros side by side: a row is one call of `memset`.
//!
//! Adjoints are cleared by such loops. LLVM makes the same of one, but takes 1.6 times as long for it: it looks for vectors in what is left (`stencil` of
//! `benches/gradients.py`).

use octants_ir::views::{ParallelLoop, Place};
use octants_ir::{Boundary, Data, Kernel, Op, OpKind, SideTable, Type};

use super::widen::BodySummary;
use crate::counter::Counter;
use crate::counter::Index;
use crate::counter::Range;
use crate::emitter::Emitter;
use crate::value::{Val, in_memory};

/// The store of a loop whose iterations store a zero in the cell of their own, one behind the other in memory, and do nothing else.
pub(super) fn cleared_cells(kernel: &Kernel, parallel: &ParallelLoop<'_>) -> Option<Op> {
    if !parallel.attributes.reductions.is_empty() {
        return None;
    }
    let is_constant = |op: &Op| matches!(kernel.ops[*op].kind, OpKind::Const(_) | OpKind::Yield);
    let mut others = kernel.regions[parallel.body].ops.iter().filter(|op| !is_constant(op));
    let (&store, None) = (others.next()?, others.next()) else { return None };
    let (OpKind::Store, Some(place)) = (&kernel.ops[store].kind, kernel.addressed(store)) else {
        return None;
    };
    let value = *kernel.ops[store].operands.last()?;
    let Type::Array(array) = kernel.ty(place.base()) else { return None };
    let mut varying = SideTable::new(false);
    varying.set(parallel.last_index(), true);
    let summary = BodySummary::new(kernel, &varying, parallel.last_index());
    let clears = matches!(array.elem, Data::Scalar(_))
        && array.boundary == Boundary::Unsafe
        && kernel.as_const(value).is_some_and(|constant| constant.bits() == 0)
        && summary.stride(Place::operands(place)) == Some(1);
    clears.then_some(store)
}

impl Emitter<'_> {
    /// Part of a row of such a loop.
    pub(super) fn cleared_row(
        &mut self,
        parallel: &ParallelLoop<'_>,
        store: Op,
        (begin, end): (Val, Val),
        range: Range,
    ) {
        let index = parallel.last_index();
        let narrow = self.resize(begin, self.scalar(index));
        self.set(index, narrow);
        self.counters.set(index, Some(Counter { index: Index::uniform(begin), range }));
        for &op in &self.kernel.regions[parallel.body].ops {
            if matches!(self.kernel.ops[op].kind, OpKind::Const(_)) {
                self.op(op);
            }
        }
        let path = self.kernel.addressed(store).map_or(&[][..], Place::operands);
        let address = self.address(path);
        let (pointer, align) = (address.one_cell(), address.align);
        let count = self.binary("sub nsw", end, begin);
        let count = self.intrinsic("llvm.smax", &[count, Val::i64(0)], "");
        let size = Val::i64(in_memory(address.scalar).bytes().into());
        let bytes = self.binary("mul nsw", count, size);
        let suffix = self.scopes.suffix(&mut self.module, address.class);
        self.module.declare("llvm.memset.p0.i64", || {
            "declare void @llvm.memset.p0.i64(ptr nocapture writeonly, i8, i64, i1 immarg)".to_owned()
        });
        self.f.line(format_args!(
            "call void @llvm.memset.p0.i64(ptr align {align} {pointer}, i8 0, i64 {bytes}, i1 false){suffix}"
        ));
    }
}
