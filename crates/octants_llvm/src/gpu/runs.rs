//! Accesses that run through memory along the last axis of a parallel loop, and how they are aligned.
//!
//! A *group* is a few neighbouring points that one thread runs, the first of them at a multiple of their number. The cell that an access
//! `x[j, i + c]` of point `i = first + lane` means lies at
//!
//! ```text
//! base + j * row + (first + lane + c) * stride + entry
//! ```
//!
//! Where base and row are multiples of 16 bytes (asked at launch), and so is `first * stride`, it lies `(lane + c) * stride + entry` bytes
//! behind a multiple of 16. An index that wraps around 32 bits moves by a multiple of 2³² elements, which changes nothing here. LLVM joins
//! accesses of neighbouring cells to one of 128 bits if it is told so. Entries of one element (a vector's) are joined in the same way,
//! whatever the element's index is: elements lie at multiples of their size.

use octants_ir::ops::ArithOp;
use octants_ir::{Boundary, Const, Data, Kernel, OpKind, TensorShape, Type, Value};

use crate::address::elem_of;
use crate::emitter::Emitter;
use crate::value::{Val, in_memory};

/// Bytes of the widest access.
pub(super) const WIDEST: u64 = 16;

/// An access that runs along an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub param: usize,
    /// Bytes from a point's cell to that of the next one.
    pub stride: u64,
    /// Bytes of the cell of point 0, up to a multiple of 16.
    pub first: u64,
}

/// Where the cell of an access lies: so many bytes behind a multiple of a power of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cell {
    multiple: u64,
    offset: u64,
}

impl Cell {
    pub fn alignment(self) -> u64 {
        let offset = self.offset % self.multiple;
        if offset == 0 { self.multiple } else { offset & offset.wrapping_neg() }
    }
}

/// Where the cell of an access lies, whatever its indices are, in an array whose base is aligned: elements lie behind each other.
pub(super) fn cell_of(kernel: &Kernel, path: &[Value]) -> Option<Cell> {
    let (&base, path) = path.split_first()?;
    let Type::Array(array) = kernel.ty(base) else { return None };
    if array.has_strides() || matches!(array.elem, Data::Struct(_)) {
        return None;
    }
    let scalar = u64::from(in_memory(elem_of(array.elem)).bytes());
    let entries = u64::from(array.elem.tensor_shape().map_or(1, TensorShape::count));
    let offset = u64::from(entry(kernel, array.elem, &path[usize::from(array.rank)..])?) * scalar;
    let multiple = match kernel.layout(array) {
        Some(layout) => {
            let digits = (0..layout.shape.len()).flat_map(|axis| layout.digits_of(axis));
            digits.fold(WIDEST, |multiple, digit| gcd(multiple, digit.stride))
        }
        None => gcd(WIDEST, scalar * entries),
    };
    Some(Cell { multiple, offset })
}

pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// How an access runs along an axis, if one of its indices is the axis and a constant. Rows of a field have to be aligned.
pub(super) fn run_along(kernel: &Kernel, axis: Value, path: &[Value]) -> Option<Run> {
    let (&base, path) = path.split_first()?;
    let (param, Type::Array(array)) = (kernel.as_param(base)?, kernel.ty(base)) else { return None };
    if array.boundary == Boundary::Clamp || array.has_strides() || matches!(array.elem, Data::Struct(_)) {
        return None;
    }
    let (indices, components) = path.split_at(array.rank.into());
    let scalar = u64::from(in_memory(elem_of(array.elem)).bytes());
    let entries = u64::from(array.elem.tensor_shape().map_or(1, TensorShape::count));
    let (position, shift) = indices
        .iter()
        .enumerate()
        .find_map(|(position, &index)| Some((position, distance(kernel, index, axis)?)))?;
    let mut start = i128::from(entry(kernel, array.elem, components)?) * i128::from(scalar);
    let stride = if let Some(layout) = kernel.layout(array) {
        let mut stride = None;
        for axis in 0..indices.len() {
            let mut digits = layout.digits_of(axis);
            let Some(digit) = digits.next() else { continue };
            start -= i128::from(layout.origin[axis]) * i128::from(digit.stride);
            if axis == position {
                stride = Some(digit.stride);
            } else if !digit.stride.is_multiple_of(WIDEST) {
                return None;
            }
        }
        stride?
    } else {
        if array.order.axes(indices.len()).last() != Some(position) {
            return None;
        }
        scalar * entries
    };
    let first = (start + shift * i128::from(stride)).rem_euclid(WIDEST.into()) as u64;
    Some(Run { param, stride, first })
}

/// How far an index is from an axis, if that is constant.
fn distance(kernel: &Kernel, index: Value, axis: Value) -> Option<i128> {
    if index == axis {
        return Some(0);
    }
    let def = kernel.def(index)?;
    let constant = |value: Value| kernel.as_const(value).and_then(Const::as_i128);
    match (&def.kind, &def.operands[..]) {
        (OpKind::Arith(ArithOp::Add), &[a, b]) if b == axis => constant(a),
        (OpKind::Arith(ArithOp::Add), &[a, b]) => Some(distance(kernel, a, axis)? + constant(b)?),
        (OpKind::Arith(ArithOp::Sub), &[a, b]) => Some(distance(kernel, a, axis)? - constant(b)?),
        _ => None,
    }
}

/// Which entry of a cell components name, if they are constants inside its shape.
pub(super) fn entry(kernel: &Kernel, data: Data, components: &[Value]) -> Option<u32> {
    let Some(shape) = data.tensor_shape() else { return Some(0) };
    let mut entry = 0;
    for (&component, extent) in components.iter().zip(shape.dims()) {
        let component = u32::try_from(kernel.as_const(component)?.as_i128()?).ok()?;
        entry = entry * extent + Some(component).filter(|&component| component < extent)?;
    }
    Some(entry)
}

impl Emitter<'_> {
    /// The alignment in bytes of an access of the group's point that is written; that of a scalar where no more is known.
    pub(crate) fn group_alignment(&self, path: &[Value], scalar: u32) -> u32 {
        let Some(group) = &self.group else { return scalar };
        if !self.kernel.as_param(path[0]).is_some_and(|param| group.aligned.contains(&param)) {
            return scalar;
        }
        let points = u64::from(group.points);
        // Rows are aligned only where there are several points.
        let run = run_along(self.kernel, group.axis, path).filter(|_| points > 1).map(|run| {
            let offset = run.first + u64::from(group.lane) * run.stride;
            Cell { multiple: gcd(WIDEST, points * run.stride), offset }
        });
        let cells = [run, cell_of(self.kernel, path)];
        let aligned = cells.into_iter().flatten().map(Cell::alignment).max().unwrap_or(1);
        (aligned as u32).max(scalar)
    }

    /// Whether the bases of these arrays, and their rows if these matter, are multiples of 16 bytes; `None` if there is nothing to ask.
    pub(super) fn arrays_are_aligned(&mut self, params: &[usize], rows: bool) -> Option<Val> {
        let mut bits: Option<Val> = None;
        for &param in params {
            let base = self.array_base(param);
            let ty = crate::value::Ty::new(octants_ir::Scalar::I64, 1);
            let address = self.f.value(ty, format_args!("ptrtoint ptr {base} to i64"));
            bits = Some(self.joined_bits(bits, address));
            let Some(array) = self.plan.args.slots[param].array() else { continue };
            if !rows || self.kernel.layout(array).is_some() || array.rank < 2 {
                continue;
            }
            let fastest = array.order.axes(array.rank.into()).last().unwrap_or_default();
            let extent = self.extent(param, fastest as u8).1;
            let element = Val::i64(self.plan.args.slots[param].bytes.into());
            let row = self.binary("mul", extent, element);
            bits = Some(self.joined_bits(bits, row));
        }
        let low = self.binary("and", bits?, Val::i64(WIDEST as i64 - 1));
        Some(self.compare("eq", low, Val::i64(0)))
    }

    fn joined_bits(&mut self, bits: Option<Val>, more: Val) -> Val {
        match bits {
            Some(bits) => self.binary("or", bits, more),
            None => more,
        }
    }
}
