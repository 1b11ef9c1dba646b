//! Gives each digit of a field's axis an index of its own, where an axis has several: what nested nodes do to an index becomes ops,
//! which `simplify` knows how to cancel against loops over the digits. After it an axis of a field is a stride.
//!
//! Before:
//! ```text
//! layout0 = layout [12] from [5] { dense (axis 0 below 4 extent 3 stride 32, axis 0 below 1 extent 4 stride 4) }
//! …
//! %1: f32 = load %x[%i]
//! ```
//! After:
//! ```text
//! layout0 = layout [3, 4] { dense (axis 0 below 1 extent 3 stride 32, axis 1 below 1 extent 4 stride 4) }
//! …
//! %2: i32 = const -5
//! %3: i32 = add %i, %2
//! %4: i32 = const 2
//! %5: i32 = shr %3, %4
//! %6: i32 = const 3
//! %7: i32 = and %3, %6
//! %1: f32 = load %x[%5, %7]
//! ```
//!
//! Fields keep their elements where they are: the argument of a launch does not change. An axis of one digit stays as it is, with
//! its origin. An index outside the shape is outside of it afterwards, too: the outermost digit has no upper end.
//!
//! Expects and leaves the structured phase.

use octants_ir::ops::{ArithOp, BitOp};
use octants_ir::rewrite::regions_in;
use octants_ir::{
    Builder, Const, Digit, Kernel, Layout, LayoutId, Op, OpKind, Region, Scalar, SideTable, Type, Value,
};

pub fn split_digits(kernel: &mut Kernel) {
    let mut before: SideTable<LayoutId, Option<Layout>> = SideTable::new(None);
    let mut any = false;
    for id in kernel.layouts.ids() {
        let layout = &kernel.layouts[id];
        if (0..layout.rank()).any(|axis| layout.digits_of(axis).count() > 1) {
            let split = split(layout);
            before.set(id, Some(std::mem::replace(&mut kernel.layouts[id], split)));
            any = true;
        }
    }
    if !any {
        return;
    }
    for value in kernel.values.ids() {
        if let Type::Array(array) = &mut kernel.values[value].ty
            && let Some(id) = array.layout.filter(|&id| before[id].is_some())
        {
            array.rank = kernel.layouts[id].rank() as u8;
        }
    }
    for body in kernel.bodies() {
        for region in regions_in(kernel, body) {
            for op in std::mem::take(&mut kernel.regions[region].ops) {
                visit(kernel, region, op, &before);
                kernel.regions[region].ops.push(op);
            }
        }
    }
}

/// The layout with an axis for each digit of an axis that has several.
fn split(layout: &Layout) -> Layout {
    let (mut shape, mut origin) = (Vec::new(), Vec::new());
    let mut levels = layout.levels.clone();
    for (axis, &extent) in layout.shape.iter().enumerate() {
        let digits: Vec<_> = layout.digits_of(axis).copied().collect();
        let [_, _, ..] = digits[..] else {
            rename(&mut levels, &layout.levels, digits.first(), shape.len());
            shape.push(extent);
            origin.push(layout.origin[axis]);
            continue;
        };
        for digit in &digits {
            rename(&mut levels, &layout.levels, Some(digit), shape.len());
            shape.push(digit.extent);
            origin.push(0);
        }
    }
    Layout { shape, origin, levels }
}

/// The digit is all of an axis now.
fn rename(
    levels: &mut [octants_ir::Level],
    before: &[octants_ir::Level],
    digit: Option<&Digit>,
    axis: usize,
) {
    let pairs =
        levels.iter_mut().zip(before).flat_map(|(after, before)| after.digits.iter_mut().zip(&before.digits));
    for (after, before) in pairs {
        if Some(before) == digit {
            (after.axis, after.below) = (axis as u8, 1);
        }
    }
}

fn visit(kernel: &mut Kernel, region: Region, op: Op, layouts: &SideTable<LayoutId, Option<Layout>>) {
    if let Some(parallel) = kernel.parallel_loop(op) {
        let mut operands = parallel.bound_operands().to_vec();
        let places: Vec<_> = parallel.reductions().map(|r| r.place.operands().to_vec()).collect();
        let mut lengths = Vec::with_capacity(places.len());
        for place in places {
            let place = split_path(kernel, region, op, &place, layouts).unwrap_or(place);
            lengths.push(place.len() as u8);
            operands.extend(place);
        }
        kernel.ops[op].operands = operands.into();
        if let OpKind::ParallelFor(attributes) = &mut kernel.ops[op].kind {
            for (reduction, length) in attributes.reductions.iter_mut().zip(lengths) {
                reduction.operands = length;
            }
        }
        return;
    }
    let Some(place) = kernel.addressed(op) else { return };
    let path = place.operands().to_vec();
    let values = kernel.ops[op].operands[path.len()..].to_vec();
    if let Some(path) = split_path(kernel, region, op, &path, layouts) {
        kernel.ops[op].operands = path.into_iter().chain(values).collect();
    }
}

/// The path with digits in the place of indices; `None` where the base's layout stays as it was.
fn split_path(
    kernel: &mut Kernel,
    region: Region,
    op: Op,
    path: &[Value],
    layouts: &SideTable<LayoutId, Option<Layout>>,
) -> Option<Vec<Value>> {
    let Type::Array(array) = kernel.ty(path[0]) else { return None };
    let layout = array.layout.and_then(|id| layouts[id].as_ref())?;
    let (indices, components) = path[1..].split_at(layout.rank());
    let loc = kernel.ops[op].loc;
    let mut b = Builder::at(kernel, region, loc);
    let mut split = vec![path[0]];
    for (axis, &index) in indices.iter().enumerate() {
        let digits: Vec<_> = layout.digits_of(axis).copied().collect();
        if digits.len() < 2 {
            split.push(index);
            continue;
        }
        let distance = from_origin(&mut b, index, layout.origin[axis]);
        for (position, digit) in digits.iter().enumerate() {
            split.push(value_of(&mut b, distance, *digit, position == 0));
        }
    }
    split.extend(components);
    Some(split)
}

/// The index counted from the field's first element, in a type that has the sign and the room for it.
fn from_origin(b: &mut Builder<'_>, index: Value, origin: i32) -> Value {
    let ty = b.kernel.ty(index).scalar().expect("an index is an integer");
    let room = match ty {
        Scalar::I64 | Scalar::U32 | Scalar::U64 => Scalar::I64,
        _ => Scalar::I32,
    };
    let index = if ty == room { index } else { b.cast(index, room) };
    if origin == 0 {
        return index;
    }
    let back = b.constant(Const::from_i128(room, -i128::from(origin)));
    b.arith(ArithOp::Add, index, back)
}

fn value_of(b: &mut Builder<'_>, distance: Value, digit: Digit, outermost: bool) -> Value {
    let ty = b.kernel.ty(distance).scalar().expect("an index is an integer");
    let mut value = distance;
    if digit.below > 1 {
        value = divided(b, ty, value, digit.below);
    }
    if !outermost {
        value = rest(b, ty, value, digit.extent);
    }
    value
}

fn divided(b: &mut Builder<'_>, ty: Scalar, value: Value, by: u32) -> Value {
    if by.is_power_of_two() {
        let shift = b.constant(Const::from_i128(ty, by.trailing_zeros().into()));
        return b.bit(BitOp::Shr, value, shift);
    }
    let by = b.constant(Const::from_i128(ty, by.into()));
    b.arith(ArithOp::RawDiv, value, by)
}

fn rest(b: &mut Builder<'_>, ty: Scalar, value: Value, by: u32) -> Value {
    if by.is_power_of_two() {
        let mask = b.constant(Const::from_i128(ty, i128::from(by) - 1));
        return b.bit(BitOp::And, value, mask);
    }
    let by = b.constant(Const::from_i128(ty, by.into()));
    b.arith(ArithOp::RawMod, value, by)
}
