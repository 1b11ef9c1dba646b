//! Short innermost axes of a parallel loop run as one: digits of nested nodes, or components that are looped over.
//!
//! `parallel_for (%i, %j) in (0..n, 0..4)` becomes rows of one counter `t`, with `%i = t / 4` and `%j = t % 4`. An access whose indices
//! are the axes themselves, of a field in which neighbours along `%i` lie as far apart as four along `%j`, is affine in `t`: it
//! runs through memory, and LLVM vectorises it. Others take the counter apart.

use octants_ir::ops::ArithOp;
use octants_ir::rewrite::walk;
use octants_ir::views::ParallelLoop;
use octants_ir::{ArrayType, Const, Kernel, Layout, OpKind, Scalar, Type, Value};

use crate::counter::Counter;
use crate::counter::Index;
use crate::counter::Range;
use crate::emitter::Emitter;
use crate::iterations::Flat;
use crate::value::{Ty, Val};

/// Iterations of a last axis from which it is not collapsed with the axis before it, unless all accesses run on through memory: an AVX-512 vector
/// of `f32`.
const SHORT_ROW: i128 = 16;
/// Iterations that a collapsed row has at least, if there are axes enough: four such vectors. Chosen, not measured.
const COLLAPSED_ROW: i128 = 64;

/// The extents of the last axes that are to run as one, outermost first; none where the last one is long enough, or not known.
pub(crate) fn merged_extents(kernel: &Kernel, parallel: &ParallelLoop<'_>) -> Vec<u64> {
    let mut loops = false;
    walk(kernel, parallel.body, &mut |op| {
        loops |= kernel.ops[op].kind.is_loop();
    });
    let known = |value: Value| kernel.as_const(value).and_then(Const::as_i128);
    let mut extents = Vec::new();
    let mut row: i128 = 1;
    for (lo, hi) in parallel.bounds().rev() {
        let (Some(0), Some(extent)) = (known(lo), known(hi)) else { break };
        let longer = row * extent;
        let axes = &parallel.indices()[parallel.axes() - extents.len() - 1..];
        let enough = match extents.len() {
            1 if !runs_on(kernel, parallel, axes) => SHORT_ROW,
            _ => COLLAPSED_ROW,
        };
        if extent < 1 || longer > i32::MAX.into() || !extents.is_empty() && row >= enough {
            break;
        }
        extents.push(extent as u64);
        row = longer;
    }
    if loops || extents.len() < 2 {
        return Vec::new();
    }
    extents.reverse();
    extents
}

/// Whether the last axes are nothing but indices of accesses, of fields whose elements lie side by side along all of them: such rows lose nothing by
/// being one. The sum of a pointer field with bitmasked blocks of 16² takes 0.45 times as long with rows of 256 as with those of 16.
fn runs_on(kernel: &Kernel, parallel: &ParallelLoop<'_>, axes: &[Value]) -> bool {
    let mut all = true;
    walk(kernel, parallel.body, &mut |op| {
        let data = &kernel.ops[op];
        if !all || !data.operands.iter().any(|operand| axes.contains(operand)) {
            return;
        }
        let layout = kernel.cell_access(op).and_then(|access| {
            let Type::Array(ArrayType { layout: Some(layout), .. }) = kernel.ty(access.place.base()) else {
                return None;
            };
            Some((access.place.indices(), &kernel.layouts[layout]))
        });
        let uses = data.operands.iter().filter(|operand| axes.contains(operand)).count();
        all = uses == axes.len()
            && layout.is_some_and(|(indices, layout)| lie_side_by_side(layout, indices, axes));
    });
    all
}

fn lie_side_by_side(layout: &Layout, indices: &[Value], axes: &[Value]) -> bool {
    let mut expected = None;
    axes.iter().rev().all(|axis| {
        let Some(position) = indices.iter().position(|index| index == axis) else { return false };
        let mut digits = layout.digits_of(position);
        let (Some(digit), None) = (digits.next(), digits.next()) else { return false };
        let follows = expected.is_none_or(|expected| digit.stride == expected);
        expected = digit.stride.checked_mul(u64::from(digit.extent));
        follows && expected.is_some() && layout.origin[position] == 0
    })
}

impl Emitter<'_> {
    /// Sets the axes that the counter stands for.
    pub(crate) fn split_counter(&mut self, axes: &[Value], extents: &[u64], counter: Val) {
        let narrow = self.resize(counter, Scalar::U32);
        let mut rest = narrow;
        for (place, (&axis, &extent)) in axes.iter().zip(extents).enumerate().rev() {
            let digit = if place == 0 {
                rest
            } else {
                let extent = Val::int(Scalar::U32, extent.into());
                let digit = self.binary("urem", rest, extent);
                rest = self.binary("udiv", rest, extent);
                digit
            };
            let index = self.resize(digit, self.scalar(axis));
            self.set(axis, index);
            let exact = self.f.value(Ty::new(Scalar::I64, 1), format_args!("zext nneg i32 {digit} to i64"));
            let range = Range::new(0, i128::from(extent) - 1);
            self.counters.set(axis, Some(Counter { index: Index::uniform(exact), range }));
        }
        let axes = axes.iter().copied().zip(extents.iter().copied()).collect();
        self.flat = Some(Flat { axes, counter });
    }

    /// The part of a field's offset, in bytes, that the row's counter makes up: the counter, its stride, what is constant, and the
    /// positions of the indices that are covered. `None` where the indices do not run through memory as the counter does.
    pub(crate) fn flat_part(
        &self,
        layout: &Layout,
        indices: &[Value],
    ) -> Option<(Val, u64, i128, Vec<usize>)> {
        let flat = self.flat.as_ref()?;
        let (mut first, mut next) = (0, None);
        let mut shifted = 0;
        let mut covered = Vec::new();
        for &(axis, extent) in flat.axes.iter().rev() {
            let found = indices
                .iter()
                .enumerate()
                .find_map(|(position, &index)| self.shift_from(index, axis).map(|shift| (position, shift)));
            let (position, shift) = found.filter(|(position, _)| !covered.contains(position))?;
            let digit = layout.digits_of(position).next()?;
            let window = Range::window(layout.origin[position].into(), layout.shape[position].into());
            if !Range::new(shift, shift + i128::from(extent) - 1).lies_in(window) {
                return None;
            }
            match next {
                None => first = digit.stride,
                Some(stride) if stride == digit.stride => {}
                Some(_) => return None,
            }
            next = digit.stride.checked_mul(extent);
            next?;
            shifted += shift * i128::from(digit.stride);
            covered.push(position);
        }
        Some((flat.counter, first, shifted, covered))
    }

    /// How far an index is from an axis, if that is constant.
    fn shift_from(&self, index: Value, axis: Value) -> Option<i128> {
        if index == axis {
            return Some(0);
        }
        let def = self.kernel.def(index)?;
        let constant = |value: Value| self.kernel.as_const(value).and_then(Const::as_i128);
        match (&def.kind, &def.operands[..]) {
            (OpKind::Arith(ArithOp::Add), &[a, b]) if a == axis => constant(b),
            (OpKind::Arith(ArithOp::Sub), &[a, b]) if a == axis => constant(b).map(|c| -c),
            _ => None,
        }
    }
}
