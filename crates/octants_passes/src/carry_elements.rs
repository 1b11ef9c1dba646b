//! Keeps an element that a serial loop reads or writes again and again in a variable while the loop runs.
//!
//! Before:
//! ```text
//! for %k: i32 in %lo..%hi {
//!   …
//!   if %c {
//!     %1: f32 = load %a[%i]
//!     %2: f32 = add %1, %v
//!     store %a[%i], %2
//!   }
//! }
//! ```
//! After, of which `promote_locals` makes values that the loop carries:
//! ```text
//! %x: local<f32> = local
//! %w: local<u1> = local
//! store %w, %false
//! %3: f32 = if %inside { … load %a[%i] } else { … %zero }
//! store %x, %3
//! for %k: i32 in %lo..%hi {
//!   …
//!   if %c {
//!     %1: f32 = load %x
//!     %2: f32 = add %1, %v
//!     store %x, %2
//!     store %w, %true
//!   }
//! }
//! %4: u1 = load %w
//! if %4 {
//!   %5: f32 = load %x
//!   store %a[%i], %5
//! }
//! ```
//! Acts inside of parallel loops, on elements that the loop writes and whose indices are the same in all of its iterations, where every other access of the
//! array in the loop is plain, and of the same element or surely of another one. The loop must do nothing by which another thread could learn of
//! what was stored, as `merge_accesses` has it.
//!
//! Laws: **an element that the program does not write is not written**: another iteration, or another stream, may own it. And **none is read that
//! may not be there**: what is read under a condition alone is read before the loop only if its indices lie inside of the array.
//!
//! The outermost loop comes first, so that an element is read and written once for a whole nest. Arguments are assumed not to alias. Expects scalars,
//! and that what iterations own is not atomic any more. Structured phase.

use std::collections::{HashMap, HashSet};

use octants_ir::ops::CompareOp;
use octants_ir::rewrite::{regions_in, use_counts};
use octants_ir::{
    ArrayType, Boundary, Builder, Const, Data, Kernel, Loc, Op, OpKind, Region, Scalar, SideTable, Type,
    Value,
};

use crate::analysis::{Affine, Change, change_of, plain_place};
use crate::assumptions::Assumptions;

/// Elements that one loop carries: more than there are registers for would go to memory again. Chosen, not measured.
const MOST_CARRIED: usize = 32;

pub fn carry_elements(kernel: &mut Kernel, assumptions: Assumptions) {
    if !assumptions.noalias {
        return;
    }
    let uses = use_counts(kernel);
    for region in kernel.top_regions() {
        for op in kernel.regions[region].ops.clone() {
            if matches!(kernel.ops[op].kind, OpKind::ParallelFor(_)) {
                let body = kernel.ops[op].regions[0];
                carry_in(kernel, body, op, &uses);
            }
        }
    }
}

fn carry_in(kernel: &mut Kernel, region: Region, parallel: Op, uses: &SideTable<Value, u32>) {
    for op in kernel.regions[region].ops.clone() {
        if kernel.ops[op].kind.is_loop() {
            let elements = find(kernel, op, uses);
            if !elements.is_empty() {
                carry(kernel, region, op, parallel, &elements);
            }
        }
        for inner in kernel.ops[op].regions.clone() {
            carry_in(kernel, inner, parallel, uses);
        }
    }
}

/// An element that a loop can carry.
struct Element {
    /// The array, then the path; constants may stand in the loop.
    place: Vec<Value>,
    forms: Vec<Affine>,
    scalar: Scalar,
    accesses: Vec<Op>,
    is_read: bool,
    /// The regions that write it, ascending: elements with the same ones are written by the same iterations.
    written_in: Vec<Region>,
    /// Whether each iteration of the loop surely accesses it, and whether it surely writes it.
    is_certain: bool,
    is_surely_written: bool,
}

/// The elements that the loop can carry.
fn find(kernel: &Kernel, looped: Op, uses: &SideTable<Value, u32>) -> Vec<Element> {
    let regions: Vec<_> =
        kernel.ops[looped].regions.iter().flat_map(|&region| regions_in(kernel, region)).collect();
    let inside =
        || regions.iter().flat_map(|&region| kernel.regions[region].ops.iter().map(move |&op| (region, op)));
    let is_quiet = |(_, op)| !matches!(change_of(kernel, uses, op), Change::Anything);
    let writes =
        |(_, op): (Region, Op)| kernel.ops[op].kind == OpKind::Store && plain_place(kernel, op).is_some();
    if !inside().any(writes) || !inside().all(is_quiet) {
        return Vec::new();
    }
    let params = regions.iter().flat_map(|&region| &kernel.regions[region].params);
    let results = inside().flat_map(|(_, op)| &kernel.ops[op].results);
    let made_inside: HashSet<Value> = params.chain(results).copied().collect();
    let mut always = HashSet::new();
    collect_what_always_runs(kernel, looped, &mut always);
    let mut elements: Vec<Element> = Vec::new();
    let mut varying: Vec<Vec<Affine>> = Vec::new();
    let mut varying_of: Vec<Value> = Vec::new();
    let mut barred: Vec<Value> = Vec::new();
    for (region, op) in inside() {
        let Some(access) = kernel.cell_access(op) else { continue };
        let base = access.place.base();
        let Type::Array(array) = kernel.ty(base) else { continue };
        let forms: Option<Vec<_>> =
            access.place.path().iter().map(|&index| Affine::of(kernel, index)).collect();
        let scalar = access
            .values
            .first()
            .or(kernel.ops[op].results.first())
            .and_then(|&value| kernel.ty(value).scalar());
        let (Some(forms), Some(scalar), true) = (forms, scalar, is_simple(kernel, op, array)) else {
            barred.push(base);
            continue;
        };
        let outside = |&value: &Value| !made_inside.contains(&value) || kernel.as_const(value).is_some();
        if made_inside.contains(&base) || !access.place.path().iter().all(outside) {
            if access.writes {
                barred.push(base);
            }
            varying.push(forms);
            varying_of.push(base);
            continue;
        }
        let known = elements.iter().position(|element| element.place[0] == base && element.forms == forms);
        let at = known.unwrap_or_else(|| {
            elements.push(Element {
                place: access.place.operands().to_vec(),
                forms,
                scalar,
                accesses: Vec::new(),
                is_read: false,
                written_in: Vec::new(),
                is_certain: false,
                is_surely_written: false,
            });
            elements.len() - 1
        });
        let element = &mut elements[at];
        element.accesses.push(op);
        element.is_read |= access.reads;
        element.is_certain |= always.contains(&op);
        element.is_surely_written |= access.writes && always.contains(&op);
        if access.writes {
            element.written_in.push(region);
        }
    }
    for element in &mut elements {
        element.written_in.sort_unstable();
        element.written_in.dedup();
    }
    let is_apart = |element: &Element| {
        let base = element.place[0];
        let others = elements.iter().filter(|other| other.place[0] == base && other.forms != element.forms);
        let others = others.map(|other| &other.forms);
        let moving = varying.iter().zip(&varying_of).filter(|(_, of)| **of == base).map(|(forms, _)| forms);
        !barred.contains(&base) && others.chain(moving).all(|other| are_distinct(&element.forms, other))
    };
    let fits: Vec<_> = elements
        .iter()
        .map(|element| {
            !element.written_in.is_empty()
                && is_apart(element)
                && (element.is_certain || !element.is_read || may_be_guarded(kernel, element))
        })
        .collect();
    let fitting = elements.into_iter().zip(fits).filter_map(|(element, fits)| fits.then_some(element));
    fitting.take(MOST_CARRIED).collect()
}

/// The ops that each iteration of a loop runs. A `for` runs all of its body; a `while` may end where its condition is asked.
fn collect_what_always_runs(kernel: &Kernel, looped: Op, always: &mut HashSet<Op>) {
    if kernel.ops[looped].kind != OpKind::For {
        return;
    }
    for &op in &kernel.regions[kernel.ops[looped].regions[0]].ops {
        always.insert(op);
        if kernel.constant_trips(op).is_some_and(|trips| trips > 0) {
            collect_what_always_runs(kernel, op, always);
        }
    }
}

/// Whether an access reads or writes one scalar of an array, which is there.
fn is_simple(kernel: &Kernel, op: Op, array: ArrayType) -> bool {
    let Some(place) = plain_place(kernel, op) else { return false };
    let components = &place[1 + usize::from(array.rank)..];
    let dims = match array.elem {
        Data::Tensor(tensor) => tensor.shape.dims(),
        Data::Scalar(_) | Data::Struct(_) => Vec::new(),
    };
    let exists = |(&component, &extent): (&Value, &u32)| {
        let constant = kernel.as_const(component).and_then(Const::as_i128);
        constant.is_some_and(|constant| (0..i128::from(extent)).contains(&constant))
    };
    array.boundary == Boundary::Unsafe
        && components.len() == dims.len()
        && components.iter().zip(&dims).all(exists)
}

/// Whether two paths of one array never lead to one element: somewhere they differ by a constant.
fn are_distinct(a: &[Affine], b: &[Affine]) -> bool {
    a.iter().zip(b).any(|(a, b)| a.ty == b.ty && a.terms == b.terms && a.constant != b.constant)
}

/// Whether code can ask if the element is there: all elements inside of the array's extents are.
fn may_be_guarded(kernel: &Kernel, element: &Element) -> bool {
    let Type::Array(array) = kernel.ty(element.place[0]) else { return false };
    let is_dense = kernel.layout(array).is_none_or(|layout| !layout.is_sparse());
    is_dense && indices_of(array, element).iter().all(|&index| kernel.ty(index).scalar() == Some(Scalar::I32))
}

fn indices_of(array: ArrayType, element: &Element) -> &[Value] {
    &element.place[1..=usize::from(array.rank)]
}

/// The variables that stand for an element while the loop runs.
struct Variables {
    path: Vec<Value>,
    value: Value,
    /// Whether the element was written, where that has to be found out.
    written: Option<Value>,
}

/// Makes the loop, which stands in the region, carry the elements.
fn carry(kernel: &mut Kernel, region: Region, looped: Op, parallel: Op, elements: &[Element]) {
    let loc = kernel.ops[looped].loc;
    let at = kernel.regions[region].ops.iter().position(|&op| op == looped).expect("it stands there");
    let rest = kernel.regions[region].ops.split_off(at + 1);
    kernel.regions[region].ops.pop();
    let bounds = (kernel.ops[looped].kind == OpKind::For).then(|| {
        let operands = &kernel.ops[looped].operands;
        (operands[0], operands[1])
    });
    let runs = kernel.constant_trips(looped).is_some_and(|trips| trips > 0);
    let some = bounds
        .filter(|_| !runs && elements.iter().any(|element| element.is_certain))
        .map(|(lo, hi)| Builder::at(kernel, region, loc).compare(CompareOp::Lt, lo, hi));
    let mut variables = Vec::with_capacity(elements.len());
    let mut flags: Vec<(&[Region], Value)> = Vec::new();
    for element in elements {
        let path = path_before(kernel, region, element, loc);
        let conditions = if element.is_certain {
            some.into_iter().collect()
        } else {
            inside_of_array(kernel, region, parallel, element, &path, loc)
        };
        let b = &mut Builder::at(kernel, region, loc);
        let value = b.local(element.scalar.into());
        if element.is_read {
            let first = read_if(b, element, &path, &conditions);
            b.store(value, &[], first);
        }
        let known =
            flags.iter().find(|(written_in, _)| *written_in == element.written_in).map(|&(_, flag)| flag);
        let written = (!element.is_surely_written).then(|| {
            known.unwrap_or_else(|| {
                let flag = b.local(Scalar::U1.into());
                let no = b.constant(Const::from_i128(Scalar::U1, 0));
                b.store(flag, &[], no);
                flags.push((&element.written_in, flag));
                flag
            })
        });
        variables.push(Variables { path, value, written });
    }
    kernel.regions[region].ops.push(looped);
    let numbered = elements.iter().zip(&variables);
    let variables_of: HashMap<Op, &Variables> =
        numbered.flat_map(|(element, of)| element.accesses.iter().map(move |&op| (op, of))).collect();
    for inner in kernel.ops[looped].regions.clone() {
        replace(kernel, inner, &variables_of);
    }
    write_back(kernel, region, elements, &variables, None, some, loc);
    for (_, flag) in flags {
        let condition = Builder::at(kernel, region, loc).load(flag, &[]);
        write_back(kernel, region, elements, &variables, Some(flag), Some(condition), loc);
    }
    kernel.regions[region].ops.extend(rest);
}

/// Writes the elements that have this flag, if the condition holds.
fn write_back(
    kernel: &mut Kernel,
    region: Region,
    elements: &[Element],
    variables: &[Variables],
    flag: Option<Value>,
    condition: Option<Value>,
    loc: Loc,
) {
    let then = if condition.is_some() { kernel.add_region() } else { region };
    let b = &mut Builder::at(kernel, then, loc);
    let mut any = false;
    for (element, of) in elements.iter().zip(variables).filter(|(_, of)| of.written == flag) {
        let last = b.load(of.value, &[]);
        b.store(element.place[0], &of.path, last);
        any = true;
    }
    if let Some(condition) = condition.filter(|_| any) {
        b.yields(&[]);
        let b = &mut Builder::at(kernel, region, loc);
        let otherwise = b.region_of(&[], |_, _| Vec::new());
        b.op(OpKind::If, [condition], [], [then, otherwise]);
    }
}

/// The path of the element, of values that are known before the loop.
fn path_before(kernel: &mut Kernel, region: Region, element: &Element, loc: Loc) -> Vec<Value> {
    let path = element.place[1..].iter();
    path.map(|&index| match kernel.as_const(index) {
        Some(constant) => Builder::at(kernel, region, loc).constant(constant),
        None => index,
    })
    .collect()
}

/// The element where all conditions hold, else zero.
fn read_if(b: &mut Builder<'_>, element: &Element, path: &[Value], conditions: &[Value]) -> Value {
    let Some((&condition, further)) = conditions.split_first() else {
        return b.load(element.place[0], path);
    };
    let zero = Const::from_bits(element.scalar, 0);
    let found =
        b.if_else(condition, |b| vec![read_if(b, element, path, further)], |b| vec![b.constant(zero)]);
    found[0]
}

/// What must hold for the element's indices to lie inside of the array, apart from what surely does.
fn inside_of_array(
    kernel: &mut Kernel,
    region: Region,
    parallel: Op,
    element: &Element,
    path: &[Value],
    loc: Loc,
) -> Vec<Value> {
    let Type::Array(array) = kernel.ty(element.place[0]) else { return Vec::new() };
    let mut conditions = Vec::new();
    for (axis, &index) in path.iter().enumerate().take(array.rank.into()) {
        if is_surely_inside(kernel, parallel, element.place[0], array, axis, index) {
            continue;
        }
        let extents = kernel.layout(array).map(|layout| (layout.origin[axis], layout.shape[axis]));
        let b = &mut Builder::at(kernel, region, loc);
        let (first, end) = match extents {
            // Extents are below 2^31; what is behind the last index that there is cannot be asked for.
            Some((origin, extent)) => {
                let end = i64::from(origin) + i64::from(extent);
                let end = i32::try_from(end).unwrap_or(i32::MAX);
                (b.constant(Const::i32(origin)), b.constant(Const::i32(end)))
            }
            None => (b.constant(Const::i32(0)), b.extent(element.place[0], axis as u8)),
        };
        conditions.push(b.compare(CompareOp::Ge, index, first));
        conditions.push(b.compare(CompareOp::Lt, index, end));
    }
    conditions
}

/// Whether an index is that of the parallel loop, whose bounds are those of the array, or a constant inside of it.
fn is_surely_inside(
    kernel: &Kernel,
    parallel: Op,
    base: Value,
    array: ArrayType,
    axis: usize,
    index: Value,
) -> bool {
    let constant = |value: Value| kernel.as_const(value).and_then(Const::as_i128);
    let extents = kernel.layout(array).map(|layout| {
        let origin = i128::from(layout.origin[axis]);
        origin..origin + i128::from(layout.shape[axis])
    });
    if let Some(index) = constant(index) {
        return extents.is_some_and(|extents| extents.contains(&index));
    }
    let Some(parallel) = kernel.parallel_loop(parallel) else { return false };
    let Some(number) = parallel.indices().iter().position(|&param| param == index) else { return false };
    let Some((lo, hi)) = parallel.bounds().nth(number) else { return false };
    let is_extent = |value: Value| {
        kernel.def(value).is_some_and(|op| op.kind == OpKind::Extent(axis as u8) && op.operands[..] == [base])
    };
    match (constant(lo), constant(hi), extents) {
        (Some(lo), Some(hi), Some(extents)) => lo >= extents.start && hi <= extents.end,
        (Some(lo), None, None) => lo >= 0 && is_extent(hi),
        _ => false,
    }
}

/// The accesses become accesses of the variables.
fn replace(kernel: &mut Kernel, region: Region, variables_of: &HashMap<Op, &Variables>) {
    for op in std::mem::take(&mut kernel.regions[region].ops) {
        kernel.regions[region].ops.push(op);
        for inner in kernel.ops[op].regions.clone() {
            replace(kernel, inner, variables_of);
        }
        let Some(Variables { value, written, .. }) = variables_of.get(&op) else { continue };
        let loc = kernel.ops[op].loc;
        if kernel.ops[op].kind == OpKind::Load {
            kernel.ops[op].operands = [*value].into_iter().collect();
            continue;
        }
        let stored = *kernel.ops[op].operands.last().expect("a store has a value");
        kernel.ops[op].operands = [*value, stored].into_iter().collect();
        if let Some(written) = written {
            let b = &mut Builder::at(kernel, region, loc);
            let yes = b.constant(Const::from_i128(Scalar::U1, 1));
            b.store(*written, &[], yes);
        }
    }
}
