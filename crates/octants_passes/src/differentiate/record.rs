//! Recording: what a derivative needs and the kernel does not leave in memory (elements that it overwrites, what atomic updates gave,
//! random numbers, the time) is kept in arrays while the kernel runs.
//!
//! Before:
//! ```text
//! parallel_for (%i: i32) in (%zero..%n) {
//!   %1: f32 = load %x[%i]
//!   %2: f32 = mul %1, %1
//!   store %x[%i], %2
//! }
//! ```
//! After (`%kept` is a new parameter):
//! ```text
//! parallel_for (%i: i32) in (%zero..%n) {
//!   %1: f32 = load %x[%i]
//!   store %kept[%zero, %i], %1
//!   %2: f32 = mul %1, %1
//!   store %x[%i], %2
//! }
//! ```
//! The kernel that is differentiated then loads from there what it loaded from memory. In both, a variable counts what an iteration has
//! kept so far: inside of loops it selects the row. An array has a row for each value that an iteration keeps, and a column for each iteration of a
//! parallel loop; what stands outside of these is one column. How many rows are needed is computed by a kernel, too, which runs before the
//! recording one: it counts, and writes nothing else.

use octants_ir::ops::{ArithOp, AtomicOp};
use octants_ir::rewrite::{Parents, ops_in, regions_in, retain_ops, use_counts};
use octants_ir::{
    ArrayType, Boundary, Builder, Const, Kernel, Loc, Op, OpKind, Region, Scalar, SideTable, Type, Value,
};

use super::overwritten::Order;
use super::{Refusal, RefusalKind};
use crate::iteration_number::column;
use crate::promote_locals;
use crate::sweep::sweep_ending;

/// A kernel that does what another one does, and keeps what its derivative needs.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Its parameters are those of the kernel, then [`Recording::arrays`].
    pub kernel: Kernel,
    /// Where values are kept.
    pub arrays: Vec<RecordArray>,
    /// The places of what is kept.
    pub kept: Vec<(Loc, Scalar)>,
    /// Computes how large the arrays are. Its parameters are those of the kernel, then an array of 64-bit integers, zero at first, with two
    /// of them for each of [`Recording::arrays`]: rows and columns.
    pub sizing: Kernel,
}

/// An array of two axes in which values are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordArray {
    pub scalar: Scalar,
    /// Its parameter of the recording kernel.
    pub param: usize,
    /// Its parameter of the derivative.
    pub derivative_param: usize,
}

/// What is kept by one parallel loop, or by what stands in a region outside of these, in one type.
struct Log {
    /// The body of the loop, or the region.
    body: Region,
    owner: Option<Op>,
    scalar: Scalar,
    ops: Vec<Op>,
}

/// What an op that is recorded gets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A store behind it.
    Keep,
    /// A load before it.
    Load,
    /// Nothing; it is counted.
    Count,
}

/// The kernel that keeps the results of `ops`. Both kernels are the same but for parameters behind, of the second one; that gets loads
/// from what was kept, by the op that each stands for.
pub(super) fn record(
    kernel: &Kernel,
    derived: &mut Kernel,
    ops: &[Op],
) -> Result<(Recording, SideTable<Op, Option<Op>>), Vec<Refusal>> {
    let logs = logs(kernel, ops);
    let mut recording = kernel.clone();
    recording.name = format!("{}_recorded", kernel.name);
    let (params, _) = insert(&mut recording, &logs, Purpose::Keep);
    let (derivative_params, loads) = insert(derived, &logs, Purpose::Load);
    let arrays = logs.iter().zip(params.iter().zip(&derivative_params));
    let arrays = arrays.map(|(log, (&param, &derivative_param))| RecordArray {
        scalar: log.scalar,
        param,
        derivative_param,
    });
    let kept = logs.iter().flat_map(|log| log.ops.iter().map(|&op| (kernel.ops[op].loc, log.scalar)));
    let sizing = sizing(kernel, &logs)?;
    Ok((Recording { kernel: recording, arrays: arrays.collect(), kept: kept.collect(), sizing }, loads))
}

fn logs(kernel: &Kernel, ops: &[Op]) -> Vec<Log> {
    let parents = Parents::new(kernel);
    let mut logs: Vec<Log> = Vec::new();
    for op in ops_in(kernel, kernel.body).into_iter().filter(|op| ops.contains(op)) {
        let Some(scalar) = kernel.ops[op].results.first().and_then(|&result| kernel.ty(result).scalar())
        else {
            continue;
        };
        let (body, owner) = home(kernel, &parents, op);
        match logs.iter_mut().find(|log| log.body == body && log.scalar == scalar) {
            Some(log) => log.ops.push(op),
            None => logs.push(Log { body, owner, scalar, ops: vec![op] }),
        }
    }
    logs
}

/// The body of the parallel loop that the op stands in, or the region at the top.
fn home(kernel: &Kernel, parents: &Parents, op: Op) -> (Region, Option<Op>) {
    let mut region = parents.region(op).expect("the op stands in the kernel");
    let tops = kernel.top_regions();
    loop {
        let owner = parents.op(region);
        let parallel = owner.filter(|&owner| matches!(kernel.ops[owner].kind, OpKind::ParallelFor(_)));
        if parallel.is_some() || tops.contains(&region) {
            return (region, parallel);
        }
        region = owner.and_then(|owner| parents.region(owner)).expect("tops are around everything");
    }
}

/// Gives the numbers of the new parameters (none if it only counts) and the loads.
fn insert(kernel: &mut Kernel, logs: &[Log], purpose: Purpose) -> (Vec<usize>, SideTable<Op, Option<Op>>) {
    let mut loads = SideTable::new(None);
    let mut params = Vec::new();
    for (number, log) in logs.iter().enumerate() {
        let array = (purpose != Purpose::Count).then(|| {
            params.push(kernel.params.len());
            let ty = ArrayType::array(log.scalar, 2, Boundary::Unsafe);
            kernel.add_param(format!("kept{number}.{}", log.scalar), Type::Array(ty))
        });
        let (used, column) = open(kernel, log);
        for region in regions_in(kernel, log.body) {
            if !kernel.regions[region].ops.iter().any(|op| log.ops.contains(op)) {
                continue;
            }
            for op in std::mem::take(&mut kernel.regions[region].ops) {
                if !log.ops.contains(&op) {
                    kernel.regions[region].ops.push(op);
                    continue;
                }
                if purpose == Purpose::Keep {
                    kernel.regions[region].ops.push(op);
                }
                let (result, loc) = (kernel.ops[op].results[0], kernel.ops[op].loc);
                let b = &mut Builder::at(kernel, region, loc);
                let row = b.load(used, &[]);
                match (purpose, array) {
                    (Purpose::Keep, Some(array)) => b.store(array, &[row, column], result),
                    (Purpose::Load, Some(array)) => {
                        b.load(array, &[row, column]);
                        let &load = b.kernel.regions[region].ops.last().expect("it was just added");
                        loads.set(op, Some(load));
                    }
                    _ => {}
                }
                let b = &mut Builder::at(kernel, region, loc);
                let one = b.i32(1);
                let next = b.arith(ArithOp::Add, row, one);
                b.store(used, &[], next);
                if purpose != Purpose::Keep {
                    kernel.regions[region].ops.push(op);
                }
            }
        }
        if purpose == Purpose::Count {
            note(kernel, log, number, used);
        }
    }
    promote_locals(kernel);
    (params, loads)
}

/// The variable that counts what was kept, and the column of the iteration, at the beginning of the log's body.
fn open(kernel: &mut Kernel, log: &Log) -> (Value, Value) {
    let ops = std::mem::take(&mut kernel.regions[log.body].ops);
    let loc = log.owner.or(log.ops.first().copied()).map(|op| kernel.ops[op].loc);
    let loc = loc.unwrap_or_else(|| Builder::new(kernel).loc);
    let column = match log.owner {
        Some(owner) => column(kernel, owner, log.body),
        None => Builder::at(kernel, log.body, loc).i32(0),
    };
    let used = Builder::at(kernel, log.body, loc).local(Scalar::I32.into());
    kernel.regions[log.body].ops.extend(ops);
    (used, column)
}

/// Writes how much an iteration has kept, and how many there are, to the kernel's last parameter.
fn note(kernel: &mut Kernel, log: &Log, number: usize, used: Value) {
    let &sizes = kernel.regions[kernel.body].params.last().expect("it has sizes");
    let (rows, columns) = (2 * number as i32, 2 * number as i32 + 1);
    let end = kernel.regions[log.body].ops.pop().expect("a region has a terminator");
    let loc = kernel.ops[end].loc;
    let b = &mut Builder::at(kernel, log.body, loc);
    let count = b.load(used, &[]);
    let (count, at) = (b.cast(count, Scalar::I64), b.i32(rows));
    b.atomic(AtomicOp::Max, sizes, &[at], count);
    kernel.regions[log.body].ops.push(end);
    let Some(owner) = log.owner else {
        let end = kernel.regions[log.body].ops.pop().expect("a region has a terminator");
        let b = &mut Builder::at(kernel, log.body, loc);
        let (one, at) = (b.constant(Const::from_i128(Scalar::I64, 1)), b.i32(columns));
        b.store(sizes, &[at], one);
        kernel.regions[log.body].ops.push(end);
        return;
    };
    let around = Parents::new(kernel).region(owner).expect("the loop stands somewhere");
    let bounds: Vec<_> = kernel.parallel_loop(owner).map(|l| l.bounds().collect()).unwrap_or_default();
    let ops = std::mem::take(&mut kernel.regions[around].ops);
    for op in ops {
        if op == owner {
            let b = &mut Builder::at(kernel, around, loc);
            let (zero, mut points) =
                (b.constant(Const::from_i128(Scalar::I64, 0)), b.constant(Const::from_i128(Scalar::I64, 1)));
            for &(lo, hi) in &bounds {
                let (lo, hi) = (b.cast(lo, Scalar::I64), b.cast(hi, Scalar::I64));
                let extent = b.arith(ArithOp::Sub, hi, lo);
                let extent = b.arith(ArithOp::Max, extent, zero);
                points = b.arith(ArithOp::Mul, points, extent);
            }
            let at = b.i32(columns);
            b.store(sizes, &[at], points);
        }
        kernel.regions[around].ops.push(op);
    }
}

/// The kernel that counts. Refused if what it needs depends on what the kernel itself writes, since it runs before that.
fn sizing(kernel: &Kernel, logs: &[Log]) -> Result<Kernel, Vec<Refusal>> {
    let mut sizing = kernel.clone();
    sizing.name = format!("{}_recorded_sizes", kernel.name);
    let sizes = sizing.add_param("sizes", Type::Array(ArrayType::array(Scalar::I64, 1, Boundary::Unsafe)));
    let uses = use_counts(&sizing);
    let mut updates = SideTable::new(false);
    for op in ops_in(&sizing, sizing.body) {
        let data = &sizing.ops[op];
        let is_update = matches!(data.kind, OpKind::Atomic(_) | OpKind::AtomicCas);
        let used = data.results.iter().any(|&result| uses[result] > 0);
        if is_update && used && matches!(sizing.ty(data.operands[0]), Type::Array(_)) {
            // Nobody knows what it will give; if that is needed, it is refused.
            let place = sizing.addressed(op).map(|place| place.operands().to_vec()).unwrap_or_default();
            sizing.ops[op].kind = OpKind::Load;
            sizing.ops[op].operands = place.into();
            updates.set(op, true);
        }
    }
    let body = sizing.body;
    retain_ops(&mut sizing, body, &mut |kernel, op| match kernel.ops[op].kind {
        OpKind::Assert(..) | OpKind::Print(_) => false,
        _ => {
            let access = kernel.cell_access(op).filter(|access| access.writes);
            !access.is_some_and(|access| matches!(kernel.ty(access.place.base()), Type::Array(_)))
        }
    });
    insert(&mut sizing, logs, Purpose::Count);
    let end = sizing.regions[body].ops.pop().expect("a region has a terminator");
    let loc = sizing.ops[end].loc;
    Builder::at(&mut sizing, body, loc).returns(&[]);
    sizing.results.clear();
    sweep_ending(&mut sizing);
    let order = Order::new(kernel);
    let mut refusals = Vec::new();
    for op in ops_in(&sizing, body) {
        let data = &sizing.ops[op];
        match data.kind {
            OpKind::LaunchKey | OpKind::Random => {
                refusals.push(Refusal::new(RefusalKind::Random, data.loc));
            }
            OpKind::Clock => refusals.push(Refusal::new(RefusalKind::Clock, data.loc)),
            _ if updates[op] => refusals.push(Refusal::new(RefusalKind::AtomicResult, data.loc)),
            OpKind::Load | OpKind::VolatileLoad if data.operands[0] != sizes => {
                let array = matches!(sizing.ty(data.operands[0]), Type::Array(_));
                let before = order.writes.iter().find(|&&write| array && order.may_overwrite(write, op));
                if let Some(&write) = before {
                    refusals.push(Refusal {
                        kind: RefusalKind::Uncounted,
                        at: data.loc,
                        other: Some(kernel.ops[write].loc),
                        param: kernel.as_param(data.operands[0]),
                    });
                }
            }
            _ => {}
        }
    }
    if refusals.is_empty() { Ok(sizing) } else { Err(refusals) }
}
