//! Turns a loop over the cells of a layout into a loop over ranges, in storage order: over the axes where each is one digit, else over
//! the digits, from which the body puts the index together. What else than dense nodes a loop has to visit is decided here.
//!
//! Before:
//! ```text
//! layout0 = layout [12] from [5] { dense (axis 0 below 4 extent 3 stride 32, axis 0 below 1 extent 4 stride 4) }
//! …
//! parallel_for (%i: i32) over layout0 { … }
//! ```
//! After:
//! ```text
//! parallel_for (%0: i32, %1: i32) in (0..3, 0..4) {
//!   %2: i32 = const 4
//!   %3: i32 = mul %0, %2
//!   %4: i32 = add %3, %1
//!   %5: i32 = const 5
//!   %i: i32 = add %4, %5
//!   …
//! }
//! ```
//!
//! Expects and leaves the structured phase.

use octants_ir::ops::{ArithOp, Domain};
use octants_ir::rewrite::{ValueMap, replace_values};
use octants_ir::{Builder, Kernel, Layout, NodeKind, Op, OpKind, Region, Type, Value};

use crate::slots::set_params;

pub fn expand_field_loops(kernel: &mut Kernel) {
    for region in kernel.top_regions() {
        for op in std::mem::take(&mut kernel.regions[region].ops) {
            if let OpKind::ParallelFor(attributes) = &kernel.ops[op].kind
                && let Domain::Cells(layout) = attributes.domain
            {
                let layout = kernel.layouts[layout].clone();
                expand(kernel, region, op, &layout);
            }
            kernel.regions[region].ops.push(op);
        }
    }
}

/// One axis of the loop that is made.
struct Axis {
    lo: i32,
    hi: i32,
    /// Which axis of the layout it counts along, and how many elements each step is.
    of: usize,
    weight: u32,
}

/// The axes of a loop in storage order, the outermost first, and the index that they count from.
fn storage_order(layout: &Layout) -> (Vec<Axis>, Vec<i32>) {
    for level in &layout.levels {
        match level.kind {
            NodeKind::Dense => {}
        }
    }
    if layout.digits().any(|digit| digit.below != 1) {
        let digit_axis = |digit: &octants_ir::Digit| {
            let (hi, of) = (digit.extent as i32, usize::from(digit.axis));
            Axis { lo: 0, hi, of, weight: digit.below }
        };
        return (layout.digits().map(digit_axis).collect(), layout.origin.clone());
    }
    // Axes of one element have no digit.
    let single = (0..layout.rank()).filter(|&axis| layout.digits_of(axis).next().is_none());
    let order = single.chain(layout.digits().map(|digit| usize::from(digit.axis)));
    let whole_axis = |of: usize| {
        let lo = layout.origin[of];
        Axis { lo, hi: lo.wrapping_add(layout.shape[of] as i32), of, weight: 1 }
    };
    (order.map(whole_axis).collect(), vec![0; layout.rank()])
}

fn expand(kernel: &mut Kernel, region: Region, op: Op, layout: &Layout) {
    let loc = kernel.ops[op].loc;
    let parallel = kernel.parallel_loop(op).expect("the caller saw a parallel loop");
    let (body, indices) = (parallel.body, parallel.indices().to_vec());
    let accumulators = parallel.accumulators().to_vec();
    let places = parallel.place_operands().to_vec();
    let (axes, origin) = storage_order(layout);
    let mut operands = Vec::new();
    for axis in &axes {
        let mut b = Builder::at(kernel, region, loc);
        operands.extend([b.i32(axis.lo), b.i32(axis.hi)]);
    }
    operands.extend(places);
    kernel.ops[op].operands = operands.into();
    if let OpKind::ParallelFor(attributes) = &mut kernel.ops[op].kind {
        attributes.domain = Domain::Ranges;
        attributes.axes = axes.len() as u8;
    }
    let counted: Vec<_> = axes.iter().map(|_| kernel.add_region_param(body, Type::I32)).collect();
    set_params(kernel, body, counted.iter().copied().chain(accumulators).collect());
    let rest = std::mem::take(&mut kernel.regions[body].ops);
    let mut b = Builder::at(kernel, body, loc);
    let mut names = ValueMap::new();
    for (axis, &index) in indices.iter().enumerate() {
        let parts = axes.iter().zip(&counted).filter(|(part, _)| part.of == axis);
        names.insert(index, sum(&mut b, parts.map(|(part, &value)| (value, part.weight)), origin[axis]));
    }
    kernel.regions[body].ops.extend(rest);
    replace_values(kernel, body, &names);
}

fn sum(b: &mut Builder<'_>, parts: impl Iterator<Item = (Value, u32)>, origin: i32) -> Value {
    let mut sum = None;
    for (value, weight) in parts {
        let weighted = if weight == 1 {
            value
        } else {
            let weight = b.i32(weight as i32);
            b.arith(ArithOp::Mul, value, weight)
        };
        sum = Some(match sum {
            None => weighted,
            Some(sum) => b.arith(ArithOp::Add, sum, weighted),
        });
    }
    match sum {
        None => b.i32(origin),
        Some(sum) if origin == 0 => sum,
        Some(sum) => {
            let origin = b.i32(origin);
            b.arith(ArithOp::Add, sum, origin)
        }
    }
}
