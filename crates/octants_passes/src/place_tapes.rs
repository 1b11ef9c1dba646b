//! Puts tapes into arrays that whoever launches provides, for devices whose threads have no memory that grows, and where memory is limited.
//!
//! [`declare_tape_arrays`](crate::declare_tape_arrays) and [`declare_sized_tape_arrays`](crate::declare_sized_tape_arrays) give the kernel the
//! parameters, and each tape the array that it lies in. Before:
//! ```text
//! parallel_for (%i: i32) in (%lo..%hi) {
//!   %t: tape<f32> = tape %m
//!   …
//!   store %t[%k], %v
//! }
//! ```
//! After:
//! ```text
//! parallel_for (%i: i32) in (%lo..%hi) {
//!   %t: tape<f32> = tape %m, %tapes, %slots
//!   …
//!   store %t[%k], %v
//! }
//! ```
//! [`place_tapes`], a pass, runs so many iterations at once as there are slots:
//! ```text
//! parallel_for (%s: i32) in (0..%slots) {
//!   %n: i64 = …                                     iterations %s, %s + %slots, … of all
//!   for %b: i64 in 0..%n {
//!     %i: i32 = …                                   %lo + %s + %b * %slots
//!     …
//!     %1: i32 = mul %k, %slots
//!     %2: i32 = add %1, %s
//!     store %tapes[%2], %v
//!   }
//! }
//! ```
//! An array has a row for each cell that an iteration needs and a column for each slot: neighbouring iterations have neighbouring cells.
//! How many cells that are is what a [`TapePlan`](crate::TapePlan) computes. Where memory says more when the tape is made, the iteration fails: it was
//! written meanwhile.
//!
//! Iterations may need different amounts, and many of them nothing. Whoever launches may then provide as many columns as iterations need
//! any: each takes a *ticket*, the number of a column, when it makes its first tape that is not empty.
//! What a region took is free again when it has run, so the row
//! where a tape begins follows from the tapes of the regions around it. Loops that run one after the other have one array.
//!
//! The pass expects scalars, and leaves the structured phase.

use octants_ir::ops::{ArithOp, AssertKind, AtomicOp, BitOp, CompareOp, ParallelFor};
use octants_ir::rewrite::{ValueMap, ops_in, replace_values};
use octants_ir::{
    Builder, Const, Data, Kernel, Op, OpData, OpKind, Region, Scalar, SideTable, Type, Value, ValueDef,
};

use crate::edit::slots::yielded;

/// The pass.
pub fn place_tapes(kernel: &mut Kernel) {
    for region in kernel.top_regions() {
        for op in std::mem::take(&mut kernel.regions[region].ops) {
            match slots_of(kernel, op) {
                Some(slots) => place(kernel, region, op, &slots),
                None => kernel.regions[region].ops.push(op),
            }
        }
    }
}

/// The slots of a parallel loop, and the arrays that its tapes lie in.
struct Slots {
    count: Value,
    /// Columns and tickets.
    claims: Option<(Value, Value)>,
    arrays: Vec<Value>,
}

/// Of a parallel loop whose tapes lie in arrays.
fn slots_of(kernel: &Kernel, op: Op) -> Option<Slots> {
    let body = kernel.parallel_loop(op)?.body;
    let mut found: Option<Slots> = None;
    for op in ops_in(kernel, body) {
        let data = &kernel.ops[op];
        let (OpKind::Tape, [_, array, count, claims @ ..]) = (&data.kind, &data.operands[..]) else {
            continue;
        };
        let claims = if let &[columns, tickets] = claims { Some((columns, tickets)) } else { None };
        let slots = found.get_or_insert(Slots { count: *count, claims, arrays: Vec::new() });
        if !slots.arrays.contains(array) {
            slots.arrays.push(*array);
        }
    }
    found
}

/// Puts the loop at the end of the region, as one over slots.
fn place(kernel: &mut Kernel, region: Region, op: Op, given: &Slots) {
    let slots = given.count;
    let data = kernel.ops[op].clone();
    let OpKind::ParallelFor(attributes) = data.kind else { panic!("{op} is no parallel loop") };
    let (bounds, places) = data.operands.split_at(attributes.bound_operands());
    let body = data.regions[0];
    let params = kernel.regions[body].params.clone();
    let (indices, accumulators) = params.split_at(attributes.axes.into());
    let types: Vec<_> = accumulators.iter().map(|&value| kernel.ty(value)).collect();

    let outer = kernel.add_region();
    let slot = kernel.add_region_param(outer, Type::I32);
    let so_far: Vec<_> = types.iter().map(|&ty| kernel.add_region_param(outer, ty)).collect();
    let inner = kernel.add_region();
    let batch = kernel.add_region_param(inner, Type::I64);
    let carried: Vec<_> = types.iter().map(|&ty| kernel.add_region_param(inner, ty)).collect();

    let mut b = Builder::at(kernel, outer, data.loc);
    let extents: Vec<_> = bounds.chunks_exact(2).map(|axis| extent(&mut b, axis[0], axis[1])).collect();
    let points = extents.iter().copied().reduce(|all, extent| b.arith(ArithOp::Mul, all, extent));
    let points = points.expect("a loop has an axis");
    let (zero, one) =
        (b.constant(Const::from_i128(Scalar::I64, 0)), b.constant(Const::from_i128(Scalar::I64, 1)));
    let (wide_slot, wide_slots) = (b.cast(slot, Scalar::I64), b.cast(slots, Scalar::I64));
    let last = b.arith(ArithOp::Sub, wide_slots, one);
    let after = b.arith(ArithOp::Sub, points, wide_slot);
    let after = b.arith(ArithOp::Add, after, last);
    let batches = b.arith(ArithOp::RawDiv, after, wide_slots);
    let operands: Vec<_> = [zero, batches].into_iter().chain(so_far).collect();
    let claims = given.claims.map(|(columns, tickets)| {
        let none = b.i32(0);
        Claims { claiming: b.compare(CompareOp::Gt, columns, none), columns, tickets, column: None }
    });
    let stride = claims.as_ref().map_or(slots, |claims| b.select(claims.claiming, claims.columns, slots));
    let mut rows = SideTable::new(None);
    for &array in &given.arrays {
        let cells = b.extent(array, 0);
        rows.set(array, Some(b.arith(ArithOp::RawDiv, cells, stride)));
    }

    b.within(inner, |b| {
        let first = b.arith(ArithOp::Mul, batch, wide_slots);
        let mut point = b.arith(ArithOp::Add, first, wide_slot);
        let mut names = ValueMap::new();
        for (axis, &index) in indices.iter().enumerate().rev() {
            let distance = if axis == 0 {
                point
            } else {
                let rows = b.arith(ArithOp::RawDiv, point, extents[axis]);
                let before = b.arith(ArithOp::Mul, rows, extents[axis]);
                let distance = b.arith(ArithOp::Sub, point, before);
                point = rows;
                distance
            };
            let scalar = b.kernel.ty(index).scalar().expect("an index is an integer");
            let (lo, distance) = (bounds[2 * axis], b.cast(distance, scalar));
            names.insert(index, b.arith(ArithOp::Add, lo, distance));
        }
        for (&param, &value) in accumulators.iter().zip(&carried) {
            names.insert(param, value);
        }
        let mut claims = claims;
        if let Some(claims) = &mut claims {
            let column = b.local(Data::Scalar(Scalar::I32));
            let none = b.i32(-1);
            let first = b.select(claims.claiming, none, slot);
            b.store(column, &[], first);
            claims.column = Some(column);
        }
        let ops = std::mem::take(&mut b.kernel.regions[body].ops);
        let tapes = SideTable::new(None);
        let mut placement = Placement {
            kernel: &mut *b.kernel,
            slot,
            indices: indices.to_vec(),
            stride,
            rows,
            claims,
            tapes,
        };
        placement.ops(inner, ops, &[]);
        replace_values(b.kernel, inner, &names);
    });
    let looped = b.op(OpKind::For, operands, types, [inner]);
    let results = b.kernel.ops[looped].results.to_vec();
    b.yields(&results);
    debug_assert_eq!(yielded(kernel, inner).len(), results.len());

    let zero = Builder::at(kernel, region, data.loc).i32(0);
    let changed = &mut kernel.ops[op];
    changed.kind = OpKind::ParallelFor(Box::new(ParallelFor { axes: 1, ..*attributes }));
    changed.operands = [zero, slots].iter().chain(places).copied().collect();
    changed.regions[0] = outer;
    kernel.regions[region].ops.push(op);
}

/// How many integers there are from the first to before the second.
fn extent(b: &mut Builder<'_>, lo: Value, hi: Value) -> Value {
    let zero = b.constant(Const::from_i128(Scalar::I64, 0));
    let (lo, hi) = (b.cast(lo, Scalar::I64), b.cast(hi, Scalar::I64));
    let difference = b.arith(ArithOp::Sub, hi, lo);
    b.arith(ArithOp::Max, difference, zero)
}

/// How iterations get columns that only some of them need.
struct Claims {
    /// Whether they do in this launch.
    claiming: Value,
    columns: Value,
    tickets: Value,
    /// The variable that holds the iteration's column, negative as long as it has none.
    column: Option<Value>,
}

/// Where a tape lies.
#[derive(Clone, Copy)]
struct PlacedTape {
    array: Value,
    /// Its first row, if that is not zero.
    first: Option<Value>,
    column: Value,
}

struct Placement<'k> {
    kernel: &'k mut Kernel,
    slot: Value,
    /// The indices of the loop.
    indices: Vec<Value>,
    /// Cells of a row.
    stride: Value,
    /// Of an array.
    rows: SideTable<Value, Option<Value>>,
    claims: Option<Claims>,
    tapes: SideTable<Value, Option<PlacedTape>>,
}

impl Placement<'_> {
    /// Puts the ops into the region. `taken` says how many rows of arrays tapes around them have.
    fn ops(&mut self, region: Region, ops: Vec<Op>, taken: &[(Value, Value)]) {
        let mut taken = taken.to_vec();
        for op in ops {
            let data = self.kernel.ops[op].clone();
            for &inner in &data.regions {
                let ops = std::mem::take(&mut self.kernel.regions[inner].ops);
                self.ops(inner, ops, &taken);
            }
            let place = data.operands.first().and_then(|&base| self.tapes[base]);
            let mut b = Builder::at(self.kernel, region, data.loc);
            match (&data.kind, place) {
                (OpKind::Tape, _) => {
                    let array = data.operands[1];
                    let (count, none) = (b.cast(data.operands[0], Scalar::I32), b.i32(0));
                    let count = b.arith(ArithOp::Max, count, none);
                    let rows = taken.iter_mut().find(|(known, _)| *known == array);
                    let first = rows.as_ref().map(|(_, rows)| *rows);
                    let next = first.map_or(count, |first| b.arith(ArithOp::Add, first, count));
                    match rows {
                        Some((_, rows)) => *rows = next,
                        None => taken.push((array, next)),
                    }
                    self.check_room(region, &data, first);
                    let column = self.column(region, &data, count);
                    self.tapes.set(data.results[0], Some(PlacedTape { array, first, column }));
                }
                (OpKind::Load | OpKind::Store, Some(PlacedTape { array, first, column })) => {
                    let index = b.cast(data.operands[1], Scalar::I32);
                    let row = first.map_or(index, |first| b.arith(ArithOp::Add, first, index));
                    let row = b.arith(ArithOp::Mul, row, self.stride);
                    let cell = b.arith(ArithOp::Add, row, column);
                    let operands = [array, cell].into_iter().chain(data.operands[2..].iter().copied());
                    self.kernel.ops[op].operands = operands.collect();
                    self.kernel.regions[region].ops.push(op);
                }
                _ => self.kernel.regions[region].ops.push(op),
            }
        }
    }

    /// Fails where a tape would need more rows than there are. What follows from arguments and indices alone was found out alike before.
    fn check_room(&mut self, region: Region, tape: &OpData, first: Option<Value>) {
        let count = tape.operands[0];
        let certain = is_certain(self.kernel, count, &self.indices, &mut MAX_COUNT_OPS.clone());
        let Some(rows) = self.rows[tape.operands[1]].filter(|_| !certain) else { return };
        let b = &mut Builder::at(self.kernel, region, tape.loc);
        let room = first.map_or(rows, |first| b.arith(ArithOp::Sub, rows, first));
        let (count, room) = (b.cast(count, Scalar::I64), b.cast(room, Scalar::I64));
        let fits = b.compare(CompareOp::Le, count, room);
        b.assert(AssertKind::Tape, fits, CHANGED, &[]);
    }

    /// The column of an iteration that makes a tape of so many rows.
    fn column(&mut self, region: Region, tape: &OpData, count: Value) -> Value {
        let Some(&Claims { columns, tickets, column: Some(column), .. }) = self.claims.as_ref() else {
            return self.slot;
        };
        let b = &mut Builder::at(self.kernel, region, tape.loc);
        let (zero, one) = (b.i32(0), b.i32(1));
        let so_far = b.load(column, &[]);
        let (has_none, some) =
            (b.compare(CompareOp::Lt, so_far, zero), b.compare(CompareOp::Gt, count, zero));
        let takes = b.bit(BitOp::And, has_none, some);
        b.if_else(
            takes,
            |b| {
                let ticket = b.atomic(AtomicOp::Add, tickets, &[zero], one);
                let fits = b.compare(CompareOp::Lt, ticket, columns);
                b.assert(AssertKind::Tape, fits, CHANGED, &[]);
                b.store(column, &[], ticket);
                Vec::new()
            },
            |_| Vec::new(),
        );
        b.load(column, &[])
    }
}

const CHANGED: &str =
    "how often a loop runs changed while the derivative was computed: what it reads was written meanwhile";

/// Ops of a count that are looked at. Chosen, not measured: a bound on the time; a check too many does no harm.
const MAX_COUNT_OPS: u32 = 64;

/// Whether a value follows from arguments and shapes and these indices alone.
fn is_certain(kernel: &Kernel, value: Value, indices: &[Value], left: &mut u32) -> bool {
    match kernel.values[value].def {
        ValueDef::Param(region, _) => region == kernel.body || indices.contains(&value),
        ValueDef::Result(..) if *left == 0 => false,
        ValueDef::Result(op, _) => {
            *left -= 1;
            let data = &kernel.ops[op];
            data.kind.is_pure()
                && data.operands.iter().all(|&operand| is_certain(kernel, operand, indices, left))
        }
    }
}
