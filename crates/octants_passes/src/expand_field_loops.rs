//! Turns a loop over the cells of a layout into one over ranges, in storage order: over the axes where each is one digit, else over
//! the digits, from which the body puts the index together. Loops over sparse nodes are ranges of slots already.
//! A serial loop becomes one loop inside another; where a variable may end it, each of them looks at that variable.
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

use octants_ir::ops::{ArithOp, BitOp, BitUnary, CompareOp, Domain};
use octants_ir::rewrite::{ValueMap, regions_in, replace_values};
use octants_ir::{Builder, Data, Kernel, Layout, Loc, Op, OpKind, Region, Scalar, Type, Value};

use crate::edit::slots::set_params;

pub fn expand_field_loops(kernel: &mut Kernel) {
    let bodies = kernel.bodies();
    let regions: Vec<_> = bodies.into_iter().flat_map(|body| regions_in(kernel, body)).collect();
    for region in regions {
        for op in std::mem::take(&mut kernel.regions[region].ops) {
            match &kernel.ops[op].kind {
                OpKind::ParallelFor(attributes) => {
                    if let Domain::Cells(layout) = attributes.domain {
                        let layout = kernel.layouts[layout].clone();
                        expand_parallel(kernel, region, op, &layout);
                    }
                }
                OpKind::ForCells(layout) => {
                    let layout = kernel.layouts[*layout].clone();
                    expand_serial(kernel, region, op, &layout);
                }
                _ => {}
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

/// `lo, hi` of each axis, in the region around the loop.
fn bounds(kernel: &mut Kernel, region: Region, loc: Loc, axes: &[Axis]) -> Vec<[Value; 2]> {
    let mut b = Builder::at(kernel, region, loc);
    axes.iter().map(|axis| [b.i32(axis.lo), b.i32(axis.hi)]).collect()
}

fn expand_parallel(kernel: &mut Kernel, region: Region, op: Op, layout: &Layout) {
    let loc = kernel.ops[op].loc;
    let parallel = kernel.parallel_loop(op).expect("the caller saw a parallel loop");
    let (body, indices) = (parallel.body, parallel.indices().to_vec());
    let accumulators = parallel.accumulators().to_vec();
    let places = parallel.place_operands().to_vec();
    let (axes, origin) = storage_order(layout);
    let bounds = bounds(kernel, region, loc, &axes);
    kernel.ops[op].operands = bounds.into_iter().flatten().chain(places).collect();
    if let OpKind::ParallelFor(attributes) = &mut kernel.ops[op].kind {
        attributes.domain = Domain::Ranges;
        attributes.axes = axes.len() as u8;
    }
    let counted: Vec<_> = axes.iter().map(|_| kernel.add_region_param(body, Type::I32)).collect();
    set_params(kernel, body, counted.iter().copied().chain(accumulators).collect());
    let rest = std::mem::take(&mut kernel.regions[body].ops);
    let names = indices_of(kernel, body, loc, &indices, &axes, &counted, &origin);
    kernel.regions[body].ops.extend(rest);
    replace_values(kernel, body, &names);
}

fn expand_serial(kernel: &mut Kernel, region: Region, op: Op, layout: &Layout) {
    let loc = kernel.ops[op].loc;
    let body = kernel.ops[op].regions[0];
    let indices = kernel.regions[body].params.clone();
    let (mut axes, origin) = storage_order(layout);
    let mut left = kernel.ops[op].operands.first().copied();
    if axes.is_empty() {
        // No axes: exactly one cell, and so nothing to leave out.
        axes.push(Axis { lo: 0, hi: 1, of: usize::MAX, weight: 1 });
        left = None;
    }
    let bounds = bounds(kernel, region, loc, &axes);
    set_params(kernel, body, Vec::new());
    let rest = std::mem::take(&mut kernel.regions[body].ops);
    let (mut around, mut counted, mut nest) = (region, Vec::new(), Vec::new());
    for (level, &[lo, hi]) in bounds.iter().enumerate() {
        let inner = if level + 1 == bounds.len() { body } else { kernel.add_region() };
        let counter = left.map(|left| Counter::declare(kernel, around, loc, lo, hi, left));
        let (kind, operands, regions) = match &counter {
            None => (OpKind::For, vec![lo, hi], vec![inner]),
            Some(counter) => (OpKind::While, Vec::new(), vec![counter.condition, inner]),
        };
        if level == 0 {
            let data = &mut kernel.ops[op];
            (data.kind, data.operands, data.regions) = (kind, operands.into(), regions.into());
        } else {
            Builder::at(kernel, around, loc).op(kind, operands, [], regions);
        }
        counted.push(match &counter {
            None => kernel.add_region_param(inner, Type::I32),
            Some(counter) => Builder::at(kernel, inner, loc).load(counter.local, &[]),
        });
        nest.push((inner, counter));
        around = inner;
    }
    let names = indices_of(kernel, body, loc, &indices, &axes, &counted, &origin);
    kernel.regions[body].ops.extend(rest);
    let end = kernel.regions[body].ops.pop();
    for ((inner, counter), &index) in nest.iter().zip(&counted) {
        let mut b = Builder::at(kernel, *inner, loc);
        if let Some(counter) = counter {
            let one = b.i32(1);
            let next = b.arith(ArithOp::Add, index, one);
            b.store(counter.local, &[], next);
        }
        if *inner != body {
            b.yields(&[]);
        }
    }
    kernel.regions[body].ops.extend(end);
    replace_values(kernel, body, &names);
}

/// What counts a loop that a variable may end.
struct Counter {
    local: Value,
    /// That the loop goes on.
    condition: Region,
}

impl Counter {
    fn declare(kernel: &mut Kernel, around: Region, loc: Loc, lo: Value, hi: Value, left: Value) -> Self {
        let mut b = Builder::at(kernel, around, loc);
        let local = b.local(Data::Scalar(Scalar::I32));
        b.store(local, &[], lo);
        let condition = kernel.add_region();
        let mut b = Builder::at(kernel, condition, loc);
        let index = b.load(local, &[]);
        let inside = b.compare(CompareOp::Lt, index, hi);
        let left = b.load(left, &[]);
        let staying = b.bit_unary(BitUnary::Not, left);
        let goes_on = b.bit(BitOp::And, staying, inside);
        b.yields(&[goes_on]);
        Self { local, condition }
    }
}

/// Ops, at the end of the body's, for what each index is.
fn indices_of(
    kernel: &mut Kernel,
    body: Region,
    loc: Loc,
    indices: &[Value],
    axes: &[Axis],
    counted: &[Value],
    origin: &[i32],
) -> ValueMap {
    let mut b = Builder::at(kernel, body, loc);
    let mut names = ValueMap::new();
    for (axis, &index) in indices.iter().enumerate() {
        let parts = axes.iter().zip(counted).filter(|(part, _)| part.of == axis);
        names.insert(index, sum(&mut b, parts.map(|(part, &value)| (value, part.weight)), origin[axis]));
    }
    names
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
